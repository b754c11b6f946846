"""Leaves with boxes and balls around their rows: exact bounds on scores, so that what is passed over is certified."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block
from beeline.index.arrays import ArrayWriter
from beeline.index.guides import Guide, GuideWriter, Question, Readings, outside_share
from beeline.index.settings import IndexSettings
from beeline.kernels import box_bounds, count_box_features, make_boxes, order_rows

__all__ = ["BoxWriter", "Boxes", "boxes_of"]

_TOGETHER = 1 << 17  # leaves whose bounds are compared at a time: a dozen vectors of all of them would be much memory


class Boxes(Guide):
    """A box and a ball for each leaf; see `kernels/boxes.cpp`.

    Parameters
    ----------
    indptr, indices, low, high, radii
        The features of each box with the least and the greatest value, as upper halves of float32; the balls' radii.
    """

    kind = "boxes"
    exact = True

    def __init__(self, indptr: Ints, indices: AnyArray, low: AnyArray, high: AnyArray, radii: AnyArray) -> None:
        self.indptr, self.indices, self.low, self.high, self.radii = indptr, indices, low, high, radii

    @classmethod
    def load(cls, read: Callable[[str], AnyArray]) -> Boxes:
        """The boxes that a `BoxWriter` wrote."""
        indptr = np.concatenate([[0], np.cumsum(read("box_features"), dtype=np.int64)])
        return cls(indptr, read("box_indices"), read("box_low"), read("box_high"), read("box_radii"))

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return sum(array.nbytes for array in (self.indptr, self.indices, self.low, self.high, self.radii))

    def bounds(self, w: Floats, b: float = 0.0, leaves: Ints | None = None) -> tuple[Floats, Floats]:
        """Between which numbers the scores wᵀx + b of each leaf's rows lie; of these leaves, or of all."""
        n = len(self.radii) if leaves is None else len(leaves)
        low, high = np.empty(n), np.empty(n)
        box_bounds(self.indptr, self.indices, self.low, self.high, self.radii, leaves, w, low, high)
        low += b
        high += b
        return low, high

    def weights(self, question: Question) -> Floats:
        """By which part of the interval of scores lies where a loss is not zero; zero where that is certain."""
        n = len(self.radii)
        weights = np.empty(n)
        for first in range(0, n, _TOGETHER):
            leaves = np.arange(first, min(n, first + _TOGETHER))
            weights[first : first + _TOGETHER] = self._weights_of(leaves, question)
        return weights

    def _weights_of(self, leaves: Ints, question: Question) -> Floats:
        flats = question.flats.pick(slice(leaves[0], leaves[-1] + 1))
        share = outside_share(*self.bounds(question.w, question.b, leaves), flats)
        if question.outer is not None:
            low, high = self.bounds(*question.outer, leaves)
            share[(high < flats.inside_low) | (low > flats.inside_high)] = 0.0
        return share

    def changes(self, w: Floats, b: float, leaves: Ints) -> tuple[Floats, Floats]:
        """Bounds."""
        return self.bounds(w, b, leaves)

    def left(self, question: Question, readings: Readings) -> Floats:
        """None of a leaf that was read, where no score of its other rows can have changed enough since."""
        weights, (w, b) = self.weights(question), (question.w, question.b)
        for number in readings.numbers(weights > 0):
            leaves = np.flatnonzero((readings.when == number) & (weights > 0))
            there, c = readings.places[number]
            low, high = self.changes(w - there, b - c, leaves)
            safe = (readings.below[leaves] + low >= 0) & (readings.above[leaves] - high >= 0)
            weights[leaves[safe]] = 0.0
        return weights


class BoxWriter(GuideWriter):
    """Makes boxes of rows that are near each other, and have one label where the store has classes."""

    def __init__(self, folder: Path, n_features: int, settings: IndexSettings | None = None) -> None:
        self._settings = (settings or IndexSettings()).of("boxes")
        kinds: dict[str, Any] = {
            "box_features": np.int32,
            "box_indices": _index_type(n_features),
            "box_low": np.uint16,
            "box_high": np.uint16,
            "box_radii": np.float32,
        }
        self.arrays = {name: ArrayWriter(folder / f"{name}.npy", dtype) for name, dtype in kinds.items()}

    def arrange(self, block: Block, numbers: Ints, labels: Floats | None) -> tuple[Ints, Ints]:
        """Class by class: a leaf of one class says more."""
        order, groups = _by_class(block.n_rows, labels)
        how = self._settings
        assert how.leaf_rows is not None
        return order, np.asarray(order_rows(block.arrays, order, groups, how.leaf_rows, how.seed), np.int64)

    def write(self, block: Block, ends: Ints) -> None:
        """Take leaves that end at these rows of a block."""
        boxes = boxes_of(block, ends)
        pieces: tuple[AnyArray, ...] = (np.diff(boxes.indptr), boxes.indices, boxes.low, boxes.high, boxes.radii)
        for array, piece in zip(self.arrays.values(), pieces, strict=True):
            array.write(piece)


def boxes_of(block: Block, ends: Ints) -> Boxes:
    """The boxes of leaves that end at these rows of a block."""
    counts = np.empty(len(ends), np.int64)
    count_box_features(block.arrays, ends, counts)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices: AnyArray = np.empty(indptr[-1], _index_type(block.n_features))
    low, high = np.empty(indptr[-1], np.uint16), np.empty(indptr[-1], np.uint16)
    radii = np.empty(len(ends), np.float32)
    make_boxes(block.arrays, ends, indptr, indices, low, high, radii)
    return Boxes(indptr, indices, low, high, radii)


def _index_type(n_features: int) -> type:
    return np.uint16 if n_features <= 2**16 else np.int32


def _by_class(n: int, labels: Floats | None) -> tuple[Ints, list[int]]:
    """Row numbers, those of each class together, and where the classes end."""
    if labels is None:
        return np.arange(n), [n]
    order = np.argsort(labels, kind="stable").astype(np.int64)
    return order, [*(np.flatnonzero(np.diff(labels[order])) + 1).tolist(), n]
