"""Rows cut into chunks and written to Arrow IPC files, with a checksum of every byte."""

from __future__ import annotations

import io
import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from beeline.data.core.block import Block
from beeline.data.store.arrow import pa
from beeline.data.store.chunks import targets_checksum
from beeline.data.store.form import Form, merged
from beeline.data.store.manifest import ChunkTable, PartInfo
from beeline.data.store.statistics import Statistics

__all__ = ["PartWriter"]

_PIECE = 16 << 20  # rows are cut by their sizes, and lists of these should stay small beside the memory budget


class PartWriter:
    """Cuts rows into chunks and writes them to `part-00000.arrow`, `part-00001.arrow` and so on.

    A chunk takes as many rows as fit into `chunk_bytes`, and at least one. Where the cuts fall depends on the rows
    alone and not on the blocks in which they come. Beyond the block at hand, less than two chunks are held.

    Parameters
    ----------
    folder
        Where the files go.
    form
        What the rows look like; blocks are brought into it.
    chunk_bytes, part_bytes
        The size of a chunk, and the size at which a new file is begun.
    """

    def __init__(self, folder: Path, form: Form, chunk_bytes: int, part_bytes: int) -> None:
        self.folder, self.form = folder, form
        self.chunk_bytes, self.part_bytes = chunk_bytes, part_bytes
        self.parts: list[PartInfo] = []
        self.statistics = Statistics()
        self._pending: list[Block] = []
        self._pending_bytes = 0
        self._part: _Part | None = None

    def write(self, block: Block) -> None:
        """Take the rows of a block; nothing of it is kept when this returns."""
        for piece in block.pieces(_PIECE):
            self._write(piece.canonical())  # features increase in a store

    def _write(self, block: Block) -> None:
        ends = self.form.row_ends(block)
        start = 0
        if self._pending:
            start = int(np.searchsorted(ends, self.chunk_bytes - self._pending_bytes, side="right"))
            self._hold(block.rows(0, start), int(ends[start - 1]) if start else 0)
            if start == block.n_rows:
                return
            self._flush()
        while start < block.n_rows:
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + self.chunk_bytes, side="right")))
            if stop >= block.n_rows:  # the next block's rows may still belong to this chunk
                self._hold(block.rows(start, block.n_rows), int(ends[-1]) - before)
                return
            self._write_chunk(block.rows(start, stop))
            start = stop

    def write_chunk(self, block: Block) -> None:
        """Write rows, whose features increase, as one chunk of their own, whatever its size."""
        if self._pending:
            self._flush()
        self._write_chunk(block)

    def close(self) -> list[PartInfo]:
        """Write what is left and bring all files to the disk."""
        if self._pending:
            self._flush()
        self._close_part()
        return self.parts

    def abandon(self) -> None:
        """Close the file at hand without finishing it."""
        if self._part is not None:
            with suppress(OSError):  # a full disk was reported when it was met
                self._part.file.close()
            self._part = None

    def _hold(self, block: Block, n_bytes: int) -> None:
        if block.n_rows:
            # A copy: the rows would otherwise keep the whole block alive, or change when its reader fills it anew.
            self._pending.append(merged([block], self.form))
            self._pending_bytes += n_bytes

    def _flush(self) -> None:
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        self._write_chunk(pending[0] if len(pending) == 1 else merged(pending, self.form))

    def _write_chunk(self, block: Block) -> None:
        if self._part is None:
            self._part = _Part(self.folder / f"part-{len(self.parts):05d}.arrow", self.form.schema)
        if Form.of(block) != self.form:
            block = merged([block], self.form)
        self.statistics.add(block)
        self._part.write(self.form.to_batch(block), block.nnz)
        if self._part.file.size >= self.part_bytes:
            self._close_part()

    def _close_part(self) -> None:
        if self._part is not None:
            self.parts.append(self._part.close())
            self._part = None


class _Part:
    """One Arrow IPC file in the making; each chunk is one record batch."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        # Arrow's magic and the schema go out together with the first batch; their length tells the two apart.
        self._start = 8 + schema.serialize().size
        self.file = _HashingFile(path, self._start)
        self._writer = pa.ipc.new_file(self.file, schema)
        self._table: list[tuple[int, int, int, int, int]] = []
        self._has_targets = len(schema) > 1

    def write(self, batch: pa.RecordBatch, nnz: int) -> None:
        before = max(self.file.size, self._start)
        self.file.chunk = xxhash.xxh3_64()
        self._writer.write_batch(batch)
        length = self.file.size - before
        if length != pa.ipc.get_record_batch_size(batch):
            raise AssertionError(f"{self.path}: Arrow wrote {length} bytes where another number was expected")
        of_targets = targets_checksum(Form.targets(batch))
        self._table.append((batch.num_rows, nnz, length, self.file.chunk.intdigest(), of_targets))

    def close(self) -> PartInfo:
        self.file.frame_until = math.inf
        self._writer.close()
        self.file.sync()
        self.file.close()
        table = [np.array(column, np.uint64) for column in zip(*self._table, strict=True)]
        rows, nnz, nbytes = (column.astype(np.int64) for column in table[:3])
        chunks = ChunkTable(rows, nnz, nbytes, table[3], table[4] if self._has_targets else None)
        return PartInfo(self.path.name, self.file.size, self._start, self.file.frame.intdigest(), chunks)


class _HashingFile(io.RawIOBase):
    """A file that feeds what is written to it to a checksum: the frame's up to a position, then the chunk's."""

    def __init__(self, path: Path, frame_until: float) -> None:
        self.frame, self.chunk = xxhash.xxh3_64(), xxhash.xxh3_64()
        self.frame_until = frame_until
        self.size = 0
        self._file = path.open("wb")

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.size

    def write(self, data: Any) -> int:  # noqa: ANN401
        (self.frame if self.size < self.frame_until else self.chunk).update(data)
        self._file.write(data)
        self.size += len(data)
        return len(data)

    def sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        super().close()
        self._file.close()
