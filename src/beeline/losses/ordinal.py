"""Losses of levels in an order: one score a row, and thresholds that cut the scores into levels.

Conventions
-----------
- Levels are numbered 0 … K−1 from the lowest on. A row is of level k where k thresholds lie below its score z; those
  are θ_0 ≤ … ≤ θ_{K−2}.
- A model keeps a column for each level, s_k = kz − Σ_{j<k} θ_j. Neighbours differ by z − θ_k, so that the largest s_k
  is that of the level that thresholds say.
- Thresholds take the place of an intercept: a shift of all scores and of them changes nothing.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Literal, Self

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline._words import label_text, shortened
from beeline.exceptions import LabelError, ParameterError
from beeline.kernels import dot, level_thresholds
from beeline.losses.base import Labels, Loss, RowLoss, far_out
from beeline.losses.numeric import sigmoid

__all__ = [
    "AllThreshold",
    "AllThresholdHinge",
    "ImmediateThreshold",
    "ImmediateThresholdHinge",
    "LevelLoss",
    "ThresholdLoss",
    "from_level_columns",
    "level_columns",
]


class LevelLoss(Loss):
    """A loss of levels in an order.

    Parameters
    ----------
    levels
        The levels from the lowest to the highest, by their names. None: the labels as they are sorted, smaller numbers
        first, also where these are written as texts.
    """

    labels: ClassVar[Labels] = "levels"
    differences_only = True
    n_levels = 2  # until the classes are known

    def __init__(self, levels: Sequence[Any] | None = None) -> None:
        self.levels = None if levels is None else _checked(levels)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
        return f"{type(self).__name__}({shown})"

    def order(self, names: AnyArray) -> Ints:
        """Where each level, from the lowest on, is among the names of classes, which are sorted."""
        if self.levels is None:
            numbers = _as_numbers(names)
            return np.arange(len(names)) if numbers is None else np.argsort(numbers, kind="stable")
        spelled = label_text if names.dtype.kind in "OU" else _number_text
        place = {spelled(name): k for k, name in enumerate(names.tolist())}
        wanted = [spelled(level) for level in self.levels]
        _refuse_twice(wanted)
        stray = next((name for name in names.tolist() if spelled(name) not in wanted), None)
        if stray is not None:
            raise LabelError(
                f"the label {stray!r} is none of the levels, which are {shortened(wanted)}; name it among them, where "
                "it belongs"
            )
        empty = next((level for level in wanted if level not in place), None)
        if empty is not None:
            raise LabelError(
                f"no row (of positive weight) has the level {empty!r}, so that nothing says where it begins and ends; "
                "leave it out of the levels"
            )
        return np.array([place[level] for level in wanted])

    def knows_order(self, names: AnyArray) -> bool:
        """Whether the order of these classes is more than that of the alphabet; of two, either order is as good."""
        return (
            self.levels is not None or names.dtype.kind not in "OU" or len(names) < 3 or _as_numbers(names) is not None
        )

    def with_levels(self, levels: Sequence[Any]) -> Self:
        """The loss of levels with these names, the lowest first."""
        named = copy.copy(self)
        named.levels = _checked(levels)
        return named

    def n_classes(self, n_scores: int) -> int:
        """As many as there are levels, for one score."""
        return self.n_levels

    def with_classes(self, names: Sequence[object]) -> Self:
        """The loss of so many levels."""
        bound = copy.copy(self)
        bound.n_levels = len(names)
        return bound

    def level_scores(self, z: Floats, thresholds: Floats) -> Floats:
        """s_k of every row for each level; of two levels s_1 − s_0."""
        w, b = level_columns(z.reshape(-1, 1), thresholds)
        scores: Floats = w + b
        return scores


def level_columns(column: Floats, thresholds: Floats) -> tuple[Floats, Floats]:
    """(k times the column for each level k, −Σ_{j<k} θ_j); of two levels their difference."""
    if len(thresholds) == 1:
        return column.copy(), -thresholds
    sums = np.append(0.0, -np.cumsum(thresholds))
    return column * np.arange(len(sums)), sums


def from_level_columns(columns: Floats) -> Floats:
    """The column that those of the levels are multiples of."""
    return columns[:, :1] if columns.shape[1] == 1 else columns[:, 1:2] - columns[:, :1]


def _checked(levels: Any) -> list[Any]:  # noqa: ANN401
    given = levels.tolist() if hasattr(levels, "tolist") else levels
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ParameterError(f"levels must be a list of names, the lowest first, not {levels!r}", parameter="levels")
    names = [label_text(level) for level in given]
    if len(names) < 2:
        raise ParameterError(f"there must be at least two levels, not {len(names)}", parameter="levels")
    _refuse_twice(names)
    return list(given)


def _refuse_twice(names: list[str]) -> None:
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise ParameterError(f"the level {twice!r} is named twice", parameter="levels")


def _as_numbers(names: AnyArray) -> Floats | None:
    """Names that are numbers, also those written as texts, as they are compared; None where one is no number."""
    try:
        numbers = names.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def _number_text(level: object) -> str:
    """A level among labels that are numbers, of which 1.0 and "1.0" are the same as 1."""
    try:
        return label_text(float(level))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return label_text(level)


def _of_margins(a: Floats, margin: Literal["logistic", "hinge"]) -> tuple[Floats, Floats]:
    """(φ(a), φ'(a)): log(1 + exp(−a)), or max(0, 1 − a)."""
    if margin == "logistic":
        return np.logaddexp(0.0, -a), -sigmoid(-a)
    return np.maximum(0.0, 1.0 - a), np.where(a < 1.0, -1.0, 0.0)


class ThresholdLoss(LevelLoss, RowLoss):
    """A loss of single rows, which owns the thresholds."""

    free_extra = True
    margin: ClassVar[Literal["logistic", "hinge"]]
    all_thresholds: ClassVar[bool]

    def n_extra(self, n_outputs: int) -> int:
        """A threshold between any two neighbours."""
        return self.n_levels - 1

    def sum(self, z: Floats, y: Floats, c: Floats) -> float:
        """Σ c_i l(z_i, y_i)."""
        return level_thresholds(z, y, c, self.thresholds, self.all_thresholds, self.margin == "logistic")

    def slopes(self, z: Floats, y: Floats, c: Floats) -> Floats:
        """c_i · dl/dz for every row."""
        return self._derivatives(z, y, c)[1]

    def slopes_and_extra(self, z: Floats, y: Floats, c: Floats) -> tuple[Floats, Floats]:
        """(`slopes`, the derivatives of the sum by the thresholds)."""
        return self._derivatives(z, y, c)[1:3]

    @property
    def has_extra_curvatures(self) -> bool:
        """By the thresholds, of the logistic loss; by two of them at once there is no curvature."""
        return self.smooth

    def derivatives_with_extra(self, z: Floats, y: Floats, c: Floats) -> tuple[Floats, tuple[Floats | float, ...]]:
        """All that there is, in one go."""
        value, slopes, by_threshold, curvatures = self._derivatives(z, y, c)
        return slopes, (by_threshold, curvatures, value) if self.smooth else (by_threshold,)

    def best_extra(self, slopes: Floats, curvatures: Floats, reach: float) -> Floats:
        """A step of Newton's along each threshold, no longer than the reach."""
        return self.thresholds + _newton_steps(slopes, curvatures, reach)

    def along(self, z: Floats, dz: Floats, t: float, y: Floats, c: Floats) -> tuple[float, float]:
        """The sum where scores are z + t·dz, and thresholds have moved too, and its derivative by t."""
        change = np.zeros(self.n_levels - 1) if self.extra_change is None else self.extra_change
        with far_out():
            moved = self.with_extra(self.thresholds + t * change)
            value, slopes, by_threshold, _ = moved._derivatives(z + t * dz, y, c)
            return value, float(np.sum(slopes * dz)) + dot(by_threshold, change)

    def _derivatives(self, z: Floats, y: Floats, c: Floats) -> tuple[float, Floats, Floats, Floats]:
        """The sum, its slopes by every score and by the thresholds, and its curvatures by these; by the kernel."""
        slopes, by_threshold, curvatures = np.empty_like(z), *np.empty((2, self.n_levels - 1))
        how = self.all_thresholds, self.margin == "logistic"
        value = level_thresholds(z, y, c, self.thresholds, *how, slopes, by_threshold, curvatures)
        return value, slopes, by_threshold, curvatures

    def value_and_grad(self, z: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:  # type: ignore[override]
        """Value, and the slopes by the score and by every threshold."""
        values, by_threshold = self.by_threshold(z, y)
        return values, -by_threshold.sum(axis=1), by_threshold

    @abstractmethod
    def by_threshold(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """(the value, the slopes by the thresholds), row by row."""

    @property
    def thresholds(self) -> Floats:
        """θ, where the loss is evaluated."""
        return np.zeros(self.n_levels - 1) if self.extra is None else self.extra


class _AllThreshold(ThresholdLoss):
    """Σ_{k<y} φ(z − θ_k) + Σ_{k≥y} φ(θ_k − z): each threshold tells the levels below it from those above.

    The optimum is in order by itself (Chu and Keerthi 2005; Rennie and Srebro 2005). With F_k the losses at threshold
    k, F_{k+1}(t) − F_k(t) = Σ_{y = k+1} φ(t − z) − φ(z − t) never rises with t. So F_k + F_{k+1} is no larger where two
    neighbours that are out of order change places: to sort thresholds never costs anything.
    """

    all_thresholds = True

    def by_threshold(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Of all thresholds."""
        with far_out():
            signs = np.where(y[:, None] > np.arange(self.n_levels - 1), 1.0, -1.0)
            values, slopes = _of_margins(signs * (z[:, None] - self.thresholds), self.margin)
            return values.sum(axis=1), -signs * slopes

    def in_order(self, extra: Floats) -> Floats:
        """Sorted."""
        return np.sort(extra)


class _ImmediateThreshold(ThresholdLoss):
    """φ(z − max_{k<y} θ_k) + φ(min_{k≥y} θ_k − z): a row is told from its neighbours by the thresholds of its level.

    In order these are φ(z − θ_{y−1}) + φ(θ_y − z), the sum over the two thresholds of the level (Shashua and Levin
    2002; explicit constraints in Chu and Keerthi 2005), whose optimum need not be in order: that of a rare level is
    not. With largest and smallest ones the loss is convex for any thresholds, since φ falls: φ(z − max θ) is the
    largest of φ(z − θ_k). And it has its optimum where they are in order, as with constraints: if t_k = max_{j≤k} θ_j
    takes the place of θ_k, no lower one changes and no upper one falls, so that no loss rises.
    """

    all_thresholds = False

    def by_threshold(self, z: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Of the thresholds next to the level."""
        thresholds, rows, level = self.thresholds, np.arange(len(z)), y.astype(np.int64)
        values, slopes = np.zeros(len(z)), np.zeros((len(z), len(thresholds)))
        lower, upper = _largest_so_far(thresholds), len(thresholds) - 1 - _largest_so_far(-thresholds[::-1])[::-1]
        with far_out():
            for there, own, sign in ((level > 0, lower[level - 1], 1.0), (level < len(upper), None, -1.0)):
                place = own[there] if own is not None else upper[level[there]]
                value, slope = _of_margins(sign * (z[there] - thresholds[place]), self.margin)
                values[there] += value
                slopes[rows[there], place] -= sign * slope
        return values, slopes

    def in_order(self, extra: Floats) -> Floats:
        """Each the largest of those up to it."""
        return np.maximum.accumulate(extra)

    def best_extra(self, slopes: Floats, curvatures: Floats, reach: float) -> Floats:
        """The best thresholds in order: isotonic regression of the steps that each would take, by its curvature."""
        steps = _newton_steps(slopes, curvatures, reach)
        return _isotonic(self.thresholds + steps, np.maximum(curvatures, np.abs(slopes) / reach) + 1e-300)

    def settled_slopes(self, by_extra: Floats) -> Floats:
        """Those of thresholds that are equal divided among them evenly, where a subgradient has them so.

        What a row of level k gives to max_{j<k} θ_j may as well be given to any equal threshold below, and what it
        gives to min_{j≥k} θ_j to any above. So slopes may be handed down and up to where they cancel, as long as what
        is handed over is not negative: as long as no sum of the first ones exceeds their even share.
        """
        t, given = self.thresholds.tolist(), by_extra.tolist()
        if all(low < high for low, high in pairwise(t)) or any(low > high for low, high in pairwise(t)):
            return by_extra
        settled, begin = by_extra.copy(), 0
        for end in range(1, len(t) + 1):
            if end < len(t) and t[end] == t[begin]:
                continue
            mean = sum(given[begin:end]) / (end - begin)
            if all(total <= 0 for total in accumulate(one - mean for one in given[begin : end - 1])):
                settled[begin:end] = mean
            begin = end
        return settled


def _largest_so_far(values: Floats) -> Ints:
    """Where the largest of the values up to each is; the last one of several."""
    most, places = np.maximum.accumulate(values), np.arange(len(values))
    return np.maximum.accumulate(np.where(values == most, places, 0))


def _newton_steps(slopes: Floats, curvatures: Floats, reach: float) -> Floats:
    """A Newton step along each of some coordinates that do not know of each other, no longer than the reach."""
    far = np.abs(slopes) > reach * curvatures
    return np.where(far, -np.sign(slopes) * reach, -slopes / np.where(far | (curvatures <= 0), 1.0, curvatures))


def _isotonic(targets: Floats, weights: Floats) -> Floats:
    """The numbers in order that are nearest to the targets by weighted squares: neighbours out of order are pooled."""
    pools: list[tuple[float, float, int]] = []  # of each its mean, weight and size
    for target, weight in zip(targets.tolist(), weights.tolist(), strict=True):
        mean, total, size = target, weight, 1
        while pools and pools[-1][0] >= mean:
            before, more, others = pools.pop()
            mean, total, size = (mean * total + before * more) / (total + more), total + more, size + others
        pools.append((mean, total, size))
    return np.repeat([mean for mean, _, _ in pools], [size for _, _, size in pools])


class AllThreshold(_AllThreshold):
    """Σ_{k<y} log(1 + exp(θ_k − z)) + Σ_{k≥y} log(1 + exp(z − θ_k)): all thresholds, by the logistic loss.

    Each threshold is a logistic regression of "above it", and all share w: P(y > k) = 1/(1 + exp(θ_k − z)).
    """

    name = "all_threshold"
    formula = "Σ_k log(1 + exp(∓(z − θ_k)))"
    summary = "levels in an order, each threshold a logistic regression of what lies above it"
    link = "cumulative"
    margin = "logistic"


class AllThresholdHinge(_AllThreshold):
    """Σ_{k<y} max(0, 1 − (z − θ_k)) + Σ_{k≥y} max(0, 1 + (z − θ_k)): all thresholds, by the hinge."""

    name = "all_threshold_hinge"
    formula = "Σ_k max(0, 1 ∓ (z − θ_k))"
    summary = "levels in an order, each threshold with a margin to all rows"
    smooth = False
    margin = "hinge"


class ImmediateThreshold(_ImmediateThreshold):
    """log(1 + exp(θ_{y−1} − z)) + log(1 + exp(z − θ_y)): the thresholds of the row's level, by the logistic loss.

    Each threshold is a logistic regression between neighbours: P(y = k+1) / P(y = k) = exp(z − θ_k). Where thresholds
    meet it has kinks, and none where it is looked at with the best thresholds only, as solvers for smooth losses do.
    """

    smooth = True

    name = "immediate_threshold"
    formula = "log(1 + exp(θ_{y−1} − z)) + log(1 + exp(z − θ_y))"
    summary = "levels in an order, each threshold a logistic regression between neighbours"
    link = "softmax"
    margin = "logistic"


class ImmediateThresholdHinge(_ImmediateThreshold):
    """max(0, 1 − (z − θ_{y−1})) + max(0, 1 − (θ_y − z)): the thresholds of the row's level, by the hinge."""

    name = "immediate_threshold_hinge"
    formula = "max(0, 1 − (z − θ_{y−1})) + max(0, 1 − (θ_y − z))"
    summary = "levels in an order, each threshold with a margin to its neighbours"
    smooth = False
    margin = "hinge"
