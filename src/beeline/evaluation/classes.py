"""Answers of classifiers, one class a row: confusions, the order of scores, probabilities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from beeline import metrics
from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray, Floats, Ints
from beeline.data.options import size_in_words
from beeline.evaluation.evaluation import CalibrationBin, ClassMeasures
from beeline.exceptions import ParameterError
from beeline.losses import LOSSES, TwoClassLoss, get_loss
from beeline.metrics import Curve, Ranking, ratios
from beeline.model.levels import level_margins, levels_of

if TYPE_CHECKING:
    from beeline.model import Model

__all__ = ["ClassAnswers"]

_BINS = 10  # of equal width, for probabilities
_MOST_CURVES = 10  # of several classes, as many as a figure can tell apart


class ClassAnswers:
    """Gathers what measures of classes need.

    Two classes keep a score a row, and a weight where rows have one; more classes keep a score a row and class as long
    as these fit `memory`. Everything else is sums.

    Parameters
    ----------
    model
        A classifier.
    positive
        Of two classes, the number of the positive one.
    memory
        How many bytes the scores of several classes may take.
    """

    def __init__(self, model: Model, positive: int, memory: int) -> None:
        assert model.classes is not None
        n = len(model.classes)
        self.model, self.positive = model, positive
        self._are_levels = levels_of(model) is not None
        self.table = np.zeros((n, n))
        self._log_loss = 0.0
        self._bins = np.zeros((3, _BINS))
        self._two, self._many = _TwoClassRanks(), _ManyClassRanks(memory)

    def add(self, labels: Ints, z: Floats, weights: Floats | None) -> None:
        """Take rows into account, by their class numbers and scores."""
        found = self.model.class_numbers(z)
        self.table += metrics.confusion(labels, found, len(self.table), weights)
        c = np.ones(len(labels)) if weights is None else weights
        p = self.model.probabilities(z) if self.model.has_probabilities else None
        if p is not None:
            if total := float(c.sum()):
                self._log_loss += total * metrics.log_loss(labels, p, c)
            self._add_to_bins(labels, found, p, c)
        if self.is_binary:
            self._two.add(labels == self.positive, z[:, 0] if self.positive else -z[:, 0], weights)
        else:
            self._many.add(labels, p if p is not None else level_margins(z) if self._are_levels else z, weights)

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes."""
        return len(self.table) == 2

    def measures(self, per_class: tuple[ClassMeasures, ...], ranking: Ranking | None) -> dict[str, float]:
        """Measures over all rows, from what `per_class` and `ranking` gave."""
        total = float(self.table.sum())
        found = {"accuracy": float(np.trace(self.table)) / total if total else math.nan}
        if ranking is not None:
            table = self.table if self.positive else self.table[::-1, ::-1]
            for measure in (metrics.precision, metrics.recall, metrics.f1):
                found[measure.__name__] = measure(table, "binary")
            found |= {"auc": ranking.area(), "average_precision": ranking.average_precision()}
        else:
            for name in ("precision", "recall", "f1", "auc", "average_precision"):
                found[f"{name}_macro"] = _mean_where_defined([getattr(one, name) for one in per_class])
        if self.model.has_probabilities:
            found["log_loss"] = self._log_loss / total if total else math.nan
        return found

    def trained_for(self) -> dict[str, float]:
        """What the loss of two classes over all rows, by which the model was trained, bounds; to be asked first."""
        loss = get_loss(self.model.loss, **self.model.loss_settings) if self.model.loss in LOSSES else None
        if not isinstance(loss, TwoClassLoss) or not self.positive:
            return {}
        try:
            return {loss.measure: loss.measured(*self._two.columns())}
        except ParameterError:  # of weights that cannot be counted
            return {}

    def ranking(self) -> Ranking | None:
        """Two classes in the order of their scores, which are given away; None where there are more classes."""
        return self._two.ranking() if self.is_binary else None

    def per_class(self) -> tuple[tuple[ClassMeasures, ...], dict[str, Curve]]:
        """Each of several classes against the rest, and the curves of the first ones."""
        names = self.model.class_names
        curves: dict[str, Curve] = {}
        hits, rows, predicted = np.diag(self.table), self.table.sum(axis=1), self.table.sum(axis=0)
        columns = (rows, predicted, ratios(hits, predicted), ratios(hits, rows), ratios(2 * hits, rows + predicted))
        found = []
        for k, numbers in enumerate(zip(*columns, strict=True)):
            areas: tuple[float, ...] = ()
            if self._many.are_kept:
                ranking = self._many.ranking(k)
                areas = ranking.area(), ranking.average_precision()
                if len(curves) < _MOST_CURVES and not any(map(math.isnan, areas)):
                    curves[names[k]] = ranking.curve()
            found.append(ClassMeasures(names[k], *map(float, numbers), *areas))
        return tuple(found), curves

    def calibration(self) -> tuple[CalibrationBin, ...]:
        """The bins that have rows."""
        weight, probability, hits = self._bins
        return tuple(
            CalibrationBin(float(p / c), float(h / c), float(c))
            for c, p, h in zip(weight, probability, hits, strict=True)
            if c > 0
        )

    def notes(self, n_rows: int) -> list[str]:
        """What was left out."""
        if not self._many.are_kept:
            size = size_in_words(8 * n_rows * len(self.table))
            return [
                Sentence(
                    "ROC areas and average precisions are left out: they need the scores of all rows for "
                    f"{len(self.table):,} classes, {size}; give more ",
                    Argument("memory"),
                )
            ]
        absent = int(np.count_nonzero(self.table.sum(axis=1) == 0))
        if absent and not self.is_binary:
            what = "1 class has" if absent == 1 else f"{absent:,} classes have"
            return [f"{what} no rows here: means of ROC areas and average precisions are over the others"]
        return []

    def _add_to_bins(self, labels: Ints, found: Ints, p: Floats, weights: Floats) -> None:
        chosen = np.full(len(labels), self.positive) if self.is_binary else found
        sure = p[np.arange(len(labels)), chosen]
        at = np.minimum((sure * _BINS).astype(np.int64), _BINS - 1)
        columns = (weights, weights * sure, weights * (labels == chosen))
        self._bins += np.array([np.bincount(at, values, minlength=_BINS) for values in columns])


