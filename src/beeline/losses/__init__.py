"""The losses and their registry."""

from __future__ import annotations

from beeline.exceptions import ParameterError
from beeline.losses.base import Loss, RowLoss, ScalarLoss, VectorLoss
from beeline.losses.margin import Hinge, Logistic, RoundedHinge, SoftHinge, SquaredHinge
from beeline.losses.multiclass import CrammerSinger, Softmax
from beeline.losses.regression import (
    EpsilonInsensitive,
    LeastSquares,
    SoftEpsilonInsensitive,
    SquaredEpsilonInsensitive,
)

__all__ = [
    "LOSSES",
    "CrammerSinger",
    "EpsilonInsensitive",
    "Hinge",
    "LeastSquares",
    "Logistic",
    "Loss",
    "RoundedHinge",
    "RowLoss",
    "ScalarLoss",
    "SoftEpsilonInsensitive",
    "SoftHinge",
    "Softmax",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "VectorLoss",
    "get_loss",
]

LOSSES: dict[str, type[Loss]] = {
    kind.name: kind
    for kind in (
        Logistic,
        Hinge,
        SquaredHinge,
        RoundedHinge,
        SoftHinge,
        LeastSquares,
        EpsilonInsensitive,
        SoftEpsilonInsensitive,
        SquaredEpsilonInsensitive,
        Softmax,
        CrammerSinger,
    )
}


def get_loss(loss: str | Loss, **settings: float) -> Loss:
    """The loss of that name, made with the settings; a loss passes through."""
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise ParameterError(f"there is no loss {loss!r}; there are {', '.join(sorted(LOSSES))}")
    return LOSSES[loss](**settings)
