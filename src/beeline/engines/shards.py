"""A shard: a run of rows that stays where it is, with the products that verbs take with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from beeline._forks import ForkSafeLock
from beeline._lazy import cached_property, computed_once
from beeline._types import Floats, Ints
from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset, Dataset
from beeline.kernels import apply_softmax_hessians

__all__ = ["OpenShard", "Shard", "Turn"]

_RARE = 100  # entries of a feature
_MOST = 0.7  # of the rows: from here on a copy of them saves nothing


@dataclass(frozen=True, eq=False)
class Shard:
    """A run of rows of a data set.

    Attributes
    ----------
    groups
        Where its groups of rows begin, counted from its first row, and behind the last one where it ends; None: none.
    """

    data: Dataset
    start: int
    stop: int
    groups: Ints | None = None

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return self.stop - self.start

    @property
    def block(self) -> Block:
        """The rows, as a view where they are in memory, read anew where they are on disk."""
        return self.data.rows(self.start, self.stop)

    @property
    def in_memory(self) -> bool:
        """Whether its rows are there without being read."""
        return isinstance(self.data, ArrayDataset)

    # A Hessian's products with one vector come in dozens, and are worth the transposed matrix. A single Xᵀu is not, and
    # must not take it just where it is there: several problems share a shard, and which of them comes first to make it
    # is up to the threads. The two ways differ in the last bits.

    def gram_matvec(self, h: Floats, v: Floats, shift: float) -> tuple[Floats, float]:
        """As `Block.gram_matvec`."""
        if self._transpose is None:
            return self.block.gram_matvec(h, v, shift)
        u = self.block.scores(v)
        u += shift
        u *= h
        return self._transpose.scores(u), float(u.sum())

    # Products with the columns of several outputs. They come with a row more than there are features: what a feature
    # that is 1 in every row would get, as an intercept needs.

    def transposed(self, u: Floats) -> Floats:
        """Xᵀu, and below it the sums of u's columns."""
        out = np.empty((self.data.n_features + 1, u.shape[1]))
        if self._transpose is None:
            out[:-1] = self.block.transposed(u)
        else:
            self._transpose.scores(u, out=out[:-1])
        out[-1] = u.sum(axis=0)
        return out

    def softmax_gram_matvec(self, h: Floats, v: Floats, shift: Floats) -> Floats:
        """As `Block.softmax_gram_matvec`."""
        if self._transpose is None:
            return self.block.softmax_gram_matvec(h, v, shift)
        u = self.block.scores(v)
        apply_softmax_hessians(h, np.ascontiguousarray(shift), u)
        return self.transposed(u)

    def gram_diagonal(self, h: Floats) -> Floats:
        """The diagonal of Xᵀ diag(h) X for every column of h, and below it the sums of the columns."""
        if self._transpose is None:
            return np.vstack([self.block.gram_diagonal(h), h.sum(axis=0)])
        squared = replace(self._transpose, values=self._transpose.values.astype(np.float64) ** 2)
        return np.vstack([squared.scores(h), h.sum(axis=0)])

    # Products for several problems, as `Block` has them.

    def batched_rmatvec(self, u: list[Floats]) -> Floats:
        """As `Block.batched_rmatvec`."""
        return self.block.batched_rmatvec(u) if self._transpose is None else self.transposed(np.column_stack(u))

    def batched_gram_matvec(self, h: list[Floats], v: Floats, shift: Floats) -> Floats:
        """As `Block.batched_gram_matvec`."""
        if self._transpose is None:
            return self.block.batched_gram_matvec(h, v, shift)
        u = self.block.scores(v)
        u += shift
        u *= np.column_stack(h)
        return self.transposed(u)

    def curved_rows(self, h: list[Floats]) -> tuple[Shard | None, list[Floats]]:
        """The rows that have a curvature in any problem, with their curvatures, for many products; None: all rows.

        Kernels pass over the others, but for those of the transposed matrix: there these rows are copied, unless they
        are most of all.
        """
        if self._transpose is None:
            return None, h
        rows = np.flatnonzero(np.any(h, axis=0))
        if len(rows) > _MOST * self.n_rows:
            return None, h
        block = self.block.gather(rows)
        return Shard(ArrayDataset(block), 0, block.n_rows), [column[rows] for column in h]

    @cached_property
    def longest_row(self) -> float:
        """max ‖x_i‖; one pass."""
        return self.block.arrays.longest_row()

    @computed_once
    def _transpose(self) -> Block | None:
        """The transposed matrix, where a product feature by feature is worth the copy.

        Threads that take rows each need a sum of all features of their own. Where features are rare, adding those up
        costs more than the product.
        """
        if not isinstance(self.data, ArrayDataset):
            return None
        block = self.block
        return block.transpose() if block.is_sparse and block.nnz < _RARE * block.n_features else None


class Turn:
    """The right to hold the rows of a shard on disk, of which there is one where memory is limited.

    Parameters
    ----------
    lock
        What those who would hold rows at the same time share; None: they need not wait for each other.
    """

    def __init__(self, lock: ForkSafeLock | None = None) -> None:
        self._lock, self._taken = lock, False

    def take(self) -> None:
        """Wait for it."""
        if self._lock is not None and not self._taken:
            self._lock.__enter__()
            self._taken = True

    def end(self) -> None:
        """Let others have it."""
        if self._lock is not None and self._taken:
            self._taken = False
            self._lock.__exit__(None, None, None)


@dataclass(frozen=True, eq=False)
class OpenShard(Shard):
    """A shard on disk while one verb works on it: rows are read once, when they are first asked for, and kept."""

    turn: Turn = field(kw_only=True)

    @cached_property
    def block(self) -> Block:
        """The rows."""
        self.turn.take()
        return self.data.rows(self.start, self.stop)
