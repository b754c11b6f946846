"""The exact minimum along a line of a loss that is made of flat pieces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from beeline._types import Floats
from beeline.kernels import kink_times
from beeline.losses import ScalarLoss
from beeline.objective import Line

__all__ = ["Valley", "least", "valley"]

_NEXT = 1e-10  # of a step: right beside its start
_LOOKS = 2  # at J, to narrow a bracket before the kinks inside are gathered


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
    if _has_kinks(line):
        return valley(line, 0.0, high, first).t
    return line.least(0.0, high, min(first, high), accuracy)


def _has_kinks(line: Line) -> bool:
    loss = line.point.objective.loss
    return isinstance(loss, ScalarLoss) and loss.piecewise_linear


def valley(line: Line, low: float, high: float, first: float) -> Valley:
    """The exact minimum for a piecewise linear loss, by its kinks: J is a parabola, or flat, between any two.

    A few looks narrow a bracket, at the cost of O(rows) each; then the kinks inside are gathered and sorted. That is
    the search of Franc & Sonnenburg (2009, section 3.2), with the sort restricted to the few kinks that can matter.
    """
    left, right = _bracket(line, low, high, first)
    if left is None:
        return Valley(low, low, low)
    if right is None:
        return Valley(high, high, high)
    times, jumps = _kinks(line, left[0], right[0])
    order = np.argsort(times, kind="stable")
    times, jumps = times[order], jumps[order]
    curvature = line.curvature
    ahead = left[1] + curvature * (times - left[0]) + np.cumsum(jumps)  # the slope just behind each kink
    k = int(np.searchsorted(np.maximum.accumulate(ahead), 0.0)) if len(times) else 0
    start, stop = (times[k - 1] if k else left[0]), (times[k] if k < len(times) else right[0])
    slope = (ahead[k - 1] if k else left[1]) if len(times) else left[1]
    if curvature > 0 and slope + curvature * (stop - start) >= 0:  # the parabola turns before the next kink
        t = min(float(start - slope / curvature), float(stop))
        return Valley(t, t, t)
    # Rows may share a kink: the neighbouring pieces begin with other ones.
    before = times[np.searchsorted(times, stop) - 1] if len(times) and times[0] < stop else left[0]
    after = int(np.searchsorted(times, stop, side="right"))
    beyond = times[after] if after < len(times) else right[0]
    return Valley(float(stop), 0.5 * float(before + stop), 0.5 * float(stop + beyond))


_Side = tuple[float, float]  # t and the slope of J there


def _bracket(line: Line, low: float, high: float, first: float) -> tuple[_Side | None, _Side | None]:
    """Points below and above the minimum, a few looks apart; None for a side on which there is none."""
    left: tuple[float, float, float] | None = None  # t, the slope and J
    right: tuple[float, float, float] | None = None
    t, looks, reach = min(max(first, low), high), 0, 0.1 * max(1.0, abs(first))
    while looks < _LOOKS or left is None or right is None:
        value, slope = line.at(t)
        left, right = ((t, slope, value), right) if slope < 0 else (left, (t, slope, value))
        if left is None:
            if t <= low + _NEXT * max(first - low, reach):
                return None, _side(right)
            # Just behind the end: at a kink J has two slopes, and many a kink lies at a start of zeros.
            t, reach = (low + _NEXT * (t - low), reach) if low > -np.inf else (t - reach, 4 * reach)
        elif right is None:
            if t >= high or reach > 1e300:
                return _side(left), None
            t, reach = min(t + reach, high), 4 * reach
        else:
            width = right[0] - left[0]
            meet = (left[2] - right[2] + right[1] * width) / (right[1] - left[1])
            # Tangents often meet at a kink exactly, where J has two slopes: a little beside it.
            t = left[0] + 0.99 * min(max(meet, 0.05 * width), 0.95 * width) + 0.0041 * width
            looks += 1
    return _side(left), _side(right)


def _side(end: tuple[float, float, float] | None) -> _Side | None:
    return None if end is None else end[:2]


def _kinks(line: Line, low: float, high: float) -> tuple[Floats, Floats]:
    """When J bends between low and high, and by how much its derivative jumps there."""
    o, point = line.point.objective, line.point
    parts = o.engine.map(
        lambda _, z, dz, y, c: _loss_kinks(o.loss, z, dz, y, c, low, high),  # type: ignore[arg-type]
        o.shards,
        point.z,
        line.dz,
        o.shard_labels,
        o.shard_costs,
    )
    pairs = [pair for part in parts for pair in part]
    if o.regularizer.l1:
        n = o.n_regularized
        w, direction = point.theta[:n], line.direction[:n]
        times, weights = kink_times(w, direction, np.zeros(n), low, high)
        pairs.append((times, 2 * o.strength * o.regularizer.l1 * np.abs(direction[weights])))
    return np.concatenate([times for times, _ in pairs]), np.concatenate([jumps for _, jumps in pairs])


def _loss_kinks(
    loss: ScalarLoss, z: Floats, dz: Floats, y: Floats, c: Floats, low: float, high: float
) -> list[tuple[Floats, Floats]]:
    found = []
    for scores, jump in loss.kinks(y):
        times, rows = kink_times(z, dz, scores, low, high)
        found.append((times, jump * c[rows] * np.abs(dz[rows])))
    return found
