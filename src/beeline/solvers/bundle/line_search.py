"""The exact minimum along a line of a loss that is made of flat pieces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from beeline._types import Floats
from beeline.engines.verbs import values
from beeline.losses import Absolute, ScalarLoss
from beeline.objective import Line, Objective

__all__ = ["Valley", "has_kinks", "least", "valley"]

_BUCKETS = 254  # of a window, by which the kinks are sorted out
_FARTHEST = 1e100
_MANY = 4096  # kinks of a bucket and shard, above which they are not sorted but counted once more
_NARROWEST = 1e-14  # of its place, that a bucket may be wide
_BESIDE = 1.0137  # times of kinks are often round numbers, and there J has two slopes: windows end a little beside


@dataclass(frozen=True)
class Valley:
    """The minimum of J along a line, and where its neighbouring pieces can be seen from.

    Attributes
    ----------
    t
        Where J is least.
    left, right
        On the pieces to the left and to the right of t; t itself where J has no kink there.
    """

    t: float
    left: float
    right: float


def least(line: Line, high: float, first: float, accuracy: float) -> float:
    """Where J is least for 0 ≤ t ≤ high: exactly for a piecewise linear loss, else to a relative accuracy of J.

    `first` is where it looks first.
    """
    if has_kinks(line.point.objective):
        return max(0.0, valley(line, 0.0, high, first).t)  # a kink at zero may be rounded to just below it
    return line.least(0.0, high, min(first, high), accuracy)


def has_kinks(objective: Objective) -> bool:
    """Whether J is made of flat pieces and Ω, with one score a row."""
    return isinstance(objective.loss, ScalarLoss) and objective.loss.piecewise_linear


def valley(line: Line, low: float, high: float, first: float) -> Valley:
    """The exact minimum for a piecewise linear loss, by its kinks: J is a parabola, or flat, between any two.

    One look at every row sorts the kinks of a stretch of the line into buckets, which gives the slope of J at the end
    of each; another gathers those of the one bucket where the slope changes its sign, and they are sorted. That is the
    search of Franc & Sonnenburg (2009, section 3.2) in O(rows), as only the few kinks that can matter are sorted.
    """
    window = _window(line, low, high, first)
    if not window.holds_minimum:
        return Valley(window.low, window.low, window.low)
    k, kinks = window.bucket, window.kinks()
    while kinks is None:  # too many to be sorted: buckets in the bucket
        begin, stop = window.edge(k), window.edge(k + 1)
        finer = _sorted_out(line, begin, stop) if stop - begin > _NARROWEST * max(abs(begin), abs(stop)) else None
        if finer is None or not finer.holds_minimum:  # all of them are at one place, but for rounding
            return Valley(min(0.5 * (begin + stop), high), begin, stop)
        window = finer
        k, kinks = window.bucket, window.kinks()
    start, end, slope = window.edge(k), window.edge(k + 1), float(window.slopes[k])
    times, jumps = kinks
    curvature = line.parabola[1]
    ahead = slope + curvature * (times - start) + np.cumsum(jumps)  # the slope just behind each kink
    j = int(np.searchsorted(np.maximum.accumulate(ahead), 0.0)) if len(times) else 0
    begin, stop = (float(times[j - 1]) if j else start), (float(times[j]) if j < len(times) else end)
    slope = float(ahead[j - 1]) if j else slope
    if curvature > 0 and slope + curvature * (stop - begin) >= 0:  # the parabola turns before the next kink
        t = min(begin - slope / curvature, stop, high)
        return Valley(t, t, t)
    # Rows may share a kink: the neighbouring pieces begin with other ones.
    before = times[np.searchsorted(times, stop) - 1] if len(times) and times[0] < stop else start
    after = int(np.searchsorted(times, stop, side="right"))
    beyond = times[after] if after < len(times) else end
    stop = min(stop, high)
    return Valley(stop, 0.5 * float(before + stop), 0.5 * float(stop + beyond))


@dataclass(frozen=True)
class _Window:
    """A piece of a line, in buckets.

    Attributes
    ----------
    low, high
        Where it begins and ends.
    slopes
        Of J, at the edges of the buckets.
    kinks_in
        Gives, for a bucket, when J bends there, and by how much its derivative jumps; None where that is too often.
    """

    low: float
    high: float
    slopes: Floats
    kinks_in: Callable[[int], list[tuple[Floats, Floats]] | None]

    @property
    def holds_minimum(self) -> bool:
        """Whether J falls at first, and rises in the end."""
        return bool(self.slopes[0] < 0 <= self.slopes[-1])

    def edge(self, k: int) -> float:
        """Where bucket k begins."""
        return self.low + (self.high - self.low) * k / _BUCKETS

    @property
    def bucket(self) -> int:
        """The bucket that holds the minimum."""
        return int(np.searchsorted(np.maximum.accumulate(self.slopes), 0.0)) - 1

    def kinks(self) -> tuple[Floats, Floats] | None:
        """When J bends in that bucket, and by how much its derivative jumps there, in order; None: too often."""
        found = self.kinks_in(self.bucket)
        if found is None:
            return None
        times, jumps = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.argsort(times, kind="stable")
        return times[order], jumps[order]


def _window(line: Line, low: float, high: float, first: float) -> _Window:
    """A stretch that holds the minimum; one of width zero where that is at one end."""
    if low > -np.inf:
        begin, end = low, low + _BESIDE * (first - low)
    else:
        reach = _BESIDE * 0.1 * max(1.0, abs(first))
        begin, end = first - reach, first + reach
    end = min(end, high * (1 + 1e-9))
    moved = 0  # up or down; it never turns back, however the slopes at the seam of two windows are rounded
    while True:
        window = _sorted_out(line, begin, end)
        if window.holds_minimum:
            return window
        if window.slopes[-1] < 0:
            if end >= high or moved < 0 or end - begin > _FARTHEST:
                return _at(min(end, high))
            moved, begin, end = 1, end, min(end + 8 * (end - begin), high * (1 + 1e-9))
        else:
            if begin <= low or moved > 0 or end - begin > _FARTHEST:
                return _at(begin)
            moved, begin, end = -1, max(begin - 8 * (end - begin), low), begin


def _at(t: float) -> _Window:
    return _Window(t, t, np.zeros(1), lambda _: [])


def _sorted_out(line: Line, low: float, high: float) -> _Window:
    """The kinks of a piece in buckets, and the slopes of J between these; |w| is a loss with its kink at zero."""
    o, loss = line.point.objective, line.point.objective.loss
    assert isinstance(loss, ScalarLoss)
    beside = (line.point.z, line.dz, o.labels, o.rates)
    small = {"loss": loss, "between": (low, high), "buckets": _BUCKETS}
    (marks,), sums = o.rows.call(values.kink_histogram, beside, small, 1, "sum")
    slope, jumps = sums.value

    def of_rows(bucket: int) -> tuple[Floats, Floats] | None:
        told = o.rows.concat(values.kinks_in_bucket, marks, *beside, loss=loss, bucket=bucket, most=_MANY)
        times, by, counts = told.value
        return (times, by) if len(times) == counts.sum() else None

    sources: list[Callable[[int], tuple[Floats, Floats] | None]] = [of_rows]
    if o.regularizer.l1:
        n = o.n_regularized
        told = line.point.theta[:n], line.direction[:n], np.zeros(n), np.full(1, o.strength * o.regularizer.l1)
        more, further, marked = Absolute().kink_histogram(*told, (low, high), _BUCKETS)
        slope, jumps = slope + more, jumps + further
        sources.append(lambda bucket: Absolute().kinks_in_bucket(marked, *told, bucket))
    incline, curvature = line.parabola
    slope = slope + (incline + curvature * high)
    jumps = jumps + curvature * (high - low) / _BUCKETS
    falls = np.cumsum(jumps[::-1])[::-1]  # of the slope, from the end to each edge


    def kinks_in(bucket: int) -> list[tuple[Floats, Floats]] | None:
        found = [of(bucket) for of in sources]
        told = [kinks for kinks in found if kinks is not None]
        return told if len(told) == len(found) else None

    return _Window(low, high, np.append(slope - falls, slope), kinks_in)
