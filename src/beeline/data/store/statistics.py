"""Statistics of the rows of a store, gathered chunk by chunk while it is written.

Chunks are cut by their rows alone, so that the figures do not depend on how the rows arrived.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block
from beeline.data.core.labels import LabelSets
from beeline.data.store.manifest import plain_number

__all__ = ["Statistics"]

_MOST_DISTINCT = 1000


class _Moments:
    """Count, range, mean and standard deviation of a stream of numbers."""

    def __init__(self) -> None:
        self.count, self.mean, self.squares = 0, 0.0, 0.0
        self.low, self.high = np.inf, -np.inf

    def add(self, values: AnyArray) -> None:
        if not len(values):
            return
        with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinite labels are said as they are
            mean = float(values.mean())
            squares = float(((values - mean) ** 2).sum())
            count = self.count + len(values)
            away = mean - self.mean
            self.mean += away * len(values) / count
            self.squares += squares + away * away * self.count * len(values) / count
            self.count = count
            self.low, self.high = float(np.minimum(self.low, values.min())), float(np.maximum(self.high, values.max()))

    def to_json(self) -> dict[str, Any]:
        if not self.count:
            return {"count": 0}
        figures = {"min": self.low, "max": self.high, "mean": self.mean, "std": (self.squares / self.count) ** 0.5}
        return {"count": self.count, **{name: plain_number(figure) for name, figure in figures.items()}}


class _Distinct:
    """Distinct numbers with their counts, given up when they are too many."""

    def __init__(self) -> None:
        self.values: Floats | None = np.empty(0)
        self.counts: Ints = np.empty(0, np.int64)

    def add(self, values: Floats) -> None:
        if self.values is None:
            return
        found, counts = np.unique(values, return_counts=True)
        both, places = np.unique(np.concatenate([self.values, found]), return_inverse=True)
        if len(both) > _MOST_DISTINCT:
            self.values = None
            return
        self.counts = np.bincount(places, np.concatenate([self.counts, counts]), len(both)).astype(np.int64)
        self.values = both

    def to_json(self) -> dict[str, Any] | None:
        if self.values is None:
            return None
        return {"values": [plain_number(v) for v in self.values.tolist()], "counts": self.counts.tolist()}


@dataclass
class _Range:
    low: float = np.inf
    high: float = -np.inf

    def add(self, values: AnyArray) -> None:
        if len(values):
            self.low = min(self.low, np.fmin.reduce(values, axis=None).item())
            self.high = max(self.high, np.fmax.reduce(values, axis=None).item())

    def to_json(self) -> dict[str, Any] | None:
        return None if self.high < self.low else {"min": plain_number(self.low), "max": plain_number(self.high)}


class Statistics:
    """Figures about labels, weights, queries and values; see docs/store.md."""

    def __init__(self) -> None:
        self._labels, self._distinct, self._weights = _Moments(), _Distinct(), _Moments()
        self._kind: str | None = None
        self._set_sizes, self._values, self._row_entries = _Range(), _Range(), _Range()
        self._nonzeros = self._query_runs = 0
        self._last_query: int | None = None

    def add(self, block: Block) -> None:
        """Take the rows of one chunk into account."""
        if block.labels is not None:
            self._add_labels(block.labels)
        if block.weights is not None:
            self._weights.add(block.weights)
        if block.queries is not None and block.n_rows:
            self._query_runs += int(np.count_nonzero(np.diff(block.queries)))
            self._query_runs += self._last_query != int(block.queries[0])
            self._last_query = int(block.queries[-1])
        values = block.values
        if block.indptr is not None:
            values = values[block.indptr[0] : block.indptr[-1]]
            self._row_entries.add(np.diff(block.indptr))
        self._values.add(values)
        self._nonzeros += int(np.count_nonzero(values))

    def _add_labels(self, labels: Floats | LabelSets) -> None:
        stored = labels
        self._kind = "single"
        if isinstance(labels, LabelSets):
            stored = labels.stored()
            self._kind = "sets"
            self._set_sizes.add(np.diff(labels.indptr))
        assert isinstance(stored, np.ndarray)
        self._labels.add(stored)
        self._distinct.add(stored)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; a field is null where there is nothing to say."""
        labels: dict[str, Any] | None = None
        if self._kind is not None:
            labels = {"kind": self._kind, **self._labels.to_json(), "distinct": self._distinct.to_json()}
            labels["per_row"] = self._set_sizes.to_json()
        return {
            "labels": labels,
            "weights": self._weights.to_json() if self._weights.count else None,
            "query_runs": self._query_runs if self._last_query is not None else None,
            "values": self._values.to_json(),
            "nonzeros": self._nonzeros,
            "row_entries": self._row_entries.to_json(),
        }
