"""What `train` decides for the user, and how it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from beeline._sentences import Argument
from beeline.cli.output.errors import print_note
from beeline.data.core.labels import LabelSets
from beeline.exceptions import LabelError, ParameterError
from beeline.training.labels import count_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beeline._types import AnyArray
    from beeline.data.core.dataset import Dataset
    from beeline.training.labels import ClassWeight

__all__ = ["LossChoice", "choose_loss", "loss_for", "parse_class_weights"]

_FEW, _MOST = 20, 1000


class LossChoice(NamedTuple):
    """The loss for labels.

    Attributes
    ----------
    loss
        Its name.
    why
        Why it was chosen, and how to choose otherwise.
    doubtful
        Whether the labels could as well mean the other: they are more than two whole numbers.
    """

    loss: str
    why: str
    doubtful: bool = False

    def announce(self) -> None:
        """Say it before training begins, where the labels could mean something else."""
        if self.doubtful:
            task = "classes" if self.loss == "logistic" else "a regression"
            print_note(f"this is taken as {task}: {self.why}")


def choose_loss(data: Dataset) -> LossChoice:
    """The loss for the labels of a data set.

    Texts name classes, and so do two different whole numbers. More of them are a regression where some are negative or
    they are written with decimals. Otherwise up to 20 are classes; more are if they look like the numbers of classes:
    all from 0 or 1 on, and at most one in ten rows and 1,000. Everything else is a regression.
    """
    labels = data.labels
    if labels is None:
        raise LabelError("the data have no labels; name the column that holds them by --label")
    if isinstance(labels, LabelSets):
        raise LabelError("the rows have sets of labels; a model of one label a row cannot be trained on them")
    recipe = data.recipe
    if recipe is None:
        return loss_for(labels, None)
    return loss_for(labels, recipe.label_categories, decimals=recipe.label_decimals)


def loss_for(labels: AnyArray, texts: Sequence[str] | None, *, decimals: bool = False) -> LossChoice:
    """The loss for labels, or for the numbers of texts.

    Parameters
    ----------
    labels, texts
        Labels, or the numbers of these texts.
    decimals
        Whether the labels are written with decimals, where that is known.
    """
    if texts is not None:
        return LossChoice("logistic", f"labels are {len(texts):,} different texts")
    distinct = count_labels(labels)
    if distinct is None:
        return LossChoice("squared", "labels are real numbers; --loss logistic is for classes")
    found = f"labels are {distinct:,} different whole numbers"
    if distinct <= 2:
        return LossChoice("logistic", f"{found}; --loss squared makes it a regression")
    low, high = labels.min(), labels.max()
    numbered = low in (0, 1) and high - low == distinct - 1 and distinct <= min(_MOST, len(labels) // 10)
    reason = ", some of them negative" if low < 0 else ", written with decimals" if decimals else ""
    if reason or not (distinct <= _FEW or numbered):
        return LossChoice("squared", f"{found}{reason}; --loss logistic takes them as classes", doubtful=True)
    return LossChoice("logistic", f"{found}; --loss squared makes it a regression", doubtful=True)


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
