"""Losses of a binary classifier: functions of the margin y·z with y = ±1."""

from __future__ import annotations

import numpy as np

from beeline._types import Floats
from beeline.losses.base import ScalarLoss

__all__ = ["Hinge", "Logistic", "SquaredHinge"]


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


class Hinge(ScalarLoss):
    """max(0, 1 − yz): the linear support vector machine (W1; row 3 of B's table)."""

    name = "hinge"
    labels = "binary"
    smooth = False
    compiled = "hinge"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and a subgradient, which is 0 at the kink."""
        slack = 1 - y * z
        return np.maximum(slack, 0), np.where(slack > 0, -y, 0.0)


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


def _sigmoid(t: Floats) -> Floats:
    small = np.exp(-np.abs(t))
    return np.where(t >= 0, 1 / (1 + small), small / (1 + small))
