"""The loss of one class: what is not like the rows that were seen is new."""

from __future__ import annotations

import numpy as np

from beeline._types import Floats
from beeline.losses.base import ScalarLoss
from beeline.losses.settings import positive

__all__ = ["Novelty"]


class Novelty(ScalarLoss):
    """max(0, ρ − z): scores of known rows shall reach ρ (row 7 of B's table, with its kink at ρ).

    Labels are not looked at. An intercept that costs nothing would reach ρ by itself: there must be none, or one that
    is regularized.
    """

    name = "novelty"
    formula = "max(0, ρ − z)"
    summary = "novelty detection: rows that score below ρ are unlike those seen"
    labels = "none"
    smooth = False
    piecewise_linear = True
    compiled = "novelty"

    def __init__(self, rho: float = 1.0) -> None:
        self.rho = positive("rho", rho)

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and a subgradient, which is 0 at the kink."""
        return np.maximum(self.rho - z, 0), np.where(z < self.rho, -1.0, 0.0)

    def kinks(self, y: Floats) -> list[tuple[Floats, float]]:
        """A score of ρ."""
        return [(np.full(len(y), self.rho), 1.0)]

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−ρa with a in [0, c]."""
        return np.inf if np.any((a < 0) | (a > c)) else -self.rho * float(a.sum())
