"""The seam between the objective and the machines that hold the rows.

What has an entry for every row stays with the rows. An `Engine` opens a data set into shards, runs of rows that never
move; `Rows` is what the rest of the program has in its hands then. Whatever lies beside the rows (scores, slopes,
labels, costs) is a `RowVector`: a handle on one thing for each shard, which only engines look into. All work on rows is
done by *verbs*, named functions of a module::

    verb(shard, *what lies beside its rows, **small things) -> what stays there, or parts of a sum

`map` makes row vectors by a verb; `sum`, `max` and `concat` bring something small back, as a `Promise`. An engine whose
shards lie elsewhere queues what it is asked for, and sends the queue when a promise is asked for its value: *one trip*.
A verb changes none of its arguments and encloses nothing, so that it means the same in any process; sums are taken in
one tree over the shards (`engines.tree`), so that the same shards give the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline._lazy import cached_property
from beeline._types import AnyArray, Ints
from beeline.data.core.block import Block
from beeline.data.core.dataset import Dataset
from beeline.engines.verbs import products

if TYPE_CHECKING:
    from beeline.index import StoreIndex

__all__ = ["Engine", "Origin", "Promise", "RowVector", "Rows", "Verb"]

Verb = Callable[..., Any]


class Promise:
    """Something small that a verb has found, or will have found; `value` waits for it."""

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:  # noqa: ANN401
        self.value = value


Origin = tuple[Verb, "tuple[RowVector, ...]", dict[str, Any], int | None]
"""How a row vector can be made again: by a verb, from other vectors and small things; which of its outputs it is."""


class RowVector:
    """A handle on something that lies beside the rows: an array for each shard.

    Attributes
    ----------
    origin
        How it can be made again, where its shards are lost; None for what was brought to the rows from outside. A
        vector that was moved along with θ is said to be made from θ: the same numbers, up to rounding.
    """

    __slots__ = ("__weakref__", "origin")

    def __init__(self, origin: Origin | None = None) -> None:
        self.origin = origin


class Rows(ABC):
    """A data set that an engine has opened.

    Attributes
    ----------
    n_rows, n_features, nnz
        The size; `nnz` counts stored entries.
    n_shards
        How many runs of rows there are.
    in_process
        Whether the rows lie in this process or on its disk, so that `local` costs nothing but reading them.
    immediate
        Whether verbs are run when they are asked for, so that nothing is won by asking for several things together.
    in_memory
        Whether a pass over the rows reads no file.
    memory
        Bytes that may be held here at one time, of rows and of what is made of them; None: nothing was said.
    ordered
        Whether they lie in another order than in the data set.
    index
        What is known of runs of these rows without reading them; None: nothing.
    """

    n_rows: int
    n_features: int
    nnz: int
    n_shards: int
    in_process: bool = False
    in_memory: bool = False
    immediate: bool = False
    memory: int | None = None
    ordered: bool = False
    index: StoreIndex | None = None

    @abstractmethod
    def call(
        self,
        verb: Verb,
        vectors: Sequence[RowVector],
        small: dict[str, Any],
        outputs: int,
        reduce: str | None,
        reuse: Sequence[RowVector] = (),
    ) -> tuple[tuple[RowVector, ...], Promise]:
        """Run a verb on every shard.

        A verb that makes vectors and is summed over returns both, in this order; one that makes several returns a
        tuple of them; what is summed is a tuple of parts always.

        Parameters
        ----------
        outputs
            How many row vectors it makes.
        reduce
            What becomes of the parts it returns: `sum`, `max` or `concat`; None where it returns none.
        reuse
            Vectors that are given up: their memory goes to the verb as `out`, and nobody may use them any more.
        """

    @cached_property
    def longest_row(self) -> float:
        """max ‖x_i‖; one pass."""
        return float(self.max(products.longest_row).value[0])

    def scatter(self, column: AnyArray) -> RowVector:
        """Bring an array with an entry a row, in the order of the data set, to the rows."""
        return self.scatter_local(self.in_own_order(column) if self.ordered else column)

    def gather(self, vector: RowVector) -> AnyArray:
        """Bring a row vector here, in the order of the data set.

        Nothing but this and `gather_local` moves what lies beside rows, and it is seldom done.
        """
        return self.in_data_order(self.gather_local(vector))

    @abstractmethod
    def scatter_local(self, column: AnyArray) -> RowVector:
        """Bring an array to the rows that has its entries in their own order, that of `local` and `read`."""

    @abstractmethod
    def gather_local(self, vector: RowVector) -> AnyArray:
        """Bring a row vector here, in the rows' own order, that of `local` and `read`."""

    def pieces(self, vector: RowVector) -> list[AnyArray]:
        """A row vector as it lies, to be written somewhere: arrays that are one behind the other."""
        return [self.gather_local(vector)]

    def from_pieces(self, pieces: list[AnyArray]) -> RowVector:
        """A row vector of what `pieces` gave, as a copy."""
        return self.scatter_local(np.concatenate(pieces))

    def pick(self, vector: RowVector, positions: Ints) -> AnyArray:
        """The entries of a row vector for some rows, by their places in the rows' own order."""
        picked: AnyArray = self.gather_local(vector)[positions]
        return picked

    def put(self, vector: RowVector, positions: Ints, entries: AnyArray) -> None:
        """Change entries of a row vector that nobody else has, by their places in the rows' own order.

        For solvers that visit rows, and keep something of each where the rows are.
        """
        raise RuntimeError(f"the rows of {type(self).__name__} lie in another process")

    def in_own_order(self, column: AnyArray) -> AnyArray:
        """An array with an entry a row, from the order of the data set to that of these rows."""
        return column

    def in_data_order(self, column: AnyArray) -> AnyArray:
        """An array with an entry a row, from the order of these rows to that of the data set."""
        return column

    @abstractmethod
    def local(self, features: AnyArray | None = None, *, constant: bool = False) -> Block:
        """All rows in this process, as one block, for solvers that visit one row, or one feature, after the other.

        Of these features only, where they are given, in increasing order; `constant` adds one that is 1.
        """

    @abstractmethod
    def read(self, start: int, stop: int) -> Block:
        """Rows start … stop−1 in this process, for solvers that go on with some rows at a time."""

    def will_need(self, start: int, stop: int) -> None:  # noqa: B027 — a hint
        """Say that rows start … stop−1 are read soon."""

    def runs(self, nbytes: int) -> list[tuple[int, int]]:
        """All rows in runs of about so many bytes, (start, stop), each of which `read` reads without any others.

        For solvers that take runs in an order of their own. A run has one chunk at least.
        """
        raise RuntimeError(f"the rows of {type(self).__name__} lie in another process")

    def map(self, verb: Verb, *vectors: RowVector, **small: Any) -> RowVector:  # noqa: ANN401
        """A row vector: what the verb makes of each shard."""
        return self.call(verb, vectors, small, 1, None)[0][0]

    def sum(self, verb: Verb, *vectors: RowVector, **small: Any) -> Promise:  # noqa: ANN401
        """The sums over all shards of each part that the verb returns, as a tuple."""
        return self.call(verb, vectors, small, 0, "sum")[1]

    def max(self, verb: Verb, *vectors: RowVector, **small: Any) -> Promise:  # noqa: ANN401
        """The largest of each part that the verb returns, as a tuple."""
        return self.call(verb, vectors, small, 0, "max")[1]

    def concat(self, verb: Verb, *vectors: RowVector, **small: Any) -> Promise:  # noqa: ANN401
        """Each part that the verb returns, one shard's behind the other's, as a tuple of arrays."""
        return self.call(verb, vectors, small, 0, "concat")[1]


class Engine(ABC):
    """Who holds rows, and works on them."""

    @abstractmethod
    def open(self, data: Dataset, groups: Ints | None = None) -> Rows:
        """The data set in shards.

        Parameters
        ----------
        groups
            Where groups of rows begin, and behind the last one where it ends: no shard cuts one. None: there are none.
        """
