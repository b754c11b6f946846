"""The exact minimum along a line of a loss that is made of flat pieces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from beeline._lazy import cached_property
from beeline._types import Floats
from beeline.engines import Promise
from beeline.engines.verbs import values
from beeline.losses import Absolute, ScalarLoss
from beeline.objective import Line, Objective

__all__ = ["LineMinimum", "is_piecewise_linear", "least", "line_minima", "line_minimum"]

_BUCKETS = 254  # of a window, by which the kinks are sorted out
_FARTHEST = 1e100
_MANY = 1 << 16  # kinks of a bucket, above which they are not sorted but counted once more
_NARROWEST = 1e-14  # of its place, that a bucket may be wide
_OFF_KINKS = 1.0137  # times of kinks are often round numbers, and there J has two slopes: windows end a little beside


@dataclass(frozen=True)
class LineMinimum:
    """The minimum of J along a line, and where its neighbouring pieces can be seen from.

    Attributes
    ----------
    t
        Where J is least.
    left, right
        On the pieces to the left and to the right of t; t itself where J has no kink there.
    down, up
        The slopes of J on these pieces, next to t; NaN where they are not known.
    """

    t: float
    left: float
    right: float
    down: float = math.nan
    up: float = math.nan


def least(line: Line, high: float, first: float, accuracy: float, *, roughly: bool = False) -> float:
    """Where J is least for 0 ≤ t ≤ high: exactly for a piecewise linear loss, else to a relative accuracy of J.

    `first` is where it looks first. For a piecewise linear loss a bucket of its kinks will do, `roughly`.
    """
    if is_piecewise_linear(line.point.objective):
        return max(
            0.0, line_minimum(line, 0.0, high, first, roughly=roughly).t
        )  # a kink at zero may be rounded to below it
    return line.least(0.0, high, min(first, high), accuracy)


def is_piecewise_linear(objective: Objective) -> bool:
    """Whether J is made of flat pieces and an Ω that is a parabola, with one score a row."""
    pieces = isinstance(objective.loss, ScalarLoss) and objective.loss.piecewise_linear
    return pieces and objective.regularizer.separable and not objective.couples_rows


def line_minimum(line: Line, low: float, high: float, first: float, *, roughly: bool = False) -> LineMinimum:
    """The minimum along one line, as `line_minima` finds it."""
    return line_minima([line], low, high, first, roughly=roughly)[0]


def line_minima(
    lines: Sequence[Line], low: float, high: float, first: float, *, roughly: bool = False
) -> list[LineMinimum]:
    """The exact minima for a piecewise linear loss, by its kinks: J is a parabola, or flat, between any two.

    A histogram of the kinks in a window of the line gives the slope of J at the edges of its buckets; the kinks of the
    one bucket where the slope changes its sign are then sorted. That is the search of Franc & Sonnenburg (2009,
    section 3.2) in O(rows), as only the few kinks that can matter are sorted. All lines are searched at once, so that
    they share trips to the rows.

    Parameters
    ----------
    low, high, first
        Between which t, and where to look first.
    roughly
        To a bucket will do.
    """
    searches = [_Search(line, low, high, first, roughly) for line in lines]
    while active := [search for search in searches if search.found is None]:
        for search in active:
            search.ask()
        for search in active:
            search.take()
    return [search.found for search in searches if search.found is not None]


class _Search:
    """The search along one line, in questions and answers.

    Attributes
    ----------
    found
        The minimum, once it is known.
    """

    def __init__(self, line: Line, low: float, high: float, first: float, roughly: bool) -> None:
        self.line, self.low, self.high, self.roughly = line, low, high, roughly
        self.found: LineMinimum | None = None
        if low > -np.inf:
            self.begin, self.end = low, low + _OFF_KINKS * (first - low)
        else:
            width = 2.0 * max(line.point.objective.natural_width, abs(first)) if roughly else 0.1 * max(1.0, abs(first))
            reach = _OFF_KINKS * width
            self.begin, self.end = first - reach, first + reach
        self.end = min(self.end, high * (1 + 1e-9))
        self.moved = 0  # up or down; it never turns back, however the slopes at the seam of two windows are rounded
        self.inside = False  # the bucket of another window, which holds the minimum
        self.window: _Window | None = None
        self.kinks: _Kinks | None = None

    def ask(self) -> None:
        """Ask for the histogram of the next window, or for the kinks of a bucket of the last one."""
        if self.window is None:
            self.window = _Window(self.line, self.begin, self.end)
        else:
            self.kinks = _Kinks(self.window)

    def take(self) -> None:
        """Look at what came, and find the minimum or the next question."""
        assert self.window is not None
        if self.kinks is not None:
            self._take_kinks(self.window, self.kinks)
        elif self.window.holds_minimum:
            if self.roughly:
                self.found = self.window.crossing(self.high)
        elif self.inside:  # all kinks are at one place, but for rounding
            self.found = LineMinimum(min(0.5 * (self.begin + self.end), self.high), self.begin, self.end)
        else:
            self._go_on(self.window)

    def _go_on(self, window: _Window) -> None:
        """To the next window, eight times as wide, on the side to which J falls."""
        begin, end, width = self.begin, self.end, self.end - self.begin
        self.window = None
        if window.slopes[-1] < 0:
            if end >= self.high or self.moved < 0 or width > _FARTHEST:
                self.found = _at(min(end, self.high))
            self.moved, self.begin, self.end = 1, end, min(end + 8 * width, self.high * (1 + 1e-9))
        else:
            if begin <= self.low or self.moved > 0 or width > _FARTHEST:
                self.found = _at(begin)
            self.moved, self.begin, self.end = -1, max(begin - 8 * width, self.low), begin

    def _take_kinks(self, window: _Window, kinks: _Kinks) -> None:
        if kinks.sorted_kinks is not None:
            self.found = _lowest(window, *kinks.sorted_kinks, self.high)
            return
        self.begin, self.end = window.edge(window.bucket), window.edge(window.bucket + 1)
        self.window = self.kinks = None
        self.inside = True
        if self.end - self.begin <= _NARROWEST * max(abs(self.begin), abs(self.end)):
            self.found = LineMinimum(min(0.5 * (self.begin + self.end), self.high), self.begin, self.end)


def _at(t: float) -> LineMinimum:
    return LineMinimum(t, t, t)


def _lowest(window: _Window, times: Floats, jumps: Floats, high: float) -> LineMinimum:
    """Where J is least in the bucket of a window whose kinks, in order, are given."""
    k = window.bucket
    start, end, slope = window.edge(k), window.edge(k + 1), float(window.slopes[k])
    curvature = window.line.parabola[1]
    behind = slope + curvature * (times - start) + np.cumsum(jumps)  # the slope just behind each kink
    j = int(np.searchsorted(np.maximum.accumulate(behind), 0.0)) if len(times) else 0
    begin, stop = (float(times[j - 1]) if j else start), (float(times[j]) if j < len(times) else end)
    slope = float(behind[j - 1]) if j else slope
    if curvature > 0 and slope + curvature * (stop - begin) >= 0:  # the parabola turns before the next kink
        return _at(min(begin - slope / curvature, stop, high))
    # Rows may share a kink: the neighbouring pieces begin with other ones.
    at, after = int(np.searchsorted(times, stop)), int(np.searchsorted(times, stop, side="right"))
    before, falls = (times[at - 1], behind[at - 1]) if at else (start, window.slopes[k])
    beyond = times[after] if after < len(times) else end
    down, up = float(falls + curvature * (stop - before)), float(behind[after - 1]) if after else math.nan
    stop = min(stop, high)
    return LineMinimum(stop, 0.5 * float(before + stop), 0.5 * float(stop + beyond), down, up)


class _Window:
    """A piece of a line, in buckets; |w| is a loss with its kink at zero."""

    def __init__(self, line: Line, low: float, high: float) -> None:
        self.line, self.low, self.high = line, low, high
        o, loss = line.point.objective, line.point.objective.loss
        assert isinstance(loss, ScalarLoss)
        self.row_vectors = (line.point.z, line.dz, o.labels, o.compact_costs)
        small = {"loss": loss, "between": (low, high), "buckets": _BUCKETS}
        (self.marks,), self.sums = o.rows.call(values.kink_histogram, self.row_vectors, small, 1, "sum")

    @cached_property
    def slopes(self) -> Floats:
        """Of J, at the edges of the buckets."""
        slope, jumps = self.sums.value
        if self.of_weights is not None:
            slope, jumps = slope + self.of_weights[0], jumps + self.of_weights[1]
        incline, curvature = self.line.parabola
        slope = slope + (incline + curvature * self.high)
        jumps = jumps + curvature * (self.high - self.low) / _BUCKETS
        falls = np.cumsum(jumps[::-1])[::-1]  # of the slope, from the end to each edge
        return np.append(slope - falls, slope)

    @cached_property
    def of_weights(self) -> tuple[float, Floats, Any] | None:
        """The histogram of the weights that pass zero, where L1 counts; None where it does not."""
        o = self.line.point.objective
        if not o.regularizer.l1:
            return None
        return Absolute().kink_histogram(*self.weights, (self.low, self.high), _BUCKETS)

    @property
    def weights(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The weights along the line, as rows of a loss |w|."""
        o, n = self.line.point.objective, self.line.point.objective.n_regularized
        cost = np.full(1, o.strength * o.regularizer.l1)
        return self.line.point.theta[:n], self.line.direction[:n], np.zeros(n), cost

    @property
    def holds_minimum(self) -> bool:
        """Whether J falls at first, and rises in the end."""
        return bool(self.slopes[0] < 0 <= self.slopes[-1])

    @property
    def bucket(self) -> int:
        """The bucket that holds the minimum."""
        return int(np.searchsorted(np.maximum.accumulate(self.slopes), 0.0)) - 1

    def edge(self, k: int) -> float:
        """Where bucket k begins."""
        return self.low + (self.high - self.low) * k / _BUCKETS

    def crossing(self, high: float) -> LineMinimum:
        """Where the slope would be zero, if it rose evenly in the bucket of the minimum."""
        k = self.bucket
        below, above = float(self.slopes[k]), float(self.slopes[k + 1])
        part = -below / (above - below) if above > below else 0.5
        return _at(min(self.edge(k) + part * (self.edge(k + 1) - self.edge(k)), high))


class _Kinks:
    """The kinks in the bucket of a window that holds the minimum."""

    def __init__(self, window: _Window) -> None:
        self.window = window
        o = window.line.point.objective
        most = -(-_MANY // o.rows.n_shards)
        self.asked: Promise = o.rows.concat(
            values.kinks_in_bucket, window.marks, *window.row_vectors, loss=o.loss, bucket=window.bucket, most=most
        )

    @cached_property
    def sorted_kinks(self) -> tuple[Floats, Floats] | None:
        """When J bends, and by how much its derivative jumps there, in order; None where that is too often."""
        times, jumps, counts = self.asked.value
        if len(times) < counts.sum():
            return None
        if self.window.of_weights is not None:
            marks, bucket = self.window.of_weights[2], self.window.bucket
            more, further = Absolute().kinks_in_bucket(marks, *self.window.weights, bucket)
            times, jumps = np.append(times, more), np.append(jumps, further)
        order = np.argsort(times, kind="stable")
        return times[order], jumps[order]
