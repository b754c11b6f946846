"""The library's own regularizers: L2, L1, and both."""

from __future__ import annotations

import numpy as np

from beeline._sentences import Argument
from beeline._types import Floats
from beeline.exceptions import ParameterError
from beeline.kernels import dot
from beeline.regularizers.base import Regularizer

__all__ = ["L1", "L2", "ElasticNet", "Separable"]


class Separable(Regularizer):
    """Ω(w) = Σ_j (l1·|w_j| + ½·l2·w_j²); strongly convex with modulus `l2`."""

    trusted = separable = True
    l1: float = 0.0
    l2: float = 0.0

    def __init__(self, l1: float, l2: float, nonnegative: bool) -> None:
        self.l1, self.l2, self.nonnegative = l1, l2, nonnegative

    @property
    def modulus(self) -> float:  # type: ignore[override]
        """`l2`."""
        return self.l2

    @property
    def differentiable(self) -> bool:  # type: ignore[override]
        """Whether Ω has a gradient everywhere."""
        return self.l1 == 0

    @property
    def smooth(self) -> bool:
        """Whether Ω has a gradient everywhere, and is finite."""
        return self.l1 == 0 and not self.nonnegative

    def value(self, w: Floats) -> float:
        """Ω(w)."""
        squares = dot(w, w) if self.l2 else 0.0
        return self.l1 * (float(np.abs(w).sum()) if self.l1 else 0.0) + 0.5 * self.l2 * squares

    def gradient(self, w: Floats) -> Floats:
        """∂Ω(w); at a zero weight the part of the absolute value is 0."""
        return self.l2 * w + (self.l1 * np.sign(w) if self.l1 else 0.0)

    def prox(self, v: Floats, step: float) -> Floats:
        """v, moved towards zero by step·l1 and shrunk by the L2 part."""
        moved: Floats = np.sign(v) * np.maximum(np.abs(v) - step * self.l1, 0) / (1 + step * self.l2)
        return moved


class L2(Separable):
    """½‖w‖²."""

    name = "l2"

    def __init__(self, *, nonnegative: bool = False) -> None:
        super().__init__(0.0, 1.0, nonnegative)

    @property
    def _settings(self) -> dict[str, float]:
        return {}


class L1(Separable):
    """‖w‖₁: many weights become exactly zero."""

    name = "l1"

    def __init__(self, *, nonnegative: bool = False) -> None:
        super().__init__(1.0, 0.0, nonnegative)

    @property
    def _settings(self) -> dict[str, float]:
        return {}


class ElasticNet(Separable):
    """ρ‖w‖₁ + (1 − ρ)·½‖w‖², ρ = `l1_ratio`."""

    name = "elastic_net"

    def __init__(self, l1_ratio: float = 0.5, *, nonnegative: bool = False) -> None:
        if not 0 <= l1_ratio <= 1:
            raise ParameterError(Argument("l1_ratio"), f" must lie between 0 and 1, not {l1_ratio}")
        super().__init__(float(l1_ratio), 1.0 - float(l1_ratio), nonnegative)

    @property
    def _settings(self) -> dict[str, float]:
        return {"l1_ratio": self.l1}
