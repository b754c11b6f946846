"""Dual coordinate descent: one row at a time, in random order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from beeline._forks import ForkSafeLock
from beeline._numbers import square
from beeline._types import Floats
from beeline.engines import Rows
from beeline.kernels import balance, blend, dot
from beeline.objective import Objective, Point, conjugate_bound
from beeline.objective.certificates import rounding_unit
from beeline.solvers.base import Solver, State, Step
from beeline.solvers.dual.blocks import Geometry, Visits, sweeps_over
from beeline.solvers.dual.shuffled import ShuffledRows
from beeline.solvers.dual.warm import dual_of, warm_start
from beeline.solvers.needs import FEWER_THAN_2_32, Needs
from beeline.solvers.state import snapshot_of

__all__ = ["LOSSES_WITH_DUAL", "DualCD"]

LOSSES_WITH_DUAL = frozenset(
    ("hinge", "squared_hinge", "logistic", "squared", "epsilon_insensitive", "squared_epsilon_insensitive")
)
# From this tolerance on, sweeps may see values rounded to float32; below it, a few first ones would not get there.
_ROUGH_TOL = 1e-6
# Up to so much work of a sweep, in entries, the first sweeps and gap checks are made in one call.
_LITTLE_WORK, _FIRST_PASSES = 2**15, 30
# Of a run, beside its arrays.
_NUMBERS = ("passes", "n_sweeps", "intercepts", "totals", "n_averaged", "dual", "growth", "ratio")


class DualCD(Solver):
    """Minimises J with L2 regularization through its dual, row by row.

    The dual problem is max −‖Xᵀa‖²/(2λ) − Σ ψ_i(a_i), λ = strength · l2, with w = Xᵀa/λ; a free intercept adds Σ a_i
    = 0. Rows are taken in random order, and for each the dual is maximised over its own a_i (Hsieh et al. 2008,
    algorithm 1; Yu, Huang & Lin 2011, algorithm 5; Ho & Lin 2012, algorithm 4). Rows whose a_i lies at a bound and
    wants to stay there are left out (shrinking).

    Four things are not as in these papers. Rows are shuffled once, and then runs of eight neighbours: the order is
    random enough, and memory likes it. Rows leave as soon as they want to stay by more than the usual violation: a
    look at all rows every few sweeps, which certifies the gap, also says exactly which ones must come back. The
    primal point is the best between the last one and the average of the weights over the sweeps since then: w = Xᵀa/λ
    itself is far worse, since the dual's error enters it by the square root. And a free intercept is exact: the
    method of multipliers on Σ a_i = 0, with the rows centred (in effect).

    Cost of a sweep: two multiplications an entry of the rows that are left, on one thread. Gap checks take about one
    seventh of the time. Memory: 64 bytes a row, and a copy of the rows where they are short.

    The seed says in which order the rows are taken. The sweeps are those of `DualBlocks`, over all rows.
    """

    name = "dual_cd"
    needs = Needs(duals=LOSSES_WITH_DUAL, omega="l2", nonnegative=False, rows="memory", most_rows=FEWER_THAN_2_32)
    row_arrays = ("dual",)

    def resumes(self, objective: Objective) -> bool:
        """Always."""
        return True

    def __init__(
        self,
        tol: float | None = None,
        max_passes: float | None = None,
        seed: int | None = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(tol, max_passes, seed, **options)
        self._lock = ForkSafeLock()
        self._shuffled: tuple[Rows, ShuffledRows] | None = None

    def shuffled(self, rows: Rows) -> ShuffledRows:
        """The rows, shuffled; those of the last data set are kept, so that classes share them.

        Sweeps may go over rounded values where the tolerance is far above the rounding: gap checks are exact.
        """
        with self._lock:
            if self._shuffled is None or self._shuffled[0] is not rows:
                self._shuffled = rows, ShuffledRows.of(rows, self.seed, rough=self.tol >= _ROUGH_TOL)
            return self._shuffled[1]

    def solve_in_kernel(self, objective: Objective, max_passes: float) -> Step | None:
        """All sweeps and gap checks, by a kernel."""
        if self.tol < _ROUGH_TOL or objective.rows.nnz + 10 * objective.rows.n_rows > _LITTLE_WORK:
            return None
        descent = _Descent(self.shuffled(objective.rows), objective, None, self)
        best, a = descent.run(max_passes), descent.dual_variables()
        bound = descent.dual_value(a)
        return Step(
            best.theta,
            best.value,
            bound,
            descent.passes,
            solver=self.name,
            arrays=lambda: {"dual": objective.rows.in_data_order(a)},
            iterations=descent.n_sweeps,
            point=best,
        )

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """A few sweeps, then a look at all rows."""
        descent = _Descent(self.shuffled(objective.rows), objective, start, self)
        bound = -np.inf if (saved := snapshot_of(start)) is None else saved["bound"]

        def snapshot() -> dict[str, Any]:
            return {"bound": bound, **descent.snapshot()}

        while True:
            moved = descent.sweep()
            best = descent.check_gap()
            bound = max(bound, descent.bound())
            descent.ratio = max(1.0, (best.value - bound) / max(descent.growth, 1e-300))
            arrays = descent.arrays
            yield Step(best.theta, best.value, bound, descent.passes, final=not moved, arrays=arrays, snapshot=snapshot)


class _Descent:
    """The state of one run.

    Work is counted in nanoseconds of one thread, as a rough model has them: when to check must not depend on a clock,
    or the same seed would not give the same bits.
    """

    _CHECK_EVERY = 8.0  # a gap check when sweeps have taken so many times its work: it also brings back rows
    _CHECK_RARELY = 20.0  # where no rows leave
    _CHECK_AFTER = 1.5  # never before

    def __init__(self, rows: ShuffledRows, objective: Objective, start: State | None, solver: DualCD) -> None:
        self.rows, self.whole, self.tol = rows, objective.rows, solver.tol
        self.objective = o = rows.over(objective)
        self.modulus = o.strength * o.regularizer.l2
        self.best: Point | None = None
        self.passes, self.n_sweeps = 0.0, 0
        self.labels, self.costs = o.rows.gather_local(o.labels), o.rows.gather_local(o.costs)
        a, b, saved = np.zeros(o.rows.n_rows), 0.0, snapshot_of(start)
        if saved is not None:
            a = np.array(saved["variables"])
        elif start is not None:
            own = dual_of(start, objective.rows)
            begin = warm_start(o, self.labels, self.costs, start, self.tol, own)
            self.best, a, b = begin.point, begin.variables, begin.intercept
            self.passes += begin.passes
        warm = start is not None and saved is None
        self.w = rows.block.transposed(a) / self.modulus if warm else np.zeros(o.rows.n_features)
        geometry = Geometry.of(o, rows.centred if o.intercept == "free" else None)
        visits = Visits.of_all(rows, geometry)
        self.sweeps = sweeps_over(visits, self.labels, self.costs, a, self.w, o.loss, geometry, seed=solver.seed)
        self.sweeps.set_centre(b)
        self.average, self.intercepts, self.totals, self.n_averaged = np.zeros(len(self.w)), 0.0, 0.0, 0
        self.nnz = max(1, o.rows.nnz)
        # Σ a_i must become small against this where an intercept is free; nothing to ask for where it is not.
        self.total = o.total_cost if o.intercept == "free" else np.inf
        self.dual = 0.0  # what it has grown by
        self.growth, self.ratio = 0.0, 4.0  # of the last sweep, and the usual ratio of the gap to it
        if saved is not None:
            self._restore(saved)

    def snapshot(self) -> dict[str, Any]:
        """All that the next sweep goes on from."""
        variables, order = np.empty(self.objective.rows.n_rows), np.empty(self.sweeps.size, np.int64)
        self.sweeps.copy_dual(variables)
        self.sweeps.copy_order(order)
        assert self.best is not None
        return {
            "best": self.best.snapshot(),
            "variables": variables,
            "order": order.astype(np.uint32),
            "sweeps": self.sweeps.progress(),
            "w": self.w,
            "average": self.average,
            "numbers": {name: getattr(self, name) for name in _NUMBERS},
        }

    def _restore(self, saved: Mapping[str, Any]) -> None:
        self.best = Point.restored(self.objective, saved["best"])
        self.w[:], self.average[:] = saved["w"], saved["average"]
        vars(self).update(saved["numbers"])
        self.sweeps.resume(saved["order"].astype(np.int64), tuple(saved["sweeps"]))

    def run(self, max_passes: float) -> Point:
        """The point where a kernel takes the gap for small enough, after all the sweeps and gap checks it took."""
        o, free = self.objective, self.objective.intercept == "free"
        mean = self.rows.centred.mean if free else np.zeros(0)
        most = max(1, int(min(_FIRST_PASSES, max_passes - 1)))
        sweeps, entries, b = self.sweeps.run(self.average, mean, free, self.tol, most)
        self.n_sweeps += sweeps
        self.passes += entries / self.nnz + 1
        self.best = o.at(o.join(self.average, b))
        return self.best

    def sweep(self) -> bool:
        """Sweep until a gap check is due; False when nothing moves any more.

        That is when sweeps have taken several times the work of a gap check, or when the tolerance may be reached: the
        gap falls with the growth of the dual, and the last gap check told their ratio.
        """
        check_cost = self.nnz + 15.0 * self.objective.rows.n_rows
        work, total, due = 0.0, 0.0, False
        while not due:
            _, self.growth, entries = self.sweeps.sweep()
            self.n_sweeps += 1
            self.passes += entries / self.nnz
            work += (2.0 * entries + 10.0 * self.sweeps.active + 2000.0) / check_cost
            total += self.growth
            self.dual += self.growth
            self._average()
            if self.objective.intercept == "free":
                self.sweeps.recentre()
            due = self._check_is_due(work, total)
        return total > 0 or abs(self.sweeps.total) > 1e-12 * self.total

    def _check_is_due(self, work: float, total: float) -> bool:
        """After sweeps of so much work, in gap checks, by which the dual has grown so much."""
        whole = self.sweeps.active == self.sweeps.size
        if work >= (self._CHECK_RARELY if whole else self._CHECK_EVERY):
            return True
        hopeful = self.ratio * self.growth <= self.tol * self.dual and work >= self._CHECK_AFTER
        still = self.growth <= (0.0 if whole else 1e-4) * total
        return (hopeful or still) and abs(self.sweeps.total) <= 1e-3 * self.total

    def _average(self) -> None:
        """Later sweeps weigh more: about by the cube of their number since the last gap check."""
        self.n_averaged += 1
        part = 4 / (self.n_averaged + 3)
        blend(self.average, self.w, part)
        self.intercepts += part * (self.sweeps.intercept - self.intercepts)
        self.totals += part * (self.sweeps.total - self.totals)

    def check_gap(self) -> Point:
        """The best primal point so far; one pass."""
        o = self.objective
        w = self.average
        if o.intercept == "free":
            w = w - self.totals / self.modulus * self.rows.centred.mean
        point = o.at(o.join(w, self.intercepts)).with_best_intercept(0.05 * self.tol)
        self.n_averaged = 0
        if self.best is None and o.intercept == "free":
            self.sweeps.set_centre(float(point.theta[-1]))
        self.sweeps.update_active_set(o.rows.gather_local(point.z))
        if self.best is not None:
            point = self.best.towards(point, 0.05 * self.tol)
        self.best = point
        self.passes += 1
        return point

    def bound(self) -> float:
        """The dual value at the present variables, a lower bound of J.

        Xᵀa is made anew, which takes a pass, where the constraint Σ a_i = 0 must be met first; and where sweeps went
        over rounded values, when that alone keeps the gap above the tolerance.
        """
        o, best = self.objective, self.best
        if o.intercept == "free" or best is None:
            return self.dual_value(self.dual_variables())
        norm, cost = dot(self.w, self.w), self.sweeps.conjugate()
        likely = -0.5 * self.modulus * (norm + square(self.sweeps.intercept)) - cost
        safe = likely - self.modulus * self._rounding * (math.sqrt(norm) + 0.5 * self._rounding)
        safe -= 2 * rounding_unit(o) * (abs(cost) + self.sweeps.weighted_norm() * math.sqrt(norm) + best.value)
        allowed = best.value - self.tol * abs(best.value)
        return self.dual_value(self.dual_variables()) if safe < allowed <= likely else safe

    @property
    def _rounding(self) -> float:
        """How far w may be from Xᵀa/λ: each row was rounded by 2⁻²⁴ of itself, and each step by less."""
        steps = float(np.finfo(np.float64).eps) * math.sqrt(16 + self.n_sweeps * self.objective.rows.n_rows)
        return ((0.0 if self.rows.exact else 2.0**-24) + steps) * self.sweeps.weighted_norm() / self.modulus

    def arrays(self) -> dict[str, Floats]:
        """What a run would go on from, beside θ."""
        return {"dual": self.whole.in_data_order(self.dual_variables())}

    def dual_variables(self) -> Floats:
        """A copy of a, feasible also for a free intercept."""
        a = np.empty(self.objective.rows.n_rows)
        self.sweeps.copy_dual(a)
        if self.objective.intercept == "free":
            balance(a)  # which keeps them feasible
        return a

    def dual_value(self, a: Floats) -> float:
        """A lower bound of J by feasible dual variables; one pass."""
        o, slopes = self.objective, self.objective.rows.scatter_local(-a)
        product = o.weighted(slopes)
        self.passes += 1
        return conjugate_bound(self.best or o.at(), slopes, product)
