"""Rows spread over files, each with a key: what does not fit the memory together fits it file by file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from beeline._types import AnyArray
from beeline.data.core.block import Block
from beeline.data.core.labels import LabelSets
from beeline.data.store.arrow import pa
from beeline.data.store.form import Form, RowBuffer, from_arrow, to_arrow

__all__ = ["Bucket", "Buckets", "Keys", "loaded"]

Keys = NDArray[np.uint64]

_LAST_KEY = 2**64 - 1


class Buckets:
    """Files in a folder, among which rows are spread.

    Parameters
    ----------
    folder
        Is made; whoever made the buckets removes it.
    count
        How many files there may be.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self.buckets: list[Bucket | None] = [None] * count
        folder.mkdir()

    def write(self, block: Block, keys: Keys, places: AnyArray) -> None:
        """Add rows, with a key each, to the files whose numbers are given."""
        places = places.astype(np.uint16, copy=False)  # numpy sorts these in linear time
        order = np.argsort(places, kind="stable")
        block, keys, places = block.gather(order), keys[order], places[order]
        cuts = np.concatenate([[0], np.flatnonzero(np.diff(places)) + 1, [len(places)]])
        for start, stop in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            place = int(places[start])
            bucket = self.buckets[place]
            if bucket is None:
                bucket = self.buckets[place] = Bucket(self._folder / f"{place:05d}.rows")
            bucket.write(block.rows(start, stop), keys[start:stop])

    def close(self) -> None:
        """End all files."""
        for bucket in self.buckets:
            if bucket is not None:
                bucket.close()

    def abandon(self) -> None:
        """End all files, whatever their disk says."""
        for bucket in self.buckets:
            if bucket is not None:
                with suppress(OSError):  # a full disk was reported when it was met
                    bucket.close()


class Bucket:
    """A file of rows with their keys: an Arrow stream, and one more behind it each time the rows change their form."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_rows = self.nnz = self.n_labels = self.n_features = 0
        self.first_key, self.last_key = _LAST_KEY, 0
        self._forms: list[Form] = []
        self._file: BinaryIO = path.open("wb")
        self._stream: pa.RecordBatchStreamWriter | None = None

    def write(self, block: Block, keys: Keys) -> None:
        """Add rows, with a key each."""
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
        """End the file."""
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

    def loaded(self, form: Form) -> tuple[Block, Keys]:
        """All rows, brought into one form, and their keys, in memory."""
        return loaded(self.records(), form, self.n_rows, self.nnz)


def loaded(records: Iterable[tuple[Block, Keys]], form: Form, n_rows: int, nnz: int) -> tuple[Block, Keys]:
    """So many rows, brought into one form, and their keys."""
    buffer, keys = RowBuffer(form, n_rows, nnz), np.empty(n_rows, np.uint64)
    row = n_features = 0
    for block, some in records:
        buffer.append(block)
        keys[row : row + len(some)] = some
        row, n_features = row + len(some), max(n_features, block.n_features)
    return buffer.block(n_features), keys
