"""What a point leaves to be learned, whatever the scales of features and labels are."""

from __future__ import annotations

import math

import numpy as np

from beeline._types import Floats
from beeline.engines.verbs import columns, products
from beeline.objective.objective import Objective
from beeline.objective.points import Point

__all__ = ["chance_correlation", "feature_spreads", "residual_correlation"]

_SHARE, _CHANCE = 0.01, 4.0
_CONSTANT = 1e-12  # of a feature's mean square, below which its spread is rounding


def feature_spreads(objective: Objective) -> Floats:
    """√Σ_i (x_ij − x̄_j)² of every feature, without the mean where there is no free intercept; two passes."""
    o = objective
    squares, sums = o.rows.sum(products.feature_moments).value
    centred = squares - np.square(sums) / max(1, o.rows.n_rows) if o.intercept == "free" else squares
    return np.sqrt(np.where(centred > _CONSTANT * squares, centred, 0.0))


def residual_correlation(point: Point, spreads: Floats) -> float:
    """The largest part of the losses' slopes that a single feature explains: a squared correlation, from 0 to 1.

    At an optimum Σ u_i x_ij = −λw_j. Where that is far from zero for the spread of a feature, Ω keeps the weight from
    what the rows say, and a larger C would tell more. A gradient alone is that of the largest features.
    """
    o = point.objective
    pulls = -point.loss_gradient[: o.n_weights].reshape(-1, o.n_outputs)
    pulls = np.maximum(pulls, 0.0) if o.regularizer.nonnegative else np.abs(pulls)
    if not o.loss.smooth:
        pulls = np.minimum(pulls, _most_pull(point))
    sizes = np.sqrt(o.rows.sum(columns.squares, point.slopes).value[0])
    products = spreads[:, None] * sizes
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        correlations = np.where(products > 0, pulls / products, 0.0)
    return min(1.0, float(np.square(correlations).max(initial=0.0)))


def _most_pull(point: Point) -> Floats:
    """By how much an optimum lets the rows pull at each weight: λ(l1 + l2·|w_j|), or λ|∂Ω|, by which Ω holds it.

    A row at a kink has any slope between those of both sides, and the one that the loss gives need not be right.
    """
    o = point.objective
    w = point.theta[: o.n_weights]
    held = o.penalty.l2 * w
    if (own := point.omega_remainder) is not None:
        held = held + own[1][: o.n_weights]
    most: Floats = o.penalty.l1 + np.abs(held).reshape(-1, o.n_outputs)
    return most


def chance_correlation(objective: Objective) -> float:
    """What of that may be luck: of many features, one always explains a little of so many rows."""
    o = objective
    return _SHARE + _CHANCE * math.log(o.rows.n_features * o.n_outputs + 1) / max(1, o.rows.n_rows)
