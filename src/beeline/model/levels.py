"""The thresholds of a model of levels in an order, and the weights that its columns are multiples of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from beeline._types import Floats
from beeline.losses import LOSSES
from beeline.losses.ordinal import from_level_columns
from beeline.model.model import Model

__all__ = ["Levels", "level_margins", "levels_of"]


class Levels(NamedTuple):
    """What a model of levels is: w, and θ_0 ≤ … ≤ θ_{K−2}."""

    weights: Floats
    thresholds: Floats


def levels_of(model: Model) -> Levels | None:
    """Weights and thresholds of a model of levels; None where classes are in no order."""
    kind = LOSSES.get(model.loss)
    if kind is None or kind.labels != "levels" or model.classes is None or model.extra is None:
        return None
    return Levels(from_level_columns(model.weights)[:, 0], model.extra)


def level_margins(scores: Floats) -> Floats:
    """s_k − max_{j≠k} s_j: by how much a row is of each level; s_k itself only grows or falls with z."""
    above = np.maximum.accumulate(scores[:, ::-1], axis=1)[:, ::-1]
    below = np.maximum.accumulate(scores, axis=1)
    others = np.full_like(scores, -np.inf)
    others[:, 1:] = below[:, :-1]
    others[:, :-1] = np.maximum(others[:, :-1], above[:, 1:])
    margins: Floats = scores - others
    return margins
