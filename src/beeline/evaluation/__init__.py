"""How good a model's predictions are: measures of them, gathered block by block."""

from __future__ import annotations

from beeline.evaluation.evaluating import evaluate
from beeline.evaluation.evaluation import (
    CalibrationBin,
    ClassMeasures,
    Confusion,
    Evaluation,
    NodeErrors,
    Residuals,
    measure_in_words,
)

__all__ = [
    "CalibrationBin",
    "ClassMeasures",
    "Confusion",
    "Evaluation",
    "NodeErrors",
    "Residuals",
    "evaluate",
    "measure_in_words",
]
