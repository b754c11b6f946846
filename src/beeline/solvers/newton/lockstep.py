"""Newton's method for many problems over the same rows, in lockstep, for one strength of Ω after the other.

What a problem does with its scores, it does by itself; only products with the data are taken together.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from beeline._numbers import square
from beeline._types import Floats
from beeline.engines.verbs import columns
from beeline.kernels import combine_columns, dot, dot_columns
from beeline.objective import Line, Objective, Point
from beeline.solvers.newton.lockstep_hessians import hessians_for
from beeline.solvers.newton.lockstep_products import Affine, Lockstep, columns_of
from beeline.solvers.newton.newton import line_search

__all__ = ["Affine", "ByGradient", "ByPredictedDecrease", "Ending", "Lockstep", "LockstepNewton"]

_NOTHING = 1e-13  # a part of J that its sum over the rows does not show
_LEVEL = 1e-2  # of J, that an intercept alone may promise to lower it by
_MOST_NUMBERS = 1 << 20  # in a matrix of weights of problems that are solved together: what caches hold
_OFTEN = 8  # products of a direction


class Ending(ABC):
    """When a problem is solved.

    Attributes
    ----------
    tol
        The part of J, or of a gradient, that may be left.
    """

    tol: float

    @abstractmethod
    def begin(self, points: Sequence[Point]) -> None:
        """Take note of the points without a model."""

    @abstractmethod
    def solved(self, k: int, point: Point, predicted: float) -> bool:
        """Whether problem k is; `predicted` is by how much its next step should lower J."""


class ByPredictedDecrease(Ending):
    """Once no step promises to lower J by more than a part of it.

    Unlike a gradient, that does not depend on the scales of features, labels and costs, and it bounds how far all
    scores of the training rows together are from their optimum.

    Parameters
    ----------
    tol
        The part of J.
    """

    def __init__(self, tol: float = 1e-4) -> None:
        self.tol = tol

    def begin(self, points: Sequence[Point]) -> None:
        """Nothing to take note of."""

    def solved(self, k: int, point: Point, predicted: float) -> bool:
        """Whether the predicted decrease is small."""
        return predicted <= self.tol * abs(point.value)


class ByGradient(Ending):
    """By (28), ‖∂J‖ ≤ tol · share · ‖∂J(0)‖, as the warm-start paper has it; zero is the model without weights.

    But not while a Newton step promises to lower J by more than tol of what has been gained over that: where features
    have very different scales, the gradient is that of the largest ones, and says nothing of the others.

    Parameters
    ----------
    tol
        (28)'s ε.
    shares
        min(l₊, l₋)/l of each problem.
    """

    def __init__(self, tol: float, shares: Sequence[float]) -> None:
        self.tol, self.shares = tol, shares

    def begin(self, points: Sequence[Point]) -> None:
        """Take note of the gradients without a model."""
        self.limits = [self.tol * share * point.gradient_norm for share, point in zip(self.shares, points, strict=True)]
        self.without = [point.loss for point in points]

    def solved(self, k: int, point: Point, predicted: float) -> bool:
        """Whether the gradient is small, and the predicted decrease too."""
        gained = max(self.without[k] - point.value, 0.0)
        return point.gradient_norm <= self.limits[k] and predicted <= self.tol * gained


class LockstepNewton:
    """Minimises many smooth J with L2 regularization over the same rows, for one strength after the other.

    With C inside the strength, J/C = Ω(w)/C + Σ c_i l_i: scores, slopes and the loss's gradient at a point stay what
    they are when C changes, so that a warm start (13) costs nothing at all, neither a pass nor an exponential.

    Newton's directions are found by conjugate gradients, all problems at once. They are preconditioned by a Hessian
    that problems of a kind share: made where it was last needed, from the mean of their curvatures, and kept for the
    next strength for as long as it serves. Where there are many features, it is a diagonal; products with the data are
    then most of the work, and a problem first goes on the way it went at the last strength, which takes only half a
    pass: with the scores of two points, those of all points on the line through them are known.

    By how much a step will lower J, ½ gᵀH⁻¹g, is estimated with the preconditioner M in the place of H, and corrected
    by what that was off by at the last direction, and by how much of the losses' curvature has faded since M was made:
    where a loss becomes straight, an old M promises too little.

    Parameters
    ----------
    objectives
        The problems.
    kinds
        A number for each problem: problems of a kind have the same labels.
    ending
        When a problem is solved.
    affine
        How each problem sees the features.
    """

    def __init__(
        self,
        objectives: Sequence[Objective],
        kinds: Sequence[int],
        ending: Ending | None = None,
        affine: Affine | None = None,
    ) -> None:
        self.lockstep = Lockstep(objectives, affine)
        self.points = [o.at_null() for o in objectives]
        everyone = list(range(len(objectives)))
        self.lockstep.fill_gradients(self.points, everyone)
        self.null_norms = [p.gradient_norm for p in self.points]
        self.ending = ending or ByPredictedDecrease()
        self.ending.begin(self.points)
        self.kinds = kinds
        self.hessians = hessians_for(self.lockstep.first, kinds)
        self.off_by = [1.0 for _ in objectives]
        self.curvature = [0.0 for _ in objectives]  # in all, where a direction was last found
        self.before_last: list[Point] | None = None
        self.last: list[Point] | None = None
        self.deadline: float | None = None
        self.late = False
        self.stuck: list[int] = []

    @property
    def passes(self) -> float:
        """Passes over the data so far."""
        return self.lockstep.passes

    def set_strength(self, strength: float) -> list[float]:
        """Go over to another strength, at the same points; returns (24)'s ratio ‖∂J(θ)‖/‖∂J(0)‖ of each problem."""
        here = self.points
        self.points = [point.with_strength(strength) for point in here]
        if self.hessians.extrapolates:
            self.before_last, self.last = self.last, here
            for point in here:
                point.forget()  # only its scores are needed again
        return [p.gradient_norm / zero if zero else 0.0 for p, zero in zip(self.points, self.null_norms, strict=True)]

    def snapshot(self) -> dict[str, Any]:
        """All that the next strength is begun from, to the same bits.

        Scores were moved with their points, and gradients taken together with others': neither follows from θ alone.
        """
        last = None if self.last is None else [point.snapshot() for point in self.last]
        return {
            "points": [point.snapshot() for point in self.points],
            "gradients": [point.loss_gradient for point in self.points],
            "last": last,
            "off_by": self.off_by,
            "curvature": self.curvature,
            "hessians": self.hessians.snapshot(),
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot; no pass over the data."""
        objectives, last = [point.objective for point in self.points], snapshot["last"]
        self.points = list(map(Point.restored, objectives, snapshot["points"]))
        for point, gradient in zip(self.points, snapshot["gradients"], strict=True):
            point.loss_gradient = np.array(gradient)
        self.before_last, self.last = None, None if last is None else list(map(Point.restored, objectives, last))
        self.off_by, self.curvature = list(snapshot["off_by"]), list(snapshot["curvature"])
        self.hessians.restore(snapshot["hessians"])

    def move(self, k: int, theta: Floats) -> None:
        """Put problem k to a point that was found elsewhere; two passes."""
        (z,) = self.lockstep.scores(theta[:, None], [k])
        self.points[k] = Point(self.points[k].objective, np.array(theta), z)
        self.lockstep.fill_gradients([self.points[k]], [k])

    def solve(self, max_passes: float = 1000) -> int:
        """Minimise, from where the points are; returns how many problems the pass or time limit has ended.

        Those that no step could better, though one was promised, are `stuck`.
        """
        most, self.stuck = self.passes + max_passes, []
        if self.before_last is not None:
            self._extrapolate(self.unsolved)
        stuck: set[int] = set()
        while active := [k for k in self.unsolved if k not in stuck]:
            self.late = self.deadline is not None and time.perf_counter() > self.deadline
            if self.passes >= most or self.late:
                return len(active)
            before = {k: self.points[k].gradient_norm for k in active}
            moved = set(self._round(active))
            left = {k: self.points[k].gradient_norm / before[k] if k in moved else np.inf for k in active if before[k]}
            if not self.hessians.judge(left):
                stuck |= set(active) - moved
        self.stuck = sorted(stuck)
        return 0

    def _extrapolate(self, active: list[int]) -> None:
        """Move each problem along what the last change of the strength did to it."""
        assert self.before_last is not None
        moved = []
        for k in active:
            here, before = self.points[k], self.before_last[k]
            dz = here.objective.rows.map(columns.difference, here.z, before.z)
            if (point := _searched(Line(here, here.theta - before.theta, dz))) is not None:
                self.points[k] = point
                moved.append(k)
        for group in self._groups(moved):
            self.lockstep.fill_gradients([self.points[k] for k in group], group)

    @property
    def unsolved(self) -> list[int]:
        """The problems that are not solved yet."""
        return [
            k for k, point in enumerate(self.points) if not self.ending.solved(k, point, self._predicted_decrease(k))
        ]

    def _predicted_decrease(self, k: int) -> float:
        """By how much the next step of problem k should lower J; ∞ where nothing is known yet."""
        point = self.points[k]
        square = self.hessians.square(point, k)
        if square is None:
            return np.inf
        faded = max(self.curvature[k], self.hessians.curvature(k)) / max(float(np.sum(point.curvature_total)), 1e-300)
        return 0.5 * square * self.off_by[k] * max(faded, 1.0)

    def _round(self, active: list[int]) -> list[int]:
        """A Newton step for each active problem; returns those that moved."""
        return [k for group in self._groups(active) for k in self._group_round(group)]

    def _groups(self, which: list[int]) -> list[list[int]]:
        """Problems whose vectors together are not too large; those of a kind, whose rows are curved alike, together."""
        at_once = max(1, _MOST_NUMBERS // self.lockstep.first.size)
        groups: list[list[int]] = []
        for _, alike in groupby(sorted(which, key=self.kinds.__getitem__), key=self.kinds.__getitem__):
            members = list(alike)
            if groups and len(groups[-1]) + len(members) <= at_once:
                groups[-1] += members
            else:
                groups += [members[start : start + at_once] for start in range(0, len(members), at_once)]
        return groups

    def _group_round(self, active: list[int]) -> list[int]:
        points = [self.points[k] for k in active]
        directions = self._directions(points, active)
        dz = self.lockstep.scores(directions, active)
        moved = []
        for k, *along in zip(active, columns_of(directions), dz, strict=True):
            line = Line(self.points[k], *along)
            if (point := _step(line)) is not None:
                self.points[k] = _levelled(point)
                moved.append(k)
        if moved:
            self.lockstep.fill_gradients([self.points[k] for k in moved], moved)
        return moved

    def _directions(self, points: list[Point], which: list[int]) -> Floats:
        """s_k with ∂²J_k s_k ≈ −∂J_k, by preconditioned conjugate gradients in lockstep."""
        r = -np.column_stack([point.gradient for point in points])
        self.hessians.prepare(points, which)
        z = self.hessians.solve(r, which)
        if (steps := self.hessians.steps) == 0:
            return z
        o, one = points[0].objective, np.ones(len(which))
        modulus = o.strength * o.regularizer.l2 * one
        accuracy = self._accuracy(points, which)
        s, p, against = np.zeros_like(r), z, r.copy()
        curvature = self.lockstep.curvature(points, which, often=self.hessians.took >= _OFTEN)
        rho = first = _dots(r, z)
        for self.hessians.took in range(1, steps + 1):
            q = curvature.times(p)
            combine_columns(modulus, p[: o.n_regularized], one, q[: o.n_regularized])
            curved = _dots(p, q)
            alpha = np.divide(rho, curved, out=np.zeros_like(rho), where=curved > 0)
            combine_columns(alpha, p, one, s)
            combine_columns(-alpha, q, one, r)
            z = self.hessians.solve(r, which)
            rho, previous = _dots(r, z), rho
            if np.all(rho <= accuracy**2 * first):
                break
            combine_columns(one, z, np.divide(rho, previous, out=np.zeros_like(rho), where=previous > 0), p)
        found = (rho <= accuracy**2 * first) & (first > 0)  # a direction that was cut short says nothing about M
        parts = np.divide(_dots(against, s), first, out=np.ones_like(first), where=found)
        for k, point, part in zip(which, points, parts.tolist(), strict=True):
            self.off_by[k] = part if part > 0 else 1.0
            self.curvature[k] = float(np.sum(point.curvature_total))
        return s

    def _accuracy(self, points: list[Point], which: list[int]) -> Floats:
        """What each direction may leave of its residual, so that this step may be the last."""
        enough = [self.ending.tol * abs(point.value) for point in points]
        predicted = [max(self._predicted_decrease(k), 1e-300) for k in which]
        left = np.array([a / b for a, b in zip(enough, predicted, strict=True)])
        accuracy: Floats = np.clip(0.5 * np.sqrt(left), 0.02, 0.5)
        return accuracy


def _step(line: Line) -> Point | None:
    """The full step where it lowers J enough, else what a line search finds; None where nothing lowers J."""
    point = line.point
    slope = dot(point.gradient, line.direction)
    if not slope < 0:
        return None
    whole = line.move(1.0)
    lost_in_rounding = -slope <= _NOTHING * abs(point.value)
    if lost_in_rounding or whole.value <= point.value + 1e-2 * slope:
        return whole
    return _searched(line)


def _levelled(point: Point) -> Point:
    """With the best intercept, where the losses are so straight that a Newton step would throw it far away."""
    o = point.objective
    if o.intercept != "free" or o.n_outputs > 1:
        return point
    predicted = 0.5 * square(float(point.slope_total))
    level = predicted <= _LEVEL * abs(point.value) * float(point.curvature_total)
    return point if level else point.with_best_intercept()


def _searched(line: Line) -> Point | None:
    """What a line search finds; None where nothing lowers J."""
    slope = dot(line.point.gradient, line.direction)
    t = line_search(line, slope, flat=0.3) if slope < 0 else 0.0
    return line.move(t) if t else None


def _dots(a: Floats, b: Floats) -> Floats:
    """The products of each column of a with that of b."""
    out = np.empty(a.shape[1])
    dot_columns(a, b, out)
    return out
