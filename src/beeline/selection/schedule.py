"""Which C comes next, and when a path has gone far enough: by its scores, or by its weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from beeline.selection.result import End, PathPoint, choose
from beeline.selection.selecting import Selecting

__all__ = ["Schedule", "is_noticeable", "is_perfect", "scores_have_settled", "weights_have_settled"]

_SETTLED = 3  # (24): t = −2, −1, 0
_FAR = 8.0  # times a C, over which a path that goes nowhere is followed
_NOTICEABLE = 1e-3  # of what was gained over no model, or of ten times what is left to gain
_WORTH_IT = 3e-4  # of the error without a model, that one must at least win; outliers are most of it
_CLEARLY = 1e-2  # of the loss
_OVERFITTED = 0.25  # of the loss on held-out rows, below which that of training rows says nothing any more
_NOTHING_TO_TELL = 0.05  # of the same, below which losses tell nothing of larger values of C
_RISEN = 0.05  # of the loss on held-out rows, by which it may rise where a feature is to be heard yet
_MOSTLY_LEARNED = 0.1  # of the training loss without a model, that is left
_PERFECT = 1e-3  # of the losses and the error without a model, from where on nothing is left to gain
_MOST_DOWN = 12  # values of C below the first


@dataclass(frozen=True)
class Schedule:
    """The way through the values of C. What comes next follows from what was found, and from nothing else.

    First upwards from the first C until the path has ended; then downwards, where the first C was the best; then half
    a step to both sides of the best, where that is asked for.

    Attributes
    ----------
    selecting
        How to search.
    first, highest
        Where the path begins and where it ends at the latest.
    null
        The scores without a model.
    greater_is_better
        In which direction scores are better.
    chance_level
        What of `PathPoint.residual_correlation` means nothing.
    noise
        The part of what was gained by which held-out losses differ between folds that are solved equally well.
    classifies
        Whether labels are classes, which may be separable: then the losses fall for ever as C grows.
    """

    selecting: Selecting
    first: float
    highest: float
    null: PathPoint
    greater_is_better: bool
    chance_level: float = math.inf
    noise: float = 0.0
    classifies: bool = False

    def next(self, done: Sequence[PathPoint]) -> float | End:
        """The C that comes after these, in the order in which they were tried; or why there is none."""
        delta = self.selecting.delta
        on_grid = [point for point in done if self._is_on_grid(point.C)]
        up = [point for point in on_grid if 0.999 * self.first <= point.C]
        end = self._end(up) if up else None
        if end is None:
            return self.first * delta ** len(up)
        down = len(on_grid) - len(up)
        if down < _MOST_DOWN and self._goes_down(on_grid):
            return self.first / delta ** (down + 1)
        if self.selecting.refine:
            for C in self._half_steps(on_grid):
                if not any(math.isclose(C, point.C) for point in done):
                    return C
        return end

    def _is_on_grid(self, C: float) -> bool:
        steps = math.log(C / self.first) / math.log(self.selecting.delta)
        return abs(steps - round(steps)) < 0.25

    def _end(self, up: Sequence[PathPoint]) -> End | None:
        """Why the way up ends here; None where it goes on."""
        s = self.selecting
        if s.warm and not s.all_the_way and not self._is_underfitted(up):
            if weights_have_settled(up):
                return End.SETTLED
            patience = max(2, round(math.log(_FAR) / math.log(s.delta)))
            if s.stop == "auto" and self.classifies and is_perfect(up[-1], self.null, self.greater_is_better):
                return End.PERFECT
            if s.stop == "auto" and (end := self._settled_scores(up, patience)):
                return end
        return End.LIMIT if up[-1].C * s.delta > self.highest * (1 + 1e-9) else None

    def _settled_scores(self, up: Sequence[PathPoint], patience: int) -> End | None:
        return scores_have_settled(up, self.null, self.greater_is_better, patience, self.noise)

    def _is_underfitted(self, up: Sequence[PathPoint]) -> bool:
        """Whether a feature is kept from telling what it could, while most of the loss is there yet.

        As where one feature is a thousand times larger than others: C must grow by a million until these are heard.
        Where trainings have ended before their tolerance, a larger C, which is harder yet, would not tell more; and
        where held-out rows cost clearly more than at a smaller C, it would tell of noise.
        """
        point, least = up[-1], min(other.loss for other in up)
        if point.loss - least > _RISEN * abs(least):
            return False
        learned = point.training_loss <= _MOSTLY_LEARNED * self.null.training_loss
        return self.is_held_back(point) and not learned and not point.unsolved

    def is_held_back(self, point: PathPoint) -> bool:
        """Whether one feature explains more of what is left than luck would."""
        return point.residual_correlation > self.chance_level

    def _goes_down(self, on_grid: Sequence[PathPoint]) -> bool:
        s = self.selecting
        if s.stop == "paper" or s.all_the_way or s.C_min is not None:
            return False
        lowest, best = min(on_grid, key=lambda point: point.C), self._best(on_grid)
        return lowest is best and is_noticeable(best.score, self.null.score, self.greater_is_better)

    def _half_steps(self, on_grid: Sequence[PathPoint]) -> list[float]:
        half, best = math.sqrt(self.selecting.delta), self._best(on_grid).C
        return [C for C in (best / half, best * half) if self.highest >= C]

    def _best(self, points: Sequence[PathPoint]) -> PathPoint:
        return choose(tuple(sorted(points, key=lambda point: point.C)), self.greater_is_better, "best")


def weights_have_settled(path: Sequence[PathPoint]) -> bool:
    """Whether (24) holds for t = −2, −1, 0: larger values of C would give the same model."""
    last = path[-_SETTLED:]
    return len(last) == _SETTLED and all(point.settled for point in last)


def scores_have_settled(
    path: Sequence[PathPoint], null: PathPoint, greater_is_better: bool, patience: int, noise: float = 0.0
) -> End | None:
    """Whether the last values of C have improved neither the score nor the held-out loss noticeably.

    An improvement of the loss must exceed its `noise` too.

    The loss is smooth where a metric is not: while few rows change sides, it still tells whether a model learns. And
    a metric may improve where the loss has begun to rise; only where the metric has become worse for good, by more than
    its standard error, the loss is not asked; nor where training rows cost next to nothing beside those held out, from
    where on larger values of C change models ever less. Where nothing has become worse either, and the training rows
    still have something to tell, the path is followed twice as far; and four times as far where no model was better
    than none, as when features without a meaning are larger than those with one.
    """
    errors, losses = [_error(point.score, greater_is_better) for point in path], [point.loss for point in path]
    without = _error(null.score, greater_is_better)
    best = min(range(len(path)), key=errors.__getitem__)
    noticed = max(_NOTICEABLE * _scale(errors[best], without), path[best].standard_error)
    if len(path) - 1 - best >= patience and all(error > errors[best] + noticed for error in errors[-patience:]):
        return End.WORSE  # whatever the loss does
    by_score, fitted = _last_improvement(errors, without), path[-1].training_loss < _NOTHING_TO_TELL * path[-1].loss
    improved = by_score if fitted and by_score >= 0 else max(by_score, _last_improvement(losses, null.loss, noise))
    waited = len(path) - 1 - improved
    if path[-1].training_loss < _OVERFITTED * path[-1].loss:  # and more so with every further C
        patience = max(2, patience - 1)
    if waited < patience:
        return None
    if errors[-1] - min(errors[best], without) > path[best].standard_error:
        return End.WORSE
    if improved < 0:
        return End.FLAT if waited >= 4 * patience else None
    if losses[-1] - min(losses) > _CLEARLY * abs(min(losses)) or waited >= 2 * patience or fitted:
        return End.FLAT
    before = path[-1 - patience].training_loss
    return End.FLAT if before - path[-1].training_loss <= _CLEARLY * abs(before) else None


def is_perfect(point: PathPoint, null: PathPoint, greater_is_better: bool) -> bool:
    """Whether rows, held out or not, cost next to nothing: of separable classes, any larger C is better yet."""
    errors = [_error(one.score, greater_is_better) for one in (point, null)]
    pairs = [errors, [point.loss, null.loss], [point.training_loss, null.training_loss]]
    return all(now <= _PERFECT * abs(without) for now, without in pairs)


def is_noticeable(score: float, without: float, greater_is_better: bool) -> bool:
    """Whether a score is noticeably better than without a model; true where that has none."""
    before, after = _error(without, greater_is_better), _error(score, greater_is_better)
    return math.isinf(before) or before - after > _WORTH_IT * abs(before)


def _error(score: float, greater_is_better: bool) -> float:
    """A score as a distance from the best there can be; ∞ where there is none."""
    if math.isnan(score):
        return math.inf
    return 1 - score if greater_is_better else score


def _last_improvement(errors: Sequence[float], without: float, noise: float = 0.0) -> int:
    """The number of the last value that was noticeably better than all before it; −1 where none was."""
    best, last, noticeable = without, -1, max(_NOTICEABLE, noise)
    for k, error in enumerate(errors):
        if error < best and (math.isinf(best) or best - error > noticeable * _scale(error, without)):
            best, last = error, k
    return last


def _scale(error: float, without: float) -> float:
    """What an improvement is measured by."""
    gained = without - error if math.isfinite(without) else math.inf
    return min(gained, 10 * abs(error))
