"""What preconditions many problems over the same rows: a Hessian that problems of a kind share, or its diagonal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from beeline._types import Floats
from beeline.engines import RowVector
from beeline.engines.verbs import columns, products
from beeline.kernels import dot, factor_positive, solve_factored
from beeline.losses import VectorLoss
from beeline.objective import Objective, Point
from beeline.solvers.newton.newton import Newton
from beeline.solvers.newton.preconditioning import cost_of_blocks

__all__ = ["SharedBlocks", "SharedDiagonals", "SharedFactors", "SharedHessians", "hessians_for"]


class SharedHessians(ABC):
    """What stands for the Hessians of problems of a kind: M, for conjugate gradients and for what steps promise.

    Attributes
    ----------
    kinds
        A number for each problem; problems of a kind have the same labels.
    steps, took
        How many conjugate gradients a direction may take, and how many the last one took.
    extrapolates
        Whether problems first go on the way they went at the last strength.
    """

    extrapolates = False
    steps: int
    _kept: ClassVar[tuple[str, ...]]  # what was made for problems or kinds, by their numbers, that a snapshot has

    def __init__(self, kinds: Sequence[int]) -> None:
        self.kinds, self.took = kinds, 0

    @abstractmethod
    def prepare(self, points: list[Point], which: list[int]) -> None:
        """Make what is missing or no longer serves, for the points of some problems."""

    @abstractmethod
    def solve(self, r: Floats, which: list[int]) -> Floats:
        """M⁻¹r, problem by problem."""

    @abstractmethod
    def square(self, point: Point, k: int) -> float | None:
        """gᵀM⁻¹g of problem k; None where there is no M yet."""

    def judge(self, left: dict[int, float]) -> bool:
        """Look at what the step left of each gradient (∞: there was none); whether the next directions are better.

        Where a direction is as good as its conjugate gradients, there is nothing to learn from a step.
        """
        return False

    def curvature(self, k: int) -> float:
        """The losses' curvature in all, where the M of problem k was made; 0 where none is kept for long."""
        return 0.0

    def snapshot(self) -> dict[str, Any]:
        """All that directions at another strength are made with, to the same bits."""
        kept = {name: [list(pair) for pair in getattr(self, name).items()] for name in self._kept}
        return {"kinds": list(self.kinds), "took": self.took, "steps": self.steps, "kept": kept}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self.kinds, self.took, self.steps = snapshot["kinds"], snapshot["took"], snapshot["steps"]
        for name, pairs in snapshot["kept"].items():
            setattr(self, name, dict(pairs))

    def _by_kind(self, points: list[Point], which: list[int]) -> dict[int, list[Point]]:
        members: dict[int, list[Point]] = {}
        for point, k in zip(points, which, strict=True):
            members.setdefault(self.kinds[k], []).append(point)
        return members


