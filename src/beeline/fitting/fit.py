"""One function from rows, labels and settings to a model."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from beeline import __version__
from beeline._types import AnyArray, Floats
from beeline.data.dataset import Dataset
from beeline.data.labels import LabelSets
from beeline.exceptions import DataError, LabelError, ParameterError
from beeline.fitting.labels import Classes, class_weights, find_classes, find_sets
from beeline.fitting.platt import fit_platt, make_folds
from beeline.fitting.settings import Settings
from beeline.fitting.solving import solve
from beeline.losses import Loss
from beeline.model import Link, Model, Report
from beeline.solvers.base import Callback, Result, Status
from beeline.solvers.training import Task, Trained, train

__all__ = ["Fitted", "fit"]

_FOLDS = 5
_WORST_FIRST = (Status.INTERRUPTED, Status.CALLBACK, Status.LIMIT, Status.STALLED, Status.CONVERGED)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model and what the solver said about each of its outputs."""

    model: Model
    results: list[Result]


def fit(
    data: Dataset,
    settings: Settings,
    y: AnyArray | None = None,
    *,
    sample_weight: Floats | None = None,
    callback: Callback | None = None,
    start: Model | None = None,
    feature_names: list[str] | None = None,
) -> Fitted:
    """Train a model.

    Parameters
    ----------
    data
        The rows.
    settings
        What to train, and how.
    y
        A label a row, or a row of a matrix for a loss of sets (0 and 1) or of vectors; None: those of the data.
    sample_weight
        A weight a row; None: those of the data, if it has any.
    callback
        Is called after every iteration; returning True stops the training.
    start
        An earlier model of the same shape to begin from.
    feature_names
        One name a feature; None: those of the data, if it has any.

    Returns
    -------
    Fitted
        The best model so far when the training was stopped by Ctrl-C or the callback.
    """
    clock = time.perf_counter()
    texts = data.recipe.label_categories if y is None and data.recipe is not None else None
    labels = _labels(data, settings.the_loss) if y is None else y
    weights = _weights(data, sample_weight)
    task, classes = _task(data, labels, weights, settings, texts)
    del y, labels  # the task has its own; nobody else may need them any more
    trained = solve(task, settings, callback, None if start is None else Trained(start.weights, start.intercepts, []))
    model = Model(
        weights=trained.weights,
        intercepts=trained.intercepts,
        classes=None if classes is None else classes.names,
        loss=task.loss.name,
        loss_settings=task.loss.settings,
        link=(link := _link(task)),
        multilabel=task.loss.labels == "sets",
        feature_names=feature_names or data.feature_names,
        recipe=data.recipe,
        settings=settings.to_json() | ({"multiclass": task.form} if task.loss.classifies else {}),
        version=__version__,
    )
    if settings.probability and task.loss.classifies and classes is not None and link == "none":
        platt = _calibrate(task, classes, trained, settings, model)
        model = replace(model, link="platt", platt=platt)
    report = _report(trained, data.n_rows, time.perf_counter() - clock)
    return Fitted(replace(model, report=report), trained.results)


def _link(task: Task) -> Link:
    """What the scores of a task mean."""
    if task.n_classes is None or task.loss.link == "none":
        return task.loss.link
    return "softmax" if task.form == "softmax" and task.n_classes > 2 else "logistic"


def _labels(data: Dataset, loss: Loss) -> AnyArray | LabelSets:
    labels = data.labels
    if loss.labels == "none":
        return np.zeros(data.n_rows)
    if labels is None:
        raise LabelError("the data have no labels; say which column holds them when they are read")
    if isinstance(labels, LabelSets) and loss.labels != "sets":
        raise LabelError("the rows have sets of labels; a model of one label a row cannot be trained on them")
    return labels


def _weights(data: Dataset, given: Floats | None) -> Floats | None:
    inside = data.weights
    if given is None:
        return inside
    if inside is not None:
        raise ParameterError("the data already have weights; give sample_weight or weights in the data, not both")
    if len(given) and (not np.isfinite(given).all() or given.min() < 0):
        raise DataError("sample weights must be finite and not negative")
    return given


