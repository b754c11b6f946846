"""What the rows of a store look like, and their way into Arrow record batches and back.

Sparse rows are a list of (index, value) structs. Arrow keeps the fields of a struct in buffers of their own and the
list's offsets in another, so that a record batch is a CSR matrix as it lies: nothing is copied on the way out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from beeline._types import AnyArray, Ints
from beeline.data.core.block import Block
from beeline.data.core.labels import LabelSets
from beeline.data.store.arrow import pa
from beeline.exceptions import DataError

__all__ = ["Form", "RowBuffer", "from_arrow", "merged", "to_arrow"]

_MOST_ENTRIES = 2**31 - 1  # of one chunk: list offsets are int32


@dataclass(frozen=True)
class Form:
    """The columns of a store and their types.

    Attributes
    ----------
    layout
        Whether rows are stored as (index, value) pairs or in full.
    value_type, index_type
        Types of the entries; `index_type` is None for dense rows.
    width
        The length of a dense row; None for sparse rows, which carry no length.
    labels
        One label a row, a set of labels a row, or None.
    weights, queries
        Whether rows have weights and query ids.
    """

    layout: Literal["sparse", "dense"]
    value_type: str
    index_type: str | None
    width: int | None
    labels: Literal["single", "sets"] | None
    weights: bool
    queries: bool

    @staticmethod
    def of(block: Block) -> Form:
        """The form in which a block would be stored as it is."""
        sparse = block.indices is not None
        return Form(
            layout="sparse" if sparse else "dense",
            value_type=str(block.values.dtype),
            index_type=str(block.indices.dtype) if block.indices is not None else None,
            width=None if sparse else block.n_features,
            labels=None if block.labels is None else "sets" if isinstance(block.labels, LabelSets) else "single",
            weights=block.weights is not None,
            queries=block.queries is not None,
        )

    def joined(self, other: Form) -> Form:
        """The narrowest form that holds the rows of both exactly."""
        if self == other:
            return self
        for name in ("layout", "labels", "weights", "queries"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                raise DataError(
                    f"blocks of one store must agree in {name}: {_say(ours)} came first, then {_say(theirs)}"
                )
        index_type = None
        if self.index_type is not None and other.index_type is not None:
            index_type = str(np.promote_types(self.index_type, other.index_type))
        return replace(
            self,
            value_type=str(np.promote_types(self.value_type, other.value_type)),
            index_type=index_type,
            width=None if self.width is None or other.width is None else max(self.width, other.width),
        )

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema; nothing in a store is null."""
        return _schema(self)

    @property
    def entry_bytes(self) -> int:
        """Bytes of one stored entry."""
        index = np.dtype(self.index_type).itemsize if self.index_type is not None else 0
        return np.dtype(self.value_type).itemsize + index

    def row_ends(self, block: Block) -> Ints:
        """The number of bytes from the block's first row to the end of each row, as stored."""
        fixed = 8 * ((self.labels == "single") + self.weights + self.queries)
        if self.width is not None:
            fixed += self.width * self.entry_bytes
        elif block.indptr is not None:
            fixed += 4
        ends = np.arange(1, block.n_rows + 1, dtype=np.int64) * fixed
        if block.indptr is not None:
            ends += (block.indptr[1:].astype(np.int64) - int(block.indptr[0])) * self.entry_bytes
        if isinstance(block.labels, LabelSets):
            ends += (block.labels.indptr[1:] - block.labels.indptr[0]) * 8 + np.arange(1, block.n_rows + 1) * 4
        return ends

    def to_batch(self, block: Block) -> pa.RecordBatch:
        """A record batch of the block's rows; the block must have this form."""
        columns = [self._row_column(block)]
        if isinstance(block.labels, LabelSets):
            sets = block.labels
            columns.append(_list_array(self.schema.field("labels").type, sets.indptr, to_arrow(sets.stored())))
        elif block.labels is not None:
            columns.append(to_arrow(block.labels))
        columns += [to_arrow(column) for column in (block.weights, block.queries) if column is not None]
        return pa.record_batch(columns, schema=self.schema)

    def _row_column(self, block: Block) -> pa.Array:
        row = self.schema.field("row").type
        if block.indptr is None or block.indices is None:
            flat = to_arrow(np.ascontiguousarray(block.values).reshape(-1))
            return pa.Array.from_buffers(row, block.n_rows, [None], children=[flat])
        start, stop = int(block.indptr[0]), int(block.indptr[-1])
        if stop - start > _MOST_ENTRIES:
            raise DataError(f"a row of {stop - start:,} entries is longer than the {_MOST_ENTRIES:,} a store can hold")
        entries = [to_arrow(block.indices[start:stop]), to_arrow(block.values[start:stop])]
        children = pa.StructArray.from_arrays(entries, fields=list(row.value_type))
        return _list_array(row, block.indptr, children)

    @staticmethod
    def targets(batch: pa.RecordBatch) -> dict[str, Any]:
        """Labels, weights and queries of a record batch, as views of its buffers; no byte of the rows is touched."""
        n_rows = batch.num_rows
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        targets: dict[str, Any] = {}
        if "label" in columns:
            targets["labels"] = from_arrow(columns["label"].buffers()[1], "float64", n_rows)
        if "labels" in columns:
            buffers = columns["labels"].buffers()
            positions = from_arrow(buffers[1], "int32", n_rows + 1).astype(np.int64)
            targets["labels"] = LabelSets(positions, from_arrow(buffers[3], "float64", int(positions[-1])))
        if "weight" in columns:
            targets["weights"] = from_arrow(columns["weight"].buffers()[1], "float64", n_rows)
        if "query" in columns:
            targets["queries"] = from_arrow(columns["query"].buffers()[1], "int64", n_rows)
        return targets

    def from_batch(self, batch: pa.RecordBatch, n_features: int) -> Block:
        """The rows of a record batch, as views of its buffers; dense rows know their number of features."""
        n_rows, targets = batch.num_rows, self.targets(batch)
        buffers = batch.column(batch.schema.get_field_index("row")).buffers()
        if self.width is not None:
            values = from_arrow(buffers[-1], self.value_type, n_rows * self.width)
            return Block(values.reshape(n_rows, self.width), self.width, **targets)
        indptr = from_arrow(buffers[1], "int32", n_rows + 1)
        nnz = int(indptr[-1])
        indices, values = from_arrow(buffers[4], self.index_type, nnz), from_arrow(buffers[6], self.value_type, nnz)
        return Block(values, n_features, indptr, indices, **targets)

    def to_json(self) -> dict[str, Any]:
        """The form as plain JSON; the width of dense rows is the store's number of features."""
        names = ("layout", "value_type", "index_type", "labels", "weights", "queries")
        return {name: getattr(self, name) for name in names}

    @staticmethod
    def from_json(document: dict[str, Any], n_features: int) -> Form:
        """The form that `to_json` described."""
        width = n_features if document["layout"] == "dense" else None
        return Form(width=width, **document)


