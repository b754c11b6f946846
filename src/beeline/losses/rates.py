"""Losses of positive quantities and of shares: half the deviance of a distribution, with the score under a link.

The logarithmic link, a prediction of exp(z), keeps predictions positive and the losses convex. The terms without z make
the loss of a perfect prediction zero; exponents beyond 300 go on as tangents, so that nothing overflows.
"""

from __future__ import annotations

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.losses.base import ScalarLoss
from beeline.losses.numeric import capped_exp, entropy, sigmoid, xlogy
from beeline.losses.settings import between

__all__ = ["CrossEntropy", "Gamma", "Poisson", "Tweedie"]


class Poisson(ScalarLoss):
    """exp(z) − yz + y log y − y: Poisson regression of counts (row 13 of B's table)."""

    name = "poisson"
    formula = "exp(z) − yz + y log y − y"
    summary = "Poisson regression: counts and rates"
    labels = "real"
    domain = "finite numbers that are not negative"
    link = "exp"
    compiled = "poisson"

    def allows(self, y: Floats) -> AnyArray:
        """Whether the labels are not negative."""
        return np.isfinite(y) & (y >= 0)

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope exp(z) − y; near the label y(exp t − 1 − t) with t = z − log y."""
        value, slope, _ = capped_exp(z)
        t, near = _from_label(z, y)
        far = np.maximum(value - y * z + (xlogy(y, y) - y), 0)
        return np.where(near, y * (np.expm1(t) - t), far), np.where(near, y * np.expm1(t), slope - y)

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """exp(z)."""
        return capped_exp(z)[2]

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−a log y + cy φ(−a/(cy)), φ(e) = (1 + e) log(1 + e) − e; for y = 0 −a log(−a/c) + a with a ≤ 0."""
        if np.any((c <= 0) & (a != 0)):
            return np.inf
        size = c * y
        each = -a * np.log(np.where(y > 0, y, 1)) + size * _power_conjugate(-a / np.where(size > 0, size, 1), size > 0)
        without = np.where(a > 0, np.inf, xlogy(-a, -a / np.where(c > 0, c, 1)) + a)
        return float(np.sum(np.where(c > 0, np.where(y > 0, each, without), 0.0)))


class Gamma(ScalarLoss):
    """y·exp(−z) + z − log y − 1: half the deviance of the gamma distribution."""

    name = "gamma"
    formula = "y·exp(−z) + z − log y − 1"
    summary = "gamma regression: positive amounts with a constant relative spread"
    labels = "real"
    domain = "positive and finite"
    link = "exp"
    compiled = "gamma"

    def allows(self, y: Floats) -> AnyArray:
        """Whether the labels are positive."""
        return np.isfinite(y) & (y > 0)

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope 1 − y·exp(−z); near the label exp(−t) − 1 + t with t = z − log y."""
        value, slope, _ = capped_exp(-z)
        t, near = _from_label(z, y)
        far = np.maximum(y * value + (z - np.log(y)) - 1, 0)
        return np.where(near, np.expm1(-t) + t, far), np.where(near, -np.expm1(-t), 1 - y * slope)

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """y·exp(−z)."""
        return y * capped_exp(-z)[2]

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−a log y + c φ(a/c), φ(e) = (1 + e) log(1 + e) − e."""
        if np.any((c <= 0) & (a != 0)):
            return np.inf
        return float(np.sum(-a * np.log(y) + c * _power_conjugate(a / np.where(c > 0, c, 1), c > 0)))


