"""Newton's method with line search: Cholesky when there are few features, conjugate gradients otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from beeline._types import Floats
from beeline.objective import Line, Objective, Point
from beeline.solvers.base import Solver, Step

__all__ = ["Newton"]


class Newton(Solver):
    """Minimises a smooth J with L2 regularization by Newton's method.

    Each iteration solves ∂²J(θ) s = −∂J(θ) and searches along s for a point with J sufficiently lower; the scores of all
    rows move with the step, so that the search costs no pass over the data.

    The system is solved by Cholesky when forming the Hessian is cheaper than the products that conjugate gradients
    would take, otherwise by conjugate gradients with the diagonal of the Hessian as preconditioner, to the accuracy
    ‖r‖ ≤ η‖∂J‖ with η = min(½, √(‖∂J‖/‖∂J(0)‖)): superlinear convergence.

    Cost: one pass for the gradient, one for the scores of the step, and one a conjugate gradient (or one of nnz·(nonzeros a row)
    steps for the Hessian). Memory: a few vectors of rows and of features; d² numbers with Cholesky.
    """

    name = "newton"

    def __init__(self, tol: float = 1e-4, max_passes: float = 1000, linear_solver: str = "auto") -> None:
        super().__init__(tol, max_passes)
        self.linear_solver = linear_solver

    def refusal(self, objective: Objective) -> str | None:
        """Needs a curvature and a strongly convex, smooth regularizer."""
        if not objective.loss.has_curvature:
            return f"needs a loss with a curvature, which {objective.loss!r} has not; DualCD takes it"
        if objective.regularizer.l1 or not objective.regularizer.l2:
            return f"needs L2 regularization, not {objective.regularizer!r}; L1CD takes it"
        return None

    def steps(self, objective: Objective, start: Floats | None) -> Iterator[Step]:
        """One Newton step at a time."""
        point = objective.at(start)
        passes = float(start is not None)
        scale = float(np.linalg.norm(objective.at().gradient)) if start is not None else None
        while True:
            gradient = point.gradient
            passes += 1
            norm = float(np.linalg.norm(gradient))
            scale = scale or norm
            yield Step(point.theta, point.value, point.bound, passes, final=norm == 0)
            direction, cost = self._direction(point, min(0.5, np.sqrt(norm / scale)) if scale else 0.5)
            line = point.line(direction)
            t = search(line, float(gradient @ direction))
            passes += cost + 1
            if t == 0:
                yield Step(point.theta, point.value, point.bound, passes, final=True)
                return
            point = line.move(t)

    def _direction(self, point: Point, accuracy: float) -> tuple[Floats, float]:
        """(the Newton direction, the passes it took)."""
        if self._by_cholesky(point.objective):
            from scipy.linalg import cho_factor, cho_solve

            factor = cho_factor(point.hessian(), lower=True, overwrite_a=True, check_finite=False)
            return -cho_solve(factor, point.gradient, check_finite=False), 1
        return conjugate_gradients(point, accuracy)

    def _by_cholesky(self, objective: Objective) -> bool:
        if self.linear_solver != "auto":
            return self.linear_solver == "cholesky"
        d, data = objective.size, objective.data
        # One outer product a row against some 20 products of the Hessian with a vector.
        return d <= 1000 and d**3 / 3 + data.nnz * (data.nnz / max(1, data.n_rows)) / 2 <= 20 * 4 * data.nnz


def conjugate_gradients(point: Point, accuracy: float, most: int = 200) -> tuple[Floats, float]:
    """Solve ∂²J s = −∂J to a relative residual, preconditioned by the regularizer's part of the diagonal."""
    gradient = point.gradient
    s, r = np.zeros_like(gradient), -gradient
    p, rr = r.copy(), float(gradient @ gradient)
    stop = accuracy**2 * rr
    for step in range(1, most + 1):
        q = point.hessian_product(p)
        alpha = rr / float(p @ q)
        s += alpha * p
        r -= alpha * q
        rr, previous = float(r @ r), rr
        if rr <= stop:
            break
        p = r + (rr / previous) * p
    return s, step


def search(line: Line, slope: float, sufficient: float = 1e-2) -> float:
    """A step t that lowers J by at least `sufficient` of what the slope promises; 0 when none can be found.

    The full step is tried first; then the minimum of the parabola through what is known, kept within [0.1, 0.5] of
    the last step.
    """
    start, t = line.point.value, 1.0
    for _ in range(40):
        value, _ = line.at(t)
        if value <= start + sufficient * t * slope:
            return t
        # The value may be lost in rounding close to the optimum.
        if abs(t * slope) <= 1e-15 * abs(start):
            return 0.0
        parabola = -slope * t * t / (2 * (value - start - slope * t))
        t = min(max(parabola, 0.1 * t), 0.5 * t)
    return 0.0
