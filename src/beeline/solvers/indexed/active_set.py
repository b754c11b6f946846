"""The active set S: rows that matter, or did, or may soon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset, Dataset
from beeline.data.core.segments import Segments
from beeline.engines.threads import LocalRows, shards_of
from beeline.index import Pilot
from beeline.kernels import balance
from beeline.losses import Loss
from beeline.objective import Objective
from beeline.solvers.indexed.searching import Found
from beeline.solvers.state import State

__all__ = ["ActiveSet"]

Targets = Callable[[Ints], tuple[Floats, Floats]]  # the labels and costs of rows by their places

_NOWHERE = -1  # the chunk of random rows that have not been found in their own
_BESIDE = 8  # part of the memory for what a problem has beside rows; more of it is on disk
_RUN = 512 << 10  # bytes of segments that are a shard together: to call a verb takes as long as to read half of that
_NARROW = 2**16  # features that 16 bits can tell apart


class ActiveSet:
    """Rows, to which others are added, and a dual variable for each.

    It begins with random rows, each of which stands for many others. Such a row stays a guard until it is found where
    it lies: where it comes to matter, so do others like it that are not here.

    Attributes
    ----------
    positions, labels, costs
        Where its rows lie, and what belongs to them.
    chunks
        The chunk that each was found in, or −1.
    guards
        For how many rows each stands as a random row; 1 for those that were found.
    dual
        The dual variables, as the last problem over it had them; zero for rows that came since.
    """

    ROW_BYTES = 64  # of what is kept beside a row
    PROBLEM_BYTES = 128  # of what a problem has beside a row

    def __init__(self, pilot: Pilot, labels: Floats, costs: Floats) -> None:
        self.positions, self.labels, self.costs = pilot.positions, labels, costs
        self.chunks: Ints = np.full(len(labels), _NOWHERE, np.int64)
        self.guards, self.dual = pilot.weights.copy(), np.zeros(len(labels))
        self._rows = Segments(pilot.block.n_features)
        self._rows.add(_narrowed(pilot.block))
        self._order: Ints = np.argsort(self.positions, kind="stable")

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def nbytes(self) -> int:
        """What it takes of memory."""
        return self._rows.nbytes + self.ROW_BYTES * len(self)

    def snapshot(self) -> dict[str, Any]:
        """What the same set is made of: the places of its rows, which are read again."""
        kept = {name: getattr(self, name) for name in ("positions", "chunks", "guards", "dual")}
        return {**kept, "segments": self._rows.layout()}

    def restore(self, snapshot: Mapping[str, Any], store: Dataset, targets_of: Targets) -> None:
        """Become the set of a snapshot, whose rows are those of a store."""
        for name in ("positions", "chunks", "guards", "dual"):
            setattr(self, name, np.array(snapshot[name]))
        self.labels, self.costs = targets_of(self.positions)
        self._rows = Segments.laid_out(self._rows.n_features, snapshot["segments"], store, self.positions)
        self._order = np.argsort(self.positions, kind="stable")

    def scores(self, w: Floats, b: float) -> Floats:
        """The scores of its rows."""
        if not len(self):
            return np.zeros(0)
        return np.concatenate([block.scores(w) for block in self._rows.blocks()]) + b

    def gather(self, numbers: Ints) -> Block:
        """Some of its rows."""
        return self._rows.gather(numbers)

    def of(self, numbers: Ints) -> Floats:
        """The dual variables of some of its rows."""
        return self.dual[numbers]

    def put(self, numbers: Ints, values: Floats) -> None:
        """Set the dual variables of some of its rows."""
        self.dual[numbers] = values

    def product(self) -> Floats:
        """Σ a_i x_i over its rows."""
        total, first = np.zeros(self._rows.n_features), 0
        for block in self._rows.blocks():
            total += block.transposed(self.dual[first : first + block.n_rows])
            first += block.n_rows
        return total

    def places(self, positions: Ints) -> Ints:
        """Which of its own each of some rows is; −1 where it is none."""
        if not len(self):
            return np.full(len(positions), -1)
        ordered = self.positions[self._order]
        at = np.searchsorted(ordered, positions)
        known = at < len(ordered)
        known[known] = ordered[at[known]] == positions[known]
        return np.where(known, self._order[np.minimum(at, len(self) - 1)], -1)

    def find(self, rows: Ints, chunks: Ints) -> None:
        """Take note of rows that were found where they lie: they stand for themselves from now on."""
        self.chunks[rows], self.guards[rows] = chunks, 1.0

    def add(self, found: Found, chunks: Ints) -> None:
        """Take rows in, none of which it has."""
        if not len(found.positions):
            return
        none = np.zeros(len(found.positions))
        self._rows.add(_narrowed(found.block))
        self.positions = np.concatenate([self.positions, found.positions])
        self.labels = np.concatenate([self.labels, found.labels])
        self.costs = np.concatenate([self.costs, found.costs])
        self.chunks = np.concatenate([self.chunks, chunks])
        self.guards = np.concatenate([self.guards, none + 1.0])
        self.dual = np.concatenate([self.dual, none])
        self._order = np.argsort(self.positions, kind="stable")

    def keep(self, rows: AnyArray) -> None:
        """Keep these rows only, by a mark for each."""
        self._rows.keep(rows)
        for name in ("positions", "labels", "costs", "chunks", "guards", "dual"):
            setattr(self, name, getattr(self, name)[rows])
        self._order = np.argsort(self.positions, kind="stable")

    def spill(self, allowed: int) -> None:
        """Bring rows to the disk until no more bytes are held than allowed; they are read as they are needed (I21)."""
        self._rows.spill(max(0, allowed - self.ROW_BYTES * len(self)))

    def problem(self, objective: Objective, loss: Loss, factors: Floats | float = 1.0) -> Objective:
        """The objective over its rows alone, where each stands for so many."""
        o, single = objective, self._rows.single
        data = self._rows if single is None else ArrayDataset(single)
        memory = o.rows.memory
        small = memory is None or self.PROBLEM_BYTES * len(self) <= memory // _BESIDE
        rows = LocalRows(data, shards_of(data, _RUN, None), None if small else memory)
        columns = rows.scatter(self.labels), rows.scatter(self.costs * factors)
        return Objective(rows, *columns, loss, o.regularizer, o.strength, o.intercept)

    def start(self, theta: Floats, problem: Objective) -> State:
        """Where to begin with a problem over its rows: θ, and dual variables that are feasible for it."""
        costs = problem.rows.gather(problem.costs)
        a = np.where(costs > 0, self.dual, 0.0)
        if not problem.loss.smooth:  # those of a hinge, or a tube, are no larger than costs
            a = np.clip(a, -costs, costs)
        if problem.intercept == "free":
            balance(a)
        return State(theta, {"dual": a})


def _narrowed(block: Block) -> Block:
    """The rows with indices of 16 bits, where these are enough: a quarter less memory."""
    if block.indices is None or block.n_features > _NARROW:
        return block
    return replace(block, indices=block.indices.astype(np.uint16))
