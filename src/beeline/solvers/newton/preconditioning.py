"""What conjugate gradients are preconditioned by: a diagonal, or for several outputs a matrix for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from beeline._types import Floats
from beeline.engines.verbs import values
from beeline.kernels import add_scaled, cg_direction, cg_step, dot, factor_positive, solve_factored
from beeline.objective import Objective, Point

__all__ = ["Blocks", "Diagonal", "Preconditioner", "Preconditioners"]

_PART = 0.1  # of all pairs of row and output: those with most curvature
_MOST_FEATURES, _MOST_NUMBERS = 2000, 1 << 25
_SAMPLE = 1 << 12  # numbers among which the least curvature that counts is looked for


class Preconditioner(Protocol):
    """An approximation M of the Hessian, through the steps of conjugate gradients."""

    def start(self, r: Floats) -> tuple[Floats, float]:
        """(p = M⁻¹r, rᵀM⁻¹r)."""

    def step(self, alpha: float, p: Floats, q: Floats, s: Floats, r: Floats) -> float:
        """s += αp and r −= αq, in place; returns rᵀM⁻¹r."""

    def update_direction(self, beta: float, r: Floats, p: Floats) -> None:
        """p = M⁻¹r + βp, in place."""


class Diagonal:
    """The identity, mixed with the Hessian's diagonal (Hsia, Chiang & Lin 2018)."""

    def __init__(self, point: Point) -> None:
        self.inverse = 1 / (0.99 * point.objective.strength + 0.01 * point.hessian_diagonal())

    def start(self, r: Floats) -> tuple[Floats, float]:
        """(p = M⁻¹r, rᵀM⁻¹r)."""
        p = self.inverse * r
        return p, dot(r, p)

    def step(self, alpha: float, p: Floats, q: Floats, s: Floats, r: Floats) -> float:
        """s += αp and r −= αq, in place; returns rᵀM⁻¹r."""
        return cg_step(alpha, p, q, self.inverse, s, r)

    def update_direction(self, beta: float, r: Floats, p: Floats) -> None:
        """p = M⁻¹r + βp, in place."""
        cg_direction(beta, self.inverse, r, p)


class Blocks:
    """The Hessian without what couples the outputs: one matrix of features for each, in Cholesky factors.

    Of all pairs of row and output only the tenth with most curvature is counted. Near the optimum most rows are nearly
    certain, and what is left out is small; far from it the rest looks much like the part.
    """

    def __init__(self, factors: Floats) -> None:
        self.factors = factors
        self._solved = np.empty(0)

    @classmethod
    def of(cls, point: Point) -> Blocks | None:
        """The blocks at a point; None when one has no factor."""
        o = point.objective
        m = o.rows.n_features + o.has_intercept
        factors = np.empty((o.n_outputs, m, m))
        curvatures = point.diagonal_curvatures
        most = -(-_SAMPLE // o.rows.n_shards)
        limit = _quantile(o.rows.concat(values.curvature_sample, curvatures, most=most).value[0], _PART)
        for k, factor in enumerate(factors):
            factor[:] = o.hessian_block(curvatures, limit, output=k)
            factor[-1, -1] += 1e-3 * o.strength  # a free intercept may have no curvature left
            if not factor_positive(factor):
                return None
        return cls(factors)

    @staticmethod
    def cost(objective: Objective) -> float:
        """How many products with the Hessian the blocks cost; ∞ where they cannot be had."""
        o = objective
        m, nnz = o.rows.n_features + o.has_intercept, max(1, o.rows.nnz)
        fits = m <= _MOST_FEATURES and o.n_outputs * m**2 <= _MOST_NUMBERS
        if o.n_outputs == 1 or not fits or not o.rows.in_memory:
            return np.inf
        # A step of a sparse row's outer product takes four times as long as one of a product with all outputs.
        return _PART * nnz / max(1, o.rows.n_rows) + m**3 / (6 * nnz)

    def start(self, r: Floats) -> tuple[Floats, float]:
        """(p = M⁻¹r, rᵀM⁻¹r)."""
        self._solve(r)
        return self._solved.copy(), dot(r, self._solved)

    def step(self, alpha: float, p: Floats, q: Floats, s: Floats, r: Floats) -> float:
        """s += αp and r −= αq, in place; returns rᵀM⁻¹r."""
        add_scaled(alpha, p, s)
        add_scaled(-alpha, q, r)
        self._solve(r)
        return dot(r, self._solved)

    def update_direction(self, beta: float, r: Floats, p: Floats) -> None:
        """p = M⁻¹r + βp, in place; r is that of the last step."""
        p *= beta
        p += self._solved

    def _solve(self, r: Floats) -> None:
        columns = np.ascontiguousarray(r.reshape(-1, len(self.factors)).T)
        solve_factored(self.factors, columns)
        self._solved = np.ascontiguousarray(columns.T).ravel()


class Preconditioners:
    """Which preconditioner to take, from direction to direction of one run.

    The diagonal, until a direction has taken as many products as blocks would cost; then the blocks, which are kept
    until a direction takes so many products once more.
    """

    def __init__(self) -> None:
        self.blocks: Blocks | None = None
        self.took = 0

    def snapshot(self) -> dict[str, Any]:
        """What the next direction goes by."""
        return {"took": self.took, "factors": None if self.blocks is None else self.blocks.factors}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self.took, factors = snapshot["took"], snapshot["factors"]
        self.blocks = None if factors is None else Blocks(np.array(factors))

    def at(self, point: Point) -> Preconditioner:
        """The one to take at a point."""
        if self.took >= Blocks.cost(point.objective):
            self.blocks = Blocks.of(point)
        return self.blocks or Diagonal(point)


def _quantile(numbers: Floats, part: float) -> float:
    """The number that this part of all numbers reaches."""
    at = numbers.size - max(1, int(part * numbers.size))
    return float(np.partition(numbers, at)[at])
