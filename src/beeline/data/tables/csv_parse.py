"""Pieces of CSV text to record batches, by pyarrow; bad records are found and named, or counted and left out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from beeline._sentences import Argument, Sentence
from beeline._types import Ints
from beeline.data.tables.batches import Kind
from beeline.data.tables.csv_header import BYTE_ORDER_MARK, Header, split_record
from beeline.exceptions import FormatError
from beeline.kernels import record_starts

__all__ = ["MISSING_MARKS", "CsvParser", "Parsed", "TextPiece", "as_stream"]

# What stands for a missing value, in columns of numbers and of text alike.
MISSING_MARKS = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "<NA>"]
_TRUE, _FALSE = ["true", "True", "TRUE", "1"], ["false", "False", "FALSE", "0"]
_BLOCK = 1 << 19
_TEXT = pa.dictionary(pa.int32(), pa.string())


def as_stream(text: bytes, start: int, stop: int) -> Any:  # noqa: ANN401
    """A part of a text for pyarrow's reader, without a copy."""
    if text.startswith(BYTE_ORDER_MARK, start):
        # pyarrow would take the mark off, but only a file begins with one; an empty line before it changes nothing.
        return pa.BufferReader(b"\n" + text[start:stop])
    return pa.BufferReader(pa.py_buffer(text).slice(start, stop - start))


@dataclass(frozen=True)
class TextPiece:
    """Whole records of a CSV file.

    Attributes
    ----------
    text, stop
        The records are the first `stop` bytes.
    line
        The line of the first record, counted from 1.
    quoted_newlines
        Whether a record may go over several lines.
    share
        The share of the whole source that has been read with it, about.
    """

    text: bytes
    stop: int
    line: int
    quoted_newlines: bool
    share: float = 0.0


@dataclass
class Parsed:
    """What came of a piece: its batches, the bad records left out, and the types it had to be read with.

    Attributes
    ----------
    line
        The line of the first row, where each line is a row; those of all rows, where some are none; else None.
    """

    batches: list[Any]
    types: dict[str, Any]
    flaws: list[FormatError] = field(default_factory=list)
    line: int | Ints | None = None


def _lines_of_rows(piece: TextPiece, parsed: Parsed) -> int | Ints | None:
    """The lines where the rows of a piece are, each in one; None where that is not so."""
    n_rows = sum(batch.num_rows for batch in parsed.batches)
    n_lines = piece.text.count(b"\n", 0, piece.stop) + (piece.text[piece.stop - 1 : piece.stop] != b"\n")
    if n_lines == n_rows:
        return piece.line
    left_out = {flaw.line for flaw in parsed.flaws}
    lines = enumerate(piece.text[: piece.stop].split(b"\n"), piece.line)
    found = np.array([number for number, line in lines if line.strip(b"\r") and number not in left_out], np.int64)
    return found if len(found) == n_rows else None


