"""J at a point, whose scores are kept."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline._lazy import cached_property
from beeline._types import Floats
from beeline.engines import Promise, RowVector
from beeline.engines.verbs import columns, products, values
from beeline.exceptions import ParameterError
from beeline.kernels import add_scaled, dot
from beeline.losses import VectorLoss
from beeline.objective.certificates import tangent_bound
from beeline.objective.intercepts import best_free, best_free_by_turns, best_intercept, best_intercepts
from beeline.objective.line import Line
from beeline.objective.penalty import OwnOmega

if TYPE_CHECKING:
    from beeline.objective.objective import Objective

__all__ = ["Point", "centred"]

# Times what intercepts may cost a bound, that a gradient costs it where they need not be the best; and the part of
# their slopes that may then be left.
_FAR, _ROUGHLY = 10.0, 1e-2
# What a point knows of its losses, whatever the strength of Ω is.
_OF_LOSSES = (
    "_derivatives",
    "loss",
    "slopes",
    "_loss_sum",
    "_size_sum",
    "_total_sum",
    "_curvature_sum",
    "_gradient_sums",
    "_with_extra",
    "loss_gradient",
)
_NONE = np.zeros(0)
_CENTRED = 1e-15  # of the largest weight, that the mean of several may be by rounding
_LEVEL = 1e-13  # the least part of slopes that is more than rounding


def centred(o: Objective, theta: Floats) -> Floats:
    """θ with the mean over the outputs taken off every feature's weights, where only their differences count.

    That is what the optimum is like: without it, L2 is smaller and all losses are the same. A θ that is so already, but
    for rounding, is given back itself.
    """
    if not (isinstance(o.loss, VectorLoss) and o.loss.shift_invariant and o.penalty.plain and o.regularizer.separable):
        return theta
    columns = theta.reshape(-1, o.n_outputs)
    means = columns.mean(axis=1, keepdims=True)
    if np.abs(means).max(initial=0.0) <= _CENTRED * max(theta.max(initial=0.0), -theta.min(initial=0.0)):
        return theta
    moved: Floats = (columns - means).ravel()
    return moved


class Point:
    """J at one θ. Everything is computed when first asked for, and kept.

    `is_exact` says that the scores were computed from θ; elsewhere they were moved with it, and rounded at every move.
    """

    def __init__(
        self, objective: Objective, theta: Floats, z: RowVector | None = None, *, is_exact: bool = False
    ) -> None:
        self.objective, self.theta, self.is_exact = objective, theta, is_exact
        if z is not None:
            self.z = z

    @cached_property
    def z(self) -> RowVector:
        """The scores; one pass where nobody gave them."""
        return self.objective.scores(self.theta)

    def snapshot(self) -> dict[str, Any]:
        """All that the same point is made of, to the same bits: θ, scores that do not follow from it, and the loss."""
        z = None if self.is_exact else self.objective.rows.pieces(self.z)
        return {"theta": self.theta, "z": z, "loss": vars(self).get("loss")}

    @classmethod
    def restored(cls, objective: Objective, snapshot: dict[str, Any]) -> Point:
        """The point of a snapshot; one pass where its scores follow from θ."""
        if snapshot["z"] is None:
            point = objective.at(snapshot["theta"])
        else:
            theta = np.array(snapshot["theta"])
            point = cls(objective, theta, objective.rows.from_pieces(snapshot["z"]))
        if snapshot["loss"] is not None:
            vars(point)["loss"] = snapshot["loss"]
        return point

    @cached_property
    def _derivatives(self) -> tuple[RowVector, RowVector, Promise]:
        """Slopes and curvatures of the loss, and its sum: a smooth loss gives them in one go."""
        o = self.objective
        row_vectors = (self.z, o.labels, o.costs)
        (slopes, curvatures), total = o.rows.call(values.derivatives, row_vectors, {"loss": o.loss}, 2, "sum")
        return slopes, curvatures, total

    @cached_property
    def loss(self) -> float:
        """Σ c_i l(z_i, y_i)."""
        return float(self._loss_sum.value[0] if "_loss_sum" in vars(self) else self._fetch("_loss"))

    def ask_loss(self) -> None:
        """Ask for the sum of the losses, by itself: it comes with the next trip."""
        _ = self._loss_sum

    @property
    def _loss(self) -> Promise:
        return self._derivatives[2] if self.objective.has_curvature else self._loss_sum

    def with_loss_value(self) -> Point:
        """This point, with the loss by a sum alone: slopes and curvatures, of every row, wait to be asked for."""
        if "loss" not in vars(self):
            vars(self)["loss"] = float(self._loss_sum.value[0])
        return self

    def with_loss(self, loss: float) -> Point:
        """This point, with a sum of the losses that is known from elsewhere."""
        vars(self)["loss"] = loss
        return self

    def _fetch(self, name: str) -> Any:  # noqa: ANN401
        """What a sum over the rows comes to; where a question is a trip, all that is of interest is asked for."""
        if not self.objective.rows.immediate:
            self.ask()
        promise: Promise = getattr(self, name)
        return promise.value[0]

    def ask(self) -> None:
        """Ask for all that solvers want to know of a point, where questions are queued: it comes with the next trip."""
        if not self.objective.rows.immediate and "asked" not in vars(self):
            vars(self)["asked"] = True
            _ = self._loss, self._size_sum, self._total_sum, self._gradient_sums
            if self.objective.has_curvature:
                _ = self._curvature_sum

    @cached_property
    def _loss_sum(self) -> Promise:
        o = self.objective
        return o.rows.sum(values.loss_sum, self.z, o.labels, o.costs, loss=o.loss_at(self.theta))

    @cached_property
    def _size_sum(self) -> Promise:
        return self.objective.rows.sum(columns.size, self.slopes)

    @cached_property
    def _total_sum(self) -> Promise:
        return self.objective.rows.sum(columns.total, self.slopes)

    @cached_property
    def _curvature_sum(self) -> Promise:
        return self.objective.rows.sum(columns.total, self.curvatures)

    @cached_property
    def _gradient_sums(self) -> Promise:
        return self.objective.weighted_sums(self.slopes)

    @cached_property
    def value(self) -> float:
        """J(θ)."""
        o = self.objective
        return o.strength * o.omega.value(self.theta[: o.n_regularized]) + self.loss

    @cached_property
    def slopes(self) -> RowVector:
        """c_i · dl/dz at every row."""
        o = self.objective
        if o.has_curvature:
            return self._derivatives[0]
        if o.parameters.n_extra:
            return self._with_extra[0]
        return o.rows.map(values.slopes, self.z, o.labels, o.costs, loss=o.loss)

    @cached_property
    def _with_extra(self) -> tuple[RowVector, Promise]:
        """The slopes, and the derivatives by the parameters that the loss owns."""
        o = self.objective
        row_vectors = (self.z, o.labels, o.costs)
        (slopes,), sums = o.rows.call(values.slopes_and_extra, row_vectors, {"loss": o.loss_at(self.theta)}, 1, "sum")
        return slopes, sums

    @property
    def extra_slopes(self) -> Floats:
        """The derivatives of the loss by the parameters that it owns."""
        if not self.objective.parameters.n_extra:
            return _NONE
        _ = self.slopes
        by_extra: Floats = self._with_extra[1].value[0]
        return self.objective.loss_at(self.theta).settled_slopes(by_extra)

    @property
    def extra_derivatives(self) -> tuple[Floats, Floats]:
        """First and second derivatives of the loss by the parameters that it owns; none where they are not known."""
        o = self.objective
        found = o.rows.sum(values.extra_derivatives, self.z, o.labels, o.costs, loss=o.loss_at(self.theta)).value
        return found[0], found[1]

    @property
    def slope_size(self) -> float:
        """Σ |c_i · dl/dz|."""
        return float(self._fetch("_size_sum"))

    @property
    def slope_total(self) -> Floats | float:
        """Σ c_i · dl/dz, for each output: the slope of J along free intercepts."""
        total: Floats | float = self._fetch("_total_sum")
        return total

    @property
    def curvature_total(self) -> Floats | float:
        """The sum of the curvatures, for each output."""
        total: Floats | float = self._fetch("_curvature_sum")
        return total

    @cached_property
    def score_bound(self) -> float:
        """What no score exceeds, nor any of the sums that it is made of: max‖x_i‖·‖w‖ + |b|, of outputs the largest."""
        o, d = self.objective, self.objective.rows.n_features
        if o.n_outputs == 1:
            w = self.theta[:d]
            length = math.sqrt(dot(w, w))
            return (o.longest_row * length if length else 0.0) + (
                abs(float(self.theta[-1])) if o.has_intercept else 0.0
            )
        w, b = o.split(self.theta)
        with np.errstate(over="ignore"):  # weights of no use, to which no bound belongs
            largest = math.sqrt(float(np.square(w).sum(axis=0).max()))
        return (o.longest_row * largest if largest else 0.0) + float(np.abs(b).max(initial=0.0))

    @property
    def curvatures(self) -> RowVector:
        """c_i · d²l/dz² at every row; for several outputs what `VectorLoss.curvature` stands for."""
        return self._derivatives[1]

    @cached_property
    def loss_gradient(self) -> Floats:
        """The gradient of the loss alone; one pass."""
        self.ask()
        o = self.objective
        if not o.parameters.n_extra:
            return o.from_sums(self._gradient_sums)
        return o.from_sums(self._gradient_sums, self.extra_slopes)

    @property
    def free_slopes(self) -> Floats:
        """The derivatives of J by the coordinates that do not count in Ω; no pass over the data."""
        o = self.objective
        extra = self.extra_slopes if o.loss.free_extra else _NONE
        return np.append(extra, np.ravel(self.slope_total)) if o.intercept == "free" else extra

    @property
    def pull(self) -> float:
        """The largest slope by which the loss pulls a weight away from zero, to where it may go; one pass.

        While that is at most strength·l1, zero weights are optimal, the intercept being so.
        """
        o = self.objective
        gradient, n = self.loss_gradient[: o.n_regularized], o.n_weights
        pulls = np.abs(gradient)
        if o.regularizer.nonnegative:
            pulls[:n] = np.maximum(-gradient[:n], 0.0)
        return float(pulls.max(initial=0.0))

    @cached_property
    def gradient(self) -> Floats:
        """∂J(θ), without what keeps weights from being negative; one pass."""
        o = self.objective
        gradient, n = self.loss_gradient.copy(), o.n_regularized
        if o.regularizer.separable and not o.regularizer.l1:
            add_scaled(o.strength * o.regularizer.l2, self.theta[:n], gradient[:n])
        else:
            add_scaled(o.strength, o.omega.gradient(self.theta[:n]), gradient[:n])
        return gradient

    @cached_property
    def omega_remainder(self) -> tuple[float, Floats] | None:
        """strength·S and its gradient, S what Ω holds beside what a `Penalty` stands for; None: nothing."""
        o = self.objective
        if not isinstance(o.omega, OwnOmega):
            return None
        value, gradient = o.omega.tangent(self.theta[: o.n_regularized])
        return o.strength * value, o.strength * gradient

    @cached_property
    def gradient_norm(self) -> float:
        """‖∂J(θ)‖."""
        return math.sqrt(dot(self.gradient, self.gradient))

    @property
    def max_decrease(self) -> float:
        """How far J can fall at most where Ω is L2 and intercepts are the best, ‖∂J‖²/(2λ); one pass."""
        slope = self.gradient[: self.objective.n_regularized]
        return dot(slope, slope) / (2 * self.objective.penalty.l2)

    def hessian_product(self, v: Floats) -> Floats:
        """∂²J(θ) v; one pass."""
        o = self.objective
        w, b = o.split(v)
        parts = o.rows.sum(products.hessian_product, self.curvatures, w=w, b=b, loss=o.loss).value
        product = o.flat(*parts) if o.n_outputs > 1 else o.join(*parts)
        add_scaled(o.strength * o.regularizer.l2, v[: o.n_regularized], product[: o.n_regularized])
        return product

    def hessian(self, least: float = 0.0) -> Floats:
        """∂²J(θ) of one output, the lower triangle; one pass of nnz·(nonzeros a row) steps.

        Rows whose curvature is below `least` times the largest are left out and cost nothing.
        """
        o = self.objective
        limit = least * o.rows.max(columns.largest, self.curvatures).value[0] if least else 0.0
        return o.hessian_block(self.curvatures, limit)

    @property
    def diagonal_curvatures(self) -> RowVector:
        """The diagonals of each row's Hessian of K scores."""
        o = self.objective
        assert isinstance(o.loss, VectorLoss)
        return o.rows.map(values.curvature_diagonals, self.curvatures, loss=o.loss)

    def hessian_diagonal(self) -> Floats:
        """The diagonal of ∂²J(θ); one pass."""
        o = self.objective
        curvatures = self.diagonal_curvatures if o.n_outputs > 1 else self.curvatures
        parts = o.rows.sum(products.hessian_diagonal, curvatures).value
        diagonal = o.flat(*parts) if o.n_outputs > 1 else o.join(*parts)
        diagonal[: o.n_regularized] += o.strength * o.regularizer.l2
        return diagonal

    def with_objective(self, objective: Objective) -> Point:
        """The same θ under another objective over the same rows; no pass over the data."""
        return Point(objective, self.theta, self.z)

    def with_strength(self, strength: float) -> Point:
        """The same θ with another strength of Ω; whatever is known of the loss stays known."""
        point = Point(self.objective.with_strength(strength), self.theta, self.z)
        for name in _OF_LOSSES:
            if name in self.__dict__:
                point.__dict__[name] = self.__dict__[name]
        return point

    def shifted(self, b: Floats | float) -> Point:
        """The same weights with the intercepts moved by b; no pass over the data."""
        theta = self.theta.copy()
        theta[-self.objective.n_outputs :] += b
        return self.moved_to(theta, self.objective.rows.map(columns.shifted, self.z, b=b))

    def with_free(self, free: Floats) -> Point:
        """The same weights with other values of the coordinates that do not count in Ω; no pass over the data."""
        o, theta = self.objective, self.theta.copy()
        before = theta[o.n_regularized :].copy()
        theta[o.n_regularized :] = free
        if o.intercept != "free":
            return self.moved_to(theta, self.z)
        shift = (free - before)[-o.n_outputs :]
        b = shift if o.n_outputs > 1 else float(shift[0])
        return self.moved_to(theta, o.rows.map(columns.shifted, self.z, b=b))

    def moved_to(self, theta: Floats, z: RowVector) -> Point:
        """The point of another θ, whose scores were moved with it; lost ones are to be made from θ."""
        o = self.objective
        w, b = o.split(theta)
        z.origin = (products.scores, (), {"w": w, "b": b if o.has_intercept else None}, None)
        return Point(o, theta, z)

    def with_best_intercept(self, accuracy: float = 0.0) -> Point:
        """The same weights with the best free intercepts; no pass over the data.

        As far as double precision goes for a smooth loss; for another one, a value of J within `accuracy`, relatively,
        of the best.
        """
        if not self.objective.n_free:
            return self
        if self.objective.couples_rows:
            return best_free(self) if self.objective.loss.smooth else best_free_by_turns(self, accuracy)
        if self.objective.n_outputs > 1 and self.objective.has_curvature:
            return best_intercepts(self)
        if self.objective.n_outputs > 1:
            raise ParameterError(
                f"the best intercepts of {self.objective.loss!r} do not follow from the scores", parameter="loss"
            )
        if self.objective.loss.smooth:
            return best_intercept(self)
        line = self.along_intercept()
        return line.move(line.least(-np.inf, np.inf, 0.0, accuracy))

    def with_level_intercept(self, allowed: float) -> Point:
        """The same weights with the best free intercepts, unless these would lower a bound by less than `allowed`.

        Newton's method brings an intercept near enough to the best by itself, in most of its steps. What several of
        them cost is not so easily said; but while the gradient lowers the bound by far more, they need not be exact.
        """
        o = self.objective
        if not o.n_free:
            return self
        if o.couples_rows:
            return best_free(self)
        if o.n_outputs > 1:
            return best_intercepts(self, _ROUGHLY if self.max_decrease > _FAR * allowed else 0.0)
        if not o.loss.smooth:
            raise ParameterError(f"the slopes of {o.loss!r} do not say where its intercept is level", parameter="loss")
        if not self.loss > 0:
            return best_intercept(self)
        return best_intercept(self, max(_LEVEL, 0.5 * allowed / self.loss))

    def forget(self) -> None:
        """Give back what is kept of each row but its scores; it is computed anew when asked for.

        A point that a step leaves behind would otherwise hold as much as the next one needs.
        """
        for name in ("_derivatives", "_with_extra", "slopes"):
            self.__dict__.pop(name, None)

    def towards(self, other: Point, accuracy: float) -> Point:
        """The best point between this one and a little beyond the other; no pass over the data."""
        dz = self.objective.rows.map(columns.difference, other.z, self.z)
        line = Line(self, other.theta - self.theta, dz)
        return line.move(line.least(0.0, 1.5, 1.0, accuracy))

    def line(self, direction: Floats) -> Line:
        """J along θ + t·direction; one pass."""
        self.forget()
        return Line(self, direction, self.objective.scores(direction))

    def free_line(self, direction: Floats) -> Line:
        """J along a direction of coordinates that do not count in Ω; no pass over the data."""
        o = self.objective
        shift = direction[-o.n_outputs :] if o.intercept == "free" else np.zeros(o.n_outputs)
        value = shift if o.n_outputs > 1 else float(shift[0])
        return Line(self, direction, o.rows.map(columns.constant, value=value))

    def along_intercept(self) -> Line:
        """J along the intercept of one output; no pass over the data."""
        along = np.zeros(self.objective.size)
        along[-1] = 1.0
        return Line(self, along, self.objective.rows.map(columns.constant, value=1.0))

    @cached_property
    def bound(self) -> float:
        """A lower bound of min J by the slopes of the losses, `tangent_bound`; no pass once it has its gradient."""
        return tangent_bound(self)