class RowBuffer:
    """Room for a known number of rows, filled block by block; the types may widen on the way in.

    Parameters
    ----------
    form
        What the rows look like.
    n_rows, nnz
        How many rows and entries will come.
    """

    def __init__(self, form: Form, n_rows: int, nnz: int) -> None:
        self.form = form
        self._row = self._entry = 0
        self._sets: list[LabelSets] = []
        self._labels = np.empty(n_rows) if form.labels == "single" else None
        self._weights = np.empty(n_rows) if form.weights else None
        self._queries = np.empty(n_rows, np.int64) if form.queries else None
        self._indptr: AnyArray | None = None
        self._indices: AnyArray | None = None
        self._values: AnyArray
        if form.width is not None:
            self._values = np.zeros((n_rows, form.width), form.value_type)
            return
        self._indptr = np.zeros(n_rows + 1, np.int32 if nnz <= _MOST_ENTRIES else np.int64)
        self._indices = np.empty(nnz, form.index_type)
        self._values = np.empty(nnz, form.value_type)

    def append(self, block: Block) -> None:
        """Copy the rows of a block behind those that are there."""
        rows = slice(self._row, self._row + block.n_rows)
        if isinstance(block.labels, LabelSets):
            labels = block.labels
            self._sets.append(LabelSets(labels.indptr - labels.indptr[0], labels.stored().copy()))
        elif self._labels is not None and block.labels is not None:
            self._labels[rows] = block.labels
        if self._weights is not None and block.weights is not None:
            self._weights[rows] = block.weights
        if self._queries is not None and block.queries is not None:
            self._queries[rows] = block.queries
        if self._indptr is None or self._indices is None or block.indptr is None or block.indices is None:
            self._values[rows, : block.n_features] = block.values
        else:
            start, stop = int(block.indptr[0]), int(block.indptr[-1])
            entries = slice(self._entry, self._entry + stop - start)
            self._indptr[rows.start + 1 : rows.stop + 1] = block.indptr[1:].astype(np.int64) + (self._entry - start)
            self._indices[entries] = block.indices[start:stop]
            self._values[entries] = block.values[start:stop]
            self._entry = entries.stop
        self._row = rows.stop

    def block(self, n_features: int) -> Block:
        """All rows; the buffer's own memory."""
        labels = LabelSets.concatenate(self._sets) if self.form.labels == "sets" else self._labels
        width = self.form.width if self.form.width is not None else n_features
        return Block(self._values, width, self._indptr, self._indices, labels, self._weights, self._queries)


