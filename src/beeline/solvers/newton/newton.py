"""Newton's method with line search: Cholesky when there are few features, conjugate gradients otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from beeline._types import Floats
from beeline.kernels import dot, solve_positive
from beeline.objective import Line, Objective, Point, conjugate_bound
from beeline.solvers.base import Solver, State, Step
from beeline.solvers.budget import matrix_fits
from beeline.solvers.needs import Needs
from beeline.solvers.newton.preconditioning import Preconditioner, Preconditioners
from beeline.solvers.newton.small import is_small, small_newton_steps
from beeline.solvers.options import SolverOptions, option
from beeline.solvers.state import snapshot_of, theta_of

__all__ = ["MOST_FEATURES", "Newton", "NewtonOptions", "SmoothedNewton"]

LinearSolver = Literal["auto", "cholesky", "cg"]
_EXACT = 1e-8
_ROUNDING = 1e-14  # of J
_FINEST = 1e-8  # part of the usual accuracy of a direction, where a step wins little
MOST_FEATURES = 5000  # for which a matrix of features by features is made at all


@dataclass(frozen=True, kw_only=True)
class NewtonOptions(SolverOptions):
    """Options of Newton's method, also with rounded kinks."""

    linear_solver: LinearSolver = option(  # noqa: RUF009 — a field
        "auto",
        "How the system of each step is solved: `cholesky`, `cg` (conjugate gradients), or the cheaper one.",
        choices=get_args(LinearSolver),
    )

    def refine(self, needs: Needs) -> Needs:
        """One score a row, where the system has a Cholesky factor."""
        if self.linear_solver != "cholesky":
            return needs
        instead = {"one_score": "has no Cholesky factor for several outputs; take linear_solver='cg'"}
        return replace(needs, one_score=True, instead=instead)


