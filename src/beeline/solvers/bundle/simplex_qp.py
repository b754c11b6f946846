"""Quadratic programmes over the simplex, by DAQP: the model of the bundle method."""

from __future__ import annotations

import numpy as np

from beeline._forks import import_late
from beeline._types import Floats, Ints
from beeline.kernels import dot

__all__ = ["independent_rows", "maximise"]

# What is so small in a solution is rounding.
_NOTHING = 1e-14
_RIDGE = 1e-10
_ROUNDS = 20
_ITERATIONS = 4  # of the active-set method, a plane


def maximise(
    H: Floats, f: Floats, start: Floats, enough: float = 0.0, rows: Floats | None = None
) -> tuple[Floats, Floats]:
    """The maximum of fᵀα − ½αᵀHα over α ≥ 0, Σα = 1 and, where given, rows·α = 0.

    DAQP (Arnström, Bemporad & Axehill 2022), a dual active-set method, is fast and exact for small programmes, but has
    little use for a start. So the programme is solved over a working set: what the start has a part of, and what is
    new; then all that would raise the value comes in, until nothing would. Few planes carry a solution, and those
    change little from step to step.

    The value is flat at its maximum: an error of 10⁻¹² there hides one of 10⁻⁶ in the slopes f − Hα, of which a model's
    minimum is made. What is solved for is therefore the step from the last α, in units of its own size, with H damped
    by a small ridge: the next round mends what rounding and damping did to this one.

    Parameters
    ----------
    H, f
        The programme; H is symmetric and positive semidefinite.
    start
        A feasible α.
    enough
        By how much the slopes f − Hα may exceed their mean by α.
    rows
        Independent equality constraints that α = (1, 0, …) meets.

    Returns
    -------
    α, on the simplex up to rounding, and the multipliers of the rows.
    """
    inside = start > 0
    inside[[0, -1]] = True
    best, alpha, least = start, start, np.inf
    multipliers = np.zeros(0 if rows is None else len(rows))
    found = multipliers
    slopes = f - _times(H, alpha)
    for _ in range(_ROUNDS):
        (support,) = np.nonzero(inside)
        step = _solve(H[np.ix_(support, support)], slopes[support], alpha[support], _part(rows, support))
        if step is None:
            break
        alpha, found = _moved(alpha, support, step[0]), step[1]
        slopes = f - _times(H, alpha)
        heights = slopes - _combined(found, rows)
        level = dot(heights, alpha)
        worst = float(heights.max()) - level
        if worst < least:
            best, multipliers = alpha, found
        wanted = heights > level
        mends = worst < 0.5 * least or bool((wanted & ~inside).any())
        if worst <= max(enough, 1e-14 * abs(level)) or not mends:
            break
        least = min(worst, least)
        inside = (alpha > 0) | wanted
        inside[0] = True
    return best, multipliers


def _moved(alpha: Floats, support: Ints, step: Floats) -> Floats:
    """α after a step of some of its entries, on the simplex again.

    What is nothing is so beside the step, not beside 1: of planes that are steep, next to nothing is the optimum.
    """
    moved = np.zeros(len(alpha))
    from_there = alpha[support] + step
    from_there[from_there <= _NOTHING * np.maximum(alpha[support], np.abs(step).max())] = 0.0
    moved[support] = from_there
    moved /= moved.sum()
    return moved


def _times(H: Floats, alpha: Floats) -> Floats:
    """H·α in a fixed order."""
    used = np.nonzero(alpha)[0]
    product: Floats = (H[:, used] * alpha[used]).sum(axis=1)
    return product


def _combined(multipliers: Floats, rows: Floats | None) -> Floats | float:
    return 0.0 if rows is None else (multipliers[:, None] * rows).sum(axis=0)


def _part(rows: Floats | None, support: Ints) -> Floats:
    return np.zeros((0, len(support))) if rows is None else rows[:, support]


def _solve(H: Floats, slopes: Floats, alpha: Floats, rows: Floats) -> tuple[Floats, Floats] | None:
    """(the best step from α, multipliers of the rows), or None where DAQP finds none."""
    daqp = import_late("daqp")
    p, equal = len(alpha), 1 + len(rows)
    pull = slopes - dot(slopes, alpha)
    strongest = float(np.abs(pull).max())
    mean = max(float(np.trace(H)) / p, strongest, 1e-300)
    unit = max(strongest / mean, 1e-14)
    sense = np.append(np.zeros(p, dtype=np.int32), np.full(equal, 5, dtype=np.int32))
    target = -np.append(0.0, (rows * alpha).sum(axis=1)) / unit
    low, high = np.append(-alpha / unit, target), np.append(np.full(p, 1e30), target)
    A = np.vstack([np.ones(p), rows])
    for ridge in (_RIDGE, 100 * _RIDGE, 1e4 * _RIDGE):
        damped = H / mean + ridge * np.eye(p)
        limits = {"primal_tol": 1e-9, "iter_limit": _ITERATIONS * p + 50}  # beyond which it goes round in circles
        step, _, flag, info = daqp.solve(damped, -pull / (mean * unit), A, high, low, sense, **limits)
        if flag > 0 and np.isfinite(step).all():
            return unit * step, mean * unit * np.asarray(info["lam"])[p + 1 :]
    return None


def independent_rows(rows: Floats) -> tuple[Floats, Floats]:
    """(Q, T) with Q = T·rows orthonormal and of the same span: Gram and Schmidt, twice, in a fixed order."""
    k = len(rows)
    kept: list[Floats] = []
    turns: list[Floats] = []
    largest = max((dot(row, row) for row in rows), default=0.0)
    for i in range(k):
        row, turn = rows[i].copy(), np.zeros(k)
        turn[i] = 1.0
        for _ in range(2):
            for other, its in zip(kept, turns, strict=True):
                part = dot(other, row)
                row, turn = row - part * other, turn - part * its
        square = dot(row, row)
        if square > 1e-20 * largest:
            kept.append(row / np.sqrt(square))
            turns.append(turn / np.sqrt(square))
    return np.array(kept).reshape(len(kept), rows.shape[1]), np.array(turns).reshape(len(kept), k)
