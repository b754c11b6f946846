"""Regularizers Ω(w): what large weights cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from beeline._types import Floats
from beeline.exceptions import ParameterError
from beeline.kernels import dot

__all__ = ["L1", "L2", "REGULARIZERS", "ElasticNet", "Regularizer", "get_regularizer"]


class Regularizer(ABC):
    """Ω(w) = Σ_j (l1·|w_j| + ½·l2·w_j²).

    Attributes
    ----------
    l1, l2
        The parts of the absolute and of the squared weights. Ω is strongly convex with modulus `l2`, and smooth
        where `l1` is 0.
    """

    name: ClassVar[str]
    l1: float
    l2: float

    @abstractmethod
    def __init__(self) -> None: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @property
    def smooth(self) -> bool:
        """Whether Ω has a gradient everywhere."""
        return self.l1 == 0

    def value(self, w: Floats) -> float:
        """Ω(w)."""
        squares = dot(w, w) if self.l2 else 0.0
        return self.l1 * (float(np.abs(w).sum()) if self.l1 else 0.0) + 0.5 * self.l2 * squares

    def gradient(self, w: Floats) -> Floats:
        """∂Ω(w); at a zero weight the part of the absolute value is 0."""
        return self.l2 * w + (self.l1 * np.sign(w) if self.l1 else 0.0)


class L2(Regularizer):
    """½‖w‖²."""

    name = "l2"

    def __init__(self) -> None:
        self.l1, self.l2 = 0.0, 1.0


class L1(Regularizer):
    """‖w‖₁: many weights become exactly zero."""

    name = "l1"

    def __init__(self) -> None:
        self.l1, self.l2 = 1.0, 0.0


class ElasticNet(Regularizer):
    """ρ‖w‖₁ + (1 − ρ)·½‖w‖², ρ = `l1_ratio`."""

    name = "elastic_net"

    def __init__(self, l1_ratio: float = 0.5) -> None:
        if not 0 <= l1_ratio <= 1:
            raise ParameterError(f"l1_ratio must lie between 0 and 1, not {l1_ratio}")
        self.l1, self.l2 = float(l1_ratio), 1.0 - float(l1_ratio)

    def __repr__(self) -> str:
        return f"ElasticNet(l1_ratio={self.l1})"


REGULARIZERS: dict[str, type[Regularizer]] = {kind.name: kind for kind in (L2, L1, ElasticNet)}


def get_regularizer(regularizer: str | Regularizer, **settings: float) -> Regularizer:
    """The regularizer of that name, made with the settings; a regularizer passes through."""
    if isinstance(regularizer, Regularizer):
        return regularizer
    if regularizer not in REGULARIZERS:
        raise ParameterError(f"there is no regularizer {regularizer!r}; there are {', '.join(REGULARIZERS)}")
    return REGULARIZERS[regularizer](**settings)
