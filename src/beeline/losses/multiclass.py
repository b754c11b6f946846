"""Losses of a multi-class classifier: K scores a row, and the number 0 … K−1 of the right class as its label."""

from __future__ import annotations

import numpy as np

from beeline._types import Floats, Ints
from beeline.losses.base import VectorLoss

__all__ = ["CrammerSinger", "Softmax"]

_ROUNDING = 1e-14  # of a cost, in each share of it


class Softmax(VectorLoss):
    """log Σ_k exp(z_k) − z_y: multinomial logistic regression (row 16 of B's table)."""

    name = "softmax"
    labels = "classes"
    compiled = "softmax"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and gradient p − e_y, without overflow, and with all digits where the right class is nearly certain."""
        rows, right, most = np.arange(len(z)), _numbers(y), z.argmax(axis=1)
        powers = np.exp(z - z[rows, most, None])
        powers[rows, most] = 0
        rest = powers.sum(axis=1)  # of all but the most likely class, whose power is 1
        values = np.log1p(rest) + (z[rows, most] - z[rows, right])
        powers[rows, most] = 1
        p = powers / (1 + rest)[:, None]
        p[rows, right] = np.where(most == right, -rest / (1 + rest), p[rows, right] - 1)
        return values, p

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """The probabilities p: the Hessian is diag(p) − ppᵀ."""
        powers: Floats = np.exp(z - z.max(axis=1, keepdims=True))
        powers /= powers.sum(axis=1, keepdims=True)
        return powers

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """Σ_k β_k log(β_k/c) with β = c·e_y − a, which must be c times probabilities."""
        beta = _shares(a, y, c)
        if beta is None:
            return np.inf
        ratio = np.divide(beta, c[:, None], out=np.ones_like(beta), where=beta > 0)
        return float(np.sum(beta * np.log(ratio)))


class CrammerSinger(VectorLoss):
    """max_k (z_k + [k ≠ y]) − z_y: the hinge of the right class against the best other one (row 14 of B's table)."""

    name = "crammer_singer"
    labels = "classes"
    smooth = False
    piecewise_linear = True
    compiled = "crammer_singer"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and a subgradient e_k − e_y for the first of the largest k; 0 at the kink of the right class."""
        rows, right = np.arange(len(z)), _numbers(y)
        above = z - z[rows, right, None] + 1
        above[rows, right] = 0
        # The right class comes first where others only equal it.
        most = np.where(above.max(axis=1) > 0, above.argmax(axis=1), right)
        slopes = np.zeros_like(z)
        slopes[rows, most] += 1
        slopes[rows, right] -= 1
        return above[rows, most], slopes

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−a_y, where c·e_y − a must be c times a point of the simplex."""
        if _shares(a, y, c) is None:
            return np.inf
        return -float(a[np.arange(len(a)), _numbers(y)].sum())


def _numbers(y: Floats) -> Ints:
    return y.astype(np.int64)


def _shares(a: Floats, y: Floats, c: Floats) -> Floats | None:
    """β = c·e_y − a, or None where it is not c times a point of the simplex, up to rounding.

    Sums of K numbers that came from scores meet c up to their rounding only; what lies below zero by no more is zero.
    """
    beta = -a
    beta[np.arange(len(a)), _numbers(y)] += c
    slack = _ROUNDING * c
    if np.any(beta < -slack[:, None]) or np.any(np.abs(a.sum(axis=1)) > a.shape[1] * slack):
        return None
    return np.maximum(beta, 0)
