"""The models that the bundle method minimises: Ω and the largest of the planes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from beeline._types import Floats
from beeline.data.core.block import Block
from beeline.kernels import add_scaled, dot
from beeline.objective import Penalty
from beeline.solvers.bundle.planes import Plane, Planes
from beeline.solvers.bundle.simplex_qp import independent_rows, maximise

__all__ = ["Minimum", "PlanesModel", "QuadraticModel", "SinglePlane"]

_NEWTON_STEPS = 30
_UNIT = 32 * float(np.finfo(np.float64).eps)
_ENOUGH = 1e-2  # of the gap, that a solution of the model may miss


@dataclass(frozen=True)
class Minimum:
    """The minimum of a model.

    Attributes
    ----------
    weights, intercepts
        Where it is; only intercepts that were not eliminated.
    bound
        A proven lower bound of min J.
    slack
        Where the weights are only near the minimum: how far each is from being wanted, 0 … 1. In the minimum those with
        a slack are zero.
    """

    weights: Floats
    intercepts: Floats
    bound: float
    slack: Floats | None = None


class PlanesModel(ABC):
    """h(w) + max over planes of ⟨a, w⟩ + b."""

    @abstractmethod
    def add(self, plane: Plane) -> None:
        """Another plane."""

    @abstractmethod
    def minimise(self, gap: float) -> Minimum:
        """Its minimum, so accurately that a bound loses a small part of the gap."""

    def snapshot(self) -> dict[str, Any] | None:
        """All that it goes on from, to the same bits; None where it cannot say."""
        return None

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        raise NotImplementedError

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The memory of the planes."""

    @property
    @abstractmethod
    def steepest(self) -> float:
        """The largest ‖a‖² of any plane so far."""


class QuadraticModel(PlanesModel):
    """A model whose h is strongly convex, by its dual: max over the simplex of D(α) = αᵀb + min over w of h(w) + wᵀAα.

    For ½λ‖w‖² that is the quadratic programme (12), D(α) = αᵀb − ‖Aα‖²/(2λ) and w = −Aα/λ. With an L1 part or bounds, D
    is made of such pieces; each step maximises the piece at hand, and goes as far that way as D rises. Intercepts that
    were not eliminated have (Aα) = 0 as a constraint, whose multipliers they are. Any α on the simplex gives a bound,
    so that D, evaluated anew at what the programme's solver returns, is one however accurate that is.
    """

    def __init__(self, penalty: Penalty, planes: Planes) -> None:
        self.penalty, self.planes = penalty, planes

    def snapshot(self) -> dict[str, Any] | None:
        """The planes."""
        return self.planes.snapshot()

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self.planes.restore(snapshot)

    def add(self, plane: Plane) -> None:
        """Another plane; its products with the others cost planes × weights steps."""
        self.planes.add(plane)

    @property
    def nbytes(self) -> int:
        """The memory of the planes."""
        return self.planes.nbytes

    @property
    def steepest(self) -> float:
        """The largest ‖a‖² of any plane so far."""
        return self.planes.steepest

    def minimise(self, gap: float) -> Minimum:
        """By one programme, or as many as D has pieces on the way."""
        planes = self.planes
        rows, turn = independent_rows(planes.intercept_slopes.T) if planes.intercept_slopes.shape[1] else (None, None)
        if self.penalty.plain:
            H = planes.gram / self.penalty.l2
            alpha, multipliers = maximise(H, planes.offsets, planes.alpha, _ENOUGH * gap, rows)
        else:
            alpha, multipliers = self._by_pieces(rows, gap)
        tail = -(multipliers[:, None] * turn).sum(axis=0) if turn is not None else np.zeros(0)
        mean = planes.mean(alpha)
        n = planes.slopes.n_features
        w = self.penalty.least(mean.slope[:n])
        bound = planes.bound(alpha, self.penalty, 10 * max(1.0, float(np.abs(tail).max(initial=0.0))))
        planes.use(alpha)
        return Minimum(w, tail, bound)

    def _by_pieces(self, rows: Floats | None, gap: float) -> tuple[Floats, Floats]:
        """(α, multipliers of the rows): Newton's method on D, by programmes over the simplex."""
        planes, alpha = self.planes, self.planes.alpha
        multipliers = np.zeros(0 if rows is None else len(rows))
        v = planes.slopes.transposed(alpha)
        w = self.penalty.least(v)
        for _ in range(_NEWTON_STEPS):
            H = self._curvature(w)
            slopes = planes.offsets + planes.slopes.scores(w)  # ∂D
            found, multipliers = maximise(H, slopes + _product(H, alpha), alpha, 0.1 * _ENOUGH * gap, rows)
            # How far w is from the model's minimum: D itself shows only the square of it.
            heights = slopes - (_mixed(multipliers, rows) if rows is not None else 0.0)
            if float(heights.max()) - dot(heights, alpha) <= max(_ENOUGH * gap, 1e-14 * abs(float(heights.max()))):
                break
            step = found - alpha
            along = planes.slopes.transposed(step)
            t = self._climb(v, along, dot(planes.offsets, step))
            if not t:
                break
            alpha = alpha + t * step
            alpha = np.where(alpha > 1e-15, alpha, 0.0)
            alpha /= alpha.sum()
            add_scaled(t, along, v)
            w = self.penalty.least(v)
        return alpha, multipliers

    def _curvature(self, w: Floats) -> Floats:
        """−∂²D: the products of the slopes over the weights that move, divided by l2."""
        moves = self.penalty.inside(w)
        columns = np.nonzero(moves)[0]
        if 2 * len(columns) < len(w):
            gram = _gram(self.planes.slopes.values[:, columns])
        else:
            rest = np.nonzero(moves == 0)[0]
            gram = self.planes.gram - (_gram(self.planes.slopes.values[:, rest]) if len(rest) else 0.0)
        return gram / self.penalty.l2

    def _climb(self, v: Floats, along: Floats, rise: float) -> float:
        """How far D rises from v along a step, 0 … 1: where its derivative by t changes sign."""

        def slope(t: float) -> float:
            return rise + dot(along, self.penalty.least(v + t * along))

        if slope(1.0) >= 0:
            return 1.0
        low, high = (0.0, slope(0.0)), (1.0, slope(1.0))
        for _ in range(30):
            if low[1] <= 0:
                return low[0]
            part = low[1] / (low[1] - high[1])
            t = low[0] + (high[0] - low[0]) * min(max(part, 0.1), 0.9)
            here = slope(t)
            low, high = ((t, here), high) if here > 0 else (low, (t, here))
            if abs(here) <= 1e-3 * abs(rise) or high[0] - low[0] <= 1e-12:
                break
        return low[0] or high[0]


