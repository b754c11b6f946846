"""Working sets of features, prox-Newton steps on them, coordinate descent inside: L1 and the elastic net."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from beeline._types import Floats, Ints
from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset
from beeline.engines import Threads
from beeline.kernels import Columns, complete_gram, descend_gram, dot
from beeline.objective import Intercept, Objective, Point
from beeline.solvers.base import Solver, State, Step
from beeline.solvers.needs import FEWER_THAN_2_32, Needs
from beeline.solvers.newton.newton import line_search
from beeline.solvers.newton.small import is_small, small_newton_steps
from beeline.solvers.state import snapshot_of, theta_of

__all__ = ["L1CD", "strength_max"]

# Differences of J below this part of it are lost in rounding.
_NOISE = 1e-12
# A model is minimised until its violation is this part of what it was.
_ACCURACY = 0.1
# Features whose gradient lies within this part below strength·l1 are likely to get a weight soon.
_NEAR = 0.1
# A working set may have so many features without a weight even when few have one.
_FEWEST = 100
# So many working sets in a row may win nothing before the solver gives up.
_PATIENCE = 3


class L1CD(Solver):
    """Minimises a smooth loss with L1 or elastic net regularization, or with weights that may not be negative.

    The problem is J(w, b) = strength·(l1‖w‖₁ + ½ l2‖w‖²) + Σ c_i l(z_i, y_i). At the optimum most weights are zero,
    and only the features of the others matter. So a working set is kept (Johnson & Guestrin 2015; Massias, Gramfort &
    Salmon 2018): the features with a weight, and of those without the ones whose gradient exceeds strength·l1 most.
    Their entries are copied out of the rows, and J is lowered over them by prox-Newton steps (Yuan, Ho & Lin 2012,
    algorithm 4: a quadratic model, its minimum by coordinate descent, a line search) to a fraction of the worst
    violation among all features. Then one pass over all rows gives the gradient of every feature: the next working
    set, and the gap.

    The gap is certified: scaling the slopes of the losses until no feature's gradient exceeds strength·l1 makes them
    feasible for the dual problem, whose value is a lower bound of min J. Where l2 > 0 they are feasible as they are.
    What a free intercept leaves of their sum is given up (`objective.certificates`).

    Unlike in newGLMNET the model's free intercept is always optimal; the model is walked over by its Gram matrix when
    that is cheaper than by its columns, and the matrix is kept while the steps with it win much; and every few sweeps
    conjugate gradients on the weights that are not zero do what coordinate descent is slow at.

    Cost of an iteration: one pass for the gradient, one to copy the working set out when it has grown, and sweeps that
    count as the working set's share of the entries. Memory: a copy of the working set's entries, a few vectors of rows
    and of features.
    """

    name = "l1_cd"
    needs = Needs(
        loss=("curvature",), one_score=True, omega="l1_or_nonnegative", rows="working_set", most_rows=FEWER_THAN_2_32
    )

    def resumes(self, objective: Objective) -> bool:
        """Always."""
        return True

    def solve_in_kernel(self, objective: Objective, max_passes: float) -> Step | None:
        """All steps, by a kernel."""
        return small_newton_steps(objective, self.tol, max_passes) if is_small(objective) else None

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """One working set at a time."""
        working: _WorkingSet | None = None
        least, failures = np.inf, 0
        if (saved := snapshot_of(start)) is None:
            point, passes = objective.at(theta_of(start)).with_best_intercept(), float(start is not None)
        else:
            point, (passes, least, failures) = Point.restored(objective, saved["point"]), saved["numbers"]
            working = None if saved["working"] is None else _WorkingSet.restored(objective, saved["working"])

        def snapshot() -> dict[str, Any]:
            inside = None if working is None else working.snapshot()
            return {"point": point.snapshot(), "numbers": [passes, least, failures], "working": inside}

        while True:
            excess = _excess(point)
            worst = float(excess.max(initial=0.0))
            if saved is None:
                failures = 0 if worst < 0.9 * least else failures + 1
                least = min(least, worst)
                passes += 1
                final = failures > _PATIENCE
                yield Step(point.theta, point.value, point.bound, passes, final=final, snapshot=snapshot)
            saved = None
            coordinates, cut = _choose(point, excess)
            if working is None or not working.holds(np.nonzero(excess > 0)[0]):
                working = _WorkingSet.of(objective, coordinates, working.sweeps if working else 0.0)
                passes += working.share < 1
            before, target = point.value, self._target(point, worst)
            # While features wait outside, the optimum over those inside is not worth much.
            point, sweeps = working.lower(point, target, self.max_passes - passes, 2 if cut else 100)
            passes += sweeps
            failures = 0 if point.value < before - _NOISE * abs(before) else failures

    def _target(self, point: Point, worst: float) -> float:
        """To which violation the working set is solved.

        A violation r·λ₁ costs about r·λ₁‖w‖₁ of gap: less than the tolerance needs is wasted.
        """
        o = point.objective
        norm = float(np.abs(point.theta[: o.n_regularized]).sum())
        enough = 0.3 * self.tol * abs(point.value) / norm if norm else 0.0
        return min(max(0.1 * worst, enough), 0.3 * worst)


def strength_max(objective: Objective) -> float:
    """The least strength at which all weights are zero; one pass.

    The objective's own strength does not matter. An intercept that is not regularized takes its best value.
    """
    if not objective.regularizer.l1 > 0:
        return np.inf
    return objective.at().with_best_intercept().pull / objective.regularizer.l1


def _excess(point: Point) -> Floats:
    """By how much the gradient of every regularized coordinate exceeds what its zero weight would bear.

    For a coordinate with a weight: how far 0 is from its subgradients.
    """
    o = point.objective
    n = o.n_regularized
    l1 = o.strength * o.regularizer.l1
    excess = np.abs(point.loss_gradient[:n])
    if o.regularizer.nonnegative:
        excess[: o.rows.n_features] = -point.loss_gradient[: o.rows.n_features]
    excess -= l1
    (weighted,) = np.nonzero(point.theta[:n])
    theta = point.theta[weighted]
    gradient = point.loss_gradient[weighted] + o.strength * o.regularizer.l2 * theta
    excess[weighted] = np.abs(gradient + l1 * np.sign(theta))
    return excess


def _choose(point: Point, excess: Floats) -> tuple[Ints, bool]:
    """The coordinates with a weight, and about as many again of those without: the most likely ones.

    Also whether some that violate optimality had to be left out. Those that nearly violate it are taken where there is
    room: they would come in next.
    """
    weighted = point.theta[: len(excess)] != 0
    l1 = point.objective.strength * point.objective.regularizer.l1
    (others,) = np.nonzero((excess > -_NEAR * l1) & ~weighted)
    room = max(_FEWEST, int(np.count_nonzero(weighted)))
    cut = int(np.count_nonzero(excess[others] > 0)) > 2 * room
    if cut or len(others) > 2 * room:
        room = room if cut else 2 * room
        others = others[np.argpartition(-excess[others], room)[:room]]
    return np.union1d(np.nonzero(weighted)[0], others), cut


@dataclass
class _WorkingSet:
    """J over some coordinates, with a copy of their entries.

    Attributes
    ----------
    coordinates
        Which coordinates of θ, in increasing order; a free intercept is always there and not among them.
    block, local
        Their entries, and J over them alone.
    share
        The working set's share of all entries.
    gram_cost
        What the Gram matrix costs, in sweeps over the columns.
    sweeps
        How many sweeps over the columns a model may take. Where the Gram matrix costs less, it is used.
    """

    whole: Objective
    coordinates: Ints
    block: Block
    local: Objective
    share: float
    gram_cost: float
    sweeps: float
    columns: Columns | None = None
    gram: Floats | None = None
    gram_edge: Floats = field(default_factory=lambda: np.zeros(0))
    gram_curvatures: Floats = field(default_factory=lambda: np.zeros(0))
    gram_is_old: bool = False
    damping: float = 0.0

    @classmethod
    def of(cls, objective: Objective, coordinates: Ints, sweeps: float) -> _WorkingSet:
        """Copies the entries out, in one pass; all of them need no copy. `sweeps` is that of the last working set."""
        o, d = objective, objective.rows.n_features
        features, constant = coordinates[coordinates < d], bool(len(coordinates) and coordinates[-1] == d)
        block = o.rows.local(features, constant=constant)
        share = block.nnz / max(1, o.rows.nnz) if len(features) < d or constant or not o.rows.in_memory else 1.0
        rows = Threads().open(ArrayDataset(block))
        labels, costs = (rows.scatter_local(o.rows.gather_local(column)) for column in (o.labels, o.costs))
        intercept: Intercept = "free" if o.intercept == "free" else "none"
        local = replace(o, rows=rows, labels=labels, costs=costs, intercept=intercept)
        return cls(o, coordinates, block, local, share, _gram_cost(block), max(10.0, sweeps))

    def snapshot(self) -> dict[str, Any]:
        """What the same working set is made of; its entries are copied out again."""
        numbers = {name: getattr(self, name) for name in ("sweeps", "gram_is_old", "damping")}
        curvatures = None if self.gram is None else self.gram_curvatures
        return {"coordinates": self.coordinates, "curvatures": curvatures, "numbers": numbers}

    @classmethod
    def restored(cls, objective: Objective, snapshot: Mapping[str, Any]) -> _WorkingSet:
        """The working set of a snapshot."""
        working = cls.of(objective, np.array(snapshot["coordinates"]), 0.0)
        if snapshot["curvatures"] is not None:
            working._make_gram(np.array(snapshot["curvatures"]))
        vars(working).update(snapshot["numbers"])
        return working

    def holds(self, coordinates: Ints) -> bool:
        """Whether all of them are in the working set."""
        return bool(np.isin(coordinates, self.coordinates, assume_unique=True).all())

    def enter(self, point: Point) -> Point:
        """The point, seen from the working set."""
        theta = point.theta[self.coordinates]
        if self.local.has_intercept:
            theta = np.append(theta, point.theta[-1])
        return Point(self.local, theta, self.local.rows.scatter_local(self.whole.rows.gather_local(point.z)))

    def leave(self, point: Point) -> Point:
        """The point, seen from all features."""
        theta = np.zeros(self.whole.size)
        theta[self.coordinates] = point.theta[: len(self.coordinates)]
        if self.local.has_intercept:
            theta[-1] = point.theta[-1]
        return Point(self.whole, theta, self.whole.rows.scatter_local(self.local.rows.gather_local(point.z)))

    def lower(self, start: Point, target: float, passes: float, most: int) -> tuple[Point, float]:
        """(a point whose violation is at most the target, passes): at most so many prox-Newton steps."""
        point, spent, last = self.enter(start), 0.0, np.inf
        for _ in range(most):
            direction, worst, cost = self._direction(point, 0.5 * target)
            spent += cost + self.share
            # A matrix of earlier curvatures will do as long as the steps with it win much.
            self.gram_is_old |= worst > 0.3 * last
            moved = self._move(point, direction)
            if moved is None:
                useful = self._dampen()
            else:
                lowered = moved.value < point.value - _NOISE * abs(point.value)
                useful = worst > target and (lowered or worst < 0.9 * last)
                point = moved.with_best_intercept()
                self.damping = self.damping / 10 if self.damping > 1e-3 else 0.0
            if not useful or spent > passes:
                break
            last = worst
        return self.leave(point), spent

    def _move(self, point: Point, direction: Floats) -> Point | None:
        """The point that a line search finds, or None.

        The gap shrinks like the violation, J like its square: at the end the gap still has digits to win when J shows
        no more difference. Then a full step is as good as any.
        """
        line = point.line(direction)
        k, o = len(self.coordinates), self.local
        before, after = point.theta[:k], point.theta[:k] + direction[:k]
        change = o.strength * (o.regularizer.value(after) - o.regularizer.value(before))
        promise = dot(*(o.rows.gather_local(column) for column in (point.slopes, line.dz))) + change
        noise = _NOISE * abs(point.value)
        if abs(promise) < noise and direction.any() and line.at(1.0)[0] <= point.value + noise:
            return line.move(1.0)
        t = line_search(line, promise) if promise < 0 else 0.0
        return line.move(t) if t else None

    def _dampen(self) -> bool:
        self.damping = max(1e-3, 10 * self.damping)
        return self.damping < 1e6

    def _direction(self, point: Point, tol: float) -> tuple[Floats, float, float]:
        """(to the minimum of the model, the worst violation at the point, passes)."""
        o, k = self.local, len(self.coordinates)
        w = point.theta[:k].copy()
        signed = int(np.count_nonzero(self.coordinates < self.whole.rows.n_features))
        signed = signed if o.regularizer.nonnegative else 0
        penalty = (o.strength * o.regularizer.l1, o.strength * o.regularizer.l2, signed)
        u, h = o.rows.gather_local(point.slopes), o.rows.gather_local(point.curvatures)
        if self.damping:
            h = h + self.damping * max(float(h.max()), float(o.rows.gather_local(o.costs).max()))
        if self.gram_cost <= self.sweeps:
            worst, sweeps, shift = self._descend_gram(u, h, w, penalty, tol)
        else:
            if self.columns is None:
                self.columns = self.block.columns()
            worst, _, sweeps, shift = self.columns.descend(u, h, w, penalty, tol, _ACCURACY, 100, o.has_intercept)
            self.sweeps = max(self.sweeps, sweeps)
        direction = w - point.theta[:k]
        return np.append(direction, shift) if o.has_intercept else direction, worst, sweeps * self.share

    def _descend_gram(
        self, u: Floats, h: Floats, w: Floats, penalty: tuple[float, float, int], tol: float
    ) -> tuple[float, float, float]:
        """(the worst violation, passes in units of the working set, the move of the intercept)."""
        block, passes = self.block, 1.0
        old = self.gram_is_old and not np.array_equal(h, self.gram_curvatures)
        if self.gram is None or old or np.abs(h - self.gram_curvatures).sum() > 0.1 * h.sum():
            self._make_gram(h)
            passes += 2
        assert self.gram is not None
        before = w.copy()
        worst, _, _ = descend_gram(self.gram, block.transposed(u), w, penalty, tol, _ACCURACY, 1000)
        total = float(self.gram_curvatures.sum())
        shift = -dot(self.gram_edge, w - before) / total if self.local.has_intercept and total else 0.0
        return worst, passes, shift

    def _make_gram(self, h: Floats) -> None:
        """The Gram matrix of these curvatures."""
        self.gram, self.gram_curvatures, self.gram_is_old = self.block.gram(h), h, False
        self.gram_edge = self.block.transposed(h) if self.local.has_intercept else np.zeros(0)
        complete_gram(self.gram, self.gram_edge if self.local.has_intercept else None, float(h.sum()))


def _gram_cost(block: Block) -> float:
    """What forming the Gram matrix costs, in sweeps over the columns; ∞ where it is large or slow to walk over."""
    k, nnz = block.n_features, max(1, block.nnz)
    if k > 3000 or k * k > 4 * nnz:
        return np.inf
    if block.indptr is None:
        return k / 8  # vector instructions take several entries at a time
    return float(np.square(np.diff(block.indptr).astype(np.float64)).sum()) / (2 * nnz)
