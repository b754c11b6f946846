"""Data sets: rows that can be walked in blocks, in memory or on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from beeline._types import AnyArray, Floats, Ints
from beeline._words import count
from beeline.data.core.block import Block, Labels
from beeline.kernels import value_range

if TYPE_CHECKING:
    from beeline.data.recipe.recipe import Recipe

__all__ = ["ArrayDataset", "Dataset"]


class Dataset(ABC):
    """Rows that can be walked in blocks, as often as needed.

    Attributes
    ----------
    n_rows, n_features, nnz
        The size; `nnz` counts stored entries.
    recipe
        How raw rows become these rows (names, categories, scaling), or None for plain arrays.
    memory
        About how many bytes of rows on disk are held at one time, where that was said.
    ordered
        Whether the rows are those of another data set in another order, which `order` tells.
    """

    n_rows: int
    n_features: int
    nnz: int
    recipe: Recipe | None
    memory: int | None = None
    ordered: bool = False

    @abstractmethod
    def blocks(self, memory: int | None = None) -> Iterator[Block]:
        """All rows in order, in blocks of at most `memory` bytes each (None: as they lie)."""

    @abstractmethod
    def cuts(self, memory: int) -> list[int]:
        """Row numbers from 0 to `n_rows` that cut the rows into runs of about `memory` bytes; reads nothing."""

    @abstractmethod
    def rows(self, start: int, stop: int) -> Block:
        """Rows start … stop−1 as one block."""

    @abstractmethod
    def gather(self, picked: AnyArray, *, threads: int = 0) -> Block:
        """The picked rows, in that order, as a copy."""

    def will_need(self, start: int, stop: int) -> None:  # noqa: B027 — what lies in memory has nothing to fetch
        """Say that rows start … stop−1 are read soon, so that the system fetches them from disk meanwhile."""

    def order(self, start: int = 0, stop: int | None = None) -> Ints | None:
        """The numbers of rows start … stop−1 in the data set that this one is a copy of; None: it is no such copy."""
        return None

    def within(self, memory: int) -> Dataset:
        """The same rows, of which about so many bytes are held at one time where they lie on disk."""
        return self

    @property
    @abstractmethod
    def labels(self) -> Labels | None:
        """One label (or label set) a row, or None."""

    @property
    @abstractmethod
    def weights(self) -> Floats | None:
        """One weight a row, or None."""

    @property
    @abstractmethod
    def queries(self) -> Ints | None:
        """One query id a row, or None."""

    @property
    def value_range(self) -> tuple[float, float] | None:
        """The smallest and the largest stored value, NaN where one of them is.

        None where they are not known without a pass over the disk, or where there are no values.
        """
        return None

    def __len__(self) -> int:
        return self.n_rows

    @property
    def shape(self) -> tuple[int, int]:
        """(n_rows, n_features)."""
        return self.n_rows, self.n_features

    @property
    def feature_names(self) -> list[str] | None:
        """The name of each feature, where the source had names."""
        return self.recipe.feature_names if self.recipe is not None else None


class ArrayDataset(Dataset):
    """A data set in memory: one block."""

    def __init__(self, block: Block, recipe: Recipe | None = None) -> None:
        self.block = block
        self.recipe = recipe
        self.n_rows, self.n_features, self.nnz = block.n_rows, block.n_features, block.nnz

    def __repr__(self) -> str:
        layout = "sparse" if self.block.is_sparse else "dense"
        size = f"{count(self.n_rows, 'row')} × {count(self.n_features, 'feature')}"
        return f"ArrayDataset({size}, {layout} {self.block.values.dtype})"

    def blocks(self, memory: int | None = None) -> Iterator[Block]:
        """All rows in order, in views of at most `memory` bytes each (None: the one block)."""
        if memory is None or self.block.nbytes <= memory:
            yield self.block
        else:
            yield from self.block.pieces(memory)

    def cuts(self, memory: int) -> list[int]:
        """Only the ends: rows in memory need no cutting."""
        return [0, self.n_rows]

    def rows(self, start: int, stop: int) -> Block:
        """Rows start … stop−1, as a view."""
        return self.block.rows(start, stop)

    def gather(self, picked: AnyArray, *, threads: int = 0) -> Block:
        """The picked rows, in that order, as a copy."""
        return self.block.gather(picked, threads=threads)

    @property
    def labels(self) -> Labels | None:
        """One label (or label set) a row."""
        return self.block.labels

    @property
    def weights(self) -> Floats | None:
        """One weight a row, or None."""
        return self.block.weights

    @property
    def queries(self) -> Ints | None:
        """One query id a row, or None."""
        return self.block.queries

    @property
    def value_range(self) -> tuple[float, float] | None:
        """The smallest and the largest stored value, NaN where one of them is; one pass."""
        values = self.block.values
        return value_range(values) if values.size else None

    def give_labels(self) -> Labels | None:
        """The labels, which the data set then has no more: where they are needed once, they need not be kept."""
        labels = self.block.labels
        self.block = replace(self.block, labels=None)
        return labels

    @property
    def X(self) -> AnyArray:  # noqa: N802
        """The rows: a NumPy array, or a SciPy CSR array; memory is shared, not copied."""
        return self.block.to_scipy() if self.block.is_sparse else self.block.values
