"""Losses of a regression that weigh residuals r = z − y by their sign: quantiles and expectiles."""

from __future__ import annotations

import math

import numpy as np

from beeline._types import Floats
from beeline.losses.base import ScalarLoss
from beeline.losses.numeric import entropy, softplus
from beeline.losses.settings import between, positive

__all__ = ["Expectile", "Quantile", "SoftQuantile"]


class _Tilted(ScalarLoss):
    """A residual below the label weighs τ, one above it 1 − τ."""

    labels = "real"

    def __init__(self, tau: float = 0.5) -> None:
        self.tau = between("tau", tau, 0, 1)


class Quantile(_Tilted):
    """max(τ(y − z), (1 − τ)(z − y)): predicts the τ quantile (row 10 of B's table, with its sides set right)."""

    name = "quantile"
    formula = "max(τ(y − z), (1 − τ)(z − y))"
    summary = "quantile regression: τ of the labels lie below the prediction"
    smooth = False
    piecewise_linear = True
    compiled = "quantile"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and a subgradient, which is 0 at the kink."""
        r = z - y
        slope = np.where(r > 0, 1 - self.tau, -self.tau)
        return slope * r, np.where(r == 0, 0.0, slope)

    def kinks(self, y: Floats) -> list[tuple[Floats, float]]:
        """The label."""
        return [(y, 1.0)]

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−ya with a in [−(1 − τ)c, τc]."""
        if np.any((a > self.tau * c) | (a < -(1 - self.tau) * c)):
            return np.inf
        return -float(np.sum(y * a))

    def smoothed(self, width: float) -> SoftQuantile:
        """Rounded by entropy."""
        return SoftQuantile(self.tau, width)


class SoftQuantile(_Tilted):
    """The quantile loss rounded by entropy: μ·log(1 + exp(r/μ)) − τr, μ = width/(2 log 2); at most width/2 above it."""

    name = "soft_quantile"
    formula = "μ·log(1 + exp(r/μ)) − τr, r = z − y, μ = width/(2 log 2)"
    summary = "the quantile loss with its kink rounded by entropy"
    compiled = "soft_quantile"

    def __init__(self, tau: float = 0.5, width: float = 0.1) -> None:
        super().__init__(tau)
        self.width = positive("width", width)

    @property
    def _scale(self) -> float:
        return self.width / (2 * math.log(2))

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope; of the two sides the one that is not rounded away."""
        r = z - y
        value, _, _ = softplus(-np.abs(r), self._scale)
        slope = softplus(r, self._scale)[1]
        return value + np.where(r > 0, (1 - self.tau) * r, -self.tau * r), slope - self.tau

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """σ(1 − σ)/μ with σ the sigmoid of r/μ."""
        return softplus(z - y, self._scale)[2]

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−ya + μ(p log p + (c − p) log(c − p) − c log c) with p = τc − a in [0, c]."""
        p = self.tau * c - a
        slack = 1e-15 * c  # slopes of a score far from the label are rounded to the last possible one
        if np.any((p < -slack) | (p > c + slack)):
            return np.inf
        return float(np.sum(-y * a + self._scale * entropy(np.clip(p, 0, c), c)))


class Expectile(_Tilted):
    """τr² for residuals r = z − y below zero, (1 − τ)r² above: asymmetric least squares (Newey & Powell 1987)."""

    name = "expectile"
    formula = "τr² for r = z − y < 0, else (1 − τ)r²"
    summary = "asymmetric least squares: predicts expectiles, means for τ = ½"
    compiled = "expectile"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope."""
        r = z - y
        weight = np.where(r > 0, 1 - self.tau, self.tau)
        return weight * r**2, 2 * weight * r

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """2τ below the label, 2(1 − τ) above it."""
        return np.where(z > y, 2 * (1 - self.tau), 2 * self.tau)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−ya + a²/(4cτ) for a > 0, −ya + a²/(4c(1 − τ)) for a < 0."""
        if np.any((c <= 0) & (a != 0)):
            return np.inf
        weight = np.where(a > 0, self.tau, 1 - self.tau) * np.where(c > 0, c, 1)
        return float(np.sum(-y * a + a**2 / (4 * weight)))
