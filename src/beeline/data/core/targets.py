"""What belongs to rows beside their features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from beeline._lazy import cached_property
from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.dataset import Dataset
from beeline.data.core.labels import LabelSets, missing
from beeline.exceptions import DataError, ParameterError

__all__ = ["Targets", "as_groups", "group_starts"]


@dataclass(frozen=True, eq=False)
class Targets:
    """Labels, weights and groups of rows.

    Attributes
    ----------
    labels
        One label, or set of labels, a row; None where there are none.
    weights
        One weight a row; None: all 1. A row of weight 0 is as good as absent.
    groups
        One name or number of a group a row (a query, a sequence); None: rows are by themselves.
    group_word
        What a group is called in messages.
    """

    labels: AnyArray | LabelSets | None
    weights: Floats | None = None
    groups: AnyArray | None = None
    group_word: str = "group"

    @classmethod
    def of(
        cls,
        data: Dataset,
        labels: AnyArray | LabelSets | None = None,
        weights: Floats | None = None,
        groups: AnyArray | None = None,
    ) -> Targets:
        """Those that were given; weights otherwise those that the data have inside, if any."""
        inside = data.weights
        if weights is not None and inside is not None:
            raise ParameterError(
                "the data already have weights; give ", Argument("sample_weight"), " or weights in the data, not both"
            )
        if weights is not None and len(weights) and (not np.isfinite(weights).all() or weights.min() < 0):
            raise DataError("sample weights must be finite and not negative")
        groups = None if groups is None else as_groups(groups, data.n_rows)
        return cls(labels, inside if weights is None else weights, groups)

    @cached_property
    def starts(self) -> Ints:
        """Where the groups begin, and behind the last one where it ends; the rows of a group must lie together."""
        if self.groups is None:
            raise DataError(
                Sentence(
                    "the rows have no groups; give data with query ids (qid: in LIBSVM text), name the column of a "
                    "table that holds them by ",
                    Argument("query"),
                    ", or give groups=, one a row, in Python",
                )
            )
        starts = group_starts(self.groups)
        names, first = np.unique(self.groups[starts[:-1]], return_index=True)
        if len(names) < len(starts) - 1:
            again = min(set(range(len(starts) - 1)) - set(first.tolist()))
            row, word = int(starts[again]), self.group_word
            raise DataError(
                f"row {row} goes on with the {word} {self.groups[row]}, which had ended before; sort the rows by {word}"
            )
        return starts


def as_groups(given: Any, n_rows: int | None = None, name: str = "groups") -> AnyArray:  # noqa: ANN401
    """The group of each row, as an array of which every entry is known and can be told from the others.

    Parameters
    ----------
    given
        One name or number a row.
    n_rows
        How many there have to be; None: that is not known yet.
    name
        What the argument is called.
    """
    groups: AnyArray = np.asarray(given)
    if groups.ndim != 1 or (n_rows is not None and len(groups) != n_rows):
        wanted = "" if n_rows is None else f", {n_rows} in all"
        raise ParameterError(Argument(name), f" must be one a row{wanted}, not of shape {groups.shape}")
    if (unknown := missing(groups)) is not None and unknown.any():
        row = int(np.argmax(unknown))
        raise ParameterError(
            Argument(name), f" of row {row} is {groups[row]}; give one that is known, or remove the row"
        )
    if groups.dtype.kind == "O" and len({isinstance(group, str) for group in groups}) > 1:
        raise ParameterError(
            Argument(name), " of different types cannot be told apart; make them all numbers or all texts"
        )
    return groups


def group_starts(groups: AnyArray) -> Ints:
    """Where the group of a row is another than that of the row before, and behind the last row."""
    changes = np.flatnonzero(groups[1:] != groups[:-1]) + 1
    starts: Ints = np.concatenate([[0], changes, [len(groups)]]).astype(np.int64)
    return starts if len(groups) else starts[:1]
