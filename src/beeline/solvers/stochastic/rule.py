"""What rules of stochastic steps are told of a problem, and which losses they know."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from beeline._types import Floats
from beeline.losses import LOSSES, CrammerSinger, Loss, MulticlassPerceptron, OneVsRest, RowLoss, ScalarLoss, Softmax
from beeline.objective.parameters import Parameters

__all__ = ["STOCHASTIC_LOSSES", "Problem", "Strengths", "form_of", "units_of"]

STOCHASTIC_LOSSES: tuple[type[Loss], ...] = (
    *(kind for kind in LOSSES.values() if issubclass(kind, ScalarLoss) and kind.compiled),
    Softmax,
    CrammerSinger,
    MulticlassPerceptron,
    OneVsRest,
)


class Strengths(NamedTuple):
    """Ω in units of one row whose cost is 1: λ₂/2‖w‖² + λ₁‖w‖₁."""

    l2: float
    l1: float = 0.0


class Problem(NamedTuple):
    """What is learned.

    Attributes
    ----------
    loss
        The loss of a row.
    layout
        Features, outputs and the kind of intercept.
    strengths
        Ω, a row.
    horizon
        How many rows make a pass; None: nobody knows.
    """

    loss: RowLoss
    layout: Parameters
    strengths: Strengths
    horizon: float | None


def form_of(loss: RowLoss) -> str | None:
    """The name of the loss among the kernels of stochastic steps; None where it has no form there."""
    if isinstance(loss, OneVsRest):
        return None if loss.loss.compiled is None else f"ovr:{loss.loss.compiled}"
    return loss.name if isinstance(loss, MulticlassPerceptron) else loss.compiled


def units_of(loss: RowLoss, labels: Floats) -> tuple[float, float]:
    """(The best constant score, the unit of step sizes) of a regression; 0 and 1 of other losses.

    A step is as long as the slope times its size, so that a size has the unit of scores over slopes: the spread of the
    labels, or 1 where scores are logarithms, over the usual slope at the best constant. Steps are the same then
    whatever unit the labels have.
    """
    if loss.labels != "real" or loss.link == "logistic" or not len(labels):
        return 0.0, 1.0
    found = loss.best_constant(labels, np.ones(len(labels)))
    if found is None:
        found = math.log(max(float(labels.mean()), 1e-12)) if loss.link == "exp" else float(np.median(labels))
    constant = float(np.asarray(found))
    _, slopes = loss.value_and_grad(np.full(len(labels), constant), labels)
    scores = float(labels.std()) if loss.scales_with_labels else 1.0
    slope = math.sqrt(float(np.mean(slopes**2)))
    if not (slope > 0 and scores > 0 and math.isfinite(scores / slope)):
        return constant, 1.0
    return constant, scores / slope
