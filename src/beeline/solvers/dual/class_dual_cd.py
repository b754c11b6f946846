"""Dual coordinate descent for multi-class hinges: one row at a time, all its classes at once."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from beeline._numbers import square as squared
from beeline._types import Floats
from beeline.kernels import ClassSweeps, RoughClassSweeps, RowArrays, dot
from beeline.losses import CrammerSinger, MulticlassMargin, MulticlassPerceptron, ScaledMulticlassMargin, WestonWatkins
from beeline.objective import Objective, Point
from beeline.objective.certificates import cancelling_parts, rounding_unit
from beeline.solvers.base import Solver, State, Step
from beeline.solvers.dual.shuffled import ShuffledRows
from beeline.solvers.needs import FEWER_THAN_2_32, Needs
from beeline.solvers.state import theta_of

__all__ = ["HINGES", "ClassDualCD", "set_hinge"]

# From this tolerance on, sweeps may see values and weights rounded to float32.
_ROUGH_TOL = 1e-5
_PATIENCE = 6  # gap checks without a better dual value
_MOST_CLASSES = 2**16 - 2
_NONE = np.zeros(0)
HINGES = (CrammerSinger, MulticlassMargin, ScaledMulticlassMargin, MulticlassPerceptron, WestonWatkins)


class ClassDualCD(Solver):
    """Minimises J with a multi-class hinge and L2 regularization through its dual, row by row.

    Primal, for hinges of Crammer and Singer's kind: min λ/2 Σ_k ‖w_k‖² + Σ c_i max_k (z_ik + Δ(y_i, k) − z_iy),
    λ = strength · l2. Dual: max −‖Xᵀa‖²/(2λ) + Σ_ik p_ik Δ(y_i, k) with a_ik = c_i [k = y_i] − p_ik and W = Xᵀa/λ,
    where p_ik ≥ 0 and Σ_k p_ik = c_i. Free intercepts add Σ_i a_ik = 0 for every class. Rows are taken in random
    order, and for each the dual is maximised over its own
    p_i, exactly (Keerthi et al. 2008, algorithm 2; Crammer & Singer 2001, section 5). Rows with all of p_i at one class
    that wants to keep it are left out (shrinking); so are, from 33 classes on, classes that do not compete in a row.

    The hinges of Weston and Watkins, and those with scaled slacks, have other sets for p_i, and the best p_i follows
    from one number, or two (`class_problems.h`).

    What is not as in these papers: rows are shuffled once, and then runs of eight neighbours. The weights of a
    feature lie side by side, and in float32 while the tolerance is far above its rounding: a row is scored against
    all classes by a few vector instructions an entry. Looks at all rows certify the gap, and bring back what was
    shrunk too early; one is due when sweeps have taken six times its work, or when the gaps of the rows visited say
    that the tolerance is reached. Where features are fewer than rows, the primal point is the best between the last
    one and the average of the weights over the sweeps since then; otherwise W = Xᵀa/λ is as good, and cheaper. Free
    intercepts are exact: the method of multipliers on Σ_i a_ik = 0, with the rows centred (in effect).

    Cost of a sweep: two multiplications an entry and class of the rows and classes that are left, on one thread.
    Memory: 8 to 10 bytes a row and class, 4 to 8 a weight, and a copy of the rows.

    The seed says in which order the rows are taken.
    """

    name = "class_dual_cd"
    needs = Needs(
        losses=HINGES,
        losses_named="multi-class hinges",
        most_outputs=_MOST_CLASSES,
        omega="l2",
        nonnegative=False,
        rows="memory",
        most_rows=FEWER_THAN_2_32,
    )

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """A few sweeps, then a look at all rows; in float64 from where float32 gets no further."""
        passes, theta = 0.0, theta_of(start)
        for rough in (True, False) if self.tol >= _ROUGH_TOL else (False,):
            rows = ShuffledRows.of(objective.rows, self.seed, rough=rough)
            descent = _Descent(rows, objective, self, rough)
            if theta is not None:
                descent.warm(theta)
            still = 0
            while still < 2 and not (rough and descent.idle > _PATIENCE):
                still = 0 if descent.sweep() else still + 1
                best = descent.check_gap(latest=still > 0)
                final = still > 1 and not rough
                yield Step(best.theta, best.value, descent.bound, passes + descent.passes, final=final)
            theta, passes = best.theta, passes + descent.passes


class _Descent:
    """The state of one run.

    Work is counted in entries times classes: when to check must not depend on a clock, or the same seed would not give
    the same bits.
    """

    _CHECK_EVERY = 6.0  # a gap check when sweeps have taken so many times its work
    _FIRST = 2  # sweeps before the first gap check
    _REFRESH = 64  # sweeps after which the weights are made anew, lest rounding adds up

    def __init__(self, rows: ShuffledRows, objective: Objective, solver: ClassDualCD, rough: bool) -> None:
        self.rows, self.tol = rows, solver.tol
        self.objective = o = rows.over(objective)
        self.modulus = o.strength * o.regularizer.l2
        self.best: Point | None = None
        self.bound, self.dual, self.idle = -np.inf, -np.inf, 0  # what is certified, what is estimated
        self.passes, self.n_sweeps = 0.0, 0
        self.free = o.intercept == "free"
        block, k = rows.block, o.n_outputs
        self.exact = RowArrays(block.values, block.indptr, block.indices, block.n_features)
        sweeps = RoughClassSweeps if rough else ClassSweeps
        numbers, costs = o.rows.gather_local(o.labels).astype(np.int64), o.rows.gather_local(o.costs)
        self.sweeps = sweeps(rows.arrays, rows.order, rows.copied, numbers, costs, k, solver.seed)
        set_hinge(self.sweeps, o)
        self._measure()
        self.averages = o.rows.n_features <= o.rows.n_rows
        shape = (o.rows.n_features, k) if self.averages else (0, k)
        self.average, self.totals, self.intercepts, self.n_averaged = np.zeros(shape), np.zeros(k), np.zeros(k), 0
        self.product: Floats | None = None
        self.allowance = 1e-4 if rough else 1e-9  # far above the relative rounding of the weights
        self.work = max(1, o.rows.nnz) * k
        self.total = o.total_cost if self.free else np.inf
        self.gained, self.ratio = 0.0, 0.5  # the dual's growth so far; the true gap against the one that sweeps see

    def _measure(self) -> None:
        """Tell the kernel how the intercepts enter."""
        kind = self.objective.intercept
        if kind == "free":
            rows = self.rows.centred
            # As stiff as a row, and stiff enough for the rows together to move the intercepts by a margin.
            rho = max(rows.usual_norm / self.modulus, 1 / max(self.objective.total_cost, 1e-300))
            self.sweeps.measure(rows.norms, rows.means, 1 / self.modulus, rho, dot(rows.mean, rows.mean))
        else:
            rho = 1 / self.modulus if kind == "regularized" else 0.0
            self.sweeps.measure(self.rows.norms, _NONE, 1 / self.modulus, rho, 0.0)

    def warm(self, start: Floats) -> None:
        """Begin with the p of a rounded loss at θ, scaled as the dual likes best."""
        o = self.objective
        self.best = o.at(start)
        self.passes += 2
        self.sweeps.start(o.rows.gather_local(self.best.z), 0.1)
        self.sweeps.reduce(self._balance())
        gain, square = self._product()
        best = min(1.0, self.modulus * gain / square) if square > 0 else 1.0
        self.sweeps.reduce(np.full((o.n_outputs, o.n_outputs), best))
        self.sweeps.refresh()
        if self.free:
            self.sweeps.set_centre(np.ascontiguousarray(o.split(self.best.theta)[1]))

    def sweep(self) -> bool:
        """Sweep until a gap check is due; False when nothing moves any more."""
        first, work, total = self.n_sweeps, 0.0, 0.0
        while True:
            growth, self.seen, entries, scored = self.sweeps.sweep()
            self.n_sweeps += 1
            self.passes += scored / self.work
            work += scored + 2 * entries
            total += growth
            if self.n_sweeps % self._REFRESH == 0:
                self.sweeps.refresh()
            self._average()
            if self.free:
                self.sweeps.recentre()
            if growth <= 1e-4 * total and np.abs(self._totals()).max() <= 1e-3 * self.total:
                break
            if not scored or (self.n_sweeps >= first + self._FIRST and self._is_due(work, total)):
                break  # where all rows have left, a gap check wakes them
        self.gained += total
        return total > 0 or float(np.abs(self._totals()).max()) > 1e-12 * self.total

    def _is_due(self, work: float, growth: float) -> bool:
        """Whether the work done deserves a gap check, or the gap seems to be small enough."""
        check_cost = 2.5 * self.work
        size = abs(self.best.value) if self.best is not None else self.gained + growth
        reached = self.ratio * self.seen <= self.tol * size
        return work >= self._CHECK_EVERY * check_cost or (reached and (self.best is None or work >= check_cost))

    def _totals(self) -> Floats:
        totals = np.empty(self.objective.n_outputs)
        self.sweeps.copy_totals(totals)
        return totals

    def _average(self) -> None:
        """Later sweeps weigh more: their numbers since the last gap check."""
        self.n_averaged = self.n_averaged + 1 if self.averages else 1
        share = 2.0 / (self.n_averaged + 1)
        b = np.empty(self.objective.n_outputs)
        self.sweeps.copy_intercepts(b)
        self.intercepts = self.intercepts + share * (b - self.intercepts)
        if self.averages:
            self.totals += share * (self._totals() - self.totals)
            self.sweeps.average_weights(share, self.average)

    def check_gap(self, latest: bool) -> Point:
        """The best primal point so far, and a lower bound of the optimum; one or two passes.

        `latest`: the present weights count, not their average, since they are at rest.
        """
        o, k = self.objective, self.objective.n_outputs
        latest = latest or not self.averages
        w, b = self.average, self.intercepts
        if latest:
            w, b = np.zeros((o.rows.n_features, k)), np.empty(k)
            self.sweeps.average_weights(1.0, w)
            self.sweeps.copy_intercepts(b)
        if self.free:
            w = w - np.outer(self.rows.centred.mean, (self._totals() if latest else self.totals) / self.modulus)
        theta = np.append(w, b) if o.has_intercept else w.flatten()
        present = Point(o, theta, o.scores(theta))
        self.passes += 1
        self.sweeps.update_active_set(o.rows.gather_local(present.z))
        self.n_averaged = 0
        point = self.best.towards(present, 0.05 * self.tol) if self.best is not None and self.averages else present
        if self.best is None or point.value <= self.best.value:
            self.best = point
        gap = self._certify(self.best.value, present if latest and not self.free else None)
        if self.seen > 0:
            self.ratio = max(0.1, gap / self.seen)
        return self.best

    def _certify(self, value: float, present: Point | None) -> float:
        """Raise the bound; returns how far J, the value, seems to be above the optimum.

        From the scores of the present weights the dual value is only estimated. Where the estimate meets the tolerance,
        the dual value itself is taken; elsewhere the bound stays below the estimate by the tolerance, which is far more
        than rounding can do. So an estimate tells where the solver is, and never ends it.
        """
        margin = self.tol * abs(value)
        bound = dual = self._dual() if present is None else self._lagrangian(present)
        if present is not None and value - dual <= margin:
            bound = dual = self._dual()
        elif present is not None:
            bound = dual - margin
        self.idle = 0 if dual > self.dual else self.idle + 1
        self.bound, self.dual = max(self.bound, bound), max(self.dual, dual)
        return value - self.dual

    def _lagrangian(self, point: Point) -> float:
        """The dual value from the scores of the present weights, without a pass.

        The Lagrangian at W lies above its minimum by ‖λW − Xᵀa‖²/(2λ): the square of what rounding has done to W, for
        which the allowance is ample.
        """
        square = dot(point.theta, point.theta)
        return 0.5 * self.modulus * square * (1 - self.allowance**2) + self.sweeps.lagrangian(
            self.objective.rows.gather_local(point.z)
        )

    def _dual(self) -> float:
        """The dual value at the present p, made to meet Σ_i a_ik = 0 where intercepts are free; a pass.

        What rounding leaves of those sums is given up, as every bound does (`objective.certificates`).
        """
        o, best = self.objective, self.best
        factors = self._balance() if self.free else None
        gain, square = self._product(factors)
        self.passes += 1
        flows = self._flows()
        unit, size = rounding_unit(o), 2 * float(flows.sum() - np.trace(flows))
        given_up, reach = 0.0, best.score_bound if best is not None else 0.0
        if factors is not None:
            sums = _slope_sums(flows * factors)
            given_up = float(cancelling_parts(sums, sums.sum(axis=0), unit * size).max())
            reach = 10 * max(1.0, reach)
        turnover = size * reach
        slope_error = (unit + given_up) * size * o.longest_row
        lost = (given_up + 2 * unit) * (turnover + gain)
        return gain - squared(math.sqrt(square) + slope_error) / (2 * self.modulus) - lost

    def _product(self, factors: Floats | None = None) -> tuple[float, float]:
        """Σ p_ik Δ(y_i, k), and ‖Xᵀa‖² with the regularized intercepts' part."""
        o = self.objective
        if self.product is None:
            self.product = np.empty((o.rows.n_features, o.n_outputs))
        totals = np.empty(o.n_outputs)
        factors = np.zeros((0, 0)) if factors is None else factors
        gain = self.sweeps.product(self.exact, factors, self.product, totals)
        flat = self.product.reshape(-1)
        return gain, dot(flat, flat) + (dot(totals, totals) if o.intercept == "regularized" else 0.0)

    def _balance(self) -> Floats:
        """What p_ik must be multiplied by for Σ_i a_ik = 0, by (y_i, k)."""
        k = self.objective.n_outputs
        return balance_flows(self._flows()) if self.free else np.ones((k, k))

    def _flows(self) -> Floats:
        """Σ p_ik by (y_i, k)."""
        flows = np.empty((self.objective.n_outputs, self.objective.n_outputs))
        self.sweeps.flows(flows)
        return flows


