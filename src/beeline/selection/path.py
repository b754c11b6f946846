"""The search itself: algorithm 1 of the warm-start paper, for every loss."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from beeline._lazy import cached_property
from beeline._sentences import Argument
from beeline._types import AnyArray
from beeline.exceptions import BeelineError, LabelError, ParameterError
from beeline.links import Link
from beeline.losses import LevelLoss, TwoClassLoss, get_loss
from beeline.objective import Objective
from beeline.objective.residual_correlation import chance_correlation
from beeline.selection.bounds import first_C, highest_C, lowest_C, null_C
from beeline.selection.checkpoint import Checkpoint, fingerprint, load_checkpoint, save_checkpoint
from beeline.selection.concerns import concerns_about_search
from beeline.selection.folds import Fold, Splitting, make_folds
from beeline.selection.rescaling import Rescaling
from beeline.selection.result import End, PathPoint, Selection, choose
from beeline.selection.runners import Runner, Stopping, make_runner
from beeline.selection.schedule import Schedule
from beeline.selection.scoring import METRICS, HeldOut, Metric, get_metric
from beeline.selection.selecting import Selecting
from beeline.solvers.registry import SolverLike
from beeline.training.concerns import warn_of
from beeline.training.run import Trained, check_own_parts
from beeline.training.task import Task

__all__ = ["select"]

_STEPS_OF_EPSILON = 20  # W8
_HIGHEST_FOR_EPSILON = 2.0**20
_OF_NUMBERS = 1e-2  # of the tolerance, where labels are no classes
_LONGEST = 2.0**60  # times the first C, where a path ends at the latest
_MOMENT = 1e-3  # seconds, that a search from cold starts has where the other one took all
_BY_ITSELF = (End.SETTLED, End.WORSE, End.FLAT, End.PERFECT, End.LIMIT)


def select(
    task: Task,
    selecting: Selecting | None = None,
    *,
    names: AnyArray | None = None,
    link: Link = "none",
    solver: SolverLike = "auto",
    seed: int = 0,
) -> Selection:
    """Search for the best C of a task.

    Parameters
    ----------
    task
        What is to be learned; its C multiplies every C of the path.
    selecting
        How to search.
    names, link
        The classes, and how scores become probabilities, for metrics.
    solver, seed
        As for `train`; the seed also shuffles the rows into folds.

    Returns
    -------
    Selection
        After Ctrl-C or `on_point`, what was found until then.
    """
    selecting, clock = selecting or Selecting(), time.perf_counter()
    check_own_parts(task.objectives()[0])
    if names is None and task.n_classes is not None:
        names = np.arange(task.n_classes)
    stopping = Stopping(solver, _tol(selecting, task), selecting.stop == "paper", selecting.max_passes, seed)
    found = _Search(task, selecting, names, link, stopping).run()
    warn_of(found.concerns)
    if selecting.compare_cold and found.end in _BY_ITSELF and not selecting.search_epsilon:
        again = replace(selecting, C_min=found.curve[0].C, C_max=found.curve[-1].C, warm=False, all_the_way=True)
        again = replace(again, on_point=None, resume=None)
        if (limit := selecting.time_limit) is not None:  # which is for both
            again = replace(again, time_limit=max(limit - (time.perf_counter() - clock), _MOMENT))
        with suppress(KeyboardInterrupt):  # before the first C of it: what was found from warm starts is kept
            found = replace(found, cold=_Search(task, again, names, link, stopping).run())
    return found


def _tol(selecting: Selecting, task: Task) -> float:
    """The tolerance of the trainings. Errors of numbers, squared and far out, show what accuracies do not."""
    numbers = selecting.tol is None and selecting.stop == "auto" and not task.loss.classifies
    return _OF_NUMBERS * selecting.the_tol if numbers else selecting.the_tol


class _Search:
    """The state of one search."""

    def __init__(
        self,
        task: Task,
        selecting: Selecting,
        names: AnyArray | None,
        link: Link,
        stopping: Stopping,
    ) -> None:
        self.task, self.selecting, self.names, self.link, self.stopping = task, selecting, names, link, stopping
        groups = _groups_of(task) if selecting.groups is None else np.asarray(selecting.groups)
        in_queries = groups is not None
        self.metric: Metric = get_metric(selecting.metric, task.n_classes, link, task.loss, queries=in_queries)
        if groups is not None and groups.shape != (task.data.n_rows,):
            raise ParameterError(
                Argument("groups"), f" must be one a row, {task.data.n_rows} in all, not of shape {groups.shape}"
            )
        self.folds = _folds(task, selecting.folds, groups, stopping.seed)
        column = task.sample_weight
        tied = _groups_of(task) if task.groups is not None else None
        self.held_out = [
            (task.labels[rows], _picked(column, rows), _picked(tied, rows), _picked(groups, rows))
            for rows in (fold.test for fold in self.folds)
        ]
        self.rescaling = Rescaling.of(task.data)
        self.curve: list[PathPoint] = []
        self.nulls: list[PathPoint] = []
        self.best: Trained | None = None
        self.stop_tol = selecting.the_tol
        self.failure: Exception | None = None
        self.schedule: Schedule | None = None
        limit = selecting.time_limit
        self.deadline = None if limit is None else time.perf_counter() + limit

    def run(self) -> Selection:
        """The whole search."""
        tasks = list(_epsilons(self.task)) if self.selecting.search_epsilon else [(None, self.task)]
        resume = self.selecting.resume
        self.saved = load_checkpoint(resume, self.mark) if resume is not None else None
        if self.saved is not None:
            self.curve, self.nulls = list(self.saved.curve), list(self.saved.nulls)
            self.best, self.stop_tol = self.saved.best, self.saved.stop_tol
        try:
            end = End.SETTLED
            for epsilon, task in tasks:
                if (end := self._follow(epsilon, task)) not in _BY_ITSELF:
                    break
        except KeyboardInterrupt:
            if not self.curve:
                raise
            end = End.INTERRUPTED
        return self._result(end)

    @cached_property
    def mark(self) -> dict[str, Any]:
        """What a path on disk must share with this search."""
        s = self.selecting
        settings = {"metric": self.metric.name, "first C": s.C_min, "delta": s.delta, "tolerance": s.the_tol}
        if self.metric.identity:
            settings["metric's code"] = self.metric.identity
        settings |= {"stop rule": s.stop, "warm starts": s.warm, "search for epsilon": s.search_epsilon}
        return fingerprint(self.task, self.folds, settings)

    def _follow(self, epsilon: float | None, task: Task) -> End:
        """The path of one ε, from where it was left."""
        done = [point for point in self.curve if point.epsilon == epsilon]
        if done and self.curve[-1].epsilon != epsilon:
            return End.SETTLED  # a resumed search has been through with it
        runner = None if done else make_runner(task, self.folds, self.stopping, self.rescaling)
        if runner is not None:
            self.nulls.append(self._judged(runner, 0.0, epsilon))
        schedule = self.schedule = self._schedule(task, epsilon)
        while not isinstance(step := schedule.next(done), End):
            if self._is_late():
                return End.TIME
            if runner is None:
                assert self.saved is not None
                runner = make_runner(task, self.folds, self.stopping, self.rescaling)
                runner.restore(self.saved.runner)
            if (end := self._go(runner, step, epsilon)) is not None:
                return end
            done.append(self.curve[-1])
            if self.selecting.on_point is not None and self.selecting.on_point(done[-1]):
                return End.CALLBACK
        return step

    def _schedule(self, task: Task, epsilon: float | None) -> Schedule:
        s, objectives = self.selecting, task.objectives()
        if s.stop == "paper":
            first = s.C_min or min((null_C if task.regularizer.l1 else lowest_C)(o) for o in objectives)
            highest = max(highest_C(first), 0.0 if epsilon is None else _HIGHEST_FOR_EPSILON)
        else:
            first = s.C_min or min(first_C(o) for o in objectives)
            highest = _LONGEST * first
        null = next(point for point in self.nulls if point.epsilon == epsilon)
        chance_level = max(chance_correlation(o) for o in objectives)
        noise, classifies = self._noise(objectives[0]), task.loss.classifies
        greater = self.metric.greater_is_better
        return Schedule(s, first, s.C_max or highest, null, greater, chance_level, noise, classifies)

    def _noise(self, objective: Objective) -> float:
        """What a certified gap leaves open of held-out losses; steps of Newton's method end far below theirs.

        Ω is strongly convex, so that weights are known to √(2·gap) of themselves at worst; mostly to a quarter of it.
        """
        smooth = objective.loss.smooth and objective.regularizer.smooth
        return 0.0 if smooth else math.sqrt(2 * self.stopping.gap) / 4

    def _is_late(self) -> bool:
        return bool(self.curve) and self.deadline is not None and time.perf_counter() >= self.deadline

    def _go(self, runner: Runner, C: float, epsilon: float | None) -> End | None:
        """All folds at one C, for the curve; or why that could not be."""
        self.stop_tol = min(runner.stop_tols)
        runner.deadline = self.deadline
        try:
            point = self._try(runner, C, epsilon)
        except BeelineError:
            raise
        except Exception as error:
            if not self.curve:
                raise
            self.failure = error
            return End.FAILED
        if runner.late and self.curve:
            return End.TIME  # scores of models that are not those of this C
        self._keep(point, runner)
        return None

    def _try(self, runner: Runner, C: float, epsilon: float | None) -> PathPoint:
        """All folds at one C."""
        clock, passes, unsolved = time.perf_counter(), runner.passes, runner.unsolved
        if not self.selecting.warm or (self.curve and self.curve[-1].epsilon == epsilon and C < self.curve[-1].C):
            runner.reset()  # on the way down too: larger weights than needed are a bad start
        ratio, settled = runner.go(C)
        spent = time.perf_counter() - clock, runner.passes - passes
        judged = self._judged(runner, C, epsilon)
        return replace(
            judged,
            seconds=spent[0] + judged.seconds,
            passes=spent[1],
            stop_ratio=ratio,
            settled=settled,
            unsolved=runner.unsolved - unsolved,
        )

    def _judged(self, runner: Runner, C: float, epsilon: float | None) -> PathPoint:
        """The scores of the rows that each fold holds out, where the runner is."""
        clock = time.perf_counter()
        held = [self._held_out(runner, k) for k in range(len(self.folds))]
        scores = tuple(self.metric.measure(rows) for rows in held)
        weights = tuple(float(len(rows.labels) if rows.weights is None else rows.weights.sum()) for rows in held)
        loss = float(np.average([METRICS["loss"].measure(rows) for rows in held], weights=weights))
        more = 0.0 if self.selecting.stop == "paper" else runner.residual_correlation
        measures = loss, runner.training_loss, more
        return PathPoint(C, scores, weights, time.perf_counter() - clock, 0.0, math.nan, epsilon, False, 0, *measures)

    def _held_out(self, runner: Runner, k: int) -> HeldOut:
        labels, weights, groups, queries = self.held_out[k]
        loss = self.task.joint_loss or self.task.output_loss
        loss = loss if not len(runner.extra(k)) else loss.with_extra(runner.extra(k))
        z = runner.held_out_scores(k)
        if isinstance(loss, TwoClassLoss):
            loss = loss.of_part(len(labels) / self.task.data.n_rows)
        elif isinstance(loss, LevelLoss):
            z = loss.level_scores(z, runner.thresholds(k))
        return HeldOut(labels, z, weights, self.names, self.link, loss, groups, queries)

    def _keep(self, point: PathPoint, runner: Runner) -> None:
        """Add to the curve, in memory and on disk; the weights of the best point are kept.

        The weights come first: Ctrl-C may come at any line, and a curve without weights to begin from is no result.
        """
        if self.best is None or choose(_in_order([*self.curve, point]), self.metric.greater_is_better, "best") is point:
            self.best = runner.mean_outputs()
        self.curve.append(point)
        if self.selecting.resume is not None:
            checkpoint = Checkpoint(self.curve, self.nulls, runner.snapshot(), self.best, self.stop_tol)
            save_checkpoint(self.selecting.resume, checkpoint, self.mark)

    def _result(self, end: End) -> Selection:
        assert self.best is not None
        found = Selection(
            _in_order(self.curve),
            self.metric.name,
            self.metric.greater_is_better,
            end,
            self.stop_tol,
            self.selecting.rule,
            self.best,
        )
        if math.isnan(found.best_score):
            k = int(np.isnan(found.best.fold_scores).argmax())
            raise ParameterError(
                f"the metric {self.metric.name!r} has no value for the rows that fold {k} holds out, at any C; take "
                "other folds, or another metric",
                parameter="folds",
            )
        null = next(point for point in self.nulls if point.epsilon == found.best.epsilon)
        found = replace(found, null_score=null.score, stop=self.selecting.stop)
        highest = max(found.curve, key=lambda point: point.C)
        underfitted = self.schedule is not None and self.schedule.is_held_back(highest)
        concerns = concerns_about_search(found, self.selecting, null, self.task.loss, self.failure, underfitted)
        return replace(found, concerns=tuple(concerns))


def _picked(column: AnyArray | None, rows: AnyArray) -> AnyArray | None:
    return None if column is None else column[rows]


def _groups_of(task: Task) -> AnyArray | None:
    """The number of each row's group: those of the loss, or the queries of the data."""
    if task.groups is None:
        return task.data.queries
    return np.repeat(np.arange(len(task.groups) - 1), np.diff(task.groups))


