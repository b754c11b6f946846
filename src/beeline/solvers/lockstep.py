"""Many problems over the same rows, in lockstep: one pass over the data serves all that need it.

The problems differ in their costs and labels (the folds of a cross-validation, and classes against the rest) and share
the data, the loss, the regularizer and its strength. What a problem does with its scores, it does by itself; only
products with the data are taken together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from beeline._types import Floats
from beeline.exceptions import ParameterError
from beeline.kernels import combine_columns, dot, dot_columns, split_columns
from beeline.objective import Line, Objective, Point
from beeline.solvers.lockstep_hessians import hessians_for
from beeline.solvers.newton import search

__all__ = ["Affine", "Lockstep", "LockstepNewton"]

_NOTHING = 1e-13  # a part of J that its sum over the rows does not show
_MOST_NUMBERS = 1 << 24  # in a matrix of weights of problems that are solved together


@dataclass(frozen=True, eq=False)
class Affine:
    """How each problem sees the features: x_j · factor_jk + shift_jk in problem k; both of shape (features, problems).

    Scaling that is learned from each problem's own rows comes to this.
    """

    factor: Floats
    shift: Floats


class Lockstep:
    """Products with the data for many problems at once.

    Parameters
    ----------
    objectives
        The problems.
    affine
        How each sees the features; None: as they are.
    """

    def __init__(self, objectives: Sequence[Objective], affine: Affine | None = None) -> None:
        first = objectives[0]
        if any(o.data is not first.data or o.n_outputs > 1 for o in objectives):
            raise ParameterError("problems in lockstep share their rows and have one score a row")
        self.first, self.affine, self.passes = first, affine, 0.0

    def scores(self, thetas: Floats, which: list[int]) -> list[list[Floats]]:
        """The scores of θ_k for each k in `which`, shard by shard; one pass. θ_k is column number k of a matrix."""
        o = self.first
        w, b = self._seen(thetas, which)
        found = o.engine.map(lambda shard: shard.block.scores_apart(w, b), o.shards)
        self.passes += 1
        return [[shard[k] for shard in found] for k in range(len(which))]

    def fill_gradients(self, points: list[Point], which: list[int]) -> None:
        """Let each point know the gradient of its loss; one pass."""
        o = self.first
        slopes = [list(shard) for shard in zip(*(point.slopes for point in points), strict=True)]
        (out,) = o.engine.sum(lambda shard, u: (shard.transposed_apart(u),), o.shards, slopes)
        self.passes += 1
        for point, gradient in zip(points, _columns(self._felt(out, which)), strict=True):
            point.loss_gradient = gradient

    def curved(self, points: list[Point], which: list[int], vectors: Floats) -> Floats:
        """The products of the losses' Hessians with a vector each; one pass."""
        o = self.first
        w, b = self._seen(vectors, which)
        curvatures = [list(shard) for shard in zip(*(point.curvatures for point in points), strict=True)]
        (out,) = o.engine.sum(lambda shard, h: (shard.curved_apart(h, w, b),), o.shards, curvatures)
        self.passes += 1
        return self._felt(out, which)

    def _seen(self, thetas: Floats, which: list[int]) -> tuple[Floats, Floats]:
        """(weights of the features as they lie in memory, intercepts)."""
        d = self.first.data.n_features
        w, b = thetas[:d], thetas[d] if self.first.has_intercept else np.zeros(len(which))
        if self.affine is None:
            return w, b
        factor, shift = self.affine.factor[:, which], self.affine.shift[:, which]
        return w * factor, b + np.einsum("jk,jk->k", w, shift)

    def _felt(self, products: Floats, which: list[int]) -> Floats:
        """The transpose of `_seen`: products by feature and for the constant become those by coordinate of θ."""
        if self.affine is not None:
            products[:-1] *= self.affine.factor[:, which]
            products[:-1] += self.affine.shift[:, which] * products[-1]
        return products if self.first.has_intercept else products[:-1]


