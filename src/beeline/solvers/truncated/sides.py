"""How many rows are OUT, in numbers and words: beyond where a loss is cut off."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SideCounts"]

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
