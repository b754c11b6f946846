"""Chunks of a store by explicit reads, into memory of ours.

Mapped pages are the system's: it decides how many stay, and a file that shrinks while it is mapped ends the process.
Here what is held is counted, and a file that shrinks is an error with its name. What is wanted is told to the system
some reads ahead, so that the disk always has several to do; what was read is not kept in the system's cache too.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beeline._forks import ForkSafeLock
from beeline._types import AnyArray
from beeline.data.core.block import Block
from beeline.data.store.arrow import pa
from beeline.data.store.chunks import PartChunks, check_size, missing
from beeline.data.store.form import Form
from beeline.data.store.manifest import PartInfo
from beeline.data.store.store import Store
from beeline.exceptions import CorruptStoreError, StoreError

__all__ = ["ChunkReader", "read_speed"]

_AHEAD = 64  # runs of chunks that the system is asked for before they are read
_MOST_IN_RUN = 64  # chunks that one call reads
_TO_MEASURE = 32 << 20  # bytes


class ChunkReader:
    """Reads chunks by their numbers; those that were read last are kept, as far as there is room.

    Parameters
    ----------
    store
        Whose chunks they are.
    room
        Bytes for chunks that are kept. It may be changed at any time.
    cached
        Whether the system may keep what was read, as far as it has memory that nobody needs: for rows that are read
        again and again.

    Attributes
    ----------
    bytes_read, hits, misses
        Bytes that were read so far, how many chunks were still there, and how many were read.
    """

    def __init__(self, store: Store, room: int = 0, *, cached: bool = False) -> None:
        self.store, self._cached = store, cached
        self.bytes_read = self.hits = self.misses = 0
        self._room, self._held = room, 0
        self._kept: OrderedDict[int, Block] = OrderedDict()
        self._parts: dict[int, _OpenPart] = {}
        self._lock = ForkSafeLock()

    @property
    def room(self) -> int:
        """Bytes for chunks that are kept."""
        return self._room

    @room.setter
    def room(self, room: int) -> None:
        self._room = room
        with self._lock:
            self._make_room()

    def read(self, chunks: Sequence[int]) -> list[Block]:
        """The rows of these chunks, in their order."""
        with self._lock:
            wanted = sorted({chunk for chunk in chunks if chunk not in self._kept})
            found = {chunk: self._kept[chunk] for chunk in chunks if chunk in self._kept}
            self.misses, self.hits = self.misses + len(wanted), self.hits + len(found)
            for chunk in found:
                self._kept.move_to_end(chunk)
            for chunk, block in self._fresh(wanted):
                found[chunk] = self._kept[chunk] = block
                self._held += self._size(chunk)
            self._make_room()
            return [found[chunk] for chunk in chunks]

    def chunk(self, number: int) -> Block:
        """The rows of one chunk, read now, and not kept."""
        part, local = self._place(number)
        (piece,) = part.read(local, local + 1)
        return part.rows_of(local, pa.py_buffer(piece), self.store.n_features)

    def will_need(self, first: int, last: int) -> None:
        """Tell the system that chunks first … last−1 are read soon."""
        while first < last:
            part, local = self._place(first)
            count = min(last - first, len(part.ends) - local)
            part.will_need(local, local + count)
            first += count

    def snapshot(self) -> dict[str, Any]:
        """The numbers of the chunks that are kept, the one that was asked for last behind, and what was counted."""
        with self._lock:
            return {"kept": list(self._kept), "counters": [self.bytes_read, self.hits, self.misses]}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Have read what another reader had by its snapshot."""
        self.read(snapshot["kept"])
        with self._lock:
            for chunk in snapshot["kept"]:
                self._kept.move_to_end(chunk)
            self.bytes_read, self.hits, self.misses = snapshot["counters"]

    def close(self) -> None:
        """Close the files; what was read stays as it is."""
        for part in self._parts.values():
            part.close()
        self._parts.clear()

    def __del__(self) -> None:
        self.close()

    def _size(self, chunk: int) -> int:
        part, local = self._place(chunk)
        return int(part.info.chunks.nbytes[local])

    def _make_room(self) -> None:
        while self._held > self._room and self._kept:
            chunk, _ = self._kept.popitem(last=False)
            self._held -= self._size(chunk)

    def _place(self, chunk: int) -> tuple[_OpenPart, int]:
        """The part in which a chunk lies, open, and the chunk's number there."""
        number, local = self.store.place_of(chunk)
        if number not in self._parts:
            info, verified = self.store.manifest.parts[number], self.store.verified_chunks(number)
            path = self.store.path / info.name
            opened = _OpenPart(path, info, self.store.manifest.form, verified, cached=self._cached)
            return self._parts.setdefault(number, opened), local
        return self._parts[number], local

    def _fresh(self, chunks: list[int]) -> Iterator[tuple[int, Block]]:
        """Chunks, in increasing order, with their rows, read now."""
        runs = [(self._place(run[0]), run) for run in self._runs(chunks)]
        coming = iter(runs)
        for (part, local), run in islice(coming, _AHEAD):
            part.will_need(local, local + len(run))
        for (part, local), run in runs:
            for (following, first), later in islice(coming, 1):
                following.will_need(first, first + len(later))
            pieces = part.read(local, local + len(run))
            for k, (chunk, piece) in enumerate(zip(run, pieces, strict=True)):
                self.bytes_read += len(piece)
                yield chunk, part.rows_of(local + k, pa.py_buffer(piece), self.store.n_features)

    def _runs(self, chunks: list[int]) -> Iterator[list[int]]:
        """Neighbours in one file."""
        run: list[int] = []
        for chunk in chunks:
            joins = run and chunk == run[-1] + 1 and len(run) < _MOST_IN_RUN
            if run and not (joins and self.store.place_of(chunk)[0] == self.store.place_of(run[0])[0]):
                yield run
                run = []
            run.append(chunk)
        if run:
            yield run


