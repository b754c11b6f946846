"""Labels as training needs them: class numbers and weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.exceptions import LabelError, ParameterError
from beeline.fitting.settings import ClassWeight
from beeline.model.model import shortened

__all__ = ["Classes", "class_weights", "find_classes"]

_WIDEST = 1 << 20  # of whole-number labels that are counted instead of sorted


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a data set.

    Attributes
    ----------
    names
        What they are called, sorted.
    numbers
        The class number of every row, 0 … K−1, as floats.
    """

    names: AnyArray
    numbers: Floats

    def __len__(self) -> int:
        return len(self.names)


def find_classes(y: AnyArray, weights: Floats | None, texts: tuple[str, ...] | None = None) -> Classes:
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
    """
    if y.dtype.kind == "f" and not (whole := y == np.floor(y)).all():
        row = int(np.argmin(whole))
        raise LabelError(
            f"row {row} has the label {y[row]}, which names no class; take the loss of a regression for real labels"
        )
    names, numbers = _numbered(y)
    if texts is not None:
        names = np.array([texts[int(name)] for name in names])
    present = np.ones(len(names), bool)
    if weights is not None:
        present = np.bincount(numbers, weights > 0, minlength=len(names)) > 0
    if present.sum() < 2:
        one = f"only one class, {names[present][0]}" if present.any() else "no class at all"
        raise LabelError(f"the rows (of positive weight) have {one}; a classifier needs at least two classes")
    kept = np.flatnonzero(present)
    kept = kept[np.argsort(names[kept], kind="stable")]
    new_number = np.zeros(len(names))
    new_number[kept] = np.arange(len(kept))
    return Classes(names[kept], new_number[numbers])


def _numbered(y: AnyArray) -> tuple[AnyArray, Ints]:
    """(the distinct labels, the number of each row's label)."""
    if y.dtype.kind in "iuf" and len(y):
        low, high = float(y.min()), float(y.max())
        if high - low < _WIDEST and np.all(y == np.floor(y)):  # sorting millions of labels takes a second
            shifted = (y - y.min()).astype(np.int64)
            values = np.flatnonzero(np.bincount(shifted))
            place = np.zeros(int(high - low) + 1, np.int64)
            place[values] = np.arange(len(values))
            return (values + y.min()).astype(y.dtype), place[shifted]
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
        return _from_dictionary(classes.names, chosen)
    totals = np.bincount(classes.numbers.astype(np.int64), weights, minlength=len(classes))
    balanced: Floats = totals.sum() / (len(classes) * totals)
    return balanced


def _from_dictionary(names: AnyArray, chosen: Mapping[object, float]) -> Floats:
    found = {name: chosen[name] for name in names.tolist() if name in chosen}
    if len(found) < len(chosen) and len(found) < len(names):
        known = set(names.tolist())
        stray = next(key for key in chosen if key not in known)
        raise ParameterError(
            f"class_weight names the class {stray!r}, which is not among the labels: "
            f"{shortened([str(name) for name in names])}"
        )
    for name, weight in found.items():
        if not 0 <= weight < np.inf:
            raise ParameterError(f"class_weight of {name!r} must be finite and not negative, not {weight}")
    return np.array([float(found.get(name, 1.0)) for name in names.tolist()])
