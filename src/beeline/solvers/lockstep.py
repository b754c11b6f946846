"""Many problems over the same rows, in lockstep: one pass over the data serves all that need it.

The problems differ in their costs and labels (the folds of a cross-validation, and classes against the rest) and share
the data, the loss, the regularizer and its strength. What a problem does with its scores, it does by itself; only
products with the data are taken together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from beeline._types import Floats
from beeline.exceptions import ParameterError
from beeline.kernels import combine_columns, dot, dot_columns, factor_positive, solve_factored, split_columns
from beeline.objective import Line, Objective, Point
from beeline.solvers.newton import Newton, search

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

    A problem ends by (28): ‖∂J‖ ≤ tol · share · ‖∂J(0)‖.

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

    _MOST_ROUNDS = 100

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
        self.limits = [tol * share * _norm(p.loss_gradient) for p, share in zip(self.points, shares, strict=True)]
        self.at_zero = [_norm(p.loss_gradient) for p in self.points]
        self.hessians = _make_hessians(self.lockstep, kinds)
        self.before_last: list[Point] | None = None
        self.last: list[Point] | None = None

    @property
    def passes(self) -> float:
        """Passes over the data so far."""
        return self.lockstep.passes

    def set_strength(self, strength: float) -> list[float]:
        """Go over to another strength, at the same points; returns (24)'s ratio ‖∂J(θ)‖/‖∂J(0)‖ of each problem."""
        if self.hessians.looks_ahead:
            self.before_last, self.last = self.last, self.points
        self.points = [point.with_strength(strength) for point in self.points]
        return [p.gradient_norm / zero if zero else 0.0 for p, zero in zip(self.points, self.at_zero, strict=True)]

    def restore(self, thetas: Sequence[Floats]) -> None:
        """Put every problem to a point; two passes."""
        everyone = list(range(len(self.points)))
        scores = self.lockstep.scores(np.column_stack(thetas), everyone)
        triples = zip(self.points, thetas, scores, strict=True)
        self.points = [Point(p.objective, np.array(theta), z) for p, theta, z in triples]
        self.lockstep.fill_gradients(self.points, everyone)

    def solve(self) -> None:
        """Minimise, from where the points are."""
        if self.before_last is not None:
            self._go_on(self.unsolved)
        active = self.unsolved
        for _ in range(self._MOST_ROUNDS):
            if not active:
                return
            before = {k: self.points[k].gradient_norm for k in active}
            moved = self._round(active)
            self.hessians.judge({k: self.points[k].gradient_norm / before[k] for k in moved})
            active = [k for k in self.unsolved if k in moved]

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
        """The problems that (28) does not hold for yet."""
        return [k for k, p in enumerate(self.points) if p.gradient_norm > self.limits[k]]

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


class _Shared:
    """One Hessian in Cholesky factors for all problems of a kind, kept for as long as it serves.

    A step that leaves much of the gradient asks for a Hessian at the present points; if that was one already, for more
    conjugate gradients with it; and where the problems of a kind are too different for that, for one each.
    """

    _GOOD = 0.2  # part of the gradient that a step may leave
    _MANY = 8  # steps of conjugate gradients
    looks_ahead = False

    def __init__(self, kinds: Sequence[int]) -> None:
        self.kinds = kinds
        self.grams: dict[int, Floats] = {}
        self.factors: dict[int, tuple[float, Floats]] = {}
        self.stale: set[int] = set(kinds)
        self.fresh: set[int] = set()
        self.steps = self.took = 0

    def prepare(self, points: list[Point], which: list[int]) -> None:
        """Make the Hessians that are missing or no longer serve, and factor them for the strength."""
        self.fresh = set()
        for kind in {self.kinds[k] for k in which}:
            members = [p for p, k in zip(points, which, strict=True) if self.kinds[k] == kind]
            strength = members[0].objective.strength
            if kind in self.stale:
                self.grams[kind] = _mean_gram(members)
                self.fresh.add(kind)
                self.stale.discard(kind)
                self.factors.pop(kind, None)
            if self.factors.get(kind, (None,))[0] != strength:
                self.factors[kind] = strength, _factor(self.grams[kind], members[0].objective)

    def solve(self, r: Floats, which: list[int]) -> Floats:
        """M⁻¹r, problem by problem."""
        out = np.empty_like(r)
        for column, k in enumerate(which):
            x = r[:, column].copy()[None]
            solve_factored(self.factors[self.kinds[k]][1][None], x)
            out[:, column] = x[0]
        return out

    def judge(self, left: dict[int, float]) -> None:
        """Look at what the step left of each gradient."""
        worst = max(left.values(), default=0.0)
        if worst <= self._GOOD:
            return
        slow = {self.kinds[k] for k, part in left.items() if part > self._GOOD}
        if not slow <= self.fresh or len(set(self.kinds)) == len(self.kinds):
            self.stale |= slow
        elif self.steps < self._MANY:
            self.steps += 1
        else:
            self.kinds = range(len(self.kinds))
            self.stale = set(self.kinds)


