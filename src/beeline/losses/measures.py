"""Measures that are no sums over rows, bounded from above by margins (B12).

Each is l(z) = max over labels y′ of Δ(y′, y) + (1/W)·Σ w_i·½(y′_i − y_i)·z_i, with W = Σ w_i: what the labels y′ get
wrong, and by how much scores prefer them to y. It is convex, and at least Δ at the labels that scores give. The scores'
part is a mean over rows: with the error rate as Δ it would be the mean of the hinge. In Joachims' form (2005), whose
implementation SVMperf measures in percent and trades off by c, the same model has C = 100·c.

A row of weight w stands for w/u copies, which y′ may label differently, where all weights are whole multiples of u;
else for any parts of it. So equal weights are as none, and a weight of 2 beside weights of 1 is the row given twice.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from beeline._sentences import Argument
from beeline._types import AnyArray, Floats
from beeline._words import count
from beeline.exceptions import ParameterError
from beeline.kernels import common_unit, f_beta
from beeline.losses.settings import at_least_one, positive
from beeline.losses.thresholds import threshold_for
from beeline.losses.two_classes import TwoClassLoss

__all__ = ["BalancedError", "BreakEven", "FBeta", "Precision", "Recall"]


class FBeta(TwoClassLoss):
    """1 − F_β, with F_β = (1 + β²)·TP/(β²·n₊ + TP + FP): TP positive rows and FP negative rows are called positive.

    F_1 is the harmonic mean of precision and recall; β > 1 minds recall more, β < 1 precision. For the number of
    positive rows that y′ gets right, F_β is convex in the number of negative rows that it gets wrong: rows are sorted
    once, and one walk over the positive rows finds the best y′, O(m log m) in all.

    Parameters
    ----------
    beta
        β, positive.
    """

    name = "f_beta"
    formula = "max over y′ of 1 − F_β(y′) + mean of ½(y′ − y)z"
    summary = "precision and recall together: F1, or another F_β"

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = positive("beta", beta)

    @property
    def measure(self) -> str:
        """F1, or another."""
        return f"f{self.beta:g}"

    def fill(self, z: Floats, y: Floats, c: Floats, slopes: Floats) -> tuple[float, float]:
        """By the kernel."""
        return f_beta(z, y, c, self.beta, slopes)

    def measured(self, z: Floats, y: Floats, c: Floats) -> float:
        """F_β of the labels that scores give."""
        up, called = y > 0, z > 0
        right, square = float(c[up & called].sum()), self.beta**2
        most = square * float(c[up].sum()) + float(c[called].sum())
        return (1 + square) * right / most if most > 0 else np.nan


class BalancedError(TwoClassLoss):
    """½(FN/n₊ + FP/n₋): the mean of both classes' parts that are told wrongly.

    Unlike for the other measures, the scores' part is a mean over rows in which both classes count the same: the sum of
    v_i·½(y′_i − y_i)·z_i with v_i = w_i/(2·n_i), n_i the weight of the row's class. By the mean over all rows a rare
    positive row would want a score of W/(2·n₊), and other rows would pay for it. Every row decides for itself: the loss
    is Σ v_i·max(0, 1 − y_i·z_i), a support vector machine with balanced classes. It is one of all rows since it knows
    what the classes weigh, whatever rows a fold leaves.
    """

    name = "balanced_error"
    class_weights_cancel = True
    formula = "½·mean over y = 1 of max(0, 1 − z) + ½·mean over y = −1 of max(0, 1 + z)"
    summary = "the mean error of both classes"

    @property
    def measure(self) -> str:
        """What the error lacks of 1."""
        return "balanced_accuracy"

    def fill(self, z: Floats, y: Floats, c: Floats, slopes: Floats) -> tuple[float, float]:
        """Row by row."""
        slopes[:] = 0.0
        rows = _Rows.of(z, y, c)
        if rows.lacks_a_class or not np.isfinite(rows.sum_of_scores):
            return (0.0 if rows.lacks_a_class else np.nan), rows.cost
        signs = np.where(rows.up, 1.0, -1.0)
        parts = rows.c * np.where(rows.up, 0.5 / rows.positive, 0.5 / rows.negative)
        short = 1 - signs * rows.z
        slopes[rows.here] = np.where(short > 0, -signs * parts * rows.cost, 0.0)
        return float(np.sum(np.where(short > 0, parts * short, 0.0))), rows.cost

    def measured(self, z: Floats, y: Floats, c: Floats) -> float:
        """The mean of both classes' parts that are told rightly."""
        up, called = y > 0, z > 0
        if up.all() or not up.any():
            return np.nan
        return 0.5 * float(c[up & called].sum() / c[up].sum() + c[~up & ~called].sum() / c[~up].sum())


