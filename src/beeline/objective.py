"""The objective: the only place where data, loss, regularizer and engine meet.

The one convention::

    J(w, b) = strength · Ω(w) + Σ_i c_i · l(z_i, y_i),     z = Xw + b

`c_i` carries C and the weights of classes and samples. LIBLINEAR's form has strength 1 and c_i = C·weight_i; BMRM's has
strength λ and c_i = 1/m. The intercept b costs nothing in Ω unless it is `regularized`.

A solver moves a vector θ: the weights w, and last the intercept b if there is one. A loss of K scores a row has K
outputs: w is then a matrix of d rows, and b has K numbers. In θ the K weights of a feature lie side by side, feature
after feature, and the K intercepts come last: one entry of a row meets all its weights at once.

A solver looks at J through a `Point`, which keeps the scores of every row, and through a `Line`, along which J costs no
pass over the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from beeline._types import Floats
from beeline.data.block import Block
from beeline.data.dataset import Dataset
from beeline.engines import Engine, Shard, Threads
from beeline.exceptions import ParameterError
from beeline.kernels import add_scaled, dot, solve_positive
from beeline.losses import RowLoss, VectorLoss
from beeline.regularizers import Regularizer

__all__ = ["Intercept", "Line", "Objective", "Point", "best_intercepts"]

Intercept = Literal["free", "regularized", "none"]

_NOTHING = 1e-15  # what rounding may do to J, relatively


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
        if self.intercept not in get_args(Intercept):
            raise ParameterError(f"intercept must be one of {', '.join(get_args(Intercept))}, not {self.intercept!r}")
        if not self.strength > 0:
            raise ParameterError(f"the strength of the regularizer must be positive, not {self.strength}")
        if (self.n_outputs > 1) != isinstance(self.loss, VectorLoss) or self.n_outputs < 1:
            raise ParameterError(f"{self.loss!r} does not take {self.n_outputs} scores a row")
        if isinstance(self.loss, VectorLoss):
            self.loss.check_outputs(self.n_outputs)

    @property
    def has_intercept(self) -> bool:
        """Whether θ ends with intercepts."""
        return self.intercept != "none"

    @property
    def size(self) -> int:
        """The length of θ."""
        return (self.data.n_features + self.has_intercept) * self.n_outputs

    @property
    def n_regularized(self) -> int:
        """How many coordinates of θ count in Ω: all, or all but the intercepts."""
        return self.size - (self.intercept == "free") * self.n_outputs

    @cached_property
    def shards(self) -> list[Shard]:
        """The runs of rows that the engine sums over."""
        return self.engine.shards(self.data)

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

    def split(self, theta: Floats) -> tuple[Floats, Floats]:
        """(w, b) as views: of shapes (d, K) and (K,), or (d,) and () for one output; zeros where there is no b."""
        one_or_all = (self.n_outputs,) if self.n_outputs > 1 else ()
        n = self.data.n_features * self.n_outputs
        b = theta[n:] if self.has_intercept else np.zeros(self.n_outputs)
        return theta[:n].reshape(self.data.n_features, *one_or_all), b.reshape(one_or_all)

    def scores(self, theta: Floats) -> list[Floats]:
        """z = Xw + b, shard by shard; one pass."""
        w, b = self.split(theta)
        return self.engine.map(lambda shard: shard.block.scores(w) + b, self.shards)

    def with_labels(self, labels: Floats) -> Objective:
        """The same objective for other labels; the shards and their costs are shared."""
        return self._sharing(replace(self, labels=labels), "shards", "shard_costs")

    def with_costs(self, costs: Floats) -> Objective:
        """The same objective for other costs; the shards and their labels are shared."""
        return self._sharing(replace(self, costs=costs), "shards", "shard_labels")

    def with_strength(self, strength: float) -> Objective:
        """The same objective with another strength of Ω; all else is shared."""
        return self._sharing(replace(self, strength=strength), "shards", "shard_labels", "shard_costs")

    def _sharing(self, other: Objective, *names: str) -> Objective:
        for name in names:
            other.__dict__[name] = getattr(self, name)
        return other

    def join(self, w: Floats, b: Floats | float) -> Floats:
        """θ from (w, b)."""
        return np.append(w, b) if self.has_intercept else w.ravel()

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

    def dual_value(self, point: Point) -> float:
        """The dual objective at a_i = −(slope of the point's loss): a lower bound of min J.

        D(a) = −‖Xᵀa‖²/(2λ) − Σ ψ_i(a_i). The point may be one under a rounded loss, whose gradient already holds Xᵀa:
        no pass is needed. A free intercept must be the best one, so that Σ a_i = 0.
        """
        n, modulus = self.n_regularized, self.strength * self.regularizer.l2
        product = point.gradient[:n] - modulus * point.theta[:n]  # −Xᵀa
        (conjugate,) = self.engine.sum(
            lambda _, u, y, c: (self.loss.dual_cost(u, y, c, -1.0),),
            self.shards,
            point.slopes,
            self.shard_labels,
            self.shard_costs,
        )
        return -dot(product, product) / (2 * modulus) - float(conjugate)

    def at(self, theta: Floats | None = None) -> Point:
        """The point θ (None: zero, which costs no pass)."""
        if theta is None:
            shape = (self.n_outputs,) if self.n_outputs > 1 else ()
            return Point(self, np.zeros(self.size), [np.zeros((s.stop - s.start, *shape)) for s in self.shards])
        theta = np.array(theta, dtype=np.float64)
        if theta.shape != (self.size,):
            raise ParameterError(f"a start must have {self.size} coordinates, not shape {theta.shape}")
        return Point(self, theta, self.scores(theta))


class Point:
    """J at one θ. Everything is computed when first asked for, and kept."""

    def __init__(self, objective: Objective, theta: Floats, z: list[Floats]) -> None:
        self.objective, self.theta, self.z = objective, theta, z

    @cached_property
    def _derivatives(self) -> list[tuple[float, Floats, Floats]]:
        """Value, slopes and curvatures of the loss, shard by shard: a smooth loss gives them in one go."""
        o = self.objective
        return o.engine.map(
            lambda _, z, y, c: o.loss.derivatives(z, y, c), o.shards, self.z, o.shard_labels, o.shard_costs
        )

    @cached_property
    def loss(self) -> float:
        """Σ c_i l(z_i, y_i)."""
        o = self.objective
        if o.loss.has_curvature:
            return sum(loss for loss, _, _ in self._derivatives)
        (loss,) = o.engine.sum(
            lambda _, z, y, c: (o.loss.sum(z, y, c),), o.shards, self.z, o.shard_labels, o.shard_costs
        )
        return float(loss)

    @cached_property
    def value(self) -> float:
        """J(θ)."""
        o = self.objective
        return o.strength * o.regularizer.value(self.theta[: o.n_regularized]) + self.loss

    @cached_property
    def slopes(self) -> list[Floats]:
        """c_i · dl/dz at every row, shard by shard."""
        o = self.objective
        if o.loss.has_curvature:
            return [slopes for _, slopes, _ in self._derivatives]
        return o.engine.map(lambda _, z, y, c: o.loss.slopes(z, y, c), o.shards, self.z, o.shard_labels, o.shard_costs)

    @property
    def curvatures(self) -> list[Floats]:
        """c_i · d²l/dz² at every row, shard by shard; for several outputs what `VectorLoss.curvature` stands for."""
        return [curvatures for _, _, curvatures in self._derivatives]

    @cached_property
    def loss_gradient(self) -> Floats:
        """The gradient of the loss alone; one pass."""
        o = self.objective
        if o.n_outputs > 1:
            return o.flat(*o.engine.sum(lambda s, u: (s.transposed(u),), o.shards, self.slopes))
        return o.join(*o.engine.sum(lambda s, u: (s.block.transposed(u), float(u.sum())), o.shards, self.slopes))

    @cached_property
    def gradient(self) -> Floats:
        """∂J(θ); one pass."""
        o = self.objective
        gradient, n = self.loss_gradient.copy(), o.n_regularized
        if o.regularizer.smooth:
            add_scaled(o.strength * o.regularizer.l2, self.theta[:n], gradient[:n])
        else:
            add_scaled(o.strength, o.regularizer.gradient(self.theta[:n]), gradient[:n])
        return gradient

    @cached_property
    def gradient_norm(self) -> float:
        """‖∂J(θ)‖."""
        return math.sqrt(dot(self.gradient, self.gradient))

    def hessian_product(self, v: Floats) -> Floats:
        """∂²J(θ) v; one pass."""
        o = self.objective
        w, b = o.split(v)
        if isinstance(loss := o.loss, VectorLoss):
            product = o.flat(*o.engine.sum(lambda s, h: (_curved(loss, s, h, w, b),), o.shards, self.curvatures))
        else:
            parts = o.engine.sum(lambda s, h: s.curved_product(h, w, float(b)), o.shards, self.curvatures)
            product = o.join(*parts)
        add_scaled(o.strength * o.regularizer.l2, v[: o.n_regularized], product[: o.n_regularized])
        return product

    def hessian(self, least: float = 0.0) -> Floats:
        """∂²J(θ) of one output, the lower triangle; one pass of nnz·(nonzeros a row) steps.

        Rows whose curvature is below `least` times the largest are left out and cost nothing.
        """
        curvatures = self.curvatures
        if least:
            limit = least * max(float(h.max(initial=0.0)) for h in curvatures)
            curvatures = [np.where(h > limit, h, 0.0) for h in curvatures]
        return self.objective.curved_gram(curvatures)

    @property
    def diagonal_curvatures(self) -> list[Floats]:
        """The diagonals of each row's Hessian of K scores, shard by shard."""
        loss = self.objective.loss
        assert isinstance(loss, VectorLoss)
        return [loss.curvature_diagonals(h) for h in self.curvatures]

    def hessian_diagonal(self) -> Floats:
        """The diagonal of ∂²J(θ); one pass."""
        o = self.objective
        if o.n_outputs > 1:
            each = o.engine.sum(lambda s, h: (s.gram_diagonal(h),), o.shards, self.diagonal_curvatures)
            diagonal = o.flat(*each)
        else:
            diagonal = o.join(
                *o.engine.sum(lambda s, h: (s.block.gram_diagonal(h), float(h.sum())), o.shards, self.curvatures)
            )
        diagonal[: o.n_regularized] += o.strength * o.regularizer.l2
        return diagonal

    def under(self, objective: Objective) -> Point:
        """The same θ under another objective over the same rows; no pass over the data."""
        return Point(objective, self.theta, self.z)

    def with_strength(self, strength: float) -> Point:
        """The same θ with another strength of Ω; whatever is known of the loss stays known."""
        point = Point(self.objective.with_strength(strength), self.theta, self.z)
        for name in ("_derivatives", "loss", "slopes", "loss_gradient"):
            if name in self.__dict__:
                point.__dict__[name] = self.__dict__[name]
        return point

    def shifted(self, b: Floats | float) -> Point:
        """The same weights with the intercepts moved by b; no pass over the data."""
        theta = self.theta.copy()
        theta[-self.objective.n_outputs :] += b
        return Point(self.objective, theta, [z + b for z in self.z])

    def with_best_intercept(self, accuracy: float = 0.0) -> Point:
        """The same weights with the best free intercepts; no pass over the data.

        For a smooth loss Newton's method on ∂J/∂b, as far as double precision goes, kept inside a bracket that halves
        when a step leaves it or is not much shorter than the last (down an exponential they all have the same length).
        For another one, a value of J within `accuracy`, relatively, of the best. Several intercepts of a smooth loss:
        `best_intercepts`.
        """
        if self.objective.intercept != "free":
            return self
        if self.objective.n_outputs > 1 and self.objective.loss.has_curvature:
            return best_intercepts(self)
        if self.objective.n_outputs > 1:
            raise ParameterError(f"the best intercepts of {self.objective.loss!r} do not follow from the scores")
        if not self.objective.loss.has_curvature:
            along = np.zeros(self.objective.size)
            along[-1] = 1.0
            line = Line(self, along, [np.ones_like(z) for z in self.z])
            return line.move(line.least(-np.inf, np.inf, 0.0, accuracy))
        point, low, high, last = self, -np.inf, np.inf, np.inf
        for _ in range(100):
            slope = sum(float(u.sum()) for u in point.slopes)
            scale = sum(float(np.abs(u).sum()) for u in point.slopes)
            if abs(slope) <= 1e-12 * scale:
                break
            here = float(point.theta[-1])
            low, high = (here, high) if slope < 0 else (low, here)
            curvature = sum(float(h.sum()) for h in point.curvatures)
            step = -slope / curvature if curvature > 0 else -np.sign(slope) * max(1, abs(here))
            if np.isfinite(low + high) and (abs(step) > 0.5 * last or not low < here + step < high):
                step = 0.5 * (low + high) - here
            elif not low < here + step < high:
                step = np.sign(step) * max(1, abs(here))
            last = abs(step)
            if here + step == here:
                break
            point = point.shifted(step)
        return point

    def forget(self) -> None:
        """Give back what is kept of each row but its scores; it is computed anew when asked for.

        A point that a step leaves behind would otherwise hold as much as the next one needs.
        """
        for name in ("_derivatives", "slopes"):
            self.__dict__.pop(name, None)

    def towards(self, other: Point, accuracy: float) -> Point:
        """The best point between this one and a little beyond the other; no pass over the data."""
        line = Line(self, other.theta - self.theta, [b - a for a, b in zip(self.z, other.z, strict=True)])
        return line.move(line.least(0.0, 1.5, 1.0, accuracy))

    def line(self, direction: Floats) -> Line:
        """J along θ + t·direction; one pass."""
        self.forget()
        return Line(self, direction, self.objective.scores(direction))

    @cached_property
    def bound(self) -> float:
        """A lower bound of min J by lemma 5 of the bundle paper: J − ‖∂J‖²/(2λ), λ = strength · l2.

        It equals the duality gap at the dual point α_i = −c_i·l'(z_i), and holds for a free intercept once that is
        optimal for the weights: J minimised over b is as strongly convex in w as J itself.
        """
        o = self.objective
        modulus = o.strength * o.regularizer.l2
        gradient = self.gradient[: o.n_regularized]
        return self.value - dot(gradient, gradient) / (2 * modulus) if modulus else -np.inf


class Line:
    """J along θ + t·direction, from scores alone."""

    def __init__(self, point: Point, direction: Floats, dz: list[Floats]) -> None:
        self.point, self.direction, self.dz = point, direction, dz

    def at(self, t: float) -> tuple[float, float]:
        """J and its derivative by t; no pass over the data."""
        o, point = self.point.objective, self.point
        loss, slope = o.engine.sum(
            lambda _, z, dz, y, c: o.loss.along(z, dz, t, y, c),
            o.shards,
            point.z,
            self.dz,
            o.shard_labels,
            o.shard_costs,
        )
        penalty, incline = self._penalty(t)
        return o.strength * penalty + float(loss), o.strength * incline + float(slope)

    def _penalty(self, t: float) -> tuple[float, float]:
        """Ω and its derivative by t."""
        omega, n = self.point.objective.regularizer, self.point.objective.n_regularized
        if omega.smooth:
            constant, linear, square = self._products
            return omega.l2 * (0.5 * constant + t * (linear + 0.5 * t * square)), omega.l2 * (linear + t * square)
        moved, direction = self.point.theta[:n] + t * self.direction[:n], self.direction[:n]
        return omega.value(moved), dot(omega.gradient(moved), direction)

    @property
    def curvature(self) -> float:
        """The second derivative of strength·Ω by t."""
        return self.point.objective.strength * self.point.objective.regularizer.l2 * self._products[2]

    @cached_property
    def _products(self) -> tuple[float, float, float]:
        """‖w‖², wᵀd and ‖d‖² of the regularized coordinates: Ω is a parabola along the line."""
        n = self.point.objective.n_regularized
        w, d = self.point.theta[:n], self.direction[:n]
        return dot(w, w), dot(w, d), dot(d, d)

    def least(self, low: float, high: float, first: float, accuracy: float) -> float:
        """Where J is least between low and high (either may be infinite), to a relative accuracy of J.

        J lies above its tangents: where those of a bracket meet is the next t to look at, and how far J is above that
        bounds the error. Needs no smoothness. `first` is the first t, and the best one must beat t = 0.
        """
        best, t = (self.point.value, 0.0), first
        left: tuple[float, float, float] | None = None  # t, J and its derivative, below the minimum
        right: tuple[float, float, float] | None = None
        for _ in range(60):
            value, slope = self.at(t)
            best = min(best, (value, t))
            left, right = ((t, value, slope), right) if slope < 0 else (left, (t, value, slope))
            if slope == 0 or (left is None and t <= low) or (right is None and t >= high):
                break
            if left is None or right is None:
                span = 2 * abs(t - first) or 0.1 * max(1.0, abs(first))
                t = max(t - span, low) if left is None else min(t + span, high)
                continue
            width = right[0] - left[0]
            meet = (left[1] - right[1] + right[2] * width) / (right[2] - left[2])
            floor = left[1] + left[2] * meet
            if best[0] - floor <= accuracy * abs(best[0]) or width <= 1e-15 * max(abs(left[0]), abs(right[0])):
                break
            t = left[0] + min(max(meet, 0.05 * width), 0.95 * width)
        return best[1]

    def move(self, t: float) -> Point:
        """The point at t; no pass over the data."""
        z = [z + t * dz for z, dz in zip(self.point.z, self.dz, strict=True)]
        return Point(self.point.objective, self.point.theta + t * self.direction, z)


def _curved(loss: VectorLoss, shard: Shard, h: Floats, w: Floats, b: Floats) -> Floats:
    """Xᵀ of every row's Hessian times its scores by (w, b), with the sums of the columns below."""
    if loss.has_softmax_curvature:
        return shard.curved_products(h, w, b)
    return shard.transposed(loss.curved(h, shard.block.scores(w) + b))


def best_intercepts(point: Point) -> Point:
    """The same weights with the best free intercepts of a smooth loss of K scores; no pass over the data.

    Newton's method until the next step would lower J by nothing that double precision can tell; steps are halved while
    they raise J. The Hessian costs n·K²/2 steps and changes little on the way: it is made anew only when its last step
    helped little. Where a shift of all intercepts at once changes no loss, of those that are best the sum of these is
    zero.
    """
    loss = point.objective.loss
    if isinstance(loss, VectorLoss) and loss.shift_free:
        point = point.shifted(-float(np.mean(point.theta[-point.objective.n_outputs :])))
    hessian, before = None, np.inf
    for _ in range(100):
        slope = np.sum([u.sum(axis=0) for u in point.slopes], axis=0)
        size = float(np.abs(slope).max())
        if hessian is None or size > 0.1 * before:
            hessian = _intercept_hessian(point)
        step = -slope
        if not solve_positive(hessian.copy(), step):  # no curvature at all: scores that are far apart
            step = -slope / (size or 1.0)
        if dot(-slope, step) <= _NOTHING * point.loss:
            break
        moved = point.shifted(step)
        while moved.loss > point.loss * (1 + _NOTHING) and np.abs(step).max() > _NOTHING:
            step *= 0.5
            moved = point.shifted(step)
        point, before = moved, size
    return point


def _intercept_hessian(point: Point) -> Floats:
    """∂²J/∂b², with a curvature along (1, …, 1) too, where it has none of its own."""
    loss, k = point.objective.loss, point.objective.n_outputs
    assert isinstance(loss, VectorLoss)
    hessian = np.zeros((k, k))
    for h in point.curvatures:
        hessian += _softmax_total(h) if loss.has_softmax_curvature else loss.curvature_total(h)
    mean = np.trace(hessian) / k
    hessian[np.diag_indices(k)] += 1e-14 * mean
    if loss.shift_free:
        hessian += mean / k
    return hessian


def _softmax_total(h: Floats) -> Floats:
    """`VectorLoss.curvature_total` of the softmax form, by a kernel."""
    k, totals = h.shape[1], h.sum(axis=1)
    inverse = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0)
    total: Floats = -Block(h, k).gram(inverse)
    total[np.diag_indices(k)] += h.sum(axis=0)
    return total