class SharedFactors(SharedHessians):
    """One Hessian in Cholesky factors for all problems of a kind, kept for as long as it serves.

    A step that leaves much of the gradient asks for a Hessian at the present points; if that was one already, for more
    conjugate gradients with it; and where the problems of a kind are too different for that, for one each.
    """

    _kept = ("grams", "curvatures", "diagonals")
    _GOOD = 0.2  # part of the gradient that a step may leave
    _MANY = 8  # steps of conjugate gradients

    def __init__(self, kinds: Sequence[int]) -> None:
        super().__init__(kinds)
        self.grams: dict[int, Floats] = {}
        self.factors: dict[int, tuple[float, Floats]] = {}
        self.stale: set[int] = set(kinds)
        self.fresh: set[int] = set()
        self.curvatures: dict[int, float] = {}
        self.diagonals: dict[int, Floats] = {}
        self.squares: dict[int, tuple[Point, Floats, float]] = {}
        self.steps = 0

    def curvature(self, k: int) -> float:
        """The losses' curvature in all, where the Hessian of problem k was made."""
        return self.curvatures.get(self.kinds[k], 0.0)

    def snapshot(self) -> dict[str, Any]:
        """Also which Hessians no longer serve; factors follow from Hessians."""
        return super().snapshot() | {"stale": sorted(self.stale)}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(snapshot)
        self.stale = set(snapshot["stale"])

    def prepare(self, points: list[Point], which: list[int]) -> None:
        """Make the Hessians that are missing or no longer serve, and factor them for the strength."""
        self.fresh = set()
        for kind, members in self._by_kind(points, which).items():
            if kind in self.stale:
                self._make(kind, members)
            self._factor(kind, members[0].objective)

    def _make(self, kind: int, members: list[Point]) -> None:
        self.grams[kind] = _mean_gram(members)
        self.curvatures[kind] = sum(float(np.sum(point.curvature_total)) for point in members) / len(members)
        self.diagonals = {k: own for k, own in self.diagonals.items() if self.kinds[k] != kind}
        self.factors.pop(kind, None)
        self.fresh.add(kind)
        self.stale.discard(kind)

    def _factor(self, kind: int, o: Objective) -> Floats:
        if self.factors.get(kind, (None,))[0] != o.strength:
            self.factors[kind] = o.strength, _factored(self.grams[kind], o)
        return self.factors[kind][1]

    def solve(self, r: Floats, which: list[int]) -> Floats:
        """M⁻¹r, problem by problem."""
        out = np.empty_like(r)
        for column, k in enumerate(which):
            x = r[:, column].copy()[None]
            solve_factored(self.factors[self.kinds[k]][1][None], x)
            out[:, column] = x[0]
        return out

    def square(self, point: Point, k: int) -> float | None:
        """gᵀM⁻¹g of problem k; None where there is no Hessian yet."""
        kind = self.kinds[k]
        if kind not in self.grams:
            return None
        factor = self._factor(kind, point.objective)
        known = self.squares.get(k)
        if known is None or known[0] is not point or known[1] is not factor:  # of many problems, few move in a round
            step = point.gradient.copy()[None]
            solve_factored(factor[None], step)
            known = self.squares[k] = point, factor, dot(point.gradient, step[0]) * self._too_large(point, k)
        return known[2]

    def _too_large(self, point: Point, k: int) -> float:
        """By how much the shared Hessian exceeds that of problem k, where its gradient is; by their diagonals.

        A row that outweighs all others is in the Hessian of all folds, and in the loss of all but one.
        """
        if k not in self.diagonals:
            self.diagonals[k] = _mean_diagonal([point])
        o = point.objective
        modulus = np.zeros(o.size)
        modulus[: o.n_regularized] = o.strength * o.regularizer.l2
        square, least = np.square(point.gradient), 1e-300
        own = np.sum(square / (self.diagonals[k] + modulus + least))
        shared = np.sum(square / (np.diagonal(self.grams[self.kinds[k]]) + modulus + least))
        return max(1.0, float(own / shared)) if shared > 0 else 1.0

    def judge(self, left: dict[int, float]) -> bool:
        """Look at what the step left of each gradient (∞: there was none); whether the next directions are better."""
        slow = {self.kinds[k] for k, part in left.items() if part > self._GOOD}
        if not slow:
            return False
        if not slow <= self.fresh:
            self.stale |= slow
        elif len(set(self.kinds)) == len(self.kinds):
            self.stale |= slow  # for the next points; here they are as good as can be
            return False
        elif self.steps < self._MANY:
            self.steps += 1
        else:
            self.kinds = range(len(self.kinds))
            self.stale = set(self.kinds)
        return True


class SharedDiagonals(SharedHessians):
    """The identity, mixed with a diagonal of the Hessian once that is worth a pass (Hsia, Chiang & Lin 2018).

    Problems of a kind share the diagonal, made from the mean of their curvatures.
    """

    _kept = ("diagonals",)
    _MANY = 10  # steps of conjugate gradients after which the diagonals are made anew
    extrapolates = True
    steps = 250

    def __init__(self, kinds: Sequence[int]) -> None:
        super().__init__(kinds)
        self.diagonals: dict[int, Floats] = {}

    def prepare(self, points: list[Point], which: list[int]) -> None:
        """Make the diagonals anew where the last directions took many steps."""
        o = points[0].objective
        modulus = o.strength * o.regularizer.l2
        if self.took >= self._MANY:
            made = {kind: _mean_diagonal(members) for kind, members in self._by_kind(points, which).items()}
            self.diagonals |= made
        none = np.zeros(o.size)
        columns = [self.diagonals.get(self.kinds[k], none) for k in which]
        self.inverse = (
            1 / (modulus + 0.01 * np.column_stack(columns)) if self.diagonals else np.full((1, 1), 1 / modulus)
        )

    def solve(self, r: Floats, which: list[int]) -> Floats:
        """M⁻¹r, problem by problem."""
        return self.inverse * r

    def square(self, point: Point, k: int) -> float | None:
        """gᵀM⁻¹g of problem k; None where no direction was taken yet."""
        if not self.took:
            return None
        modulus = point.objective.strength * point.objective.regularizer.l2
        diagonal = self.diagonals.get(self.kinds[k])
        return dot(point.gradient, point.gradient / (modulus + (0.01 * diagonal if diagonal is not None else 0.0)))


