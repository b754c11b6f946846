"""Where a path of C begins and ends, and when its weights have settled."""

from __future__ import annotations

import math

import numpy as np

from beeline.objective import Objective
from beeline.solvers.planes import balances

__all__ = ["highest_C", "lowest_C", "null_C"]

# |dl/dz| of a loss whose slope at zero weights is not its steepest; (21) goes by the steepest.
_STEEPEST = {"logistic": 1.0, "soft_hinge": 1.0}
# A path goes up to here (W6), or to so many times its first C where the features' scale asks for more.
_HIGHEST, _WIDEST = 2.0**10, 2.0**20


def lowest_C(objective: Objective) -> float:  # noqa: N802
    """C_min: the largest power of two for which no score can reach what the labels ask for (W4).

    ‖w_C‖ ≤ C·Σ c_i|l'_i|·max‖x_j‖, so that |w_Cᵀx| ≤ s as long as C ≤ s/(Σ c_i|l'_i|·max‖x_j‖²). With s = 1 and slopes
    at zero weights this is (21) for the hinge and, by the slope 2, (22) for its square; (21) takes the slope 1 for the
    logistic loss too. For a regression s is the spread of the targets. A loss that is flat at zero weights counts by
    its steepest slope where scores are ±s, and one of logarithms by its slopes at the best intercept, since rates of
    1 may be far from all labels. The costs of `objective` have C = 1.
    """
    largest = max((_largest_norm(o_block) for o_block in objective.data.blocks(1 << 26)), default=0.0)
    largest += objective.intercept == "regularized"
    reach = objective.loss.natural_width(objective.labels)
    if objective.loss.name in _STEEPEST:
        pull = _STEEPEST[objective.loss.name] * float(objective.costs.sum())
    elif objective.loss.link == "exp" and objective.intercept == "free":
        pull = sum(float(np.abs(slopes).sum()) for slopes in objective.at().with_best_intercept(1e-6).slopes)
    else:
        pull = _pull(objective, 0.0) or max(_pull(objective, reach), _pull(objective, -reach))
    bound = reach / (pull * largest) if pull * largest > 0 else 1.0
    return power_of_two_below(min(max(bound, 2.0**-200), 2.0**200))


def _pull(objective: Objective, score: float) -> float:
    """Σ c_i|l'_i| where every score is the same."""
    pull = 0.0
    for y, c in zip(objective.shard_labels, objective.shard_costs, strict=True):
        z = np.full((len(y), objective.n_outputs), score)
        pull += float(np.abs(objective.loss.slopes(z[:, 0].copy() if objective.n_outputs == 1 else z, y, c)).sum())
    return pull


def _largest_norm(block: object) -> float:
    return float(block.squared_norms().max(initial=0.0))  # type: ignore[attr-defined]


def null_C(objective: Objective) -> float:  # noqa: N802
    """The largest power of two at which L1 keeps all weights at zero: C·‖Σ c_i l'_i x_i‖_∞ ≤ l1.

    Where no weight may be negative, only features that pull upwards count.
    The intercept is the best one for zero weights, or zero where several of them do not follow from the scores; the
    path then begins near that C. The costs of `objective` have C = 1, and its strength is 1.
    """
    point = objective.at().with_best_intercept(1e-6) if balances(objective) else objective.at()
    l1, pull = objective.strength * objective.regularizer.l1, point.pull
    return power_of_two_below(l1 / pull) if pull > 0 else 1.0


def highest_C(lowest: float) -> float:  # noqa: N802
    """C_max."""
    return max(_HIGHEST, _WIDEST * lowest)


def power_of_two_below(bound: float) -> float:
    """The largest power of two that is at most `bound`."""
    return 2.0 ** math.floor(math.log2(bound))
