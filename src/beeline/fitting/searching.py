"""C chosen for a task: between what users say and the search."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from inspect import Parameter
from pathlib import Path
from typing import Any

import numpy as np

from beeline._types import Floats
from beeline._words import offer
from beeline.data.core.arrays import from_arrays, is_array
from beeline.data.core.dataset import Dataset
from beeline.data.tables.frames import from_frame, is_frame
from beeline.engines import Resources
from beeline.exceptions import ParameterError
from beeline.fitting.settings import Settings
from beeline.fitting.tasks import link_of, make_task
from beeline.losses import Loss, get_loss
from beeline.selection import Selecting, Selection, select
from beeline.training.checkpoint import SEARCH_FILE, TrainingCheckpoint
from beeline.training.concerns import warn_of
from beeline.training.indexing import with_index
from beeline.training.labels import Classes
from beeline.training.levels import concerns_about_order
from beeline.training.run import Trained
from beeline.training.task import Task, total_weight

__all__ = ["chosen", "search", "select_C"]

_PART_OF_TIME = 0.8  # for the search; the rest is for the model


def _names(kind: Callable[..., Any]) -> list[str]:
    return [field.name for field in fields(kind)]  # type: ignore[arg-type]


def _known() -> list[str]:
    fixed = ("loss", "C", "alpha", "selecting", "tol", "max_passes", "time_limit", "probability", "resources")
    kept = ("checkpoint", "checkpoint_interval")  # of a model; a search has `resume`
    return [*_names(Selecting), "memory", *(name for name in _names(Settings) if name not in fixed + kept)]


def _with_options(function: Callable[..., Selection]) -> Callable[..., Selection]:
    """Show in the signature which options there are, and in the docstring what those of `Selecting` mean."""
    given = inspect.signature(function)
    said = {its.name: its for kind in (Settings, Selecting) for its in fields(kind)}
    parameters = [one for one in given.parameters.values() if one.kind is not one.VAR_KEYWORD]
    for name in _known():
        annotation, default = (said[name].type, said[name].default) if name in said else ("str | int | None", None)
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    function.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
    _, _, meanings = inspect.cleandoc(Selecting.__doc__ or "").partition("----------\n")
    function.__doc__ = inspect.cleandoc(function.__doc__ or "").replace("<selecting>", meanings.strip())
    return function


@_with_options
def select_C(  # noqa: N802
    data: Any,  # noqa: ANN401
    loss: str | Loss = "logistic",
    y: Any = None,  # noqa: ANN401
    *,
    sample_weight: Floats | None = None,
    **options: Any,  # noqa: ANN401
) -> Selection:
    """Search for the best C by cross-validation, each C from where the last one ended.

    Parameters
    ----------
    data : Dataset, Store, array-like, sparse matrix or data frame
        The rows.
    loss : str or Loss
        A name among `beeline.losses.LOSSES`, or a loss.
    y : array-like, default=None
        A label a row. May be left out for a data set that has its labels inside.
    sample_weight : array-like, default=None
        A weight a row.
    <selecting>
    memory
        How much memory data may take, such as "400M", or bytes; None: as much as is free.
    regularizer, nonnegative
        "l2", "l1", "elastic_net" or a regularizer; whether no weight may be negative.
    class_weight
        What multiplies C for the rows of each class: {class: weight}, or "balanced".
    intercept, multiclass
        `free`, `regularized` or `none`; `auto`, `ovr`, `softmax` or `crammer_singer`.
    solver, seed
        Who trains, as in every estimator, and the seed of all that is random.

    Returns
    -------
    Selection
        The curve, the best C, and why the search ended.

    Examples
    --------
    >>> import numpy as np
    >>> from beeline import select_C
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> selection = select_C(X, "hinge", X[:, 0] > 0)
    >>> selection.metric
    'accuracy'
    """
    if not isinstance(loss, str | Loss):
        raise ParameterError("the second argument of select_C is the loss; give labels as y=", parameter="y")
    selecting = {name: options.pop(name) for name in _names(Selecting) if name in options}
    resources = Resources(options.pop("memory", None))
    if unknown := set(options) - set(_known()):
        raise ParameterError(
            f"select_C has no option {min(unknown)!r}; {offer(min(unknown), _known())}", parameter=min(unknown)
        )
    settings = Settings(loss=loss, C="auto", selecting=Selecting(**selecting), resources=resources, **options)
    rows = _dataset(data)
    labels = None if y is None else np.asarray(y)
    task, classes = make_task(rows, settings, labels, sample_weight, settings.selecting.groups)
    warn_of(concerns_about_order(task.loss, classes))
    return search(with_index(task, settings.solver, settings.seed)[0], classes, settings)


def search(task: Task, classes: Classes | None, settings: Settings) -> Selection:
    """The search that the settings ask for, over a task whose C is 1."""
    selecting = settings.selecting
    if selecting.time_limit is None and settings.time_limit is not None:
        selecting = replace(selecting, time_limit=_PART_OF_TIME * settings.time_limit)
    if selecting.resume is None and settings.checkpoint is not None:
        TrainingCheckpoint(settings.checkpoint, settings.checkpoint_interval).close()  # whether it can be used
        selecting = replace(selecting, resume=Path(settings.checkpoint) / SEARCH_FILE)
    with settings.resources.in_use():
        found = select(
            task,
            selecting,
            names=classes.names if classes is not None and task.loss.classifies else None,
            link=link_of(task),
            solver=settings.solver,
            seed=settings.seed,
        )
    return found if settings.alpha is None else replace(found, total_weight=_total_weight(task))


def _total_weight(task: Task) -> float:
    return total_weight(task.loss, task.data.n_rows, task.sample_weight)


def chosen(task: Task, settings: Settings, selection: Selection) -> tuple[Task, Settings, Trained | None]:
    """The task and the settings with what was found, and where to begin."""
    best = selection.best
    task = task.with_changes(C=best.C, strength=1.0)  # as the search had it, whatever alpha says
    if best.epsilon is not None:
        loss = get_loss(task.loss.name, epsilon=best.epsilon)
        task, settings = task.with_changes(loss=loss), replace(settings, loss=loss)
    if settings.alpha is None:
        return task, replace(settings, C=best.C), selection.start
    return task, replace(settings, alpha=1 / (best.C * _total_weight(task))), selection.start


def _dataset(data: Any) -> Dataset:  # noqa: ANN401
    if isinstance(data, Dataset):
        return data
    if is_frame(data):
        return from_frame(data)
    return from_arrays(data if is_array(data) else np.asarray(data))
