"""The linear system of a step of the interior-point method, by features or by rows, whichever are fewer.

With D > 0 a row, W ≥ 0 and l2 a weight, it is for (dw, db), and da a row,

    (l2 + W) dw + Xᵀda = r,     Σ da = t (free intercept),     da = D (X dw + db) + e.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from beeline._types import Floats
from beeline.data.core.block import Block
from beeline.kernels import factor_positive, solve_factored
from beeline.objective import Objective

__all__ = ["System", "system_for"]

_RIDGE = 1e-15  # of the diagonal, at first
_NEVER = 1e200  # the stiffness of a row that costs nothing


class System(ABC):
    """The system at one point, factored."""

    def __init__(self, objective: Objective, D: Floats, stiffness: Floats) -> None:
        self.o, self.D, self.stiffness = objective, D, stiffness

    @abstractmethod
    def solve(self, r: Floats, e: Floats, t: float) -> Floats | None:
        """(dw, db); None where rounding leaves no solution."""


def system_for(objective: Objective, transposed: Block | None, D: Floats, stiffness: Floats) -> System | None:
    """The system with l2 + W = stiffness, over rows where their transposed matrix is given; None without factors."""
    if transposed is None:
        return _ByFeatures.of(objective, D, stiffness)
    return _ByRows.of(objective, transposed, D, stiffness)


class _ByFeatures(System):
    """XᵀDX + diag(l2 + W), bordered by the intercept."""

    factor: Floats

    @classmethod
    def of(cls, o: Objective, D: Floats, stiffness: Floats) -> _ByFeatures | None:
        """Made in one pass of nnz·(nonzeros a row)/2 steps."""
        system = cls(o, D, stiffness)
        matrix = o.hessian_block(o.rows.scatter_local(D))
        matrix[np.diag_indices(o.n_regularized)] += stiffness - o.penalty.l2
        factor = _factor(matrix)
        if factor is None:
            return None
        system.factor = factor
        return system

    def solve(self, r: Floats, e: Floats, t: float) -> Floats | None:
        """(dw, db) from r − Xᵀe and t − Σ e."""
        n = self.o.n_regularized
        right = -self.o.weighted(self.o.rows.scatter_local(e))
        right[:n] += r
        right[n:] += t
        return _solved(self.factor, right)


class _ByRows(System):
    """1/D + X diag(1/(l2 + W)) Xᵀ: da first, dw from it."""

    factor: Floats
    transposed: Block

    @classmethod
    def of(cls, o: Objective, transposed: Block, D: Floats, stiffness: Floats) -> _ByRows | None:
        """Made in one pass over the features."""
        system = cls(o, D, stiffness)
        d = o.rows.n_features
        matrix = transposed.gram(1 / stiffness[:d])
        if o.intercept == "regularized":
            lower = np.tril_indices(len(matrix))
            matrix[lower] += 1 / stiffness[d]
        with np.errstate(divide="ignore"):
            matrix[np.diag_indices(len(matrix))] += np.minimum(1 / D, _NEVER)
        factor = _factor(matrix)
        if factor is None:
            return None
        system.factor, system.transposed = factor, transposed
        return system

    def solve(self, r: Floats, e: Floats, t: float) -> Floats | None:
        """(dw, db): (1/D + X P Xᵀ) da = X P r + e/D + db, P = 1/(l2 + W), and db so that Σ da = t."""
        o = self.o
        free = o.intercept == "free"
        moved = np.append(r / self.stiffness, 0.0) if free else r / self.stiffness
        right = o.rows.gather_local(o.scores(moved)) + np.divide(e, self.D, out=np.zeros_like(e), where=self.D > 0)
        da = _solved(self.factor, right)
        if da is None:
            return None
        db = 0.0
        if free:
            lift = _solved(self.factor, np.ones(len(e)))
            if lift is None or not lift.sum() > 0:
                return None
            db = (t - float(da.sum())) / float(lift.sum())
            da = da + db * lift
        dw = (r - o.weighted(o.rows.scatter_local(da))[: len(r)]) / self.stiffness
        return np.append(dw, db) if free else dw


def _factor(matrix: Floats) -> Floats | None:
    """The Cholesky factor, of a matrix that is slightly larger where rounding keeps it from having one."""
    diagonal = np.diag_indices(len(matrix))
    ridge = _RIDGE * matrix[diagonal]
    for _ in range(6):
        factor = matrix.copy()
        factor[diagonal] += ridge + 1e-300
        if factor_positive(factor):
            return factor
        ridge *= 100
    return None


def _solved(factor: Floats, right: Floats) -> Floats | None:
    solution = right.copy()[None]
    solve_factored(factor[None], solution)
    return solution[0] if np.isfinite(solution).all() else None