def _in_order(curve: list[PathPoint]) -> tuple[PathPoint, ...]:
    """By C; one ε after the other, as they came."""
    order = {epsilon: k for k, epsilon in enumerate(dict.fromkeys(point.epsilon for point in curve))}
    return tuple(sorted(curve, key=lambda point: (order[point.epsilon], point.C)))


def _folds(task: Task, how: Splitting, groups: AnyArray | None, seed: int) -> list[Fold]:
    """The folds; rows of weight zero take no part in them, whoever made them."""
    classes, labels = task.n_classes is not None, np.asarray(task.labels)
    present = None if task.sample_weight is None else task.sample_weight > 0
    if classes:
        labels = labels.astype(np.int32)
        if present is not None:
            labels[~present] = -1
    folds = make_folds(how, labels, classes=classes, groups=groups, seed=seed)
    if present is not None:
        folds = [Fold(fold.train & present, fold.test & present) for fold in folds]
    for k, fold in enumerate(folds):
        if not fold.test.any():
            raise ParameterError(
                f"fold {k} holds no rows out that have a weight; take fewer or other folds", parameter="folds"
            )
        if not fold.train.any():
            raise ParameterError(
                f"fold {k} has no rows to train on that have a weight; take other folds", parameter="folds"
            )
        if classes and not np.ptp(labels[fold.train]):
            raise LabelError(f"the rows that fold {k} trains on have only one class; take other folds")
    return folds


def _epsilons(task: Task) -> Iterator[tuple[float, Task]]:
    """ε = i·max|y|/20 for i = 19 … 0 (W8), with the task for each."""
    if not hasattr(task.loss, "epsilon"):
        raise ParameterError(f"the loss {task.loss.name!r} has no epsilon to search for", parameter="epsilon")
    targets = task.labels if task.sample_weight is None else task.labels[task.sample_weight > 0]
    largest = float(np.abs(targets).max(initial=0.0))
    for i in range(_STEPS_OF_EPSILON - 1, -1, -1):
        epsilon = i * largest / _STEPS_OF_EPSILON
        yield epsilon, task.with_changes(loss=get_loss(task.loss.name, epsilon=epsilon))
