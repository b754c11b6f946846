"""When a path of C has gone far enough: by its scores, and by its weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

from beeline.selection.result import End, PathPoint

__all__ = ["scores_have_settled", "weights_have_settled"]

_PATIENCE = 3  # values of C
_NOTICEABLE = 1e-3  # of what was gained over no model, or of ten times what is left to gain


def weights_have_settled(path: Sequence[PathPoint]) -> bool:
    """Whether (24) holds for t = −2, −1, 0: larger values of C would give the same model."""
    last = path[-_PATIENCE:]
    return len(last) == _PATIENCE and all(point.settled for point in last)


def scores_have_settled(path: Sequence[PathPoint], null: PathPoint, greater_is_better: bool) -> End | None:
    """Whether the last values of C have improved neither the score nor the held-out loss noticeably.

    The loss is smooth where a metric is not: while few rows change sides, it still tells whether a model learns. And
    a metric may improve where the loss has begun to rise.
    """
    improved = max(
        _last_improvement([_error(p.score, greater_is_better) for p in path], _error(null.score, greater_is_better)),
        _last_improvement([p.loss for p in path], null.loss),
    )
    if len(path) - 1 - improved < _PATIENCE:
        return None
    best = min(range(len(path)), key=lambda k: _error(path[k].score, greater_is_better))
    worse = _error(path[-1].score, greater_is_better) - _error(path[best].score, greater_is_better)
    return End.WORSE if worse > path[best].standard_error else End.FLAT


def _error(score: float, greater_is_better: bool) -> float:
    """A score as a distance from the best there can be; ∞ where there is none."""
    if math.isnan(score):
        return math.inf
    return 1 - score if greater_is_better else score


def _last_improvement(errors: Sequence[float], without: float) -> int:
    """The number of the last value that was noticeably better than all before it; −1 where none was."""
    best, last = without, -1
    for k, error in enumerate(errors):
        if math.isinf(best) or best - error > _NOTICEABLE * _scale(error, without):
            best, last = min(best, error), k
    return last


def _scale(error: float, without: float) -> float:
    """What an improvement is measured by."""
    gained = without - error if math.isfinite(without) else math.inf
    return min(gained, 10 * abs(error))
