"""Dual coordinate descent on multi-class hinges over some rows at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block
from beeline.kernels import ClassSweeps
from beeline.objective import Objective
from beeline.solvers.dual.blocks import Geometry, RowsDual, Visits
from beeline.solvers.dual.class_dual_cd import set_hinge

__all__ = ["ClassBlocks"]


class ClassBlocks:
    """As `DualBlocks`, for hinges over all classes: a row has a dual variable for each.

    Parameters
    ----------
    objective
        Of which the loss, and the number of classes.
    geometry
        How the intercepts enter.
    w
        Σ x_i a_iᵀ/λ over all rows, of shape (features, classes). It is not copied.
    seed
        The order of the rows.
    variables
        Where variables are kept.
    """

    sweeps: ClassSweeps

    def __init__(self, objective: Objective, geometry: Geometry, w: Floats, seed: int, variables: RowsDual) -> None:
        self.objective, self.geometry, self.w, self.seed, self.variables = objective, geometry, w, seed, variables
        k = objective.n_outputs
        self.sums: tuple[Floats, Floats] = (np.zeros(k), np.zeros(k))
        self.centre = np.zeros(k)
        self._numbers: Ints | None = None
        self._n_blocks = 0

    def take(self, numbers: Ints, block: Block, labels: Floats, costs: Floats) -> None:
        """Leave the last block, and go on with these rows: their numbers, entries, labels and costs, in one order."""
        self.leave()
        self._n_blocks += 1
        g, seed = self.geometry, self.seed + self._n_blocks
        visits = Visits.of_block(block, g, seed)
        classes = labels.astype(np.int64)
        k = self.objective.n_outputs
        self.sweeps = ClassSweeps(visits.arrays, visits.order, visits.copied, classes, costs, k, seed)
        set_hinge(self.sweeps, self.objective)
        self.sweeps.measure(visits.norms, visits.means, 1 / g.modulus, g.rho, g.mean_norm)
        self._numbers = np.array(numbers, dtype=np.int64)
        self.sweeps.take(self.variables.of(self._numbers), self.w, *self.sums)
        self.sweeps.set_centre(self.centre)

    def leave(self) -> None:
        """Keep what has become of the block; there is none then until the next `take`."""
        if self._numbers is None:
            return
        a = np.empty((len(self._numbers), self.objective.n_outputs))
        self.sweeps.copy_dual(a)
        self.variables.put(self._numbers, a)
        self._fetch()
        self._numbers = None

    def snapshot(self) -> dict[str, Any]:
        """What the next block goes on from beside the variables, after `leave`."""
        return {"w": self.w, "sums": self.sums, "centre": self.centre, "n_blocks": self._n_blocks}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        totals, means = map(np.array, snapshot["sums"])
        self.w[:], self.sums, self.centre = snapshot["w"], (totals, means), np.array(snapshot["centre"])
        self._n_blocks = snapshot["n_blocks"]

    def _fetch(self) -> None:
        """Bring weights and sums here."""
        totals, means = (np.empty(self.objective.n_outputs) for _ in range(2))
        self.sweeps.average_weights(1.0, self.w)
        self.sweeps.copy_totals(totals)
        self.sweeps.copy_means(means)
        self.sums = totals, means

    def sweep(self) -> float:
        """A sweep over the block; by how much the dual grew."""
        return self.sweeps.sweep()[0]

    def active(self) -> AnyArray:
        """Which rows of the block have not been shrunk."""
        assert self._numbers is not None
        marks = np.empty(len(self._numbers), np.uint8)
        self.sweeps.copy_active(marks)
        return marks.view(np.bool_)

    def recentre(self) -> None:
        """The step of the method of multipliers: the intercepts found so far become b₀."""
        self.centre = self.centre + self.geometry.rho * self.sums[0]

    @property
    def point(self) -> tuple[Floats, Floats]:
        """(W, b): the weights, as rows without their mean have them, and the intercepts."""
        if self._numbers is not None:
            self._fetch()
        g, (totals, means) = self.geometry, self.sums
        w = self.w - np.outer(g.mean, totals / g.modulus) if len(g.mean) else self.w.copy()
        return w, self.centre + g.rho * totals - (means - totals * g.mean_norm) / g.modulus
