"""Count, mean, spread and range of each feature, gathered from blocks in one pass."""

from __future__ import annotations

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block
from beeline.kernels import RowArrays, add_statistics

__all__ = ["FeatureStatistics"]


class FeatureStatistics:
    """Statistics of the entries that blocks store, feature by feature.

    Means and sums of squared deviations are updated row by row (Welford), and parts are merged by the pairwise
    formula of Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances"
    (1979): no digits are lost to cancellation, whatever the offset of a feature. Entries that are not stored, such as
    the zeros of sparse rows, are taken in by `add_repeated`, many at once.

    Memory: five numbers a feature.

    Attributes
    ----------
    count, mean, spread, low, high
        Of each feature: how many values were seen, their mean, the sum of their squared deviations from it, the
        smallest and the largest.
    """

    def __init__(self, n_features: int = 0) -> None:
        self.count: Ints = np.zeros(n_features, np.int64)
        self.mean: Floats = np.zeros(n_features)
        self.spread: Floats = np.zeros(n_features)
        self.low: Floats = np.full(n_features, np.inf)
        self.high: Floats = np.full(n_features, -np.inf)

    def add(self, block: Block, *, threads: int = 0) -> None:
        """Take in the stored entries of a block."""
        self.grow(block.n_features)
        arrays = RowArrays(block.values, block.indptr, block.indices, block.n_features)
        add_statistics(arrays, self.count, self.mean, self.spread, self.low, self.high, threads)

    def add_repeated(self, count: Ints, value: AnyArray | float) -> None:
        """Take in `count[j]` more values of feature j that all are `value` (or `value[j]`)."""
        value = np.broadcast_to(np.asarray(value, np.float64), count.shape)
        some, total = count > 0, self.count + count
        share = count / np.maximum(total, 1)
        with np.errstate(invalid="ignore", over="ignore"):
            delta = np.where(some, value - self.mean, 0.0)
            self.mean = np.where(self.count == 0, np.where(some, value, 0.0), self.mean + delta * share)
            self.spread = self.spread + delta * delta * (self.count * share)
        self.low = np.where(some, np.minimum(self.low, value), self.low)
        self.high = np.where(some, np.maximum(self.high, value), self.high)
        self.count = total

    def grow(self, n_features: int) -> None:
        """Make room for at least so many features."""
        more = n_features - len(self.count)
        if more > 0:
            start = FeatureStatistics(more)
            for name in ("count", "mean", "spread", "low", "high"):
                setattr(self, name, np.concatenate([getattr(self, name), getattr(start, name)]))

    def placed(self, features: AnyArray, n_features: int) -> FeatureStatistics:
        """The same statistics as those of features number `features` among `n_features`."""
        wide = FeatureStatistics(n_features)
        for name in ("count", "mean", "spread", "low", "high"):
            getattr(wide, name)[features] = getattr(self, name)
        return wide
