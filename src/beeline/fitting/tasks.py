"""From data and settings to a task."""

from __future__ import annotations

from typing import Any

import numpy as np

from beeline._sentences import Argument
from beeline._types import AnyArray, Floats
from beeline.data.core.dataset import Dataset
from beeline.data.core.labels import LabelSets
from beeline.data.core.magnitude import refuse_large_targets, refuse_large_values
from beeline.data.core.targets import Targets
from beeline.data.recipe.recipe import Recipe, no_labels
from beeline.exceptions import DataError, LabelError, ParameterError
from beeline.fitting.settings import Settings
from beeline.links import Link
from beeline.losses import LevelLoss, Loss, TwoClassLoss
from beeline.objective import Intercept
from beeline.training.labels import Classes, class_weights, find_classes, find_sets
from beeline.training.levels import find_levels
from beeline.training.task import Task, total_weight

__all__ = ["link_of", "make_task", "refuse_without_free_intercept"]


def make_task(
    data: Dataset,
    settings: Settings,
    y: AnyArray | None = None,
    sample_weight: Floats | None = None,
    groups: AnyArray | None = None,
) -> tuple[Task, Classes | None]:
    """(what to learn, the classes or labels; None where there are none). Where C is searched for, it is 1.

    Parameters
    ----------
    y, sample_weight, groups
        A label, a weight and a group a row; None: those of the data.
    """
    if not settings.the_loss.differences_only:  # to which a shift of all scores is nothing
        refuse_without_free_intercept(data.recipe, settings.the_intercept)
    data = settings.resources.holding(data)
    texts = data.recipe.label_categories if y is None and data.recipe is not None else None
    labels = _labels(data, settings.the_loss) if y is None else y
    refuse_large_values(data)
    if groups is None and settings.the_loss.scope == "group":
        groups = data.queries
    return _task(data, Targets.of(data, labels, sample_weight, groups), settings, texts)


def refuse_without_free_intercept(recipe: Recipe | None, intercept: Intercept) -> None:
    """Refuse rows whose shift was left to the intercept where that is not free: the optimum would be another."""
    if recipe is None or recipe.scaling.left_to_intercept is None or intercept == "free":
        return
    raise ParameterError(
        f"{recipe.scaling.kind} scaling has left the shift of sparse rows to the intercept, which has to be free for "
        "that; take ",
        Argument("fit_intercept", True),
        ", or read with ",
        Argument("scale", "maxabs"),
        " or ",
        Argument("layout", "dense"),
    )


def link_of(task: Task) -> Link:
    """What the scores of a task mean."""
    if task.n_classes is None or task.loss.link == "none":
        return task.loss.link
    if task.loss.link == "cumulative" and task.n_classes > 2:
        return "cumulative"
    together = task.joint_loss is not None and task.joint_loss.link == "softmax"
    return "softmax" if together and task.n_classes > 2 else "logistic"


def _labels(data: Dataset, loss: Loss) -> AnyArray | LabelSets:
    labels = data.labels
    if loss.labels == "none":
        return np.zeros(data.n_rows)
    if labels is None:
        raise no_labels(data.recipe)
    if isinstance(labels, LabelSets) and loss.labels != "sets":
        raise LabelError("the rows have sets of labels; a model of one label a row cannot be trained on them")
    return labels


def _task(
    data: Dataset, targets: Targets, settings: Settings, texts: tuple[str, ...] | None
) -> tuple[Task, Classes | None]:
    """(what to learn, the classes or labels; None where there are none)."""
    loss, regularizer, y, weights = settings.the_loss, settings.the_regularizer, targets.labels, targets.weights
    assert y is not None
    if weights is not None and not weights.sum() > 0:
        raise DataError("all sample weights are zero: there is nothing to learn from")
    C, strength = _factors(settings, total_weight(loss, data.n_rows, weights))
    common: dict[str, Any] = {
        "C": C,
        "strength": strength,
        "sample_weight": weights,
        "intercept": settings.the_intercept,
    }
    if loss.scope == "group":
        common["groups"] = targets.starts
    common["engine"] = settings.resources.opener()
    if not loss.classifies:
        _refuse_without_classes(settings, loss)
        if loss.labels == "sets":
            sets = find_sets(y, texts)
            return Task(data, sets.numbers, None, loss, regularizer, **common), sets
        if texts is not None and loss.labels != "none":
            raise LabelError(f"the labels are texts such as {texts[0]!r}; a regression needs numbers")
        numbers = _numbers(y)
        refuse_large_targets(numbers)
        return Task(data, numbers, None, loss, regularizer, **common), None
    assert not isinstance(y, LabelSets)
    if isinstance(loss, LevelLoss):
        _refuse_of_levels(settings, loss)
        classes = find_levels(y, weights, texts, loss)
    else:
        classes = find_classes(y, weights, texts)
    loss = loss.with_classes(classes.names.tolist())
    each = class_weights(classes, settings.class_weight, weights)
    if isinstance(loss, TwoClassLoss):
        if loss.class_weights_cancel and settings.class_weight is not None:
            raise ParameterError(
                Argument("class_weight"),
                f" changes nothing about the loss {loss.name!r}, which weighs both classes alike however many rows "
                "they have; leave it out",
            )
        _check_two_classes(loss, classes, weights)
    common |= {"class_weight": each, "multiclass": settings.multiclass}
    return Task(data, classes.numbers, len(classes), loss, regularizer, **common), classes


def _factors(settings: Settings, total: float) -> tuple[float, float]:
    """(what multiplies the losses, what multiplies Ω); 1 both where they are searched for."""
    if settings.searches:
        return 1.0, 1.0
    return (float(settings.C), 1.0) if settings.alpha is None else (1 / total, float(settings.alpha))


def _check_two_classes(loss: TwoClassLoss, classes: Classes, weights: Floats | None) -> None:
    """There must be two classes, with as many rows as the loss wants."""
    if len(classes) > 2:
        raise LabelError(
            f"Only binary classification is supported by the loss {loss.name!r}, and the labels name {len(classes)} "
            "classes; take the rows of two of them, or train each class against the rest"
        )
    counts = np.bincount(classes.numbers.astype(np.int64), None if weights is None else weights > 0, minlength=2)
    loss.check_counts(int(counts[1]), int(counts.sum()), classes.names[1])


def _refuse_of_levels(settings: Settings, loss: LevelLoss) -> None:
    for name, unset in (("multiclass", "auto"), ("probability", False)):
        if getattr(settings, name) != unset:
            instead = "leave it out" if name == "multiclass" else "'all_threshold' and 'immediate_threshold' have some"
            raise ParameterError(Argument(name), f" has no meaning for the loss {loss.name!r} of levels; {instead}")


def _numbers(y: AnyArray | LabelSets) -> Floats:
    try:
        return np.asarray(y, np.float64)
    except (TypeError, ValueError):
        row, label = next((i, label) for i, label in enumerate(np.asarray(y, object).ravel()) if not _is_number(label))
        raise LabelError(f"row {row} has the label {str(label)!r}; a regression needs numbers") from None


def _is_number(label: object) -> bool:
    try:
        float(label)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def _refuse_without_classes(settings: Settings, loss: Loss) -> None:
    what = f"the loss {loss.name!r}" if loss.labels in ("sets", "none") else "a regression"
    for name, unset in (("class_weight", None), ("probability", False), ("multiclass", "auto")):
        if getattr(settings, name) != unset:
            raise ParameterError(Argument(name), f" has no meaning for {what}; leave it out")