class Tweedie(ScalarLoss):
    """exp((2−p)z)/(2−p) + y·exp((1−p)z)/(p−1) − y^(2−p)/((p−1)(2−p)): half a Tweedie deviance of power 1 < p < 2.

    Its distributions have a mass at zero and positive amounts beside it. With p → 1 it becomes Poisson's loss, with p →
    2 the gamma loss; other powers are not convex under this link.
    """

    name = "tweedie"
    formula = "exp((2−p)z)/(2−p) + y·exp((1−p)z)/(p−1) − y^(2−p)/((p−1)(2−p)), p = power"
    summary = "Tweedie regression: amounts that are often zero, such as claims"
    labels = "real"
    domain = "finite numbers that are not negative"
    link = "exp"
    compiled = "tweedie"

    def __init__(self, power: float = 1.5) -> None:
        self.power = between("power", power, 1, 2)

    def allows(self, y: Floats) -> AnyArray:
        """Whether the labels are not negative."""
        return np.isfinite(y) & (y >= 0)

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope μ^(2−p) − yμ^(1−p), μ = exp(z); near the label in terms of t = z − log y."""
        up, down = 2 - self.power, self.power - 1
        (rise, growth, _), (fall, decay, _) = capped_exp(up * z), capped_exp(-down * z)
        value = rise / up + y * fall / down - y**up / (up * down)
        t, near = _from_label(z, y)
        more, less = np.expm1(up * t), np.expm1(-down * t)
        value = np.where(near, y**up * (more / up + less / down), value)
        return np.maximum(value, 0), np.where(near, y**up * (more - less), growth - y * decay)

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """(2−p)μ^(2−p) + (p−1)yμ^(1−p)."""
        up, down = 2 - self.power, self.power - 1
        return up * capped_exp(up * z)[2] + y * down * capped_exp(-down * z)[2]


class CrossEntropy(ScalarLoss):
    """log(1 + exp(z)) − yz for shares y between 0 and 1: logistic regression of proportions and of soft labels.

    With y = 0 and 1 it is the logistic loss.
    """

    name = "cross_entropy"
    formula = "log(1 + exp(z)) − yz"
    summary = "logistic regression of shares and soft labels; predicts shares"
    labels = "real"
    domain = "between 0 and 1"
    link = "logistic"
    compiled = "cross_entropy"

    def allows(self, y: Floats) -> AnyArray:
        """Whether the labels are shares."""
        return (y >= 0) & (y <= 1)

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope σ(z) − y, with all digits of small ones."""
        value = np.log1p(np.exp(-np.abs(z))) + np.where(z > 0, (1 - y) * z, -y * z)
        return value, np.where(z > 0, (1 - y) - sigmoid(-z), sigmoid(z) - y)

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """p(1 − p)."""
        p = sigmoid(-np.abs(z))
        return p * (1 - p)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """p log p + (c − p) log(c − p) − c log c with p = cy − a in [0, c]."""
        p = _part_of(c * y - a, c)
        return np.inf if np.any((p < 0) | (p > c)) else float(np.sum(entropy(p, c)))


def _from_label(z: Floats, y: Floats) -> tuple[Floats, AnyArray]:
    """(t = z − log y, where that is small).

    Deviances have differences of large numbers where a prediction is nearly the label; in t they have not. Elsewhere t
    is zero.
    """
    t = z - np.log(np.where(y > 0, y, 1.0))
    near = (y > 0) & (np.abs(t) < 1)
    return np.where(near, t, 0.0), near


def _power_conjugate(e: Floats, where: AnyArray) -> Floats:
    """(1 + e) log(1 + e) − e, the conjugate of exp(t) − 1 − t, for e ≥ −1; ∞ below; 0 elsewhere than `where`."""
    inside = np.where(where, np.maximum(e, -1), 0.0)
    value = np.where(inside > -1, (1 + inside) * np.log1p(np.where(inside > -1, inside, 0.0)) - inside, 1.0)
    return np.where(where & (e < -1 - 1e-15), np.inf, value)


def _part_of(p: Floats, c: Floats) -> Floats:
    """A part of c, also where rounding took it a little below zero or above c. Others stay as they are."""
    slack = 1e-15 * c
    return np.where((p < 0) & (p >= -slack), 0.0, np.where((p > c) & (p <= c + slack), c, p))
