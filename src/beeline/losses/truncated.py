"""Losses that are cut off, so that a hopeless row does not pull at the weights (I1, I4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.exceptions import ParameterError
from beeline.losses.base import ScalarLoss, far_out
from beeline.losses.margin import Hinge, SquaredHinge
from beeline.losses.quantile import Expectile
from beeline.losses.regression import LeastSquares, SquaredEpsilonInsensitive
from beeline.losses.settings import at_least_zero

__all__ = ["Ramp", "Truncated", "TruncatedSquaredHinge"]


class Truncated(ScalarLoss):
    """min(l(z, y), 1 + s): no row costs more than 1 + s (eq. 1 of the paper, where a trailing L is a misprint).

    A row whose loss l lies above 1 + s is OUT, and has a slope of zero; the others are IN. The sum over rows is not
    convex, and has local optima.

    Parameters
    ----------
    loss
        A convex loss of one score a row.
    s
        How far above 1 it may rise. The hinge is cut off at a margin of −s, the squared hinge at 1 − √(1 + s).

    Examples
    --------
    >>> import numpy as np
    >>> from beeline.losses import Huber
    >>> Truncated(Huber(), 2.0).value_and_grad(np.array([0.5, 9.0]), np.zeros(2))[0]
    array([0.125, 3.   ])
    """

    name = "truncated"
    formula = "min(l(z, y), 1 + s)"
    summary = "any loss of one score, cut off: outliers do not pull"
    convex = False
    smooth = False

    def __init__(self, loss: ScalarLoss, s: float = 1.0) -> None:
        if not isinstance(loss, ScalarLoss) or not loss.convex or loss.n_extra(1):
            raise ParameterError(
                f"only a convex loss of one score a row, without parameters of its own, can be cut off, not {loss!r}",
                parameter="loss",
            )
        self.loss, self.s = loss, at_least_zero("s", s)
        link = loss.link if loss.link == "exp" else "none"  # what is left of a logistic loss gives no probabilities
        vars(self).update(labels=loss.labels, domain=loss.domain, link=link)
        if type(self) is Truncated:
            vars(self)["name"] = f"truncated_{loss.name}"

    def __repr__(self) -> str:
        return f"Truncated({self.loss!r}, s={self.s!r})" if type(self) is Truncated else super().__repr__()

    @property
    def settings(self) -> dict[str, Any]:
        """s, and what the loss itself was made with."""
        return {**self.loss.settings, "s": self.s}

    @property
    def cap(self) -> float:
        """1 + s: what a row costs at most."""
        return 1.0 + self.s

    def allows(self, y: Floats) -> AnyArray:
        """The labels that the loss itself can take."""
        return self.loss.allows(y)

    def outside(self, z: Floats, y: Floats) -> AnyArray:
        """Whether each row is OUT: l(z_i, y_i) > 1 + s."""
        with far_out():
            outside: AnyArray = self.loss.value_and_grad(z, y)[0] > self.cap
        return outside

    def lets_go(self, z: Floats, y: Floats) -> AnyArray | None:
        """Whether each row is OUT, or where the loss itself is robust; None for one that is so everywhere."""
        within = self.loss.lets_go(z, y)
        if within is None and not isinstance(self.loss, LeastSquares | SquaredEpsilonInsensitive | Expectile):
            return None
        outside: AnyArray = self.outside(z, y) | (False if within is None else within)
        return outside

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and slope; that is zero where the loss is cut off."""
        values, slopes = self.loss.value_and_grad(z, y)
        return np.minimum(values, self.cap), np.where(values > self.cap, 0.0, slopes)

    def with_cap(self, cap: float) -> Truncated:
        """The same loss, cut off elsewhere."""
        return Truncated(self.loss, cap - 1.0)


class Ramp(Truncated):
    """min(max(0, 1 − yz), 1 + s): the hinge, cut off at a margin of −s: a robust support vector machine (I1)."""

    name = "ramp"
    formula = "min(max(0, 1 − yz), 1 + s)"
    summary = "the hinge, cut off: a support vector machine that outliers do not pull"
    labels = "binary"

    def __init__(self, s: float = 1.0) -> None:
        super().__init__(Hinge(), s)


class TruncatedSquaredHinge(Truncated):
    """min(max(0, 1 − yz)², 1 + s): the squared hinge, cut off at a margin of 1 − √(1 + s) (I1)."""

    name = "truncated_squared_hinge"
    formula = "min(max(0, 1 − yz)², 1 + s)"
    summary = "the squared hinge, cut off"
    labels = "binary"

    def __init__(self, s: float = 1.0) -> None:
        super().__init__(SquaredHinge(), s)
