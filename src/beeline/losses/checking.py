"""A look at a loss of one's own before it is trusted: its numbers, its slopes, whether it is convex, and kinks.

What is seen before training begins is said by an exception. Training may then get to scores that nobody looked at, so
that there is a second look, where it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import get_args

import numpy as np

from beeline._types import Floats, Ints
from beeline.exceptions import ParameterError
from beeline.losses.base import Labels, Loss, RowLoss, ScalarLoss, VectorLoss

__all__ = ["check_loss", "fault_after_training", "has_kinks", "jumps", "settle_smoothness"]

_ROWS, _FEWER = 100, 25  # that are looked at; for kinks, which takes longer
_ROWS_AFTER = 900  # that are looked at after training
_STEP, _CLOSE, _ROUNDING = 1e-6, 1e-3, 1e-12
_PLACES = 33  # on a line, between which slopes must not fall
_BEYOND = 1.0  # of a line's length, that it goes on at both ends after training
_SHORTEST = 1e-3  # of scores and labels, lest slopes differ by their rounding only
_HALVINGS, _LEFT = 40, 1e-4  # of an interval; what a jump leaves of the slope's change, and a steep curve does not


def check_loss(loss: RowLoss, y: Floats, n_outputs: int = 1) -> None:
    """Raise `ParameterError` when a loss cannot be what it should.

    That is, when it returns what is no number or of the wrong shape, is negative, has wrong slopes, is not convex
    though it says so, or tells of other kinks than it has.
    Up to 100 rows are given scores between −2 and 2; slopes are held against differences of values on both sides,
    between which a subgradient lies too, and must not fall along a line. A class attribute `trusted = True` says that a
    loss needs no such look.
    """
    if loss.labels not in get_args(Labels):
        raise ParameterError(
            f"{loss!r} has labels = {loss.labels!r}; they are one of {', '.join(get_args(Labels))}", parameter="loss"
        )
    if loss.trusted or not len(y):
        return
    y = y[:_ROWS]
    z, direction = _places(loss, y, n_outputs)
    values, slopes = _called(loss, z, y)
    if len(y) and values[least := int(np.argmin(values))] < -_ROUNDING * (1 + np.abs(values).max()):
        raise ParameterError(
            f"{loss!r} is {values[least]:.4g} at the score {z[least]} and the label {y[least]}; a loss must not be "
            "negative: gaps are relative to it; a constant that is added changes no model",
            parameter="loss",
        )
    step = _STEP * direction
    sides = [(_called(loss, z + step, y)[0] - values) / _STEP, (values - _called(loss, z - step, y)[0]) / _STEP]
    along = _along(slopes, direction)
    rounding = 4 * np.finfo(np.float64).eps * np.abs(values) / _STEP
    room = _CLOSE * (1 + np.abs(along) + np.abs(sides[0] - sides[1])) + rounding
    wrong = (along < np.minimum(*sides) - room) | (along > np.maximum(*sides) + room)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ParameterError(
            f"{loss!r} has a wrong slope: at the score {z[row]} and the label {y[row]} its value changes by "
            f"{0.5 * (sides[0][row] + sides[1][row]):.4g} and not by {along[row]:.4g}; look at its value_and_grad, or "
            "say trusted = True",
            parameter="loss",
        )
    if isinstance(loss, ScalarLoss) and type(loss).curvature is not RowLoss.curvature:
        _check_curvature(loss, z, y, slopes)
    for lines in _lines(loss, y, n_outputs) if loss.convex else ():
        if fault := lines.fault():
            raise ParameterError(
                f"{loss!r} {fault}; without convexity no optimum can be certified (a loss that says convex = False is "
                "trained without a certificate)",
                parameter="loss",
            )
    if isinstance(loss, ScalarLoss) and loss.piecewise_linear:
        _check_kinks(loss, y)


def fault_after_training(loss: RowLoss, y: Floats, start: Floats, end: Floats) -> str | None:
    """What is wrong with a loss where training got to, as the rest of a sentence; None where nothing was found.

    Lines lead from the scores at the start of training to those at its end, and from these to those of another row, and
    beyond. Of many rows those are taken whose scores moved farthest, those of extreme labels, and some of all.
    """
    if loss.trusted or not loss.convex or not len(y):
        return None
    rows = _informative_rows(y, start, end)
    y, start, end = y[rows], start[rows], end[rows]
    others = np.roll(end, len(end) // 2, axis=0)
    for begin, to in ((start, end), (end, others)):
        if fault := _between(loss, y, begin, to).fault():
            return fault
    return None


def has_kinks(loss: RowLoss, y: Floats, n_outputs: int = 1) -> bool:
    """Whether the slope of a loss jumps somewhere.

    Intervals are halved again and again, always towards where the slope changes more. What is left of the change
    vanishes for a loss that is smooth, however steep its slope, and does not where there is a jump.
    """
    with np.errstate(all="ignore"):  # far out, numbers may be too large for doubles
        return any(jumps(lines.slopes_at, lines.t[:-1], lines.t[1:]) for lines in _lines(loss, y[:_FEWER], n_outputs))


def jumps(slopes_at: Callable[[Floats], Floats], low: Floats, high: Floats) -> bool:
    """Whether a slope jumps between any low and its high."""
    s_low, s_high = slopes_at(low), slopes_at(high)
    change = s_high - s_low
    enough = (change > _STEP * (1 + np.abs(s_low) + np.abs(s_high))) & np.isfinite(change)  # not rounding only
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        s_middle = slopes_at(middle)
        left = s_middle - s_low >= s_high - s_middle
        low, s_low = np.where(left, low, middle), np.where(left, s_low, s_middle)
        high, s_high = np.where(left, middle, high), np.where(left, s_middle, s_high)
    return bool(np.any(enough & (s_high - s_low > _LEFT * change)))


def settle_smoothness(loss: RowLoss, y: Floats, n_outputs: int = 1) -> None:
    """Let a loss know that it has kinks, unless its class says whether it is smooth, or that it is trusted."""
    silent = {Loss, RowLoss, ScalarLoss, VectorLoss}
    said = any("smooth" in vars(kind) for kind in type(loss).__mro__ if kind not in silent)
    if not said and not loss.trusted:
        vars(loss)["smooth"] = not has_kinks(loss, y, n_outputs)


def _check_curvature(loss: ScalarLoss, z: Floats, y: Floats, slopes: Floats) -> None:
    h = np.asarray(loss.curvature(z.copy(), y.copy()))
    if h.shape != z.shape or not np.isfinite(h).all():
        raise ParameterError(
            f"{loss!r} must return one finite curvature a row, {len(y)} numbers, not shape {h.shape}", parameter="loss"
        )
    sides = [(_called(loss, z + _STEP, y)[1] - slopes) / _STEP, (slopes - _called(loss, z - _STEP, y)[1]) / _STEP]
    room = _CLOSE * (1 + np.abs(h) + np.abs(sides[0] - sides[1])) + 1e-9 * np.abs(slopes) / _STEP
    wrong = (h < np.minimum(*sides) - room) | (h > np.maximum(*sides) + room)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ParameterError(
            f"{loss!r} has a wrong curvature: at the score {z[row]} and the label {y[row]} its slope changes by "
            f"{0.5 * (sides[0][row] + sides[1][row]):.4g} and not by {h[row]:.4g}; look at curvature, or leave it out",
            parameter="loss",
        )


def _check_kinks(loss: ScalarLoss, y: Floats) -> None:
    """A line search believes the kinks that it is told: slopes must change by their jumps, and nowhere else."""
    if type(loss).kinks is ScalarLoss.kinks:
        raise ParameterError(
            f"{loss!r} says piecewise_linear = True; it must say by kinks where its pieces meet, too", parameter="loss"
        )
    kinks = [(np.asarray(scores), jump) for scores, jump in loss.kinks(y.copy())]
    if not all(scores.shape == y.shape and scores.dtype == np.float64 for scores, _ in kinks):
        raise ParameterError(
            f"{loss!r} must give the scores of its kinks as float64, one a row, {len(y)} numbers", parameter="loss"
        )
    for lines in _lines(loss, y, 1):
        t, slopes = lines.t, lines.slopes_at(lines.t)
        passed = sum((jump * ((t[:-1] < scores) & (scores < t[1:])) for scores, jump in kinks), np.zeros_like(t[1:]))
        at_end = np.any([(t[:-1] == scores) | (t[1:] == scores) for scores, _ in kinks], axis=0)
        wrong = ~at_end & (np.abs(np.diff(slopes, axis=0) - passed) > _CLOSE * (1 + np.abs(slopes).max(axis=0)))
        if wrong.any():
            at, row = (int(k[0]) for k in np.nonzero(wrong))
            raise ParameterError(
                f"{loss!r} has other kinks than it says: as the score of the label {y[row]} goes from {t[at, row]:.4g} "
                f"to {t[at + 1, row]:.4g}, its slope changes by {slopes[at + 1, row] - slopes[at, row]:.4g} and not by "
                f"{passed[at, row]:.4g}; look at kinks, or leave out piecewise_linear",
                parameter="loss",
            )


def _places(loss: RowLoss, y: Floats, n_outputs: int) -> tuple[Floats, Floats]:
    """Scores, and a direction in which each may go."""
    shape = (len(y), n_outputs) if isinstance(loss, VectorLoss) else (len(y),)
    random = np.random.default_rng(0)
    return random.uniform(-2, 2, size=shape), random.normal(size=shape)


@dataclass(frozen=True, eq=False)
class _Lines:
    """A line through the scores of each row, z + t·direction, and places t on it: a column for each row."""

    loss: RowLoss
    y: Floats
    z: Floats
    direction: Floats
    t: Floats

    def at(self, t: Floats) -> tuple[Floats, Floats, float]:
        """The values at places, the slopes along the lines, and the largest that these could be if nothing cancelled.

        To which rounding is relative: where all scores rise together, slopes may cancel to nothing.
        """
        move = t if self.z.ndim == 1 else t[:, :, None]
        scores = (self.z + move * self.direction).reshape(-1, *self.z.shape[1:])
        values, slopes = self.loss.value_and_grad(scores, np.concatenate([self.y] * len(t)))
        direction = np.concatenate([self.direction] * len(t))
        sizes = _along(np.abs(slopes), np.abs(direction))
        size = float(sizes[np.isfinite(sizes)].max(initial=0.0))
        return values.reshape(t.shape), _along(slopes, direction).reshape(t.shape), size

    def slopes_at(self, t: Floats) -> Floats:
        """The slopes alone."""
        return self.at(t)[1]

    def fault(self) -> str | None:
        """Where slopes fall, or values change by what lies not between the slopes of both ends; None: nowhere.

        What is not finite says nothing.
        """
        with np.errstate(all="ignore"):
            values, slopes, size = self.at(self.t)
            fall = np.diff(slopes, axis=0) < -_STEP * size
            steps, change = np.diff(self.t, axis=0), np.diff(values, axis=0)
            rounding = 4 * np.finfo(np.float64).eps * np.abs(values).max(axis=0)
            room = _CLOSE * steps * (np.abs(slopes[:-1]) + np.abs(slopes[1:]) + _STEP * size) + rounding
            wrong = (change < slopes[:-1] * steps - room) | (change > slopes[1:] * steps + room)
            wrong &= np.isfinite(change) & np.isfinite(room)
        if fall.any():
            at, row = (int(k[0]) for k in np.nonzero(fall))
            return (
                f"is not convex: {self._move(at, row)}, its slope falls from {slopes[at, row]:.4g} to "
                f"{slopes[at + 1, row]:.4g}"
            )
        if wrong.any():
            at, row = (int(k[0]) for k in np.nonzero(wrong))
            least, most = slopes[at : at + 2, row] * steps[at, row]
            return (
                f"is not convex, or has a wrong slope: {self._move(at, row)}, its value changes by "
                f"{change[at, row]:.4g}, and by its slopes that is between {least:.4g} and {most:.4g}"
            )
        return None

    def _move(self, at: int, row: int) -> str:
        """From one place to the next, in words."""
        if self.z.ndim > 1:
            return f"as the scores of the label {self.y[row]} go along a line"
        begin, end = self.z[row] + self.direction[row] * self.t[at : at + 2, row]
        return f"as the score of the label {self.y[row]} goes from {begin:.4g} to {end:.4g}"


def _lines(loss: RowLoss, y: Floats, n_outputs: int) -> Iterator[_Lines]:
    """Lines near zero, and beyond all labels."""
    z, direction = _places(loss, y, n_outputs)
    if isinstance(loss, ScalarLoss):
        z, direction = np.zeros(len(y)), np.ones(len(y))
    largest = float(np.abs(y).max()) if y.size and loss.labels != "none" else 0.0
    for reach in (3.0, 4 * max(1.0, largest)):
        t = np.repeat(np.linspace(-reach, reach, _PLACES)[:, None], len(y), axis=1)
        yield _Lines(loss, y, z, direction, t)


def _between(loss: RowLoss, y: Floats, begin: Floats, end: Floats) -> _Lines:
    """Lines through two scores of each row, and beyond; upwards, where there is such a direction."""
    if begin.ndim == 1:
        begin, end = np.minimum(begin, end), np.maximum(begin, end)
    steps = end - begin
    length = np.sqrt(np.square(steps).reshape(len(y), -1).sum(axis=1))
    scale = np.abs(begin).reshape(len(y), -1).max(axis=1)
    if loss.labels in ("real", "vectors"):
        scale = np.maximum(scale, np.abs(y).reshape(len(y), -1).max(axis=1))
    still = (length == 0).reshape(-1, *[1] * (steps.ndim - 1))
    # Only one score moves where none has: moved together, they may make no difference.
    unit = np.where(np.arange(steps[0].size) == 0, 1.0, 0.0).reshape(steps.shape[1:])
    direction = np.where(still, unit, steps / np.where(still, 1.0, length.reshape(still.shape)))
    length = np.maximum(length, _SHORTEST * np.maximum(scale, 1.0))
    return _Lines(loss, y, begin, direction, np.linspace(-_BEYOND, 1 + _BEYOND, _PLACES)[:, None] * length)


def _informative_rows(y: Floats, start: Floats, end: Floats) -> Ints:
    """The rows to look at: some of all, those whose scores moved farthest, and those of extreme labels."""
    n, third = len(y), _ROWS_AFTER // 3
    if n <= _ROWS_AFTER:
        return np.arange(n)
    moved = np.square(end - start).reshape(n, -1).sum(axis=1)
    sizes = np.abs(y).reshape(n, -1).max(axis=1)
    farthest, extreme = (np.argpartition(of, n - third)[n - third :] for of in (moved, sizes))
    return np.unique(np.concatenate([np.linspace(0, n - 1, third).astype(np.int64), farthest, extreme]))


def _along(slopes: Floats, direction: Floats) -> Floats:
    along: Floats = (slopes * direction).reshape(len(slopes), -1).sum(axis=1)
    return along


def _called(loss: RowLoss, z: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Value and slope, which are numbers."""
    given = z.copy(), y.copy()
    returned = loss.value_and_grad(*given)
    if not (isinstance(returned, tuple) and [type(part) for part in returned] == [np.ndarray] * 2):
        raise ParameterError(
            f"{loss!r} must return two arrays from value_and_grad: the values, and the slopes", parameter="loss"
        )
    if not (np.array_equal(given[0], z) and np.array_equal(given[1], y, equal_nan=True)):
        raise ParameterError(
            f"{loss!r} changes the scores or the labels that it is given; let it work on copies", parameter="loss"
        )
    values, slopes = returned
    if values.shape != (len(y),) or slopes.shape != z.shape:
        raise ParameterError(
            f"{loss!r} must return one value a row and slopes of shape {z.shape}, not shapes {values.shape} and "
            f"{slopes.shape}",
            parameter="loss",
        )
    if not all(part.dtype == np.float64 or part.dtype.kind == "i" for part in returned):
        raise ParameterError(f"{loss!r} must return float64, not {values.dtype} and {slopes.dtype}", parameter="loss")
    bad = ~np.isfinite(values + slopes.reshape(len(y), -1).sum(axis=1))
    if bad.any():
        row = int(np.argmax(bad))
        raise ParameterError(
            f"{loss!r} returns {values[row]} with the slope {slopes[row]} at the score {z[row]} and the label {y[row]}"
            "; both must be finite",
            parameter="loss",
        )
    return values, slopes
