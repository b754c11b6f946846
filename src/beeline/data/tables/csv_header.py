"""The first line of a CSV file: its delimiter and the names of its columns."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

from beeline._sentences import Argument, Sentence
from beeline.data.options import ReadOptions
from beeline.data.tables.roles import check_distinct
from beeline.exceptions import DataError, FormatError
from beeline.kernels import last_record_end, record_starts

__all__ = ["BYTE_ORDER_MARK", "Header", "read_header", "split_record"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DELIMITERS = ",\t;|"
_QUOTED = re.compile(rb'"(?:[^"]|"")*"')


@dataclass(frozen=True)
class Header:
    """What the first line of a CSV file says.

    Attributes
    ----------
    delimiter
        What separates the fields.
    names
        The names of the columns.
    start
        The byte at which the data begin.
    line
        The line at which the data begin, counted from 1.
    """

    delimiter: str
    names: tuple[str, ...]
    start: int
    line: int


def read_header(head: bytes, options: ReadOptions, file: str) -> Header:
    """Read the header of a file, of which `head` is the beginning."""
    start = len(BYTE_ORDER_MARK) if head.startswith(BYTE_ORDER_MARK) else 0
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FormatError("the file is UTF-16 text; convert it to UTF-8 first", file=file)
    if not head[start:].strip():
        raise DataError(f"{file}: the file is empty")
    if b"\n" not in head and b"\r" in head.rstrip(b"\r"):
        raise FormatError("lines end with a carriage return alone; convert the line ends first", file=file)
    while head[start : start + 1] in (b"\n", b"\r"):
        start += 1
    found = _detect_delimiter(head[start:])
    delimiter = options.delimiter or found
    stop = start + _first_record(head[start:], delimiter)
    fields = split_record(head[start:stop], delimiter, file, line=1 + head.count(b"\n", 0, start))
    if len(fields) == 1 and found != delimiter and found in fields[0]:
        raise FormatError(
            f"{delimiter!r} separates nothing in the first line but {found!r} does; leave it out",
            file=file,
        )
    if options.header is False:
        names = tuple(f"f{k}" for k in range(1, len(fields) + 1))
        return Header(delimiter, names, start, 1 + head.count(b"\n", 0, start))
    _check_names(fields, options, file)
    return Header(delimiter, tuple(fields), stop, 1 + head.count(b"\n", 0, stop))


def _detect_delimiter(head: bytes) -> str:
    """The most frequent candidate in the first record, outside of quotes; a comma when there is none."""
    counts = {}
    for candidate in _DELIMITERS:
        record = head[: _first_record(head, candidate)]
        counts[candidate] = _QUOTED.sub(b"", record).count(candidate.encode())
    return max(counts, key=lambda candidate: counts[candidate])


def _first_record(text: bytes, delimiter: str) -> int:
    """The number of bytes of the first record."""
    size = 1 << 12
    while True:
        offsets, _ = record_starts(text[:size], delimiter)
        if len(offsets) > 1:
            return offsets[1]
        if size >= len(text):
            return len(text)
        size *= 8


def split_record(record: bytes, delimiter: str, file: str, line: int) -> list[str]:
    """The fields of one record."""
    if last_record_end(record, delimiter)[2] >= 0:
        raise FormatError("a quoted field is opened and never closed", file=file, line=line)
    try:
        text = record.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            "the text is not UTF-8; convert it first", file=file, line=line, column=error.start + 1
        ) from error
    try:
        rows = list(csv.reader([text.rstrip("\r\n")], delimiter=delimiter))
    except csv.Error as error:
        raise FormatError(f"the fields cannot be told apart: {error}", file=file, line=line) from error
    return rows[0] if rows else [""]


def _check_names(names: list[str], options: ReadOptions, file: str) -> None:
    hint = Sentence("; if the first line is already data, say ", Argument("header", False))
    if options.header is None and all(_is_number(name) for name in names):
        raise FormatError(
            Sentence(
                "the first line holds numbers where names are expected; if it is data, say ",
                Argument("header", False),
                ", and if it is names, say ",
                Argument("header", True),
            ),
            file=file,
            line=1,
        )
    for k, name in enumerate(names, start=1):
        if not name.strip() and name not in options.ignore:
            raise FormatError(
                Sentence(
                    f"column {k} has no name; give it one, or leave it out with ",
                    Argument("ignore", [""]),
                    " if it numbers the rows",
                ),
                file=file,
                line=1,
            )
    check_distinct(names, f"{file}: ", hint)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return not text.strip()
    return True
