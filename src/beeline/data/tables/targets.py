"""Labels, weights and query ids from the columns of Arrow record batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray, Floats, Ints
from beeline.data.tables.assembly import READY_TYPES, as_text
from beeline.data.tables.batches import Piece, kind_of
from beeline.data.tables.roles import Roles
from beeline.exceptions import DataError, LabelError

__all__ = ["TargetColumns"]


class TargetColumns:
    """Reads what goes beside the rows.

    Numeric labels are kept as they are; a text label becomes its place among the recipe's label categories. Query ids
    that are text are numbered in the order of their appearance: an id only says which rows belong together.

    Parameters
    ----------
    roles
        Which columns they are.
    label_categories
        The recipe's; None: labels are numbers.
    grows
        Whether labels that are none of them are added behind them; otherwise one is an error.
    """

    def __init__(self, roles: Roles, label_categories: tuple[str, ...] | None, *, grows: bool = False) -> None:
        self._roles, self._grows = roles, grows
        self._categories = None if label_categories is None else pa.array(label_categories, pa.string())
        self._query_numbers: dict[str, int] = {}

    @property
    def label_categories(self) -> tuple[str, ...] | None:
        """The texts that labels stand for, so far."""
        return None if self._categories is None else tuple(self._categories.to_pylist())

    @property
    def query_names(self) -> list[str]:
        """The texts that query ids stand for, so far; none where they are numbers."""
        return list(self._query_numbers)

    def read(self, pieces: list[Piece]) -> dict[str, Any]:
        """The labels, weights and queries of all rows, by these names."""
        roles = self._roles
        return {
            "labels": None if roles.label is None else self._joined(pieces, roles.label, self._labels),
            "weights": None if roles.weight is None else self._joined(pieces, roles.weight, self._weights),
            "queries": None if roles.query is None else self._joined(pieces, roles.query, self._queries),
        }

    def _joined(self, pieces: list[Piece], name: str, convert: Any) -> AnyArray:  # noqa: ANN401
        parts = []
        for piece in pieces:
            row = 0
            for batch in piece.batches:
                parts.append(convert(batch.column(name), name, piece, row))
                row += batch.num_rows
        joined: AnyArray = np.concatenate(parts)
        return joined

    def _labels(self, array: Any, name: str, piece: Piece, row: int) -> Floats:  # noqa: ANN401
        if array.null_count:
            at = row + pc.index(array.is_null(), value=True).as_py()
            raise LabelError(f"{piece.place(at)}: the label (column {name!r}) is missing; remove the row")
        if self._categories is not None:
            return self._label_numbers(as_text(array, name), name, piece, row)
        return _finite(array, name, piece, row, LabelError, "label")

    def _label_numbers(self, array: Any, name: str, piece: Piece, row: int) -> Floats:  # noqa: ANN401
        if self._grows:
            used = array.dictionary.take(pc.unique(array.indices))  # in the order of their appearance
            new = used.filter(pc.is_null(pc.index_in(used, value_set=self._categories)))
            self._categories = pa.concat_arrays([self._categories, new])
        numbers = pc.index_in(array.dictionary, value_set=self._categories).take(array.indices)
        if numbers.null_count:
            at = pc.index(numbers.is_null(), value=True).as_py()
            raise LabelError(
                Sentence(
                    f"{piece.place(row + at)}: label {array[at].as_py()!r} (column {name!r}) is none of the "
                    f"{len(self._categories or ())} labels that the recipe knows; remove the row, or leave the "
                    "column out with ",
                    Argument("ignore", [name]),
                )
            )
        return np.asarray(numbers).astype(np.float64)

    def _weights(self, array: Any, name: str, piece: Piece, row: int) -> Floats:  # noqa: ANN401
        weights = _finite(array, name, piece, row, DataError, "weight")
        if (weights < 0).any():
            at = int((weights < 0).argmax())
            raise DataError(f"{piece.place(row + at)}: the weight (column {name!r}) is {weights[at]}, below 0")
        return weights

    def _queries(self, array: Any, name: str, piece: Piece, row: int) -> Ints:  # noqa: ANN401
        if array.null_count:
            at = row + pc.index(array.is_null(), value=True).as_py()
            raise DataError(f"{piece.place(at)}: the query id (column {name!r}) is missing; remove the row")
        if kind_of(name, array.type, f"{piece.place(row)}: ") == "text":
            array = as_text(array, name)
            texts = array.dictionary.take(pc.unique(array.indices)).to_pylist()
            if None in texts:
                raise DataError(f"{piece.file or 'the table'}: a query id (column {name!r}) is missing; remove the row")
            for text in texts:
                self._query_numbers.setdefault(text, len(self._query_numbers))
            numbers = [self._query_numbers.get(text, -1) for text in array.dictionary.to_pylist()]
            ids: Ints = np.array(numbers, np.int64)[np.asarray(array.indices)]
            return ids
        try:
            plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
            return np.asarray(plain.cast(pa.int64())).astype(np.int64, copy=False)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"{piece.file or 'the table'}: query ids (column {name!r}) must be whole numbers or text: {error}"
            ) from error


def _finite(
    array: Any,  # noqa: ANN401
    name: str,
    piece: Piece,
    row: int,
    error: type[DataError],
    what: str,
) -> Floats:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type not in READY_TYPES and not (pa.types.is_decimal(array.type) or pa.types.is_null(array.type)):
        raise error(
            f"{piece.file or 'the table'}: the {what} (column {name!r}) must be one number a row, not {array.type}"
        )
    values = np.asarray(array.cast(pa.float64(), safe=False).fill_null(np.nan))
    flawed = ~np.isfinite(values)
    if flawed.any():
        at = int(flawed.argmax())
        state = "missing" if np.isnan(values[at]) else "infinite"
        raise error(f"{piece.place(row + at)}: the {what} (column {name!r}) is {state}; correct or remove the row")
    return values
