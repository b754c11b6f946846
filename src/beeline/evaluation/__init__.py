"""How good a model's predictions are: measures of them, gathered block by block."""

from __future__ import annotations

from beeline.evaluation.evaluating import evaluate
from beeline.evaluation.evaluation import (
    CalibrationBin,
    ClassMeasures,
    Confusion,
    Evaluation,
    NodeErrors,
    QueryTable,
    Residuals,
    measure_in_words,
)
from beeline.evaluation.paired import Comparison, Difference

__all__ = [
    "CalibrationBin",
    "ClassMeasures",
    "Comparison",
    "Confusion",
    "Difference",
    "Evaluation",
    "NodeErrors",
    "QueryTable",
    "Residuals",
    "evaluate",
    "measure_in_words",
]
