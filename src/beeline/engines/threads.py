"""The default engine: this process, with threads inside the kernels."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline._forks import ForkSafeLock
from beeline._lazy import cached_property
from beeline._types import AnyArray, Ints
from beeline._words import count
from beeline.data.core.block import Block, concatenate
from beeline.data.core.dataset import ArrayDataset, Dataset
from beeline.engines.base import Engine, Origin, Promise, Rows, RowVector, Verb
from beeline.engines.running import Call, run
from beeline.engines.scratch import Scratch
from beeline.engines.shards import Shard
from beeline.exceptions import ParameterError
from beeline.kernels import keep_freed_memory

if TYPE_CHECKING:
    from beeline.index import StoreIndex

__all__ = ["Threads"]

_SHARD_BYTES = 256 << 20  # where nothing is said
# The parts of the memory for the rows of a shard, as much again for chunks as they are copied, and for what lies beside
# rows; the rest is for what verbs make of them, and for vectors as long as θ.
_ROWS, _SCRATCH = 8, 8
_PAGE = 4096  # bytes that are read for one entry of a vector on disk


class Threads(Engine):
    """One shard after the other; each kernel uses all threads of the pool.

    Parameters
    ----------
    memory
        Bytes that may be held at one time where rows lie on disk. Shards are cut accordingly, one is in memory at a
        time, and what lies beside the rows is kept in files. None: shards of 256 MB, and the rest in memory.
    n_shards
        Into how many runs of rows data are cut; None: rows in memory into one, those on disk as the memory asks for.
    """

    def __init__(self, memory: int | None = None, n_shards: int | None = None) -> None:
        if n_shards is not None and n_shards < 1:
            raise ParameterError(f"there must be at least one shard, not {n_shards}", parameter="n_shards")
        self.memory, self.n_shards = memory, n_shards

    @staticmethod
    def shard_bytes(memory: int) -> int:
        """How many bytes of rows a shard on disk has where so much may be held at one time."""
        return max(1, memory // _ROWS)

    def open(self, data: Dataset, groups: Ints | None = None) -> LocalRows:
        """Runs of rows; of whole chunks, where they lie on disk and have no groups."""
        keep_freed_memory(keep=self.memory is None)  # for the next training; a budget has no room for it
        if self.memory is None:
            return LocalRows(data, shards_of(data, _SHARD_BYTES, self.n_shards, groups))
        size = self.shard_bytes(self.memory)
        data = data.within(size)
        return LocalRows(data, shards_of(data, size, self.n_shards, groups), self.memory)


def shards_of(data: Dataset, memory: int, n_shards: int | None, groups: Ints | None = None) -> list[Shard]:
    """The shards of a data set: so many, or as many as the memory asks for; fewer where there are fewer groups."""
    even = [] if n_shards is None else [data.n_rows * k // n_shards for k in range(n_shards + 1)]
    cuts = even or data.cuts(memory)
    if groups is None:
        return [Shard(data, start, stop) for start, stop in pairwise(cuts)]
    places = np.unique(np.searchsorted(groups, cuts))  # of groups: a cut inside one moves to its end
    parts = [groups[first : last + 1] for first, last in pairwise(places.tolist())] or [groups]
    return [Shard(data, int(part[0]), int(part[-1]), part - part[0]) for part in parts]


class _LocalVector(RowVector):
    """What lies beside the rows of each shard, here."""

    __slots__ = ("parts", "seen")  # `seen`: of these parts, what `LocalRows` has found

    def __init__(self, parts: Sequence[Any], origin: Origin | None = None) -> None:
        self.parts, self.origin = parts, origin  # not by super(): hundreds are made in a millisecond


class _GivenUp(Sequence[Any]):
    """What is left of a vector whose memory another one has."""

    def __getitem__(self, k: Any) -> Any:  # noqa: ANN401
        raise RuntimeError("a row vector was used after its memory had been given to another one")

    def __len__(self) -> int:
        return 0


class LocalRows(Rows):
    """Rows in this process, or on its disk."""

    in_process = immediate = True

    def __init__(self, data: Dataset, shards: list[Shard], memory: int | None = None) -> None:
        self.data, self.shards, self.memory = data, shards, memory
        self.n_rows, self.n_features, self.nnz = data.n_rows, data.n_features, data.nnz
        self.n_shards, self.in_memory, self.ordered = len(shards), isinstance(data, ArrayDataset), data.ordered
        self.index = None if self.in_memory else _index_of(data)
        self._single = self.in_memory and self.n_shards == 1
        self._disk = None if memory is None or self.in_memory else _OnDisk(self.n_rows, memory)

    def __repr__(self) -> str:
        return repr(self.data)

    def call(
        self,
        verb: Verb,
        vectors: Sequence[RowVector],
        small: dict[str, Any],
        outputs: int,
        reduce: str | None,
        reuse: Sequence[RowVector] = (),
    ) -> tuple[tuple[RowVector, ...], Promise]:
        """Run a verb on every shard, one after the other, at once."""
        row_vectors = tuple(vectors)
        if self._single and reduce is not None and not reuse:
            result = verb(self.shards[0], *[vector.parts[0] for vector in row_vectors], **small)  # type: ignore[attr-defined]
            arrays, reduced = result if outputs else ((), result)
            made = tuple([_LocalVector([one], (verb, row_vectors, small, k)) for k, one in enumerate(arrays)])
            return made, Promise(reduced)
        keeper = None if self._disk is None else self._disk.keeper()
        kept, reduced = run(self.shards, Call(verb, small, outputs, reduce), _parts(row_vectors), _parts(reuse), keeper)
        for vector in reuse:
            vector.parts = _GivenUp()  # type: ignore[attr-defined]
        made = tuple([_LocalVector(column, (verb, row_vectors, small, k)) for k, column in enumerate(kept)])
        return made, Promise(reduced)

    # Most data lie in one shard, and small ones are trained in less than a millisecond: for these no loops.

    def map(self, verb: Verb, *vectors: RowVector, **small: Any) -> RowVector:  # noqa: ANN401
        """A row vector: what the verb makes of each shard."""
        if not self._single:
            return super().map(verb, *vectors, **small)
        made = verb(self.shards[0], *[vector.parts[0] for vector in vectors], **small)  # type: ignore[attr-defined]
        return _LocalVector([made], (verb, vectors, small, None))

    def sum(self, verb: Verb, *vectors: RowVector, **small: Any) -> Promise:  # noqa: ANN401
        """The sums over all shards of each part that the verb returns, as a tuple."""
        if not self._single:
            return super().sum(verb, *vectors, **small)
        return Promise(verb(self.shards[0], *[vector.parts[0] for vector in vectors], **small))  # type: ignore[attr-defined]

    def max(self, verb: Verb, *vectors: RowVector, **small: Any) -> Promise:  # noqa: ANN401
        """The largest of each part that the verb returns, as a tuple."""
        if not self._single:
            return super().max(verb, *vectors, **small)
        return Promise(verb(self.shards[0], *[vector.parts[0] for vector in vectors], **small))  # type: ignore[attr-defined]

    @cached_property
    def longest_row(self) -> float:
        """max ‖x_i‖; one pass."""
        return self.shards[0].longest_row if self._single else super().longest_row

    def scatter(self, column: AnyArray) -> RowVector:
        """As `scatter_local`, after the entries were put in the rows' own order, shard by shard."""
        if not self.ordered:
            return self.scatter_local(column)
        self._check_length(column)
        return self._kept(column[self.data.order(shard.start, shard.stop)] for shard in self.shards)

    def scatter_local(self, column: AnyArray) -> RowVector:
        """The array itself, in views; where memory is limited, a copy on disk."""
        self._check_length(column)
        if self._single:
            return _LocalVector([column])
        return self._kept(column[shard.start : shard.stop] for shard in self.shards)

    def _check_length(self, column: AnyArray) -> None:
        if len(column) != self.n_rows:
            raise ParameterError(
                f"{count(len(column), 'entry', 'entries')} do not match {count(self.n_rows, 'row')}", parameter="column"
            )

    def _kept(self, parts: Iterable[AnyArray]) -> RowVector:
        """A part for each shard; on disk where memory is limited."""
        if self._disk is None:
            return _LocalVector(list(parts))
        keeper = self._disk.keeper()
        return _LocalVector([keeper.keep(shard, 0, part) for shard, part in zip(self.shards, parts, strict=True)])

    def in_own_order(self, column: AnyArray) -> AnyArray:
        """An array with an entry a row, from the order of the data set to that of these rows."""
        return column[self.data.order()] if self.ordered else column

    def in_data_order(self, column: AnyArray) -> AnyArray:
        """An array with an entry a row, from the order of these rows to that of the data set."""
        if not self.ordered:
            return column
        back = np.empty_like(column)
        for shard in self.shards:
            back[self.data.order(shard.start, shard.stop)] = column[shard.start : shard.stop]
        return back

    def gather_local(self, vector: RowVector) -> AnyArray:
        """The array of all rows; where there is one shard, itself."""
        parts: Sequence[Any] = vector.parts  # type: ignore[attr-defined]
        return parts[0] if self.n_shards == 1 and self._disk is None else np.concatenate(parts)

    def pieces(self, vector: RowVector) -> list[AnyArray]:
        """The parts of all shards."""
        return list(vector.parts)  # type: ignore[attr-defined]

    def from_pieces(self, pieces: list[AnyArray]) -> RowVector:
        """A copy of each part; on disk where memory is limited."""
        if [len(piece) for piece in pieces] != [shard.n_rows for shard in self.shards]:
            return super().from_pieces(pieces)
        return self._kept(pieces if self._disk is not None else [np.array(piece) for piece in pieces])

    def pick(self, vector: RowVector, positions: Ints) -> AnyArray:
        """The entries of a row vector for some rows."""
        parts: Sequence[Any] = vector.parts  # type: ignore[attr-defined]
        if (whole := self._whole(vector)) is not None:
            self._touched_at(whole, positions)
            return whole[positions]
        picked = np.empty((len(positions), *parts[0].shape[1:]), parts[0].dtype)
        for part, some, places in self._by_shard(parts, positions):
            picked[some] = part[places]
        return picked

    def put(self, vector: RowVector, positions: Ints, entries: AnyArray) -> None:
        """Change entries of a row vector for some rows."""
        if (whole := self._whole(vector)) is not None:
            whole[positions] = entries
            self._touched_at(whole, positions)
            return
        for part, some, places in self._by_shard(vector.parts, positions):  # type: ignore[attr-defined]
            part[places] = entries[some]

    def _whole(self, vector: RowVector) -> AnyArray | None:
        """The array of all rows of which the shards have views, as they have on disk; None: there is none.

        Rows from everywhere are taken from it at once, and not from one shard after the other: there may be hundreds.
        """
        parts: Sequence[Any] = vector.parts  # type: ignore[attr-defined]
        if self.n_shards == 1 or isinstance(parts, _GivenUp):
            return None
        known, whole = getattr(vector, "seen", (None, None))
        if known is not parts:
            whole = _whole_of(parts, self.n_rows)
            vector.seen = parts, whole  # type: ignore[attr-defined]
        return whole

    def _by_shard(self, parts: Sequence[Any], positions: Ints) -> Iterator[tuple[AnyArray, AnyArray | slice, Ints]]:
        """(the part of a vector, which of the positions lie there, and where), shard by shard."""
        if self.n_shards == 1 or not len(positions):
            yield parts[0], slice(None), positions
            return
        ends = [shard.stop for shard in self.shards]
        number = bisect_right(ends, int(positions.min()))
        if positions.max() < ends[number]:  # as rows that lie side by side mostly do
            yield parts[number], slice(None), positions - self.shards[number].start
            self._touched(parts[number], len(positions))
            return
        shards = np.searchsorted(ends, positions, side="right")
        order = np.argsort(shards.astype(np.min_scalar_type(self.n_shards)), kind="stable")  # in linear time, mostly
        cuts = np.flatnonzero(np.diff(shards[order])) + 1
        for some in np.split(order, cuts):
            number = int(shards[some[0]])
            yield parts[number], some, positions[some] - self.shards[number].start
            self._touched(parts[number], len(some))

    def _touched(self, part: AnyArray, count: int) -> None:
        """Count pages of a vector on disk, of which so many entries were looked at."""
        if self._disk is not None:
            self._disk.scratch.touched(min(part.nbytes, _PAGE * count))

    def _touched_at(self, whole: AnyArray, positions: Ints) -> None:
        """Count pages of a vector on disk by the entries that were looked at."""
        if self._disk is not None and whole.strides[0]:
            pages = 1 + int(np.count_nonzero(np.diff(positions // max(1, _PAGE // whole.strides[0]))))
            self._disk.scratch.touched(min(whole.nbytes, _PAGE * pages))

    def read(self, start: int, stop: int) -> Block:
        """Rows start … stop−1, as a view or read."""
        return self.data.rows(start, stop)

    def will_need(self, start: int, stop: int) -> None:
        """Say so to the data set."""
        self.data.will_need(start, stop)

    def runs(self, nbytes: int) -> list[tuple[int, int]]:
        """Runs of whole chunks; of rows in memory, all of them are one."""
        return list(pairwise(self.data.cuts(nbytes)))

    def local(self, features: AnyArray | None = None, *, constant: bool = False) -> Block:
        """All rows as one block; those on disk are read."""
        if features is not None and (len(features) < self.n_features or constant):
            return concatenate([shard.block.features(features, constant=constant) for shard in self.shards])
        if isinstance(self.data, ArrayDataset):
            return self.data.block
        return concatenate(list(self.data.blocks())) if self.memory is None else self.data.rows(0, self.n_rows)


def _whole_of(parts: Sequence[AnyArray], n_rows: int) -> AnyArray | None:
    """The array of which these are views, one behind the other; None where there is none."""
    first, last = parts[0], parts[-1]
    if len(first) and first.strides == (0,):  # one number, which stands for all
        alike = all(part.strides == (0,) and (part == first[0]).all() for part in parts)
        return np.broadcast_to(first[0], n_rows) if alike else None
    whole = first.base
    if not isinstance(whole, np.ndarray) or len(whole) != n_rows or whole.dtype != first.dtype:
        return None
    if not all(part.base is whole and part.strides == whole.strides for part in parts):
        return None
    ends = _is_same(whole[: len(first)], first), _is_same(whole[n_rows - len(last) :], last)
    return whole if all(ends) else None


def _is_same(one: AnyArray, other: AnyArray) -> bool:
    """Whether two views are of the same place."""
    return one.shape == other.shape and one.ctypes.data == other.ctypes.data


def _index_of(data: Dataset) -> StoreIndex | None:
    """The index in whose order the rows of a data set lie."""
    from beeline.index import IndexedRows

    return data.index if isinstance(data, IndexedRows) else None


class _OnDisk:
    """What belongs to rows on disk where memory is limited: whose turn it is to hold rows, and room for vectors."""

    def __init__(self, n_rows: int, memory: int) -> None:
        self.n_rows, self.turns, self.scratch = n_rows, ForkSafeLock(), Scratch(memory // _SCRATCH)

    def keeper(self) -> _Keeper:
        """For the vectors that one verb makes."""
        return _Keeper(self)


class _Keeper:
    """Keeps the vectors that a verb makes in files: one array each, of which shards have views."""

    def __init__(self, disk: _OnDisk) -> None:
        self._disk, self.turns = disk, disk.turns
        self._arrays: dict[int, AnyArray] = {}

    def keep(self, shard: Shard, number: int, made: Any) -> Any:  # noqa: ANN401
        """A view of a file, of an array with an entry a row; what is smaller, or lies there already, stays."""
        scratch = self._disk.scratch
        if not isinstance(made, np.ndarray) or len(made) != shard.n_rows or not made.strides[0] or scratch.holds(made):
            return made
        array = self._arrays.get(number)
        if array is None or array.dtype != made.dtype or array.shape[1:] != made.shape[1:]:
            array = self._arrays[number] = scratch.array((self._disk.n_rows, *made.shape[1:]), made.dtype)
        part = array[shard.start : shard.stop]
        part[:] = made
        scratch.touched(part.nbytes)
        return part

    def rest(self, parts: Sequence[Any]) -> None:
        """Their bytes may leave the memory."""
        self._disk.scratch.touched(_nbytes(parts))


def _nbytes(thing: Any) -> int:  # noqa: ANN401
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    return sum(map(_nbytes, thing)) if isinstance(thing, list | tuple) else 0


def _parts(vectors: Sequence[RowVector]) -> list[Sequence[Any]]:
    return [vector.parts for vector in vectors]  # type: ignore[attr-defined]
