"""What a regularizer is: numbers from weights.

Conventions
-----------
- Ω sees the weights of one output, a float64 vector with an entry a feature; of several outputs it is the sum.
- `value` and `gradient` are all that Ω must have, and `modulus`, by which it is known to be strongly convex:
  ⟨∂Ω(u) − ∂Ω(v), u − v⟩ ≥ modulus·‖u − v‖². A certified gap rests on it.
- Ω is zero and least where all weights are zero.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from abc import ABC, abstractmethod
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from beeline._types import Floats

__all__ = ["Regularizer"]


class Regularizer(ABC):
    """Ω(w), strongly convex unless it is one of the library's.

    A regularizer of one's own has a `modulus`, a `value` and a `gradient`; whether that is true is looked at before
    training begins. Methods that know nothing else of Ω take it: L-BFGS where it is smooth, and the bundle method.

    Attributes
    ----------
    name
        One that does not say its name is called as its class is: `NearWeights` is "near_weights".
    modulus
        By how much Ω is strongly convex.
    differentiable
        Whether Ω has a gradient everywhere; else `gradient` is any subgradient.
    trusted
        Whether training may begin without a look at its numbers.
    separable
        Whether Ω is Σ_j (l1·|w_j| + ½·l2·w_j²) and no more, as most solvers need; only the library's own are.
    nonnegative
        No weight may be negative: Ω is infinite where one is. Intercepts may, also regularized ones. `value` and
        `gradient` know nothing of it; only a solver that keeps to it takes such an Ω.
    """

    name: ClassVar[str]
    modulus: float
    differentiable: bool = True
    trusted: ClassVar[bool] = False
    separable: ClassVar[bool] = False
    nonnegative: bool = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).strip("_").lower()

    def __repr__(self) -> str:
        said = self._settings | ({"nonnegative": True} if self.nonnegative else {})
        return f"{type(self).__name__}({', '.join(f'{name}={_short(value)}' for name, value in said.items())})"

    @property
    def _settings(self) -> dict[str, Any]:
        """What it was made with, as far as it kept that, for `repr`."""
        return {name: vars(self)[name] for name in inspect.signature(type(self)).parameters if name in vars(self)}

    @property
    def l1(self) -> float:
        """How much an absolute weight costs."""
        return 0.0

    @property
    def l2(self) -> float:
        """What multiplies the ½‖w‖² that Ω consists of, or holds at least."""
        return self.modulus

    @property
    def smooth(self) -> bool:
        """Whether Ω has a gradient everywhere, and is finite."""
        return self.differentiable and not self.nonnegative

    @abstractmethod
    def value(self, w: Floats) -> float:
        """Ω(w)."""

    @abstractmethod
    def gradient(self, w: Floats) -> Floats:
        """∂Ω(w), or a subgradient."""

    def prox(self, v: Floats, step: float) -> Floats:
        """The w at which step·Ω(w) + ½‖w − v‖² is least."""
        raise AttributeError(f"{type(self).__name__} gives no prox")

    def without_negative_weights(self) -> Self:
        """The same Ω where no weight may be negative."""
        other = copy(self)
        other.nonnegative = True
        return other


def _short(value: object) -> str:
    """A setting in a few letters, in which others would not be the same."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    mark = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:8]
    return f"<{' × '.join(map(str, value.shape))} numbers, {mark}>"