def read_speed(store: Store) -> float:
    """About how many bytes a second can be read from a store, by reading a piece in its middle."""
    first = store.n_chunks // 2
    before = int(store.byte_ends[first - 1]) if first else 0
    last = max(first + 1, int(np.searchsorted(store.byte_ends, before + _TO_MEASURE, side="right")))
    reader, clock = ChunkReader(store), time.perf_counter()
    for begin in range(first, min(last, store.n_chunks), _MOST_IN_RUN):
        reader.read(range(begin, min(begin + _MOST_IN_RUN, last, store.n_chunks)))
    return reader.bytes_read / max(time.perf_counter() - clock, 1e-9)


class _OpenPart(PartChunks):
    """A part whose chunks are read."""

    def __init__(
        self, path: Path, info: PartInfo, form: Form, verified: NDArray[np.bool_], *, cached: bool = False
    ) -> None:
        super().__init__(path, info, form, verified)
        self._cached = cached
        try:
            self._file = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            raise missing(path) from None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error
        check_size(path, self.info, os.fstat(self._file).st_size)
        os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_RANDOM)

    def close(self) -> None:
        """Close the file; once."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()

    def will_need(self, first: int, last: int) -> None:
        """Tell the system that chunks first … last−1 are read soon."""
        start = int(self.starts[first])
        os.posix_fadvise(self._file, start, int(self.ends[last - 1]) - start, os.POSIX_FADV_WILLNEED)

    def read(self, first: int, last: int) -> list[AnyArray]:
        """The bytes of chunks first … last−1, each in memory of its own."""
        pieces = [np.empty(int(nbytes), np.uint8) for nbytes in self.info.chunks.nbytes[first:last]]
        start = at = int(self.starts[first])
        end = int(self.ends[last - 1])
        waiting = [piece.data for piece in pieces]
        while at < end:
            try:
                count = os.preadv(self._file, waiting, at)
            except OSError as error:
                raise StoreError(f"{self.path} cannot be read: {error.strerror}") from error
            if not count:
                raise CorruptStoreError(
                    f"{self.path} was truncated while it was read: it ends at byte {at:,}; convert the source again"
                )
            at += count
            waiting = _behind(waiting, count)
        if not self._cached:
            os.posix_fadvise(self._file, start, end - start, os.POSIX_FADV_DONTNEED)
        return pieces


def _behind(views: list[memoryview], count: int) -> list[memoryview]:
    """What is left of some memory behind its first bytes."""
    for k, view in enumerate(views):
        if count < len(view):
            return [view[count:], *views[k + 1 :]]
        count -= len(view)
    return []
