"""What every source of tables offers: names and types of its columns, and its rows as Arrow record batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import pyarrow as pa

from beeline._sentences import Argument, Sentence
from beeline._thread_pool import DaemonThreadPool
from beeline.data.reader import BadLines, Progress
from beeline.exceptions import DataError

__all__ = ["Kind", "Piece", "TableSource", "kind_of", "prefetched", "sliced"]

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
    """

    batches: list[Any]
    file: str
    first: int
    share: float = 0.0

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(batch.num_rows for batch in self.batches)

    def place(self, row: int) -> str:
        """How to name a row, counted from 0 within this piece, in a message."""
        return f"{self.file + ', ' if self.file else ''}row {self.first + row}"


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
    """

    name: str
    types: dict[str, Any]
    total_bytes: int | None

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
    if _is_text(value):
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


def _is_text(value: Any) -> bool:  # noqa: ANN401
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
