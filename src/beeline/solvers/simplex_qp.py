"""Quadratic programmes over the simplex, by DAQP: the model of the bundle method."""

from __future__ import annotations

import numpy as np

from beeline._types import Floats, Ints
from beeline.kernels import dot

__all__ = ["independent_rows", "maximise"]

# A plane outside the working set comes in when it would win more than this part of the value.
_WORTH = 1e-11
# What is so small in a solution is rounding.
_NOTHING = 1e-12
_ROUNDS = 12


def maximise(H: Floats, f: Floats, start: Floats, rows: Floats | None = None) -> tuple[Floats, Floats]:
    """The maximum of fᵀα − ½αᵀHα over α ≥ 0, Σα = 1 and, where given, rows·α = 0.

    DAQP (Arnström, Bemporad & Axehill 2022), a dual active-set method, has the accuracy but no use for a start. So the
    programme is solved over a working set: what the start has a part of, and what is new; then all that would raise the
    value comes in, until nothing would. Few planes carry a solution, and those change little from step to step.

    Parameters
    ----------
    H, f
        The programme; H is symmetric and positive semidefinite.
    start
        A feasible α; its last entries are new where they are zero.
    rows
        Independent equality constraints that α = (1, 0, …) meets.

    Returns
    -------
    α and the multipliers of the rows. α is on the simplex, up to rounding; it is the best of the start and all that was
    found, so that the value never falls below that of the start.
    """
    p = len(f)
    scale = max(float(np.abs(f).max()), float(np.diagonal(H).max()), 1e-300)
    support = np.union1d(np.nonzero(start > 0)[0], [0, p - 1])
    best, value = start, _value(H, f, start)
    multipliers = np.zeros(0 if rows is None else len(rows))
    for _ in range(_ROUNDS):
        found = _solve(H[np.ix_(support, support)] / scale, f[support] / scale, _part(rows, support))
        if found is None:
            break
        alpha = np.zeros(p)
        alpha[support] = found[0]
        multipliers = scale * found[1]
        slopes = f - _times(H, alpha)
        level = dot(slopes, alpha)
        if (now := _value(H, f, alpha)) > value or rows is not None:
            best, value = alpha, now
        gains = slopes - _combined(multipliers, rows) - level
        outside = np.setdiff1d(np.nonzero(gains > _WORTH * max(abs(level), abs(value)))[0], support)
        if not len(outside):
            break
        support = np.union1d(np.append(support[found[0] > 0], 0), outside)
    return best, multipliers


def _value(H: Floats, f: Floats, alpha: Floats) -> float:
    return dot(f, alpha) - 0.5 * dot(alpha, _times(H, alpha))


def _times(H: Floats, alpha: Floats) -> Floats:
    """H·α in a fixed order."""
    used = np.nonzero(alpha)[0]
    product: Floats = (H[:, used] * alpha[used]).sum(axis=1)
    return product


def _combined(multipliers: Floats, rows: Floats | None) -> Floats | float:
    return 0.0 if rows is None else (multipliers[:, None] * rows).sum(axis=0)


def _part(rows: Floats | None, support: Ints) -> Floats:
    return np.zeros((0, len(support))) if rows is None else rows[:, support]


def _solve(H: Floats, f: Floats, rows: Floats) -> tuple[Floats, Floats] | None:
    """(α, multipliers of the rows), or None where the programme is too degenerate for double precision."""
    import daqp

    p, equal = len(f), 1 + len(rows)
    sense = np.append(np.zeros(p, dtype=np.int32), np.full(equal, 5, dtype=np.int32))
    target = np.zeros(equal)
    target[0] = 1.0
    A = np.vstack([np.ones(p), rows])
    high, low = np.append(np.full(p, 1e30), target), np.append(np.zeros(p), target)
    mean = float(np.trace(H)) / p or 1.0
    for ridge in (1e-13, 1e-10, 1e-7):
        damped = H + ridge * mean * np.eye(p)
        alpha, _, flag, info = daqp.solve(damped, -f, A, high, low, sense, primal_tol=1e-9)
        if flag > 0 and np.isfinite(alpha).all() and (total := float(np.maximum(alpha, 0).sum())) > 0.5:
            alpha = np.where(alpha > _NOTHING, alpha, 0.0) / total
            return alpha / alpha.sum(), np.asarray(info["lam"])[p + 1 :]
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
