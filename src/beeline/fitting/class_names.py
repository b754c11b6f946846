"""Classes that become known while rows come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline._words import shortened
from beeline.exceptions import LabelError
from beeline.training.labels import first_fraction, numbered, refuse_inexact

__all__ = ["ClassNames"]


class ClassNames:
    """The classes so far, numbered in the order in which they came, and the weight of the rows of each.

    Parameters
    ----------
    names
        Those that are known from the beginning.
    closed
        Whether there are no others.

    Attributes
    ----------
    totals
        The weights of the rows of each class that were learned from.
    """

    def __init__(self, names: AnyArray | None = None, *, closed: bool = False) -> None:
        self.names: list[Any] = [] if names is None else np.asarray(names).tolist()
        self.dtype = None if names is None else np.asarray(names).dtype
        self.closed = closed
        self.totals: Floats = np.zeros(len(self.names))
        self._places = {name: k for k, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sorted(self) -> AnyArray:
        """The classes as a model has them."""
        return np.array([self.names[k] for k in self.order()], self.dtype)

    def order(self) -> Ints:
        """The number of each class of `sorted`."""
        return np.array(sorted(range(len(self.names)), key=lambda k: self.names[k]), np.int64)

    def number(self, labels: AnyArray, texts: Sequence[str] | None, first_row: int = 0) -> Floats:
        """The number of each label's class; one that is new gets the next.

        Parameters
        ----------
        labels, texts
            Labels, or the numbers of texts.
        first_row
            The number of the first row, for messages.
        """
        if texts is None:
            refuse_inexact(labels, first_row=first_row)
        if (row := first_fraction(labels)) is not None:
            raise LabelError(
                f"row {first_row + row} has the label {labels[row]}, which names no class; take the loss of a "
                "regression for real labels"
            )
        found, places = numbered(labels)
        self._note_type(np.array(texts) if texts is not None else found)
        names = found.tolist() if texts is None else [texts[int(name)] for name in found]
        if any(name not in self._places for name in names):
            first = [int(np.argmax(places == k)) for k in range(len(names))]  # new ones in the order of their rows
            for k in np.argsort(first).tolist():
                self._add(names[k], first_row + first[k])
        return np.array([self._places[name] for name in names], np.float64)[places]

    def count(self, numbers: Floats, weights: Floats | None) -> None:
        """Rows of these classes are learned from."""
        self.totals = _longer(self.totals, len(self.names))
        self.totals += np.bincount(numbers.astype(np.int64), weights, minlength=len(self.names))

    def balanced(self) -> Floats:
        """A weight for each class, by which all classes that had rows so far have had the same total."""
        totals = _longer(self.totals, len(self.names))
        present = totals > 0
        each = np.ones(len(totals))
        each[present] = totals.sum() / (np.count_nonzero(present) * totals[present])
        return each

    def _note_type(self, labels: AnyArray) -> None:
        if self.dtype is None:
            self.dtype = labels.dtype
            return
        if (labels.dtype.kind in "OUS") != (self.dtype.kind in "OUS"):
            raise LabelError("labels of different types cannot be told apart; make them all numbers or all texts")
        self.dtype = np.promote_types(self.dtype, labels.dtype)

    def _add(self, name: Any, row: int) -> None:  # noqa: ANN401
        if name in self._places:
            return
        if self.closed:
            known = shortened([str(one) for one in self.names])
            raise LabelError(f"row {row} has the label {name}, which is none of the classes: {known}")
        self._places[name] = len(self.names)
        self.names.append(name)

    def to_document(self) -> dict[str, Any]:
        """Itself as numbers, texts and arrays."""
        if not all(isinstance(name, str | bool | int | float) for name in self.names):
            raise LabelError("classes that are neither numbers nor texts cannot be saved")
        kind = "text" if self.dtype is None or self.dtype.kind in "US" else self.dtype.name
        totals = _longer(self.totals, len(self.names))
        return {"names": self.names, "type": kind, "closed": self.closed, "totals": totals}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> ClassNames:
        """The classes that `to_document` described."""
        kind = document["type"]
        names = np.array(document["names"], str if kind == "text" else kind)
        again = cls(names if len(names) else None, closed=bool(document["closed"]))
        again.totals = np.array(document["totals"], np.float64)
        if again.totals.shape != names.shape or len(again._places) != len(names):
            raise ValueError("its classes do not fit")
        return again


def _longer(array: Floats, n: int) -> Floats:
    return array if len(array) >= n else np.append(array, np.zeros(n - len(array)))
