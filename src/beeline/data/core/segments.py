"""Rows in segments, in memory or in a file without a name: a data set that grows."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block, Labels, concatenate, row_numbers
from beeline.data.core.dataset import Dataset
from beeline.data.files.scratch import DISK_FULL, nameless_file, scratch_folder
from beeline.exceptions import StoreError

__all__ = ["Segments"]

_LARGEST = 16 << 20  # bytes of a segment that is made of others


class _Spilled:
    """A block whose arrays lie in a file."""

    def __init__(self, file: IO[bytes], block: Block) -> None:
        self.file, self.n_features, self.n_rows, self.nnz = file, block.n_features, block.n_rows, block.nnz
        self.places = [None if a is None else self._write(a) for a in (block.values, block.indptr, block.indices)]
        self.nbytes = block.nbytes

    def _write(self, array: AnyArray) -> tuple[int, tuple[int, ...], np.dtype[np.generic]]:
        offset = self.file.seek(0, os.SEEK_END)
        try:
            self.file.write(np.ascontiguousarray(array).data)
            self.file.flush()
        except OSError as error:
            reason = "the disk is full" if error.errno in DISK_FULL else str(error.strerror)
            advice = "free some space, or say by TMPDIR where there is more"
            raise StoreError(f"{scratch_folder()} cannot be written: {reason}; {advice}") from error
        return offset, array.shape, array.dtype

    def block(self) -> Block:
        """The rows, read."""
        values, indptr, indices = (None if place is None else self._read(*place) for place in self.places)
        assert values is not None
        return Block(values, self.n_features, indptr, indices)

    def _read(self, offset: int, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> AnyArray:
        array: AnyArray = np.empty(shape, dtype)
        view = array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
        done = 0
        while done < len(view):
            done += os.preadv(self.file.fileno(), [view[done:]], offset + done)
        return array


class Segments(Dataset):
    """Rows in the order in which they came, without labels; some of them in a file, as whoever adds them says.

    A segment is read as a whole, so that it should not be larger than what may be held at one time.
    """

    recipe = None

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self._segments: list[Block | _Spilled] = []
        self._file: IO[bytes] | None = None

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """How many rows there are."""
        return sum(segment.n_rows for segment in self._segments)

    @property
    def nnz(self) -> int:  # type: ignore[override]
        """How many entries are stored."""
        return sum(segment.nnz for segment in self._segments)

    @property
    def nbytes(self) -> int:
        """Bytes of rows in memory."""
        return sum(segment.nbytes for segment in self._segments if isinstance(segment, Block))

    @property
    def single(self) -> Block | None:
        """All rows, where they are one segment in memory; None where they are not."""
        return self._segments[0] if len(self._segments) == 1 and isinstance(self._segments[0], Block) else None

    def add(self, block: Block) -> None:
        """Add rows in memory, behind all others."""
        if not block.n_rows:
            return
        self._segments.append(Block(block.values, block.n_features, block.indptr, block.indices))
        # Neighbours of about the same size become one, so that there are few, and none is copied often.
        while len(self._segments) > 1:
            last, before = self._segments[-1], self._segments[-2]
            if not isinstance(last, Block) or not isinstance(before, Block) or last.nbytes < before.nbytes / 2:
                break
            if last.nbytes + before.nbytes > _LARGEST:
                break
            self._segments[-2:] = [concatenate([before, last])]

    def spill(self, allowed: int) -> None:
        """Bring rows to a file, the first ones first, until those in memory take no more bytes than allowed."""
        held = self.nbytes
        for k, segment in enumerate(self._segments):
            if held <= allowed:
                return
            if isinstance(segment, Block):
                held -= segment.nbytes
                self._segments[k] = _Spilled(self._scratch(), segment)

    def _scratch(self) -> IO[bytes]:
        if self._file is None:
            self._file = nameless_file()
            weakref.finalize(self, self._file.close)
        return self._file

    def layout(self) -> list[list[Any]]:
        """Of each segment how many rows it has, whether it lies in the file, and the types of its numbers."""
        return [[segment.n_rows, isinstance(segment, _Spilled), *_types(segment)] for segment in self._segments]

    @classmethod
    def laid_out(cls, n_features: int, layout: list[list[Any]], data: Dataset, picked: Ints) -> Segments:
        """The picked rows of a data set, in segments of this layout."""
        made, first = cls(n_features), 0
        for n_rows, in_file, *types in layout:
            block = data.gather(picked[first : first + n_rows])
            arrays = zip((block.values, block.indptr, block.indices), types, strict=True)
            values, indptr, indices = (None if a is None else a.astype(kind, copy=False) for a, kind in arrays)
            assert values is not None
            typed = Block(values, n_features, indptr, indices)
            made._segments.append(_Spilled(made._scratch(), typed) if in_file else typed)
            first += n_rows
        return made

    def blocks(self, memory: int | None = None) -> Iterator[Block]:
        """All rows, segment by segment."""
        return (segment if isinstance(segment, Block) else segment.block() for segment in self._segments)

    def cuts(self, memory: int) -> list[int]:
        """Between segments, where neighbours would take more; no rows at all are one run, as of every data set."""
        cuts, held = [0, 0], 0
        for segment in self._segments:
            if held and held + segment.nbytes > memory:
                cuts.append(cuts[-1])
                held = 0
            cuts[-1] += segment.n_rows
            held += segment.nbytes
        return cuts

    def rows(self, start: int, stop: int) -> Block:
        """Rows start … stop−1: of one segment as they are, else a copy."""
        first, pieces = 0, []
        for segment in self._segments:
            last = first + segment.n_rows
            if first < stop and start < last:
                block = segment if isinstance(segment, Block) else segment.block()
                pieces.append(block.rows(max(start - first, 0), min(stop, last) - first))
            first = last
        if not pieces:
            return Block(np.zeros((0, self.n_features)), self.n_features)
        return pieces[0] if len(pieces) == 1 else concatenate(pieces)

    def gather(self, picked: AnyArray, *, threads: int = 0) -> Block:
        """The picked rows, in that order, as a copy; of each segment only those are copied."""
        numbers = row_numbers(picked)
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum([segment.n_rows for segment in self._segments])
        cuts = np.searchsorted(numbers[order], ends)
        pieces, first, begin = [], 0, 0
        for segment, end, cut in zip(self._segments, ends.tolist(), cuts.tolist(), strict=True):
            if cut > begin:
                block = segment if isinstance(segment, Block) else segment.block()
                pieces.append(block.gather(numbers[order[begin:cut]] - first, threads=threads))
            first, begin = end, cut
        if begin < len(numbers) or not pieces:  # where there is no such row, which is what it says
            return self.rows(0, self.n_rows).gather(numbers)
        rows = pieces[0] if len(pieces) == 1 else concatenate(pieces)
        return rows if np.all(np.diff(order) == 1) else rows.gather(np.argsort(order), threads=threads)

    def keep(self, rows: AnyArray) -> None:
        """Keep these rows only, by a mark for each."""
        first, kept = 0, list[Block | _Spilled]()
        for segment in self._segments:
            block = segment if isinstance(segment, Block) else segment.block()
            some = np.flatnonzero(rows[first : first + block.n_rows])
            first += block.n_rows
            if len(some):
                part = block.gather(some)
                kept.append(part if isinstance(segment, Block) else _Spilled(self._scratch(), part))
        self._segments = kept

    @property
    def labels(self) -> Labels | None:
        """None."""
        return None

    @property
    def weights(self) -> Floats | None:
        """None."""
        return None

    @property
    def queries(self) -> Ints | None:
        """None."""
        return None


def _types(segment: Block | _Spilled) -> list[str | None]:
    """The types of values, positions and indices."""
    if isinstance(segment, _Spilled):
        return [None if place is None else place[2].name for place in segment.places]
    return [None if a is None else a.dtype.name for a in (segment.values, segment.indptr, segment.indices)]
