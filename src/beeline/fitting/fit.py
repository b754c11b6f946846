"""One function from rows, labels and settings to a model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from beeline import __version__
from beeline._types import AnyArray, Floats
from beeline.data.core.dataset import Dataset
from beeline.fitting.searching import chosen, search
from beeline.fitting.settings import Settings
from beeline.fitting.tasks import link_of, make_task
from beeline.model import Model, Report
from beeline.selection import Selection
from beeline.selection.folds import stratified_folds
from beeline.selection.result import End, finite
from beeline.solvers.base import Callback, Result, State, Status, Step
from beeline.solvers.registry import solver_name
from beeline.training.calibration import fit_platt
from beeline.training.checkpoint import TrainingCheckpoint
from beeline.training.concerns import Concern, concern_about_zero, warn_of
from beeline.training.indexing import with_index
from beeline.training.labels import Classes
from beeline.training.levels import concerns_about_order
from beeline.training.run import Trained, train
from beeline.training.task import Task
from beeline.training.threshold import with_threshold

__all__ = ["Fitted", "fit"]

_FOLDS = 5
_WORST_FIRST = (
    Status.INTERRUPTED,
    Status.CALLBACK,
    Status.FAILED,
    Status.TIME,
    Status.LIMIT,
    Status.STALLED,
    Status.UNPROVEN,
    Status.CONVERGED,
)
_TOGETHER = 1 << 16  # rows whose probabilities are looked at, where memory is limited
_AFTER_SEARCH = 0.2  # of the time limit, that is left for the model whatever the search took
_BEFORE_CALIBRATION = 0.5  # of the time for training, that is for the model


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model, what the solver said about each of its outputs, and how its C was found where that was searched for."""

    model: Model
    results: list[Result]
    selection: Selection | None = None
    checkpoint: TrainingCheckpoint | None = None

    def remove_checkpoint(self) -> None:
        """The model is where it belongs, and needs no checkpoint any more; one that was interrupted may still go on."""
        if self.checkpoint is not None and not self._may_go_on:
            self.checkpoint.remove()

    @property
    def _may_go_on(self) -> bool:
        searching = self.selection is not None and self.selection.end in (End.INTERRUPTED, End.CALLBACK)
        return searching or any(result.status in (Status.INTERRUPTED, Status.CALLBACK) for result in self.results)


