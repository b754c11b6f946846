"""Answers of models that predict sets of labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.data.core.labels import LabelSets
from beeline.evaluation.evaluation import ClassMeasures
from beeline.exceptions import LabelError
from beeline.metrics import ratios

if TYPE_CHECKING:
    from beeline.data.recipe.recipe import Recipe
    from beeline.model import Model

__all__ = ["SetAnswers"]


class SetAnswers:
    """Counts how sets of labels were predicted."""

    def __init__(self, model: Model) -> None:
        assert model.classes is not None
        self.model, self.classes = model, model.classes
        self.hits, self.rows, self.predicted = np.zeros((3, len(self.classes)))
        self.exact = self.total = 0.0

    def add(self, labels: Any, z: Floats, weights: Floats | None, recipe: Recipe | None) -> None:  # noqa: ANN401
        """Take rows into account; labels that the model has never seen are missed."""
        truth, whole = self._truth(labels, recipe)
        guess = self.model.answers(z) == 1
        c = np.ones(len(guess)) if weights is None else weights
        self.hits += ((truth & guess) * c[:, None]).sum(axis=0)
        self.rows += (truth * c[:, None]).sum(axis=0)
        self.predicted += (guess * c[:, None]).sum(axis=0)
        self.exact += float(c[(truth == guess).all(axis=1) & whole].sum())
        self.total += float(c.sum())

    def _truth(self, labels: Any, recipe: Recipe | None) -> tuple[AnyArray, AnyArray]:  # noqa: ANN401
        """(which labels each row has, whether the model knows all of them)."""
        if isinstance(labels, np.ndarray) and labels.shape[1:] == self.classes.shape:
            return labels > 0, np.ones(len(labels), bool)
        if not isinstance(labels, LabelSets):
            raise LabelError("the model predicts sets of labels, and the data have none")
        texts = recipe.label_categories if recipe is not None else None
        stored = labels.stored() if texts is None else np.array(texts)[labels.stored().astype(np.int64)]
        place = np.searchsorted(self.classes, stored).clip(0, len(self.classes) - 1)
        known, row = self.classes[place] == stored, np.repeat(np.arange(len(labels)), np.diff(labels.indptr))
        truth = np.zeros((len(labels), len(self.classes)), bool)
        truth[row[known], place[known]] = True
        return truth, np.bincount(row[~known], minlength=len(labels)) == 0

    def measures(self, per_label: tuple[ClassMeasures, ...]) -> dict[str, float]:
        """Whole sets, F1 over all decisions, and means over the labels."""
        found = self.rows.sum() + self.predicted.sum()
        return {
            "exact_sets": self.exact / self.total if self.total else math.nan,
            "f1_micro": float(2 * self.hits.sum() / found) if found else 0.0,
            **{
                f"{name}_macro": float(np.mean([getattr(one, name) for one in per_label]))
                for name in ("precision", "recall", "f1")
            },
        }

    def per_label(self) -> tuple[ClassMeasures, ...]:
        """Each label by itself."""
        parts = ratios(self.hits, self.predicted), ratios(self.hits, self.rows)
        columns = (self.rows, self.predicted, *parts, ratios(2 * self.hits, self.rows + self.predicted))
        return tuple(
            ClassMeasures(name, *map(float, numbers))
            for name, *numbers in zip(self.model.class_names, *columns, strict=True)
        )