class _Diagonals:
    """The identity, mixed with a diagonal of the Hessian once that is worth a pass (Hsia, Chiang & Lin 2018).

    Problems of a kind share the diagonal, made from the mean of their curvatures.
    """

    _MANY = 10  # steps of conjugate gradients after which the diagonals are made anew
    looks_ahead = True
    steps = 250

    def __init__(self, kinds: Sequence[int]) -> None:
        self.kinds, self.took = kinds, 0
        self.diagonals: dict[int, Floats] = {}

    def prepare(self, points: list[Point], which: list[int]) -> None:
        """Make the diagonals anew where the last directions took many steps."""
        o = points[0].objective
        modulus = o.strength * o.regularizer.l2
        for kind in {self.kinds[k] for k in which} if self.took >= self._MANY else ():
            self.diagonals[kind] = _mean_diagonal(
                [p for p, k in zip(points, which, strict=True) if self.kinds[k] == kind]
            )
        none = np.zeros(o.size)
        columns = [self.diagonals.get(self.kinds[k], none) for k in which]
        self.inverse = (
            1 / (modulus + 0.01 * np.column_stack(columns)) if self.diagonals else np.full((1, 1), 1 / modulus)
        )

    def solve(self, r: Floats, which: list[int]) -> Floats:
        """M⁻¹r, problem by problem."""
        return self.inverse * r

    def judge(self, left: dict[int, float]) -> None:
        """A direction is as good as its conjugate gradients: nothing to learn from the step."""


def _make_hessians(lockstep: Lockstep, kinds: Sequence[int]) -> _Shared | _Diagonals:
    kind = _Shared if Newton.takes_cholesky(lockstep.first) else _Diagonals
    return kind(kinds)


def _mean_curvatures(points: list[Point]) -> list[Floats]:
    """The mean of the points' curvatures, shard by shard."""
    return [sum(shard[1:], shard[0].copy()) / len(shard) for shard in zip(*(p.curvatures for p in points), strict=True)]


def _mean_gram(points: list[Point]) -> Floats:
    """The Hessian of the losses, the lower triangle, from the mean of the points' curvatures; one pass."""
    o = points[0].objective
    gram = o.curved_gram(_mean_curvatures(points))
    gram[np.diag_indices(o.n_regularized)] -= o.strength * o.regularizer.l2
    return gram


def _mean_diagonal(points: list[Point]) -> Floats:
    """The diagonal of the same; one pass."""
    o = points[0].objective
    parts = o.engine.sum(lambda s, h: (s.block.gram_diagonal(h), float(h.sum())), o.shards, _mean_curvatures(points))
    return o.join(*parts)


def _factor(gram: Floats, objective: Objective) -> Floats:
    """The Cholesky factor of the Hessian; where rounding keeps it from having one, that of one slightly larger."""
    diagonal = np.diag_indices(len(gram))
    penalty = np.zeros(len(gram))
    penalty[: objective.n_regularized] = objective.strength * objective.regularizer.l2
    more = 1e-14 * max(float(np.trace(gram)) / len(gram), objective.strength)
    while True:
        factor = gram.copy()
        factor[diagonal] += penalty + more
        if factor_positive(factor):
            return factor
        more *= 100


def _norm(v: Floats) -> float:
    return math.sqrt(dot(v, v))


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
