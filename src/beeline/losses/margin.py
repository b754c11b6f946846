"""Losses of a binary classifier: functions of the margin y·z with y = ±1."""

from __future__ import annotations

import math

import numpy as np

from beeline._types import Floats
from beeline.exceptions import ParameterError
from beeline.losses.base import ScalarLoss

__all__ = ["Hinge", "Logistic", "RoundedHinge", "SoftHinge", "SquaredHinge", "entropy", "softplus"]


class Logistic(ScalarLoss):
    """log(1 + exp(−yz)): logistic regression (W1; row 6 of B's table)."""

    name = "logistic"
    labels = "binary"
    compiled = "logistic"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope, without overflow for any score."""
        margin = y * z
        return np.logaddexp(0, -margin), -y * _sigmoid(-margin)

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """p(1 − p)."""
        p = _sigmoid(-np.abs(z))
        return y**2 * p * (1 - p)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """α log α + (c − α) log(c − α) − c log c with α = ya in [0, c]."""
        alpha = y * a
        if np.any((alpha < 0) | (alpha > c)):
            return np.inf
        return float(np.sum(entropy(alpha, c)))


class Hinge(ScalarLoss):
    """max(0, 1 − yz): the linear support vector machine (W1; row 3 of B's table)."""

    name = "hinge"
    labels = "binary"
    smooth = False
    piecewise_linear = True
    compiled = "hinge"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and a subgradient, which is 0 at the kink."""
        slack = 1 - y * z
        return np.maximum(slack, 0), np.where(slack > 0, -y, 0.0)

    def kinks(self, y: Floats) -> list[tuple[Floats, float]]:
        """A margin of 1."""
        return [(y, 1.0)]

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−α with α = ya in [0, c]."""
        alpha = y * a
        return np.inf if np.any((alpha < 0) | (alpha > c)) else -float(alpha.sum())

    def rounded(self, width: float) -> SoftHinge:
        """Rounded by entropy: curved everywhere, which Newton's method likes better than a parabola at the kink."""
        return SoftHinge(width)


class _Wide(ScalarLoss):
    """A hinge whose kink is rounded off over a width."""

    labels = "binary"

    def __init__(self, width: float = 0.5) -> None:
        if not width > 0:
            raise ParameterError(f"width must be positive, not {width}")
        self.width = float(width)

    @property
    def parameters(self) -> tuple[float, float]:  # type: ignore[override]
        """The width, for the compiled form."""
        return self.width, 0.0


class RoundedHinge(_Wide):
    """The hinge with a parabola for its kink: slack²/(2μ) for a slack 1 − yz below μ = `width`, slack − μ/2 above."""

    name = "rounded_hinge"
    compiled = "rounded_hinge"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope."""
        slack = np.maximum(1 - y * z, 0)
        alpha = np.minimum(slack / self.width, 1)
        return alpha * slack - 0.5 * self.width * alpha**2, -y * alpha

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """1/μ on the parabola, else 0."""
        slack = 1 - y * z
        return np.where((slack > 0) & (slack < self.width), y**2 / self.width, 0.0)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−α + μα²/(2c) with α = ya in [0, c]."""
        alpha = y * a
        if np.any((alpha < 0) | (alpha > c)):
            return np.inf
        return float(np.sum(-alpha + 0.5 * self.width * alpha**2 / np.where(c > 0, c, 1)))


class SoftHinge(_Wide):
    """The hinge rounded by entropy: μ·log(1 + exp((1 − yz)/μ)), μ = width/(2 log 2); at most width/2 above it."""

    name = "soft_hinge"
    compiled = "soft_hinge"

    @property
    def _scale(self) -> float:
        return self.width / (2 * math.log(2))

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope."""
        value, slope, _ = softplus(1 - y * z, self._scale)
        return value, -y * slope

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """α(1 − α)/μ with α the slope's size."""
        return y**2 * softplus(1 - y * z, self._scale)[2]

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−α + μ(α log α + (c − α) log(c − α) − c log c) with α = ya in [0, c]."""
        alpha = y * a
        if np.any((alpha < 0) | (alpha > c)):
            return np.inf
        return float(np.sum(-alpha + self._scale * entropy(alpha, c)))


class SquaredHinge(ScalarLoss):
    """max(0, 1 − yz)²: LIBLINEAR's L2-loss SVM (W1). Row 4 of B's table is half of it: double C to get the same."""

    name = "squared_hinge"
    labels = "binary"
    compiled = "squared_hinge"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope."""
        slack = np.maximum(1 - y * z, 0)
        return slack**2, -2 * y * slack

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """2 where the margin is violated, else 0."""
        return np.where(1 - y * z > 0, 2 * y**2, 0.0)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−α + α²/(4c) with α = ya ≥ 0."""
        alpha = y * a
        if np.any((alpha < 0) | ((c <= 0) & (alpha != 0))):
            return np.inf
        return float(np.sum(-alpha + alpha**2 / (4 * np.where(c > 0, c, 1))))


def softplus(t: Floats, scale: float) -> tuple[Floats, Floats, Floats]:
    """scale·log(1 + exp(t/scale)), its slope and its curvature: max(0, t) rounded by entropy."""
    slope = _sigmoid(t / scale)
    return scale * np.logaddexp(0, t / scale), slope, slope * _sigmoid(-t / scale) / scale


def entropy(p: Floats, c: Floats) -> Floats:
    """p log p + (c − p) log(c − p) − c log c for 0 ≤ p ≤ c."""
    total = np.where(c > 0, c, 1)
    return _xlogy(p, p / total) + _xlogy(c - p, (c - p) / total)


def _xlogy(x: Floats, y: Floats) -> Floats:
    return x * np.log(np.where(x > 0, y, 1))


def _sigmoid(t: Floats) -> Floats:
    small = np.exp(-np.abs(t))
    return np.where(t >= 0, 1 / (1 + small), small / (1 + small))
