"""A look at a loss of one's own before it is trusted: whether its numbers are numbers and its slopes its slopes."""

from __future__ import annotations

import numpy as np

from beeline._types import Floats
from beeline.exceptions import ParameterError
from beeline.losses.base import RowLoss, VectorLoss

__all__ = ["check_loss"]

_ROWS = 100  # that are looked at
_STEP, _CLOSE = 1e-6, 1e-3


def check_loss(loss: RowLoss, y: Floats, n_outputs: int = 1) -> None:
    """Raise `ParameterError` when a loss returns what is not finite, of the wrong shape, or with a wrong slope.

    Up to 100 rows are given scores between −2 and 2; slopes are held against differences of values on both sides,
    between which a subgradient lies too. A class attribute `trusted = True` says that a loss needs no such look.
    """
    if loss.trusted:
        return
    y = y[:_ROWS]
    shape = (len(y), n_outputs) if isinstance(loss, VectorLoss) else (len(y),)
    random = np.random.default_rng(0)
    z, direction = random.uniform(-2, 2, size=shape), random.normal(size=shape)
    values, slopes = _called(loss, z, y)
    step = _STEP * direction
    sides = [(_called(loss, z + step, y)[0] - values) / _STEP, (values - _called(loss, z - step, y)[0]) / _STEP]
    along = (slopes * direction).reshape(len(y), -1).sum(axis=1)
    rounding = 4 * np.finfo(np.float64).eps * np.abs(values) / _STEP
    room = _CLOSE * (1 + np.abs(along) + np.abs(sides[0] - sides[1])) + rounding
    wrong = (along < np.minimum(*sides) - room) | (along > np.maximum(*sides) + room)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ParameterError(
            f"{loss!r} has a wrong slope: at the score {z[row]} and the label {y[row]} its value changes by "
            f"{0.5 * (sides[0][row] + sides[1][row]):.4g} and not by {along[row]:.4g}; look at its value_and_grad, or "
            "say trusted = True"
        )


def _called(loss: RowLoss, z: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Value and slope, which are numbers."""
    values, slopes = loss.value_and_grad(z, y)
    if np.shape(values) != (len(y),) or np.shape(slopes) != z.shape:
        raise ParameterError(
            f"{loss!r} must return one value a row and slopes of shape {z.shape}, not shapes {np.shape(values)} and "
            f"{np.shape(slopes)}"
        )
    bad = ~np.isfinite(values + np.reshape(slopes, (len(y), -1)).sum(axis=1))
    if bad.any():
        row = int(np.argmax(bad))
        raise ParameterError(
            f"{loss!r} returns {values[row]} with the slope {slopes[row]} at the score {z[row]} and the label {y[row]}"
            "; both must be finite"
        )
    return values, slopes
