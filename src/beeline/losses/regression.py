"""Losses of a regression: functions of the residual r = z − y."""

from __future__ import annotations

import math

import numpy as np

from beeline._types import Floats
from beeline.exceptions import ParameterError
from beeline.losses.base import ScalarLoss
from beeline.losses.margin import entropy, softplus

__all__ = ["EpsilonInsensitive", "LeastSquares", "SoftEpsilonInsensitive", "SquaredEpsilonInsensitive"]


class LeastSquares(ScalarLoss):
    """½(z − y)² (row 8 of B's table)."""

    name = "squared"
    labels = "real"
    compiled = "squared"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope."""
        r = z - y
        return 0.5 * r**2, r

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """1 everywhere."""
        return np.ones_like(z)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−ya + a²/(2c)."""
        if np.any((c <= 0) & (a != 0)):
            return np.inf
        return float(np.sum(-y * a + a**2 / (2 * np.where(c > 0, c, 1))))


class _Tube(ScalarLoss):
    """Residuals of at most ε cost nothing."""

    labels = "real"

    def __init__(self, epsilon: float = 0.1) -> None:
        if not epsilon >= 0:
            raise ParameterError(f"epsilon must not be negative, not {epsilon}")
        self.epsilon = float(epsilon)

    @property
    def parameters(self) -> tuple[float, float]:  # type: ignore[override]
        """ε, for the compiled form."""
        return self.epsilon, 0.0


class EpsilonInsensitive(_Tube):
    """max(0, |z − y| − ε): support vector regression (row 11 of B's table)."""

    name = "epsilon_insensitive"
    smooth = False
    piecewise_linear = True
    compiled = "epsilon_insensitive"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and a subgradient, which is 0 at the kinks."""
        r = z - y
        excess = np.abs(r) - self.epsilon
        return np.maximum(excess, 0), np.where(excess > 0, np.sign(r), 0.0)

    def kinks(self, y: Floats) -> list[tuple[Floats, float]]:
        """Both sides of the tube."""
        return [(y - self.epsilon, 1.0), (y + self.epsilon, 1.0)]

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−ya + ε|a| with |a| ≤ c."""
        return np.inf if np.any(np.abs(a) > c) else float(np.sum(-y * a + self.epsilon * np.abs(a)))

    def rounded(self, width: float) -> SoftEpsilonInsensitive:
        """Rounded by entropy on both sides of the tube."""
        return SoftEpsilonInsensitive(self.epsilon, width)


class SoftEpsilonInsensitive(_Tube):
    """The ε-insensitive loss rounded by entropy: a softplus on each side of the tube, at most width/2 above it."""

    name = "soft_epsilon_insensitive"
    compiled = "soft_epsilon_insensitive"

    def __init__(self, epsilon: float = 0.1, width: float = 0.1) -> None:
        super().__init__(epsilon)
        if not width > 0:
            raise ParameterError(f"width must be positive, not {width}")
        self.width = float(width)

    @property
    def parameters(self) -> tuple[float, float]:  # type: ignore[override]
        """ε and the width, for the compiled form."""
        return self.epsilon, self.width

    @property
    def _scale(self) -> float:
        return self.width / (4 * math.log(2))

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope."""
        above, below = softplus(z - y - self.epsilon, self._scale), softplus(y - z - self.epsilon, self._scale)
        return above[0] + below[0], above[1] - below[1]

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """The curvatures of both sides."""
        return softplus(z - y - self.epsilon, self._scale)[2] + softplus(y - z - self.epsilon, self._scale)[2]

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−ya + ε(p + q) and the entropies of p and q, where |a| = p − q is split as cheaply as can be.

        The split has pq = k(c − p)(c − q) with k = exp(−2ε/μ): a quadratic equation.
        """
        size = np.abs(a)
        if np.any(size > c):
            return np.inf
        k = np.exp(-2 * self.epsilon / self._scale)
        linear, last = k * (2 * c - size) + size, k * c * (c - size)
        q = 2 * last / np.maximum(linear + np.sqrt(linear**2 + 4 * (1 - k) * last), 1e-300)
        p = np.minimum(size + q, c)
        return float(np.sum(-y * a + self.epsilon * (p + q) + self._scale * (entropy(p, c) + entropy(q, c))))


class SquaredEpsilonInsensitive(_Tube):
    """max(0, |z − y| − ε)²: LIBLINEAR's L2-loss support vector regression."""

    name = "squared_epsilon_insensitive"
    compiled = "squared_epsilon_insensitive"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope."""
        r = z - y
        excess = np.maximum(np.abs(r) - self.epsilon, 0)
        return excess**2, 2 * np.sign(r) * excess

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """2 outside the tube, else 0."""
        return np.where(np.abs(z - y) > self.epsilon, 2.0, 0.0)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−ya + ε|a| + a²/(4c)."""
        if np.any((c <= 0) & (a != 0)):
            return np.inf
        return float(np.sum(-y * a + self.epsilon * np.abs(a) + a**2 / (4 * np.where(c > 0, c, 1))))
