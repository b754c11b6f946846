"""What the concave–convex procedure makes of the ramp (I2, eq. 3 and 4)."""

from __future__ import annotations

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.losses.base import ScalarLoss

__all__ = ["LeaningHinge"]


class LeaningHinge(ScalarLoss):
    """max(0, 1 − yz) of rows that are IN, and max(1, yz) of those that are OUT, whose labels are −2 and +2 for ±1.

    The ramp is a hinge minus another one that begins at a margin of −s. Where a row is OUT, that one is replaced by its
    tangent, 1 + s − (−s − yz), which leaves max(0, 1 − yz) + yz but for a constant.
    """

    name = "leaning_hinge"
    trusted = True
    smooth = False
    piecewise_linear = True

    def allows(self, y: Floats) -> AnyArray:
        """−1, +1, −2 and +2."""
        allowed: AnyArray = (np.abs(y) == 1) | (np.abs(y) == 2)
        return allowed

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and a subgradient."""
        sign, outside = np.sign(y), np.abs(y) > 1
        margin = sign * z
        values = np.maximum(1 - margin, 0) + np.where(outside, margin, 0.0)
        return values, sign * (np.where(margin < 1, -1.0, 0.0) + outside)

    def kinks(self, y: Floats) -> list[tuple[Floats, float]]:
        """A margin of 1."""
        return [(np.sign(y), 1.0)]
