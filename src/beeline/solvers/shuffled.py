"""Rows in memory, in random order: what solvers that visit one row at a time work on."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.block import Block, concatenate
from beeline.data.dataset import ArrayDataset, Dataset
from beeline.kernels import RowArrays
from beeline.objective import Objective

__all__ = ["ShuffledRows", "fits_memory"]

# Rows that take less than this, all together, stay in the caches wherever they lie.
_CACHED_BYTES = 4 << 20
# Rows longer than this are fetched ahead well enough wherever they lie.
_LONG_ROW_BYTES = 512


@dataclass(frozen=True, eq=False)
class ShuffledRows:
    """All rows of a data set in memory, with a random order to visit them in.

    Rows that lie in the order of the visits are fetched faster. So short ones are copied into it, unless all of them
    fit the processor's caches or the copy would not fit the memory; the others stay where they are. The results of a
    solver do not depend on that but for rounding.

    Attributes
    ----------
    block
        The rows.
    order
        The rows of the block, in the order in which they are to be visited.
    places
        Which row of the data set each row of the block is; None: the same.
    """

    block: Block
    order: Ints
    places: Ints | None

    @classmethod
    def of(cls, data: Dataset, seed: int) -> ShuffledRows:
        """The rows of a data set, shuffled by the seed."""
        order = np.random.default_rng(seed).permutation(data.n_rows)
        block = data.block if isinstance(data, ArrayDataset) else concatenate(list(data.blocks()))
        block = Block(block.values, block.n_features, block.indptr, block.indices)
        nbytes = block.nbytes
        if nbytes <= _CACHED_BYTES or nbytes > _LONG_ROW_BYTES * block.n_rows or nbytes > _available() / 2:
            return cls(block, order, None)
        return cls(_narrowed(block.gather(order)), np.arange(data.n_rows), order)

    @cached_property
    def arrays(self) -> RowArrays:
        """The rows, for kernels."""
        return RowArrays(self.block.values, self.block.indptr, self.block.indices, self.block.n_features)

    @cached_property
    def data(self) -> ArrayDataset:
        """The rows, as a data set."""
        return ArrayDataset(self.block)

    @cached_property
    def norms(self) -> Floats:
        """‖x_i‖²."""
        return self.block.squared_norms()

    @cached_property
    def mean(self) -> Floats:
        """μ, the mean of the rows."""
        n = self.block.n_rows
        return self.block.transposed(np.full(n, 1 / max(1, n)))

    @cached_property
    def centred(self) -> tuple[Floats, Floats, float]:
        """‖x_i − μ‖², μᵀx_i and ‖μ‖²."""
        means, square = self.block.scores(self.mean), float(self.mean @ self.mean)
        return np.maximum(self.norms - 2 * means + square, 0), means, square

    def picked(self, column: Floats) -> Floats:
        """A column of the data set, in the order of the block."""
        return np.ascontiguousarray(column if self.places is None else column[self.places], dtype=np.float64)

    def objective(self, objective: Objective) -> Objective:
        """The same objective over the rows as they lie here."""
        return replace(
            objective, data=self.data, labels=self.picked(objective.labels), costs=self.picked(objective.costs)
        )


def fits_memory(data: Dataset) -> bool:
    """Whether all rows can be in memory at once."""
    return isinstance(data, ArrayDataset) or 12 * data.nnz + 64 * data.n_rows <= _available()


def _available() -> float:
    """Bytes of memory that are free, or that the system would free."""
    try:
        with open("/proc/meminfo") as lines:  # noqa: PTH123 — a file of the kernel, not of the user
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024.0 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) / 2


def _narrowed(block: Block) -> Block:
    """The same rows with float32 values and int32 indices, each where nothing is lost."""
    values, indices = block.values, block.indices
    if values.dtype == np.float64 and _is_single(values.reshape(-1)[:4096]):
        narrow = values.astype(np.float32)
        values = narrow if np.array_equal(narrow, values) else values
    if indices is not None and indices.dtype == np.int64 and block.n_features < 2**31:
        indices = indices.astype(np.int32)
    return Block(values, block.n_features, block.indptr, indices)


def _is_single(values: AnyArray) -> bool:
    return bool(np.array_equal(values.astype(np.float32), values))
