"""Regularizers Ω(w): what large weights cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, ClassVar, Self

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
        The parts of the absolute and of the squared weights. Ω is strongly convex with modulus `l2`.
    nonnegative
        No weight may be negative: Ω is infinite where one is. Intercepts may, also regularized ones. `value` and
        `gradient` know nothing of it; only a solver that keeps to it takes such an Ω.
    """

    name: ClassVar[str]
    l1: float
    l2: float
    nonnegative: bool = False

    @abstractmethod
    def __init__(self) -> None: ...

    def __repr__(self) -> str:
        said = self._settings | ({"nonnegative": True} if self.nonnegative else {})
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in said.items())})"

    @property
    def _settings(self) -> dict[str, Any]:
        """What the constructor was told, for `repr`."""
        return {}

    @property
    def smooth(self) -> bool:
        """Whether Ω has a gradient everywhere."""
        return self.l1 == 0 and not self.nonnegative

    def without_negative_weights(self) -> Self:
        """The same Ω where no weight may be negative."""
        other = copy(self)
        other.nonnegative = True
        return other

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

    def __init__(self, *, nonnegative: bool = False) -> None:
        self.l1, self.l2, self.nonnegative = 0.0, 1.0, nonnegative


class L1(Regularizer):
    """‖w‖₁: many weights become exactly zero."""

    name = "l1"

    def __init__(self, *, nonnegative: bool = False) -> None:
        self.l1, self.l2, self.nonnegative = 1.0, 0.0, nonnegative


class ElasticNet(Regularizer):
    """ρ‖w‖₁ + (1 − ρ)·½‖w‖², ρ = `l1_ratio`."""

    name = "elastic_net"

    def __init__(self, l1_ratio: float = 0.5, *, nonnegative: bool = False) -> None:
        if not 0 <= l1_ratio <= 1:
            raise ParameterError(f"l1_ratio must lie between 0 and 1, not {l1_ratio}")
        self.l1, self.l2, self.nonnegative = float(l1_ratio), 1.0 - float(l1_ratio), nonnegative

    @property
    def _settings(self) -> dict[str, Any]:
        return {"l1_ratio": self.l1}


REGULARIZERS: dict[str, type[Regularizer]] = {kind.name: kind for kind in (L2, L1, ElasticNet)}


def get_regularizer(regularizer: str | Regularizer, **settings: float) -> Regularizer:
    """The regularizer of that name, made with the settings; a regularizer passes through."""
    if isinstance(regularizer, Regularizer):
        return regularizer
    if not isinstance(regularizer, str) or regularizer not in REGULARIZERS:
        raise ParameterError(f"there is no regularizer {regularizer!r}; there are {', '.join(REGULARIZERS)}")
    return REGULARIZERS[regularizer](**settings)
