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
from beeline.kernels import dot

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


class Ranks:
    """Scores of two classes, for the area under the ROC curve: 8 bytes a row, and 16 more where rows have weights."""

    def __init__(self) -> None:
        self._scores: tuple[list[Floats], list[Floats]] = ([], [])  # of negative and positive rows
        self._weights: tuple[list[Floats], list[Floats]] = ([], [])

    def add(self, labels: Ints, z: Floats, weights: Floats | None) -> None:
        """Take rows into account."""
        for k in (0, 1):
            of_class = labels == k
            self._scores[k].append(z[of_class])
            if weights is not None:
                self._weights[k].append(weights[of_class])

    def area(self) -> float:
        """The area; nothing is left afterwards."""
        weights = [np.concatenate(some) if some else None for some in self._weights]
        scores = []
        for some in self._scores:
            scores.append(np.concatenate(some))
            some.clear()
        if weights[0] is None or weights[1] is None:
            return metrics.auc_of_scores(scores[1], scores[0])
        positive = np.repeat([False, True], [len(scores[0]), len(scores[1])])
        return metrics.auc(positive, np.concatenate(scores), np.concatenate(weights))  # type: ignore[arg-type]


class Errors:
    """Sums over the rows of a regression; of the labels the mean and the squares about it, merged block by block."""

    def __init__(self) -> None:
        self.total = self.squares = self.sizes = self.mean = self.spread = 0.0

    def add(self, y: Floats, predicted: Floats, weights: Floats | None) -> None:
        """Take rows into account."""
        c = np.ones(len(y)) if weights is None else weights
        if not (total := float(c.sum())):
            return
        self.squares += dot((y - predicted) ** 2, c)
        self.sizes += dot(np.abs(y - predicted), c)
        mean = dot(y, c) / total
        spread, apart, both = dot((y - mean) ** 2, c), mean - self.mean, self.total + total
        self.spread += spread + apart**2 * (self.total * total / both)
        self.mean += apart * (total / both)
        self.total = both

    def measures(self) -> dict[str, float]:
        """RMSE, MAE and R²."""
        if not self.total:
            return dict.fromkeys(("rmse", "mae", "r2"), math.nan)
        mse, spread = self.squares / self.total, self.spread / self.total
        r2 = 1 - mse / spread if spread else math.nan
        return {"rmse": math.sqrt(mse), "mae": self.sizes / self.total, "r2": r2}


class Answers:
    """Gathers what measures need, block by block.

    Two classes keep a score a row, for the order of all scores; more classes keep only their confusion table and the
    sum of the log losses, sets of labels a table for each label, regressions sums, so that rows cost no memory.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.n_rows = 0
        n = 0 if model.classes is None or model.multilabel else len(model.classes)
        self._table = np.zeros((n, n))
        self._sets = Sets(model) if model.multilabel else None
        self._ranks, self._errors = Ranks(), Errors()
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
        if self.model.classes is None:
            self._errors.add(labels, self.model.answers(z), block.weights)
        else:
            self._count(labels, z, weights)
            if self.model.n_outputs == 1:
                self._ranks.add(labels, z[:, 0], block.weights)
        self.n_rows += block.n_rows

    def facts(self) -> dict[str, Any]:
        """The measures, and what they were taken from."""
        if not self.n_rows:
            raise DataError("the data have no rows")
        if self._sets is not None:
            measures = self._sets.measures()
        else:
            measures = self._errors.measures() if self.model.classes is None else self._of_classes()
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
            measures |= {"f1": metrics.f1(self._table, "binary"), "auc": self._ranks.area()}
        else:
            measures["f1_macro"] = metrics.f1(self._table, "macro")
        if self.model.has_probabilities:
            measures["log_loss"] = self._log_loss / self._total if self._total else math.nan
        return measures