class Newton(Solver):
    """Minimises a smooth J with L2 regularization.

    Each iteration solves ∂²J(θ) s = −∂J(θ) and searches along s for a point where J is sufficiently lower. The
    scores of all rows move with the step, so that the search costs no pass over the data.

    The system is solved by Cholesky when forming the Hessian is cheaper than the products that conjugate gradients
    would take, otherwise by conjugate gradients to ‖r‖ ≤ η‖∂J‖, η = min(½, √(‖∂J‖/‖∂J(0)‖)), which keeps the
    convergence superlinear, but no further than the tolerance asks for. The preconditioner mixes the identity and the
    Hessian's diagonal (Hsia, Chiang & Lin 2018); several outputs of few features get a matrix for each of them, or the
    whole Hessian of some earlier point, once that is cheaper (`Preconditioners`).

    Cost of an iteration: one pass for the gradient, one for the scores of the step, and one for each conjugate
    gradient, or one of nnz·(nonzeros a row)/2 steps for the Hessian. Memory: a few vectors of rows and of features;
    d² numbers with Cholesky.

    Options are those of `NewtonOptions`.
    """

    name = "newton"
    needs = Needs(loss=("curvature",), omega="l2", nonnegative=False)
    kind_of_options = NewtonOptions
    options: NewtonOptions
    _LEAST = 0.0

    def resumes(self, objective: Objective) -> bool:
        """Always."""
        return True

    def solve_in_kernel(self, objective: Objective, max_passes: float) -> Step | None:
        """All steps, by a kernel."""
        return small_newton_steps(objective, self.tol, max_passes) if is_small(objective) else None

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """One Newton step at a time."""
        preconditioners, finer = Preconditioners(), 1.0
        if (saved := snapshot_of(start)) is None:
            point, passes = objective.at(theta_of(start)).with_best_intercept(), float(start is not None)
            slope = (objective.at() if start is not None else point).gradient
            scale = math.sqrt(dot(slope, slope))
        else:
            point, (passes, scale, finer) = Point.restored(objective, saved["point"]), saved["numbers"]
            preconditioners.restore(saved["preconditioners"])

        def snapshot() -> dict[str, Any]:
            more = {"numbers": [passes, scale, finer], "preconditioners": preconditioners.snapshot()}
            return {"point": point.snapshot(), **more}

        def forget() -> None:
            point.forget()

        while True:
            if saved is None:
                passes += 1
                yield Step(point.theta, point.value, point.bound, passes, snapshot=snapshot, forget=forget)
            saved = None
            norm = math.sqrt(dot(point.gradient, point.gradient))
            accuracy = min(0.5, max(self._enough(point), math.sqrt(norm / scale))) if scale else 0.5
            direction, cost = self._direction(point, finer * accuracy, preconditioners)
            before, spare = point.value, self._spare(point.value, point.bound)
            moved = _move(point, direction)
            point = moved or point  # what is left behind gives its memory back before the next one is looked at
            passes += cost + 1
            # A residual that is small where the preconditioner is large may be most of the gradient.
            idle = moved is None or before - point.value <= 1e-3 * self.tol * abs(before)
            finer = 0.1 * finer if idle else 1.0
            if moved is None and (finer < _FINEST or self._by_cholesky(objective)):
                yield Step(point.theta, point.value, point.bound, passes, final=True, forget=forget)
                return
            if moved is None:
                continue
            point = moved.with_level_intercept(spare)
            passes += point is not moved and objective.n_outputs > 1  # for a gradient that the intercepts have changed

    def _spare(self, value: float, bound: float) -> float:
        """What intercepts that are not quite the best may cost: little of the tolerance, or of what a step leaves."""
        open_part = min(value - bound, abs(value)) / max(abs(value), 1e-300)
        return 0.1 * max(self.tol, open_part * open_part) * abs(value)

    def _enough(self, point: Point) -> float:
        """The accuracy of a direction beyond which the tolerance needs nothing: the gap goes with ‖∂J‖².

        Who asks for nearly all digits gets all that the last step can give.
        """
        if self.tol < _EXACT:
            return 0.0
        gap = point.value - point.bound
        if point.objective.n_outputs > 1:  # whose intercepts may have waited, so that the bound says nothing
            gap = min(gap, point.max_decrease)
        return 0.1 * math.sqrt(self.tol * abs(point.value) / max(gap, 1e-300))

    def _direction(self, point: Point, accuracy: float, preconditioners: Preconditioners) -> tuple[Floats, float]:
        """(the Newton direction, the passes it took)."""
        if self._by_cholesky(point.objective):
            direction = -point.gradient
            if solve_positive(point.hessian(self._LEAST), direction):
                return direction, 1
        direction, products = conjugate_gradients(point, accuracy, preconditioners.at(point))
        preconditioners.note(products)
        return direction, products + 1

    def _by_cholesky(self, objective: Objective) -> bool:
        if self.options.linear_solver != "auto":
            return self.options.linear_solver == "cholesky"
        return self.takes_cholesky(objective)

    @staticmethod
    def takes_cholesky(objective: Objective) -> bool:
        """Whether a Hessian and its factor cost less than some 20 products with a vector, of two steps an entry."""
        if objective.n_outputs > 1:
            return False
        d, rows = objective.size, objective.rows
        outer = rows.nnz * (rows.nnz / max(1, rows.n_rows)) / 2
        return d <= MOST_FEATURES and outer + d**3 / 12 <= 40 * rows.nnz and matrix_fits(objective)