def _task(
    data: Dataset, y: AnyArray | LabelSets, weights: Floats | None, settings: Settings, texts: tuple[str, ...] | None
) -> tuple[Task, Classes | None]:
    """(what to learn, the classes or labels; None where there are none)."""
    loss, regularizer = settings.the_loss, settings.the_regularizer
    total = float(data.n_rows if weights is None else weights.sum())
    if not total > 0:
        raise DataError("all sample weights are zero: there is nothing to learn from")
    C, strength = (settings.C, 1.0) if settings.alpha is None else (1 / total, settings.alpha)
    common: dict[str, Any] = {"C": C, "strength": strength, "sample_weight": weights, "intercept": settings.intercept}
    if not loss.classifies:
        _refuse_without_classes(settings, loss)
        if loss.labels == "sets":
            sets = find_sets(y, texts)
            return Task(data, sets.numbers, None, loss, regularizer, **common), sets
        if texts is not None and loss.labels != "none":
            raise LabelError(f"the labels are texts such as {texts[0]!r}; a regression needs numbers")
        return Task(data, np.asarray(y, np.float64), None, loss, regularizer, **common), None
    assert not isinstance(y, LabelSets)
    classes = find_classes(y, weights, texts)
    each = class_weights(classes, settings.class_weight, weights)
    common |= {"class_weight": each, "multiclass": settings.multiclass}
    return Task(data, classes.numbers, len(classes), loss, regularizer, **common), classes


def _refuse_without_classes(settings: Settings, loss: Loss) -> None:
    what = f"the loss {loss.name!r}" if loss.labels in ("sets", "none") else "a regression"
    for name, unset in (("class_weight", None), ("probability", False), ("multiclass", "auto")):
        if getattr(settings, name) != unset:
            raise ParameterError(f"{name} has no meaning for {what}; leave it out")


def _calibrate(task: Task, classes: Classes, trained: Trained, settings: Settings, model: Model) -> Floats:
    """A and B an output, from scores of rows that were held out of the training.

    The only row of a class is never held out, since no model would know the class then: it counts with the model's own
    score. So do rows not yet held out when Ctrl-C ends the training of folds.
    """
    weights = np.ones(task.data.n_rows) if task.sample_weight is None else task.sample_weight
    folds = make_folds(np.where(weights > 0, classes.numbers, -1.0), _FOLDS, settings.seed)
    z = _scores(model, task.data)
    results = trained.results
    for fold in range(_FOLDS):
        if any(result.status is Status.INTERRUPTED for result in results):
            break
        held_out = folds == fold
        rest = replace(task, sample_weight=np.where(held_out, 0.0, weights))
        part = train(rest, settings.solver, tol=settings.tol, max_passes=settings.max_passes, seed=settings.seed)
        results = part.results
        partial = replace(model, weights=part.weights, intercepts=part.intercepts)
        z[held_out] = _scores(partial, task.data)[held_out]
    positive = [1] if z.shape[1] == 1 else range(len(classes))
    return np.array([fit_platt(z[:, j], classes.numbers == k, task.sample_weight) for j, k in enumerate(positive)])


def _scores(model: Model, data: Dataset) -> Floats:
    return np.concatenate([z for _, z in model.stream(data)])


def _report(trained: Trained, n_rows: int, seconds: float) -> Report:
    results = trained.results
    gap = max(result.gap for result in results)
    statuses = {result.status for result in results}
    return Report(
        sentence=trained.sentence,
        status=next(status for status in _WORST_FIRST if status in statuses).name.lower(),
        solver=results[0].solver,
        objective=sum(result.objective for result in results),
        gap=gap if math.isfinite(gap) else None,
        passes=max(result.passes for result in results),
        iterations=max(result.iterations for result in results),
        seconds=seconds,
        n_rows=n_rows,
    )
