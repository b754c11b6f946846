"""Losses of several outputs that are no classes: sets of labels, and vectors of numbers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from beeline._types import Floats
from beeline.exceptions import ParameterError
from beeline.losses.base import ScalarLoss, VectorLoss
from beeline.losses.margin import Hinge, Logistic, SquaredHinge
from beeline.losses.regression import LeastSquares

__all__ = ["MultilabelHinge", "MultilabelLogistic", "MultilabelSquaredHinge", "MultivariateSquared"]


class _BinaryRelevance(VectorLoss):
    """Σ_k l(z_k, y_k): a binary loss for every label, which a row has (y_k = +1) or not (−1).

    Outputs have nothing to do with each other: training solves a problem of one score for each. Here they are together,
    as an objective of all of them has it.
    """

    labels = "sets"
    _loss: ClassVar[ScalarLoss]

    @property
    def output_loss(self) -> ScalarLoss:
        """The binary loss."""
        return self._loss

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """The sum of the values, and the slopes of all outputs."""
        values, slopes = self._loss.value_and_grad(z.ravel(), y.ravel())
        return values.reshape(z.shape).sum(axis=1), slopes.reshape(z.shape)

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """The sum over the outputs."""
        return self._loss.conjugate_sum(a.ravel(), y.ravel(), np.repeat(c, a.shape[1]))


class _SmoothBinaryRelevance(_BinaryRelevance):
    """The same for a binary loss with a curvature: the Hessian of a row is diagonal, and h is its diagonal."""

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """Those of all outputs."""
        return self._loss.curvature(z.ravel(), y.ravel()).reshape(z.shape)

    def hessian_products(self, h: Floats, u: Floats) -> Floats:
        """The products h u."""
        return h * u

    def curvature_diagonals(self, h: Floats) -> Floats:
        """The diagonals h."""
        return h

    def curvature_total(self, h: Floats) -> Floats:
        """The diagonal matrix of Σ_i h_i."""
        return np.diag(h.sum(axis=0))


class MultilabelHinge(_BinaryRelevance):
    """Σ_k max(0, 1 − y_k z_k): support vector machines for sets of labels."""

    name = "multilabel_hinge"
    formula = "Σ_k max(0, 1 − y_k z_k)"
    summary = "sets of labels: a support vector machine for each"
    smooth = False
    piecewise_linear = True
    _loss = Hinge()


class MultilabelSquaredHinge(_SmoothBinaryRelevance):
    """Σ_k max(0, 1 − y_k z_k)²."""

    name = "multilabel_squared_hinge"
    formula = "Σ_k max(0, 1 − y_k z_k)²"
    summary = "sets of labels: a support vector machine with squared slacks for each"
    _loss = SquaredHinge()


class MultilabelLogistic(_SmoothBinaryRelevance):
    """Σ_k log(1 + exp(−y_k z_k)): logistic regression for sets of labels."""

    name = "multilabel_logistic"
    formula = "Σ_k log(1 + exp(−y_k z_k))"
    summary = "sets of labels: a logistic regression for each"
    link = "logistic"
    _loss = Logistic()


class MultivariateSquared(VectorLoss):
    """½(z − y)ᵀM(z − y): regression of vectors (row 17 of B's table). The Hessian of every row is M.

    Parameters
    ----------
    metric
        M: symmetric, with no negative eigenvalue; such as the inverse covariance of the residuals. None: the identity.
    """

    name = "multivariate_squared"
    formula = "½(z − y)ᵀM(z − y)"
    summary = "least squares of vectors, whose errors M weighs together"
    labels = "vectors"

    def __init__(self, metric: Any = None) -> None:  # noqa: ANN401
        self.metric = None if metric is None else _positive(metric)

    @property
    def output_loss(self) -> ScalarLoss | None:
        """Least squares, without a metric."""
        return LeastSquares() if self.metric is None else None

    def check_outputs(self, n_outputs: int) -> None:
        """The metric must have a row and a column for every output."""
        if self.metric is not None and len(self.metric) != n_outputs:
            k = len(self.metric)
            raise ParameterError(
                f"the metric is a matrix of {k} × {k} numbers, but the labels have {n_outputs}", parameter="metric"
            )

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and gradient M(z − y)."""
        r = z - y
        slopes = self._times(r)
        return 0.5 * np.maximum((r * slopes).sum(axis=1), 0), slopes

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """1 everywhere: how often M counts in every row."""
        return np.ones_like(z)

    def hessian_products(self, h: Floats, u: Floats) -> Floats:
        """The products h M u."""
        return h * self._times(u)

    def curvature_diagonals(self, h: Floats) -> Floats:
        """The diagonals h·diag(M)."""
        return h if self.metric is None else h * np.diag(self.metric)

    def curvature_total(self, h: Floats) -> Floats:
        """The matrix Σ_i h_i M."""
        return np.diag(h.sum(axis=0)) if self.metric is None else h.sum(axis=0) * self.metric

    def _times(self, rows: Floats) -> Floats:
        # No matrix product of a library, whose sums depend on its threads.
        return rows if self.metric is None else np.einsum("ij,jk->ik", rows, self.metric)


def _positive(metric: Any) -> Floats:  # noqa: ANN401
    """M as a matrix."""
    try:
        matrix = np.array(metric, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError("the metric must be a matrix of numbers", parameter="metric") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ParameterError(
            f"the metric must be a square matrix of finite numbers, not of shape {matrix.shape}", parameter="metric"
        )
    if np.abs(matrix - matrix.T).max() > 1e-12 * np.abs(matrix).max():
        raise ParameterError("the metric must be symmetric", parameter="metric")
    if np.linalg.eigvalsh(matrix).min() < -1e-12 * np.abs(matrix).max():
        raise ParameterError(
            "the metric must not have a negative eigenvalue, or the loss would not be convex", parameter="metric"
        )
    return 0.5 * (matrix + matrix.T)
