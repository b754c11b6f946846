"""Measures of predictions, with weights: of classifiers, probabilities and regressions.

Conventions
-----------
- Class numbers are 0 … K−1; a weight of 2 means the same as having the row twice.
- Where a measure is not defined it is NaN: the ROC area of one class, R² of equal targets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline._words import count
from beeline.exceptions import DataError
from beeline.kernels import dot

__all__ = [
    "Curve",
    "Ranking",
    "accuracy",
    "auc",
    "average_precision",
    "balanced_error",
    "confusion",
    "f1",
    "f_beta",
    "hierarchical_f1",
    "hits_at",
    "level_mae",
    "log_loss",
    "mae",
    "mean_cost",
    "precision",
    "quadratic_kappa",
    "r2",
    "ranking",
    "ratios",
    "recall",
    "rmse",
]

Average = Literal["binary", "macro", "micro"]
_PIECE = 1 << 16  # scores that are ranked together


def accuracy(y: AnyArray, predicted: AnyArray, weights: Floats | None = None) -> float:
    """The part of the rows whose label is predicted; labels may be of any kind."""
    _check(y, predicted, weights)
    return _mean((y == predicted).astype(np.float64), weights)


def confusion(y: Ints, predicted: Ints, n_classes: int, weights: Floats | None = None) -> Floats:
    """How much weight of class i (row) was predicted as class j (column)."""
    _check(y, predicted, weights)
    cells = np.bincount(y * n_classes + predicted, weights, minlength=n_classes**2)
    return cells.astype(np.float64).reshape(n_classes, n_classes)


def precision(table: Floats, average: Average = "macro") -> float:
    """The part of what was predicted as a class that is of it, from a confusion table; averages as in `f1`."""
    return _averaged(np.diag(table), table.sum(axis=0), average)


def recall(table: Floats, average: Average = "macro") -> float:
    """The part of a class that was predicted as it, from a confusion table; averages as in `f1`."""
    return _averaged(np.diag(table), table.sum(axis=1), average)


def f1(table: Floats, average: Average = "macro") -> float:
    """F1 from a confusion table: the harmonic mean of precision and recall.

    Parameters
    ----------
    table
        As `confusion` gives it.
    average
        `binary`: of class 1. `macro`: the mean over the classes. `micro`: of all decisions together. A class without
        rows and predictions counts 0.
    """
    return _averaged(2 * np.diag(table), table.sum(axis=0) + table.sum(axis=1), average)


def f_beta(table: Floats, beta: float, average: Average = "macro") -> float:
    """F_β from a confusion table, (1 + β²)·hits/(β²·rows + predicted): recall counts β² times what precision does.

    Averages are as in `f1`, which is F_β for β = 1.
    """
    rows, predicted = table.sum(axis=1), table.sum(axis=0)
    return _averaged((1 + beta**2) * np.diag(table), beta**2 * rows + predicted, average)


def balanced_error(table: Floats) -> float:
    """The mean, over the classes that have rows, of the part that is predicted as another, from a confusion table."""
    rows = table.sum(axis=1)
    wrong = 1 - ratios(np.diag(table), rows)[rows > 0]
    return float(wrong.mean()) if len(wrong) else float("nan")


def mean_cost(table: Floats, costs: Floats) -> float:
    """The mean of what it costs to take class i for class j, Σ n_ij·c_ij/Σ n_ij, from a confusion table.

    With the distances of the classes in a tree it is the loss of that tree.
    """
    if costs.shape != table.shape:
        raise DataError(f"costs of shape {costs.shape} do not fit a confusion table of shape {table.shape}")
    total = float(table.sum())
    return float(np.sum(table * costs)) / total if total else float("nan")


def level_mae(table: Floats) -> float:
    """The mean number of levels between the predicted one and the right one, from a confusion table of levels."""
    levels = np.arange(len(table), dtype=np.float64)
    return mean_cost(table, np.abs(levels[:, None] - levels))


def quadratic_kappa(table: Floats) -> float:
    """Cohen's κ of levels, whose mistakes cost (i − j)²: 1 minus their mean cost as a part of what chance would cost.

    Chance has the same levels and the same predictions as often, and joins them at random. NaN where that costs
    nothing, as it does where all is of one level.
    """
    levels = np.arange(len(table), dtype=np.float64)
    costs = (levels[:, None] - levels) ** 2
    total = float(table.sum())
    by_chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / total if total else table
    expected = mean_cost(by_chance, costs)
    return 1 - mean_cost(table, costs) / expected if expected else float("nan")


def hierarchical_f1(table: Floats, ancestors: AnyArray) -> tuple[float, float, float]:
    """(precision, recall, F1) of classes and their ancestors in a tree, from a confusion table.

    Parameters
    ----------
    table
        As `confusion` gives it.
    ancestors
        A row for each class and a column for each node of the tree: whether the node is the class or above it. The root
        is usually left out: every class is below it. Precision is Σ |A_y ∩ A_ŷ|/Σ |A_ŷ| over the rows, recall
        Σ |A_y ∩ A_ŷ|/Σ |A_y| (Kiritchenko, Matwin & Famili 2005).
    """
    sets = np.asarray(ancestors, np.float64)
    if sets.ndim != 2 or len(sets) != len(table):
        raise DataError(
            f"ancestors of shape {sets.shape} do not fit {count(len(table), 'class')}: give each class a row"
        )
    sizes = sets.sum(axis=1)
    shared = np.sum(table * (sets @ sets.T), keepdims=True).reshape(1)
    predicted, rows = table.sum(axis=0) @ sizes, table.sum(axis=1) @ sizes
    found = (ratios(shared, np.array([among])) for among in (predicted, rows))
    p, r = (float(part[0]) for part in found)
    return p, r, 2 * p * r / (p + r) if p + r else 0.0


def hits_at(positive: AnyArray, z: Floats, k: float, weights: Floats | None = None) -> tuple[float, float]:
    """(how much weight of positive rows is among the k of the largest scores, how much there is in all).

    k counts weights: a row of weight 2 is two rows. Of rows with the same score each is as likely to be among the k,
    and what is expected counts.
    """
    _check(positive, z, weights)
    c = np.ones(len(z)) if weights is None else weights
    of_positive = np.where(positive, c, 0.0)
    scores, run = np.unique(-z, return_inverse=True)
    rows, hits = (np.append(0.0, np.cumsum(np.bincount(run, column, len(scores)))) for column in (c, of_positive))
    return float(np.interp(k, rows, hits)), float(hits[-1])


def ratios(hits: Floats, among: Floats) -> Floats:
    """How large a part each of the hits is; 0 where there is nothing to be part of."""
    return np.divide(hits, among, out=np.zeros(len(hits)), where=among > 0)


def _averaged(hits: Floats, among: Floats, average: Average) -> float:
    if average == "micro":
        return float(ratios(hits.sum(keepdims=True), among.sum(keepdims=True))[0])
    each = ratios(hits, among)
    return float(each[1] if average == "binary" else each.mean())


def auc(positive: AnyArray, z: Floats, weights: Floats | None = None) -> float:
    """The area under the ROC curve: how often a positive row scores above a negative one, ties counting half."""
    return ranking(positive, z, weights).area()


def average_precision(positive: AnyArray, z: Floats, weights: Floats | None = None) -> float:
    """The mean of the precision at each positive row's score: Σ (R_n − R_{n−1}) P_n over falling thresholds."""
    return ranking(positive, z, weights).average_precision()


