"""Losses of a multi-class classifier whose mistakes cost differently: Δ(y, k) for taking class y for class k."""

from __future__ import annotations

from typing import Any

import numpy as np

from beeline._types import Floats
from beeline.exceptions import ParameterError
from beeline.losses.base import VectorLoss
from beeline.losses.multiclass import ClassLoss, Softmax, label_indices, shares, unit_margins
from beeline.losses.soft_margins import SoftMargin, SoftScaledMargin

__all__ = ["MulticlassMargin", "ScaledMulticlassMargin", "SoftmaxMargin", "checked_costs"]


class _Costs(ClassLoss):
    """Mistakes cost Δ.

    Parameters
    ----------
    costs
        Δ: K rows of K numbers, none negative, zeros on the diagonal; classes are sorted. None: every mistake costs 1.
    """

    def __init__(self, costs: Any = None) -> None:  # noqa: ANN401
        self.costs = None if costs is None else checked_costs(costs)

    def natural_width(self, spread: float) -> float:
        """The mean cost of a mistake."""
        return float(self.costs[self.costs > 0].mean()) if self.costs is not None and self.costs.any() else 1.0

    def check_outputs(self, n_outputs: int) -> None:
        """The matrix must have a row and a column for every class."""
        if self.costs is not None and len(self.costs) != n_outputs:
            k = len(self.costs)
            raise ParameterError(
                f"the costs are a matrix of {k} × {k} numbers, but there are {n_outputs} classes", parameter="costs"
            )

    def _rows(self, z: Floats, y: Floats) -> Floats:
        """Δ(y_i, k) for every row i and class k."""
        return unit_margins(z, y) if self.costs is None else self.costs[label_indices(y)]


class MulticlassMargin(_Costs):
    """max_k (z_k − z_y + Δ(y, k)): costs rescale the margin (rows 14 and 15 of B's table, Γ = 1).

    Without costs of its own it is the loss of Crammer and Singer.
    """

    name = "multiclass_margin"
    formula = "max_k (z_k − z_y + Δ(y, k))"
    summary = "the multi-class hinge with a cost for every mistake: worse ones need a larger margin"
    smooth = False
    piecewise_linear = True

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and a subgradient e_k − e_y for the first of the largest k; 0 at the kink of the right class."""
        rows, right = np.arange(len(z)), label_indices(y)
        above = z - z[rows, right, None] + self._rows(z, y)
        above[rows, right] = 0
        most = np.where(above.max(axis=1) > 0, above.argmax(axis=1), right)
        slopes = np.zeros_like(z)
        slopes[rows, most] += 1
        slopes[rows, right] -= 1
        return above[rows, most], slopes

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−Σ_k β_k Δ(y, k), where β = c·e_y − a must be c times a point of the simplex."""
        beta = shares(a, y, c)
        return np.inf if beta is None else -float(np.sum(beta * self._rows(a, y)))

    def smoothed(self, width: float) -> VectorLoss:
        """Rounded by entropy: a softmax with margins."""
        return SoftMargin(self._rows, width)


class ScaledMulticlassMargin(_Costs):
    """max_k Δ(y, k)(z_k − z_y + 1): costs rescale the slack (row 15 of B's table, Γ = Δ)."""

    name = "scaled_multiclass_margin"
    formula = "max_k Δ(y, k)·(z_k − z_y + 1)"
    summary = "the multi-class hinge with a cost for every mistake: worse ones count more"
    smooth = False
    piecewise_linear = True

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and a subgradient Δ(y, k)(e_k − e_y) for the first of the largest k; 0 where none is above 0."""
        rows, right, delta = np.arange(len(z)), label_indices(y), self._rows(z, y)
        above = delta * (z - z[rows, right, None] + 1)
        most = np.where(above.max(axis=1) > 0, above.argmax(axis=1), right)
        size, slopes = delta[rows, most], np.zeros_like(z)
        slopes[rows, most] += size
        slopes[rows, right] -= size
        return np.maximum(above[rows, most], 0), slopes

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−a_y, where β_k = −a_k ≥ 0 for the others, Σ_k≠y β_k/Δ(y, k) ≤ c and Σ_k a_k = 0."""
        rows, right, delta = np.arange(len(a)), label_indices(y), self._rows(a, y)
        beta = -a
        beta[rows, right] = 0
        size = 1e-14 * c * delta.max(axis=1)
        used = np.divide(beta, delta, out=np.where(np.abs(beta) > size[:, None], np.inf, 0.0), where=delta > 0)
        outside = (beta < -size[:, None]).any(axis=1) | (used.sum(axis=1) > c * (1 + 1e-14 * a.shape[1]))
        if np.any(outside | (np.abs(a.sum(axis=1)) > a.shape[1] * size)):
            return np.inf
        return -float(a[rows, right].sum())

    def smoothed(self, width: float) -> VectorLoss:
        """Rounded by entropy."""
        return SoftScaledMargin(self._rows, width)


class SoftmaxMargin(_Costs):
    """log Σ_k exp(z_k + Δ(y, k)) − z_y: softmax with a margin that grows with the cost (Gimpel & Smith 2010)."""

    name = "softmax_margin"
    formula = "log Σ_k exp(z_k + Δ(y, k)) − z_y"
    summary = "multinomial logistic regression with a cost for every mistake"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Those of the softmax loss at z + Δ."""
        return Softmax().value_and_grad(z + self._rows(z, y), y)

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """The probabilities at z + Δ."""
        return Softmax().curvature(z + self._rows(z, y), y)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """That of the softmax loss, and a·Δ."""
        return Softmax().conjugate_sum(a, y, c) + float(np.sum(a * self._rows(a, y)))


def checked_costs(costs: Any) -> Floats:  # noqa: ANN401
    """Δ as a matrix."""
    try:
        matrix = np.array(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            "the costs must be a matrix of numbers, a row and a column for every class", parameter="costs"
        ) from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ParameterError(f"the costs must be a square matrix, not of shape {matrix.shape}", parameter="costs")
    if not (np.isfinite(matrix).all() and (matrix >= 0).all()):
        raise ParameterError("the costs of mistakes must be finite and not negative", parameter="costs")
    if np.diag(matrix).any():
        raise ParameterError(
            "the costs must have zeros on the diagonal: the right class costs nothing", parameter="costs"
        )
    return matrix
