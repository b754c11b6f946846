"""Ordinal regression by pairs of rows of different levels (B11), and the thresholds that are chosen afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from beeline._types import Floats
from beeline.exceptions import ParameterError
from beeline.kernels import level_pairs
from beeline.losses.costs import checked_costs
from beeline.losses.groups import AllRowsLoss
from beeline.losses.ordinal import LevelLoss
from beeline.losses.thresholds import between_scores

__all__ = ["LevelPairs"]


class LevelPairs(LevelLoss, AllRowsLoss):
    """Σ C(y_i, y_j)·max(0, 1 + z_i − z_j) over the pairs with y_i < y_j, by their number (B11; Joachims 2006).

    It bounds what pairs in the wrong order cost on average, a pair of levels k < l costing C(k, l), and weighing
    w_i·w_j. Sorted scores give the sum over all pairs in O(m log m + m·K), K levels: the published algorithm, with sums
    for each level in place of counts. Like every loss over all rows it is one number, J = Ω(w) + C·l.

    Only the order of scores matters to it. The thresholds of a model are chosen after training: those at which the
    training rows have the least Σ w_i·C(y_i, ŷ_i), found exactly from the sorted scores.

    Parameters
    ----------
    costs
        "linear": l − k, so many levels apart; "unit": 1; "squared": (l − k)²; or a matrix of K × K numbers, none
        negative, with zeros on the diagonal, of which for pairs the part above the diagonal counts, and both for
        thresholds.
    levels
        As for every loss of levels.
    """

    name = "level_pairs"
    formula = "mean over pairs with y_i < y_j of C(y_i, y_j)·max(0, 1 + z_i − z_j)"
    summary = "levels in an order, by the pairs of rows that scores put in the wrong one"
    smooth = False

    def __init__(self, costs: Any = "linear", levels: Sequence[Any] | None = None) -> None:  # noqa: ANN401
        super().__init__(levels)
        if isinstance(costs, str):
            if costs not in ("linear", "unit", "squared"):
                raise ParameterError(
                    f"costs must be 'linear', 'unit', 'squared' or a matrix, not {costs!r}", parameter="costs"
                )
            self.costs: Any = costs
        else:
            self.costs = checked_costs(costs)
            _refuse_one_sided(self.costs)

    def with_classes(self, names: Sequence[object]) -> LevelPairs:
        """The loss of so many levels, which the matrix of costs must have too."""
        if not isinstance(self.costs, str) and len(self.costs) != len(names):
            k = len(self.costs)
            raise ParameterError(
                f"the costs are a matrix of {k} × {k} numbers, but there are {len(names)} levels", parameter="costs"
            )
        return super().with_classes(names)

    def cost_matrix(self, n_levels: int) -> Floats:
        """C(k, l)."""
        if not isinstance(self.costs, str):
            given: Floats = self.costs
            return given
        levels = np.arange(n_levels)
        apart = np.abs(levels[:, None] - levels).astype(np.float64)
        by_name: dict[str, Floats] = {"linear": apart, "unit": np.minimum(apart, 1.0), "squared": apart**2}
        return by_name[self.costs]

    def _matrix_for(self, y: Floats) -> Floats:
        """C of all levels; of labels that no fit has announced, of as many as there are."""
        if not isinstance(self.costs, str):
            return self.cost_matrix(len(self.costs))
        return self.cost_matrix(max(self.n_levels, int(y.max(initial=0.0)) + 1))

    def fill(self, z: Floats, y: Floats, c: Floats, slopes: Floats) -> tuple[float, float]:
        """By the kernel."""
        return level_pairs(z, y, c, np.ascontiguousarray(self._matrix_for(y)), slopes)

    def best_thresholds(self, z: Floats, y: Floats, c: Floats) -> Floats:
        """Those with the least Σ c_i·C(y_i, ŷ_i); by dynamic programming over the sorted scores, in O(m·K)."""
        here = c > 0
        z, level, c = z[here], y[here].astype(np.int64), c[here]
        costs = self.cost_matrix(self.n_levels)
        order = np.argsort(z, kind="stable")
        z, level, c = z[order], level[order], c[order]
        apart = np.append(True, np.append(z[1:] > z[:-1], True))
        # least[i]: of the i lowest rows, each of a level up to k; cuts[k][i]: where level k begins among them.
        least, cuts = np.zeros(len(z) + 1), []
        for k in range(self.n_levels):
            sums = np.append(0.0, np.cumsum(c * costs[level, k]))
            begin = np.where(apart, least - sums, np.inf) if k else np.where(np.arange(len(sums)) == 0, 0.0, np.inf)
            best = np.minimum.accumulate(begin)
            cuts.append(np.maximum.accumulate(np.where(begin == best, np.arange(len(sums)), 0)))
            least = best + sums
        thresholds, end = np.empty(self.n_levels - 1), len(z)
        for k in range(self.n_levels - 1, 0, -1):
            end = int(cuts[k][end])
            thresholds[k - 1] = between_scores(z[::-1], len(z) - end)
        return thresholds


def _refuse_one_sided(costs: Floats) -> None:
    """Where only mistakes to one side cost anything, thresholds that predict one level for all rows cost nothing."""
    above, below = np.triu(costs).any(), np.tril(costs).any()
    if above == below:
        return
    empty = "below" if above else "above"
    raise ParameterError(
        f"the costs are all zero {empty} the diagonal, so that a single level for all rows would cost nothing; "
        "costs[k][l] is what a row of level k costs that is predicted to be of level l: give both sides, such as the "
        "matrix plus its transpose",
        parameter="costs",
    )
