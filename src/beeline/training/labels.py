"""Labels as training needs them: class numbers and weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from beeline._numbers import as_number
from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray, Floats, Ints
from beeline._words import shortened
from beeline.data.core.labels import LabelSets
from beeline.exceptions import LabelError, ParameterError

__all__ = [
    "ClassWeight",
    "Classes",
    "class_weights",
    "count_labels",
    "find_classes",
    "find_sets",
    "first_fraction",
    "numbered",
    "refuse_inexact",
]

ClassWeight = Mapping[Any, float] | Literal["balanced"] | None

_WIDEST = 1 << 20  # of whole-number labels that are counted instead of sorted
_INEXACT = 2.0**53  # from here on, float64 has no place for every whole number
_PIECE = 1 << 16  # labels that are looked at together


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a data set.

    Attributes
    ----------
    names
        What they are called, sorted; of levels with an order of their own, in that order.
    numbers
        The class number of every row, 0 … K−1, as small integers; for sets of labels a matrix of −1 and +1.
    """

    names: AnyArray
    numbers: AnyArray

    def __len__(self) -> int:
        return len(self.names)

    def in_order(self, order: Ints) -> Classes:
        """The same classes in another order: where each is now."""
        if np.array_equal(order, np.arange(len(self))):
            return self
        new_number = np.empty(len(self), self.numbers.dtype)
        new_number[order] = np.arange(len(self))
        return Classes(self.names[order], new_number[self.numbers])


def find_classes(
    y: AnyArray, weights: Floats | None, texts: tuple[str, ...] | None = None, *, fractions: bool = False
) -> Classes:
    """The classes among the labels.

    Parameters
    ----------
    y
        A label a row.
    weights
        A weight a row. Rows of weight zero count as absent: a class that has no others is no class, and its rows get
        the number 0, which their weight makes meaningless.
    texts
        Where the labels are numbers of texts, those texts.
    fractions
        Whether numbers with decimals may be classes.
    """
    if texts is None:
        refuse_inexact(y)
    row = None if (two := _as_two(y)) is not None else first_fraction(y)
    if row is not None and not fractions:
        raise LabelError(
            f"row {row} has the label {y[row]}, which names no class; take the loss of a regression for real labels"
        )
    names, numbers = two or (numbered(y) if row is None else np.unique(y, return_inverse=True))
    if texts is None and weights is None and len(names) > 1:
        return Classes(names, numbers)  # which are in order
    if texts is not None:
        names = np.array([texts[int(name)] for name in names])
    present = np.ones(len(names), bool)
    if weights is not None:
        present = np.bincount(numbers, weights > 0, minlength=len(names)) > 0
    if present.sum() < 2:
        one = f"only one class, {names[present][0]}" if present.any() else "no class at all"
        other = "" if names.dtype.kind in "US" else ", and a regression the loss of one, such as 'squared'"
        raise LabelError(f"the rows (of positive weight) have {one}; a classifier needs at least two classes{other}")
    kept = np.flatnonzero(present)
    kept = kept[np.argsort(names[kept], kind="stable")]
    if not np.array_equal(kept, np.arange(len(names))):
        new_number = np.zeros(len(names), numbers.dtype)
        new_number[kept] = np.arange(len(kept))
        numbers = new_number[numbers]
    return Classes(names[kept], numbers)


def find_sets(y: AnyArray | LabelSets, texts: tuple[str, ...] | None = None) -> Classes:
    """The labels of which each row has a set.

    Parameters
    ----------
    y
        The sets, or a matrix of 0 and 1: row i has label k or not. The labels of a matrix are called 0 … K−1.
    texts
        Where the labels are numbers of texts, those texts.
    """
    names: AnyArray
    if isinstance(y, LabelSets):
        if texts is None:
            refuse_inexact(y.stored(), np.repeat(np.arange(len(y)), np.diff(y.indptr)))
        names, place = np.unique(y.stored(), return_inverse=True)
        signs = np.full((len(y), len(names)), -1.0)
        signs[np.repeat(np.arange(len(y)), np.diff(y.indptr)), place.reshape(-1)] = 1.0
        names = names if texts is None else np.array([texts[int(name)] for name in names])
    else:
        y = np.asarray(y)
        if y.ndim != 2:
            raise LabelError(
                Sentence(
                    "each row has one label and a set is needed: read the data with ",
                    Argument("multilabel", True),
                    ", or give y as a matrix of 0 and 1 with a column a label",
                )
            )
        if not (allowed := (y == 0) | (y == 1)).all():
            row, column = np.unravel_index(int(np.argmin(allowed)), y.shape)
            raise LabelError(f"row {row} has {y[row, column]} for label {column}; sets of labels are told by 0 and 1")
        names, signs = np.arange(y.shape[1]), np.where(y == 1, 1.0, -1.0)
    if not len(names):
        raise LabelError("no row has a label; there is nothing to learn")
    return Classes(names, signs)


def count_labels(y: AnyArray) -> int | None:
    """How many different labels there are; None where one is not a whole number."""
    if first_fraction(y) is not None:
        return None
    present = _present(y)
    return len(np.unique(y)) if present is None else int(np.count_nonzero(present))