def _gram(rows: Floats) -> Floats:
    """The products of all rows with each other."""
    p, n = rows.shape
    lower = Block(np.ascontiguousarray(rows.T), p).gram(np.ones(n))
    return lower + np.tril(lower, -1).T


def _mixed(multipliers: Floats, rows: Floats) -> Floats:
    mixed: Floats = (multipliers[:, None] * rows).sum(axis=0)
    return mixed


def _product(H: Floats, alpha: Floats) -> Floats:
    product: Floats = (H * alpha).sum(axis=1)
    return product


class SinglePlane(PlanesModel):
    """The model of the variant without a quadratic programme (B6; section 6 of the paper).

    All planes so far are one, the mean that the dual took of them. A new one is mixed with it as the proof of theorem 2
    does: D is maximised along the line from [α, 0] to [0, 1]. Memory: two planes.
    """

    def __init__(self, penalty: Penalty, n_weights: int) -> None:
        self.penalty = penalty
        self.slope, self.offset, self.slope_error, self._steepest = np.zeros(n_weights), 0.0, 0.0, 0.0

    def snapshot(self) -> dict[str, Any] | None:
        """The one plane."""
        return {"slope": self.slope, "numbers": [self.offset, self.slope_error, self._steepest]}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self.slope, (self.offset, self.slope_error, self._steepest) = np.array(snapshot["slope"]), snapshot["numbers"]

    def add(self, plane: Plane) -> None:
        """Mix it in."""
        slope = plane.slope[: len(self.slope)]
        self._steepest = max(self._steepest, dot(slope, slope))
        along, rise = slope - self.slope, plane.offset - self.offset
        t = self._climb(along, rise)
        add_scaled(t, along, self.slope)
        self.offset += t * rise
        self.slope_error += t * (plane.slope_error - self.slope_error) + _UNIT * float(np.sqrt(dot(slope, slope)))

    def _climb(self, along: Floats, rise: float) -> float:
        def slope(t: float) -> float:
            return rise + dot(along, self.penalty.least(self.slope + t * along))

        if self.penalty.plain:
            linear, square = slope(0.0), dot(along, along) / self.penalty.l2
            return min(max(linear / square, 0.0), 1.0) if square else float(linear > 0)
        low, high = 0.0, 1.0
        if slope(1.0) >= 0:
            return 1.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) > 0 else (low, middle)
        return low

    @property
    def nbytes(self) -> int:
        """The memory of the planes."""
        return 2 * self.slope.nbytes

    @property
    def steepest(self) -> float:
        """The largest ‖a‖² of any plane so far."""
        return self._steepest

    def minimise(self, gap: float) -> Minimum:
        """In closed form."""
        w = self.penalty.least(self.slope)
        rounding = _UNIT * (abs(self.offset) + self.penalty.value(w))
        return Minimum(w, np.zeros(0), self.offset + self.penalty.floor(self.slope, self.slope_error) - rounding)
