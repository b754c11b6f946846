"""Losses of a regression: functions of the residual r = z − y."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from beeline._numbers import as_number
from beeline._sentences import Argument
from beeline._types import AnyArray, Floats
from beeline.exceptions import ParameterError
from beeline.kernels import weighted_median
from beeline.losses.base import Labels, ScalarLoss
from beeline.losses.numeric import entropy, softplus
from beeline.losses.settings import positive

__all__ = [
    "Absolute",
    "EpsilonInsensitive",
    "Huber",
    "LeastSquares",
    "LogCosh",
    "PseudoHuber",
    "SoftEpsilonInsensitive",
    "SquaredEpsilonInsensitive",
]


class LeastSquares(ScalarLoss):
    """½(z − y)² (row 8 of B's table)."""

    name = "squared"
    formula = "½(z − y)²"
    summary = "least squares: predicts means"
    labels: ClassVar[Labels] = "real"
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

    def best_constant(self, y: Floats, c: Floats) -> float | None:
        """The mean."""
        total = float(c.sum())
        return float((c * y).sum()) / total if total > 0 else None


def _median(y: Floats, c: Floats) -> float | None:
    """The weighted median."""
    median = weighted_median(y, c)
    return None if math.isnan(median) else median


class _Tube(ScalarLoss):
    """Residuals of at most ε cost nothing."""

    labels = "real"

    def __init__(self, epsilon: float = 0.1) -> None:
        if not 0 <= as_number("epsilon", epsilon) < math.inf:
            raise ParameterError(Argument("epsilon"), f" must not be negative and must be finite, not {epsilon}")
        self.epsilon = float(epsilon)


class EpsilonInsensitive(_Tube):
    """max(0, |z − y| − ε): support vector regression (row 11 of B's table)."""

    name = "epsilon_insensitive"
    formula = "max(0, |z − y| − ε)"
    summary = "support vector regression: errors below ε cost nothing"
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

    def sublevel(self, y: Floats, value: float) -> tuple[Floats, Floats]:
        """A tube of ε + value."""
        return y - (self.epsilon + value), y + (self.epsilon + value)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−ya + ε|a| with |a| ≤ c."""
        return np.inf if np.any(np.abs(a) > c) else float(np.sum(-y * a + self.epsilon * np.abs(a)))

    def smoothed(self, width: float) -> SoftEpsilonInsensitive:
        """Rounded by entropy on both sides of the tube."""
        return SoftEpsilonInsensitive(self.epsilon, width)

    def best_constant(self, y: Floats, c: Floats) -> float | None:
        """The median, where there is no tube."""
        return None if self.epsilon else _median(y, c)


class SoftEpsilonInsensitive(_Tube):
    """The ε-insensitive loss rounded by entropy: a softplus on each side of the tube, at most width/2 above it."""

    name = "soft_epsilon_insensitive"
    formula = "s(z − y − ε) + s(y − z − ε), s(t) = μ·log(1 + exp(t/μ)), μ = width/(4 log 2)"
    summary = "the ε-insensitive loss with its kinks rounded by entropy"
    compiled = "soft_epsilon_insensitive"

    def __init__(self, epsilon: float = 0.1, width: float = 0.1) -> None:
        super().__init__(epsilon)
        self.width = positive("width", width)

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
    formula = "max(0, |z − y| − ε)²"
    summary = "support vector regression with squared errors"
    compiled = "squared_epsilon_insensitive"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope."""
        r = z - y
        excess = np.maximum(np.abs(r) - self.epsilon, 0)
        return excess**2, 2 * np.sign(r) * excess

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """2 outside the tube, else 0."""
        return np.where(np.abs(z - y) > self.epsilon, 2.0, 0.0)

    def sublevel(self, y: Floats, value: float) -> tuple[Floats, Floats]:
        """A tube of ε + √value."""
        width = self.epsilon + math.sqrt(value)
        return y - width, y + width

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−ya + ε|a| + a²/(4c)."""
        if np.any((c <= 0) & (a != 0)):
            return np.inf
        return float(np.sum(-y * a + self.epsilon * np.abs(a) + a**2 / (4 * np.where(c > 0, c, 1))))


class Absolute(ScalarLoss):
    """|z − y|: least absolute deviations (row 9 of B's table)."""

    name = "absolute"
    formula = "|z − y|"
    summary = "least absolute deviations: predicts medians"
    labels = "real"
    smooth = False
    piecewise_linear = True
    compiled = "absolute"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and a subgradient, which is 0 at the kink."""
        r = z - y
        return np.abs(r), np.sign(r)

    def kinks(self, y: Floats) -> list[tuple[Floats, float]]:
        """The label."""
        return [(y, 2.0)]

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−ya with |a| ≤ c."""
        return np.inf if np.any(np.abs(a) > c) else -float(np.sum(y * a))

    def best_constant(self, y: Floats, c: Floats) -> float | None:
        """The median."""
        return _median(y, c)

    def smoothed(self, width: float) -> SoftEpsilonInsensitive:
        """Rounded by entropy."""
        return SoftEpsilonInsensitive(0.0, width)


def _farther(z: Floats, y: Floats, size: float) -> AnyArray:
    """Whether residuals are larger than that."""
    farther: AnyArray = np.abs(z - y) > size
    return farther


class Huber(ScalarLoss):
    """½r² for |r| ≤ δ, δ(|r| − δ/2) beyond (row 12 of B's table, which has δ = 1)."""

    name = "huber"
    formula = "½r² for |r| ≤ δ, else δ(|r| − δ/2), r = z − y"
    summary = "least squares, with outliers that count linearly"
    labels = "real"
    compiled = "huber"

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = positive("delta", delta)

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope."""
        r = z - y
        near = np.clip(r, -self.delta, self.delta)
        return near * (r - 0.5 * near), near

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """1 for |r| < δ, else 0."""
        return np.where(np.abs(z - y) < self.delta, 1.0, 0.0)

    def lets_go(self, z: Floats, y: Floats) -> AnyArray:
        """|r| > δ."""
        return _farther(z, y, self.delta)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−ya + a²/(2c) with |a| ≤ cδ."""
        if np.any(np.abs(a) > c * self.delta):
            return np.inf
        return float(np.sum(-y * a + a**2 / (2 * np.where(c > 0, c, 1))))


class PseudoHuber(ScalarLoss):
    """δ²(√(1 + (r/δ)²) − 1): a parabola that becomes a straight line, with all derivatives."""

    name = "pseudo_huber"
    formula = "δ²(√(1 + (r/δ)²) − 1), r = z − y"
    summary = "Huber's loss without a jump in its curvature"
    labels = "real"
    compiled = "pseudo_huber"

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = positive("delta", delta)

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value, with all digits of a small one, and slope."""
        r = z - y
        root = np.hypot(1, r / self.delta)
        return r * (r / (1 + root)), r / root

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """(1 + (r/δ)²)^(−3/2)."""
        curvature: Floats = np.hypot(1, (z - y) / self.delta) ** -3
        return curvature

    def lets_go(self, z: Floats, y: Floats) -> AnyArray:
        """|r| > δ."""
        return _farther(z, y, self.delta)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−ya + cδ²(1 − √(1 − (a/cδ)²)) with |a| ≤ cδ."""
        if np.any(np.abs(a) > c * self.delta):
            return np.inf
        part = a / (np.where(c > 0, c, 1) * self.delta)
        return float(np.sum(-y * a + c * self.delta**2 * (1 - np.sqrt(1 - part**2))))


class LogCosh(ScalarLoss):
    """log cosh(z − y): nearly ½r² for small residuals and |r| − log 2 for large ones."""

    name = "log_cosh"
    formula = "log cosh(z − y)"
    summary = "between least squares and absolute deviations, very smooth"
    labels = "real"
    compiled = "log_cosh"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value, without overflow and with all digits of a small one, and slope."""
        size = np.abs(z - y)
        far = size + np.log1p(np.exp(-2 * size)) - math.log(2)
        # log cosh r = ½ log(1 + sinh² r), which has no difference of nearly equal numbers.
        near = 0.5 * np.log1p(np.sinh(np.minimum(size, 1)) ** 2)
        return np.where(size < 1, near, far), np.tanh(z - y)

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """1/cosh²(r)."""
        small: Floats = np.exp(-2 * np.abs(z - y))
        return 4 * small / (1 + small) ** 2

    def lets_go(self, z: Floats, y: Floats) -> AnyArray:
        """|r| > 1."""
        return _farther(z, y, 1.0)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−ya + ½((c + a) log(1 + a/c) + (c − a) log(1 − a/c)) with |a| ≤ c."""
        if np.any(np.abs(a) > c):
            return np.inf
        total = np.where(c > 0, c, 1)
        with np.errstate(divide="ignore", invalid="ignore"):  # nothing times an infinite logarithm is nothing
            each = [np.where(part > 0, part * np.log1p(b / total), 0.0) for part, b in ((c + a, a), (c - a, -a))]
        return float(np.sum(-y * a + 0.5 * (each[0] + each[1])))
