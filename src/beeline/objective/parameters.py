"""θ: which of its coordinates are what."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np

from beeline._numbers import as_choice
from beeline._types import Floats
from beeline.exceptions import ParameterError

__all__ = ["Intercept", "Parameters"]

Intercept = Literal["free", "regularized", "none"]
_INTERCEPTS = get_args(Intercept)


@dataclass(frozen=True)
class Parameters:
    """The layout of θ: weights, then what the loss owns, then intercepts.

    Those that count in Ω come first: the weights always do, what the loss owns and the intercepts as they say. The
    weights of a feature lie together, one an output.

    Attributes
    ----------
    n_features, n_outputs
        How many weights there are.
    intercept
        `free`: intercepts do not count in Ω; `regularized`: they do; `none`: there are none.
    n_extra, free_extra
        How many numbers the loss owns, and whether they do not count in Ω.
    has_intercept
        Whether θ ends with intercepts.
    n_weights, size
        How many weights there are, and how many coordinates.
    n_regularized, n_free
        How many coordinates, from the first on, count in Ω, and how many do not.
    """

    n_features: int
    n_outputs: int = 1
    intercept: Intercept = "free"
    n_extra: int = 0
    free_extra: bool = False

    has_intercept: bool = field(init=False)
    n_weights: int = field(init=False)
    size: int = field(init=False)
    n_regularized: int = field(init=False)
    n_free: int = field(init=False)

    def __post_init__(self) -> None:
        as_choice("intercept", self.intercept, _INTERCEPTS)
        if self.n_extra and self.free_extra and self.intercept == "regularized":
            raise ParameterError(
                "a regularized intercept does not go with a loss whose own parameters are free; take a free one or "
                "none",
                parameter="intercept",
            )
        has_intercept, n_weights = self.intercept != "none", self.n_features * self.n_outputs
        free = (self.n_extra if self.free_extra else 0) + (self.n_outputs if self.intercept == "free" else 0)
        size = n_weights + self.n_extra + (self.n_outputs if has_intercept else 0)
        found = {"has_intercept": has_intercept, "n_weights": n_weights, "size": size, "n_free": free}
        vars(self).update(found, n_regularized=size - free)  # all are asked for again and again

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, *what: Any) -> Parameters:  # noqa: ANN401
        """The layout of so many features and so on; a hundred objectives over the same rows share one."""
        return cls(*what)

    def split(self, theta: Floats) -> tuple[Floats, Floats]:
        """(w, b) as views: of shapes (d, K) and (K,), or (d,) and () for one output; zeros where there is no b."""
        one_or_all = (self.n_outputs,) if self.n_outputs > 1 else ()
        b = theta[self.n_weights + self.n_extra :] if self.has_intercept else np.zeros(self.n_outputs)
        return theta[: self.n_weights].reshape(self.n_features, *one_or_all), b.reshape(one_or_all)

    def extra(self, theta: Floats) -> Floats:
        """What the loss owns, as a view."""
        return theta[self.n_weights : self.n_weights + self.n_extra]

    def join(self, w: Floats, b: Floats | float = 0.0, extra: Floats | None = None) -> Floats:
        """θ from its parts; what the loss owns is zero where it is not given."""
        if not self.has_intercept and not self.n_extra:
            return w.ravel()
        theta = np.empty(self.size)
        theta[: self.n_weights] = w.ravel()
        if self.n_extra:
            self.extra(theta)[:] = 0.0 if extra is None else extra
        if self.has_intercept:
            theta[self.n_weights + self.n_extra :] = b
        return theta
