"""Predictions and labels gathered over blocks, and the measures of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline import metrics
from beeline._types import Floats, Ints
from beeline.cli.model_facts import class_names
from beeline.data.labels import LabelSets
from beeline.exceptions import DataError, LabelError

if TYPE_CHECKING:
    from beeline.data.block import Block
    from beeline.data.recipe import Recipe
    from beeline.model import Model

__all__ = ["Answers"]


class Answers:
    """Gathers what measures need, block by block.

    Two classes and a regression keep a score and a label a row; more classes keep only their confusion table and the
    sum of the log losses, so that neither rows nor classes cost memory.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.n_rows = 0
        self._labels: list[Any] = []
        self._scores: list[Floats] = []
        self._weights: list[Floats] = []
        n = 0 if model.classes is None else len(model.classes)
        self._table = np.zeros((n, n))
        self._log_loss = self._total = 0.0

    def add(self, block: Block, recipe: Recipe | None) -> None:
        """Take a block into account."""
        weights = np.ones(block.n_rows) if block.weights is None else block.weights
        z = self.model.scores(block)
        labels = self._numbers(block, recipe)
        if self.model.n_outputs == 1:
            self._labels.append(labels)
            self._scores.append(z[:, 0])
            self._weights.append(weights)
        if self.model.classes is not None:
            self._count(labels, z, weights)
        self.n_rows += block.n_rows

    def facts(self) -> dict[str, Any]:
        """The measures, and what they were taken from."""
        if not self.n_rows:
            raise DataError("the data have no rows")
        measures = self._of_regression() if self.model.classes is None else self._of_classes()
        table = None if self.model.classes is None else self._table.tolist()
        return {
            "kind": self.model.kind,
            "rows": self.n_rows,
            "measures": {name: value if math.isfinite(value) else None for name, value in measures.items()},
            "classes": None if self.model.classes is None else class_names(self.model.classes),
            "confusion": table,
        }

    def _numbers(self, block: Block, recipe: Recipe | None) -> Any:  # noqa: ANN401
        labels = block.labels
        if labels is None:
            raise LabelError("the data have no labels to compare with; name the column that holds them by --label")
        if isinstance(labels, LabelSets):
            raise LabelError("the rows have sets of labels, and the model predicts a single one")
        if self.model.classes is None:
            if recipe is not None and recipe.label_categories is not None:
                raise LabelError("the labels are texts, and the model predicts numbers")
            return labels
        return self.model.label_numbers(labels, recipe, first_row=self.n_rows)

    def _count(self, labels: Ints, z: Floats, weights: Floats) -> None:
        n = len(self._table)
        self._table += metrics.confusion(labels, self.model.class_numbers(z), n, weights)
        if self.model.has_probabilities:
            total = float(weights.sum())
            if total:
                self._log_loss += total * metrics.log_loss(labels, self.model.probabilities(z), weights)
            self._total += total

    def _of_classes(self) -> dict[str, float]:
        total = self._table.sum()
        measures = {"accuracy": float(np.trace(self._table) / total) if total else math.nan}
        if self.model.n_outputs == 1:
            labels, z, weights = map(np.concatenate, (self._labels, self._scores, self._weights))
            measures |= {"f1": metrics.f1(self._table, "binary"), "auc": metrics.auc(labels == 1, z, weights)}
        else:
            measures["f1_macro"] = metrics.f1(self._table, "macro")
        if self.model.has_probabilities:
            measures["log_loss"] = self._log_loss / self._total if self._total else math.nan
        return measures

    def _of_regression(self) -> dict[str, float]:
        y, z, weights = map(np.concatenate, (self._labels, self._scores, self._weights))
        return {
            "rmse": metrics.rmse(y, z, weights),
            "mae": metrics.mae(y, z, weights),
            "r2": metrics.r2(y, z, weights),
        }
