"""What losses of two classes over all rows share.

A measure such as the area under the ROC curve, or F1, is no sum over rows, and neither is its loss here. Where one of
the classes is absent, there is nothing to measure, and the loss is zero.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

from beeline._types import Floats
from beeline.losses.base import Labels
from beeline.losses.groups import AllRowsLoss
from beeline.losses.thresholds import best_threshold

__all__ = ["TwoClassLoss"]


class TwoClassLoss(AllRowsLoss):
    """A loss of two classes over all rows together.

    Attributes
    ----------
    measure
        What the measure is called whose mistakes the loss bounds from above.
    class_weights_cancel
        Whether it makes no difference what multiplies the weights of all rows of a class.
    instead
        Another loss, in words, where nothing can be learned by this one; empty where there is none to name.
    """

    labels: ClassVar[Labels] = "binary"
    smooth: ClassVar[bool] = False
    class_weights_cancel: ClassVar[bool] = False
    instead: ClassVar[str] = ""

    @property
    @abstractmethod
    def measure(self) -> str:
        """What is measured, as a search for C calls it."""

    @abstractmethod
    def measured(self, z: Floats, y: Floats, c: Floats) -> float:
        """The measure itself, for rows that are all present; greater is better."""

    def check_counts(self, positive: int, rows: int, name: object) -> None:
        """Raise `ParameterError` when the settings do not fit so many rows, some of them of the positive class."""

    def of_part(self, part: float) -> Self:
        """The loss for that part of the rows: what counts rows counts as many fewer."""
        return self

    def threshold(self, z: Floats, y: Floats, c: Floats) -> float:
        """The score above which a row is best called positive, where only differences of scores matter."""
        return best_threshold(z, y, c)
