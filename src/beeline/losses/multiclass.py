"""Losses of a multi-class classifier: K scores a row, and the number 0 … K−1 of the right class as its label."""

from __future__ import annotations

import numpy as np

from beeline._types import Floats, Ints
from beeline.losses.base import VectorLoss
from beeline.losses.numeric import xlogy

__all__ = [
    "ClassLoss",
    "CrammerSinger",
    "MulticlassPerceptron",
    "Softmax",
    "WestonWatkins",
    "label_indices",
    "shares",
    "unit_margins",
]

_ROUNDING = 1e-14  # of a cost, in each share of it


class ClassLoss(VectorLoss):
    """A loss of which only the differences between the scores of classes matter."""

    labels = "classes"
    shift_invariant = True


class Softmax(ClassLoss):
    """log Σ_k exp(z_k) − z_y: multinomial logistic regression (row 16 of B's table)."""

    name = "softmax"
    formula = "log Σ_k exp(z_k) − z_y"
    summary = "multinomial logistic regression"
    link = "softmax"
    compiled = "softmax"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and gradient p − e_y, without overflow, and with all digits where the right class is nearly certain."""
        rows, right, most = np.arange(len(z)), label_indices(y), z.argmax(axis=1)
        powers = np.exp(z - z[rows, most, None])
        powers[rows, most] = 0
        rest = powers.sum(axis=1)  # of all but the most likely class, whose power is 1
        values = np.log1p(rest) + (z[rows, most] - z[rows, right])
        powers[rows, most] = 1
        p = powers / (1 + rest)[:, None]
        p[rows, right] = np.where(most == right, -rest / (1 + rest), p[rows, right] - 1)
        return values, p

    def curvature(self, z: Floats, y: Floats) -> Floats:
        """The probabilities p: the Hessian is diag(p) − ppᵀ."""
        powers: Floats = np.exp(z - z.max(axis=1, keepdims=True))
        powers /= powers.sum(axis=1, keepdims=True)
        return powers

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """Σ_k β_k log(β_k/c) with β = c·e_y − a, which must be c times probabilities."""
        beta = shares(a, y, c)
        if beta is None:
            return np.inf
        total = np.where(c > 0, c, 1)
        each = xlogy(beta, beta / total[:, None])
        # What the right class leaves of c is known by itself, and may be far smaller than the rounding of c.
        rows, right = np.arange(len(a)), label_indices(y)
        rest, most = a[rows, right], beta[rows, right]
        each[rows, right] = np.where(rest < most, most * np.log1p(-np.minimum(rest, most) / total), each[rows, right])
        return float(np.sum(each))

    def best_constant(self, y: Floats, c: Floats) -> Floats | None:
        """The logarithms of what the classes cost, with a mean of zero."""
        totals = np.bincount(label_indices(y), c)
        if not totals.min(initial=np.inf) > 0:
            return None
        logs: Floats = np.log(totals)
        centred: Floats = logs - logs.mean()
        return centred


class CrammerSinger(ClassLoss):
    """max_k (z_k + [k ≠ y]) − z_y: the hinge of the right class against the best other one (row 14 of B's table)."""

    name = "crammer_singer"
    formula = "max_k (z_k + [k ≠ y]) − z_y"
    summary = "the multi-class hinge: the right class against the best other one"
    smooth = False
    piecewise_linear = True
    compiled = "crammer_singer"

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and a subgradient e_k − e_y for the first of the largest k; 0 at the kink of the right class."""
        rows, right = np.arange(len(z)), label_indices(y)
        above = z - z[rows, right, None] + 1
        above[rows, right] = 0
        # The right class comes first where others only equal it.
        most = np.where(above.max(axis=1) > 0, above.argmax(axis=1), right)
        slopes = np.zeros_like(z)
        slopes[rows, most] += 1
        slopes[rows, right] -= 1
        return above[rows, most], slopes

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−a_y, where c·e_y − a must be c times a point of the simplex."""
        if shares(a, y, c) is None:
            return np.inf
        return -float(a[np.arange(len(a)), label_indices(y)].sum())

    def best_constant(self, y: Floats, c: Floats) -> Floats | None:
        """A margin of 1 for a class that costs more than all others together, and else none.

        A row of class j and one of class k lose at least 2 together, whatever the scores are: 1 + b_k − b_j and
        1 + b_j − b_k. Without such a class all rows can be paired so; with one, those of the others with its own.
        """
        totals = np.bincount(label_indices(y), c)
        if not len(totals):
            return None
        ahead = (2 * totals > totals.sum()).astype(np.float64)
        centred: Floats = ahead - ahead.mean()
        return centred

    def smoothed(self, width: float) -> VectorLoss:
        """Rounded by entropy: a softmax with a margin."""
        from beeline.losses.soft_margins import SoftMargin

        return SoftMargin(unit_margins, width)


def _no_margins(z: Floats, y: Floats) -> Floats:
    return np.zeros_like(z)


class MulticlassPerceptron(ClassLoss):
    """max_k z_k − z_y: the perceptron of several classes (M2).

    Where other classes only equal the right one, the subgradient is that of the first of them: at zero weights a method
    of small steps would otherwise never begin (M9). Zero weights are optimal under any regularizer.
    """

    name = "multiclass_perceptron"
    formula = "max_k z_k − z_y"
    summary = "the perceptron of several classes; zero weights are an optimum"
    smooth = False
    piecewise_linear = True
    zero_is_optimal = True

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and a subgradient e_k − e_y for the first of the largest k ≠ y."""
        rows, right = np.arange(len(z)), label_indices(y)
        above = z - z[rows, right, None]
        above[rows, right] = -np.inf
        most = np.where(above.max(axis=1) >= 0, above.argmax(axis=1), right)
        slopes = np.zeros_like(z)
        slopes[rows, most] += 1
        slopes[rows, right] -= 1
        return np.maximum(above.max(axis=1), 0), slopes

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """0, where c·e_y − a must be c times a point of the simplex."""
        return np.inf if shares(a, y, c) is None else 0.0

    def smoothed(self, width: float) -> VectorLoss:
        """Rounded by entropy: a softmax."""
        from beeline.losses.soft_margins import SoftMargin

        return SoftMargin(_no_margins, width)


class WestonWatkins(ClassLoss):
    """Σ_{k≠y} max(0, 1 + z_k − z_y): a hinge against every other class (Weston & Watkins 1999)."""

    name = "weston_watkins"
    formula = "Σ_{k≠y} max(0, 1 + z_k − z_y)"
    summary = "a multi-class hinge: the right class against each other one"
    smooth = False
    piecewise_linear = True

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Value and a subgradient, which leaves out classes at their kink."""
        rows, right = np.arange(len(z)), label_indices(y)
        above = np.maximum(z - z[rows, right, None] + 1, 0)
        above[rows, right] = 0
        slopes = (above > 0).astype(np.float64)
        slopes[rows, right] = -slopes.sum(axis=1)
        return above.sum(axis=1), slopes

    def conjugate_sum(self, a: Floats, y: Floats, c: Floats) -> float:
        """−a_y, where −a_k lies in [0, c] for the others, and Σ_k a_k = 0."""
        rows, right = np.arange(len(a)), label_indices(y)
        others = -a
        others[rows, right] = 0
        slack = _ROUNDING * c
        if np.any((others < -slack[:, None]) | (others > (c + slack)[:, None])):
            return np.inf
        if np.any(np.abs(a.sum(axis=1)) > a.shape[1] ** 2 * slack):
            return np.inf
        return -float(a[rows, right].sum())

    def smoothed(self, width: float) -> VectorLoss:
        """Each hinge rounded by entropy."""
        from beeline.losses.soft_margins import SoftWestonWatkins

        return SoftWestonWatkins(width)


def unit_margins(z: Floats, y: Floats) -> Floats:
    """Δ(y_i, k) = [k ≠ y_i]."""
    delta = np.ones_like(z)
    delta[np.arange(len(z)), label_indices(y)] = 0
    return delta


def label_indices(y: Floats) -> Ints:
    """Labels as indices."""
    return y.astype(np.int64)


def shares(a: Floats, y: Floats, c: Floats) -> Floats | None:
    """β = c·e_y − a, or None where it is not c times a point of the simplex, up to rounding.

    Sums of K numbers that came from scores meet c up to their rounding only; what lies below zero by no more is zero.
    """
    beta = -a
    beta[np.arange(len(a)), label_indices(y)] += c
    slack = _ROUNDING * c
    if np.any(beta < -slack[:, None]) or np.any(np.abs(a.sum(axis=1)) > a.shape[1] * slack):
        return None
    return np.maximum(beta, 0)
