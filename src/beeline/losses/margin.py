"""Losses of a binary classifier: functions of the margin y·z with y = ±1."""

from __future__ import annotations

import math

import numpy as np

from beeline._types import Floats
from beeline.losses.base import ScalarLoss
from beeline.losses.numeric import capped_exp, entropy, sigmoid, softplus, xlogy
from beeline.losses.regression import LeastSquares
from beeline.losses.settings import positive

__all__ = [
    "Exponential",
    "Hinge",
    "HuberHinge",
    "Logistic",
    "ModifiedHuber",
    "Perceptron",
    "SmoothedHinge",
    "SoftHinge",
    "SquaredHinge",
    "SquaredMargin",
    "SquaredPerceptron",
]


def _sides(y: Floats, c: Floats) -> tuple[float, float]:
    """What the rows of both labels cost: +1, −1."""
    positive = y > 0
    return float(c[positive].sum()), float(c[~positive].sum())


def _at_least_margin(y: Floats, margin: float) -> tuple[Floats, Floats]:
    """Between which scores yz is no less than a margin."""
    return np.where(y > 0, margin, -np.inf), np.where(y > 0, np.inf, -margin)


class Logistic(ScalarLoss):
    """log(1 + exp(−yz)): logistic regression (W1; row 6 of B's table)."""

    name = "logistic"
    formula = "log(1 + exp(−yz))"
    summary = "logistic regression"
    link = "logistic"
    labels = "binary"
    compiled = "logistic"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope, without overflow for any score."""
        margin = y * z
        return np.logaddexp(0, -margin), -y * sigmoid(-margin)

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """p(1 − p)."""
        p = sigmoid(-np.abs(z))
        return y**2 * p * (1 - p)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """α log α + (c − α) log(c − α) − c log c with α = ya in [0, c]."""
        alpha = y * a
        if np.any((alpha < 0) | (alpha > c)):
            return np.inf
        return float(np.sum(entropy(alpha, c)))

    def best_constant(self, y: Floats, c: Floats) -> float | None:
        """The log-odds."""
        up, down = _sides(y, c)
        if not min(up, down) > 0:
            return None
        return math.log(up / down) if 0 < up / down < math.inf else math.log(up) - math.log(down)


class Hinge(ScalarLoss):
    """max(0, 1 − yz): the linear support vector machine (W1; row 3 of B's table)."""

    name = "hinge"
    formula = "max(0, 1 − yz)"
    summary = "the linear support vector machine"
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

    def sublevel(self, y: Floats, value: float) -> tuple[Floats, Floats]:
        """A margin of 1 − value or more."""
        return _at_least_margin(y, 1.0 - value)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−α with α = ya in [0, c]."""
        alpha = y * a
        return np.inf if np.any((alpha < 0) | (alpha > c)) else -float(alpha.sum())

    def best_constant(self, y: Floats, c: Floats) -> float:
        """A margin of 1 for the side that costs more."""
        up, down = _sides(y, c)
        return float(up > down) - float(up < down)

    def smoothed(self, width: float) -> SoftHinge:
        """Rounded by entropy: curved everywhere, which Newton's method likes better than a parabola at the kink."""
        return SoftHinge(width)


class _Wide(ScalarLoss):
    """A hinge whose kink is rounded off over a width."""

    labels = "binary"

    def __init__(self, width: float = 0.5) -> None:
        self.width = positive("width", width)


class SmoothedHinge(_Wide):
    """The hinge with a parabola for its kink: slack²/(2μ) for a slack 1 − yz below μ = `width`, slack − μ/2 above.

    With a width of 1 it is Rennie and Srebro's smooth hinge.
    """

    name = "smoothed_hinge"
    formula = "s²/(2·width) for s = max(0, 1 − yz) < width, else s − width/2"
    summary = "the hinge with a parabola for its kink"
    compiled = "smoothed_hinge"

    @property
    def _margin(self) -> float:
        return 1.0

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope."""
        slack = np.maximum(self._margin - y * z, 0)
        alpha = np.minimum(slack / self.width, 1)
        return alpha * slack - 0.5 * self.width * alpha**2, -y * alpha

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """1/μ on the parabola, else 0."""
        slack = self._margin - y * z
        return np.where((slack > 0) & (slack < self.width), y**2 / self.width, 0.0)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−mα + μα²/(2c) with α = ya in [0, c], where slack begins at the margin m."""
        alpha = y * a
        if np.any((alpha < 0) | (alpha > c)):
            return np.inf
        return float(np.sum(-self._margin * alpha + 0.5 * self.width * alpha**2 / np.where(c > 0, c, 1)))


class HuberHinge(SmoothedHinge):
    """The hinge with a parabola around its kink: (1 + h − yz)²/(4h) for |1 − yz| ≤ h = `width`/2 (Chapelle 2007).

    It is the smoothed hinge moved by h: equal to the hinge itself for margins below 1 − h, and above it near the kink.
    """

    name = "huber_hinge"
    formula = "(1 + h − yz)²/(4h) for |1 − yz| ≤ h = width/2, else max(0, 1 − yz)"
    summary = "the hinge with a parabola around its kink"
    compiled = "huber_hinge"

    @property
    def _margin(self) -> float:
        return 1 + 0.5 * self.width


class SoftHinge(_Wide):
    """The hinge rounded by entropy: μ·log(1 + exp((1 − yz)/μ)), μ = width/(2 log 2); at most width/2 above it."""

    name = "soft_hinge"
    formula = "μ·log(1 + exp((1 − yz)/μ)), μ = width/(2 log 2)"
    summary = "the hinge with its kink rounded by entropy"
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
    formula = "max(0, 1 − yz)²"
    summary = "the support vector machine with squared slacks"
    labels = "binary"
    compiled = "squared_hinge"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope."""
        slack = np.maximum(1 - y * z, 0)
        return slack**2, -2 * y * slack

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """2 where the margin is violated, else 0."""
        return np.where(1 - y * z > 0, 2 * y**2, 0.0)

    def sublevel(self, y: Floats, value: float) -> tuple[Floats, Floats]:
        """A margin of 1 − √value or more."""
        return _at_least_margin(y, 1.0 - math.sqrt(value))

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−α + α²/(4c) with α = ya ≥ 0."""
        alpha = y * a
        if np.any((alpha < 0) | ((c <= 0) & (alpha != 0))):
            return np.inf
        return float(np.sum(-alpha + alpha**2 / (4 * np.where(c > 0, c, 1))))

    def best_constant(self, y: Floats, c: Floats) -> float | None:
        """The mean label."""
        up, down = _sides(y, c)
        return (up - down) / (up + down) if min(up, down) > 0 else None


class SquaredMargin(LeastSquares):
    """½(1 − yz)², which is ½(z − y)² for y = ±1: least squares on classes, as ridge classification has it."""

    name = "squared_margin"
    formula = "½(1 − yz)²"
    summary = "least squares on classes"
    labels = "binary"


class Perceptron(ScalarLoss):
    """max(0, −yz): Rosenblatt's perceptron (row 1 of B's table).

    Zero weights cost nothing, so that with a regularizer they are always optimal: only on the way there do weights mean
    something.
    """

    name = "perceptron"
    formula = "max(0, −yz)"
    summary = "Rosenblatt's perceptron; zero weights are an optimum"
    labels = "binary"
    smooth = False
    piecewise_linear = True
    zero_is_optimal = True
    compiled = "perceptron"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and a subgradient, which is 0 at the kink."""
        margin = y * z
        return np.maximum(-margin, 0), np.where(margin < 0, -y, 0.0)

    def kinks(self, y: Floats) -> list[tuple[Floats, float]]:
        """A score of 0."""
        return [(np.zeros_like(y), 1.0)]

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """0 with ya in [0, c]."""
        alpha = y * a
        return np.inf if np.any((alpha < 0) | (alpha > c)) else 0.0


class SquaredPerceptron(ScalarLoss):
    """½ max(0, −yz)² (row 2 of B's table)."""

    name = "squared_perceptron"
    formula = "½ max(0, −yz)²"
    summary = "the perceptron with squared errors; zero weights are an optimum"
    labels = "binary"
    zero_is_optimal = True
    compiled = "squared_perceptron"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope."""
        error = np.maximum(-y * z, 0)
        return 0.5 * error**2, -y * error

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """1 on the wrong side, else 0."""
        return np.where(y * z < 0, y**2, 0.0)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """α²/(2c) with α = ya ≥ 0."""
        alpha = y * a
        if np.any((alpha < 0) | ((c <= 0) & (alpha != 0))):
            return np.inf
        return float(np.sum(alpha**2 / (2 * np.where(c > 0, c, 1))))


class Exponential(ScalarLoss):
    """exp(−yz): the loss of boosting (row 5 of B's table). Beyond exp(300) it goes on as its tangent."""

    name = "exponential"
    formula = "exp(−yz)"
    summary = "the loss of AdaBoost; minds outliers very much"
    labels = "binary"
    compiled = "exponential"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope, without overflow for any score."""
        value, slope, _ = capped_exp(-y * z)
        return value, -y * slope

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """exp(−yz)."""
        return capped_exp(-y * z)[2]

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """α log(α/c) − α with α = ya ≥ 0."""
        alpha = y * a
        if np.any((alpha < 0) | ((c <= 0) & (alpha != 0))):
            return np.inf
        return float(np.sum(xlogy(alpha, alpha / np.where(c > 0, c, 1)) - alpha))


class ModifiedHuber(ScalarLoss):
    """max(0, 1 − yz)² for yz ≥ −1, and its tangent −4yz below (Zhang 2004)."""

    name = "modified_huber"
    formula = "max(0, 1 − yz)² for yz ≥ −1, else −4yz"
    summary = "the squared hinge, with outliers that count linearly"
    labels = "binary"
    compiled = "modified_huber"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope."""
        slack = np.maximum(1 - y * z, 0)
        near = np.minimum(slack, 2)
        return near * (2 * slack - near), -2 * y * near

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """2 for margins between −1 and 1, else 0."""
        return np.where(np.abs(y * z) < 1, 2 * y**2, 0.0)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−α + α²/(4c) with α = ya in [0, 4c]."""
        alpha = y * a
        if np.any((alpha < 0) | (alpha > 4 * c)):
            return np.inf
        return float(np.sum(-alpha + alpha**2 / (4 * np.where(c > 0, c, 1))))
