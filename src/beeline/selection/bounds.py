"""Where a path of C begins and ends."""

from __future__ import annotations

import math

import numpy as np

from beeline._numbers import square
from beeline.engines.verbs import values
from beeline.kernels import dot
from beeline.objective import Objective, Point
from beeline.objective.certificates import rounding_unit
from beeline.solvers.bundle.planes import balances

__all__ = ["first_C", "highest_C", "lowest_C", "null_C"]

_SOMETHING = 0.1  # of the loss without a model, that a step along its gradient would take at first
_LEVEL = 1e-13  # of the sizes of all slopes, that is left of their sum at the best intercept
_WIDTH = 0.1  # of what the labels' scale is, over which kinks are rounded off to have one gradient

# |dl/dz| of a loss whose slope at zero weights is not its steepest; (21) goes by the steepest.
_STEEPEST = {"logistic": 1.0, "soft_hinge": 1.0}
# A path goes up to here (W6), or to so many times its first C where the features' scale asks for more.
_HIGHEST, _WIDEST = 2.0**10, 2.0**20


def first_C(objective: Objective) -> float:  # noqa: N802
    """The C at which a model begins to have something to say.

    With L1, where the first weight leaves zero: l1/max|v_j| for v, the gradient of the loss without a model. Else
    w_C ≈ −C·v/l2 for small C, and the loss falls by C·‖v‖²/l2: here by a tenth of what it is. Unlike (21), that
    neither depends on the offset of the labels nor on the longest row, and scaled features or labels scale it exactly.
    Where v is nothing but rounding, as of features that are constant, it is 1. The costs of `objective` have C = 1, and
    its strength is 1.
    """
    o, omega = objective, objective.regularizer
    point = _null_point(o)
    if omega.l1:
        bound = omega.l1 / point.pull if point.pull > _rounding_of_gradient(point) else 1.0
    else:
        v = point.loss_gradient[: o.n_regularized]
        size = max(o.null.value, 1e-6 * o.null.size)
        norm = dot(v, v)
        told = norm > square(_rounding_of_gradient(point))
        bound = _SOMETHING * size * omega.l2 / norm if told and size > 0 else 1.0
    return min(max(bound, 2.0**-200), 2.0**200)


def _rounding_of_gradient(point: Point) -> float:
    """What rounding, and intercepts that are the best ones but for rounding, may leave of a gradient that is zero."""
    o = point.objective
    return (rounding_unit(o) + _LEVEL) * point.slope_size * o.longest_row


def _null_point(objective: Objective) -> Point:
    """The model without weights; kinks, where a loss has many slopes, are rounded off."""
    loss = objective.loss
    if not loss.has_curvature and loss.has_smoothed:
        objective = objective.with_loss(loss.smoothed(_WIDTH * objective.natural_width))
    return objective.at_null()


def lowest_C(objective: Objective) -> float:  # noqa: N802
    """C_min: the largest power of two for which no score can reach what the labels ask for (W4).

    ‖w_C‖ ≤ C·Σ c_i|l'_i|·max‖x_j‖, so that |w_Cᵀx| ≤ s as long as C ≤ s/(Σ c_i|l'_i|·max‖x_j‖²). With s = 1 and slopes
    at zero weights this is (21) for the hinge and, by the slope 2, (22) for its square; (21) takes the slope 1 for the
    logistic loss too. For a regression s is the spread of the targets. A loss that is flat at zero weights counts by
    its steepest slope where scores are ±s, and one of logarithms by its slopes at the best intercept, since rates of
    1 may be far from all labels. The costs of `objective` have C = 1.
    """
    largest = square(objective.longest_row)
    reach = objective.natural_width
    if objective.loss.name in _STEEPEST:
        pull = _STEEPEST[objective.loss.name] * objective.total_cost
    elif objective.loss.link == "exp" and objective.intercept == "free":
        pull = objective.at_null().slope_size
    else:
        pull = _pull(objective, 0.0) or max(_pull(objective, reach), _pull(objective, -reach))
    bound = reach / (pull * largest) if pull * largest > 0 else 1.0
    return power_of_two_below(min(max(bound, 2.0**-200), 2.0**200))


def _pull(objective: Objective, score: float) -> float:
    """Σ c_i|l'_i| where every score is the same."""
    o = objective
    value = score if o.n_outputs == 1 else np.full(o.n_outputs, score)
    return float(o.rows.sum(values.slope_size_at, o.labels, o.costs, loss=o.loss, value=value).value[0])


def null_C(objective: Objective) -> float:  # noqa: N802
    """The largest power of two at which L1 keeps all weights at zero: C·‖Σ c_i l'_i x_i‖_∞ ≤ l1.

    Where no weight may be negative, only features that pull upwards count.
    The intercept is the best one for zero weights, or zero where several of them do not follow from the scores; the
    path then begins near that C. The costs of `objective` have C = 1, and its strength is 1.
    """
    point = objective.at().with_best_intercept(1e-6) if balances(objective) else objective.at()
    l1, pull = objective.strength * objective.regularizer.l1, point.pull
    return power_of_two_below(l1 / pull) if pull > _rounding_of_gradient(point) else 1.0


def highest_C(lowest: float) -> float:  # noqa: N802
    """C_max."""
    return max(_HIGHEST, _WIDEST * lowest)


def power_of_two_below(bound: float) -> float:
    """The largest power of two that is at most `bound`."""
    return 2.0 ** math.floor(math.log2(bound))