def ranking(positive: AnyArray, z: Floats, weights: Floats | None = None) -> Ranking:
    """The rows in the order of their scores; `positive` marks those of the positive class."""
    _check(positive, z, weights)
    of_both = None if weights is None else (weights[positive], weights[~positive])
    return Ranking(z[positive], z[~positive], of_both)


class Curve(NamedTuple):
    """ROC and precision–recall curves at the same thresholds, from the largest to the smallest.

    A row counts as predicted positive where its score is at least the threshold.
    """

    thresholds: Floats
    false_positives: Floats
    recall: Floats
    precision: Floats


class Ranking:
    """The rows of two classes in the order of their scores.

    Cost: one sort of each class. Memory: without weights, none but the scores'; with weights, twice as much again.

    Parameters
    ----------
    positive, negative
        The scores of the positive and of the negative rows; without weights they are sorted in place.
    weights
        The weights of the positive and of the negative rows. None: every row counts once.
    """

    def __init__(self, positive: Floats, negative: Floats, weights: tuple[Floats, Floats] | None = None) -> None:
        self._positive = _SortedScores(positive, None if weights is None else weights[0])
        self._negative = _SortedScores(negative, None if weights is None else weights[1])

    def area(self) -> float:
        """The area under the ROC curve."""
        pairs = self._positive.total * self._negative.total
        if not pairs:
            return float("nan")
        below = self._negative.below
        return self._positive.sum(lambda z: 0.5 * (below(z, "left") + below(z, "right"))) / pairs

    def average_precision(self) -> float:
        """The mean, over the positive rows, of the precision at the score of the row."""
        if not self._positive.total:
            return float("nan")
        return self._positive.sum(lambda z: ratios(*self._at(z))) / self._positive.total

    def curve(self, most: int = 200) -> Curve:
        """Both curves at no more than `most` of their points, evenly spread over the rows of both classes."""
        some = np.concatenate([self._positive.spread(most // 2), self._negative.spread(most // 2)])
        thresholds = np.unique(some)[::-1]
        hits, found = self._at(thresholds)
        shares = [
            ratios(part, np.full(len(part), of.total))
            for part, of in ((found - hits, self._negative), (hits, self._positive))
        ]
        return Curve(thresholds, shares[0], shares[1], ratios(hits, found))

    def _at(self, z: Floats) -> tuple[Floats, Floats]:
        """How much weight of positive rows, and of all rows, has at least these scores."""
        hits = self._positive.total - self._positive.below(z, "left")
        return hits, hits + (self._negative.total - self._negative.below(z, "left"))


class _SortedScores:
    """Scores in rising order, with the weights that lie below a score."""

    def __init__(self, scores: Floats, weights: Floats | None) -> None:
        self._sums: Floats | None = None
        self._weights: Floats | None = None
        if weights is None:
            scores.sort()
            self._scores, self.total = scores, float(len(scores))
            return
        order = np.argsort(scores, kind="stable")
        self._scores, self._weights = scores[order], weights[order]
        self._sums = np.concatenate([[0.0], np.cumsum(self._weights)])
        self.total = float(self._sums[-1])

    def below(self, z: Floats, side: Literal["left", "right"]) -> Floats:
        """The weight of scores below z; `right` counts those at z too."""
        at = np.searchsorted(self._scores, z, side=side)
        return at.astype(np.float64) if self._sums is None else self._sums[at]

    def sum(self, value: Callable[[Floats], Floats]) -> float:
        """Σ weight · value(score), a piece of the scores at a time."""
        total = 0.0
        for start in range(0, len(self._scores), _PIECE):
            piece = slice(start, start + _PIECE)
            values = value(self._scores[piece])
            total += float(values.sum()) if self._weights is None else dot(values, self._weights[piece])
        return total

    def spread(self, most: int) -> Floats:
        """At most so many of the scores, evenly spread, the smallest and the largest among them."""
        n = len(self._scores)
        return self._scores if n <= most else self._scores[np.linspace(0, n - 1, most).round().astype(np.int64)]


def log_loss(y: Ints, probabilities: Floats, weights: Floats | None = None) -> float:
    """The mean of −log p(label); probabilities of 0 count as the smallest that float64 tells from it."""
    _check(y, probabilities, weights)
    p = probabilities[np.arange(len(y)), y]
    return _mean(-np.log(np.maximum(p, np.finfo(np.float64).eps)), weights)


def rmse(y: Floats, predicted: Floats, weights: Floats | None = None) -> float:
    """The root of the mean squared error."""
    _check(y, predicted, weights)
    return float(np.sqrt(_mean((y - predicted) ** 2, weights)))


def mae(y: Floats, predicted: Floats, weights: Floats | None = None) -> float:
    """The mean absolute error."""
    _check(y, predicted, weights)
    return _mean(np.abs(y - predicted), weights)


def r2(y: Floats, predicted: Floats, weights: Floats | None = None) -> float:
    """R²: 1 minus the squared error relative to that of the mean."""
    _check(y, predicted, weights)
    spread = _mean((y - _mean(y, weights)) ** 2, weights)
    return 1 - _mean((y - predicted) ** 2, weights) / spread if spread else float("nan")


def _mean(values: Floats, weights: Floats | None) -> float:
    if weights is None:
        return float(values.mean()) if len(values) else float("nan")
    total = float(weights.sum())
    return dot(values, weights) / total if total else float("nan")


def _check(y: AnyArray, other: AnyArray, weights: Floats | None) -> None:
    if len(y) != len(other) or (weights is not None and len(weights) != len(y)):
        raise DataError(f"{count(len(y), 'label')} do not match {count(len(other), 'prediction')}")