class _TwoClassRanks:
    """Scores of two classes: 8 bytes a row, and 8 more where rows have weights."""

    def __init__(self) -> None:
        self._scores: tuple[list[Floats], list[Floats]] = ([], [])  # of negative and positive rows
        self._weights: tuple[list[Floats], list[Floats]] = ([], [])

    def add(self, positive: AnyArray, z: Floats, weights: Floats | None) -> None:
        """Take rows into account."""
        for k, chosen in enumerate((~positive, positive)):
            self._scores[k].append(z[chosen])
            if weights is not None:
                self._weights[k].append(weights[chosen])

    def columns(self) -> tuple[Floats, Floats, Floats]:
        """Scores, labels −1 and +1, and weights, of the rows that count."""
        z, sizes = np.concatenate([*self._scores[0], *self._scores[1]]), [sum(map(len, of)) for of in self._scores]
        c = np.concatenate([*self._weights[0], *self._weights[1]]) if self._weights[0] else np.ones(len(z))
        here = c > 0
        return z[here], np.repeat([-1.0, 1.0], sizes)[here], c[here]

    def ranking(self) -> Ranking:
        """The rows in the order of their scores; nothing is left afterwards."""
        negative, positive = map(_joined, self._scores)
        if not self._weights[0]:
            return Ranking(positive, negative)
        below, above = map(_joined, self._weights)
        return Ranking(positive, negative, (above, below))


class _ManyClassRanks:
    """Scores of several classes, a matrix a block, as long as they fit."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._labels: list[Ints] = []
        self._scores: list[Floats] = []
        self._weights: list[Floats] = []
        self.are_kept = True

    def add(self, labels: Ints, z: Floats, weights: Floats | None) -> None:
        """Take rows into account; once they do not fit, nothing is kept."""
        self._memory -= z.nbytes
        if self._memory < 0:
            self.are_kept = False
            self._labels, self._scores, self._weights = [], [], []
            return
        self._labels.append(labels)
        self._scores.append(z)
        if weights is not None:
            self._weights.append(weights)

    def ranking(self, k: int) -> Ranking:
        """The rows of class k and all others, in the order of their scores for it."""
        of_class = np.concatenate(self._labels) == k
        z = np.concatenate([scores[:, k] for scores in self._scores])
        return metrics.ranking(of_class, z, np.concatenate(self._weights) if self._weights else None)


def _joined(parts: list[Floats]) -> Floats:
    """All parts as one array; the list is empty afterwards, so that they are there twice for a moment only."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def _mean_where_defined(values: list[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan
