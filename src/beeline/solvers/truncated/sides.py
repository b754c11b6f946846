"""Which rows are OUT, beyond where a loss is cut off, and how many, in numbers and words."""

from __future__ import annotations

from typing import NamedTuple

from beeline._types import AnyArray
from beeline.engines import RowVector
from beeline.engines.verbs import truncation
from beeline.losses import Truncated
from beeline.objective import Point

__all__ = ["Outliers", "SideCounts", "costs_inside", "outliers_at"]

_CROWDED = 0.5  # of the rows of a class, beyond which OUT holds no outliers but the class itself


class SideCounts(NamedTuple):
    """Rows OUT with a negative and with a positive label, and all rows of either; a label of zero is negative here."""

    out_negative: float
    out_positive: float
    negatives: float
    positives: float

    @property
    def facts(self) -> dict[str, float]:
        """How many rows are OUT."""
        outside = self.out_negative + self.out_positive
        return {"outside": outside, "outside_negative": self.out_negative, "outside_positive": self.out_positive}

    def in_words(self, *, by_class: bool) -> str:
        """How many rows are OUT, of how many."""
        negative, positive, negatives, positives = (round(count) for count in self)
        if not by_class:
            return f"{negative + positive:,} of {negatives + positives:,} rows lie beyond the cap"
        of_negative = f"{negative:,} of {negatives:,} rows of the negative class"
        return f"{of_negative} and {positive:,} of {positives:,} of the positive lie beyond the cap"

    def crowded(self, *, by_class: bool) -> bool:
        """Whether more than half of the rows are OUT; those of a class, where there are classes."""
        if by_class:
            return self.out_negative > _CROWDED * self.negatives or self.out_positive > _CROWDED * self.positives
        return self.out_negative + self.out_positive > _CROWDED * (self.negatives + self.positives)


class Outliers(NamedTuple):
    """The rows that are OUT at a point.

    Attributes
    ----------
    outside
        1 for each row that is OUT, 0 for the others, in the order of the data.
    counts
        How many there are.
    words
        The same, as part of a sentence.
    """

    outside: AnyArray
    counts: SideCounts
    words: str


def costs_inside(point: Point, loss: Truncated) -> tuple[RowVector, SideCounts]:
    """(the costs of the rows that are IN, 0 for the others; how many are OUT), where a loss is cut off."""
    o = point.objective
    (inside,), counts = o.rows.call(
        truncation.costs_inside, (point.z, o.labels, o.costs), {"loss": loss}, outputs=1, reduce="sum"
    )
    return inside, SideCounts(*counts.value[0].tolist())


def outliers_at(point: Point) -> Outliers | None:
    """The rows that are OUT at a point; None for a loss that is not cut off."""
    o = point.objective
    if not isinstance(o.loss, Truncated):
        return None
    inside, counts = costs_inside(point, o.loss)
    outside = o.rows.gather(o.rows.map(truncation.outside_rows, inside, o.costs))
    return Outliers(outside, counts, counts.in_words(by_class=o.loss.classifies))
