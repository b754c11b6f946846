"""The search itself: algorithm 1 of the warm-start paper, for every loss."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from beeline._lazy import cached_property
from beeline._types import AnyArray, Floats
from beeline.exceptions import ConvergenceWarning, LabelError, ParameterError
from beeline.links import Link
from beeline.losses import get_loss
from beeline.selection.bounds import highest_C, lowest_C, null_C
from beeline.selection.checkpoint import Checkpoint, fingerprint, load_checkpoint, save_checkpoint
from beeline.selection.folds import Fold, Splitting, make_folds
from beeline.selection.rescaling import Rescaling
from beeline.selection.result import End, PathPoint, Rule, Selection, choose
from beeline.selection.runners import Runner, Stopping, make_runner
from beeline.selection.scoring import HeldOut, Metric, get_metric
from beeline.solvers.training import Task, Trained, check_own_loss

__all__ = ["OnPoint", "Selecting", "select"]

OnPoint = Callable[[PathPoint], bool | None]
"""Is called after every C; returning True ends the search."""

_SETTLED = 3  # (24): t = −2, −1, 0
_STEPS_OF_EPSILON = 20  # W8
_HIGHEST_FOR_EPSILON = 2.0**20


@dataclass(frozen=True, kw_only=True)
class Selecting:
    """How C is searched for.

    Parameters
    ----------
    folds
        K folds; a part of the rows to hold out once, such as 0.2; a splitter of scikit-learn's kind; or pairs of train
        and test rows.
    metric
        `accuracy`, `f1`, `auc`, `log_loss`, `rmse`, `mae`, `r2`, `loss` (the mean of the loss itself), the name of a
        scorer of scikit-learn's, or one. None: the log loss where the loss gives probabilities of classes, accuracy for
        other classifiers, `rmse` for a regression whose loss asks for the middle of the labels, `loss` elsewhere.
    rule
        `best`, or `one_se`: as in `Selection`.
    C_min, C_max, delta
        The path C_min, Δ·C_min, … up to C_max. None: from W4 (or, with L1, where all weights are zero) up to 2¹⁰, or to
        2²⁰·C_min where that is more.
    tol
        (28)'s ε for folds, and (24)'s: the path ends when the weights have settled to it three times in a row.
    warm
        Begin every C where the last one ended; False begins at zero.
    all_the_way
        Go up to C_max even where the weights have settled.
    max_passes
        For each C and fold; folds in lockstep count their passes together.
    groups
        A group a row; rows of a group stay in one fold. None: the queries of the data, if it has any.
    search_epsilon
        Search for the ε of an ε-insensitive loss too (W8).
    compare_cold
        Afterwards, go through the same C values from cold starts, for `Selection.cold`.
    on_point
        Is called after every C; returning True ends the search.
    resume
        A file to keep the path in, and to go on from where it is there already.
    """

    folds: Splitting = 5
    metric: str | Callable[..., float] | None = None
    rule: Rule = "best"
    C_min: float | None = None
    C_max: float | None = None
    delta: float = 2.0
    tol: float = 1e-2
    warm: bool = True
    all_the_way: bool = False
    max_passes: float = 1000
    groups: AnyArray | None = None
    search_epsilon: bool = False
    compare_cold: bool = False
    on_point: OnPoint | None = None
    resume: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.rule not in get_args(Rule):
            raise ParameterError(f"rule must be one of {', '.join(get_args(Rule))}, not {self.rule!r}")
        for name in ("C_min", "C_max", "tol", "max_passes"):
            value = getattr(self, name)
            if value is not None and not 0 < value < np.inf:
                raise ParameterError(f"{name} must be positive and finite, not {value}")
        if not 1 < self.delta < np.inf:
            raise ParameterError(f"delta must be greater than 1, not {self.delta}")
        if self.C_min is not None and self.C_max is not None and self.C_min > self.C_max:
            raise ParameterError(f"C_min, {self.C_min:g}, must not be greater than C_max, {self.C_max:g}")


def select(
    task: Task,
    selecting: Selecting | None = None,
    *,
    names: AnyArray | None = None,
    link: Link = "none",
    solver: str = "auto",
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
    selecting = selecting or Selecting()
    check_own_loss(task.objectives()[0])
    if names is None and task.n_classes is not None:
        names = np.arange(task.n_classes)
    stopping = Stopping(solver, selecting.tol, selecting.max_passes, seed)
    found = _Search(task, selecting, names, link, stopping).run()
    if selecting.compare_cold and found.end in (End.SETTLED, End.LIMIT) and not selecting.search_epsilon:
        again = replace(selecting, C_min=found.curve[0].C, C_max=found.curve[-1].C, warm=False, all_the_way=True)
        again = replace(again, on_point=None, resume=None)
        with suppress(KeyboardInterrupt):  # before the first C of it: what was found from warm starts is kept
            found = replace(found, cold=_Search(task, again, names, link, stopping).run())
    return found


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
        self.metric: Metric = get_metric(selecting.metric, task.n_classes, link, task.loss)
        groups = task.data.queries if selecting.groups is None else np.asarray(selecting.groups)
        if groups is not None and len(groups) != task.data.n_rows:
            raise ParameterError(f"{len(groups)} groups do not match {task.data.n_rows} rows")
        self.folds = _folds(task, selecting.folds, groups, stopping.seed)
        column = task.sample_weight
        self.held_out = [
            (task.labels[f.test_rows], None if column is None else column[f.test_rows]) for f in self.folds
        ]
        self.rescaling = Rescaling.of(task.data)
        self.curve: list[PathPoint] = []
        self.best: tuple[Floats, Floats] | None = None
        self.stop_tol = selecting.tol

    def run(self) -> Selection:
        """The whole search."""
        tasks = list(_epsilons(self.task)) if self.selecting.search_epsilon else [(None, self.task)]
        resume = self.selecting.resume
        self.saved = load_checkpoint(resume, self.mark) if resume is not None else None
        if self.saved is not None:
            self.curve, self.best, self.stop_tol = list(self.saved.curve), self.saved.best, self.saved.stop_tol
        try:
            end = End.SETTLED
            for epsilon, task in tasks:
                if (end := self._follow(epsilon, task)) is End.CALLBACK:
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
        settings = {"metric": self.metric.name, "first C": s.C_min, "delta": s.delta, "tolerance": s.tol}
        settings |= {"warm starts": s.warm, "search for epsilon": s.search_epsilon}
        return fingerprint(self.task, self.folds, settings)

    def _follow(self, epsilon: float | None, task: Task) -> End:
        """The path of one ε, from where it was left."""
        done = [point for point in self.curve if point.epsilon == epsilon]
        if done and self.curve[-1].epsilon != epsilon:
            return End.SETTLED  # a resumed search has been through with it
        lowest = self._lowest(task)
        highest = self.selecting.C_max or max(highest_C(lowest), 0.0 if epsilon is None else _HIGHEST_FOR_EPSILON)
        if done and (end := self._end(done, highest)) is not None:
            return end
        runner = make_runner(task, self.folds, self.stopping, self.rescaling)
        if done and self.saved is not None:
            runner.restore(self.saved.thetas)
        while True:
            self.stop_tol = min(runner.stop_tols)
            point = self._try(runner, lowest * self.selecting.delta ** len(done), epsilon)
            done.append(point)
            self._keep(point, runner)
            if self.selecting.on_point is not None and self.selecting.on_point(point):
                return End.CALLBACK
            if (end := self._end(done, highest)) is not None:
                return end

    def _lowest(self, task: Task) -> float:
        """C_min, or with L1 the C at which all weights are zero."""
        if self.selecting.C_min is not None:
            return self.selecting.C_min
        find = null_C if task.regularizer.l1 else lowest_C
        return min(find(o) for o in task.objectives())

    def _try(self, runner: Runner, C: float, epsilon: float | None) -> PathPoint:
        """All folds at one C."""
        clock, passes, unsolved = time.perf_counter(), runner.passes, runner.unsolved
        if not self.selecting.warm:
            runner.reset()
        ratio, settled = runner.go(C)
        judged = [self._judge(runner, k) for k in range(len(self.folds))]
        scores, weights = zip(*judged, strict=True)
        spent = time.perf_counter() - clock, runner.passes - passes
        return PathPoint(C, scores, weights, *spent, ratio, epsilon, settled, runner.unsolved - unsolved)

    def _judge(self, runner: Runner, k: int) -> tuple[float, float]:
        """(the score of fold k's held-out rows, their total weight)."""
        labels, weights = self.held_out[k]
        loss = self.task.joint_loss or self.task.loss_of_each
        held = HeldOut(labels, runner.held_out_scores(k), weights, self.names, self.link, loss)
        return self.metric.measure(held), float(len(labels) if weights is None else weights.sum())

    def _keep(self, point: PathPoint, runner: Runner) -> None:
        """Add to the curve, in memory and on disk; the weights of the best point are kept.

        The weights come first: Ctrl-C may come at any line, and a curve without weights to begin from is no result.
        """
        if self.best is None or choose((*self.curve, point), self.metric.greater_is_better, "best") is point:
            self.best = runner.mean_outputs()
        self.curve.append(point)
        if self.selecting.resume is not None:
            thetas = [p.theta for p in runner.points]
            save_checkpoint(self.selecting.resume, Checkpoint(self.curve, thetas, self.best, self.stop_tol), self.mark)

    def _end(self, done: list[PathPoint], highest: float) -> End | None:
        """Why the path ends here; None where it goes on."""
        last = done[-_SETTLED:]
        settled = len(last) == _SETTLED and all(point.settled for point in last)
        if settled and self.selecting.warm and not self.selecting.all_the_way:
            return End.SETTLED
        return End.LIMIT if done[-1].C * self.selecting.delta > highest * (1 + 1e-9) else None

    def _result(self, end: End) -> Selection:
        assert self.best is not None
        start = Trained(*self.best, [])
        direction, rule = self.metric.greater_is_better, self.selecting.rule
        found = Selection(tuple(self.curve), self.metric.name, direction, end, self.stop_tol, rule, start)
        if math.isnan(found.best_score):
            k = int(np.isnan(found.best.fold_scores).argmax())
            raise ParameterError(
                f"the metric {self.metric.name!r} has no value for the rows that fold {k} holds out, at any C; take "
                "other folds, or another metric"
            )
        if unsolved := found.best.unsolved:
            trainings = "a training" if unsolved == 1 else f"{unsolved} trainings"
            warnings.warn(
                f"the pass limit ended {trainings} at the best C, {found.best_C:g}; raise max_passes (now "
                f"{self.selecting.max_passes:g}), or scale the features",
                ConvergenceWarning,
                stacklevel=4,
            )
        return found


def _folds(task: Task, how: Splitting, groups: AnyArray | None, seed: int) -> list[Fold]:
    """The folds; rows of weight zero take no part in them, whoever made them."""
    classes, labels = task.n_classes is not None, np.asarray(task.labels, np.float64)
    present = np.ones(len(labels), bool) if task.sample_weight is None else task.sample_weight > 0
    if classes:
        labels = np.where(present, labels, -1.0)
    folds = make_folds(how, labels, classes=classes, groups=groups, seed=seed)
    folds = [Fold(fold.train & present, fold.test & present) for fold in folds]
    for k, fold in enumerate(folds):
        if not fold.test.any():
            raise ParameterError(f"fold {k} holds no rows out that have a weight; take fewer or other folds")
        if not fold.train.any():
            raise ParameterError(f"fold {k} has no rows to train on that have a weight; take other folds")
        if classes and len(np.unique(labels[fold.train])) < 2:
            raise LabelError(f"the rows that fold {k} trains on have only one class; take other folds")
    return folds


def _epsilons(task: Task) -> Iterator[tuple[float, Task]]:
    """ε = i·max|y|/20 for i = 19 … 0 (W8), with the task for each."""
    if not hasattr(task.loss, "epsilon"):
        raise ParameterError(f"the loss {task.loss.name!r} has no epsilon to search for")
    targets = task.labels if task.sample_weight is None else task.labels[task.sample_weight > 0]
    largest = float(np.abs(targets).max(initial=0.0))
    for i in range(_STEPS_OF_EPSILON - 1, -1, -1):
        epsilon = i * largest / _STEPS_OF_EPSILON
        yield epsilon, replace(task, loss=get_loss(task.loss.name, epsilon=epsilon))
