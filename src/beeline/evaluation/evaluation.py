"""What an evaluation found, as a plain object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.evaluation.paired import Comparison
from beeline.kernels import dot
from beeline.metrics import Curve

__all__ = [
    "CalibrationBin",
    "ClassMeasures",
    "Confusion",
    "Evaluation",
    "NodeErrors",
    "QueryTable",
    "Residuals",
    "measure_in_words",
]

_MOST_CONFUSIONS = 20
_WORDS = {"auc": "ROC area", "f1": "F1", "r2": "R²", "d2": "D²", "rmse": "RMSE", "mae": "MAE", "mse": "squared error"}
_WORDS |= {"ndcg": "NDCG", "map": "MAP", "mrr": "MRR"}
_CONVENTIONS = {"linear": " (linear gain)", "letor4": " (LETOR 4.0)"}


def measure_in_words(name: str) -> str:
    """A measure as people call it: `auc_macro` is "ROC area macro", `ndcg@10` "NDCG@10"."""
    spelled, _, convention = name.partition(":")
    base, at, k = spelled.partition("@")
    words = " ".join(_WORDS.get(word, word) for word in base.split("_"))
    if words[:1] == "f" and words[1:2].isdigit():  # F2, F0.5
        words = f"F{words[1:]}"
    return words + at + k + _CONVENTIONS.get(convention, "")


class ClassMeasures(NamedTuple):
    """One class against the rest, or one label of sets; `rows` and `predicted` count rows by their weights.

    Where something is not defined, such as the ROC area of a class without rows, or was left out, it is NaN.
    """

    name: str
    rows: float
    predicted: float
    precision: float
    recall: float
    f1: float
    auc: float = math.nan
    average_precision: float = math.nan


class Confusion(NamedTuple):
    """How much weight of a class was predicted as another, and what part of the class that is."""

    label: str
    predicted: str
    rows: float
    share: float


class CalibrationBin(NamedTuple):
    """Rows of similar predicted probability: its mean, the part of them for which it came true, and their weight."""

    probability: float
    share: float
    rows: float


class NodeErrors(NamedTuple):
    """A node of a tree of classes: the weight of the rows below it, and of those of them that are predicted elsewhere.

    `parent` is the number of the node above it, −1 for the root.
    """

    name: str
    parent: int
    depth: int
    rows: float
    errors: float


class Residuals(NamedTuple):
    """Predictions, labels and weights of a regression's rows; a sample where there are many, always the same one."""

    predicted: Floats
    labels: Floats
    weights: Floats
    is_sample: bool


