"""Rows in memory, in random order: what solvers that visit one row at a time work on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from beeline._lazy import cached_property
from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset
from beeline.data.core.memory import available_memory
from beeline.engines import Rows, Threads
from beeline.kernels import RowArrays, pack_rows
from beeline.objective import Objective

__all__ = ["Centred", "ShuffledRows"]

# Rows that take less than this, all together, stay in the caches wherever they lie.
_CACHED_BYTES = 4 << 20
_MOST_FEATURES = 2**31  # that 32-bit indices can tell apart
_FEW_ROWS = 10_000  # whose order is kept for the next time
_SAMPLE = 1000  # values that tell whether float32 may do


class Centred(NamedTuple):
    """Rows as seen from their mean.

    Attributes
    ----------
    mean
        μ.
    norms, means
        ‖x_i − μ‖² and μᵀx_i of every row.
    usual_norm
        The mean of the norms.
    """

    mean: Floats
    norms: Floats
    means: Floats
    usual_norm: float


@dataclass(frozen=True, eq=False)
class ShuffledRows:
    """All rows of a data set in memory, with a random order to visit them in.

    Rows that lie in the order of the visits, and take few bytes, are visited two to three times as fast. So they are
    copied, unless they fit the processor's caches or memory is scarce. The copy's values are float32 where nothing is
    lost, or where `rough` allows for rounding: then scarce memory shows in the bits of a result, though not in what is
    certified.

    Attributes
    ----------
    rows, block
        The rows as they are, in one shard in this process.
    order
        Their numbers, in the order in which they are to be visited.
    arrays
        The rows, or a copy of them in that order.
    copied, exact
        Whether it is a copy, and whether its values are those of the rows.
    """

    rows: Rows
    block: Block
    order: Ints
    arrays: RowArrays
    copied: bool
    exact: bool

    @classmethod
    def of(cls, rows: Rows, seed: int, *, rough: bool = False) -> ShuffledRows:
        """The rows, brought here and shuffled by the seed."""
        order = _order(rows.n_rows, seed) if rows.n_rows <= _FEW_ROWS else _order.__wrapped__(rows.n_rows, seed)
        block, memory = rows.local(), rows.memory
        if not (rows.in_memory and rows.n_shards == 1):
            rows = Threads().open(ArrayDataset(block))
        arrays = block.arrays
        is_worth_it = block.nbytes > _CACHED_BYTES and block.n_features <= _MOST_FEATURES
        if not (is_worth_it and block.nbytes <= (available_memory() if memory is None else memory) / 2):
            return cls(rows, block, order, arrays, copied=False, exact=True)
        exact = precise = False
        if rough or _survives(block.values):  # a copy that is of no use would cost as much as a sweep
            packed, exact, precise = _packed(block, arrays, order, np.float32)
        if not (exact or (rough and precise)):
            packed, exact, _ = _packed(block, arrays, order, np.float64)
        return cls(rows, block, order, packed, copied=True, exact=exact)

    def over(self, objective: Objective) -> Objective:
        """The same objective over these rows, wherever its own lie."""
        o = objective
        if o.rows is self.rows:
            return o
        labels, costs = (self.rows.scatter_local(o.rows.gather_local(column)) for column in (o.labels, o.costs))
        return replace(o, rows=self.rows, labels=labels, costs=costs)

    @cached_property
    def norms(self) -> Floats:
        """‖x_i‖²."""
        return self.block.squared_norms()

    @cached_property
    def centred(self) -> Centred:
        """The rows as seen from their mean."""
        return Centred(*self.block.centred())


@lru_cache(maxsize=16)
def _order(n: int, seed: int) -> Ints:
    """The numbers of n rows in random order, kept: to make a generator takes longer than a sweep over a few rows."""
    order = np.random.default_rng(seed).permutation(n)
    order.flags.writeable = False
    return order


def _survives(values: AnyArray) -> bool:
    """Whether the first values are the same in float32."""
    some = values.ravel()[:_SAMPLE]
    with np.errstate(over="ignore"):
        return np.array_equal(some.astype(np.float32), some)


def _packed(block: Block, arrays: RowArrays, order: Ints, kind: type) -> tuple[RowArrays, bool, bool]:
    """(a copy of the rows in that order, whether nothing was lost, whether nothing but digits was)."""
    if block.indptr is None:
        values: AnyArray = np.empty(block.values.shape, kind)
        exact, precise = pack_rows(arrays, order, None, None, values)
        return RowArrays(values, None, None, block.n_features), exact, precise
    indptr = np.zeros(block.n_rows + 1, np.int64)
    np.cumsum((block.indptr[1:] - block.indptr[:-1])[order], out=indptr[1:])
    indices: AnyArray = np.empty(block.nnz, np.uint16 if block.n_features <= 2**16 else np.int32)
    values = np.empty(block.nnz, kind)
    exact, precise = pack_rows(arrays, order, indptr, indices, values)
    return RowArrays(values, indptr, indices, block.n_features), exact, precise
