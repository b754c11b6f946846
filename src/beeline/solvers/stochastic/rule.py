"""What rules of stochastic steps are told of a problem, and which losses they know."""

from __future__ import annotations

from typing import NamedTuple

from beeline.losses import LOSSES, CrammerSinger, Loss, MulticlassPerceptron, OneVsRest, RowLoss, ScalarLoss, Softmax
from beeline.objective.parameters import Parameters

__all__ = ["STOCHASTIC_LOSSES", "Problem", "Strengths", "form_of"]

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
