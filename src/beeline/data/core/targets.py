"""What belongs to rows beside their features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from beeline._lazy import cached_property
from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.dataset import Dataset
from beeline.data.core.labels import LabelSets
from beeline.exceptions import DataError, ParameterError

__all__ = ["Targets", "group_starts"]


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
    """

    labels: AnyArray | LabelSets | None
    weights: Floats | None = None
    groups: AnyArray | None = None

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
        groups = None if groups is None else np.asarray(groups)
        if groups is not None and groups.shape != (data.n_rows,):
            raise ParameterError(
                Argument("groups"), f" must be one a row, {data.n_rows} in all, not of shape {groups.shape}"
            )
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
            row = int(starts[again])
            raise DataError(
                f"row {row} goes on with the group {self.groups[row]}, which had ended before; sort the rows by group"
            )
        return starts


def group_starts(groups: AnyArray) -> Ints:
    """Where the group of a row is another than that of the row before, and behind the last row."""
    changes = np.flatnonzero(groups[1:] != groups[:-1]) + 1
    starts: Ints = np.concatenate([[0], changes, [len(groups)]]).astype(np.int64)
    return starts
