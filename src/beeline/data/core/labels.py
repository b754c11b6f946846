"""Label sets: zero, one or several labels a row; and labels that are no labels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.exceptions import LabelError

__all__ = ["LabelSets", "missing", "refuse_missing"]


@dataclass(frozen=True, eq=False)
class LabelSets:
    """The labels of multi-label rows: row i has `values[indptr[i]:indptr[i+1]]`.

    Positions are absolute, so that a range of rows is a view.
    """

    indptr: Ints
    values: Floats

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __iter__(self) -> Iterator[Floats]:
        for start, stop in zip(self.indptr[:-1], self.indptr[1:], strict=True):
            yield self.values[start:stop]

    def __getitem__(self, picked: slice | Ints) -> LabelSets:
        """The picked rows: a view for a range, a copy for row numbers."""
        if isinstance(picked, slice):
            start, stop, _ = picked.indices(len(self))
            return LabelSets(self.indptr[start : max(start, stop) + 1], self.values)
        counts = np.diff(self.indptr)[picked]
        indptr = _positions(counts)
        within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], counts)
        return LabelSets(indptr, self.values[np.repeat(self.indptr[:-1][picked], counts) + within])

    def stored(self) -> Floats:
        """All labels of all rows, one after the other."""
        return self.values[self.indptr[0] : self.indptr[-1]]

    @staticmethod
    def concatenate(parts: list[LabelSets]) -> LabelSets:
        """The rows of all parts, in order."""
        counts = np.concatenate([np.diff(part.indptr) for part in parts])
        return LabelSets(_positions(counts), np.concatenate([part.stored() for part in parts]))


def _positions(counts: Ints) -> Ints:
    positions = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=positions[1:])
    return positions


def refuse_missing(labels: AnyArray, *, infinite: bool = True) -> None:
    """Raise where a row has None, NaN, pandas' NA or, unless they may pass, an infinite number for a label."""
    flawed = ~np.isfinite(labels) if infinite and labels.dtype.kind == "f" else missing(labels)
    if flawed is not None and labels.ndim and flawed.any():
        place = np.unravel_index(int(np.argmax(flawed)), labels.shape)
        raise LabelError(f"row {place[0]} has the label {labels[place]}; give it one that is known, or remove the row")


def missing(values: AnyArray) -> AnyArray | None:
    """Which of the values are None, NaN, or pandas' NA or NaT; None where no value of this type can be."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind != "O":
        return None
    return np.array([_is_missing(value) for value in values.ravel()], bool).reshape(values.shape)


def _is_missing(label: object) -> bool:
    if label is None or type(label).__name__ in ("NAType", "NaTType"):  # whose comparisons are neither true nor false
        return True
    return isinstance(label, float) and math.isnan(label)
