"""Parquet files, Arrow IPC files and tables in memory as sources of record batches."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from beeline.data.files.finding import SourceFile, open_random, open_stream, reading, total_size
from beeline.data.reader import BadLines, Progress
from beeline.data.tables.batches import Kind, Piece, TableSource, sliced
from beeline.data.tables.roles import check_distinct, check_same_names
from beeline.exceptions import FormatError, SourceError

__all__ = ["ArrowSource", "MemorySource", "ParquetSource", "values_in"]

_MOST_ROWS = 1 << 20
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls an index that has no name


class _Typed(TableSource):
    """A source whose types tell how wide its rows are."""

    def _rows_within(self, memory: int, wanted: Iterable[str]) -> int:
        """How many rows can be held, with the rows of features made of them, in about so many bytes."""
        numbers = sum(values_in(self.types[name]) for name in wanted)
        return max(1, min(_MOST_ROWS, memory // (4 * 8 * max(1, numbers))))


class _ColumnarSource(_Typed):
    """Files with a schema."""

    def __init__(self, files: list[SourceFile]) -> None:
        self._files = files
        self.name = files[0].name
        self.total_bytes = total_size(files)
        schema = self._schema(files[0])
        check_distinct(schema.names, f"{self.name}: ")
        self.types = dict(zip(schema.names, schema.types, strict=True))
        self.index = _index_columns(schema)

    def walk(self, wanted: dict[str, Kind], memory: int, progress: Progress, bad_lines: BadLines) -> Iterator[Piece]:
        """All rows in order, only the wanted columns; such files have no lines that could be skipped."""
        del bad_lines
        for file in self._files:
            first = 1
            if file is not self._files[0]:
                check_same_names(self.types, self._schema(file).names, f"{file.name}: ", self.name)
            for batch in self._batches(file, wanted, memory, progress):
                yield Piece([batch], file.name, first)
                first += batch.num_rows

    @abstractmethod
    def _schema(self, file: SourceFile) -> Any:  # noqa: ANN401
        """The Arrow schema of a file."""

    @abstractmethod
    def _batches(self, file: SourceFile, wanted: dict[str, Kind], memory: int, progress: Progress) -> Iterator[Any]:
        """The batches of a file, small enough for the memory."""


class ParquetSource(_ColumnarSource):
    """Parquet files with the same columns; only the wanted columns are read."""

    def _schema(self, file: SourceFile) -> Any:  # noqa: ANN401
        with _formatted(file, "Parquet"), closing(open_random(file)) as handle:
            return pyarrow.parquet.ParquetFile(handle).schema_arrow

    def _batches(self, file: SourceFile, wanted: dict[str, Kind], memory: int, progress: Progress) -> Iterator[Any]:
        # Text is stored as a dictionary in most files: then its rows need not be looked at one by one.
        texts = [name for name, kind in wanted.items() if kind == "text" and pa.types.is_string(self.types[name])]
        with _formatted(file, "Parquet"), closing(open_random(file)) as handle:
            # Near files are read as far as a batch needs; far ones by few large requests, a row group at a time.
            buffer = min(max(memory // (16 * len(wanted)), 1 << 14), 1 << 20)
            near = {"pre_buffer": False, "buffer_size": buffer} if file.filesystem is None else {"pre_buffer": True}
            parquet = pyarrow.parquet.ParquetFile(handle, read_dictionary=texts, **near)
            rows = self._rows_within(memory, wanted)
            reported = 0
            for group in range(parquet.num_row_groups):
                yield from parquet.iter_batches(rows, row_groups=[group], columns=list(wanted))
                stop = (file.size or 0) * (group + 1) // parquet.num_row_groups
                progress.advance(stop - reported)
                reported = stop


class ArrowSource(_ColumnarSource):
    """Arrow IPC files or streams (Feather version 2 is the file format) with the same columns."""

    def _schema(self, file: SourceFile) -> Any:  # noqa: ANN401
        with _formatted(file, "Arrow IPC"), closing(_ArrowFile(file)) as arrow:
            return arrow.reader.schema

    def _batches(self, file: SourceFile, wanted: dict[str, Kind], memory: int, progress: Progress) -> Iterator[Any]:
        names = list(self._schema(file).names)
        options = pyarrow.ipc.IpcReadOptions(included_fields=[names.index(name) for name in wanted])
        with _formatted(file, "Arrow IPC"), closing(_ArrowFile(file, options, memory, progress)) as arrow:
            for batch in arrow.batches():
                yield from sliced(batch.select(list(wanted)), self._rows_within(memory, wanted))


class _ArrowFile:
    """An open Arrow IPC file or stream."""

    def __init__(
        self,
        file: SourceFile,
        options: Any = None,  # noqa: ANN401
        memory: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self._progress, self._size = progress, file.size or 0
        stream = open_stream(file)
        self._is_stream = stream.read(6) != b"ARROW1"
        stream.close()
        if self._is_stream:
            self._handle: Any = _Readable(open_stream(file, progress.advance if progress else None))
            self.reader = pyarrow.ipc.open_stream(pa.PythonFile(self._handle, mode="r"), options=options)
            return
        self._handle = open_random(file)
        self.reader = pyarrow.ipc.open_file(self._handle, options=options)
        if file.is_plain and self._size > memory // 4 * self.reader.num_record_batches:
            # Batches too large for the memory: a mapped file is read only as far as their rows are used.
            self._handle.close()
            self._handle = pa.memory_map(file.path)
            self.reader = pyarrow.ipc.open_file(self._handle, options=options)

    def batches(self) -> Iterator[Any]:
        """The record batches, one by one."""
        if self._is_stream:
            yield from self.reader
            return
        n, reported = self.reader.num_record_batches, 0
        for k in range(n):
            yield self.reader.get_batch(k)
            stop = self._size * (k + 1) // n
            if self._progress is not None:
                self._progress.advance(stop - reported)
            reported = stop

    def close(self) -> None:
        """Close the file."""
        self._handle.close()


class _Readable:
    """A byte stream with the face that pyarrow asks of a Python file."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401
        self._stream = stream
        self.closed = False

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes, fewer only at the end: decompressors may give less at a time."""
        parts, missing = [], size
        while missing and (part := self._stream.read(missing)):
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()
        self.closed = True


class MemorySource(_Typed):
    """Record batches that are already in memory."""

    def __init__(self, schema: Any, batches: Iterable[Any], name: str = "the table") -> None:  # noqa: ANN401
        self.name = name
        self.total_bytes = None
        self._batches = batches
        check_distinct(schema.names, f"{name}: ")
        self.types = dict(zip(schema.names, schema.types, strict=True))
        self.index = _index_columns(schema)

    def walk(self, wanted: dict[str, Kind], memory: int, progress: Progress, bad_lines: BadLines) -> Iterator[Piece]:
        """All rows in order, only the wanted columns."""
        del progress, bad_lines
        first = 1
        for batch in self._batches:
            for part in sliced(batch.select(list(wanted)), self._rows_within(memory, wanted)):
                yield Piece([part], "", first)
                first += part.num_rows


def _index_columns(schema: Any) -> tuple[str, ...]:  # noqa: ANN401
    """The columns that hold the index of a pandas frame: by what pandas notes in the schema, or by their names."""
    try:
        noted = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    except (ValueError, AttributeError):  # somebody else's note
        noted = []
    return tuple(name for name in schema.names if name in noted or _UNNAMED_INDEX.fullmatch(name))


def values_in(arrow_type: Any) -> int:  # noqa: ANN401
    """How many numbers one value of this type holds: a list of fixed length is that many features."""
    return int(arrow_type.list_size) if pa.types.is_fixed_size_list(arrow_type) else 1


@contextmanager
def _formatted(file: SourceFile, kind: str) -> Iterator[None]:
    """Turn pyarrow's complaint about a file's content into a `FormatError` that names the file."""
    try:
        with reading(file.name):
            yield
    except SourceError as error:
        if isinstance(error.__cause__, pa.ArrowInvalid):
            reason = str(error.__cause__).splitlines()[0]
            raise FormatError(f"this is no valid {kind} file: {reason}", file=file.name) from error
        raise
