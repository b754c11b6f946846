"""Range and mean of every feature, in one pass over blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from beeline._types import Floats
from beeline.data.block import Block
from beeline.kernels import RowArrays, add_statistics

__all__ = ["FeatureRanges", "FeatureRangesBuilder"]


@dataclass(frozen=True, eq=False)
class FeatureRanges:
    """What the values of each feature are; zeros that a sparse row does not store count as zeros.

    Attributes
    ----------
    low, high, mean
        One number a feature. A NaN does not count for the range and makes the mean NaN.
    """

    low: Floats
    high: Floats
    mean: Floats


class FeatureRangesBuilder:
    """Looks at blocks, one after the other; memory: five numbers a feature."""

    def __init__(self) -> None:
        self._n_rows = 0
        self._count = np.zeros(0, np.int64)
        self._mean, self._spread, self._low, self._high = (np.zeros(0) for _ in range(4))

    def add(self, block: Block) -> None:
        """Take the rows of a block into account."""
        self._n_rows += block.n_rows
        self._grow(block.n_features)
        rows = RowArrays(block.values, block.indptr, block.indices, block.n_features)
        add_statistics(rows, self._count, self._mean, self._spread, self._low, self._high)

    def finish(self, n_features: int) -> FeatureRanges:
        """The ranges of all rows seen; features that no row has are zeros."""
        self._grow(n_features)
        unstored = self._count < self._n_rows
        return FeatureRanges(
            low=np.where(unstored, np.fmin(self._low, 0.0), self._low),
            high=np.where(unstored, np.fmax(self._high, 0.0), self._high),
            mean=self._mean * (self._count / max(1, self._n_rows)),
        )

    def _grow(self, n_features: int) -> None:
        more = max(0, n_features - len(self._count))
        self._count = np.concatenate([self._count, np.zeros(more, np.int64)])
        for name, start in (("_mean", 0.0), ("_spread", 0.0), ("_low", np.inf), ("_high", -np.inf)):
            setattr(self, name, np.concatenate([getattr(self, name), np.full(more, start)]))
