"""J over a data set."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from beeline._lazy import cached_property
from beeline._types import Floats
from beeline.data.core.dataset import Dataset
from beeline.engines import Engine, Shard, Threads
from beeline.exceptions import ParameterError
from beeline.kernels import absolute_sum
from beeline.losses import RowLoss, VectorLoss
from beeline.objective.null import NullModel, null_model
from beeline.objective.penalty import Penalty
from beeline.objective.points import Point
from beeline.regularizers import Regularizer

__all__ = ["Intercept", "Objective"]

Intercept = Literal["free", "regularized", "none"]
_INTERCEPTS = get_args(Intercept)


@dataclass(frozen=True, eq=False)
class Objective:
    """J(θ) over a data set.

    Parameters
    ----------
    data
        The rows.
    labels
        y: −1 and +1, real numbers, or class numbers 0 … K−1, as the loss wants them; a matrix of K columns for a loss
        of sets or vectors.
    costs
        c: one a row.
    loss, regularizer, strength
        l, Ω and what multiplies Ω.
    intercept
        `free`: b is not regularized; `regularized`: b counts in Ω like a weight; `none`: b = 0.
    engine
        Who sums over the rows.
    n_outputs
        K: how many scores a row has, 1 unless the loss is one of several.
    """

    data: Dataset
    labels: Floats
    costs: Floats
    loss: RowLoss
    regularizer: Regularizer
    strength: float = 1.0
    intercept: Intercept = "free"
    engine: Engine = Threads()  # noqa: RUF009 — it holds settings only
    n_outputs: int = 1

    def __post_init__(self) -> None:
        if self.intercept not in _INTERCEPTS:
            raise ParameterError(f"intercept must be one of {', '.join(_INTERCEPTS)}, not {self.intercept!r}")
        if not self.strength > 0:
            raise ParameterError(f"the strength of the regularizer must be positive, not {self.strength}")
        if (self.n_outputs > 1) != isinstance(self.loss, VectorLoss) or self.n_outputs < 1:
            raise ParameterError(f"{self.loss!r} does not take {self.n_outputs} scores a row")
        if isinstance(self.loss, VectorLoss):
            self.loss.check_outputs(self.n_outputs)

    @cached_property
    def has_intercept(self) -> bool:
        """Whether θ ends with intercepts."""
        return self.intercept != "none"

    @cached_property
    def size(self) -> int:
        """The length of θ."""
        return (self.data.n_features + self.has_intercept) * self.n_outputs

    @cached_property
    def n_regularized(self) -> int:
        """How many coordinates of θ count in Ω: all, or all but the intercepts."""
        return self.size - (self.intercept == "free") * self.n_outputs

    @cached_property
    def total_cost(self) -> float:
        """Σ c_i."""
        return absolute_sum(self.costs)  # none is negative

    @cached_property
    def shards(self) -> list[Shard]:
        """The runs of rows that the engine sums over."""
        return self.engine.shards(self.data)

    @cached_property
    def longest_row(self) -> float:
        """max ‖x_i‖, with the 1 of a regularized intercept; one pass, shared by all objectives over the shards."""
        longest = max((shard.longest_row for shard in self.shards), default=0.0)
        return math.hypot(longest, 1.0) if self.intercept == "regularized" else longest

    @cached_property
    def penalty(self) -> Penalty:
        """h = strength·Ω over the regularized coordinates; no intercept has a bound."""
        omega, n = self.regularizer, self.data.n_features * self.n_outputs
        if not omega.nonnegative:
            return Penalty(self.strength * omega.l1, self.strength * omega.l2)
        lower = np.append(np.zeros(n), np.full(self.n_regularized - n, -np.inf))
        return Penalty(self.strength * omega.l1, self.strength * omega.l2, lower, np.full(len(lower), np.inf))

    @cached_property
    def null(self) -> NullModel:
        """The best intercepts alone."""
        return null_model(self)

    def spread(self, column: Floats) -> list[Floats]:
        """A column's part for each shard."""
        return [column[shard.rows] for shard in self.shards]

    @cached_property
    def shard_labels(self) -> list[Floats]:
        """y, shard by shard."""
        return self.spread(self.labels)

    @cached_property
    def shard_costs(self) -> list[Floats]:
        """c, shard by shard."""
        return self.spread(self.costs)

    @cached_property
    def shard_rates(self) -> list[Floats]:
        """The costs, shard by shard; a single number where they are all the same."""
        return [c[:1] if len(c) and c.min() == c.max() else c for c in self.shard_costs]

    def split(self, theta: Floats) -> tuple[Floats, Floats]:
        """(w, b) as views: of shapes (d, K) and (K,), or (d,) and () for one output; zeros where there is no b."""
        one_or_all = (self.n_outputs,) if self.n_outputs > 1 else ()
        n = self.data.n_features * self.n_outputs
        b = theta[n:] if self.has_intercept else np.zeros(self.n_outputs)
        return theta[:n].reshape(self.data.n_features, *one_or_all), b.reshape(one_or_all)

    def scores(self, theta: Floats) -> list[Floats]:
        """z = Xw + b, shard by shard; one pass."""
        w, b = self.split(theta)
        if not self.has_intercept:
            return self.engine.map(lambda shard: shard.block.scores(w), self.shards)
        return self.engine.map(lambda shard: shard.block.scores(w) + b, self.shards)

    def with_labels(self, labels: Floats) -> Objective:
        """The same objective for other labels; the shards and their costs are shared."""
        return self._sharing(replace(self, labels=labels), "shards", "shard_costs", "total_cost")

    def with_costs(self, costs: Floats) -> Objective:
        """The same objective for other costs; the shards and their labels are shared."""
        return self._sharing(replace(self, costs=costs), "shards", "shard_labels")

    def with_strength(self, strength: float) -> Objective:
        """The same objective with another strength of Ω; all else is shared."""
        return self._sharing(replace(self, strength=strength), "shards", "shard_labels", "shard_costs", "null")

    def _sharing(self, other: Objective, *names: str) -> Objective:
        for name in names:
            other.__dict__[name] = getattr(self, name)
        return other

    def weighted(self, slopes: list[Floats]) -> Floats:
        """Σ u_i x_i of one output, with Σ u_i for an intercept; one pass."""
        if not self.has_intercept:
            return np.asarray(*self.engine.sum(lambda s, u: (s.block.transposed(u),), self.shards, slopes))
        return self.join(*self.engine.sum(lambda s, u: (s.block.transposed(u), float(u.sum())), self.shards, slopes))

    def join(self, w: Floats, b: Floats | float) -> Floats:
        """θ from (w, b)."""
        if not self.has_intercept:
            return w.ravel()
        theta = np.empty(self.size)
        theta[: -self.n_outputs], theta[-self.n_outputs :] = w.ravel(), b
        return theta

    def flat(self, matrix: Floats) -> Floats:
        """θ as a view of a matrix of K columns with the intercepts in the last row."""
        return (matrix if self.has_intercept else matrix[:-1]).ravel()

    def curved_gram(self, curvatures: list[Floats]) -> Floats:
        """The Hessian of one output whose scores have these curvatures, the lower triangle."""
        d, m = self.data.n_features, self.data.n_features + self.has_intercept
        hessian = np.zeros((m, m))
        (hessian[:d, :d],) = self.engine.sum(lambda shard, h: (shard.block.gram(h),), self.shards, curvatures)
        if self.has_intercept:
            parts = self.engine.sum(lambda s, h: (s.block.transposed(h), float(h.sum())), self.shards, curvatures)
            hessian[d, :d], hessian[d, d] = parts
        hessian[np.diag_indices(m - (self.intercept == "free"))] += self.strength * self.regularizer.l2
        return hessian

    def at_null(self) -> Point:
        """The point of the best intercepts alone; no pass."""
        b = self.null.theta[-self.n_outputs :] if self.has_intercept else np.zeros(self.n_outputs)
        shape = (self.n_outputs,) if self.n_outputs > 1 else ()
        z = [np.full((s.stop - s.start, *shape), b if self.n_outputs > 1 else b[0]) for s in self.shards]
        return Point(self, self.null.theta.copy(), z)

    def at(self, theta: Floats | None = None) -> Point:
        """The point θ (None: zero, which costs no pass)."""
        if theta is None:
            shape = (self.n_outputs,) if self.n_outputs > 1 else ()
            return Point(self, np.zeros(self.size), [np.zeros((s.stop - s.start, *shape)) for s in self.shards])
        theta = np.array(theta, dtype=np.float64)
        if theta.shape != (self.size,):
            raise ParameterError(f"a start must have {self.size} coordinates, not shape {theta.shape}")
        return Point(self, theta, self.scores(theta), is_exact=True)