class SmoothedNewton(Newton):
    """Minimises J for a loss with kinks and L2, by Newton's method on J with the kinks rounded off.

    The rounded loss is smooth, at most half a width from the loss itself, and its slopes are feasible for the dual of
    the unrounded problem. So every iterate has a certified gap; once rounding is most of it, the width shrinks. Kinks
    are rounded by entropy: with a curvature everywhere, Newton's method follows the shrinking width in two or three
    steps each time, where a parabola at the kink takes many short ones. Rows far from a kink have next to no
    curvature and are left out of the Hessian, which gets cheaper with the width.

    Best for many rows and few features, where dual coordinate descent needs hundreds of passes; cost and memory of an
    iteration as for `Newton` with Cholesky.
    """

    name = "smoothed_newton"
    needs = Needs(loss=("rounded",), omega="l2", nonnegative=False)
    _SHRINK = 0.25  # of the width, when rounding dominates the gap
    _ACCURACY = 0.1  # of a direction by conjugate gradients, finer where a step wins little
    _SLOW = 0.1  # of the tolerance
    _LEAST = 1e-3  # curvature, as a part of the largest, that counts in the Hessian
    _GOOD_START = 1e-3  # relative gap of a start that is kept

    def solve_in_kernel(self, objective: Objective, max_passes: float) -> Step | None:
        """None: the kernel takes losses without kinks."""
        return None

    def _by_cholesky(self, objective: Objective) -> bool:
        # Curvature in few rows, and far more of it in some than in others, is hard for conjugate gradients.
        if objective.n_outputs > 1:
            return False
        if (how := self.options.linear_solver) != "auto":
            return how == "cholesky"
        return objective.size <= MOST_FEATURES and matrix_fits(objective)

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """One Newton step at a time."""
        preconditioners, stuck, accuracy = Preconditioners(), False, self._ACCURACY
        turnover = objective.total_cost * math.log(objective.n_outputs + 1)
        if (saved := snapshot_of(start)) is None:
            point, width, passes = self._begin(objective, start)
        else:
            passes, width, accuracy = saved["numbers"]
            point = Point.restored(objective.with_loss(objective.loss.smoothed(width)), saved["point"])
            preconditioners.restore(saved["preconditioners"])

        def snapshot() -> dict[str, Any]:
            more = {"numbers": [passes, width, accuracy], "preconditioners": preconditioners.snapshot()}
            return {"point": point.snapshot(), **more}

        def forget() -> None:
            point.forget()

        while True:
            exact = point.with_objective(objective)
            bound = conjugate_bound(exact, point.slopes, point.loss_gradient)
            if saved is None:
                passes += 1
                yield Step(point.theta, exact.value, bound, passes, final=stuck, snapshot=snapshot, forget=forget)
            saved = None
            narrow = self._narrowed(width, exact.value / turnover if turnover else math.inf)
            # The bound may be low for other reasons than the rounding, which is at most this.
            if narrow < width and 2 * (point.value - point.bound) < min(exact.value - bound, 2 * width * turnover):
                width = narrow
                point = _smoothed(exact, width)
                passes += 1
                accuracy = self._ACCURACY
            direction, cost = self._direction(point, accuracy, preconditioners)
            passes += cost + 1
            before = point.value
            moved = _move(point, direction)
            # Narrow kinks are stiff, and hide all else from a rough direction.
            if moved is None or before - moved.value < self._SLOW * self.tol * abs(before):
                accuracy = max(_FINEST, 0.1 * accuracy)
            if moved is not None:
                # Always the best: a bound that is low because of the intercept must not excuse the intercept.
                point = moved.with_best_intercept()
            else:
                narrow = self._narrowed(width, exact.value / turnover if turnover else math.inf)
                stuck = narrow == width
                width = narrow
                point = _smoothed(point.with_objective(objective), width)

    def _begin(self, objective: Objective, start: State | None) -> tuple[Point, float, float]:
        """(the first point, how wide kinks are rounded there, passes)."""
        width = objective.natural_width
        point = _smoothed(objective.at(theta_of(start)), width)
        if start is None:
            return point, width, 0.0
        point, width, tried = self._fitting(point.with_objective(objective), width)
        return point, width, 1.0 + tried

    def _narrowed(self, width: float, mean: float) -> float:
        """The next width, but none so narrow that rounding could not matter to the tolerance; `mean` is J a row."""
        return max(self._SHRINK * width, min(width, 0.05 * self.tol * abs(mean)))

    def _fitting(self, start: Point, width: float) -> tuple[Point, float, int]:
        """The start rounded as narrowly as it is good, the width, and the passes it took to find.

        A start that is nearly optimal is certified to be, at the right width. Any other one begins with the given
        width: Newton's method is slow to find the optimum of a narrowly rounded loss from afar.
        """
        point, narrow = _smoothed(start, width), width
        for tried in range(1, 20):
            narrow *= self._SHRINK
            smoothed = _smoothed(start, narrow)
            gap = start.value - conjugate_bound(start, smoothed.slopes, smoothed.loss_gradient)
            if gap <= self._GOOD_START * abs(start.value):
                return smoothed, narrow, tried
        return point, width, tried


