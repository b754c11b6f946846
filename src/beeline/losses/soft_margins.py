"""Multi-class hinges with their kinks rounded off by entropy: what solvers work with; not in the registry.

Each lies above each of its hinges by at most half its width, and its slopes are feasible for the dual of the hinge.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from beeline._types import Floats, Ints
from beeline.losses.multiclass import ClassLoss, Softmax, label_indices
from beeline.losses.numeric import softplus

__all__ = ["SoftMargin", "SoftScaledMargin", "SoftWestonWatkins"]

Margins = Callable[[Floats, Floats], Floats]
"""Δ(y_i, k) for every row and class, from scores and labels."""


class SoftMargin(ClassLoss):
    """μ·log Σ_k exp((z_k − z_y + Δ(y, k))/μ), μ = width/(2 log K): max_k (z_k − z_y + Δ(y, k)), rounded.

    It is the softmax loss of (z + Δ)/μ, and has its curvature.
    """

    name = "soft_margin"

    def __init__(self, margins: Margins, width: float) -> None:
        self.margins, self.width = margins, width

    def _inner(self, z: Floats, y: Floats) -> tuple[Floats, float]:
        """((z + Δ)/μ, μ)."""
        scale = self.width / (2 * math.log(z.shape[1]))
        return (z + self.margins(z, y)) / scale, scale

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Those of the softmax loss, the value times μ."""
        v, scale = self._inner(z, y)
        values, slopes = Softmax().value_and_grad(v, y)
        return scale * values, slopes

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """p/μ."""
        v, scale = self._inner(z, y)
        return Softmax().curvature(v, y) / scale

    def sum(self, z: Floats, y: Floats, c: Floats) -> float:
        """Σ c_i l(z_i, y_i), compiled."""
        v, scale = self._inner(z, y)
        return scale * Softmax().sum(v, y, c)

    def slopes(self, z: Floats, y: Floats, c: Floats) -> Floats:
        """c_i · dl/dz for every row, compiled."""
        return Softmax().slopes(self._inner(z, y)[0], y, c)

    def curvatures(self, z: Floats, y: Floats, c: Floats) -> Floats:
        """c_i · `curvature` for every row, compiled."""
        v, scale = self._inner(z, y)
        return Softmax().curvatures(v, y, c) / scale

    def derivatives(self, z: Floats, y: Floats, c: Floats) -> tuple[float, Floats, Floats]:
        """All three in one go."""
        v, scale = self._inner(z, y)
        value, slopes, curvatures = Softmax().derivatives(v, y, c)
        return scale * value, slopes, curvatures / scale

    def along(self, z: Floats, dz: Floats, t: float, y: Floats, c: Floats) -> tuple[float, float]:
        """Along a line, compiled."""
        v, scale = self._inner(z, y)
        value, slope = Softmax().along(v, dz / scale, t, y, c)
        return scale * value, scale * slope


class _AgainstRight(ClassLoss):
    """A loss of the differences z_k − z_y; its h has minus the sum of a row where the right class is."""

    @staticmethod
    def _right(h: Floats) -> tuple[Ints, Ints]:
        """(rows, the number of the right class), which has the least of h: none has one where all are zero."""
        return np.arange(len(h)), h.argmin(axis=1)

    @staticmethod
    def _marked(h: Floats, y: Floats) -> Floats:
        rows, right = np.arange(len(h)), label_indices(y)
        h[rows, right] = 0.0
        h[rows, right] = -h.sum(axis=1)
        return h


