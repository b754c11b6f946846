"""What conjugate gradients are preconditioned by: a diagonal, and for several outputs a matrix for each or for all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from beeline._types import Floats
from beeline.engines.verbs import values
from beeline.kernels import add_scaled, cg_direction, cg_step, dot, factor_positive, solve_factored
from beeline.losses import VectorLoss
from beeline.objective import Objective, Point
from beeline.solvers.budget import matrix_fits

__all__ = ["Diagonal", "Factors", "Preconditioner", "Preconditioners", "cost_of_blocks"]

_PART = 0.1  # of all pairs of row and output: those with most curvature
_MOST_FEATURES, _MOST_NUMBERS = 2000, 1 << 25
_MOST_WEIGHTS = 2048  # of all outputs together, for which the whole Hessian is made
_FREE, _SINGULAR = 1e-3, 1e-10  # of the strength, and of the curvature, that free intercepts are given more
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


class Factors:
    """Matrices in Cholesky factors, one for each output or a single one for all.

    Parameters
    ----------
    factors
        One below the other; coordinates of an output lie as far apart as there are matrices.
    """

    def __init__(self, factors: Floats) -> None:
        self.factors = factors
        self._solved = np.empty(0)

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
        columns = r.reshape(-1, len(self.factors)).T.copy()
        solve_factored(self.factors, columns)
        self._solved = columns.T.ravel()


def blocks_of(point: Point) -> Factors | None:
    """The Hessian without what couples the outputs, one matrix of features for each; None when one has no factor.

    Of all pairs of row and output only the tenth with most curvature is counted. Near the optimum most rows are nearly
    certain, and what is left out is small; far from it the rest looks much like the part.
    """
    o = point.objective
    m = o.rows.n_features + o.has_intercept
    factors = np.empty((o.n_outputs, m, m))
    curvatures = point.diagonal_curvatures
    most = -(-_SAMPLE // o.rows.n_shards)
    limit = _quantile(o.rows.concat(values.curvature_sample, curvatures, most=most).value[0], _PART)
    for k, factor in enumerate(factors):
        factor[:] = o.hessian_block(curvatures, limit, output=k)
        factor[-1, -1] += _FREE * o.strength  # a free intercept may have no curvature left
        if not factor_positive(factor):
            return None
    return Factors(factors)


def cost_of_blocks(objective: Objective) -> float:
    """How many products with the Hessian the blocks cost; ∞ where they cannot be had."""
    o = objective
    m, nnz = o.rows.n_features + o.has_intercept, max(1, o.rows.nnz)
    fits = m <= _MOST_FEATURES and o.n_outputs * m**2 <= _MOST_NUMBERS
    if o.n_outputs == 1 or not fits or not o.rows.in_memory:
        return np.inf
    # A step of a sparse row's outer product takes four times as long as one of a product with all outputs.
    return _PART * nnz / max(1, o.rows.n_rows) + m**3 / (6 * nnz)


def whole_of(point: Point) -> Factors | None:
    """The Hessian itself; None when it has no factor."""
    o = point.objective
    hessian = o.joint_hessian(point.curvatures)
    free = np.arange(o.n_regularized, o.size)
    # Free intercepts may have no curvature left, and those of a tree's nodes have none where others make up for them.
    hessian[free, free] += _FREE * o.strength + _SINGULAR * hessian[free, free].max(initial=0.0)
    return Factors(hessian[None]) if factor_positive(hessian) else None


def cost_of_whole(objective: Objective) -> float:
    """How many products with the Hessian it costs to have all of it; ∞ where it cannot be had."""
    o = objective
    if o.n_outputs == 1 or o.size > _MOST_WEIGHTS or not matrix_fits(o):
        return np.inf
    assert isinstance(o.loss, VectorLoss)
    if o.loss.output_loss is not None:  # whose Hessian is its blocks
        return np.inf
    nnz, outputs = max(1, o.rows.nnz), o.n_outputs
    of_pairs = o.n_classes**2 * nnz / max(1, o.rows.n_rows) / (8 * outputs)
    return of_pairs + o.size**3 / (12 * nnz * outputs)


class Preconditioners:
    """Which preconditioner to take, from direction to direction of one run.

    The diagonal, until a direction has taken as many products as blocks would cost; then the blocks, which are kept
    until a direction takes so many products once more. Where all directions together have taken as many products as
    the whole Hessian would cost, that: with it a direction takes a few, for as long as it is much like the present one.
    """

    def __init__(self) -> None:
        self.factors: Factors | None = None
        self.took, self.spent = 0, 0

    def snapshot(self) -> dict[str, Any]:
        """What the next direction goes by."""
        factors = None if self.factors is None else self.factors.factors
        return {"took": self.took, "spent": self.spent, "factors": factors}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self.took, self.spent, factors = snapshot["took"], snapshot["spent"], snapshot["factors"]
        self.factors = None if factors is None else Factors(np.array(factors))

    def note(self, products: int) -> None:
        """A direction has taken so many."""
        self.took, self.spent = products, self.spent + products

    def at(self, point: Point) -> Preconditioner:
        """The one to take at a point."""
        o = point.objective
        if self.spent >= cost_of_whole(o):
            self.factors, self.spent = whole_of(point), 0
        elif not self._is_whole and self.took >= cost_of_blocks(o):
            self.factors = blocks_of(point)
        return self.factors or Diagonal(point)

    @property
    def _is_whole(self) -> bool:
        return self.factors is not None and len(self.factors.factors) == 1


def _quantile(numbers: Floats, part: float) -> float:
    """The number that this part of all numbers reaches."""
    at = numbers.size - max(1, int(part * numbers.size))
    return float(np.partition(numbers, at)[at])
