"""The area under the ROC curve (B10), or under its beginning."""

from __future__ import annotations

import numpy as np

from beeline._numbers import as_number
from beeline._sentences import Argument
from beeline._types import Floats
from beeline.exceptions import ParameterError
from beeline.kernels import roc_area
from beeline.losses.two_classes import TwoClassLoss

__all__ = ["RocArea"]


class RocArea(TwoClassLoss):
    """The mean of max(0, 1 − (z_i − z_j)) over all pairs of a positive row i and a negative row j (B10).

    It is at least the part of the pairs whose order is wrong, which is what the area under the ROC curve lacks of 1. A
    pair counts w_i·w_j. Sorted scores give the sum over all pairs in O(m log m).

    With `max_fpr` = β < 1 the measure is the area up to a false positive rate of β, as a part of the most that it can
    be. Only pairs with the highest-scored negative rows count, of the part β of the weight, and of the last of them a
    part may count. Of all negative rows of that weight they cost most, so that this is a maximum of convex functions:
    the structural form of Narasimhan and Agarwal (SVM_pAUC^tight, KDD 2013), with the hinge of every pair.

    Parameters
    ----------
    max_fpr
        β, above 0 and at most 1.
    """

    name = "roc_area"
    formula = "mean over pairs of max(0, 1 − (z₊ − z₋))"
    summary = "the area under the ROC curve, up to the false positive rate max_fpr"
    differences_only = True
    class_weights_cancel = True

    def __init__(self, max_fpr: float = 1.0) -> None:
        if not 0 < as_number("max_fpr", max_fpr) <= 1:
            raise ParameterError(Argument("max_fpr"), f" must be above 0 and at most 1, not {max_fpr}")
        self.max_fpr = float(max_fpr)

    @property
    def measure(self) -> str:
        """The area, or the part of it that is measured."""
        return "auc" if self.max_fpr == 1 else f"partial_auc@{self.max_fpr:g}"

    def fill(self, z: Floats, y: Floats, c: Floats, slopes: Floats) -> tuple[float, float]:
        """By the kernel."""
        return roc_area(z, y, c, self.max_fpr, slopes)

    def measured(self, z: Floats, y: Floats, c: Floats) -> float:
        """The part of the pairs, by their weights, that are in order, as the mean over all orders of rows that tie.

        Of a tie that the cut goes through, the part f of its negative rows counts, and of those pairs f/2: the ROC
        curve goes straight there. A whole tie is half in order.
        """
        up = y > 0
        if up.all() or not up.any():
            return np.nan
        places, tie = np.unique(z[~up], return_inverse=True)
        weights = np.bincount(tie, weights=c[~up])
        from_above = np.minimum(np.cumsum(weights[::-1]), self.max_fpr * weights.sum())
        counted = np.diff(from_above, prepend=0.0)[::-1]
        below = np.append(0.0, np.cumsum(counted))
        tied = np.append(counted**2 / (2 * weights), 0.0)
        left, right = (np.searchsorted(places, z[up], side=side) for side in ("left", "right"))
        in_order = below[left] + np.where(right > left, tied[left], 0.0)
        return float(np.sum(c[up] * in_order) / (c[up].sum() * below[-1]))