@dataclass
class CsvParser:
    """Parses one piece of a file; several may work at the same time.

    Attributes
    ----------
    types
        The Arrow type of each column. Whole numbers are read as int64 until the first one that is not whole or too
        large; from then on as float64, which gives the same values.
    kinds
        The columns to read and what they hold.
    exact
        Columns of numbers that must stay whole.
    skip_bad
        Whether bad records are left out; if not, the first one raises.
    text_helps
        Whether the user may still choose to read a column as text.
    """

    file: str
    header: Header
    types: dict[str, Any]
    kinds: dict[str, Kind]
    exact: frozenset[str] = frozenset()
    skip_bad: bool = False
    text_helps: bool = True

    def parse(self, piece: TextPiece) -> Parsed:
        """The rows of a piece."""
        parsed = self._parse(piece)
        if not piece.quoted_newlines:
            parsed.line = _lines_of_rows(piece, parsed)
        return parsed

    def _parse(self, piece: TextPiece) -> Parsed:
        try:
            return Parsed(self._read(piece.text, 0, piece.stop, piece.quoted_newlines), self.types)
        except pa.ArrowInvalid:
            promoted = self._promoted()
        try:
            return Parsed(promoted._read(piece.text, 0, piece.stop, piece.quoted_newlines), promoted.types)
        except pa.ArrowInvalid:
            return promoted._mend(piece)

    def _promoted(self) -> CsvParser:
        """The same parser, but whole numbers need not be whole any more."""
        whole = [
            name
            for name, kind in self.kinds.items()
            if kind == "numeric" and name not in self.exact and pa.types.is_integer(self.types[name])
        ]
        return replace(self, types={**self.types, **dict.fromkeys(whole, pa.float64())})

    def _read(self, text: bytes, start: int, stop: int, quoted_newlines: bool) -> list[Any]:
        block = _BLOCK
        while True:
            try:
                table = pyarrow.csv.read_csv(
                    as_stream(text, start, stop),
                    self._read_options(block),
                    self._parse_options(quoted_newlines),
                    self._convert_options(),
                )
            except pa.ArrowInvalid as error:
                if "Empty CSV file" in str(error):
                    return []
                # A record longer than a block.
                if "straddling" not in str(error) or block > stop - start:
                    raise
                block = stop - start + 1
            else:
                return list(table.to_batches())

    def _read_options(self, block: int) -> Any:  # noqa: ANN401
        return pyarrow.csv.ReadOptions(column_names=list(self.header.names), block_size=block, use_threads=False)

    def _parse_options(self, quoted_newlines: bool) -> Any:  # noqa: ANN401
        return pyarrow.csv.ParseOptions(delimiter=self.header.delimiter, newlines_in_values=quoted_newlines)

    def _convert_options(self) -> Any:  # noqa: ANN401
        return pyarrow.csv.ConvertOptions(
            column_types={name: _TEXT if kind == "text" else self.types[name] for name, kind in self.kinds.items()},
            include_columns=list(self.kinds),
            null_values=MISSING_MARKS,
            true_values=_TRUE,
            false_values=_FALSE,
            strings_can_be_null=True,
        )

    def _mend(self, piece: TextPiece) -> Parsed:
        """The rows of a piece without its bad records, which are found by halving."""
        text = piece.text[: piece.stop]
        offsets, lines = record_starts(text, self.header.delimiter)
        offsets.append(len(text))
        parsed = Parsed([], self.types)
        todo = [(0, len(offsets) - 1)]
        while todo:
            first, last = todo.pop()
            try:
                parsed.batches += self._read(text, offsets[first], offsets[last], piece.quoted_newlines)
            except pa.ArrowInvalid as error:
                if last - first > 1:
                    middle = (first + last) // 2
                    todo += [(middle, last), (first, middle)]
                    continue
                flaw = self._diagnose(text[offsets[first] : offsets[last]], piece.line + lines[first], error)
                if not self.skip_bad:
                    raise flaw from None
                parsed.flaws.append(flaw)
        return parsed

    def _diagnose(self, record: bytes, line: int, error: Exception) -> FormatError:
        """What is wrong with a record, in words."""
        try:
            fields = split_record(record, self.header.delimiter, self.file, line)
        except FormatError as flaw:
            return flaw
        names = self.header.names
        if len(fields) != len(names):
            reason = f"the record has {len(fields)} field{'s'[: len(fields) != 1]}, not {len(names)} as the first"
            return FormatError(reason, self.file, line)
        for name, value in zip(names, fields, strict=True):
            if self.kinds.get(name) == "numeric" and not self._fits(name, value):
                return FormatError(self._advice(name, value), self.file, line)
        complaint = re.sub(r"^In CSV column #\d+: |^CSV parse error: ", "", str(error).splitlines()[0])
        return FormatError(f"the record cannot be read: {complaint}", self.file, line)

    def _fits(self, name: str, value: str) -> bool:
        column = pa.array([value.strip(" \t")])
        if value in MISSING_MARKS:
            return True
        if pa.types.is_boolean(self.types[name]):
            return value in _TRUE or value in _FALSE
        try:
            column.cast(pa.int64() if name in self.exact else pa.float64())
        except pa.ArrowInvalid:
            return False
        return True

    def _advice(self, name: str, value: str) -> str:
        shown = value if len(value) <= 40 else value[:40] + "…"
        if pa.types.is_boolean(self.types[name]):
            what = "true or false, as those before"
        else:
            what = "a whole number" if name in self.exact else "a number"
        advice = Sentence(f"column {name!r} has the value {shown!r}, which is not {what}; correct the value")
        if not self.text_helps:
            return advice
        return Sentence(advice, ", or read the column as categories with ", Argument("text", [name]))
