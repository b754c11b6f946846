"""Rows in which something is missing: left out and counted, or named all at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray
from beeline.data.tables.batches import Piece
from beeline.data.tables.roles import Roles
from beeline.exceptions import LabelError

__all__ = ["LeftOut", "complete_pieces", "labelled_pieces"]

_SHOWN = 5


@dataclass
class Places:
    """How many rows, and where the first of them are."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, piece: Piece, rows: AnyArray) -> None:
        """Take in rows of a piece, counted from 0 within it."""
        self.count += len(rows)
        self.first += [piece.place(int(row)) for row in rows[: _SHOWN - len(self.first)]]

    def __str__(self) -> str:
        return "; ".join(self.first) + (f"; and {self.count - len(self.first):,} more" * (self.count > len(self.first)))


@dataclass
class LeftOut:
    """The rows that a walk left out.

    Attributes
    ----------
    beside
        What rows have beside features, in words.
    features, labels
        Those without a feature, and those without a label (or weight or query id) that have all features.
    """

    beside: str = "a label"
    features: Places = field(default_factory=Places)
    labels: Places = field(default_factory=Places)

    def sentences(self) -> list[str]:
        """What was left out, in words."""
        return [
            f"{places.count:,} row{'s' * (places.count != 1)} without {what} left out: {places}"
            for places, what in ((self.features, "all features"), (self.labels, self.beside))
            if places.count
        ]


def complete_pieces(pieces: Iterable[Piece], roles: Roles, left_out: LeftOut) -> Iterator[Piece]:
    """The pieces without rows in which a value is missing; these are counted."""
    for piece in pieces:
        without_feature = _missing(piece, roles.features)
        without_target = _missing(piece, roles.targets) & ~without_feature
        left_out.features.add(piece, np.flatnonzero(without_feature))
        left_out.labels.add(piece, np.flatnonzero(without_target))
        kept = ~(without_feature | without_target)
        if kept.all():
            yield piece
        elif kept.any():
            yield _filtered(piece, kept)


def labelled_pieces(pieces: Iterable[Piece], label: str) -> Iterator[Piece]:
    """The pieces as they are; from the first row without a label on they are only counted, and in the end it raises."""
    absent = Places()
    for piece in pieces:
        absent.add(piece, np.flatnonzero(_missing(piece, [label])))
        if not absent.count:
            yield piece
    if absent.count:
        raise LabelError(
            Sentence(
                f"the label (column {label!r}) is missing in {absent.count:,} row{'s' * (absent.count != 1)}: {absent}"
                "; leave such rows out with ",
                Argument("missing", "drop"),
            )
        )


def _missing(piece: Piece, names: Sequence[str]) -> AnyArray:
    """For each row, whether one of these columns has no value."""
    found = np.zeros(piece.n_rows, bool)
    row = 0
    for batch in piece.batches:
        part = found[row : row + batch.num_rows]
        for name in names:
            column = batch.column(name)
            if column.null_count or not pa.types.is_integer(column.type):
                part |= _nulls(column)
        row += batch.num_rows
    return found


def _nulls(array: Any) -> AnyArray:  # noqa: ANN401
    """For each value, whether it is null or NaN; of a list, whether a number in it is."""
    if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
        array = array.dictionary_decode()
    nulls: AnyArray = np.array(pc.is_null(array, nan_is_null=True))
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        numbers = array.values.slice(array.offset * size, len(array) * size)
        nulls |= _nulls(numbers).reshape(len(array), size).any(axis=1)
    return nulls


def _filtered(piece: Piece, kept: AnyArray) -> Piece:
    """The kept rows, which still know their places."""
    batches, row = [], 0
    for batch in piece.batches:
        part = batch.filter(pa.array(kept[row : row + batch.num_rows]))
        batches += [part] if part.num_rows else []
        row += batch.num_rows
    return replace(piece, batches=batches, kept=np.flatnonzero(kept))
