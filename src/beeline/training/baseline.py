"""What rows that come once would have cost without a model: the best intercept alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from beeline._types import Floats
from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset
from beeline.engines import Threads
from beeline.losses import RowLoss, VectorLoss
from beeline.objective import Objective
from beeline.objective.null import NullModel
from beeline.objective.parameters import Intercept
from beeline.regularizers import L2
from beeline.solvers.stochastic.learner import Progress
from beeline.training.online import OnlineTask

__all__ = ["Baseline", "Comparison"]

_SAMPLE = 512  # labels of a regression, by which an intercept is found
_APART = 0.1  # of their spread: how far from it two others are tried
_FEW = 32  # rows, by which nothing can be told
_CHANCE = 2.0  # standard deviations of an error, which may be luck
_LITTLE = 1e-3  # of the loss without a model, that a model must at least win


class Comparison(NamedTuple):
    """Means over the same rows: of the loss by a model, each row before it was learned from, and without a model."""

    loss: float
    null: float


@dataclass(eq=False)
class _Window:
    """Some rows.

    Attributes
    ----------
    rows, scored
        How many, and how they were predicted before they were learned from.
    null
        The costs of each class; of numbers, Σ c l for a few intercepts.
    """

    rows: int = 0
    scored: Progress = Progress(0.0, 0.0, 0.0)  # noqa: RUF009 — it is a tuple
    null: Floats = field(default_factory=lambda: np.zeros(0))

    def add(self, rows: int, scored: Progress, null: Floats) -> None:
        self.rows, self.scored = self.rows + rows, self.scored + scored
        self.null = _sum(self.null, null)

    def to_document(self) -> list[Any]:
        return [self.rows, list(self.scored), self.null.tolist()]

    @classmethod
    def of_document(cls, document: Any) -> _Window:  # noqa: ANN401
        rows, scored, null = document
        return cls(int(rows), Progress(*map(float, scored)), np.array(null, np.float64).reshape(-1))


class Baseline:
    """The rows of the last two windows, with a model and without; old rows are those of a model that knew less.

    Classes are counted, so that the best intercepts of their rows are known. Of numbers the losses of three intercepts
    are added up, around the best one of the labels that came last; the parabola through them says what the best has.

    Parameters
    ----------
    task
        What is learned.
    """

    def __init__(self, task: OnlineTask) -> None:
        self.task = task
        self._before, self._now = _Window(), _Window()
        self._labels: Floats = np.zeros((2, 0))  # of a regression: the last, and their costs
        self._tried: Floats = np.zeros(0)

    def add(self, labels: Floats, costs: Floats, scored: Progress, n_classes: int) -> None:
        """Take in rows that were learned from; labels are class numbers, or numbers."""
        if n_classes:
            null = np.bincount(labels.astype(np.int64), costs, minlength=n_classes).astype(np.float64)
        else:
            null = self._losses(labels, costs)
        self._now.add(int(np.count_nonzero(costs)), scored, null)

    def begin_window(self) -> None:
        """Rows to come are those of another window."""
        self._before, self._now, self._tried = self._now, _Window(), np.zeros(0)

    def shortfall(self, n_classes: int) -> Comparison | None:
        """How rows were predicted, where that is hardly better than without a model; None where it is, or few came."""
        windows = [window for window in (self._before, self._now) if window.rows]
        loss, errors, weight = np.sum([window.scored for window in windows], axis=0) if windows else np.zeros(3)
        rows = sum(window.rows for window in windows)
        if rows < _FEW or not weight > 0:
            return None
        found = Comparison(float(loss / weight), math.nan)
        if not n_classes:
            found = found._replace(null=sum(_least(window.null) for window in windows) / weight)
            return found if found.loss >= (1 - _LITTLE) * found.null and self._labels_differ else None
        costs = _sum(self._before.null, self._now.null)
        chance = 1 - costs.max() / costs.sum()
        if np.count_nonzero(costs) < 2 or errors / weight < chance - _CHANCE * math.sqrt(chance * (1 - chance) / rows):
            return None
        found = found._replace(null=self._null_of_classes(_sum(costs, np.zeros(n_classes))) / float(costs.sum()))
        return found if found.loss >= (1 - _LITTLE) * found.null else None

    @property
    def _labels_differ(self) -> bool:
        return bool(np.ptp(self._labels[0]) > 0) if self._labels.size else False

    def _losses(self, labels: Floats, costs: Floats) -> Floats:
        """Σ c l of a regression's intercepts that are tried in this window."""
        loss = self.task.loss_of(0)
        counts = costs > 0
        self._labels = np.hstack([self._labels, np.stack([labels, costs])[:, counts][:, -_SAMPLE:]])[:, -_SAMPLE:]
        if not self._labels.size:
            return np.zeros(0)
        if not self._tried.size:
            y, c = np.ascontiguousarray(self._labels)
            best = float(_without_model(loss, y, c, 1, self.task).theta[-1]) if self._is_free else 0.0
            apart = _APART * (float(y.std()) if loss.scales_with_labels else 1.0)
            self._tried = best + apart * np.array([-1.0, 0.0, 1.0]) if self._is_free else np.zeros(1)
        return np.array([loss.sum(np.full(len(labels), score), labels, costs) for score in self._tried])

    @property
    def _is_free(self) -> bool:
        return self.task.intercept == "free"

    def _null_of_classes(self, costs: Floats) -> float:
        loss = self.task.loss_of(len(costs))
        if not isinstance(loss, VectorLoss):
            return float(_without_model(loss, np.array([-1.0, 1.0]), costs, 1, self.task).value)
        return float(_without_model(loss, np.arange(float(len(costs))), costs, len(costs), self.task).value)

    # Going on.

    def to_document(self) -> dict[str, Any]:
        """Itself as numbers."""
        windows = [window.to_document() for window in (self._before, self._now)]
        return {"windows": windows, "labels": self._labels.tolist(), "tried": self._tried.tolist()}

    def restore(self, document: Mapping[str, Any]) -> None:
        """Go on from what `to_document` described."""
        self._before, self._now = map(_Window.of_document, document["windows"])
        self._labels = np.array(document["labels"], np.float64).reshape(2, -1)
        self._tried = np.array(document["tried"], np.float64).reshape(-1)


def _without_model(loss: RowLoss, labels: Floats, costs: Floats, n_outputs: int, task: OnlineTask) -> NullModel:
    """The null model of rows that have no features."""
    rows = Threads().open(ArrayDataset(Block(np.zeros((len(labels), 0)), 0)))
    intercept: Intercept = "free" if task.intercept == "free" else "none"
    return Objective(
        rows, rows.scatter(labels), rows.scatter(costs), loss, L2(), intercept=intercept, n_outputs=n_outputs
    ).null


def _least(losses: Floats) -> float:
    """The least of a parabola through three values at equal distances; of the values, where they make none."""
    if len(losses) != 3:
        return float(losses.min(initial=0.0))
    below, here, above = map(float, losses)
    slope, curvature = (above - below) / 2, above + below - 2 * here
    least = min(below, here, above)
    if not curvature > 0 or abs(slope) > curvature:  # its minimum is not between them
        return least
    return max(0.0, min(least, here - slope**2 / (2 * curvature)))


def _sum(one: Floats, other: Floats) -> Floats:
    """The sum of two vectors, the shorter one as if zeros were behind it."""
    total = np.zeros(max(len(one), len(other)))
    total[: len(one)] += one
    total[: len(other)] += other
    return total
