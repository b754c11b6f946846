"""Products with the data for many problems over the same rows: one pass over the data serves all that need it.

The problems differ in their costs and labels (the folds of a cross-validation, and classes against the rest) and share
the data, the loss, the regularizer and its strength.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from beeline._types import Floats
from beeline.engines import RowVector
from beeline.engines.verbs import products
from beeline.exceptions import ParameterError
from beeline.kernels import split_columns
from beeline.objective import Objective, Point

__all__ = ["Affine", "Curvature", "Lockstep", "columns_of"]


@dataclass(frozen=True, eq=False)
class Affine:
    """How each problem sees the features: x_j · factor_jk + shift_jk in problem k; both of shape (features, problems).

    Scaling that is learned from each problem's own rows comes to this.
    """

    factor: Floats
    shift: Floats


class Lockstep:
    """Products with the data for many problems at once.

    θ of problem k is column k of a matrix. Problems of K scores a row have K columns each where they meet the data.

    Parameters
    ----------
    objectives
        The problems.
    affine
        How each sees the features; None: as they are.

    Attributes
    ----------
    passes
        Passes over the data so far, for all problems.
    """

    def __init__(self, objectives: Sequence[Objective], affine: Affine | None = None) -> None:
        first = objectives[0]
        if any(o.rows is not first.rows or o.n_outputs != first.n_outputs for o in objectives):
            raise ParameterError(
                "problems in lockstep share their rows and have as many scores a row", parameter="objectives"
            )
        self.first, self.affine, self.n_problems, self.passes = first, affine, len(objectives), 0.0
        self.outputs = first.n_outputs

    def count(self, which: list[int]) -> None:
        """Note a pass over the data; one for a part of the problems counts as that part."""
        self.passes += len(which) / self.n_problems

    def scores(self, thetas: Floats, which: list[int]) -> Sequence[RowVector]:
        """The scores of θ_k for each k in `which`; one pass."""
        w, b = self.data_weights(thetas, which)
        self.count(which)
        small = {"w": w, "b": b, "outputs": self.outputs}
        rows = self.first.rows
        if len(which) == 1:
            return [rows.map(products.single_scores, **small)]
        return rows.call(products.batched_scores, (), small, len(which), None)[0]

    def fill_gradients(self, points: list[Point], which: list[int]) -> None:
        """Let each point know the gradient of its loss; one pass."""
        o = self.first
        (out,) = o.rows.sum(products.batched_gradients, *(point.slopes for point in points)).value
        self.count(which)
        for point, gradient in zip(points, columns_of(self.coordinate_products(out, which)), strict=True):
            point.loss_gradient = gradient

    def curvature(self, points: list[Point], which: list[int], *, often: bool) -> Curvature:
        """The Hessians of the losses at the points; `often`: for so many products that copies of rows may pay."""
        return Curvature(self, points, which, often)

    def data_weights(self, thetas: Floats, which: list[int]) -> tuple[Floats, Floats]:
        """(weights of the features as they lie in memory, intercepts): a column for each score of each problem."""
        d, m, k = self.first.rows.n_features, len(which), self.outputs
        w, b = thetas[: d * k], thetas[d * k :] if self.first.has_intercept else np.zeros((k, m))
        if k > 1:
            w, b = (
                np.ascontiguousarray(part.reshape(-1, k, m).transpose(0, 2, 1)).reshape(-1, m * k) for part in (w, b)
            )
        w, b = w.reshape(d, m * k), b.reshape(m * k)
        if self.affine is None:
            return w, b
        factor, shift = (np.repeat(part[:, which], k, axis=1) for part in (self.affine.factor, self.affine.shift))
        return w * factor, b + np.einsum("jk,jk->k", w, shift)

    def coordinate_products(self, products: Floats, which: list[int]) -> Floats:
        """The transpose of `data_weights`: products by feature and for the constant become those by coordinate of θ."""
        m, k = len(which), self.outputs
        if self.affine is not None:
            factor, shift = (np.repeat(part[:, which], k, axis=1) for part in (self.affine.factor, self.affine.shift))
            products[:-1] *= factor
            products[:-1] += shift * products[-1]
        products = products if self.first.has_intercept else products[:-1]
        if k == 1:
            return products
        return np.ascontiguousarray(products.reshape(-1, m, k).transpose(0, 2, 1)).reshape(-1, m)


class Curvature:
    """The Hessians of the losses at a point of each problem, one after the other, for products with vectors.

    Rows without a curvature, of which a squared hinge has many, cost nothing.
    """

    def __init__(self, lockstep: Lockstep, points: list[Point], which: list[int], often: bool) -> None:
        self.lockstep, self.which = lockstep, which
        curvatures = [point.curvatures for point in points]
        self.some = often and lockstep.outputs == 1
        if self.some:
            curvatures = [lockstep.first.rows.map(products.curved_rows, *curvatures)]
        self.curvatures = curvatures

    def times(self, vectors: Floats) -> Floats:
        """The products with a vector each; one pass."""
        w, b = self.lockstep.data_weights(vectors, self.which)
        first = self.lockstep.first
        verb = products.curved_rows_products if self.some else products.batched_hessian_products
        (out,) = first.rows.sum(verb, *self.curvatures, w=w, b=b, loss=first.loss).value
        self.lockstep.count(self.which)
        return self.lockstep.coordinate_products(out, self.which)


def columns_of(matrix: Floats) -> Floats:
    """The columns of a matrix, as the rows of another; a view where there is one column."""
    if matrix.shape[1] == 1:
        return matrix.reshape(1, -1)
    out = np.empty(matrix.shape[::-1])
    split_columns(np.ascontiguousarray(matrix), out)
    return out
