"""Searches for C as they look on real data, made by hand."""

from __future__ import annotations

import math

from beeline.selection import End, PathPoint, Selection

FOLD_OFFSETS = (-0.0071, 0.0032, 0.0057, -0.0038, 0.0020)
FOLD_WEIGHTS = (6513.0, 6512.0, 6512.0, 6512.0, 6512.0)
BEST = -3  # log₂ of the best C


def point(log2_C: int, first: int, *, slow: float = 1.0, epsilon: float | None = None) -> PathPoint:
    """Accuracy rises with C and falls a little beyond the best; the stop ratio falls from a half to nearly nothing."""
    rise = 1 / (1 + math.exp(-(log2_C + 8) / 1.1))
    loss = 0.0006 * max(0, log2_C - BEST) + 0.0007 * max(0, BEST - log2_C) + (0.0 if epsilon is None else epsilon / 50)
    score = 0.7592 + 0.09 * rise - loss
    scores = tuple(score + offset * (0.4 + 0.6 * rise) for offset in FOLD_OFFSETS)
    ratio = math.nan if log2_C == first else 0.5 / (1 + math.exp((log2_C + 6) / 0.9))
    seconds = slow * (0.006 + 0.0011 * 1.42 ** (log2_C - first))
    return PathPoint(2.0**log2_C, scores, FOLD_WEIGHTS, seconds, 15 * math.ceil(slow * 2), ratio, epsilon)


def search(
    *,
    cold: bool = True,
    epsilons: tuple[float | None, ...] = (None,),
    end: End = End.SETTLED,
    n_points: int = 20,
    **changes: object,
) -> Selection:
    """A path of C from 2⁻¹⁸ on, for each ε, with the same from cold starts."""
    first = -18

    def curve(slow: float) -> tuple[PathPoint, ...]:
        return tuple(point(k, first, slow=slow, epsilon=e) for e in epsilons for k in range(first, first + n_points))

    plain = {"metric": "accuracy", "greater_is_better": True, "end": end, "stop_tol": 2.5e-3} | changes
    from_cold = Selection(curve(3.6), **plain) if cold else None
    return Selection(curve(1.0), **plain, cold=from_cold)


FACTS = {
    "data": "a9a.svm.bz2",
    "rows": 32561,
    "features": 123,
    "loss": "logistic",
    "metric": "accuracy",
    "folds": "5, stratified",
    "solver": "newton",
    "seed": 0,
}
