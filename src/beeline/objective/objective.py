"""J over a data set."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from beeline._lazy import cached_property
from beeline._types import AnyArray, Floats
from beeline.data.core.dataset import Dataset
from beeline.engines import Engine, Promise, Rows, RowVector, Threads
from beeline.engines.verbs import columns, products, values
from beeline.exceptions import ParameterError
from beeline.losses import Loss, VectorLoss
from beeline.objective.null import NullModel, null_model
from beeline.objective.parameters import Intercept, Parameters
from beeline.objective.penalty import OwnOmega, Penalty
from beeline.objective.points import Point
from beeline.regularizers import Regularizer

__all__ = ["Intercept", "Objective"]


@dataclass(frozen=True, eq=False)
class Objective:
    """J(θ) over a data set.

    Parameters
    ----------
    rows
        The rows, where an engine has opened them.
    labels
        y: −1 and +1, real numbers, or class numbers 0 … K−1, as the loss wants them; a matrix of K columns for a loss
        of sets or vectors.
    costs
        c: one a row.
    loss, regularizer, strength
        l, Ω and what multiplies Ω.
    intercept
        `free`: b is not regularized; `regularized`: b counts in Ω like a weight; `none`: b = 0.
    n_outputs
        K: how many scores a row has, 1 unless the loss is one of several.

    Attributes
    ----------
    parameters
        The layout of θ, whose `has_intercept`, `size`, `n_weights`, `n_regularized` and `n_free` are here too.
    couples_rows
        Whether the loss is no sum over single rows: rows are tied by groups, or by parameters that the loss owns.
    """

    rows: Rows
    labels: RowVector
    costs: RowVector
    loss: Loss
    regularizer: Regularizer
    strength: float = 1.0
    intercept: Intercept = "free"
    n_outputs: int = 1

    parameters: Parameters = field(init=False)
    has_intercept: bool = field(init=False)
    size: int = field(init=False)
    n_weights: int = field(init=False)
    n_regularized: int = field(init=False)
    n_free: int = field(init=False)
    couples_rows: bool = field(init=False)

    @classmethod
    def of(
        cls,
        data: Dataset,
        labels: AnyArray,
        costs: AnyArray,
        *what: Any,  # noqa: ANN401
        engine: Engine | None = None,
        **more: Any,  # noqa: ANN401
    ) -> Objective:
        """J over data that the engine opens, with a label and a cost a row; the rest is as for J itself."""
        rows = (engine or Threads()).open(data)
        return cls(rows, rows.scatter(labels), rows.scatter(costs), *what, **more)

    def __post_init__(self) -> None:
        if not self.strength > 0:
            raise ParameterError(
                f"the strength of the regularizer must be positive, not {self.strength}", parameter="strength"
            )
        vector_loss = self.loss if isinstance(self.loss, VectorLoss) else None
        if self.n_outputs < (2 if vector_loss else 1) or self.loss.n_scores(self.n_outputs) != self.n_outputs:
            raise ParameterError(f"{self.loss!r} does not take {self.n_outputs} scores a row", parameter="loss")
        if vector_loss:
            vector_loss.check_outputs(self.n_outputs)
        self._lay_out()

    def _lay_out(self) -> None:
        """Find what follows from the layout of θ: it is asked for again and again."""
        loss, n_extra = self.loss, self.loss.n_extra(self.n_outputs)
        p = Parameters.of(self.rows.n_features, self.n_outputs, self.intercept, n_extra, loss.free_extra)
        vars(self).update(
            parameters=p,
            has_intercept=p.has_intercept,
            size=p.size,
            n_weights=p.n_weights,
            n_regularized=p.n_regularized,
            n_free=p.n_free,
            couples_rows=loss.scope != "row" or n_extra > 0,
        )

    @cached_property
    def has_curvature(self) -> bool:
        """Whether the loss gives curvatures row by row; those of one that couples rows would not be all of them."""
        return self.loss.has_curvature and not self.couples_rows

    @cached_property
    def has_conjugate(self) -> bool:
        """Whether the loss gives its conjugate row by row."""
        return self.loss.has_conjugate and not self.couples_rows

    def loss_at(self, theta: Floats) -> Loss:
        """The loss, with the parameters that it owns where it has any."""
        p = self.parameters
        return self.loss.with_extra(p.extra(theta)) if p.n_extra else self.loss

    def loss_along(self, theta: Floats, direction: Floats) -> Loss:
        """The loss along a line of θ."""
        p = self.parameters
        return self.loss.with_extra(p.extra(theta), p.extra(direction)) if p.n_extra else self.loss

    @cached_property
    def total_cost(self) -> float:
        """Σ c_i."""
        return float(self.rows.sum(columns.size, self.costs).value[0])  # none is negative

    @cached_property
    def loss_cost(self) -> float:
        """What all losses are multiplied by, together: Σ c_i, or the mean costs of the groups that have rows."""
        if self.loss.scope == "row":
            return self.total_cost
        return float(self.rows.sum(values.total_cost, self.costs, loss=self.loss).value[0])

    @property
    def n_classes(self) -> int:
        """How many classes, or levels, the scores of a row are for; 1 where there is one score otherwise."""
        return self.loss.n_classes(self.n_outputs)

    @cached_property
    def label_totals(self) -> Floats:
        """What the rows of each class cost together; of two classes −1 and +1 in this order."""
        totals: Floats = self.rows.sum(columns.label_totals, self.labels, self.costs, n_classes=self.n_classes).value[0]
        return totals

    @cached_property
    def natural_width(self) -> float:
        """The scale on which scores differ, over which kinks are rounded at first."""
        return self.loss.natural_width(self._label_spread() if self.loss.scales_with_labels else 1.0)

    def _label_spread(self) -> float:
        """The standard deviation of the labels, over all columns."""
        _, _, totals, n = self.rows.sum(columns.weighted_mean, self.labels, self.costs).value
        count = n * np.size(totals)
        if not count:
            return 0.0
        mean = float(np.sum(totals)) / count
        return math.sqrt(self.rows.sum(columns.spread_about, self.labels, mean=mean).value[0] / count)

    @property
    def longest_row(self) -> float:
        """max ‖x_i‖, with the 1 of a regularized intercept; one pass, shared by all objectives over the rows."""
        longest = self.rows.longest_row
        return math.hypot(longest, 1.0) if self.intercept == "regularized" else longest

    @cached_property
    def penalty(self) -> Penalty:
        """h = strength·Ω over the regularized coordinates; no intercept has a bound."""
        omega, n = self.regularizer, self.n_weights
        if not omega.nonnegative:
            return Penalty(self.strength * omega.l1, self.strength * omega.l2)
        lower = np.append(np.zeros(n), np.full(self.n_regularized - n, -np.inf))
        return Penalty(self.strength * omega.l1, self.strength * omega.l2, lower, np.full(len(lower), np.inf))

    @cached_property
    def omega(self) -> Regularizer | OwnOmega:
        """Ω of the regularized coordinates."""
        if self.regularizer.separable:
            return self.regularizer
        return OwnOmega(self.regularizer, self.rows.n_features, self.n_outputs)

    @cached_property
    def null(self) -> NullModel:
        """The best intercepts alone."""
        return null_model(self)

    @cached_property
    def compact_costs(self) -> RowVector:
        """The costs; for a shard a single number where they are all the same."""
        return self.rows.map(columns.constant_or_all, self.costs)

    def split(self, theta: Floats) -> tuple[Floats, Floats]:
        """(w, b) as views, as in `Parameters`."""
        return self.parameters.split(theta)

    def scores(self, theta: Floats) -> RowVector:
        """z = Xw + b; one pass."""
        w, b = self.split(theta)
        return self.rows.map(products.scores, w=w, b=b if self.has_intercept else None)

    def with_labels(self, labels: RowVector) -> Objective:
        """The same objective for other labels; the rows and their costs are shared."""
        return self._sharing(replace(self, labels=labels), "total_cost", "compact_costs")

    def with_costs(self, costs: RowVector) -> Objective:
        """The same objective for other costs; the rows and their labels are shared."""
        return self._sharing(replace(self, costs=costs), "natural_width")

    def with_strength(self, strength: float) -> Objective:
        """The same objective with another strength of Ω; all else is shared."""
        shared = "total_cost", "label_totals", "natural_width", "compact_costs"
        return self._sharing(replace(self, strength=strength), *shared, always=("null",))

    def with_loss(self, loss: Loss) -> Objective:
        """The same objective with another loss; the rows, labels and costs are shared."""
        return self._sharing(replace(self, loss=loss), "total_cost", "label_totals", "compact_costs")

    def _sharing(self, other: Objective, *names: str, always: tuple[str, ...] = ()) -> Objective:
        """The other objective, with what is known here; some things are found out now, for both."""
        for name in always:
            getattr(self, name)
        for name in (*names, *always):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    def weighted(self, slopes: RowVector) -> Floats:
        """Σ u_i x_i, with Σ u_i for an intercept; one pass."""
        return self.from_sums(self.weighted_sums(slopes))

    def weighted_sums(self, slopes: RowVector) -> Promise:
        """What `weighted` is made of."""
        return self.rows.sum(products.gradient, slopes, intercept=self.has_intercept)

    def from_sums(self, sums: Promise, by_extra: Floats | None = None) -> Floats:
        """A vector like θ from sums by feature, by intercept behind or below them, and by what the loss owns."""
        if self.n_outputs == 1:
            w, *b = sums.value
            return self.join(w, b[0] if b else 0.0, by_extra)
        (matrix,) = sums.value
        return self.flat(matrix) if by_extra is None else self.join(matrix[:-1], matrix[-1], by_extra)

    def join(self, w: Floats, b: Floats | float = 0.0, extra: Floats | None = None) -> Floats:
        """θ from its parts."""
        return self.parameters.join(w, b, extra)

    def flat(self, matrix: Floats) -> Floats:
        """θ as a view of a matrix of K columns with the intercepts in the last row."""
        return (matrix if self.has_intercept else matrix[:-1]).ravel()

    def hessian_block(self, curvatures: RowVector, limit: float = 0.0, output: int | None = None) -> Floats:
        """The Hessian of one output whose scores have these curvatures, the lower triangle.

        Rows whose curvature is below the limit are left out; `output` picks a column of the curvatures.
        """
        d, m = self.rows.n_features, self.rows.n_features + self.has_intercept
        hessian = np.zeros((m, m))
        parts = self.rows.sum(
            products.hessian, curvatures, intercept=self.has_intercept, limit=limit, output=output
        ).value
        hessian[:d, :d] = parts[0]
        if self.has_intercept:
            hessian[d, :d], hessian[d, d] = parts[1:]
        hessian[np.diag_indices(m - (self.intercept == "free"))] += self.strength * self.regularizer.l2
        return hessian

    def joint_hessian(self, curvatures: RowVector) -> Floats:
        """∂²J, Σ c_i x_i x_iᵀ ⊗ PᵀH_iP and the strength of Ω, of all outputs together.

        H_i is the Hessian of row i by the scores of K classes, P what makes these of the scores of outputs, as nodes of
        a tree have it. One pass of nnz·(nonzeros a row)·K²/4 steps.
        """
        loss, k = self.loss, self.n_classes
        assert isinstance(loss, VectorLoss)
        small = {"n_classes": k, "intercept": self.has_intercept, "loss": loss.class_loss}
        pairs = self.rows.sum(products.joint_hessian, curvatures, **small).value[0]
        m = pairs.shape[1]
        pairs = pairs + np.tril(pairs, -1).transpose(0, 2, 1)
        one, other = np.tril_indices(k)
        between = np.empty((m, m, k, k))
        between[:, :, one, other] = between[:, :, other, one] = pairs.transpose(1, 2, 0)
        for _ in range(2):
            slopes = loss.slopes_from_classes(np.ascontiguousarray(between.reshape(-1, k)))
            between = slopes.reshape(m, m, -1, slopes.shape[1]).transpose(0, 1, 3, 2)
        hessian = np.ascontiguousarray(between.transpose(0, 2, 1, 3)).reshape(self.size, self.size)
        regularized = np.arange(self.n_regularized)
        hessian[regularized, regularized] += self.strength * self.regularizer.l2
        return hessian

    def at_null(self) -> Point:
        """The point of the best intercepts alone; no pass."""
        return self._at_constant(self.null.theta.copy())

    def at(self, theta: Floats | None = None) -> Point:
        """The point θ (None: zero, which costs no pass)."""
        if theta is None:
            return self._at_constant(np.zeros(self.size))
        theta = np.array(theta, dtype=np.float64)
        if theta.shape != (self.size,):
            raise ParameterError(
                f"a start must have {self.size} coordinates, not shape {theta.shape}", parameter="start"
            )
        return Point(self, theta, self.scores(theta), is_exact=True)

    def at_with_product(self, theta: Floats, slopes: RowVector) -> tuple[Point, Floats]:
        """(the point θ, `weighted` of some slopes), of one score a row; one pass for both."""
        theta = np.array(theta, dtype=np.float64)  # which the caller may go on with
        w, b = self.split(theta)
        small = {"w": w, "b": b if self.has_intercept else None, "intercept": self.has_intercept}
        (z,), sums = self.rows.call(products.scores_and_gradient, (slopes,), small, outputs=1, reduce="sum")
        return Point(self, theta, z, is_exact=True), self.from_sums(sums)

    def _at_constant(self, theta: Floats) -> Point:
        """The point of a θ without weights."""
        _, b = self.split(theta)
        value = b if self.n_outputs > 1 else float(b)
        return Point(self, theta, self.rows.map(columns.constant, value=value))
