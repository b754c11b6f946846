"""Which C comes next, and when a path has gone far enough: by its scores, or by its weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from beeline.selection.result import End, PathPoint, choose
from beeline.selection.selecting import Selecting

__all__ = ["Schedule", "is_noticeable", "scores_have_settled", "weights_have_settled"]

_SETTLED = 3  # (24): t = −2, −1, 0
_FAR = 8.0  # times a C, over which a path that goes nowhere is followed
_STRIDE = 4.0  # times a C, over which a path goes at first; what lies between is tried around the best
_NOTICEABLE = 1e-3  # of what was gained over no model, or of ten times what is left to gain
_WORTH_IT = 3e-4  # of the error without a model, that one must at least win; outliers are most of it
_CLEARLY = 1e-2  # of the loss
_OVERFITTED = 0.25  # of the loss on held-out rows, below which that of training rows says nothing any more
_NOTHING_TO_TELL = 0.05  # of the same, below which losses tell nothing of larger values of C
_MOSTLY_LEARNED = 0.1  # of the training loss without a model, that is left
_MOST_DOWN = 12  # values of C below the first
_TIMES = (1, 2, 4)  # the patience, after which a path may end


@dataclass(frozen=True)
class Schedule:
    """The way through the values of C. What comes next follows from what was found, and from nothing else.

    First upwards from the first C until the path has ended; then downwards, where the first C was the best; both in
    strides of several steps, but never past a value at which the path may end. Then the neighbours of the best that
    strides have left out; and half a step to both sides of it, where that is asked for.

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
    """

    selecting: Selecting
    first: float
    highest: float
    null: PathPoint
    greater_is_better: bool
    chance_level: float = math.inf
    noise: float = 0.0

    def next(self, done: Sequence[PathPoint]) -> float | End:
        """The C that comes after these, in the order in which they were tried; or why there is none."""
        step = self._way_through(done)
        if not isinstance(step, End):
            return step
        on_grid = self._on_grid(done)
        for left_out in self._left_out(on_grid):
            return self._at(left_out)
        if self.selecting.refine:
            for C in self._half_steps(list(on_grid.values())):
                if not any(math.isclose(C, point.C) for point in done):
                    return C
        return step

    def _way_through(self, done: Sequence[PathPoint]) -> float | End:
        """The next C of the way up and down; or why it has ended."""
        up = self._way_up(done)
        end = self._end(up) if up else None
        if end is None:
            return self._at(self._next_up(up) if up else 0)
        lowest = min(on_grid := self._on_grid(done))
        if lowest > -_MOST_DOWN and self._goes_down(list(on_grid.values())):
            return self._at(max(lowest - self.stride, -_MOST_DOWN))
        return end

    def _on_grid(self, done: Sequence[PathPoint]) -> dict[int, PathPoint]:
        return {step: point for point in done if (step := self._step(point.C)) is not None}

    @property
    def _ends(self) -> tuple[int, int]:
        """The steps of the smallest and the largest C."""
        highest = math.floor(math.log(self.highest * (1 + 1e-9) / self.first) / math.log(self.selecting.delta))
        return 0 if self.selecting.C_min is not None else -_MOST_DOWN, highest

    @property
    def stride(self) -> int:
        """How many steps of the path are gone at once; one where every value was asked for."""
        return max(1, round(math.log(_STRIDE) / math.log(self.selecting.delta))) if self._hurries else 1

    @property
    def _hurries(self) -> bool:
        """Whether only the best C is asked for, and not the way there."""
        s = self.selecting
        by_hand = s.all_the_way or s.compare_cold or (s.C_min is not None and s.C_max is not None)
        return s.stop == "auto" and s.rule == "best" and s.warm and not by_hand

    @property
    def patience(self) -> int:
        """For how many steps a path that goes nowhere is followed."""
        return max(2, round(math.log(_FAR) / math.log(self.selecting.delta)))

    def _step(self, C: float) -> int | None:
        """The number of steps from the first C to another; None between two."""
        steps = math.log(C / self.first) / math.log(self.selecting.delta)
        return round(steps) if abs(steps - round(steps)) < 0.25 else None

    def _at(self, step: int) -> float:
        return self.first * self.selecting.delta**step

    @staticmethod
    def _way_up(done: Sequence[PathPoint]) -> Sequence[PathPoint]:
        """The values until one was smaller than that before it."""
        falls = (k for k in range(1, len(done)) if done[k].C < done[k - 1].C)
        return done[: next(falls, len(done))]

    def _next_up(self, up: Sequence[PathPoint]) -> int:
        """A stride on; or only to where the path may end, or to the last value, where that is nearer.

        Where training rows are told far better than others, a step: from there on the time goes with the way, and the
        path ends soon.
        """
        last = self._steps(up)[-1]
        if _is_overfitted(up[-1]):
            return last + 1
        patience = _patience(up[-1], self.patience)
        ahead = [self._improved(up) + times * patience for times in _TIMES] if self.stride > 1 else []
        return min([last + self.stride, *(step for step in (*ahead, self._ends[1]) if step > last)])

    def _steps(self, path: Sequence[PathPoint]) -> list[int]:
        return [self._step(point.C) or 0 for point in path]

    def _improved(self, up: Sequence[PathPoint]) -> int:
        """The step of the last C that improved the score or the loss; −1 where none did."""
        improved = last_improvement(up, self.null, self.greater_is_better, self.noise)
        return self._steps(up)[improved] if improved >= 0 else -1

    def _left_out(self, on_grid: Mapping[int, PathPoint]) -> list[int]:
        """The neighbour of the best towards the better of the values around it, where that was left out."""
        best = self._step(self._best(list(on_grid.values())).C) or 0
        below, above = ([step for step in on_grid if step < best], [step for step in on_grid if step > best])
        beside = [(max(below), best - 1)] if below else []
        beside += [(min(above), best + 1)] if above else []
        beside.sort(key=lambda pair: _error(on_grid[pair[0]].score, self.greater_is_better))
        return [step for _, step in beside[:1] if step not in on_grid]

    def _end(self, up: Sequence[PathPoint]) -> End | None:
        """Why the way up ends here; None where it goes on."""
        s = self.selecting
        if s.warm and not s.all_the_way and not self._is_underfitted(up[-1]):
            if weights_have_settled(up):
                return End.SETTLED
            if s.stop == "auto" and (end := self._settled_scores(up)):
                return end
        return End.LIMIT if up[-1].C * s.delta > self.highest * (1 + 1e-9) else None

    def _settled_scores(self, up: Sequence[PathPoint]) -> End | None:
        steps = self._steps(up)
        return scores_have_settled(up, self.null, self.greater_is_better, self.patience, self.noise, steps)

    def _is_underfitted(self, point: PathPoint) -> bool:
        """Whether a feature is kept from telling what it could, while most of the loss is there yet.

        As where one feature is a thousand times larger than others: C must grow by a million until these are heard.
        Where trainings have ended before their tolerance, a larger C, which is harder yet, would not tell more.
        """
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


def scores_have_settled(  # noqa: PLR0913
    path: Sequence[PathPoint],
    null: PathPoint,
    greater_is_better: bool,
    patience: int,
    noise: float = 0.0,
    steps: Sequence[int] | None = None,
) -> End | None:
    """Whether the last values of C have improved neither the score nor the held-out loss noticeably.

    An improvement of the loss must exceed its `noise` too. `steps` says where on the path each value lies, by which
    `patience` counts; None: they follow each other. Two values are the least that tell.

    The loss is smooth where a metric is not: while few rows change sides, it still tells whether a model learns. And
    a metric may improve where the loss has begun to rise; only where the metric has become worse for good, by more than
    its standard error, the loss is not asked. Where nothing has become worse either, and the training rows
    still have something to tell, the path is followed twice as far; and four times as far where no model was better
    than none, as when features without a meaning are larger than those with one.
    """
    at = range(len(path)) if steps is None else steps
    errors, losses = [_error(point.score, greater_is_better) for point in path], [point.loss for point in path]
    without = _error(null.score, greater_is_better)
    best = min(range(len(path)), key=errors.__getitem__)
    noticed = max(_NOTICEABLE * _scale(errors[best], without), path[best].standard_error)
    recent = [error for error, step in zip(errors, at, strict=True) if step > at[-1] - patience]
    worse = all(error > errors[best] + noticed for error in recent)
    if at[-1] - at[best] >= patience and worse and len(path) - 1 - best >= 2:
        return End.WORSE  # whatever the loss does
    improved = last_improvement(path, null, greater_is_better, noise)
    waited = at[-1] - (at[improved] if improved >= 0 else -1)
    patience = _patience(path[-1], patience)
    if waited < patience or len(path) - 1 - improved < 2:
        return None
    if errors[-1] - min(errors[best], without) > path[best].standard_error:
        return End.WORSE
    if improved < 0:
        return End.FLAT if waited >= 4 * patience else None
    if losses[-1] - min(losses) > _CLEARLY * abs(min(losses)) or waited >= 2 * patience or _is_learned(path[-1]):
        return End.FLAT
    before = next(point for point, step in zip(reversed(path), reversed(at), strict=True) if at[-1] - step >= patience)
    return End.FLAT if before.training_loss - path[-1].training_loss <= _CLEARLY * abs(before.training_loss) else None


def _is_overfitted(point: PathPoint) -> bool:
    """Whether training rows are told far better than others; and more so with every larger C."""
    return point.training_loss < _OVERFITTED * point.loss


def _is_learned(point: PathPoint) -> bool:
    """Whether training rows cost next to nothing, beside others."""
    return point.training_loss < _NOTHING_TO_TELL * point.loss


def _patience(last: PathPoint, patience: int) -> int:
    return max(2, patience - 1) if _is_overfitted(last) else patience


def last_improvement(path: Sequence[PathPoint], null: PathPoint, greater_is_better: bool, noise: float = 0.0) -> int:
    """The number of the last value that improved the score or the held-out loss noticeably; −1 where none did.

    Once training rows cost next to nothing, larger values of C change models ever less, and only the score counts.
    """
    errors = [_error(point.score, greater_is_better) for point in path]
    by_score = _last_improvement(errors, _error(null.score, greater_is_better))
    if _is_learned(path[-1]) and by_score >= 0:
        return by_score
    return max(by_score, _last_improvement([point.loss for point in path], null.loss, noise))


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
