"""What losses of two classes over all rows share.

A measure such as the area under the ROC curve, or F1, is no sum over rows. Its loss here is one number for all of them:
J = Ω(w) + C·l. Weights only say how rows count against each other; where all are equal they change nothing, and a row
of weight 0 is absent. Where one of the classes is absent, there is nothing to measure, and the loss is zero.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np

from beeline._numbers import as_whole_number
from beeline._sentences import Argument
from beeline._types import Floats
from beeline.exceptions import ParameterError
from beeline.losses.base import Labels, Scope
from beeline.losses.groups import Evaluated, GroupLoss

__all__ = ["TwoClassLoss", "between_scores", "positive_whole"]


class TwoClassLoss(GroupLoss):
    """A loss of two classes over all rows together.

    Attributes
    ----------
    measure
        What the measure is called whose mistakes the loss bounds from above.
    class_weights_cancel
        Whether it makes no difference what multiplies the weights of all rows of a class.
    instead
        Another loss, in words, where nothing can be learned by this one; empty where there is none to name.
    """

    scope: ClassVar[Scope] = "all"
    labels: ClassVar[Labels] = "binary"
    smooth: ClassVar[bool] = False
    class_weights_cancel: ClassVar[bool] = False
    instead: ClassVar[str] = ""

    @property
    @abstractmethod
    def measure(self) -> str:
        """What is measured, as a search for C calls it."""

    @abstractmethod
    def fill(self, z: Floats, y: Floats, c: Floats, slopes: Floats) -> tuple[float, float]:
        """(l, c̄): the loss and the mean cost of the rows that are present; the slopes of c̄·l go to `slopes`."""

    @abstractmethod
    def measured(self, z: Floats, y: Floats, c: Floats) -> float:
        """The measure itself, for rows that are all present; greater is better."""

    def check_counts(self, positive: int, rows: int, name: object) -> None:
        """Raise `ParameterError` when the settings do not fit so many rows, some of them of the positive class."""

    def of_part(self, part: float) -> Self:
        """The loss for that part of the rows: what counts rows counts as many fewer."""
        return self

    def threshold(self, z: Floats, y: Floats, c: Floats) -> float:
        """The score above which a row is best called positive, where only differences of scores matter."""
        return best_threshold(z, y, c)

    def value_and_grad(self, z: Floats, y: Floats, weights: Floats) -> tuple[float, Floats]:
        """Value and a subgradient."""
        found = self.evaluated(z, y, weights)
        if not len(found.values):
            return 0.0, found.slopes
        return float(found.values[0]), found.slopes / found.costs[0]

    def evaluated(self, z: Floats, y: Floats, c: Floats) -> Evaluated:
        """All rows, with their cost."""
        slopes, none = np.empty_like(z), np.zeros(0)
        value, cost = self.fill(z, y, c, slopes)
        if not cost > 0:
            return Evaluated(none, none, np.zeros_like(z), none)
        if math.isnan(value):
            self._check_numbers(np.array([float(np.sum(z))]), slopes, np.array([0, len(z)]))
            value = math.inf  # of a step that goes too far
        return Evaluated(np.array([value]), np.array([cost]), slopes, none)


def best_threshold(z: Floats, y: Floats, c: Floats) -> float:
    """The threshold with the greatest sum of both classes' parts that are told rightly (Youden 1950).

    Half way between two scores; of several thresholds that are as good, the one in the middle of them.
    """
    here = c > 0
    z, up, c = z[here], y[here] > 0, c[here]
    if up.all() or not up.any():
        return 0.0
    order = np.argsort(-z, kind="stable")
    z, up, c = z[order], up[order], c[order]
    gains = np.where(up, c / c[up].sum(), -c / c[~up].sum())
    sums = np.append(0.0, np.cumsum(gains))  # of calling so many rows positive
    apart = np.append(True, np.append(z[1:] < z[:-1], True))
    best = float(np.max(sums[apart]))
    places = np.flatnonzero(apart & (sums >= best - 1e-12))
    return between_scores(z, int(places[len(places) // 2]))


def between_scores(z: Floats, called: int) -> float:
    """A threshold that so many of the scores, which fall, are above."""
    if 0 < called < len(z):
        middle = 0.5 * (z[called - 1] + z[called])
        return float(middle if middle < z[called - 1] else z[called])
    if not len(z):
        return 0.0
    room = max(1.0, abs(float(z[0]))) if called == 0 else -max(1.0, abs(float(z[-1])))
    return float((z[0] if called == 0 else z[-1]) + 1e-6 * room)


def threshold_for(z: Floats, c: Floats, called: float) -> float:
    """A threshold above which rows of so much weight are, or a little more."""
    here = c > 0
    z, c = z[here], c[here]
    order = np.argsort(-z, kind="stable")
    z, sums = z[order], np.cumsum(c[order])
    last = z[min(int(np.searchsorted(sums, called * (1 - 1e-9))), len(z) - 1)]
    return between_scores(z, int(np.searchsorted(-z, -last, side="right")))  # equal scores are not told apart


def positive_whole(name: str, value: int) -> int:
    """The setting, which must be a positive whole number."""
    if (number := as_whole_number(name, value)) < 1:
        raise ParameterError(Argument(name), f" must be at least 1, not {value}")
    return number