class SoftWestonWatkins(_AgainstRight):
    """Σ_{k≠y} s(1 + z_k − z_y), s(t) = μ·log(1 + exp(t/μ)), μ = width/(2 log 2).

    h_k = s''(1 + z_k − z_y) for the other classes; the Hessian is Σ_k h_k (e_k − e_y)(e_k − e_y)ᵀ.
    """

    name = "soft_weston_watkins"

    def __init__(self, width: float) -> None:
        self.width = width

    def _parts(self, z: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        above = 1 + z - z[np.arange(len(z)), label_indices(y), None]
        return softplus(above, self.width / (2 * math.log(2)))

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and gradient."""
        rows, right = np.arange(len(z)), label_indices(y)
        values, slopes, _ = self._parts(z, y)
        values[rows, right] = 0.0
        return values.sum(axis=1), self._marked(slopes, y)

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """h, with minus its sum for the right class."""
        return self._marked(self._parts(z, y)[2], y)

    def hessian_products(self, h: Floats, u: Floats) -> Floats:
        """The products H_i u_i."""
        rows, right = self._right(h)
        products = h * (u - u[rows, right, None])
        return self._balanced(products, right)

    @staticmethod
    def _balanced(products: Floats, right: Ints) -> Floats:
        rows = np.arange(len(products))
        products[rows, right] = 0.0
        products[rows, right] = -products.sum(axis=1)
        return products

    def curvature_diagonals(self, h: Floats) -> Floats:
        """|h|."""
        return np.abs(h)

    def curvature_total(self, h: Floats) -> Floats:
        """Σ_i H_i."""
        others = np.maximum(h, 0.0)
        flows = _by_right(others, self._right(h)[1])
        total: Floats = np.diag(others.sum(axis=0) + flows.sum(axis=1)) - flows - flows.T
        return total


class SoftScaledMargin(_AgainstRight):
    """μ·log Σ_k exp(Δ(y, k)(z_k − z_y + 1)/μ), μ = width/(2 log K): max_k Δ(y, k)(z_k − z_y + 1), rounded.

    With shares p of the powers, the Hessian is Σ_k A_k (e_k − e_y)(e_k − e_y)ᵀ − g gᵀ, g = Σ_k B_k (e_k − e_y),
    A = pΔ²/μ and B = pΔ/√μ. h has A, B with minus its sum for the right class, and a 1: with a cost in it, g gᵀ is
    divided by that.
    """

    name = "soft_scaled_margin"

    def __init__(self, margins: Margins, width: float) -> None:
        self.margins, self.width = margins, width

    def _parts(self, z: Floats, y: Floats) -> tuple[Floats, Floats, Floats, float]:
        """(values, p, Δ, μ)."""
        scale = self.width / (2 * math.log(z.shape[1]))
        delta = self.margins(z, y)
        v = delta * (z - z[np.arange(len(z)), label_indices(y), None] + 1) / scale
        most = v.max(axis=1, keepdims=True)
        powers = np.exp(v - most)
        total = powers.sum(axis=1, keepdims=True)
        return scale * (np.log(total) + most)[:, 0], powers / total, delta, scale

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and gradient."""
        values, p, delta, _ = self._parts(z, y)
        return values, self._marked(p * delta, y)

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """(A, B, 1)."""
        _, p, delta, scale = self._parts(z, y)
        slopes = self._marked(p * delta / math.sqrt(scale), y)
        return np.column_stack([p * delta**2 / scale, slopes, np.ones(len(z))])

    @staticmethod
    def _unpacked(h: Floats) -> tuple[Floats, Floats, Floats]:
        k = h.shape[1] // 2
        inverse = np.divide(1.0, h[:, -1], out=np.zeros(len(h)), where=h[:, -1] > 0)
        return h[:, :k], h[:, k : 2 * k], inverse

    def hessian_products(self, h: Floats, u: Floats) -> Floats:
        """The products H_i u_i."""
        A, B, inverse = self._unpacked(h)
        rows, right = self._right(B)
        products = SoftWestonWatkins._balanced(A * (u - u[rows, right, None]), right)
        mean = (B * u).sum(axis=1) * inverse
        balanced: Floats = products - B * mean[:, None]
        return balanced

    def curvature_diagonals(self, h: Floats) -> Floats:
        """The diagonals of all rows' Hessians."""
        A, B, inverse = self._unpacked(h)
        rows, right = self._right(B)
        diagonals = A - B**2 * inverse[:, None]
        diagonals[rows, right] += A.sum(axis=1)
        return np.maximum(diagonals, 0.0)

    def curvature_total(self, h: Floats) -> Floats:
        """Σ_i H_i."""
        A, B, inverse = self._unpacked(h)
        flows = _by_right(A, self._right(B)[1])
        total: Floats = np.diag(A.sum(axis=0) + flows.sum(axis=1)) - flows - flows.T
        outer: Floats = np.einsum("ij,ik->jk", B * inverse[:, None], B)
        return total - outer


def _by_right(h: Floats, right: Ints) -> Floats:
    """Σ of h over the rows of each right class, a row a class."""
    k = h.shape[1]
    sums: Floats = np.column_stack([np.bincount(right, h[:, j], k).astype(np.float64) for j in range(k)])
    return sums