class _Called(TwoClassLoss):
    """A measure of the rows with the highest scores, of a weight that is known: y′ calls as many positive.

    Only differences of scores matter.
    """

    differences_only = True

    @abstractmethod
    def _called(self, rows: _Rows) -> float:
        """The weight κ of the rows that are called positive."""

    @abstractmethod
    def _gain(self, rows: _Rows, called: float) -> float:
        """What a positive row among those adds to the measure, for its weight."""

    @abstractmethod
    def _best(self, rows: _Rows) -> tuple[float, Floats]:
        """(l, the changes of the labels: the slope of every row, times W)."""

    def fill(self, z: Floats, y: Floats, c: Floats, slopes: Floats) -> tuple[float, float]:
        """The best labels with so many positive rows."""
        slopes[:] = 0.0
        rows = _Rows.of(z, y, c)
        if rows.lacks_a_class or not np.isfinite(rows.sum_of_scores):
            return (0.0 if rows.lacks_a_class else np.nan), rows.cost
        value, change = self._best(rows)
        slopes[rows.here] = change * (rows.cost / rows.total)
        return max(value, 0.0), rows.cost

    def measured(self, z: Floats, y: Floats, c: Floats) -> float:
        """The measure of the rows with the highest scores; of rows with the same score, the part that is needed."""
        rows = _Rows.of(z, y, c)
        if rows.lacks_a_class:
            return np.nan
        called = min(self._called(rows), rows.total)
        score = rows.z[_take(rows.z, rows, called)[1]]
        above, tied = rows.z > score, rows.z == score
        part = (called - float(rows.c[above].sum())) / float(rows.c[tied].sum())
        right = float(rows.c[above & rows.up].sum()) + part * float(rows.c[tied & rows.up].sum())
        return self._gain(rows, called) * right

    def threshold(self, z: Floats, y: Floats, c: Floats) -> float:
        """Where as many rows lie above it as the measure looks at."""
        rows = _Rows.of(z, y, c)
        return threshold_for(rows.z, rows.c, min(self._called(rows), rows.total))


class BreakEven(_Called):
    """1 − TP/n₊ with n₊ rows called positive: precision is what recall is then, the break-even point.

    The best y′ takes the rows with the highest scores, those of positive rows less what they add to the measure.
    """

    name = "break_even"
    formula = "max over y′ of 1 − TP/n₊ + mean of ½(y′ − y)z, n₊ rows called positive"
    summary = "precision where it equals recall"

    @property
    def measure(self) -> str:
        """The point itself."""
        return "break_even"

    def _called(self, rows: _Rows) -> float:
        return rows.positive

    def _gain(self, rows: _Rows, called: float) -> float:
        return 1 / rows.positive

    def _best(self, rows: _Rows) -> tuple[float, Floats]:
        gain = 1 / rows.positive
        taken, last = _take(rows.z / rows.total - gain * rows.up, rows, rows.positive)
        change = taken - rows.c * rows.up
        scores = float(np.sum(change * (rows.z - rows.z[last]))) / rows.total
        return 1 - gain * float(np.sum(taken[rows.up])) + scores, change


class _AtK(_Called):
    """A measure of the k rows with the highest scores, k of the lightest where rows have weights.

    y itself may have another number of positive rows than k. So what a mistake costs, of which y′ makes r = min(k, n₊)
    − TP, is by how much the mean score of the negative rows that it calls positive is above that of the positive rows
    that it misses: the scores' part is r times that, by W (Kar, Narasimhan and Jain 2015, for k < n₊; with k = n₊ it is
    the form of all other measures). Held against y, as printed in B12, the loss would be no bound, and −∞ where all
    positive rows score high. For each TP the best rows are those with the highest scores: O(m + k log k).
    """

    instead = "the loss 'roc_area' with a small max_fpr, which looks at the first rows too"

    def __init__(self, k: int = 10) -> None:
        self.k = at_least_one("k", k)

    def of_part(self, part: float) -> Self:
        """As many fewer rows, but one at least."""
        return type(self)(max(1, round(self.k * part)))

    @property
    def measure(self) -> str:
        """With its k."""
        return f"{self.name}@{self.k}"

    def check_counts(self, positive: int, rows: int, name: object) -> None:
        """There must be k rows."""
        if self.k > rows:
            raise ParameterError(
                Argument("k"), f" = {self.k} rows are to be looked at, and there are {count(rows, 'row')}; take fewer"
            )

    def _unit(self, rows: _Rows) -> float:
        unit = rows.cost if rows.equal else common_unit(rows.c)
        if not unit > 0:
            raise ParameterError(
                f"{self.name} counts ",
                Argument("k"),
                " rows, and the weights are not whole multiples of one weight; give weights that are, such as whole "
                "numbers, or leave them out",
            )
        return unit

    def _called(self, rows: _Rows) -> float:
        return self.k * self._unit(rows)

    def _best(self, rows: _Rows) -> tuple[float, Floats]:
        unit = self._unit(rows)
        called = min(self.k * unit, rows.total)
        up, down = _Highest(rows, rows.up, self.k), _Highest(rows, ~rows.up, self.k)
        copies = np.arange(round(max(0.0, called - rows.negative) / unit), round(min(called, rows.positive) / unit) + 1)
        right: Floats = unit * copies.astype(np.float64)
        wrong, missed = called - right, rows.positive - right
        mistakes = min(called, rows.positive) - right
        nothing = mistakes <= 0.5 * unit
        mistakes[nothing], wrong[nothing], missed[nothing] = 0.0, 1.0, 1.0
        above = down.scores(wrong) / wrong - (up.total - up.scores(right)) / missed
        values = 1 - self._gain(rows, called) * right + np.where(nothing, 0.0, mistakes * above) / rows.total
        t = int(np.argmax(values))
        change = np.zeros(len(rows.z))
        if not nothing[t]:
            change[rows.up] = rows.c[rows.up]
            change[up.rows] -= up.parts(right[t])
            change *= -mistakes[t] / missed[t]
            change[down.rows] = mistakes[t] / wrong[t] * down.parts(wrong[t])
        return float(values[t]), change


