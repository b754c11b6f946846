"""A data set on disk, walked in blocks without ever being in memory as a whole."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from beeline._forks import ForkSafeLock
from beeline._lazy import cached_property
from beeline._sentences import Argument
from beeline._types import AnyArray, Floats, Ints
from beeline._words import count
from beeline.data.core.block import Block, Labels, row_numbers
from beeline.data.core.dataset import Dataset
from beeline.data.core.labels import LabelSets
from beeline.data.options import parse_size
from beeline.data.store.chunks import check_size, missing
from beeline.data.store.form import RowBuffer, merged
from beeline.data.store.manifest import Manifest
from beeline.data.store.mapping import MappedPart
from beeline.exceptions import CorruptStoreError, DataError, ParameterError, StoreError

if TYPE_CHECKING:
    import os

    from beeline.data.store.reading import ChunkReader

__all__ = ["Store", "open_store"]

_MOST_MAPPED = 64  # parts at a time: each holds a file descriptor
_READ_AHEAD = 8 << 20  # bytes that the system is asked to read while the rows before them are worked on
_AHEAD = 32  # chunks whose labels the system is asked for while others are looked at
_NO_BUDGET = 1 << 30  # what a walk without a budget may keep mapped


class Store(Dataset):
    """A data set in a folder of Arrow IPC files.

    The files are mapped into memory; a chunk is a block whose arrays lie in the file, read-only. A chunk's checksum is
    verified when this object reads it first. Threads may read from one store at the same time. Labels, weights and
    query ids are read without the rows.

    Parameters
    ----------
    path
        The folder.
    manifest
        Its manifest.
    memory
        The default budget of `blocks`. Where there is one, chunks are given back to the system in the order in which
        they were read, so that no more than this is mapped; None: the system decides what it keeps.

    Attributes
    ----------
    path, manifest, memory
        As given.
    n_rows, n_features, nnz, recipe
        As of every data set.
    """

    def __init__(self, path: Path, manifest: Manifest, memory: int | None = None) -> None:
        self.path, self.manifest, self.memory = path, manifest, memory
        self.n_rows, self.n_features, self.nnz = manifest.n_rows, manifest.n_features, manifest.nnz
        self.recipe = None
        if manifest.recipe is not None:
            from beeline.data.recipe.recipe import Recipe

            self.recipe = Recipe.from_json(manifest.recipe)
        chunks = [part.chunks for part in manifest.parts]
        self._first_chunk: Ints = np.cumsum([0, *(len(c.rows) for c in chunks)])
        self._chunk_rows: Ints = np.concatenate([c.rows for c in chunks])
        self._chunk_nnz: Ints = np.concatenate([c.nnz for c in chunks])
        self._row_ends: Ints = np.cumsum(self._chunk_rows)
        # In memory, row positions may take 8 bytes where the file has 4.
        self._byte_ends: Ints = np.cumsum(np.concatenate([c.nbytes for c in chunks]) + 4 * self._chunk_rows)
        self._verified = np.zeros(len(self._row_ends), np.bool_)
        self._mapped: OrderedDict[int, MappedPart] = OrderedDict()
        self._first: Store | None = None  # whose folder may be there for as long as it is needed, and no longer
        self._lock = ForkSafeLock()
        self._check_sizes()

    def __repr__(self) -> str:
        form = self.manifest.form
        size = f"{count(self.n_rows, 'row')} × {count(self.n_features, 'feature')}"
        return f"Store({str(self.path)!r}, {size}, {form.layout} {form.value_type})"

    def __reduce__(self) -> tuple[object, ...]:
        return open_store, (self.path, self.memory)

    @property
    def nbytes(self) -> int:
        """Bytes of the files that hold the rows."""
        return sum(part.nbytes for part in self.manifest.parts)

    @property
    def n_chunks(self) -> int:
        """The number of chunks."""
        return len(self._row_ends)

    @property
    def chunk_ends(self) -> Ints:
        """The number of rows up to the end of each chunk."""
        return self._row_ends

    @property
    def byte_ends(self) -> Ints:
        """The number of bytes that rows take in memory up to the end of each chunk."""
        return self._byte_ends

    @property
    def label_statistics(self) -> dict[str, Any] | None:
        """What was counted about the labels; None where there are none."""
        statistics: dict[str, Any] | None = self.manifest.statistics["labels"]
        return statistics

    @property
    def label_counts(self) -> dict[float, int] | None:
        """How many rows have each label, where labels are of a few values; None where they are not."""
        found = self.label_statistics
        if found is None or self.manifest.form.labels != "single" or found["distinct"] is None:
            return None
        return dict(zip(map(float, found["distinct"]["values"]), found["distinct"]["counts"], strict=True))

    @property
    def value_range(self) -> tuple[float, float] | None:
        """The smallest and the largest stored value, as the manifest has them."""
        found: dict[str, Any] | None = self.manifest.statistics["values"]
        return None if found is None else (float(found["min"]), float(found["max"]))

    @property
    def labels(self) -> Labels | None:
        """One label (or label set) a row, read without the rows."""
        if self.manifest.form.labels == "sets":
            sets = (targets["labels"] for targets in self._targets())
            return LabelSets.concatenate([LabelSets(s.indptr, s.stored().copy()) for s in sets])
        return self._column("labels") if self.manifest.form.labels is not None else None

    @property
    def weights(self) -> Floats | None:
        """One weight a row, or None, read without the rows."""
        return self._column("weights") if self.manifest.form.weights else None

    @property
    def queries(self) -> Ints | None:
        """One query id a row, or None, read without the rows."""
        return self._column("queries") if self.manifest.form.queries else None

    def chunk(self, number: int) -> Block:
        """The rows of one chunk: views of the mapped file, or where the budget is small, of memory it was read into."""
        if not 0 <= number < self.n_chunks:
            raise ParameterError(
                f"chunk numbers lie between 0 and {self.n_chunks - 1}, and {number} does not", parameter="number"
            )
        if self._is_larger(self.memory):
            return self._reader.chunk(number)
        part, local = self._locate(number)
        return part.block(local, self.n_features)

    def _is_larger(self, memory: int | None) -> bool:
        """Whether it does not fit a budget; then it is read and not mapped, so that what is held is ours to say."""
        return memory is not None and self.nbytes > memory

    @cached_property
    def _reader(self) -> ChunkReader:
        from beeline.data.store.reading import ChunkReader  # which reads stores

        return ChunkReader(weakref.proxy(self), cached=True)  # no cycle: a store goes when nobody has it any more

    def within(self, memory: int) -> Store:
        """The same store with this budget."""
        if memory == self.memory:
            return self
        store = Store(self.path, self.manifest, memory)
        store._verified, store._first = self._verified, self
        return store

    def blocks(self, memory: int | None = None) -> Iterator[Block]:
        """All rows in order, in blocks of at most `memory` bytes each.

        A chunk that stands alone is a view of the mapped file; several are copied into one block. Where the store is
        larger than the budget, chunks that were passed are given back to the system.

        Parameters
        ----------
        memory
            The budget; None takes the store's own, and where that is None too, every chunk is a block.
        """
        memory = self.memory if memory is None else memory
        if memory is not None and memory < 1:
            raise ParameterError(Argument("memory"), f" must be at least 1 byte, not {memory}")
        walk = self._walk(larger=self._is_larger(_NO_BUDGET if memory is None else memory))
        if memory is None:
            yield from walk
            return
        first = 0
        while first < self.n_chunks:
            last = self._last_within(first, memory)
            if last == first + 1:
                yield from next(walk).pieces(memory)
            else:
                group = slice(first, last)
                rows, nnz = int(self._chunk_rows[group].sum()), int(self._chunk_nnz[group].sum())
                buffer = RowBuffer(self.manifest.form, rows, nnz)
                for block in islice(walk, last - first):
                    buffer.append(block)
                yield buffer.block(self.n_features)
            first = last

    def cuts(self, memory: int) -> list[int]:
        """Row numbers between chunks that cut the rows into runs of about `memory` bytes; reads nothing."""
        cuts, chunk = [0], 0
        while chunk < self.n_chunks:
            chunk = self._last_within(chunk, memory)
            cuts.append(int(self._row_ends[chunk - 1]))
        return cuts

    def rows(self, start: int, stop: int) -> Block:
        """Rows start … stop−1: a view if they lie in one chunk, otherwise a copy."""
        start, stop, _ = slice(start, stop).indices(self.n_rows)
        stop = max(start, stop)
        first = min(int(np.searchsorted(self._row_ends, start, side="right")), self.n_chunks - 1)
        last = max(first, int(np.searchsorted(self._row_ends, stop, side="left")))
        before = int(self._row_ends[first - 1]) if first else 0
        if first == last:
            return self.chunk(first).rows(start - before, stop - before)
        if self._is_larger(self.memory):
            self._reader.will_need(first, last + 1)
        end, n = int(self._row_ends[last - 1]), int(self._chunk_rows[first])
        head, tail = self.chunk(first).rows(start - before, n), self.chunk(last).rows(0, stop - end)
        nnz = head.nnz + int(self._chunk_nnz[first + 1 : last].sum()) + tail.nnz
        buffer = RowBuffer(self.manifest.form, stop - start, nnz)
        buffer.append(head)
        del head
        for number in range(first + 1, last):
            buffer.append(self.chunk(number))
        buffer.append(tail)
        return buffer.block(self.n_features)

    def will_need(self, start: int, stop: int) -> None:
        """Say that rows start … stop−1 are read soon; of mapped files the system keeps what it can by itself."""
        if start < stop and self._is_larger(self.memory):
            first, last = np.searchsorted(self._row_ends, (start, stop - 1), side="right").tolist()
            self._reader.will_need(first, last + 1)

    def gather(self, picked: AnyArray, *, threads: int = 0) -> Block:
        """The picked rows, in that order, as a copy; each chunk they lie in is visited once."""
        picked = row_numbers(picked)
        if not len(picked):
            return self.rows(0, 0)
        if picked.min() < 0 or picked.max() >= self.n_rows:
            raise DataError(f"row numbers must lie between 0 and {self.n_rows - 1}")
        chunks = np.searchsorted(self._row_ends, picked, side="right")
        order = np.argsort(chunks, kind="stable")
        cuts = np.flatnonzero(np.diff(chunks[order])) + 1
        blocks = []
        for some in np.split(order, cuts):
            number = int(chunks[some[0]])
            before = int(self._row_ends[number - 1]) if number else 0
            blocks.append(self.chunk(number).gather(picked[some] - before, threads=threads))
        together = blocks[0] if len(blocks) == 1 else merged(blocks, self.manifest.form)
        if bool(np.all(order[1:] > order[:-1])):
            return together
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return together.gather(back, threads=threads)

    def verify(self) -> None:
        """Read everything and compare it with the manifest; raises `CorruptStoreError` with the first flaw."""
        if Manifest.load(self.path).to_bytes() != self.manifest.to_bytes():
            raise CorruptStoreError(f"{self.path} was replaced by another store after it was opened; open it again")
        self._check_sizes()
        for info in self.manifest.parts:
            part = MappedPart(self.path / info.name, info, self.manifest.form)
            for chunk in range(len(info.chunks.rows)):
                try:
                    part.block(chunk, self.n_features).checked(finite=False, order="increasing")
                except DataError as error:
                    raise CorruptStoreError(f"{part.path}, chunk {chunk}: {error}; convert the source again") from None
                part.drop(chunk)

    def _check_sizes(self) -> None:
        for info in self.manifest.parts:
            path = self.path / info.name
            try:
                check_size(path, info, path.stat().st_size)
            except FileNotFoundError:
                raise missing(path) from None
            except OSError as error:
                raise StoreError(f"{path} cannot be read: {error.strerror}") from error

    def place_of(self, chunk: int) -> tuple[int, int]:
        """The number of the part in which a chunk lies, and the chunk's number there."""
        part = int(np.searchsorted(self._first_chunk, chunk, side="right")) - 1
        return part, chunk - int(self._first_chunk[part])

    def verified_chunks(self, part: int) -> NDArray[np.bool_]:
        """Which chunks of a part have been compared with their checksums; whoever does so takes note of it there."""
        return self._verified[int(self._first_chunk[part]) : int(self._first_chunk[part + 1])]

    def _locate(self, number: int) -> tuple[MappedPart, int]:
        """The part in which a chunk lies, mapped, and the chunk's number there."""
        place, local = self.place_of(number)
        with self._lock:
            part = self._mapped.get(place)
            if part is None:
                info, verified = self.manifest.parts[place], self.verified_chunks(place)
                part = self._mapped[place] = MappedPart(self.path / info.name, info, self.manifest.form, verified)
                if len(self._mapped) > _MOST_MAPPED:  # blocks in use keep their mapping alive by themselves
                    self._mapped.popitem(last=False)
            self._mapped.move_to_end(place)
        return part, local

    def _walk(self, *, larger: bool) -> Iterator[Block]:
        """Every chunk as a block; read into memory of ours if the store is `larger` than may be held."""
        stretch = asked = 0  # where the last stretch begins that was asked for, and where it ends
        for number in range(self.n_chunks):
            while number >= stretch and asked < self.n_chunks:  # so that one more is on its way all the time
                stretch, asked = asked, self._prefetch(asked, larger)
            if larger:
                yield self._reader.chunk(number)
            else:
                part, local = self._locate(number)
                yield part.block(local, self.n_features)

    def _prefetch(self, first: int, larger: bool) -> int:
        """Ask the system to read the next stretch; returns the chunk behind it."""
        last = self._last_within(first, _READ_AHEAD)
        if larger:
            self._reader.will_need(first, last)
            return last
        part, local = self._locate(first)
        last = min(last, first - local + len(part.ends))
        part.will_need(local, local + last - first)
        return last

    def _last_within(self, first: int, memory: int) -> int:
        """The end of the longest run of chunks from the first on that fits into memory; at least one chunk."""
        before = int(self._byte_ends[first - 1]) if first else 0
        return max(first + 1, int(np.searchsorted(self._byte_ends, before + memory, side="right")))

    def _column(self, name: str) -> AnyArray:
        column, row = np.empty(self.n_rows, np.int64 if name == "queries" else np.float64), 0
        for targets in self._targets():
            some = targets[name]
            column[row : row + len(some)] = some
            row += len(some)
        return column

    def _targets(self) -> Iterator[dict[str, Any]]:
        """Labels, weights and queries of every chunk."""
        for number, info in enumerate(self.manifest.parts):
            verified = self.verified_chunks(number)
            part = MappedPart(self.path / info.name, info, self.manifest.form, verified)
            part.in_random_order()
            n_chunks = len(info.chunks.rows)
            for chunk in range(min(_AHEAD, n_chunks)):
                part.will_need_targets(chunk)
            for chunk in range(n_chunks):
                if chunk + _AHEAD < n_chunks:
                    part.will_need_targets(chunk + _AHEAD)
                yield part.targets(chunk)
                part.drop(chunk)


def open_store(path: str | os.PathLike[str], memory: str | int | None = None) -> Store:
    """Open a store.

    Parameters
    ----------
    path
        The folder.
    memory
        The default budget of `Store.blocks`, in bytes or as a text such as `64M`.
    """
    folder = Path(path)
    return Store(folder, Manifest.load(folder), None if memory is None else parse_size(memory))
