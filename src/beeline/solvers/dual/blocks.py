"""Dual coordinate descent over some rows at a time: what dual solvers of one score a row are made of.

The dual is max −‖Σ a_i x_i‖²/(2λ) − Σ ψ_i(a_i). A block of rows is descended upon while the variables of all others
stay as they are: those matter to it only by w = Σ a_i x_i/λ and, for the intercept's constraint, by s = Σ a_i and
μᵀΣ a_i x_i, each over all rows. Whoever holds these holds the problem; rows may come from anywhere, in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block
from beeline.engines import Rows, RowVector
from beeline.kernels import DualSweeps, RowArrays, dot
from beeline.losses import Loss
from beeline.objective import Objective
from beeline.solvers.dual.shuffled import Centred, ShuffledRows

__all__ = ["DualBlocks", "DualVariables", "Geometry", "RowsDual", "SparseDual", "Visits", "sweeps_over"]

_NONE = np.zeros(0)
_ROUNDING = 4 * float(np.finfo(np.float64).eps)


class Geometry(NamedTuple):
    """How the intercept enters the dual, the same for all rows.

    A free one adds Σ a_i = 0, met by the method of multipliers over rows as seen from their mean μ: the dual minus
    b₀s + ρs²/2 is maximised, and b₀ moves to b₀ + ρs. A regularized one is a weight like others, ρ = 1/λ; without
    intercept ρ = 0.

    Attributes
    ----------
    modulus
        λ = strength · l2.
    rho
        ρ.
    mean, mean_norm
        μ and ‖μ‖²; empty and 0 where the intercept is not free.
    """

    modulus: float
    rho: float
    mean: Floats = _NONE
    mean_norm: float = 0.0

    @classmethod
    def of(cls, objective: Objective, centred: Centred | None) -> Geometry:
        """That of an objective, whose rows have that mean; it is not asked for unless the intercept is free."""
        o = objective
        modulus = o.strength * o.regularizer.l2
        if o.intercept != "free" or centred is None:
            return cls(modulus, 1 / modulus if o.intercept == "regularized" else 0.0)
        # As stiff as a row, and stiff enough for the rows together to move the intercept by a margin.
        rho = max(centred.usual_norm / modulus, 1 / max(o.total_cost, 1e-300))
        return cls(modulus, rho, centred.mean, dot(centred.mean, centred.mean))


class Visits(NamedTuple):
    """Rows, and the order in which to visit them.

    Attributes
    ----------
    arrays, order, copied
        The rows; their places in the order of the visits; whether `arrays` has them in that order.
    norms, means
        ‖x_i − μ‖² and μᵀx_i of every row, by its place; no means where μ is zero.
    """

    arrays: RowArrays
    order: Ints
    copied: bool
    norms: Floats
    means: Floats

    @classmethod
    def of_all(cls, rows: ShuffledRows, geometry: Geometry) -> Visits:
        """All rows of a data set in memory."""
        if len(geometry.mean):
            return cls(rows.arrays, rows.order, rows.copied, rows.centred.norms, rows.centred.means)
        return cls(rows.arrays, rows.order, rows.copied, rows.norms, _NONE)

    @classmethod
    def of_block(cls, block: Block, geometry: Geometry, seed: int) -> Visits:
        """The rows of a block."""
        order = np.random.default_rng(seed).permutation(block.n_rows)
        norms = block.squared_norms()
        if not len(geometry.mean):
            return cls(block.arrays, order, False, norms, _NONE)
        means = block.scores(geometry.mean)
        # A norm that is too small, where rounding is all of it, would make steps too long; one too large shorter.
        rounding = _ROUNDING * (norms + geometry.mean_norm)
        norms = np.maximum(norms - 2 * means + geometry.mean_norm, 0.0) + rounding
        return cls(block.arrays, order, False, norms, means)


def sweeps_over(  # noqa: PLR0913
    visits: Visits, labels: Floats, costs: Floats, a: Floats, w: Floats, loss: Loss, geometry: Geometry, *, seed: int
) -> DualSweeps:
    """The kernel that descends upon rows with these variables, as if there were no others; it changes w in place."""
    rows = visits.arrays, visits.order, visits.copied
    sweeps = DualSweeps(*rows, labels, costs, a, w, str(loss.compiled), loss.parameters, seed)
    sweeps.measure(visits.norms, visits.means, 1 / geometry.modulus, geometry.rho, geometry.mean_norm)
    return sweeps


class DualVariables(Protocol):
    """Where dual variables are kept, by the numbers of rows."""

    def of(self, numbers: Ints) -> Floats:
        """The variables of these rows, as a copy."""

    def put(self, numbers: Ints, values: Floats) -> None:
        """Set the variables of these rows, none of them twice."""


class SparseDual:
    """Dual variables of the rows that have been visited; all others are zero, and absent.

    Attributes
    ----------
    numbers, values
        The rows, increasing, and the variable of each.
    """

    def __init__(self) -> None:
        self.numbers: Ints = np.zeros(0, np.int64)
        self.values: Floats = np.zeros(0)

    def __len__(self) -> int:
        return len(self.numbers)

    def of(self, numbers: Ints) -> Floats:
        """The variables of these rows; zero where there is none yet."""
        values = np.zeros(len(numbers))
        at, known = self._places(numbers)
        values[known] = self.values[at[known]]
        return values

    def put(self, numbers: Ints, values: Floats) -> None:
        """Set the variables of these rows, none of them twice."""
        at, known = self._places(numbers)
        self.values[at[known]] = values[known]
        if not known.all():
            new = np.concatenate([self.numbers, numbers[~known]])
            order = np.argsort(new, kind="stable")
            self.numbers, self.values = new[order], np.concatenate([self.values, values[~known]])[order]

    def dense(self, n_rows: int) -> Floats:
        """One variable a row, of so many."""
        a = np.zeros(n_rows)
        a[self.numbers] = self.values
        return a

    def _places(self, numbers: Ints) -> tuple[Ints, AnyArray]:
        """(where each row is, or would be; whether it is there)."""
        at: Ints = np.searchsorted(self.numbers, numbers).astype(np.int64, copy=False)
        known: AnyArray = at < len(self.numbers)
        known[known] = self.numbers[at[known]] == numbers[known]
        return at, known


class RowsDual:
    """Dual variables that lie where the rows are: on disk, where memory is limited.

    Attributes
    ----------
    rows, vector
        The rows, and the variables beside them.
    """

    def __init__(self, rows: Rows, vector: RowVector) -> None:
        self.rows, self.vector = rows, vector

    def of(self, numbers: Ints) -> Floats:
        """The variables of these rows, as a copy."""
        return self.rows.pick(self.vector, numbers)

    def put(self, numbers: Ints, values: Floats) -> None:
        """Set the variables of these rows."""
        self.rows.put(self.vector, numbers, values)


class DualBlocks:
    """Dual coordinate descent on a set of rows that changes.

    `take` says which rows are descended upon from now on, and `sweeps` does it: each sweep changes w in place, the
    sums, and the variables of these rows. Those of the rows before are kept in `variables`. A block begins with all of
    its rows, none shrunk, in an order that follows from the seed and from how many blocks there have been, so that the
    same blocks give the same bits.

    Memory: 64 bytes for each row of the block, 16 for each row that was ever visited.

    Parameters
    ----------
    loss
        A loss with a compiled dual.
    geometry
        How the intercept enters.
    w
        Σ a_i x_i/λ over all rows, float64: zeros where nothing has been visited. It is not copied. Who changes it
        between two blocks, as other processes do, has to set `sums` along with it.
    seed
        The order of the rows.
    variables
        Where variables are kept; None: those of the rows that were visited.

    Attributes
    ----------
    variables
        The variables of the rows of all blocks before this one, and after `leave` of this one too.
    sweeps
        The kernel that has the rows of the block.
    """

    sweeps: DualSweeps

    def __init__(
        self,
        loss: Loss,
        geometry: Geometry,
        w: Floats,
        seed: int = 0,
        variables: DualVariables | None = None,
    ) -> None:
        self.loss, self.geometry, self.w, self.seed = loss, geometry, w, seed
        self.variables: DualVariables = SparseDual() if variables is None else variables
        self._numbers: Ints | None = None
        self._sums, self._centre, self._n_blocks = (0.0, 0.0), 0.0, 0

    def take(self, numbers: Ints, block: Block, labels: Floats, costs: Floats) -> None:
        """Leave the last block, and go on with these rows: their numbers, entries, labels and costs, in one order."""
        self.leave()
        ordered = np.sort(numbers)
        if np.any(ordered[1:] == ordered[:-1]):
            raise ValueError("a row is in a block twice")
        visits = Visits.of_block(block, self.geometry, self._next_seed())
        self._numbers = np.array(numbers, dtype=np.int64)
        a, seed = self.variables.of(self._numbers), self.seed + self._n_blocks
        self.sweeps = sweeps_over(visits, labels, costs, a, self.w, self.loss, self.geometry, seed=seed)
        self.sweeps.set_sums(*self._sums)
        self.sweeps.set_centre(self._centre)

    def leave(self) -> None:
        """Keep what has become of the block; there is none then until the next `take`."""
        if self._numbers is None:
            return
        a = np.empty(len(self._numbers))
        self.sweeps.copy_dual(a)
        self._sums, self._centre = self.sums, self.centre
        self.variables.put(self._numbers, a)
        self._numbers = None

    def snapshot(self) -> dict[str, Any]:
        """What the next block goes on from beside the variables, after `leave`."""
        return {"w": self.w, "sums": self._sums, "centre": self._centre, "n_blocks": self._n_blocks}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self.w[:], self._sums = snapshot["w"], tuple(snapshot["sums"])
        self._centre, self._n_blocks = snapshot["centre"], snapshot["n_blocks"]

    def sweep(self, times: int = 1) -> float:
        """So many sweeps over the block, fewer where nothing moves any more; by how much the dual grew."""
        grown = 0.0
        for _ in range(times):
            growth = self.sweeps.sweep()[1]
            grown += growth
            if not growth:
                break
        return grown

    def active(self) -> AnyArray:
        """Which rows of the block have not been shrunk."""
        assert self._numbers is not None
        marks = np.empty(len(self._numbers), np.uint8)
        self.sweeps.copy_active(marks)
        return marks.view(np.bool_)

    def recentre(self) -> None:
        """The step of the method of multipliers: the intercept found so far becomes b₀."""
        self.centre = self.centre + self.geometry.rho * self.sums[0]

    @property
    def sums(self) -> tuple[float, float]:
        """(s, μᵀΣ a_i x_i) over all rows."""
        return (self.sweeps.total, self.sweeps.means) if self._numbers is not None else self._sums

    @sums.setter
    def sums(self, sums: tuple[float, float]) -> None:
        self._sums = sums
        if self._numbers is not None:
            self.sweeps.set_sums(*sums)

    @property
    def centre(self) -> float:
        """b₀."""
        return self._centre

    @centre.setter
    def centre(self, b: float) -> None:
        self._centre = b
        if self._numbers is not None:
            self.sweeps.set_centre(b)

    @property
    def point(self) -> tuple[Floats, float]:
        """(w, b): the weights, as rows without their mean have them, and the intercept."""
        g, (total, means) = self.geometry, self.sums
        w = self.w - total / g.modulus * g.mean if len(g.mean) else self.w.copy()
        return w, self.centre + g.rho * total - (means - total * g.mean_norm) / g.modulus

    def _next_seed(self) -> int:
        self._n_blocks += 1
        return self.seed + self._n_blocks
