"""Values so large that training on them would overflow."""

from __future__ import annotations

import numpy as np

from beeline._types import Floats
from beeline.data.core.dataset import Dataset
from beeline.exceptions import DataError, LabelError
from beeline.kernels import value_range

__all__ = ["LARGEST", "refuse_large_targets", "refuse_large_values"]

LARGEST = 1e75  # conjugate gradients multiply four values with each other, and numbers end at 1.8e308
_MEMORY = 64 << 20


def refuse_large_values(data: Dataset) -> None:
    """Raise where products of values would overflow, with the first such row and feature.

    Costs a look at the smallest and the largest value, which a store has written down.
    """
    if (found := data.value_range) is None or max(abs(found[0]), abs(found[1])) <= LARGEST:
        return
    start = 0
    for block in data.blocks(_MEMORY):
        entries = block.to_scipy().tocoo()
        large = np.abs(entries.data) > LARGEST
        if large.any():
            k = int(np.argmax(large))
            row, feature = (int(place[k]) for place in entries.coords)
            raise DataError(
                f"row {start + row} has the value {entries.data[k]:g} for feature {_name(data, feature)}, so large "
                "that products overflow; scale the features"
            )
        start += block.n_rows


def _name(data: Dataset, feature: int) -> str:
    """A feature's name, or its number as its source counts."""
    if data.feature_names is not None:
        return repr(data.feature_names[feature])
    return str(feature + (data.recipe.index_base if data.recipe is not None else 0))


def refuse_large_targets(targets: Floats) -> None:
    """Raise where products of a regression's targets would overflow, with the first such row."""
    if targets.size and max(map(abs, value_range(np.ascontiguousarray(targets)))) > LARGEST:
        row = int(np.argmax((np.abs(targets.reshape(len(targets), -1)) > LARGEST).any(axis=1)))
        raise LabelError(f"row {row} has the label {targets[row]}, so large that products overflow; scale the labels")