def fit(  # noqa: PLR0913 — what a user may give
    data: Dataset,
    settings: Settings,
    y: AnyArray | None = None,
    *,
    sample_weight: Floats | None = None,
    groups: AnyArray | None = None,
    callback: Callback | None = None,
    start: Model | Selection | Sequence[State] | None = None,
    feature_names: list[str] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Fitted:
    """Train a model.

    Parameters
    ----------
    data
        The rows.
    settings
        What to train, and how.
    y
        A label a row; None: those of the data.
    sample_weight
        A weight a row; None: those of the data, if it has any.
    groups
        A group a row, for a loss of groups; None: the queries of the data.
    callback
        Is called after every iteration; returning True stops the training.
    start
        An earlier model of the same shape to begin from; the states of an earlier training, one for each of its
        results; or a search for C that was made before, whose C is taken. A search begins anew, and what it found is
        where the training begins.
    feature_names
        One name a feature; None: those of the data, if it has any.
    tell
        Is told in a sentence how the rows are read, where there is a choice.

    Returns
    -------
    Fitted
        The best model so far when the training was stopped by Ctrl-C, the callback or a limit. What there is to be
        concerned about is warned of, and is in the model's report.
    """
    clock = time.perf_counter()
    task, classes = make_task(data, settings, y, sample_weight, groups)
    del y  # the task has its own; nobody else may need them any more
    task, why = with_index(task, settings.solver, settings.seed)
    if why is not None and tell is not None:
        tell(why)
    before = concerns_about_order(task.loss, classes)
    if _ends_at_zero(task, settings):
        before.append(concern_about_zero(task.loss))
        if tell is not None:
            tell(before[-1].sentence)
    warn_of(before)
    selection = start if isinstance(start, Selection) else None
    begin: Trained | Sequence[State] | None = None
    if isinstance(start, Model):
        begin = Trained(start.weights, start.intercepts, [], extra=start.extra)
    elif not isinstance(start, Selection):
        begin = start
    if selection is None and settings.searches:
        selection = search(task, classes, settings)
    if selection is not None:
        task, settings, begin = chosen(task, settings, selection)
    checkpoint = None
    if settings.checkpoint is not None:
        checkpoint = TrainingCheckpoint(settings.checkpoint, settings.checkpoint_interval, tell)
    # The C that a search had found when it was interrupted need not be the one that it finds when it goes on.
    kept = None if selection is not None and selection.end in (End.INTERRUPTED, End.CALLBACK) else checkpoint
    calibrates = settings.probability and classes is not None and task.loss.classifies and link_of(task) == "none"
    seconds = _time_to_train(settings, selection)
    deadline = None if seconds is None else time.perf_counter() + seconds
    make = partial(
        Model,
        classes=None if classes is None else classes.names,
        loss=task.loss.name,
        loss_settings=task.loss.settings,
        link=link_of(task),
        multilabel=task.loss.labels == "sets",
        feature_names=feature_names or data.feature_names,
        recipe=data.recipe,
        settings=_recorded(settings, task, selection),
        version=__version__,
    )
    with checkpoint or nullcontext():
        with settings.resources.in_use():
            trained = train(
                task,
                settings.solver,
                **_stopping(settings, seconds if seconds is None or not calibrates else _BEFORE_CALIBRATION * seconds),
                callback=_told_models(callback, make),
                start=begin,
                names=None if classes is None else classes.names.tolist(),
                searched=selection is not None,
                checkpoint=kept,
            )
            if settings.intercept is None or task.loss.labels == "levels":
                trained = with_threshold(task, trained)
        said = [*before, *(() if selection is None else selection.concerns)]
        concerns = list(trained.concerns)
        report = _report(trained, [*said, *concerns], data.n_rows, time.perf_counter() - clock)
        model = make(weights=trained.weights, intercepts=trained.intercepts, extra=trained.extra, report=report)
        if calibrates:
            assert classes is not None
            with settings.resources.in_use():
                platt, worst = _calibrate(task, classes, trained, settings, model, deadline, kept)
            concerns += worst
            report = _report(trained, [*said, *concerns], data.n_rows, time.perf_counter() - clock)
            model = replace(model, link="platt", platt=platt, report=report)
    warn_of([concern for concern in concerns if concern not in before])  # a search has warned of its own
    return Fitted(model, trained.results, selection, checkpoint)


def _told_models(callback: Callback | None, make: Callable[..., Model]) -> Callback | None:
    """The callback, whose steps know the model that they would end with."""
    if callback is None:
        return None

    def told(step: Step) -> bool | None:
        if (outputs := step.outputs) is None:
            return callback(step)

        def model() -> Model:
            weights, intercepts, extra = outputs()
            return make(weights=weights, intercepts=intercepts, extra=extra)

        return callback(replace(step, model=model))

    return told


def _ends_at_zero(task: Task, settings: Settings) -> bool:
    """Whether zero weights are what the solver ends at, whatever the rows are."""
    return task.loss.zero_is_optimal and solver_name(settings.solver) != "sgd"


def _time_to_train(settings: Settings, selection: Selection | None) -> float | None:
    """What the time limit leaves for the training after a search, if there was one."""
    limit = settings.time_limit
    if limit is None or selection is None:
        return limit
    return max(limit - selection.seconds, _AFTER_SEARCH * limit)


def _stopping(settings: Settings, seconds: float | None) -> dict[str, Any]:
    """When a training ends, as `train` takes it."""
    return {"tol": settings.tol, "max_passes": settings.max_passes, "seed": settings.seed, "time_limit": seconds}


def _recorded(settings: Settings, task: Task, selection: Selection | None) -> dict[str, Any]:
    """The settings for the model's file, and how C was found where it was searched for."""
    record = settings.to_json()
    if task.n_classes is not None:
        record["multiclass"] = task.form
    if selection is not None:
        record["selection"] = {
            "metric": selection.metric,
            "score": finite(selection.best_score),
            "folds": len(selection.best.fold_scores),
            "candidates": len(selection.curve),
            "rule": selection.rule,
            "end": selection.end.name.lower(),
        }
    return record


def _calibrate(
    task: Task,
    classes: Classes,
    trained: Trained,
    settings: Settings,
    model: Model,
    deadline: float | None,
    checkpoint: TrainingCheckpoint | None,
) -> tuple[Floats, list[Concern]]:
    """(A and B an output, from scores of rows that were held out of the training; concerns about that).

    The only row of a class is never held out, since no model would know the class then: it counts with the model's own
    score. So do rows not yet held out when Ctrl-C ends the training of folds.
    """
    weights, numbers = task.sample_weight, classes.numbers.astype(np.int32)
    if weights is not None:
        numbers[~(weights > 0)] = -1
    folds = stratified_folds(numbers, _FOLDS, settings.seed)
    del numbers
    z = np.empty((task.data.n_rows, model.n_outputs))
    _put_scores(model, task.data, z)
    results, concerns = trained.results, list[Concern]()
    for fold in range(_FOLDS):
        if any(result.status is Status.INTERRUPTED for result in results):
            break
        held_out = folds == fold
        rest = task.with_changes(sample_weight=np.where(held_out, 0.0, 1.0 if weights is None else weights))
        share = None if deadline is None else max(deadline - time.perf_counter(), 0.0) / (_FOLDS - fold)
        kept = None if checkpoint is None else checkpoint.part(f"fold-{fold}")
        part = train(rest, settings.solver, **_stopping(settings, share), checkpoint=kept)
        results = part.results
        concerns += part.concerns
        # A threshold is found after training, for the model alone: its scores and those of folds are to be alike.
        intercepts = model.intercepts if task.loss.differences_only else part.intercepts
        partial = replace(model, weights=part.weights, intercepts=intercepts)
        _put_scores(partial, task.data, z, held_out)
    positive = [1] if z.shape[1] == 1 else range(len(classes))
    most = None if settings.resources.budget is None else _TOGETHER
    platt = np.array([fit_platt(z[:, j], classes.numbers == k, weights, most) for j, k in enumerate(positive)])
    # What the model's own training has said need not be said again.
    return platt, [] if trained.concerns else [_of_calibration(concern) for concern in concerns[:1]]


def _of_calibration(concern: Concern) -> Concern:
    return Concern(f"of the trainings that calibrate probabilities, one is poor: {concern.sentence}", concern.warning)


def _put_scores(model: Model, data: Dataset, z: Floats, picked: AnyArray | None = None) -> None:
    """The scores of all rows, or of the picked ones, into z."""
    row = 0
    for block, found in model.stream(data):
        rows = slice(row, row + block.n_rows)
        some = slice(None) if picked is None else picked[rows]
        z[rows][some] = found[some]
        row = rows.stop


def _report(trained: Trained, concerns: list[Concern], n_rows: int, seconds: float) -> Report:
    results = trained.results
    each = [(result.gap, result.objective, result.status, result.passes, result.iterations) for result in results]
    gaps, objectives, statuses, passes, iterations = zip(*each, strict=True)
    gap, objective = max(gaps), sum(objectives)
    return Report(
        sentence=trained.sentence,
        status=min(statuses, key=_WORST_FIRST.index).name.lower(),
        solver=results[0].solver,
        objective=objective if math.isfinite(objective) else None,
        gap=gap if math.isfinite(gap) else None,
        passes=max(passes),
        iterations=max(iterations),
        seconds=seconds,
        n_rows=n_rows,
        concerns=tuple(dict.fromkeys(concern.sentence for concern in concerns)),
    )
