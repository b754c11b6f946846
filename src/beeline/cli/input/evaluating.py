"""Predictions and labels gathered over blocks, and the measures of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline import metrics
from beeline._types import Floats, Ints
from beeline.cli.output.model_facts import class_names
from beeline.data.core.labels import LabelSets
from beeline.exceptions import DataError, LabelError

if TYPE_CHECKING:
    from beeline.data.core.block import Block
    from beeline.data.recipe.recipe import Recipe
    from beeline.model import Model

__all__ = ["Answers"]


class Sets:
    """Counts how sets of labels were predicted."""

    def __init__(self, model: Model) -> None:
        assert model.classes is not None
        self.model, self.names = model, model.classes
        self.hits, self.found = np.zeros(len(self.names)), np.zeros(len(self.names))
        self.exact = self.total = 0.0

    def add(self, labels: Any, z: Floats, weights: Floats, recipe: Recipe | None) -> None:  # noqa: ANN401
        """Take rows into account; labels that the model has never seen are missed."""
        if not isinstance(labels, LabelSets):
            raise LabelError("the model predicts sets of labels, and the data have none")
        texts = recipe.label_categories if recipe is not None else None
        stored = labels.stored() if texts is None else np.array(texts)[labels.stored().astype(np.int64)]
        place = np.searchsorted(self.names, stored).clip(0, len(self.names) - 1)
        known, row = self.names[place] == stored, np.repeat(np.arange(len(labels)), np.diff(labels.indptr))
        truth = np.zeros(z.shape, bool)
        truth[row[known], place[known]] = True
        whole = np.bincount(row[~known], minlength=len(labels)) == 0
        guess = self.model.answers(z) == 1
        self.hits += ((truth & guess) * weights[:, None]).sum(axis=0)
        self.found += ((truth * 1.0 + guess) * weights[:, None]).sum(axis=0)
        self.exact += float(weights[(truth == guess).all(axis=1) & whole].sum())
        self.total += float(weights.sum())

    def measures(self) -> dict[str, float]:
        """Whole sets, and F1 over all decisions and as a mean over the labels."""
        each = np.divide(2 * self.hits, self.found, out=np.zeros_like(self.hits), where=self.found > 0)
        micro = 2 * self.hits.sum() / self.found.sum() if self.found.sum() else 0.0
        whole = self.exact / self.total if self.total else math.nan
        return {"exact_sets": whole, "f1_micro": float(micro), "f1_macro": float(each.mean())}


class Answers:
    """Gathers what measures need, block by block.

    Two classes and a regression keep a score and a label a row; more classes keep only their confusion table and the
    sum of the log losses, sets of labels a table for each label, so that neither rows nor classes cost memory.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.n_rows = 0
        self._labels: list[Any] = []
        self._scores: list[Floats] = []
        self._weights: list[Floats] = []
        n = 0 if model.classes is None or model.multilabel else len(model.classes)
        self._table = np.zeros((n, n))
        self._sets = Sets(model) if model.multilabel else None
        self._log_loss = self._total = 0.0

    def add(self, block: Block, recipe: Recipe | None) -> None:
        """Take a block into account."""
        weights = np.ones(block.n_rows) if block.weights is None else block.weights
        z = self.model.scores(block)
        if self._sets is not None:
            self._sets.add(block.labels, z, weights, recipe)
            self.n_rows += block.n_rows
            return
        labels = self._numbers(block, recipe)
        if self.model.n_outputs == 1:
            self._labels.append(labels)
            self._scores.append(z[:, 0] if self.model.classes is not None else self.model.answers(z))
            self._weights.append(weights)
        if self.model.classes is not None:
            self._count(labels, z, weights)
        self.n_rows += block.n_rows

    def facts(self) -> dict[str, Any]:
        """The measures, and what they were taken from."""
        if not self.n_rows:
            raise DataError("the data have no rows")
        if self._sets is not None:
            measures = self._sets.measures()
        else:
            measures = self._of_regression() if self.model.classes is None else self._of_classes()
        table = self._table.tolist() if self._table.size else None
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
            if self.model.n_outputs > 1:
                raise LabelError(
                    f"the rows have one label, and the model predicts {self.model.n_outputs} numbers a row"
                )
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
