"""Measures of predictions, with weights: of classifiers, probabilities and regressions.

Conventions
-----------
- Class numbers are 0 … K−1; a weight of 2 means the same as having the row twice.
- Where a measure is not defined it is NaN: the ROC area of one class, R² of equal targets.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.exceptions import DataError
from beeline.kernels import dot

__all__ = ["accuracy", "auc", "auc_of_scores", "confusion", "f1", "log_loss", "mae", "r2", "rmse"]

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
    hits, found = np.diag(table), table.sum(axis=0) + table.sum(axis=1)
    if average == "micro":
        return float(2 * hits.sum() / found.sum()) if found.sum() else 0.0
    each = np.divide(2 * hits, found, out=np.zeros_like(hits), where=found > 0)
    return float(each[1] if average == "binary" else each.mean())


def auc(positive: AnyArray, z: Floats, weights: Floats | None = None) -> float:
    """The area under the ROC curve: how often a positive row scores above a negative one, ties counting half.

    Cost: one sort of the scores.
    """
    _check(positive, z, weights)
    if weights is None:
        return auc_of_scores(z[positive], z[~positive])
    order = np.argsort(z, kind="stable")
    sorted_z, c = z[order], weights[order]
    above = np.where(positive[order], c, 0.0)
    starts = np.flatnonzero(np.append(True, sorted_z[1:] != sorted_z[:-1])) if len(z) else np.zeros(0, np.int64)
    ups = np.add.reduceat(above, starts) if len(z) else above
    downs = np.add.reduceat(c - above, starts) if len(z) else above
    total = float(ups.sum() * downs.sum())
    below = np.cumsum(downs) - downs / 2
    return dot(ups, below) / total if total else float("nan")


def auc_of_scores(positive: Floats, negative: Floats) -> float:
    """The same area, from the scores of positive and of negative rows; both are sorted in place.

    For each positive row, the negative ones below it are counted, and half of those beside it; no memory but theirs.
    """
    if not (len(positive) and len(negative)):
        return float("nan")
    positive.sort()
    negative.sort()
    total = 0.0
    for start in range(0, len(positive), _PIECE):
        some = positive[start : start + _PIECE]
        below = int(np.searchsorted(negative, some, side="left").sum())
        total += 0.5 * (below + int(np.searchsorted(negative, some, side="right").sum()))
    return total / (float(len(positive)) * float(len(negative)))


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
        raise DataError(f"{len(y)} labels do not match {len(other)} predictions")
