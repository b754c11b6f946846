"""Averaged truncated steps on columns that are scaled by themselves: the rule that has nothing to set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block
from beeline.losses import Softmax
from beeline.objective.parameters import Parameters
from beeline.solvers.stochastic.options import SGDOptions
from beeline.solvers.stochastic.rule import Problem, units_of
from beeline.solvers.stochastic.scales import ColumnSums, Scales
from beeline.solvers.stochastic.tables import ClassTable, ScoreTable, Steps, Table

__all__ = ["Averaged"]

_LOOK = 4096  # rows that say how features are scaled
_RATE, _DECAY, _POWER = 4.0, 4.0, 0.75  # of η_t = 4/(1 + 4·passes)^0.75, chosen on ten sets (docs/solvers.md)
_SOFTMAX_POWER = 0.5  # whose slopes vanish by themselves where it fits
_STEADY = _RATE / (1 + _DECAY) ** _POWER  # η_t after a pass: that of rows of which nobody knows how many come
_LEAST_SKIP = 8  # rows between two times that L2 shrinks the weights
_SCORED = 2048  # rows of a pass that averages of several classes are to be scored on
_MOST_STRIDE = 8  # rows, of which one is scored


class Averaged:
    """Weights and their averages, with what the kernel of the steps needs beside them.

    Scales are those of the first 4,096 rows. Where rows come in smaller batches, they are looked at again whenever
    there are twice as many.
    """

    def __init__(
        self, problem: Problem, options: SGDOptions, theta: Floats | None = None, rows_before: float = 0.0
    ) -> None:
        self.problem, self._begin_at = problem, rows_before
        self._sums = ColumnSums.of_nothing(problem.layout.n_features)
        self._looked, self._entries = 0.0, 1.0  # rows at the last look, and entries a row
        self._unit = 1.0  # of step sizes
        self.drowned = 0  # features whose spread is lost in the rounding of their offset
        self._scales: Scales | None = None
        self._unseen: AnyArray = np.zeros(0, bool)  # columns with scales of their own that are not known yet
        self._searched: Block | None = None  # for entries of theirs
        self._start = None if theta is None else np.array(theta, dtype=np.float64).reshape(self._shape)
        self._table: Table | None = None
        self._kernel: Steps | None = None

    @property
    def _shape(self) -> tuple[int, int]:
        layout = self.problem.layout
        return layout.n_features + layout.has_intercept, layout.n_outputs

    # Learning.

    def learn(self, block: Block, order: Ints, labels: Floats, costs: Floats) -> tuple[float, float, float]:
        """(Σ c l, Σ c [wrong], Σ c) of rows before they were learned from."""
        if self._looked < _LOOK:
            self._measure(block, order[costs[order] > 0], labels)
        elif self._unseen.any() and block is not self._searched:
            self._look_at_unseen(block)
        if self._kernel is None:
            return 0.0, 0.0, 0.0  # no row costs anything
        return self._kernel.learn(block.arrays, order, labels, costs)

    @property
    def rows(self) -> float:
        """How many rows were learned from."""
        return self._begin_at if self._kernel is None else self._kernel.steps

    @property
    def theta(self) -> Floats:
        """The averages; with L1, where weights are zero by now, their averages are taken for zero."""
        if self._kernel is None or self._table is None:
            return np.zeros(self.problem.layout.size) if self._start is None else self._start.ravel().copy()
        return self._table.averages(self._kernel, sparse=self.problem.strengths.l1 > 0).ravel()

    def _measure(self, block: Block, rows: Ints, labels: Floats) -> None:
        """See how large features are, while there is little to go by, and carry the weights over to other scales."""
        rows = rows[:_LOOK]
        sample = block.gather(rows)
        if not sample.n_rows:
            return
        if self._table is None:
            self._look_at_labels(labels[rows])
        self._sums.add(sample)
        if self._sums.n < min(_LOOK, 2 * self._looked):
            return
        layout = self.problem.layout
        whole = sample if self._sums.n == sample.n_rows else None
        self._scales = self._sums.scales(whole, intercept=layout.has_intercept, centres=layout.intercept == "free")
        self.drowned = self._sums.drowned(self._scales)
        self._entries, self._looked = self._sums.entries / self._sums.n, self._sums.n
        self._unseen = self._sums.counts == 0 if self._scales.own else np.zeros(0, bool)
        self._lay_out(*self._contents())

    def _look_at_labels(self, labels: Floats) -> None:
        """Of a regression: the units of step sizes, and where an intercept begins that nobody gave."""
        layout = self.problem.layout
        constant, self._unit = units_of(self.problem.loss, labels)
        if layout.intercept == "free" and self._start is None and constant:
            self._start = np.zeros(self._shape)
            self._start[-1] = constant

    def _look_at_unseen(self, block: Block) -> None:
        """See how large the first entries are of columns that have had none; their weights are zero so far."""
        assert self._scales is not None
        self._scales, self._unseen = self._scales.with_first(self._unseen, block)
        self._searched = block
        self._lay_out(*self._contents())

    def _contents(self) -> tuple[Floats | None, Floats]:
        """(The weights and F for rows as they come, up to where each has decayed); None: nothing but zeros."""
        if self._table is None:
            start = self._start
            return None if start is None else np.stack([start, np.zeros_like(start)]), np.zeros(self._shape[0])
        return self._table.pair, self._table.decayed

    def _lay_out(self, pair: Floats | None, decayed: Floats) -> None:
        """Make the table and its kernel for the scales as they are by now; the steps go on where they are."""
        assert self._scales is not None
        progress = None if self._kernel is None else self._kernel.progress()
        outputs = self.problem.layout.n_outputs
        kind = ScoreTable if outputs == 1 else ClassTable
        self._table = kind(pair, self._steps_along(self._scales), self._scales.means, decayed, outputs)
        self._make_kernel(progress)

    def _steps_along(self, scales: Scales) -> Floats:
        """p. What L2 shrinks as much as it is pushed needs no longer steps, however small its features are."""
        layout = self.problem.layout
        force = self._skip * self._rate * self.problem.strengths.l2
        sizes: Floats = 1 / (scales.squares + force)
        if not layout.has_intercept:
            return sizes
        return np.append(sizes, 1 / (scales.intercept + (force if layout.intercept == "regularized" else 0.0)))

    @property
    def _skip(self) -> int:
        return max(_LEAST_SKIP, math.ceil(2 * self.problem.layout.n_features / max(1.0, self._entries)))

    @property
    def _stride(self) -> int:
        """Of how many rows one is scored by the averages of several classes."""
        horizon = self.problem.horizon
        return 1 if horizon is None else max(1, min(_MOST_STRIDE, int(horizon / _SCORED)))

    @property
    def _rate(self) -> float:
        return self._unit * (_STEADY if self.problem.horizon is None else _RATE)

    def _make_kernel(self, progress: tuple[float, ...] | None = None) -> None:
        """The kernel over the table, from where it was."""
        assert self._table is not None
        problem = self.problem
        decay = 0.0 if problem.horizon is None else _DECAY / problem.horizon
        power = _SOFTMAX_POWER if isinstance(problem.loss, Softmax) else _POWER
        settings = *problem.strengths, self._rate, decay, power
        self._kernel = self._table.kernel(problem, settings, self._skip, self._stride)
        if progress is not None:
            self._kernel.resume(progress)
        else:
            self._kernel.begin_at(self._begin_at)

    # Growing and going on.

    def grow(self, layout: Parameters) -> None:
        """Take in more features and outputs."""
        before, had = self.problem.layout, self._shape
        pair, decayed = self._contents()
        self.problem = self.problem._replace(layout=layout)
        more = layout.n_features - before.n_features
        places = np.append(np.arange(before.n_features), np.arange(before.n_features, had[0]) + more)
        if self._start is not None:
            self._start = _spread(self._start, places, self._shape)
        self._sums.grow(layout.n_features)
        if self._scales is None or self._kernel is None:
            return
        self._scales = self._scales.grown(layout.n_features)
        if self._scales.own:
            self._unseen = np.append(self._unseen, np.ones(more, bool))
        grown = np.full(self._shape[0], self._kernel.progress()[3])
        grown[places] = decayed
        assert pair is not None
        self._lay_out(np.stack([_spread(matrix, places, self._shape) for matrix in pair]), grown)

    def snapshot(self) -> dict[str, Any]:
        """All that it goes on from."""
        begun = self._table is not None and self._kernel is not None
        return {
            "start": None if begun else self._start,
            "table": self._table.snapshot() if self._table is not None else None,
            "progress": list(self._kernel.progress()) if self._kernel is not None else None,
            "sums": self._sums.snapshot() if self._looked < _LOOK else None,
            "scales": None if self._scales is None else list(self._scales),
            "unseen": np.flatnonzero(self._unseen),
            "counts": [self._begin_at, self._looked, self._entries, self._unit],
            "drowned": self.drowned,
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._begin_at, self._looked, self._entries, self._unit = snapshot["counts"]
        self.drowned = int(snapshot.get("drowned", 0))  # the first states did not say
        if snapshot["start"] is not None:
            self._start = np.array(snapshot["start"])
        if snapshot["sums"] is not None:
            self._sums = ColumnSums.restored(snapshot["sums"])
        if snapshot["scales"] is None:
            return
        self._scales = Scales(*snapshot["scales"])
        if self._scales.own:
            self._unseen = np.zeros(self.problem.layout.n_features, bool)
            self._unseen[np.array(snapshot["unseen"], dtype=np.int64)] = True
        kind = ScoreTable if self.problem.layout.n_outputs == 1 else ClassTable
        self._table = kind.restored(snapshot["table"])
        self._make_kernel(tuple(snapshot["progress"]))


def _spread(matrix: Floats, places: Ints, shape: tuple[int, int]) -> Floats:
    """The same rows in a larger matrix."""
    larger = np.zeros(shape)
    larger[places, : matrix.shape[1]] = matrix
    return larger
