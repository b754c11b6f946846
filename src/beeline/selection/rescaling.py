"""Scaling learned inside each fold, from its training rows alone.

Scaling was learned from all rows when the data were read. Learning it again on rows that are scaled already comes to
the same as learning it on the raw rows: minmax, standard and maxabs do not mind what was multiplied or added before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from beeline._types import AnyArray
from beeline.data.core.dataset import ArrayDataset, Dataset
from beeline.data.core.rescaled import RescaledDataset
from beeline.data.core.statistics import FeatureStatistics
from beeline.data.recipe.recipe import Recipe
from beeline.data.recipe.scaling import Scaling, learned_scaling
from beeline.selection.folds import Fold
from beeline.solvers.newton.lockstep import Affine

__all__ = ["Rescaling"]

_MEMORY = 64 << 20


class Rescaling:
    """How each fold scales the features of a data set that was scaled as a whole."""

    def __init__(self, data: Dataset, recipe: Recipe) -> None:
        self.data, self.recipe = data, recipe

    @classmethod
    def of(cls, data: Dataset) -> Rescaling | None:
        """What a data set's recipe has learned from its rows; None where it has not."""
        recipe = data.recipe
        return cls(data, recipe) if recipe is not None and recipe.scaling.factor is not None else None

    def learned(self, train: AnyArray) -> Scaling:
        """The scaling that the training rows of a fold ask for; one pass."""
        statistics, start = FeatureStatistics(), 0
        for block in self.data.blocks(min(_MEMORY, self.data.memory or _MEMORY)):
            picked = np.flatnonzero(train[start : start + block.n_rows])
            statistics.add(block.gather(picked))
            start += block.n_rows
        statistics.grow(self.data.n_features)
        statistics.add_repeated(int(train.sum()) - statistics.count, 0.0)
        scaling = learned_scaling(self.recipe.scaling.kind, statistics, self.recipe.indicators)
        return scaling if self.recipe.scaling.left_to_intercept is None else scaling.without_shift()

    def affine(self, folds: Sequence[Fold], n_outputs: int) -> Affine:
        """What every fold's problems see of the features."""
        factors, shifts = [], []
        for fold in folds:
            scaling = self.learned(fold.train)
            assert scaling.factor is not None
            shift = np.zeros_like(scaling.factor) if scaling.shift is None else -scaling.shift * scaling.factor
            factors += [scaling.factor] * n_outputs
            shifts += [shift] * n_outputs
        return Affine(np.column_stack(factors), np.column_stack(shifts))

    def dataset(self, fold: Fold) -> Dataset:
        """The rows as a fold sees them: a copy in memory, or scaled whenever they are read from disk."""
        rescaled = RescaledDataset(self.data, self.learned(fold.train))
        if isinstance(self.data, ArrayDataset):
            return ArrayDataset(rescaled.rows(0, self.data.n_rows), self.data.recipe)
        return rescaled
