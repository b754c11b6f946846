"""Block minimisation (11): the dual variables of some rows of S move, those of all others stay as they are.

With a_i = y_i α_i the dual (7) is max −‖Σ a_i x_i‖²/(2λ) − Σ ψ_i(a_i), and w = Σ a_i x_i/λ (8). Everything that the
other rows mean to a block is in w; where the intercept is not free, their sum Σ a_i is in b. A free one adds Σ a_i = 0.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from beeline._types import Ints
from beeline.index import Place
from beeline.kernels import balance, dot
from beeline.losses import ScalarLoss
from beeline.objective import Objective
from beeline.solvers.dual.blocks import DualBlocks, Geometry
from beeline.solvers.dual.shuffled import Centred
from beeline.solvers.indexed.active_set import ActiveSet
from beeline.solvers.indexed.block_newton import BlockPrimal, newton

__all__ = ["BlockSolver", "DualSolver", "NewtonSolver"]


class BlockSolver(ABC):
    """Holds w and the intercept, and keeps (8) true.

    Parameters
    ----------
    objective, loss
        J, and its convex loss.
    active
        S, with its dual variables.
    """

    def __init__(self, objective: Objective, loss: ScalarLoss, active: ActiveSet) -> None:
        self.objective, self.loss, self.active = objective, loss, active
        self.modulus = objective.strength * objective.regularizer.l2

    @abstractmethod
    def restart(self, b: float) -> None:
        """Make w anew from the variables of S, whatever has become of them, near a free intercept b."""

    @abstractmethod
    def solve(self, numbers: Ints) -> float:
        """Minimise over these rows of S; by how much the dual has grown, about: zero where nothing moves."""

    @property
    @abstractmethod
    def place(self) -> Place:
        """w by (8), and the intercept."""

    @abstractmethod
    def primal(self) -> Place:
        """Where J over S should be least, by what was solved since the last time that this was asked."""

    def leave_out(self, rows: Ints) -> None:
        """The variables of these rows become zero, and Σ a_i x_i is taken out of w (I7): else (8) would not hold."""
        _, b = self.place
        self.active.dual[rows] = 0.0
        if self.objective.intercept == "free":
            balance(self.active.dual)
        self.restart(b)


class DualSolver(BlockSolver):
    """Dual coordinate descent on the block (I14): α ← min(max(α − ∇/Q̄, 0), U), in random order; see `DualBlocks`.

    A few sweeps, not the optimum of (11). A free intercept is the multiplier of Σ a_i = 0, which moves after each
    block.
    """

    def __init__(
        self, objective: Objective, loss: ScalarLoss, active: ActiveSet, *, sweeps: int = 10, seed: int = 0
    ) -> None:
        super().__init__(objective, loss, active)
        self.sweeps = sweeps
        w = np.zeros(objective.rows.n_features)
        self.blocks = DualBlocks(loss, _geometry(objective), w, seed, active)
        self._average, self._intercept, self._n_averaged = w.copy(), 0.0, 0

    def restart(self, b: float) -> None:
        """Make w and the sums anew."""
        blocks, g = self.blocks, self.blocks.geometry
        blocks.w[:] = self.active.product() / self.modulus
        means = dot(g.mean, self.modulus * blocks.w) if len(g.mean) else 0.0
        blocks.sums = float(self.active.dual.sum()), means
        if self.objective.intercept == "free":
            blocks.centre = b
        self._n_averaged = 0

    def solve(self, numbers: Ints) -> float:
        """Some sweeps."""
        active, blocks, grown = self.active, self.blocks, 0.0
        blocks.take(numbers, active.gather(numbers), active.labels[numbers], active.costs[numbers])
        for _ in range(self.sweeps):
            growth = blocks.sweep()
            grown += growth
            self._take_average()
            if not growth:
                break
        blocks.leave()
        if self.objective.intercept == "free":
            blocks.recentre()
            grown += abs(blocks.sums[0])
        return grown

    def _take_average(self) -> None:
        """Later sweeps weigh more, as in `DualCD`."""
        w, b = self.blocks.point
        self._n_averaged += 1
        part = 4 / (self._n_averaged + 3)
        self._average += part * (w - self._average)
        self._intercept += part * (b - self._intercept)

    @property
    def place(self) -> Place:
        """w by (8), and the intercept."""
        return self.blocks.point

    def primal(self) -> Place:
        """The average of the weights over sweeps: w itself is far worse, since the dual's error enters by its root."""
        if not self._n_averaged:
            return self.place
        self._n_averaged = 0
        return self._average.copy(), self._intercept


class NewtonSolver(BlockSolver):
    """The primal of the block, min ½λ‖w‖² + Σ_B c_i l(z_i) − wᵀv_B̄ (16), by Newton's method (17), for squared losses.

    v_B̄ = Σ a_i x_i over the rows of S that are not in B; with B = S it is zero. Then a_i = −c_i l'(z_i) (I15), which is
    2C·max(1 − y_i z_i, 0)·y_i for the squared hinge. An intercept b counts like a feature of ones, with Σ a_i over B̄ in
    the place of v; a free one is not in Ω, and ends where Σ a_i = 0.
    """

    def __init__(self, objective: Objective, loss: ScalarLoss, active: ActiveSet) -> None:
        super().__init__(objective, loss, active)
        self._w, self._b = np.zeros(objective.rows.n_features), 0.0

    def restart(self, b: float) -> None:
        """Make w anew."""
        self._w = self.active.product() / self.modulus
        self._b = self._other_intercept(float(self.active.dual.sum()), b)

    def _other_intercept(self, total: float, b: float) -> float:
        """What (8) says of an intercept that is not free."""
        if self.objective.intercept == "regularized":
            return total / self.modulus
        return b if self.objective.intercept == "free" else 0.0

    def solve(self, numbers: Ints) -> float:
        """The optimum, nearly."""
        active, lam = self.active, self.modulus
        block, y, c = active.gather(numbers), active.labels[numbers], active.costs[numbers]
        before = active.of(numbers)
        v, total = lam * self._w - block.transposed(before), float(active.dual.sum())
        free = self.objective.intercept == "free"
        # What a free intercept asks of the block is Σ a_i = 0 over all rows, which its variables now meet.
        rest = -float(before.sum()) if free else total - float(before.sum())
        problem = BlockPrimal(block, y, c, self.loss, lam, self.objective.intercept, v, rest)
        _, b, z = newton(problem, self._w, self._b)
        after = -self.loss.slopes(z, y, c)
        active.put(numbers, after)
        w = (v + block.transposed(after)) / lam
        change = w - self._w
        self._w, self._b = w, self._other_intercept(rest + float(after.sum()), b)
        return 0.5 * lam * dot(change, change)

    @property
    def place(self) -> Place:
        """w by (8), and the intercept."""
        return self._w.copy(), self._b

    def primal(self) -> Place:
        """The same: it is the optimum of the last block."""
        return self.place


def _geometry(objective: Objective) -> Geometry:
    """How the intercept enters the dual; the index knows the rows' mean."""
    o, index = objective, objective.rows.index
    if o.intercept != "free":
        return Geometry.of(o, None)
    assert index is not None
    (sums, squares, _), n = index.moments, max(1, o.rows.n_rows)
    mean = np.ascontiguousarray(sums / n)
    usual = max(math.fsum(squares.tolist()) / n - dot(mean, mean), 0.0)
    none = np.zeros(0)  # of single rows, whose norms each block finds
    return Geometry.of(o, Centred(mean, none, none, usual))