class LockstepNewton:
    """Minimises many smooth J with L2 regularization over the same rows, for one strength after the other.

    With C inside the strength, J/C = Ω(w)/C + Σ c_i l_i: scores, slopes and the loss's gradient at a point stay what
    they are when C changes, so that a warm start (13) costs nothing at all, neither a pass nor an exponential.

    Newton's directions are found by conjugate gradients, all problems at once. They are preconditioned by a Hessian
    that problems of a kind share: made where it was last needed, from the mean of their curvatures, and kept for the
    next strength for as long as it serves. Where there are many features, it is a diagonal; products with the data are
    then most of the work, and a problem first goes on the way it went at the last strength, which takes only half a
    pass: with the scores of two points, those of all points on the line through them are known.

    A problem ends by (28), ‖∂J‖ ≤ tol · share · ‖∂J(0)‖, but not while a Newton step promises to lower J by more than
    tol of what has been gained over zero weights: where features have very different scales, the gradient is that of
    the largest ones, and says nothing of the others.

    Parameters
    ----------
    objectives
        The problems.
    kinds
        A number for each problem: problems of a kind have the same labels.
    shares
        min(l₊, l₋)/l of each problem.
    tol
        (28)'s ε.
    affine
        How each problem sees the features.
    """

    def __init__(
        self,
        objectives: Sequence[Objective],
        kinds: Sequence[int],
        shares: Sequence[float],
        tol: float = 1e-2,
        affine: Affine | None = None,
    ) -> None:
        self.lockstep = Lockstep(objectives, affine)
        self.points = [o.at() for o in objectives]
        everyone = list(range(len(objectives)))
        self.lockstep.fill_gradients(self.points, everyone)
        self.at_zero = [p.gradient_norm for p in self.points]
        self.limits = [tol * share * norm for share, norm in zip(shares, self.at_zero, strict=True)]
        self.tol, self.losses_at_zero = tol, [p.loss for p in self.points]
        self.hessians = hessians_for(self.lockstep.first, kinds)
        self.before_last: list[Point] | None = None
        self.last: list[Point] | None = None

    @property
    def passes(self) -> float:
        """Passes over the data so far."""
        return self.lockstep.passes

    def set_strength(self, strength: float) -> list[float]:
        """Go over to another strength, at the same points; returns (24)'s ratio ‖∂J(θ)‖/‖∂J(0)‖ of each problem."""
        here = self.points
        self.points = [point.with_strength(strength) for point in here]
        if self.hessians.looks_ahead:
            self.before_last, self.last = self.last, here
            for point in here:
                point.forget()  # only its scores are needed again
        return [p.gradient_norm / zero if zero else 0.0 for p, zero in zip(self.points, self.at_zero, strict=True)]

    def restore(self, thetas: Sequence[Floats]) -> None:
        """Put every problem to a point; two passes."""
        everyone = list(range(len(self.points)))
        scores = self.lockstep.scores(np.column_stack(thetas), everyone)
        triples = zip(self.points, thetas, scores, strict=True)
        self.points = [Point(p.objective, np.array(theta), z) for p, theta, z in triples]
        self.lockstep.fill_gradients(self.points, everyone)

    def solve(self, max_passes: float = 1000) -> int:
        """Minimise, from where the points are; returns how many problems the pass limit has ended."""
        most = self.passes + max_passes
        if self.before_last is not None:
            self._go_on(self.unsolved)
        active = self.unsolved
        while active:
            if self.passes >= most:
                return len(active)
            before = {k: self.points[k].gradient_norm for k in active}
            moved = self._round(active)
            self.hessians.judge({k: self.points[k].gradient_norm / before[k] for k in moved})
            active = [k for k in self.unsolved if k in moved]
        return 0

    def _go_on(self, active: list[int]) -> None:
        """Move each problem along what the last change of the strength did to it."""
        assert self.before_last is not None
        moved = []
        for k in active:
            here, before = self.points[k], self.before_last[k]
            dz = [new - old for new, old in zip(here.z, before.z, strict=True)]
            if (point := _searched(Line(here, here.theta - before.theta, dz))) is not None:
                self.points[k] = point
                moved.append(k)
        if moved:
            self.lockstep.fill_gradients([self.points[k] for k in moved], moved)

    @property
    def unsolved(self) -> list[int]:
        """The problems that (28) does not hold for yet, or that a step promises much."""
        return [k for k, p in enumerate(self.points) if p.gradient_norm > self.limits[k] or self._promising(k)]

    def _promising(self, k: int) -> bool:
        gained = self.losses_at_zero[k] - self.points[k].value
        return self.hessians.promise(self.points[k], k) > self.tol * max(gained, 0.0)

    def _round(self, active: list[int]) -> list[int]:
        """A Newton step for each active problem; returns those that moved."""
        at_once = max(1, _MOST_NUMBERS // self.lockstep.first.size)
        groups = [active[start : start + at_once] for start in range(0, len(active), at_once)]
        return [k for group in groups for k in self._group_round(group)]

    def _group_round(self, active: list[int]) -> list[int]:
        points = [self.points[k] for k in active]
        directions = self._directions(points, active)
        dz = self.lockstep.scores(directions, active)
        moved = []
        for k, *along in zip(active, _columns(directions), dz, strict=True):
            line = Line(self.points[k], *along)
            if (point := _step(line)) is not None:
                self.points[k] = point
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
        left = np.array([self.limits[k] for k in which]) / [point.gradient_norm for point in points]
        accuracy = np.clip(0.7 * left, 0.05, 0.5)  # so that this step may be the last
        s, p = np.zeros_like(r), z
        rho = first = _dots(r, z)
        for self.hessians.took in range(1, steps + 1):
            q = self.lockstep.curved(points, which, p)
            combine_columns(modulus, p[: o.n_regularized], one, q[: o.n_regularized])
            curvature = _dots(p, q)
            alpha = np.divide(rho, curvature, out=np.zeros_like(rho), where=curvature > 0)
            combine_columns(alpha, p, one, s)
            combine_columns(-alpha, q, one, r)
            z = self.hessians.solve(r, which)
            rho, previous = _dots(r, z), rho
            if np.all(rho <= accuracy**2 * first):
                break
            combine_columns(one, z, np.divide(rho, previous, out=np.zeros_like(rho), where=previous > 0), p)
        return s


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


def _searched(line: Line) -> Point | None:
    """What a line search finds; None where nothing lowers J."""
    slope = dot(line.point.gradient, line.direction)
    t = search(line, slope, flat=0.3) if slope < 0 else 0.0
    return line.move(t) if t else None


def _columns(matrix: Floats) -> Floats:
    """The columns of a matrix, as the rows of another."""
    out = np.empty(matrix.shape[::-1])
    split_columns(matrix, out)
    return out


def _dots(a: Floats, b: Floats) -> Floats:
    """The products of each column of a with that of b."""
    out = np.empty(a.shape[1])
    dot_columns(a, b, out)
    return out
