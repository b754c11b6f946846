"""Thresholds that are chosen once all scores are known."""

from __future__ import annotations

import numpy as np

from beeline._types import Floats

__all__ = ["best_threshold", "between_scores", "threshold_for"]


def best_threshold(z: Floats, y: Floats, c: Floats) -> float:
    """The threshold with the greatest sum of both classes' parts that are told rightly (Youden 1950).

    Half way between two scores; of several thresholds that are as good, the one in the middle of them.
    """
    here = c > 0
    z, up, c = z[here], y[here] > 0, c[here]
    if up.all() or not up.any():
        return 0.0
    order = np.argsort(-z, kind="stable")
    z, up, c = z[order], up[order], c[order]
    gains = np.where(up, c / c[up].sum(), -c / c[~up].sum())
    sums = np.append(0.0, np.cumsum(gains))  # of calling so many rows positive
    apart = np.append(True, np.append(z[1:] < z[:-1], True))
    best = float(np.max(sums[apart]))
    places = np.flatnonzero(apart & (sums >= best - 1e-12))
    return between_scores(z, int(places[len(places) // 2]))


def between_scores(z: Floats, called: int) -> float:
    """A threshold that so many of the scores, which fall, are above."""
    if 0 < called < len(z):
        middle = 0.5 * (z[called - 1] + z[called])
        return float(middle if middle < z[called - 1] else z[called])
    if not len(z):
        return 0.0
    room = max(1.0, abs(float(z[0]))) if called == 0 else -max(1.0, abs(float(z[-1])))
    return float((z[0] if called == 0 else z[-1]) + 1e-6 * room)


def threshold_for(z: Floats, c: Floats, called: float) -> float:
    """A threshold above which rows of so much weight are, or a little more."""
    here = c > 0
    z, c = z[here], c[here]
    order = np.argsort(-z, kind="stable")
    z, sums = z[order], np.cumsum(c[order])
    last = z[min(int(np.searchsorted(sums, called * (1 - 1e-9))), len(z) - 1)]
    return between_scores(z, int(np.searchsorted(-z, -last, side="right")))  # equal scores are not told apart
