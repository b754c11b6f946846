"""What a loss is: numbers from scores and labels. A loss never sees the data.

Conventions
-----------
- A scalar loss l(z, y) takes one score and one label a row; both are float64 vectors of the same length.
- A vector loss takes K scores a row: a float64 matrix of shape (n, K), rows contiguous. Whatever is said of dl/dz then
  holds row by row for a gradient of K numbers. Its labels are class numbers, one a row, or a matrix of the same shape.
- `value_and_grad` returns l and dl/dz row by row. That is all a loss must have.
- No loss is ever negative, and all are convex in the scores, but one that says `convex = False`.
- A loss with a `compiled` name has the same formula among the kernels, for speed; a contract test holds the two
  together. Sums over rows take costs c and always mean Σ c_i l(z_i, y_i); they are taken in a fixed order, which
  NumPy's `@` does not promise.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Literal, Self

import numpy as np

from beeline._lazy import cached_property
from beeline._types import AnyArray, Floats
from beeline.exceptions import LabelError, ParameterError
from beeline.kernels import absolute_sum, conjugate_sum, dot, kink_buckets, loss_along, loss_interval_cut, loss_sum

__all__ = ["Labels", "Loss", "LossLink", "RowLoss", "ScalarLoss", "Scope", "VectorLoss", "far_out", "parameters_of"]

Labels = Literal["binary", "real", "none", "classes", "levels", "sets", "vectors"]
LossLink = Literal["none", "logistic", "softmax", "cumulative", "exp"]
Scope = Literal["row", "group", "all"]

_DOMAINS: dict[Labels, str] = {
    "binary": "−1 and +1",
    "real": "finite numbers",
    "none": "anything: they are not looked at",
    "classes": "class numbers 0 … K−1",
    "levels": "level numbers 0 … K−1",
    "sets": "−1 and +1 for every label of every row",
    "vectors": "rows of finite numbers",
}


@cache
def parameters_of(kind: type[Loss]) -> Mapping[str, inspect.Parameter]:
    """What a loss is made with. To read a signature takes as long as a pass over a thousand rows, so it is kept."""
    return inspect.signature(kind).parameters


class Loss(ABC):
    """Base of every loss.

    Attributes
    ----------
    name, formula, summary
        The loss's name, its formula, and what it is for, in a line each. A loss of one's own that does not say its name
        is called as its class is: `StockLoss` is "stock_loss".
    scope
        What it looks at together: a `row`, the rows of a `group`, or `all` rows.
    free_extra
        Whether the parameters that the loss owns, if any, do not count in Ω.
    extra
        Those parameters, where it is evaluated; None where it owns none.
    extra_change
        By how much they change along a line, where it is evaluated along one.
    labels
        What the labels must be: `binary` −1 and +1, `real` numbers, `none` nothing at all, `classes` 0 … K−1, `levels`
        0 … K−1 in an order, `sets` a matrix of −1 and +1 (row i has label k or not), `vectors` a matrix of numbers.
    domain
        Which of those labels it takes, in words; None: all of them.
    link
        What a score means: `none`, a value or no more than a score; `exp`, the logarithm of a value; `logistic`,
        `softmax` and `cumulative`, what probabilities are made of.
    convex
        Whether the loss is convex in its scores. Only a convex one has an optimum that can be certified; one that says
        no is trained without a certificate, by the solvers that take it.
    smooth
        Whether the gradient is continuous. Of a loss of one's own that does not say so, it is found out before training
        begins.
    piecewise_linear
        Whether the loss consists of flat pieces. A scalar one then says by `kinks` where they meet.
    differences_only
        Whether only differences of scores matter, so that an intercept is determined by nothing.
    zero_is_optimal
        Whether no scores cost less than zero scores, for any labels: under any Ω zero weights are then an optimum.
    trusted
        Whether training may begin with a loss of one's own without a look at its numbers, as `check_loss` takes it.
    """

    name: ClassVar[str]
    formula: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    scope: ClassVar[Scope] = "row"
    free_extra: ClassVar[bool] = False
    extra: Floats | None = None
    extra_change: Floats | None = None
    compiled: ClassVar[str | None] = None
    labels: ClassVar[Labels]
    domain: ClassVar[str | None] = None
    link: ClassVar[LossLink] = "none"
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = True
    piecewise_linear: ClassVar[bool] = False
    differences_only: ClassVar[bool] = False
    zero_is_optimal: ClassVar[bool] = False
    trusted: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).strip("_").lower()

    def __repr__(self) -> str:
        shown = {
            key: f"<{len(value)} rows>" if isinstance(value, list) else repr(value)
            for key, value in self.settings.items()
        }
        settings = ", ".join(f"{key}={value}" for key, value in shown.items())
        return f"{type(self).__name__}({settings})"

    @property
    def settings(self) -> dict[str, Any]:
        """What it was made with, as plain JSON: enough to make it again."""
        given = {key: vars(self)[key] for key in parameters_of(type(self)) if key in vars(self)}
        plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in given.items()}
        return {key: value for key, value in plain.items() if isinstance(value, int | float | str | list)}

    @property
    def identity(self) -> str:
        """What tells the loss from others: how it prints, and a checksum of settings that are printed in short."""
        long = {name: value for name, value in self.settings.items() if isinstance(value, list)}
        if not long:
            return repr(self)
        return f"{self!r} {hashlib.sha256(json.dumps(long, sort_keys=True).encode()).hexdigest()}"

    @property
    def classifies(self) -> bool:
        """Whether a row's label is one of several classes."""
        return self.labels in ("binary", "classes", "levels")

    def allows(self, y: Floats) -> AnyArray:
        """Whether each of the labels is one that the loss can take."""
        if self.labels in ("binary", "sets"):
            allowed: AnyArray = np.abs(y) == 1
        elif self.labels in ("classes", "levels"):
            allowed = (y >= 0) & (y == np.floor(y))
        else:
            allowed = np.isfinite(y) if self.labels != "none" else np.ones(len(y), bool)
        return allowed

    def check_labels(self, y: Floats) -> None:
        """Raise `LabelError` with the first row whose label the loss cannot take."""
        if self.labels == "real" and type(self).allows is Loss.allows and math.isfinite(absolute_sum(y)):
            return  # of so many numbers, none is missing or infinite
        allowed = self.allows(y)
        if not allowed.all():
            row, *column = np.unravel_index(int(np.argmin(allowed)), allowed.shape)
            needed = self.domain or _DOMAINS[self.labels]
            raise LabelError(
                f"row {row} has the label {y[row, *column]:g}; the labels of {self.name!r} must be {needed}"
            )

    @cached_property
    def parameters(self) -> tuple[float, float]:
        """Its settings in the order in which it was given them, for the compiled form."""
        found = [value for value in vars(self).values() if isinstance(value, float)]
        return (found[0] if found else 0.0), (found[1] if len(found) > 1 else 0.0)

    # What an objective asks for. Only a loss of single rows has the derivatives and duals that some solvers need.

    @abstractmethod
    def sum(self, z: Floats, y: Floats, c: Floats) -> float:
        """The sum of all losses, with costs."""

    @abstractmethod
    def slopes(self, z: Floats, y: Floats, c: Floats) -> Floats:
        """The derivative of that sum by every score."""

    @abstractmethod
    def along(self, z: Floats, dz: Floats, t: float, y: Floats, c: Floats) -> tuple[float, float]:
        """The sum where scores are z + t·dz, and its derivative by t."""

    def n_scores(self, n_outputs: int) -> int:
        """How many scores a row has, for so many classes or columns of labels."""
        return 1

    def n_classes(self, n_scores: int) -> int:
        """How many classes so many scores a row are for."""
        return n_scores

    def n_extra(self, n_outputs: int) -> int:
        """How many parameters the loss owns beside the scores, for so many classes or columns of labels.

        Such a loss is convex in scores and parameters together, and sees them as `extra`. Its `value_and_grad` returns
        a third array, the derivatives by them: for every row, or for the group.
        """
        return 0

    def with_extra(self, extra: Floats, change: Floats | None = None) -> Self:
        """The loss with these parameters; along a line they change as its scores do."""
        other = copy.copy(self)
        other.extra, other.extra_change = extra, change
        return other

    def slopes_and_extra(self, z: Floats, y: Floats, c: Floats) -> tuple[Floats, Floats]:
        """(`slopes`, the derivatives of the sum by the parameters that the loss owns)."""
        raise AttributeError(f"{type(self).__name__} owns no parameters")

    @property
    def has_extra_curvatures(self) -> bool:
        """Whether the second derivatives by the parameters that the loss owns are known; mixed ones are zero then."""
        return False

    def derivatives_with_extra(self, z: Floats, y: Floats, c: Floats) -> tuple[Floats, tuple[Floats | float, ...]]:
        """(slopes of the rows, the sums that belong to them): the derivatives by the parameters that the loss owns.

        Where it `has_extra_curvatures`, also the second derivatives by them, and the sum of the losses.
        """
        slopes, by_extra = self.slopes_and_extra(z, y, c)
        return slopes, (by_extra,)

    def best_extra(self, slopes: Floats, curvatures: Floats, reach: float) -> Floats:
        """The parameters that the loss owns which are the best for a quadratic model of these derivatives."""
        raise AttributeError(f"{type(self).__name__} knows no curvature of its parameters")

    def in_order(self, extra: Floats) -> Floats:
        """The parameters that the loss owns as a model has them, at which no loss is larger."""
        return extra

    def settled_slopes(self, by_extra: Floats) -> Floats:
        """The derivatives by the parameters that the loss owns; where they meet in a kink, those nearest to zero."""
        return by_extra

    @property
    def has_curvature(self) -> bool:
        """Whether the loss is smooth and gives a curvature, as Newton's method needs."""
        return False

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """Σ ψ_i(a_i), ψ_i(a) = max_z −a·z − c_i·l(z, y_i): what dual variables cost; ∞ where a is not feasible."""
        raise AttributeError(f"{type(self).__name__} gives no conjugate")

    def dual_cost(self, a: Floats, y: Floats, c: Floats, scale: float = 1.0) -> float:
        """`conjugate_sum` of scale · a, compiled where it can be."""
        if self.compiled and self.has_conjugate:
            return conjugate_sum(self.compiled, self.parameters, a, scale, y, c)
        return self.conjugate_sum(scale * a, y, c)

    @property
    def has_conjugate(self) -> bool:
        """Whether the loss gives its conjugate, as a certified duality gap needs."""
        return type(self).conjugate_sum is not Loss.conjugate_sum

    def smoothed(self, width: float) -> Loss:
        """The loss with its kinks rounded off.

        It lies at most width/2 from the loss, and its slopes are feasible for the dual of the loss itself.
        """
        raise AttributeError(f"{type(self).__name__} has no smoothed form")

    @property
    def has_smoothed(self) -> bool:
        """Whether the loss has a smoothed form."""
        return type(self).smoothed is not Loss.smoothed

    @property
    def scales_with_labels(self) -> bool:
        """Whether scores differ on the scale on which labels do."""
        return self.labels in ("real", "vectors") and self.link == "none"

    def natural_width(self, spread: float) -> float:
        """A width over which to round kinks at first: the scale on which scores differ.

        `spread` is the standard deviation of the labels, which matters where `scales_with_labels`.
        """
        return spread or 1.0 if self.scales_with_labels else 1.0

    def with_classes(self, names: Sequence[object]) -> Loss:
        """The loss once the names of the classes are known, in their order; most losses only count them."""
        return self

    def best_constant(self, y: Floats, c: Floats) -> Floats | float | None:
        """The score of all rows alike, or K of them, with the least Σ c_i l(z, y_i); None where no formula gives it."""
        return None