class SharedBlocks(SharedHessians):
    """For several scores a row: a matrix of features by features for each output, in Cholesky factors.

    Problems of a kind share them, made from the mean of their curvatures without what couples the outputs; conjugate
    gradients do the rest. They are kept until directions take many steps. Where a shift of all scores changes nothing,
    no step has a part along it.
    """

    _kept = ("grams",)
    _MANY = 12  # steps of conjugate gradients after which the blocks are made anew
    steps = 60

    def __init__(self, kinds: Sequence[int]) -> None:
        super().__init__(kinds)
        self.grams: dict[int, Floats] = {}
        self.factors: dict[int, tuple[float, Floats]] = {}

    def prepare(self, points: list[Point], which: list[int]) -> None:
        """Make the blocks that are missing or no longer serve, and factor them for the strength."""
        for kind, members in self._by_kind(points, which).items():
            if kind not in self.grams or self.took > self._MANY:
                self.grams[kind] = _mean_blocks(members)
                self.factors.pop(kind, None)
            self._factor(kind, members[0].objective)

    def _factor(self, kind: int, o: Objective) -> Floats:
        if self.factors.get(kind, (None,))[0] != o.strength:
            self.factors[kind] = o.strength, np.stack([_factored(gram, o) for gram in self.grams[kind]])
        return self.factors[kind][1]

    def solve(self, r: Floats, which: list[int]) -> Floats:
        """M⁻¹r, problem by problem."""
        out = np.empty_like(r)
        for column, k in enumerate(which):
            out[:, column] = self._solved(r[:, column], self.factors[self.kinds[k]][1])
        return out

    @staticmethod
    def _solved(r: Floats, factors: Floats) -> Floats:
        """Without the mean over the outputs, before and after: the preconditioner stays symmetric."""
        n_outputs = len(factors)
        each = r.reshape(-1, n_outputs)
        # A thousand times in a search on a small set, where `mean` takes longer than what it computes.
        x = np.ascontiguousarray((each - np.add.reduce(each, axis=1, keepdims=True) / n_outputs).T)
        solve_factored(factors, x)
        solved: Floats = (x - np.add.reduce(x, axis=0) / n_outputs).T.ravel()
        return solved

    def square(self, point: Point, k: int) -> float | None:
        """gᵀM⁻¹g of problem k; None where there are no blocks yet."""
        kind = self.kinds[k]
        if kind not in self.grams:
            return None
        factors = self._factor(kind, point.objective)
        return dot(point.gradient, self._solved(point.gradient, factors))


def hessians_for(objective: Objective, kinds: Sequence[int]) -> SharedHessians:
    """What serves problems over the same rows as this one."""
    if objective.n_outputs > 1:
        few = (
            cost_of_blocks(objective) < np.inf
            and isinstance(objective.loss, VectorLoss)
            and objective.loss.shift_invariant
        )
        return SharedBlocks(kinds) if few else SharedDiagonals(kinds)
    kind = SharedFactors if Newton.takes_cholesky(objective) else SharedDiagonals
    return kind(kinds)


def _mean_blocks(points: list[Point]) -> Floats:
    """A Hessian of the losses for each output, lower triangles, from the mean of the points' curvatures; K passes."""
    o = points[0].objective
    assert isinstance(o.loss, VectorLoss)
    means = _means(o, [point.diagonal_curvatures for point in points])
    grams = []
    for k in range(o.n_outputs):
        gram = o.hessian_block(means, output=k)
        gram[np.diag_indices(len(gram) - (o.intercept == "free"))] -= o.strength * o.regularizer.l2
        grams.append(gram)
    return np.stack(grams)


def _means(o: Objective, curvatures: list[RowVector]) -> RowVector:
    """The means over the problems."""
    return o.rows.map(columns.mean_of, *curvatures)


def _mean_gram(points: list[Point]) -> Floats:
    """The Hessian of the losses, the lower triangle, from the mean of the points' curvatures; one pass."""
    o = points[0].objective
    gram = o.hessian_block(_means(o, [point.curvatures for point in points]))
    gram[np.diag_indices(o.n_regularized)] -= o.strength * o.regularizer.l2
    return gram


def _mean_diagonal(points: list[Point]) -> Floats:
    """The diagonal of the same; one pass."""
    o = points[0].objective
    if o.n_outputs > 1:
        diagonals = [point.hessian_diagonal() for point in points]
        diagonal: Floats = sum(diagonals[1:], diagonals[0]) / len(diagonals)
        diagonal[: o.n_regularized] -= o.strength * o.regularizer.l2
        return diagonal
    means = _means(o, [point.curvatures for point in points])
    return o.join(*o.rows.sum(products.hessian_diagonal, means).value)


def _factored(gram: Floats, o: Objective) -> Floats:
    """The Cholesky factor of a Hessian with Ω's part; where rounding leaves none, of a slightly larger matrix.

    The intercept, if it is free, is the last coordinate, and Ω has no part of it.
    """
    diagonal = np.diag_indices(len(gram))
    penalty = np.zeros(len(gram))
    penalty[: len(gram) - (o.intercept == "free")] = o.strength * o.regularizer.l2
    more = 1e-14 * max(float(np.trace(gram)) / len(gram), o.strength)
    while True:
        factor = gram.copy()
        factor[diagonal] += penalty + more
        if factor_positive(factor):
            return factor
        more *= 100
