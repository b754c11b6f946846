"""Labels as training needs them where they are levels: their names, and in which order these come."""

from __future__ import annotations

from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray, Floats
from beeline._words import shortened
from beeline.exceptions import LabelError, ModelWarning
from beeline.losses import LevelLoss, Loss
from beeline.training.concerns import Concern
from beeline.training.labels import Classes, find_classes, first_fraction

__all__ = ["concerns_about_order", "find_levels"]


def find_levels(y: AnyArray, weights: Floats | None, texts: tuple[str, ...] | None, loss: LevelLoss) -> Classes:
    """The levels among the labels, the lowest first; all as for `find_classes`, but for half stars that are named.

    Numbers with decimals are levels where the loss names these: otherwise they are the labels of a regression.
    """
    row = None if texts is not None or loss.levels is not None else first_fraction(y)
    if row is not None:
        raise LabelError(
            Sentence(
                f"row {row} has the label {y[row]}, which is no whole number; if it is a level, give ",
                Argument("levels"),
                ", all of them from the lowest to the highest, otherwise take the loss of a regression",
            )
        )
    classes = find_classes(y, weights, texts, fractions=True)
    return classes.in_order(loss.order(classes.names))


def concerns_about_order(loss: Loss, classes: Classes | None) -> list[Concern]:
    """That nothing but the alphabet tells the order of levels, of which there are more than two: known beforehand."""
    if classes is None or not isinstance(loss, LevelLoss) or loss.knows_order(classes.names):
        return []
    names = [repr(name) for name in classes.names.tolist()]
    sentence = Sentence(
        "the labels are texts, which have no order of their own, so that the levels are taken by the alphabet: "
        f"{shortened(names)}; give ",
        Argument("levels"),
        ", all of them from the lowest to the highest",
    )
    return [Concern(sentence, ModelWarning)]
