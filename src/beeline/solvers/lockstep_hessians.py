"""What preconditions many problems over the same rows: a Hessian that problems of a kind share, or its diagonal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from beeline._types import Floats
from beeline.kernels import dot, factor_positive, solve_factored
from beeline.objective import Objective, Point
from beeline.solvers.newton import Newton

__all__ = ["SharedDiagonals", "SharedFactors", "hessians_for"]


class SharedFactors:
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

    def promise(self, point: Point, k: int) -> float:
        """½ gᵀM⁻¹g: how much a Newton step would lower problem k's J by; 0 where there is no Hessian yet."""
        kind, strength = self.kinds[k], point.objective.strength
        if kind not in self.grams:
            return 0.0
        if self.factors.get(kind, (None,))[0] != strength:
            self.factors[kind] = strength, _factor(self.grams[kind], point.objective)
        step = point.gradient.copy()[None]
        solve_factored(self.factors[kind][1][None], step)
        return 0.5 * dot(point.gradient, step[0])

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


class SharedDiagonals:
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

    def promise(self, point: Point, k: int) -> float:
        """½ gᵀM⁻¹g with the diagonal; 0 where it was not worth making, since features then have like scales."""
        if (diagonal := self.diagonals.get(self.kinds[k])) is None:
            return 0.0
        modulus = point.objective.strength * point.objective.regularizer.l2
        return 0.5 * dot(point.gradient, point.gradient / (modulus + diagonal))

    def judge(self, left: dict[int, float]) -> None:
        """A direction is as good as its conjugate gradients: nothing to learn from the step."""


def hessians_for(objective: Objective, kinds: Sequence[int]) -> SharedFactors | SharedDiagonals:
    """What serves problems over the same rows as this one."""
    kind = SharedFactors if Newton.takes_cholesky(objective) else SharedDiagonals
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