def _slope_sums(flows: Floats) -> Floats:
    """Σ_i −a_ik of the rows of each class."""
    others = flows.copy()
    np.fill_diagonal(others, 0.0)
    sums: Floats = others - np.diag(others.sum(axis=1))
    return sums


def set_hinge(sweeps: ClassSweeps, o: Objective) -> None:
    """Which hinge it is, where it is not that of Crammer and Singer."""
    loss, k = o.loss, o.n_outputs
    if isinstance(loss, WestonWatkins):
        sweeps.set_hinges(np.zeros((0, 0)))
    elif isinstance(loss, ScaledMulticlassMargin):
        sweeps.set_hinges(1 - np.eye(k) if loss.costs is None else loss.costs)
    elif isinstance(loss, MulticlassMargin) and loss.costs is not None:
        sweeps.set_margins(loss.costs)
    elif isinstance(loss, MulticlassPerceptron):
        sweeps.set_margins(np.zeros((k, k)))


def balance_flows(flows: Floats) -> Floats:
    """Factors, none above 1, that make what flows out of every node equal what flows into it.

    flows[y, k] runs from y to k. As much as too much flows out of one node, and too little of another, is taken off the
    flows along a shortest path between them. There always is such a path: flows are made of paths from the former to
    the latter, and of circles.
    """
    left = flows.copy()
    np.fill_diagonal(left, 0)
    excess = left.sum(axis=1) - left.sum(axis=0)
    least = 1e-15 * float(left.sum())
    while excess.max() > least:
        source = int(excess.argmax())
        path = _path(left, source, excess < 0)
        if path is None:  # what is left is rounding
            break
        arcs = path[:-1], path[1:]
        amount = min(float(excess[source]), -float(excess[path[-1]]), float(left[arcs].min()))
        left[arcs] = np.maximum(left[arcs] - amount, 0)
        excess[source] -= amount
        excess[path[-1]] += amount
    return np.divide(left, flows, out=np.ones_like(flows), where=flows > 0)


def _path(left: Floats, source: int, ends: Floats) -> list[int] | None:
    """The nodes of a shortest path along positive flows from the source to one of the ends."""
    before = {source: source}
    wave = [source]
    while wave:
        following: list[int] = []
        for node in wave:
            for k in np.flatnonzero(left[node] > 0).tolist():
                if k in before:
                    continue
                before[k] = node
                following.append(k)
                if ends[k]:
                    path = [k]
                    while path[-1] != source:
                        path.append(before[path[-1]])
                    return path[::-1]
        wave = following
    return None
