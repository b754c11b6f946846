"""A seeded random permutation of rows that do not fit into memory.

Every row gets a 64-bit key by a seeded one-to-one mixing of its number, and the rows are put in the order of their
keys. That order is fixed by the seed and the number of rows: it does not depend on how much memory there is, on the
blocks in which the rows came, or on the number of threads. Rows with query ids get the key of their query, so that a
query stays together and in order.

Rows that do not fit into a quarter of the memory are scattered to files by ranges of keys; each file is then loaded,
sorted and passed on. A file that is too large is scattered again, by narrower ranges. So a row is written and read
once where the data are at most `_BUCKETS / 2` times the memory, twice up to `_BUCKETS² / 2` times, and so on.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beeline._types import AnyArray
from beeline.data.core.block import Block
from beeline.data.core.labels import LabelSets
from beeline.data.store.form import Form, RowBuffer, from_arrow, merged, to_arrow

__all__ = ["Shuffler", "keys_of"]

Keys = NDArray[np.uint64]

_BUCKETS = 64
_PIECE = 1 << 20
_LAST_KEY = 2**64 - 1


def keys_of(units: AnyArray, seed: int) -> Keys:
    """A 64-bit key for each unit (row number or query id); different units get different keys."""
    key: Keys = units.astype(np.int64).view(np.uint64).copy()
    # Each round adds a constant drawn from the seed, then mixes every bit into every other, reversibly.
    for constant in np.random.SeedSequence(seed).generate_state(2, np.uint64):
        key += constant
        key ^= key >> np.uint64(30)
        key *= np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(27)
        key *= np.uint64(0x94D049BB133111EB)
        key ^= key >> np.uint64(31)
    return key


class Shuffler:
    """Takes rows in any number of blocks and gives them back in random order.

    Parameters
    ----------
    folder
        A folder for the files in between; made when needed, removed in the end.
    seed
        Picks the permutation.
    memory
        Bytes that may be held beyond the block at hand.
    """

    def __init__(self, folder: Path, seed: int, memory: int) -> None:
        self.seed, self.memory = seed, memory
        self._folder = folder
        self._n_rows = 0
        self._held: list[tuple[Block, Keys]] = []
        self._scatter: _Scatter | None = None

    def write(self, block: Block) -> None:
        """Take the rows of a block; nothing of it is kept but copies, as far as the memory allows."""
        for piece in block.pieces(max(1, self.memory // 4)):  # scattering copies the rows
            keys = self._keys(piece)
            if self._scatter is not None:
                self._scatter.write(piece, keys)
                continue
            self._held.append((merged([piece], Form.of(piece)), keys))
            if sum(b.nbytes + k.nbytes for b, k in self._held) > self.memory // 4:
                self._spill()

    def _keys(self, block: Block) -> Keys:
        first, self._n_rows = self._n_rows, self._n_rows + block.n_rows
        units = block.queries if block.queries is not None else np.arange(first, self._n_rows, dtype=np.int64)
        return keys_of(units, self.seed)

    def _spill(self) -> None:
        self._scatter = _Scatter(self._folder, 0, _LAST_KEY, _BUCKETS)
        while self._held:
            self._scatter.write(*self._held.pop(0))

    def sorted_blocks(self, form: Form) -> Iterator[Block]:
        """All rows in the order of their keys, brought into one form; can be walked once."""
        if self._scatter is not None:
            yield from self._sorted(self._scatter, form)
        else:
            nnz = sum(block.nnz for block, _ in self._held)
            yield from _in_order(self._held, form, self._n_rows, nnz)
        self.discard()

    def discard(self) -> None:
        """Remove all files."""
        self._held.clear()
        if self._scatter is not None:
            self._scatter.abandon()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _sorted(self, scatter: _Scatter, form: Form) -> Iterator[Block]:
        scatter.close()
        for bucket in scatter.buckets:
            if bucket is None:
                continue
            size = bucket.size_in(form)
            if size <= self.memory // 2:
                yield from _in_order(bucket.records(), form, bucket.n_rows, bucket.nnz)
            elif bucket.first_key == bucket.last_key:  # one row, or one query: in order as it lies
                yield from (block for block, _ in bucket.records())
            else:
                wanted = min(_BUCKETS, 1 << (4 * size // self.memory).bit_length())
                finer = _Scatter(bucket.path.with_suffix(""), bucket.first_key, bucket.last_key, wanted)
                try:
                    for block, keys in bucket.records():
                        finer.write(block, keys)
                except BaseException:
                    finer.abandon()
                    raise
                bucket.path.unlink()
                yield from self._sorted(finer, form)
                continue
            bucket.path.unlink()


class _Scatter:
    """Rows spread over files by ranges of keys between the first and the last key."""

    def __init__(self, folder: Path, first: int, last: int, wanted: int) -> None:
        self._folder, self._first = folder, np.uint64(first)
        bits = (last - first).bit_length()
        self._shift = np.uint64(max(0, bits - (wanted.bit_length() - 1)))
        count = ((last - first) >> int(self._shift)) + 1
        self.buckets: list[_Bucket | None] = [None] * count
        folder.mkdir()

    def write(self, block: Block, keys: Keys) -> None:
        places = ((keys - self._first) >> self._shift).astype(np.uint16)  # numpy sorts these in linear time
        order = np.argsort(places, kind="stable")
        block, keys, places = block.gather(order), keys[order], places[order]
        cuts = np.concatenate([[0], np.flatnonzero(np.diff(places)) + 1, [len(places)]])
        for start, stop in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            place = int(places[start])
            bucket = self.buckets[place]
            if bucket is None:
                bucket = self.buckets[place] = _Bucket(self._folder / f"{place:05d}.rows")
            bucket.write(block.rows(start, stop), keys[start:stop])

    def close(self) -> None:
        for bucket in self.buckets:
            if bucket is not None:
                bucket.close()

    def abandon(self) -> None:
        for bucket in self.buckets:
            if bucket is not None:
                with suppress(OSError):  # a full disk was reported when it was met
                    bucket.close()


class _Bucket:
    """A file of rows with their keys: an Arrow stream, and one more behind it each time the rows change their form."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_rows = self.nnz = self.n_labels = self.n_features = 0
        self.first_key, self.last_key = _LAST_KEY, 0
        self._forms: list[Form] = []
        self._file: BinaryIO = path.open("wb")
        self._stream: pa.RecordBatchStreamWriter | None = None

    def write(self, block: Block, keys: Keys) -> None:
        form = Form.of(block)
        schema = form.schema.append(pa.field("key", pa.uint64(), nullable=False))
        if not self._forms or form != self._forms[-1]:
            self._end_stream()
            self._stream = pa.ipc.new_stream(self._file, schema)
            self._forms.append(form)
        assert self._stream is not None
        columns = [*form.to_batch(block).columns, to_arrow(keys)]
        self._stream.write_batch(pa.record_batch(columns, schema=schema))
        self.n_rows, self.nnz = self.n_rows + block.n_rows, self.nnz + block.nnz
        self.n_labels += len(block.labels.stored()) if isinstance(block.labels, LabelSets) else 0
        self.n_features = max(self.n_features, block.n_features)
        self.first_key = min(self.first_key, int(keys.min()))
        self.last_key = max(self.last_key, int(keys.max()))

    def close(self) -> None:
        try:
            self._end_stream()
        finally:
            self._file.close()

    def _end_stream(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            stream.close()

    def size_in(self, form: Form) -> int:
        """Bytes that the rows take while they are put in order."""
        columns = (form.labels is not None) + form.weights + form.queries
        a_row = 8 * (3 + columns)  # key, order, position, and what goes with the row
        entries = self.nnz if form.width is None else self.n_rows * form.width
        return self.n_rows * a_row + entries * form.entry_bytes + self.n_labels * 16

    def records(self) -> Iterator[tuple[Block, Keys]]:
        """The rows as they were written."""
        with pa.OSFile(str(self.path)) as file:
            for form in self._forms:
                with pa.ipc.open_stream(file) as stream:
                    for batch in stream:
                        yield (
                            form.from_batch(batch, self.n_features),
                            from_arrow(batch.column("key").buffers()[1], "uint64", batch.num_rows),
                        )


def _in_order(records: Iterable[tuple[Block, Keys]], form: Form, n_rows: int, nnz: int) -> Iterator[Block]:
    """All rows in the order of their keys, a part at a time: they are in memory once, and one part twice."""
    buffer, keys = RowBuffer(form, n_rows, nnz), np.empty(n_rows, np.uint64)
    row = n_features = 0
    for block, some in records:
        buffer.append(block)
        keys[row : row + len(some)] = some
        row, n_features = row + len(some), max(n_features, block.n_features)
    loaded = buffer.block(n_features)
    order = np.argsort(keys, kind="stable")  # rows of one query share a key and keep their order
    parts = min(16, loaded.nbytes // _PIECE + 1)
    step = -(-n_rows // parts)
    for start in range(0, n_rows, step):
        yield loaded.gather(order[start : start + step])