class _Highest:
    """The k rows of a class with the highest scores, and sums over them; scores are taken from the highest of all."""

    def __init__(self, rows: _Rows, of: AnyArray, k: int) -> None:
        some = np.flatnonzero(of)
        z = rows.z[some] - rows.z.max()
        self.total = float(np.sum(rows.c[some] * z))
        first = np.argpartition(-z, k - 1)[:k] if k < len(some) else np.arange(len(some))
        first = first[np.argsort(-z[first], kind="stable")]
        self.rows = some[first]
        self._weights = np.append(0.0, np.cumsum(rows.c[self.rows]))
        self._sums = np.append(0.0, np.cumsum(rows.c[self.rows] * z[first]))

    def scores(self, weight: Floats) -> Floats:
        """The sums of the highest scores, of so much weight."""
        sums: Floats = np.interp(weight, self._weights, self._sums)
        return sums

    def parts(self, weight: float) -> Floats:
        """How much of each row's weight that is."""
        parts: Floats = np.diff(np.minimum(self._weights, weight))
        return parts


class Precision(_AtK):
    """1 − TP/k with k rows called positive: precision at k, what the first k rows of a list are worth.

    Parameters
    ----------
    k
        How many rows; no more than there are positive ones.
    """

    name = "precision"
    formula = "max over y′ of 1 − TP/k + (k − TP)·(z̄ of FP − z̄ of FN)/m, k rows called positive"
    summary = "how many of the k rows with the highest scores are positive"

    def check_counts(self, positive: int, rows: int, name: object) -> None:
        """There must be k positive rows."""
        super().check_counts(positive, rows, name)
        if self.k > positive:
            raise ParameterError(
                Argument("k"),
                f" = {self.k} rows cannot all be of the class {name}, of which there "
                f"{'is' if positive == 1 else 'are'} {count(positive, 'row')}; take at most {positive}",
            )

    def _gain(self, rows: _Rows, called: float) -> float:
        return 1 / called


class Recall(_AtK):
    """1 − TP/n₊ with k rows called positive: recall at k, how many of the positive rows are among the first k.

    Parameters
    ----------
    k
        How many rows.
    """

    name = "recall"
    formula = "max over y′ of 1 − TP/n₊ + (min(k, n₊) − TP)·(z̄ of FP − z̄ of FN)/m, k rows called positive"
    summary = "how many of the positive rows are among the k with the highest scores"

    def _gain(self, rows: _Rows, called: float) -> float:
        return 1 / rows.positive


class _Rows:
    """The rows that are present, and what they weigh."""

    def __init__(self, z: Floats, up: AnyArray, c: Floats, here: Any) -> None:  # noqa: ANN401
        self.z, self.up, self.c, self.here = z, up, c, here
        self.equal = len(c) > 0 and bool(c.min() == c.max())
        n, n_up = len(c), int(np.count_nonzero(up))
        first = float(c[0]) if self.equal else 0.0
        self.positive = first * n_up if self.equal else float(c[up].sum())
        self.negative = first * (n - n_up) if self.equal else float(c[~up].sum())
        self.total = self.positive + self.negative
        self.cost = first if self.equal else self.total / max(n, 1)
        self.lacks_a_class = n_up in (0, n)
        self.sum_of_scores = float(np.sum(z))

    @classmethod
    def of(cls, z: Floats, y: Floats, c: Floats) -> _Rows:
        here = c > 0
        if here.all():
            return cls(z, y > 0, c, slice(None))
        return cls(z[here], y[here] > 0, c[here], here)


def _take(worth: Floats, rows: _Rows, weight: float) -> tuple[Floats, int]:
    """(how much of each row's weight is taken so that what is taken is worth most, the last row that is)."""
    n = len(worth)
    if rows.equal:
        k = min(max(round(weight / rows.cost), 1), n)
        if abs(k - weight / rows.cost) <= 1e-9 * n:
            order = np.argpartition(-worth, k - 1)
            taken = np.zeros(n)
            taken[order[:k]] = rows.cost
            return taken, int(order[k - 1])
    order = np.argsort(-worth, kind="stable")
    taken = np.empty(n)
    taken[order] = np.diff(np.minimum(np.cumsum(rows.c[order]), weight), prepend=0.0)
    return taken, int(order[min(int(np.searchsorted(np.cumsum(rows.c[order]), weight * (1 - 1e-12))), n - 1)])
