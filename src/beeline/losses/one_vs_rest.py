"""Each class against the rest, as one loss of K scores."""

from __future__ import annotations

import numpy as np

from beeline._types import Floats
from beeline.exceptions import ParameterError
from beeline.losses.base import ScalarLoss, VectorLoss

__all__ = ["OneVsRest"]


class OneVsRest(VectorLoss):
    """Σ_k l(z_k, y_k), y_k = +1 for the right class and −1 for the others.

    The classes have nothing to do with each other, and other solvers are given a problem for each. One that visits rows
    one after the other learns all of them on one walk.

    Parameters
    ----------
    loss
        The loss of two classes.
    """

    formula = "Σ_k l(z_k, y_k)"
    summary = "each class against the rest"

    def __init__(self, loss: ScalarLoss) -> None:
        if not isinstance(loss, ScalarLoss) or loss.labels != "binary" or not loss.convex:
            raise ParameterError(
                f"each class against the rest takes a loss of two classes, not {loss!r}", parameter="loss"
            )
        self.loss = loss
        vars(self).update(name=f"one_vs_rest_{loss.name}", smooth=loss.smooth, piecewise_linear=loss.piecewise_linear)
        vars(self).update(zero_is_optimal=loss.zero_is_optimal)

    def __repr__(self) -> str:
        return f"OneVsRest({self.loss!r})"

    @property
    def parameters(self) -> tuple[float, float]:
        """Those of the loss of two classes."""
        return self.loss.parameters

    @property
    def has_curvature(self) -> bool:
        """As the loss of two classes has."""
        return self.loss.has_curvature

    @property
    def has_smoothed(self) -> bool:
        """As the loss of two classes has."""
        return self.loss.has_smoothed

    def smoothed(self, width: float) -> OneVsRest:
        """Each with its kinks rounded off."""
        rounded = self.loss.smoothed(width)
        assert isinstance(rounded, ScalarLoss)
        return OneVsRest(rounded)

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """The sum of the values, and the slopes of all classes."""
        values, slopes = self.loss.value_and_grad(z.ravel(), self._signs(z, y))
        return values.reshape(z.shape).sum(axis=1), slopes.reshape(z.shape)

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """Those of all classes: the diagonal of a row's Hessian."""
        return self.loss.curvature(z.ravel(), self._signs(z, y)).reshape(z.shape)

    def hessian_products(self, h: Floats, u: Floats) -> Floats:
        """The products h u."""
        return h * u

    def curvature_diagonals(self, h: Floats) -> Floats:
        """The diagonals h."""
        return h

    def curvature_total(self, h: Floats) -> Floats:
        """The diagonal matrix of Σ_i h_i."""
        return np.diag(h.sum(axis=0))

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """The sum over the classes."""
        return self.loss.conjugate_sum(a.ravel(), self._signs(a, y), np.repeat(c, a.shape[1]))

    @staticmethod
    def _signs(z: Floats, y: Floats) -> Floats:
        """A label ±1 for every score."""
        signs = np.full(z.shape, -1.0)
        signs[np.arange(len(z)), y.astype(np.int64)] = 1.0
        return signs.ravel()
