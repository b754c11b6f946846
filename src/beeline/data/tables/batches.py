"""What every source of tables offers: names and types of its columns, and its rows as Arrow record batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import wait
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa

from beeline._sentences import Argument, Sentence
from beeline._thread_pool import DaemonThreadPool
from beeline._types import AnyArray, Ints
from beeline.data.reader import BadLines, Progress
from beeline.exceptions import DataError

__all__ = ["Kind", "Piece", "TableSource", "has_decimals", "is_text", "kind_of", "prefetched", "sliced"]

# What a column holds: numbers (booleans count as 0 and 1), or text that stands for categories.
Kind = Literal["numeric", "text"]
T = TypeVar("T")


@dataclass(frozen=True)
class Piece:
    """Some rows of a table.

    Attributes
    ----------
    batches
        The rows, as record batches with the wanted columns.
    file
        The file they come from; empty for a table in memory.
    first
        The number of the first row within the file, counted from 1, a header not counted.
    share
        The share of the whole source that has been read with it, about.
    line
        The line of the first row within the file, where each line is a row; those of all rows, where some are none;
        None elsewhere.
    kept
        Where rows were left out: the places of those that are here, counted from 0 at the first.
    """

    batches: list[Any]
    file: str
    first: int
    share: float = 0.0
    line: int | Ints | None = None
    kept: AnyArray | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(batch.num_rows for batch in self.batches)

    def place(self, row: int) -> str:
        """How to name a row, counted from 0 within this piece, in a message."""
        at = row if self.kept is None else int(self.kept[row])
        if isinstance(self.line, np.ndarray):
            number = f"line {self.line[at]}"
        else:
            number = f"row {self.first + at}" if self.line is None else f"line {self.line + at}"
        return f"{self.file + ', ' if self.file else ''}{number}"

    def part(self, batches: list[Any], start: int) -> Piece:
        """Some of its rows, in these batches, from row `start` on, counted from 0 within this piece."""
        if self.kept is not None:
            stop = start + sum(batch.num_rows for batch in batches)
            return replace(self, batches=batches, kept=self.kept[start:stop])
        line = self.line
        if line is not None:
            line = line[start:] if isinstance(line, np.ndarray) else line + start
        return replace(self, batches=batches, first=self.first + start, line=line)


class TableSource(ABC):
    """Rows of a table that can be walked as often as needed.

    Attributes
    ----------
    name
        What to call it in messages.
    types
        The Arrow type of each column, in the order of the table.
    total_bytes
        Bytes on disk, where they are known.
    index
        Columns that pandas made of the index of a frame: names of rows, which say nothing about them.
    """

    name: str
    types: dict[str, Any]
    total_bytes: int | None
    index: tuple[str, ...] = ()

    @abstractmethod
    def walk(self, wanted: dict[str, Kind], memory: int, progress: Progress, bad_lines: BadLines) -> Iterator[Piece]:
        """All rows in order, only the wanted columns; what is held at one time takes about `memory` bytes."""

    def settle(self, names: Iterable[str]) -> None:
        """Find out the types of these columns where a look at the first rows did not tell; called before `walk`."""
        del names


def kind_of(name: str, arrow_type: Any, where: str) -> Kind:  # noqa: ANN401
    """What a column holds, by its Arrow type; raises `DataError` for what can be no feature."""
    types = pa.types
    value = arrow_type.value_type if types.is_dictionary(arrow_type) else arrow_type
    if is_text(value):
        return "text"
    if _is_number(value) or (types.is_fixed_size_list(value) and _is_number(value.value_type)):
        return "numeric"
    if types.is_temporal(value):
        remedy = "turn them into numbers first"
        what = "dates or times"
    elif types.is_nested(value):
        what, remedy = "lists or records", "make each part a column of its own"
    else:
        what, remedy = "neither numbers nor text", "convert it first"
    raise DataError(
        Sentence(
            f"{where}column {name!r} holds {what} ({arrow_type}), which cannot be features; leave it out with ",
            Argument("ignore", [name]),
            f", or {remedy}",
        )
    )


def has_decimals(arrow_type: Any) -> bool:  # noqa: ANN401
    """Whether numbers of this type are written with decimals, also those that are whole."""
    types = pa.types
    value = arrow_type.value_type if types.is_dictionary(arrow_type) else arrow_type
    return bool(types.is_floating(value) or (types.is_decimal(value) and value.scale > 0))


def is_text(arrow_type: Any) -> bool:  # noqa: ANN401
    """Whether values of this type are texts, also where they are kept in a dictionary."""
    value = arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value) or _is_view(value))


def _is_view(value: Any) -> bool:  # noqa: ANN401
    return bool(getattr(pa.types, "is_string_view", lambda _: False)(value))


def _is_number(value: Any) -> bool:  # noqa: ANN401
    types = pa.types
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(check(value) for check in checks)


def sliced(batch: Any, rows: int) -> Iterator[Any]:  # noqa: ANN401
    """The batch in runs of at most so many rows, without a copy."""
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def prefetched(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """The same items, each one made by a thread while its predecessor is used."""
    with DaemonThreadPool(1) as thread:
        end = object()
        following = thread.submit(next, items, end)
        try:
            while (item := following.result()) is not end:
                following = thread.submit(next, items, end)
                yield item  # type: ignore[misc]
        finally:
            wait([following])
            items.close()
