"""What a loss is: numbers from scores and labels. A loss never sees the data.

Conventions
-----------
- A scalar loss l(z, y) takes one score and one label a row; both are float64 vectors of the same length.
- A vector loss takes K scores and one label a row: a float64 matrix of shape (n, K), rows contiguous. Whatever is said
  of dl/dz then holds row by row for a gradient of K numbers.
- `value_and_grad` returns l and dl/dz row by row. That is all a loss must have.
- A loss with a `compiled` name has the same formula among the kernels, for speed; a contract test holds the two
  together. Sums over rows take costs c and always mean Σ c_i l(z_i, y_i); they are taken in a fixed order, which
  NumPy's `@` does not promise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np

from beeline._types import Floats
from beeline.kernels import conjugate_sum, loss_along, loss_sum

__all__ = ["Loss", "RowLoss", "ScalarLoss", "VectorLoss"]

Labels = Literal["binary", "real", "classes"]


class Loss(ABC):
    """Base of every loss.

    Attributes
    ----------
    name
        The loss's name in the registry.
    labels
        What the labels must be: `binary` −1 and +1, `real` any number, `classes` 0 … K−1.
    smooth
        Whether the gradient is continuous.
    piecewise_linear
        Whether the loss consists of flat pieces. A scalar one then says by `kinks` where they meet.
    """

    name: ClassVar[str]
    labels: ClassVar[Labels]
    smooth: ClassVar[bool] = True
    piecewise_linear: ClassVar[bool] = False

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"{type(self).__name__}({settings})"


class RowLoss(Loss):
    """A loss that is a sum over rows, each of them by itself.

    A loss of one's own needs `value_and_grad`, and `curvature` for the solvers to take it.
    """

    compiled: ClassVar[str | None] = None
    parameters: tuple[float, float] = (0.0, 0.0)

    @abstractmethod
    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """l(z_i, y_i) and dl/dz for every row."""

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """What d²l/dz² is made of for every row (where it jumps: one of the two sides)."""
        raise AttributeError(f"{type(self).__name__} gives no curvature")

    @property
    def has_curvature(self) -> bool:
        """Whether the loss is smooth and gives a curvature, as Newton's method needs."""
        return self.smooth and type(self).curvature is not RowLoss.curvature

    def sum(self, z: Floats, y: Floats, c: Floats) -> float:
        """Σ c_i l(z_i, y_i)."""
        if self.compiled:
            return loss_sum(self.compiled, self.parameters, z, y, c, None, None)
        return float(np.sum(c * self.value_and_grad(z, y)[0]))

    def slopes(self, z: Floats, y: Floats, c: Floats) -> Floats:
        """c_i · dl/dz for every row."""
        if self.compiled:
            slopes = np.empty_like(z)
            loss_sum(self.compiled, self.parameters, z, y, c, slopes, None)
            return slopes
        return _times(c, self.value_and_grad(z, y)[1])

    def curvatures(self, z: Floats, y: Floats, c: Floats) -> Floats:
        """c_i · `curvature` for every row."""
        if self.compiled:
            curvatures = np.empty_like(z)
            loss_sum(self.compiled, self.parameters, z, y, c, None, curvatures)
            return curvatures
        return _times(c, self.curvature(z, y))

    def derivatives(self, z: Floats, y: Floats, c: Floats) -> tuple[float, Floats, Floats]:
        """`sum`, `slopes` and `curvatures` in one go; they share their exponentials."""
        if self.compiled:
            slopes, curvatures = np.empty_like(z), np.empty_like(z)
            return loss_sum(self.compiled, self.parameters, z, y, c, slopes, curvatures), slopes, curvatures
        values, slopes = self.value_and_grad(z, y)
        return float(np.sum(c * values)), _times(c, slopes), _times(c, self.curvature(z, y))

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """Σ ψ_i(a_i), ψ_i(a) = max_z −a·z − c_i·l(z, y_i): what dual variables cost; ∞ where a is not feasible."""
        raise AttributeError(f"{type(self).__name__} gives no conjugate")

    def dual_cost(self, a: Floats, y: Floats, c: Floats, scale: float = 1.0) -> float:
        """`conjugate_sum` of scale · a, compiled where it can be."""
        if self.compiled:
            return conjugate_sum(self.compiled, self.parameters, a, scale, y, c)
        return self.conjugate_sum(scale * a, y, c)

    @property
    def has_conjugate(self) -> bool:
        """Whether the loss gives its conjugate, as a certified duality gap needs."""
        return type(self).conjugate_sum is not RowLoss.conjugate_sum

    def rounded(self, width: float) -> RowLoss:
        """The loss with its kinks rounded off.

        It lies at most width/2 from the loss, and its slopes are feasible for the dual of the loss itself.
        """
        raise AttributeError(f"{type(self).__name__} has no rounded form")

    @property
    def has_rounded(self) -> bool:
        """Whether the loss has a rounded form."""
        return type(self).rounded is not RowLoss.rounded

    def natural_width(self, y: Floats) -> float:
        """A width over which to round kinks at first: the scale on which scores differ."""
        return 1.0 if self.labels != "real" or not len(y) else float(np.std(y)) or 1.0

    def along(self, z: Floats, dz: Floats, t: float, y: Floats, c: Floats) -> tuple[float, float]:
        """Σ c_i l(z_i + t·dz_i, y_i) and its derivative by t."""
        if self.compiled:
            return loss_along(self.compiled, self.parameters, z, dz, t, y, c)
        values, slopes = self.value_and_grad(z + t * dz, y)
        return float(np.sum(c * values)), float(np.sum(_times(c, slopes) * dz))


class ScalarLoss(RowLoss):
    """A loss of one score and one label a row; its `curvature` is d²l/dz²."""

    def kinks(self, y: Floats) -> list[tuple[Floats, float]]:
        """Where the slope of a piecewise linear loss jumps, and by how much.

        Pairs of (the scores, one a row, at which it does; the jump), from small scores to large ones. Along z + t·dz
        the kink of row i is passed at t = (scores_i − z_i)/dz_i, where the sum's derivative by t grows by
        c_i·jump·|dz_i|.
        """
        raise AttributeError(f"{type(self).__name__} is not said to be piecewise linear")


class VectorLoss(RowLoss):
    """A loss of K scores and one label a row.

    Its `curvature` is a matrix h of shape (n, K) that stands for d²l/dz² = diag(h_i) − h_i h_iᵀ/Σ_k h_ik: the Hessian
    of a softmax with probabilities h. What a loss of one's own makes of its labels is its own business; it only sees
    them beside the scores.
    """


def _times(c: Floats, rows: Floats) -> Floats:
    """c_i times row i of a vector or a matrix."""
    return c * rows if rows.ndim == 1 else c[:, None] * rows