# Labels are looked at in pieces, so that there is never a second column of millions of numbers for a moment.


def _pieces(n: int) -> Iterator[slice]:
    return (slice(start, start + _PIECE) for start in range(0, n, _PIECE))


def first_fraction(y: AnyArray) -> int | None:
    """The row of the first label that is not a whole number."""
    if y.dtype.kind == "f":
        for piece in _pieces(len(y)):
            if not (whole := y[piece] == np.floor(y[piece])).all():
                return int(piece.start + np.argmin(whole))
    return None


def refuse_inexact(y: AnyArray, rows: Ints | None = None, first_row: int = 0) -> None:
    """Raise where different whole numbers that were read as labels would have become the same class.

    Parameters
    ----------
    y
        The labels.
    rows
        The row of each label; None: one label a row.
    first_row
        The number of the first row, for messages.
    """
    if y.dtype != np.float64 or not len(y) or not max(-y.min(), y.max()) >= _INEXACT:
        return
    place = int(np.argmax(np.abs(y) >= _INEXACT))
    row, label = first_row + (place if rows is None else int(rows[place])), f"{y[place]:.0f}"
    raise LabelError(
        f"row {row} has the label {label}, and whole numbers as large as that cannot all be told apart; write labels "
        f"as text, such as id_{label}, or number the classes from 1"
    )


def _present(y: AnyArray) -> AnyArray | None:
    """Which of the whole numbers from the smallest label on are labels; None where that would be a long list."""
    if y.dtype.kind not in "iuf" or not len(y):
        return None
    low, high = y.min(), y.max()
    if not float(high) - float(low) < _WIDEST:
        return None
    present = np.zeros(int(high) - int(low) + 1, bool)
    for piece in _pieces(len(y)):
        present[_above(y[piece], low)] = True
    return present


def _above(y: AnyArray, low: Any) -> Ints:  # noqa: ANN401
    """Whole labels as differences from the smallest."""
    return y.astype(np.int64) - int(low)


def _as_two(y: AnyArray) -> tuple[AnyArray, AnyArray] | None:
    """As `numbered` where there are two labels, whole numbers both: the usual case, in a fifth of the time."""
    if y.dtype.kind not in "iuf" or not len(y):
        return None
    low, high = y.min(), y.max()
    if not (low < high and np.isfinite(low) and np.isfinite(high) and low == np.floor(low) and high == np.floor(high)):
        return None
    numbers: AnyArray = np.empty(len(y), np.int8)
    for piece in _pieces(len(y)):
        own, upper = y[piece], y[piece] == high
        if not (upper | (own == low)).all():
            return None
        numbers[piece] = upper
    return np.array([low, high], y.dtype), numbers


def numbered(y: AnyArray) -> tuple[AnyArray, AnyArray]:
    """(the distinct labels, the number of each row's label)."""
    present = _present(y)
    if present is not None:  # sorting millions of labels takes a second
        values, low = np.flatnonzero(present), y.min()
        place = np.zeros(len(present), np.min_scalar_type(-len(values)))
        place[values] = np.arange(len(values))
        numbers: AnyArray = np.empty(len(y), place.dtype)
        for piece in _pieces(len(y)):
            numbers[piece] = place[_above(y[piece], low)]
        return (values + int(low)).astype(y.dtype), numbers
    try:
        names, numbers = np.unique(y, return_inverse=True)
    except TypeError:
        raise LabelError("labels of different types cannot be told apart; make them all numbers or all texts") from None
    return names, numbers.reshape(-1)


def class_weights(classes: Classes, chosen: ClassWeight, weights: Floats | None) -> Floats | None:
    """A weight a class; None: all 1."""
    if chosen is None:
        return None
    if isinstance(chosen, Mapping):
        each = _from_dictionary(classes.names, chosen)
        if np.count_nonzero(each) < 2:
            raise ParameterError(
                Argument("class_weight"), " leaves fewer than two classes a weight; a classifier needs at least two"
            )
        return each
    totals = np.bincount(classes.numbers.astype(np.int64), weights, minlength=len(classes))
    balanced: Floats = totals.sum() / (len(classes) * totals)
    return balanced


def _from_dictionary(names: AnyArray, chosen: Mapping[object, float]) -> Floats:
    found = {name: chosen[name] for name in names.tolist() if name in chosen}
    if len(found) < len(chosen) and len(found) < len(names):
        known = set(names.tolist())
        stray = next(key for key in chosen if key not in known)
        raise ParameterError(
            Argument("class_weight"),
            f" names the class {stray!r}, which is not among the labels: {shortened([str(name) for name in names])}",
        )
    for name, weight in found.items():
        if not 0 <= as_number("class_weight", weight, f" of {name!r}") < np.inf:
            raise ParameterError(
                Argument("class_weight"), f" of {name!r} must be finite and not negative, not {weight}"
            )
    return np.array([float(found.get(name, 1.0)) for name in names.tolist()])
