"""Problems so small that a kernel takes all steps of Newton's method in one call.

Python needs a quarter of a millisecond for a step, more than all of them take where there are few rows and features.
What the kernel finds is likely to be good enough. Whether it is, the certificate says, as for every step; where it is
not, the solver goes on from there.
"""

from __future__ import annotations

from beeline.kernels import small_newton
from beeline.objective import Objective
from beeline.solvers.base import Step

__all__ = ["is_small", "small_newton_steps"]

_FEW_WEIGHTS, _LITTLE_WORK = 200, 2**21  # multiplications for a Hessian, which take less time than Python's step
_MOST_STEPS = 1 << 30
_PASSES_OF_STEP = 3  # for the gradient, the Hessian and the scores


def is_small(objective: Objective) -> bool:
    """Whether all steps together, by one thread, take little time; only compiled losses have such steps."""
    o = objective
    if not o.rows.in_process or o.rows.n_shards > 1 or not o.loss.compiled or not 0 < o.size <= _FEW_WEIGHTS:
        return False
    return o.size * o.size * o.n_outputs * o.rows.n_rows <= _LITTLE_WORK


def small_newton_steps(objective: Objective, tol: float, max_passes: float) -> Step:
    """Steps of Newton's method to a gap that the kernel takes for small enough."""
    o, omega, theta = objective, objective.regularizer, objective.null.theta.copy()
    steps = small_newton(
        o.rows.local().arrays,
        o.rows.gather_local(o.labels),
        o.rows.gather_local(o.costs),
        str(o.loss.compiled),
        o.loss.parameters,
        (o.strength * omega.l1, o.strength * omega.l2, o.rows.n_features if omega.nonnegative else 0),
        o.intercept,
        theta,
        tol,
        int(min(max_passes / _PASSES_OF_STEP, _MOST_STEPS)),
    )
    point = o.at(theta)
    passes = 1.0 + _PASSES_OF_STEP * steps
    return Step(point.theta, point.value, point.bound, passes, point=point, iterations=steps + 1)