def _smoothed(point: Point, width: float) -> Point:
    """The same weights under the smoothed loss, with the best intercept there."""
    o = point.objective
    return point.with_objective(o.with_loss(o.loss.smoothed(width))).with_best_intercept()


def _move(point: Point, direction: Floats) -> Point | None:
    """The point that a line search finds, or None when J cannot be lowered in double precision."""
    slope = dot(point.gradient, direction)
    if not slope < 0:
        return None
    norm = dot(point.gradient, point.gradient)
    line = point.line(direction)
    t = line_search(line, slope, flat=0.3)
    if t:
        return line.move(t)
    # J shows no difference any more; slopes do.
    moved = line.move(1.0) if _levels(line, slope) else None
    return moved if moved is not None and dot(moved.gradient, moved.gradient) <= 0.25 * norm else None


def _levels(line: Line, slope: float) -> bool:
    """Whether a full step makes J level along it, and no higher than rounding may."""
    value, end = line.at(1.0)
    start = line.point.value
    return abs(end) <= 0.5 * abs(slope) and value <= start + _ROUNDING * abs(start)


def conjugate_gradients(
    point: Point, accuracy: float, preconditioner: Preconditioner, most: int = 250
) -> tuple[Floats, int]:
    """(s with ∂²J s ≈ −∂J, steps); stops at a relative residual in the preconditioner's norm."""
    r = -point.gradient
    s, (p, rho) = np.zeros_like(r), preconditioner.start(r)
    stop, steps = accuracy**2 * rho, 0
    while steps < most and rho > stop:
        q = point.hessian_product(p)
        steps += 1
        curvature = dot(p, q)
        if not curvature > 0:  # J is straight along p, as an intercept's is where all losses are
            return (s if steps > 1 else p), steps
        rho, previous = preconditioner.step(rho / curvature, p, q, s, r), rho
        preconditioner.update_direction(rho / previous, r, p)
    return s, steps


def line_search(line: Line, slope: float, sufficient: float = 1e-2, flat: float = np.inf) -> float:
    """A step t that lowers J by at least `sufficient` of what the slope promises; 0 when none can be found.

    The full step is tried first; then the minimum of the parabola through what is known, kept within [0.1, 0.5] of
    the last step. With `flat`, a step at whose end J still rises or falls by more than `flat` of the first slope is
    followed by a few better ones between the best bracket.
    """
    start, t = line.point.value, 1.0
    for _ in range(40):
        value, end = line.at(t)
        if value <= start + sufficient * t * slope:
            return t if abs(end) <= flat * abs(slope) else _flatten(line, (slope, value, end, t), flat)
        if abs(t * slope) <= 1e-15 * abs(start):  # lost in rounding
            return 0.0
        parabola = -slope * t * t / (2 * (value - start - slope * t))
        t = min(max(parabola, 0.1 * t), 0.5 * t)
    return 0.0


def _flatten(line: Line, found: tuple[float, float, float, float], flat: float, most: int = 4) -> float:
    """The best of a few steps by the secant rule on the slope of J, from a step that is good enough."""
    slope, value, end, t = found
    best, low, high = (value, t), (0.0, slope), None
    for _ in range(most):
        low, high = ((t, end), high) if end < 0 else (low, (t, end))
        if high is None:
            t *= 2
        else:
            part = -low[1] / (high[1] - low[1])
            t = low[0] + (high[0] - low[0]) * min(max(part, 0.1), 0.9)
        value, end = line.at(t)
        best = min(best, (value, t))
        if abs(end) <= flat * abs(slope):
            break
    return best[1]
