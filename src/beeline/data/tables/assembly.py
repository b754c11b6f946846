"""Rows of features from the columns of Arrow record batches, by the columns of a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray, Ints
from beeline.data.core.block import Block
from beeline.data.recipe.recipe import Column
from beeline.data.tables.batches import Piece, kind_of
from beeline.exceptions import DataError
from beeline.kernels import ArrowBatch, AssemblyPlan, assemble_dense, assemble_sparse, count_entries

__all__ = ["READY_TYPES", "RowAssembler", "RowsBuilder", "as_text"]

_MISSING, _INFINITE, _TOO_LARGE = 1, 2, 3
_UNKNOWN_CODE, _MISSING_CODE = -1, -2
_INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
# The types of numbers that the kernel reads.
READY_TYPES = frozenset([*_INTEGERS, pa.float32(), pa.float64(), pa.bool_()])


class RowAssembler:
    """Makes dense or CSR rows of the columns of record batches.

    Attributes
    ----------
    missing
        How many values were missing so far, for each feature of a numeric column, in their order.
    unknown
        How many values of each column of categories were none of its categories.

    Parameters
    ----------
    columns
        The columns and the features they become.
    dtype
        float32 or float64.
    finite
        Whether values that are infinite, or missing without a fill value, are errors.
    learned
        Whether the columns were learned from other rows, so that it is too late to choose fill values.
    """

    def __init__(
        self, columns: Sequence[Column], dtype: str, *, finite: bool = True, learned: bool = False, threads: int = 0
    ) -> None:
        self.columns = tuple(columns)
        self.n_features = sum(column.n_features for column in columns)
        if self.n_features >= 2**31:
            raise DataError(f"{self.n_features:,} features are more than a table may have; ignore a text column")
        self.dtype = np.dtype(dtype)
        self.threads, self._learned = threads, learned
        plan = [(c.first, c.n_features, c.kind == "categories", c.fill) for c in columns]
        self._plan = AssemblyPlan(plan, self.n_features, finite)
        self._names = [column.name for column in columns]
        self._value_sets = [pa.array(c.categories, pa.string()) if c.kind == "categories" else None for c in columns]
        self.missing: Ints = np.zeros(sum(c.width for c in columns if c.kind == "numeric"), np.int64)
        self.unknown = {column.name: 0 for column in columns if column.kind == "categories"}

    def entries(self, pieces: Sequence[Piece]) -> int:
        """The number of values of these pieces that are not zero; flaws are left for later."""
        counts = [np.empty(piece.n_rows, np.int64) for piece in pieces]
        for piece, count in zip(pieces, counts, strict=True):
            self._count(self.export(piece), count)
        return sum(int(count.sum()) for count in counts)

    def place_dense(self, piece: Piece, values: AnyArray) -> None:
        """Write the dense rows of a piece."""
        self._note(assemble_dense(self.export(piece), self._plan, values, self.threads), piece)

    def count(self, piece: Piece, batches: list[ArrowBatch], counts: Ints) -> None:
        """Write how many values of each row are not zero."""
        self._note(self._count(batches, counts), piece)

    def place_sparse(self, batches: list[ArrowBatch], indptr: Ints, indices: AnyArray, values: AnyArray) -> None:
        """Write the CSR entries of batches that `count` has seen."""
        assemble_sparse(batches, self._plan, indptr, indices, values, self.threads)

    def export(self, piece: Piece) -> list[ArrowBatch]:
        """The batches of a piece in the form that the kernels take."""
        return [self._export_batch(batch, piece) for batch in piece.batches]

    def _count(self, batches: list[ArrowBatch], counts: Ints) -> tuple[int, int, int, list[int], list[int]]:
        return count_entries(batches, self._plan, counts, self.dtype == np.float32, self.threads)

    def _export_batch(self, batch: Any, piece: Piece) -> ArrowBatch:  # noqa: ANN401
        if not self.unknown and all(kind in READY_TYPES for kind in batch.schema.types):
            # Nothing but numbers that the kernel reads: no need to look at each column.
            schema, array = batch.select(self._names).__arrow_c_array__()
            return ArrowBatch(schema, array, [None] * len(self._names))
        arrays: list[Any] = []
        lookups: list[AnyArray | None] = []
        for column, value_set in zip(self.columns, self._value_sets, strict=True):
            array = batch.column(column.name)
            if column.kind == "categories":
                array = as_text(array, column.name)
                lookups.append(_lookup(array.dictionary, value_set))
            else:
                array = _as_numbers(array, column, piece)
                lookups.append(None)
            arrays.append(array)
        schema, array = pa.RecordBatch.from_arrays(arrays, self._names).__arrow_c_array__()
        return ArrowBatch(schema, array, lookups)

    def _note(self, findings: tuple[int, int, int, list[int], list[int]], piece: Piece) -> None:
        flaw, row, k, missing, unknown = findings
        if flaw:
            raise DataError(
                Sentence(f"{piece.place(row)}: column {self.columns[k].name!r} ", _complaint(flaw, self._learned))
            )
        self.missing += np.array(missing, np.int64)
        for column, count in zip(self.columns, unknown, strict=True):
            if count:
                self.unknown[column.name] += count


class RowsBuilder:
    """Rows of pieces, one after the other, in arrays that grow.

    Where the end is in sight, arrays are made a little larger than what is expected: pages that are never touched
    take no memory, and nothing has to be copied when the last row is in.
    """

    def __init__(self, assembler: RowAssembler, *, is_sparse: bool) -> None:
        self._assembler, self._is_sparse = assembler, is_sparse
        self._n_rows = self._n_entries = 0
        shape = (0,) if is_sparse else (0, assembler.n_features)
        self._values: AnyArray = np.empty(shape, assembler.dtype)
        self._indices: AnyArray = np.empty(0, np.int32)
        self._indptr: AnyArray = np.zeros(1, np.int64)

    def add(self, piece: Piece, share: float = 1.0) -> None:
        """Append the rows of a piece, with which the given share of all rows is reached."""
        start, stop = self._n_rows, self._n_rows + piece.n_rows
        if not self._is_sparse:
            self._values = _with_room(self._values, start, stop, share)
            self._assembler.place_dense(piece, self._values[start:stop])
            self._n_rows = stop
            return
        batches = self._assembler.export(piece)
        self._indptr = _with_room(self._indptr, start + 1, stop + 1, share)
        self._assembler.count(piece, batches, self._indptr[start + 1 : stop + 1])
        np.cumsum(self._indptr[start : stop + 1], out=self._indptr[start : stop + 1])
        entries = int(self._indptr[stop])
        self._indices = _with_room(self._indices, self._n_entries, entries, share)
        self._values = _with_room(self._values, self._n_entries, entries, share)
        self._assembler.place_sparse(batches, self._indptr[start : stop + 1], self._indices, self._values)
        self._n_rows, self._n_entries = stop, entries

    def finish(self) -> Block:
        """All rows."""
        n, d = self._n_rows, self._assembler.n_features
        if not self._is_sparse:
            return Block(self._values[:n], d)
        return Block(self._values[: self._n_entries], d, self._indptr[: n + 1], self._indices[: self._n_entries])


def _with_room(array: AnyArray, used: int, needed: int, share: float) -> AnyArray:
    """The array, or a longer copy of its used part, with room for what is needed and for what is to be expected."""
    if needed <= len(array):
        return array
    expected = needed if share >= 1 else int(needed / max(share, 1e-3) * 1.05) + 1024
    longer = np.empty((expected, *array.shape[1:]), array.dtype)
    longer[:used] = array[:used]
    return longer


def _complaint(flaw: int, learned: bool) -> Sentence:
    if flaw == _MISSING:
        drop = (" leave rows with missing values out with ", Argument("missing", "drop"))
        if learned:
            return Sentence("has no value, and the recipe has none to fill in;", *drop)
        fill = (Argument("missing", "zero"), " or ", Argument("missing", "mean"))
        return Sentence("has no value; fill missing values with ", *fill, ", or", *drop)
    if flaw == _INFINITE:
        return Sentence("is infinite; replace the value, or let it pass with ", Argument("allow_nonfinite", True))
    assert flaw == _TOO_LARGE
    return Sentence("is too large for float32; read with ", Argument("dtype", "float64"))


def _as_numbers(array: Any, column: Column, piece: Piece) -> Any:  # noqa: ANN401
    """The array with a type that the kernel reads."""
    types = pa.types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    where = f"{piece.file}: " if piece.file else ""
    if kind_of(column.name, array.type, where) != "numeric":
        raise DataError(f"{where}column {column.name!r} holds text where numbers are expected")
    if array.type in READY_TYPES and column.width == 1:
        return array
    width = array.type.list_size if types.is_fixed_size_list(array.type) else 1
    if width != column.width:
        raise DataError(f"{where}column {column.name!r} has {width} numbers a row, not {column.width}")
    value = array.type.value_type if types.is_fixed_size_list(array.type) else array.type
    if types.is_float16(value):
        plain = pa.float32()
    elif types.is_decimal(value) or types.is_null(value):
        plain = pa.float64()
    else:
        return array
    return array.cast(pa.list_(plain, width) if value is not array.type else plain, safe=False)


def as_text(array: Any, name: str) -> Any:  # noqa: ANN401
    """The array as a dictionary of texts; numbers are written out."""
    types = pa.types
    if types.is_dictionary(array.type):
        if types.is_string(array.type.value_type):
            return array
        array = array.dictionary_decode()
    if not types.is_string(array.type):
        try:
            array = array.cast(pa.string())
        except pa.ArrowInvalid as error:
            raise DataError(f"column {name!r} cannot be read as text: {error}") from error
        except pa.ArrowNotImplementedError as error:
            raise DataError(f"column {name!r} ({array.type}) cannot be read as text") from error
    return array.dictionary_encode()


def _lookup(dictionary: Any, value_set: Any) -> AnyArray:  # noqa: ANN401
    """For each entry of a batch's dictionary: its category's number, or that it is unknown or missing."""
    found = pc.index_in(dictionary, value_set=value_set, skip_nulls=True)
    lookup = np.array(found.fill_null(_UNKNOWN_CODE), np.int32)
    if dictionary.null_count:
        lookup[np.asarray(dictionary.is_null())] = _MISSING_CODE
    return lookup