class QueryTable(NamedTuple):
    """The queries, in the order of the data, as arrays of an entry for each.

    `query` has their ids, `rows` counts their rows, `relevant` those of them that are relevant, `weight` is the mean
    weight of their rows; `measures` has an array for each measure, by its name. Rows of weight 0 are left out.
    """

    query: AnyArray
    rows: AnyArray
    relevant: AnyArray
    weight: Floats
    measures: Mapping[str, Floats]

    def means(self) -> dict[str, float]:
        """The mean of every measure, by the weights of the queries; NaN where there are none."""
        total = float(self.weight.sum())
        return {name: dot(values, self.weight) / total if total else math.nan for name, values in self.measures.items()}


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """How good a model's predictions are.

    Attributes
    ----------
    kind
        What the model predicts: binary, multiclass, multilabel or regression.
    rows
        The number of rows.
    weight
        The sum of their weights; None where they have none.
    measures
        Every measure by its name; NaN where it is not defined.
    positive
        Of two classes, the one that precision, recall, F1 and average precision are about; None otherwise.
    classes
        The names of the classes or labels.
    confusion
        How much weight of class i (row) was predicted as class j (column); None where rows have not one class.
    per_class
        Each of several classes against the rest, or each label of sets.
    tree
        Every node of the tree of the classes, depth first, where there is one.
    curves
        ROC and precision–recall curves by the name of the class, at some of their points.
    calibration
        Probabilities against what came true: of the positive class of two, of the predicted class of several.
    residuals
        Predictions and labels of a regression.
    tau
        The part of the labels that a quantile model wants to lie at or below its predictions.
    by_query
        The measures of rankings, query by query; None where rows belong to none.
    against
        What a test says of the difference from another model; None where there is none.
    notes
        What was left out, a sentence each.
    """

    kind: Literal["binary", "multiclass", "multilabel", "regression"]
    rows: int
    measures: dict[str, float]
    weight: float | None = None
    positive: str | None = None
    classes: tuple[str, ...] = ()
    confusion: Floats | None = None
    per_class: tuple[ClassMeasures, ...] = ()
    tree: tuple[NodeErrors, ...] = ()
    curves: Mapping[str, Curve] = field(default_factory=dict)
    calibration: tuple[CalibrationBin, ...] = ()
    residuals: Residuals | None = None
    tau: float | None = None
    by_query: QueryTable | None = None
    against: Comparison | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{name} {value:.6g}" for name, value in self.measures.items()]
        return "\n".join([f"{self.kind}, {self.rows:,} rows", *lines, *self.notes])

    def top_confusions(self, most: int = _MOST_CONFUSIONS) -> list[Confusion]:
        """The pairs of classes that are taken for one another most often, most frequent first."""
        if self.confusion is None:
            return []
        wrong = self.confusion.copy()
        np.fill_diagonal(wrong, 0.0)
        cells = np.flatnonzero(wrong)
        cells = cells[np.argsort(-wrong.ravel()[cells], kind="stable")][:most]
        totals = self.confusion.sum(axis=1)
        return [
            Confusion(self.classes[i], self.classes[j], float(wrong[i, j]), float(wrong[i, j] / totals[i]))
            for i, j in zip(*np.unravel_index(cells, wrong.shape), strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON with everything but single rows; what is not defined is null, whole counts are whole numbers."""
        confusion = None if self.confusion is None else [[_plain(cell) for cell in row] for row in self.confusion]
        return {
            "kind": self.kind,
            "rows": self.rows,
            "weight": None if self.weight is None else _plain(self.weight),
            "measures": {name: _finite(value) for name, value in self.measures.items()},
            "positive": self.positive,
            "classes": list(self.classes) or None,
            "confusion": confusion,
            "top_confusions": [_record(found) for found in self.top_confusions()],
            "per_class": [_record(measures) for measures in self.per_class],
            "tree": [_record(node) for node in self.tree],
            "curves": {name: _curve_record(curve) for name, curve in self.curves.items()},
            "calibration": [_record(found) for found in self.calibration],
            "tau": self.tau,
            "queries": None if self.by_query is None else _counts(self.by_query),
            "against": None if self.against is None else _comparison_record(self.against),
            "notes": [str(note) for note in self.notes],
        }


def _counts(table: QueryTable) -> dict[str, int]:
    return {"count": len(table.query), "without_relevant": int(np.count_nonzero(table.relevant == 0))}


def _comparison_record(found: Comparison) -> dict[str, Any]:
    lines = [
        {key: _finite(value) if isinstance(value, float) else value for key, value in one._asdict().items()}
        for one in found.differences
    ]
    return found._asdict() | {"differences": lines}


def _plain(number: float) -> float:
    """A count as people write it: 12, not 12.0."""
    return int(number) if float(number).is_integer() else float(number)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _record(found: ClassMeasures | Confusion | CalibrationBin | NodeErrors) -> dict[str, Any]:
    values = found._asdict()
    counts = {
        name: _plain(values[name]) for name in ("rows", "predicted", "errors") if isinstance(values.get(name), float)
    }
    return {name: _finite(v) if isinstance(v, float) else v for name, v in (values | counts).items()}


def _curve_record(curve: Curve) -> dict[str, list[float | None]]:
    return {name: [_finite(number) for number in values.tolist()] for name, values in curve._asdict().items()}
