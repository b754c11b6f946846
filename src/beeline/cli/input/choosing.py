"""What `train` decides for the user, and how it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beeline._sentences import Argument
from beeline.data.core.labels import LabelSets
from beeline.exceptions import LabelError, ParameterError
from beeline.training.labels import count_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beeline._types import AnyArray
    from beeline.data.core.dataset import Dataset
    from beeline.training.labels import ClassWeight

__all__ = ["choose_loss", "loss_for", "parse_class_weights"]

_FEW, _MOST = 20, 1000


def choose_loss(data: Dataset) -> tuple[str, str]:
    """(the loss for these labels, why).

    Texts name classes. So do whole numbers when there are few different ones: up to 20, or up to one in ten rows and
    1,000. Everything else is a regression.
    """
    labels = data.labels
    if labels is None:
        raise LabelError("the data have no labels; name the column that holds them by --label")
    if isinstance(labels, LabelSets):
        raise LabelError("the rows have sets of labels; a model of one label a row cannot be trained on them")
    return loss_for(labels, None if data.recipe is None else data.recipe.label_categories)


def loss_for(labels: AnyArray, texts: Sequence[str] | None) -> tuple[str, str]:
    """(the loss for labels, or for the numbers of texts, why)."""
    if texts is not None:
        return "logistic", f"labels are {len(texts):,} different texts"
    distinct = count_labels(labels)
    if distinct is None:
        return "squared", "labels are real numbers; --loss logistic is for classes"
    if distinct <= max(_FEW, min(_MOST, len(labels) // 10)):
        return "logistic", f"labels are {distinct:,} different whole numbers; --loss squared makes it a regression"
    return "squared", f"labels are {distinct:,} different numbers; --loss logistic takes them as classes"


def parse_class_weights(given: list[str], *, texts: bool) -> ClassWeight:
    """The class weights that were given as LABEL=WEIGHT, or `balanced`; `texts`: whether labels are texts."""
    if not given:
        return None
    if given == ["balanced"]:
        return "balanced"
    weights: dict[Any, float] = {}
    for item in given:
        label, separator, weight = item.rpartition("=")
        try:
            weights[label if texts else float(label)] = float(weight)
        except ValueError:
            separator = ""
        if not separator:
            raise ParameterError(
                Argument("class_weight"), f" must be balanced or LABEL=WEIGHT such as 1=2.5, not {item!r}"
            )
    return weights