def merged(blocks: Sequence[Block], form: Form) -> Block:
    """One block of all rows, in the given form, as a copy."""
    buffer = RowBuffer(form, sum(b.n_rows for b in blocks), sum(b.nnz for b in blocks))
    for block in blocks:
        buffer.append(block)
    return buffer.block(max(b.n_features for b in blocks))


@lru_cache(maxsize=64)
def _schema(form: Form) -> pa.Schema:
    value = pa.from_numpy_dtype(np.dtype(form.value_type))
    if form.width is not None:
        row = pa.list_(pa.field("value", value, nullable=False), form.width)
    else:
        fields = [("index", pa.from_numpy_dtype(np.dtype(form.index_type))), ("value", value)]
        entry = pa.struct([pa.field(name, kind, nullable=False) for name, kind in fields])
        row = pa.list_(pa.field("entry", entry, nullable=False))
    columns = [("row", row)]
    if form.labels == "single":
        columns.append(("label", pa.float64()))
    if form.labels == "sets":
        columns.append(("labels", pa.list_(pa.field("label", pa.float64(), nullable=False))))
    if form.weights:
        columns.append(("weight", pa.float64()))
    if form.queries:
        columns.append(("query", pa.int64()))
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns])


def _say(value: str | bool | None) -> str:
    return "none" if not value else "some" if value is True else value


def to_arrow(values: AnyArray) -> pa.Array:
    """An Arrow array on the memory of a NumPy array."""
    # pyarrow.array would do it too, but it loads pandas first: 45 MB of memory and the time of its import.
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def _list_array(kind: pa.DataType, positions: AnyArray, children: pa.Array) -> pa.Array:
    start = int(positions[0])
    offsets = (positions - start if start else positions).astype(np.int32, copy=False)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets))]
    return pa.Array.from_buffers(kind, len(positions) - 1, buffers, children=[children])


def from_arrow(buffer: pa.Buffer | None, dtype: str | None, count: int) -> AnyArray:
    """The first `count` items of a buffer; a batch without entries may have no buffer at all."""
    if buffer is None or buffer.size == 0:
        if count:
            raise ValueError(f"{count} values expected, none found")
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype, count)