class RowLoss(Loss):
    """A loss that is a sum over rows, each of them by itself.

    A loss of one's own needs `value_and_grad` and nothing else. With `curvature` Newton's method takes it too.
    """

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
        return float(np.sum(c * self._evaluated(z, y)[0]))

    def slopes(self, z: Floats, y: Floats, c: Floats) -> Floats:
        """c_i · dl/dz for every row."""
        if self.compiled:
            slopes = np.empty_like(z)
            loss_sum(self.compiled, self.parameters, z, y, c, slopes, None)
            return slopes
        return _times(c, self._evaluated(z, y)[1])

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
        values, slopes = self._evaluated(z, y)
        return float(np.sum(c * values)), _times(c, slopes), _times(c, self.curvature(z, y))

    def along(self, z: Floats, dz: Floats, t: float, y: Floats, c: Floats) -> tuple[float, float]:
        """Σ c_i l(z_i + t·dz_i, y_i) and its derivative by t."""
        if self.compiled:
            return loss_along(self.compiled, self.parameters, z, dz, t, y, c)
        with far_out():  # a step that goes too far is not taken
            if self.extra is not None and self.extra_change is not None:
                return self._along_with_extra(z + t * dz, dz, t, y, c)
            values, slopes = self.value_and_grad(z + t * dz, y)
            return float(np.sum(c * values)), float(np.sum(_times(c, slopes) * dz))

    def _along_with_extra(self, z: Floats, dz: Floats, t: float, y: Floats, c: Floats) -> tuple[float, float]:
        """`along` where the loss's own parameters move too; z has moved already."""
        assert self.extra is not None
        assert self.extra_change is not None
        values, slopes, by_extra = self.with_extra(self.extra + t * self.extra_change).value_and_grad(z, y)  # type: ignore[misc]
        slope = float(np.sum(_times(c, slopes) * dz)) + dot(_sum_rows(c, by_extra), self.extra_change)
        return float(np.sum(c * values)), slope

    def slopes_and_extra(self, z: Floats, y: Floats, c: Floats) -> tuple[Floats, Floats]:
        """(`slopes`, the derivatives of the sum by the parameters that the loss owns)."""
        with far_out():
            _, slopes, by_extra = self.value_and_grad(z, y)  # type: ignore[misc]
            return _times(c, slopes), _sum_rows(c, by_extra)

    def _evaluated(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """`value_and_grad`, which may be infinite but has to be a number."""
        with far_out():
            values, slopes = self.value_and_grad(z, y)[:2]
            suspicious = math.isnan(float(np.sum(values))) or math.isnan(float(np.sum(slopes)))
        if suspicious:
            wrong = np.isnan(values) | np.isnan(slopes).reshape(len(values), -1).any(axis=1)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ParameterError(
                    f"{self!r} returns {values[row]} with the slope {slopes[row]} at the score {z[row]} and the label "
                    f"{y[row]}; it must be a number at every score",
                    parameter="loss",
                )
        return values, slopes


class ScalarLoss(RowLoss):
    """A loss of one score and one label a row; its `curvature` is d²l/dz².

    Unless it says otherwise, labels are numbers. A loss of two classes has `labels = "binary"`, and sees −1 and +1.
    """

    labels: ClassVar[Labels] = "real"

    def sublevel(self, y: Floats, value: float) -> tuple[Floats, Floats]:
        """Between which scores the loss of each row is at most some value, 0 or more (I4).

        Only losses that are zero over an interval say so: rows whose scores lie there do not matter to the weights.
        """
        raise AttributeError(f"{type(self).__name__} does not say where it is at most {value:g}")

    def lets_go(self, z: Floats, y: Floats) -> AnyArray | None:
        """Whether each row is where the loss is robust, and pulls less than by least squares.

        None: no part of the loss is more robust than another.
        """
        return None

    def kinks(self, y: Floats) -> list[tuple[Floats, float]]:
        """Where the slope of a piecewise linear loss jumps, and by how much.

        Pairs of (the scores, one a row, at which it does; the jump), from small scores to large ones. Along z + t·dz,
        row i passes its kink at t = (scores_i − z_i)/dz_i, where the sum's derivative by t grows by c_i·jump·|dz_i|.
        """
        raise AttributeError(f"{type(self).__name__} is not said to be piecewise linear")

    def kink_histogram(
        self, z: Floats, dz: Floats, y: Floats, c: Floats, between: tuple[float, float], buckets: int
    ) -> tuple[float, Floats, AnyArray]:
        """How Σ c_i l(z_i + t·dz_i, y_i) bends between two times, in so many equal buckets, at most 254.

        c may be one number for all rows.

        Returns
        -------
        The derivative by t at the end, by how much it grows in each bucket, and the bucket, counted from 1, in which
        each row passes each of its kinks: a row of numbers for every kink.
        """
        kinks = self.kinks(y)
        slope, jumps, marks = 0.0, np.zeros(buckets), np.empty((len(kinks), len(z)), dtype=np.uint8)
        for k, (scores, jump) in enumerate(kinks):
            sums = np.empty(buckets)
            name = self.compiled if self.compiled and k == 0 else ""
            slope += kink_buckets(name, self.parameters, z, dz, y, c, scores, between, sums, marks[k])
            jumps += jump * sums
        return slope if self.compiled else self.along(z, dz, between[1], y, c)[1], jumps, marks

    def kinks_in_bucket(
        self, marks: AnyArray, z: Floats, dz: Floats, y: Floats, c: Floats, bucket: int
    ) -> tuple[Floats, Floats]:
        """(the times at which rows pass kinks in a bucket, counted from 0; by how much the derivative grows at each).

        The marks are those of `kink_histogram`.
        """
        times, jumps = [], []
        for (scores, jump), marked in zip(self.kinks(y), marks, strict=True):
            rows = np.flatnonzero(marked == bucket + 1)
            along = dz[rows]
            times.append((scores[rows] - z[rows]) / along)
            jumps.append(jump * (c if len(c) == 1 else c[rows]) * np.abs(along))
        return np.concatenate(times), np.concatenate(jumps)

    def interval_cut(
        self, z: Floats, dz: Floats, times: tuple[float, float, float], y: Floats, c: Floats
    ) -> tuple[float, float, float, float]:
        """A step along a line, and a plane below the losses that suits an interval of it.

        `times` are (where the interval begins, t, where it ends). The plane is made of one line a row, which lies below
        c_i·l: a mean of the tangents at both ends, so that its slope is that of the chord between them. For a kink on
        the way that is the mean of all tangents there are on it.

        z becomes z + t·dz, and dz the slopes of the lines: new memory would cost as much time as the step itself. c may
        be one number for all rows.

        Returns
        -------
        Σ c_i l at z + t·dz; the sum of what the lines are at zero; and the sizes of the numbers that this is a sum of,
        and of those that the slopes are sums of, to which their rounding is relative.
        """
        if self.compiled:
            return loss_interval_cut(self.compiled, self.parameters, z, dz, times, y, c)
        left, moved, right = (z + t * dz for t in times)
        (low, falls), (high, rises) = self._evaluated(left, y), self._evaluated(right, y)
        room = (rises - falls) * (right - left)
        share = np.divide(high - low - falls * (right - left), room, out=np.zeros_like(z), where=room > 0).clip(0, 1)
        offsets = (1 - share) * (low - falls * left) + share * (high - rises * right)
        terms = (1 - share) * (np.abs(low) + np.abs(falls * left)) + share * (np.abs(high) + np.abs(rises * right))
        z[:], dz[:] = moved, c * (falls + share * (rises - falls))
        sums = (self._evaluated(moved, y)[0], offsets, terms, np.abs(falls) + np.abs(rises))
        value, offset, size, slopes = (float(np.sum(c * of)) for of in sums)
        return value, offset, size, slopes


class VectorLoss(RowLoss):
    """A loss of K scores a row.

    Unless it says otherwise, labels are classes, of which it sees the numbers 0 … K−1.

    Its `curvature` is a matrix h of shape (n, K) that stands for d²l/dz² = diag(h_i) − h_i h_iᵀ/Σ_k h_ik: the Hessian
    of a softmax with probabilities h. A loss whose Hessians have another form says so by the three methods below, and
    its h may be whatever suits them, with one row a row. What a loss of one's own makes of its labels is its own
    business; it only sees them beside the scores.

    Attributes
    ----------
    shift_invariant
        Whether the same number added to all scores of a row changes nothing.
    """

    labels: ClassVar[Labels] = "classes"
    shift_invariant: bool = False

    def n_scores(self, n_outputs: int) -> int:
        """One for each class, or for each column of labels."""
        return n_outputs

    # Where scores are not those of classes, as in a tree, what they come to for each class, which is all a model keeps.

    @property
    def class_loss(self) -> VectorLoss:
        """The loss of the scores of classes."""
        return self

    def to_classes(self, columns: Floats) -> Floats:
        """Columns of scores, or of weights, for each class, from those that the loss sees."""
        return columns

    def from_classes(self, columns: Floats) -> Floats:
        """Columns that the loss sees, of those that come to these for each class."""
        return columns

    def slopes_from_classes(self, slopes: Floats) -> Floats:
        """Slopes along the scores that the loss sees, from those along the scores of classes; a row each."""
        return slopes

    @property
    def output_loss(self) -> ScalarLoss | None:
        """The loss of one output where those have nothing to do with each other; None where they have."""
        return None

    def check_outputs(self, n_outputs: int) -> None:
        """Raise `ParameterError` when the settings do not fit so many scores a row."""

    def hessian_products(self, h: Floats, u: Floats) -> Floats:
        """The products H_i u_i of every row's Hessian with a row of u."""
        totals = h.sum(axis=1, keepdims=True)
        weighted = h * u
        mean = np.divide(weighted.sum(axis=1, keepdims=True), totals, out=np.zeros_like(totals), where=totals > 0)
        products: Floats = weighted - h * mean
        return products

    def curvature_diagonals(self, h: Floats) -> Floats:
        """The diagonals of all rows' Hessians."""
        totals = h.sum(axis=1, keepdims=True)
        diagonals: Floats = h - h * np.divide(h, totals, out=np.zeros_like(h), where=totals > 0)
        return diagonals

    def curvature_total(self, h: Floats) -> Floats:
        """Σ_i H_i, of shape (K, K)."""
        totals = h.sum(axis=1, keepdims=True)
        shares = np.divide(h, totals, out=np.zeros_like(h), where=totals > 0)
        total: Floats = np.diag(h.sum(axis=0)) - np.einsum("ij,ik->jk", h, shares)
        return total

    @property
    def has_softmax_curvature(self) -> bool:
        """Whether Hessians have the form of a softmax, for which there are kernels."""
        return type(self).hessian_products is VectorLoss.hessian_products


def far_out() -> np.errstate:
    """Numbers too large for doubles become infinite without a warning."""
    return np.errstate(over="ignore", invalid="ignore")


def _sum_rows(c: Floats, rows: Floats) -> Floats:
    """Σ c_i · row i."""
    total: Floats = np.einsum("i,ij->j", c, rows)
    return total


def _times(c: Floats, rows: Floats) -> Floats:
    """c_i times row i of a vector or a matrix."""
    return c * rows if rows.ndim == 1 else c[:, None] * rows
