"""A look at a loss that ties rows together, by groups or by parameters of its own, before it is trusted.

As `checking` takes it at a loss of single rows; here along lines of all scores, and of the parameters, at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from beeline._types import Floats, Ints
from beeline.exceptions import ParameterError
from beeline.losses.base import Loss, RowLoss, ScalarLoss, VectorLoss
from beeline.losses.checking import jumps
from beeline.losses.groups import GroupLoss

__all__ = ["check_tied_loss", "fault_of_tied_loss", "settle_tied_smoothness"]

_LINES, _PLACES = 4, 13
_FEW_LINES, _FEW_PLACES = 2, 4  # on which kinks are looked for, which takes many more looks
_REACH = 3.0
_STEP, _CLOSE = 1e-6, 1e-4
_ROUNDING = 1e-12
_BEYOND = 0.25  # of the way, that lines go on

_SILENT = (Loss, RowLoss, ScalarLoss, VectorLoss, GroupLoss)

Evaluate = Callable[[float], tuple[float, float]]  # from t to the sum along a line and its derivative by t


def check_tied_loss(loss: Loss, y: Floats, starts: Ints, n_outputs: int) -> None:
    """Raise `ParameterError` when a loss cannot be what it should.

    That is, when it returns what is no number or of the wrong shape, is negative, has wrong slopes, or is not convex,
    though it says so, along a few random lines. `starts` are those of the groups among the labels.
    """
    if loss.trusted or not len(y):
        return
    _check_shapes(loss, y, starts, n_outputs)
    for at in _lines(loss, y, starts, n_outputs):
        if fault := _fault(at, -_REACH, _REACH, convex=loss.convex):
            raise ParameterError(f"{loss!r} {fault}", parameter="loss")


def settle_tied_smoothness(loss: Loss, y: Floats, starts: Ints, n_outputs: int) -> None:
    """Let a loss know that it has kinks, unless its class says whether it is smooth, or that it is trusted."""
    said = any("smooth" in vars(kind) for kind in type(loss).__mro__ if kind not in _SILENT)
    if said or loss.trusted or not len(y):
        return
    for at in islice(_lines(loss, y, starts, n_outputs), _FEW_LINES):
        t = np.linspace(-_REACH, _REACH, _FEW_PLACES)
        if jumps(lambda times, at=at: np.array([at(float(one))[1] for one in times]), t[:-1], t[1:]):  # type: ignore[misc]
            vars(loss)["smooth"] = False
            return
    vars(loss)["smooth"] = True


def fault_of_tied_loss(loss: Loss, y: Floats, c: Floats, begin: Floats, end: Floats) -> str | None:
    """What is wrong with a loss on the way from some scores of all rows to others, and beyond; None: nothing."""
    moves = np.any(begin != end) or (loss.extra_change is not None and loss.extra_change.any())
    if loss.trusted or not loss.convex or not moves:
        return None

    def at(t: float) -> tuple[float, float]:
        return loss.along(begin, end - begin, t, y, c)

    return _fault(at, -_BEYOND, 1 + _BEYOND, convex=True)


def _check_shapes(loss: Loss, y: Floats, starts: Ints, n_outputs: int) -> None:
    """The first group by itself, or some rows."""
    n, n_scores, n_extra = int(starts[1]), loss.n_scores(n_outputs), loss.n_extra(n_outputs)
    z, extra = np.zeros((n, n_scores) if n_scores > 1 else n), np.zeros(n_extra)
    given = (z.copy(), y[:n].copy(), np.ones(n)) if isinstance(loss, GroupLoss) else (z.copy(), y[:n].copy())
    returned = loss.with_extra(extra).value_and_grad(*given) if n_extra else loss.value_and_grad(*given)  # type: ignore[attr-defined]
    per_row = () if isinstance(loss, GroupLoss) else (n,)
    shapes = [per_row, z.shape] + ([(*per_row, n_extra)] if n_extra else [])
    if not isinstance(returned, tuple) or [np.shape(part) for part in returned] != shapes:
        found = [np.shape(part) for part in returned] if isinstance(returned, tuple) else type(returned).__name__
        raise ParameterError(
            f"{loss!r} must return arrays of shapes {shapes} for {n} rows together, not {found}", parameter="loss"
        )
    if not (np.array_equal(given[0], z) and np.array_equal(given[1], y[:n])):
        raise ParameterError(
            f"{loss!r} changes the scores or the labels that it is given; let it work on copies", parameter="loss"
        )


def _lines(loss: Loss, y: Floats, starts: Ints, n_outputs: int) -> Iterator[Evaluate]:
    """Random lines of all scores and parameters."""
    random, c = np.random.default_rng(0), np.ones(len(y))
    n_scores, n_extra = loss.n_scores(n_outputs), loss.n_extra(n_outputs)
    bound = loss.within(starts) if isinstance(loss, GroupLoss) else loss
    for _ in range(_LINES):
        z, dz = random.normal(size=(2, len(y), n_scores) if n_scores > 1 else (2, len(y)))
        moving = bound.with_extra(*random.normal(size=(2, n_extra))) if n_extra else bound
        yield lambda t, moving=moving, z=z, dz=dz: moving.along(z, dz, t, y, c)  # type: ignore[misc]


def _fault(at: Evaluate, low: float, high: float, *, convex: bool) -> str | None:
    """What is wrong along a line, as the rest of a sentence; None: nothing."""
    places = np.linspace(low, high, _PLACES)
    values, slopes = np.array([at(float(t)) for t in places]).T
    if not (np.isfinite(values).all() and np.isfinite(slopes).all()):
        return "is not finite at moderate scores" if np.isnan(values + slopes).any() else None
    size = float(np.abs(slopes).max()) + float(np.abs(values).max())
    if values.min() < -_ROUNDING * size:
        return (
            f"is {values.min():.4g}; a loss must not be negative: gaps are relative to it; a constant changes no model"
        )
    if not convex:
        wrong = any(_is_wrong(at, float(t), slope, size) for t, slope in zip(places, slopes, strict=True))
        return "has wrong slopes: along a line its value does not change as they say" if wrong else None
    change, steps = np.diff(values), np.diff(places)
    room = _CLOSE * size * steps
    if np.any(np.diff(slopes) < -_STEP * size):
        return (
            "is not convex: along a line its slope falls; without convexity no optimum can be certified (a loss that "
            "says convex = False is trained without a certificate)"
        )
    if np.any((change < slopes[:-1] * steps - room) | (change > slopes[1:] * steps + room)):
        return "has wrong slopes: along a line its value changes by what lies not between those of both ends"
    return None


def _is_wrong(at: Evaluate, t: float, slope: float, size: float) -> bool:
    """Whether a slope lies not between the differences of values on both sides, as far as rounding tells them."""
    before, here, after = (at(t + step)[0] for step in (-_STEP, 0.0, _STEP))
    left, right = (here - before) / _STEP, (after - here) / _STEP
    room = _CLOSE * (size + abs(left - right)) + 4 * np.finfo(np.float64).eps * abs(here) / _STEP
    return not min(left, right) - room <= slope <= max(left, right) + room
