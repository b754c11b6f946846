"""Losses that look at several rows together: at those of a group (a query, a sequence), or at all of them.

Conventions
-----------
- `value_and_grad` sees one group: its scores, its labels, and weights whose mean is 1. It returns one number, and its
  slope along every score. That is all a loss must have.
- What a group's loss is multiplied by is the mean cost of its rows, c̄_g = C · the mean of their weights: the sum over
  all rows and groups is Σ_g c̄_g·l_g(z_g, y_g). C times two is costs times two, whatever the loss does with weights.
- A row of weight 0 is absent: the loss never sees it. Folds rely on that. A group without rows costs nothing.
- No loss is ever negative, and all are convex in the scores of a group, but for one that says `convex = False`.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from typing import ClassVar, NamedTuple, Self

import numpy as np

from beeline._sentences import Argument
from beeline._types import Floats, Ints
from beeline._words import count
from beeline.exceptions import ParameterError
from beeline.kernels import dot
from beeline.losses.base import Labels, Loss, Scope, far_out

__all__ = ["AllRowsLoss", "Evaluated", "GroupLoss"]

_EXTREME = 1e100  # costs, whose squares and products doubles can still hold


class Evaluated(NamedTuple):
    """What a loss is for some rows.

    Attributes
    ----------
    values, costs
        l_g and c̄_g of every group that has rows.
    slopes
        The derivatives of Σ_g c̄_g·l_g by every score.
    by_extra
        Those by the parameters that the loss owns.
    """

    values: Floats
    costs: Floats
    slopes: Floats
    by_extra: Floats


class GroupLoss(Loss):
    """A loss of the rows of a group together, or with `scope = "all"` of all rows.

    Attributes
    ----------
    scope
        `group` or `all`.
    starts
        Where the groups begin among the rows at hand, and behind the last one where it ends.
    """

    scope: ClassVar[Scope] = "group"
    labels: ClassVar[Labels] = "real"
    starts: Ints | None = None

    @abstractmethod
    def value_and_grad(self, z: Floats, y: Floats, weights: Floats) -> tuple[float, Floats]:
        """l and dl/dz of the rows of one group."""

    def of_groups(self, z: Floats, y: Floats, weights: Floats, starts: Ints) -> tuple[Floats, Floats, Floats]:
        """Values, slopes and derivatives by the loss's own parameters, group after group: a row of these for each.

        A loss that can take many groups at once does so by a method of its own.
        """
        n_extra = 0 if self.extra is None else len(self.extra)
        values, slopes, by_extra = np.empty(len(starts) - 1), np.empty_like(z), np.empty((len(starts) - 1, n_extra))
        for g, (begin, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
            found = self.value_and_grad(z[begin:end], y[begin:end], weights[begin:end])
            values[g], slopes[begin:end] = found[:2]
            if n_extra:
                by_extra[g] = found[2]  # type: ignore[misc]
        return values, slopes, by_extra

    def within(self, starts: Ints | None) -> Self:
        """The loss of rows whose groups begin there; None: of one group."""
        bound = copy.copy(self)
        bound.starts = starts
        return bound

    def sum(self, z: Floats, y: Floats, c: Floats) -> float:
        """Σ_g c̄_g·l_g."""
        found = self.evaluated(z, y, c)
        return float(np.sum(found.costs * found.values))

    def total_cost(self, c: Floats) -> float:
        """Σ_g c̄_g over the groups that have rows."""
        starts = self.starts if self.starts is not None else np.array([0, len(c)])
        sums, counts = (np.diff(np.append(0.0, np.cumsum(column))[starts]) for column in (c, c > 0))
        return float(np.sum(sums[counts > 0] / counts[counts > 0]))

    def slopes(self, z: Floats, y: Floats, c: Floats) -> Floats:
        """d/dz Σ_g c̄_g·l_g; zero for rows that are absent."""
        return self.evaluated(z, y, c).slopes

    def slopes_and_extra(self, z: Floats, y: Floats, c: Floats) -> tuple[Floats, Floats]:
        """(`slopes`, the derivatives of the sum by the parameters that the loss owns)."""
        found = self.evaluated(z, y, c)
        return found.slopes, found.by_extra

    def along(self, z: Floats, dz: Floats, t: float, y: Floats, c: Floats) -> tuple[float, float]:
        """Σ_g c̄_g·l_g where scores are z + t·dz, and its derivative by t."""
        if self.extra is None or self.extra_change is None:
            found = self.evaluated(z + t * dz, y, c)
            return float(np.sum(found.costs * found.values)), float(np.sum(found.slopes * dz))
        found = self.with_extra(self.extra + t * self.extra_change).evaluated(z + t * dz, y, c)
        slope = float(np.sum(found.slopes * dz)) + dot(found.by_extra, self.extra_change)
        return float(np.sum(found.costs * found.values)), slope

    def evaluated(self, z: Floats, y: Floats, c: Floats) -> Evaluated:
        """All groups, with their costs."""
        starts = self.starts if self.starts is not None else np.array([0, len(z)])
        here = c > 0
        if here.all() and starts[-1] > 0 and not np.any(starts[1:] == starts[:-1]):
            return self._of_present(z, y, c, starts)
        counts = np.diff(np.append(0, np.cumsum(here))[starts])
        slopes = np.zeros_like(z)
        if not counts.any():
            return Evaluated(np.zeros(0), np.zeros(0), slopes, np.zeros(0 if self.extra is None else len(self.extra)))
        kept = np.append(0, np.cumsum(counts[counts > 0]))
        found = self._of_present(z[here], y[here], c[here], kept)
        slopes[here] = found.slopes
        return found._replace(slopes=slopes)

    def _of_present(self, z: Floats, y: Floats, c: Floats, starts: Ints) -> Evaluated:
        """The same for rows that all count, in groups that all have rows."""
        sizes = np.diff(starts)
        low, high = np.minimum.reduceat(c, starts[:-1]), np.maximum.reduceat(c, starts[:-1])
        costs = np.where(low == high, low, np.add.reduceat(c, starts[:-1]) / sizes)
        each = np.repeat(costs, sizes)
        with far_out():
            values, slopes, by_extra = self.of_groups(z, y, c / each, starts)
            self._check_numbers(values, slopes, starts, c)
            slopes = slopes * (each if slopes.ndim == 1 else each[:, None])
            return Evaluated(values, costs, slopes, np.einsum("g,ge->e", costs, by_extra))

    def _check_numbers(self, values: Floats, slopes: Floats, starts: Ints, c: Floats) -> None:
        if not (math.isnan(float(np.sum(values))) or math.isnan(float(np.sum(slopes)))):
            return
        nan_slopes = np.isnan(slopes).reshape(len(slopes), -1).any(axis=1)
        wrong = np.isnan(values) | (np.add.reduceat(nan_slopes, starts[:-1]) > 0)
        if wrong.any():
            _refuse_extremes(c)
            g = int(np.argmax(wrong))
            raise ParameterError(
                f"{self!r} returns {values[g]} with slopes that are no numbers for a group of "
                f"{count(int(starts[g + 1] - starts[g]), 'row')}; it must be a number at every score",
                parameter="loss",
            )


def _refuse_extremes(c: Floats) -> None:
    """Raise where costs are what doubles cannot compute with: that no number comes out is not the loss's fault then."""
    some = c[c > 0]
    far = max(float(some.max()), float(some.min()), key=lambda cost: abs(math.log(cost)))
    if not 1 / _EXTREME < far < _EXTREME:
        large, instead = ("large", "smaller") if far > 1 else ("small", "larger")
        raise ParameterError(
            Argument("C"),
            f" times the weight of a row is {far:.3g}, too {large} for double precision; take a {instead} C, or "
            f"{instead} weights",
        )


class AllRowsLoss(GroupLoss):
    """A loss of all rows together, which is one number l: J = Ω(w) + C·l.

    Weights only say how rows count against each other: where all are equal they change nothing. `fill` sees costs as
    they are, those of absent rows too, so that it may leave these out on a walk that it takes anyway.
    """

    scope: ClassVar[Scope] = "all"

    @abstractmethod
    def fill(self, z: Floats, y: Floats, c: Floats, slopes: Floats) -> tuple[float, float]:
        """(l, c̄): the loss and the mean cost of the rows that are present; the slopes of c̄·l go to `slopes`.

        l is NaN where scores are not finite.
        """

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
            self._check_numbers(np.array([float(np.sum(z))]), slopes, np.array([0, len(z)]), c)
            value = math.inf  # of a step that goes too far
        return Evaluated(np.array([value]), np.array([cost]), slopes, none)
