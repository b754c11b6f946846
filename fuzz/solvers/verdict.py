"""One problem from beginning to end: what was found, and what is wrong with it."""

from __future__ import annotations

import sys
import time
import traceback
import warnings
from dataclasses import dataclass

import numpy as np

from beeline.exceptions import BeelineError
from beeline.objective.certificates import rounding_of
from beeline.solvers.auto import SOLVERS
from beeline.solvers.base import ROUNDING_GAP, Result, Status

from .problems import Problem, make_problem
from .reference import Reference

__all__ = ["Verdict", "judge"]

_DIGITS = 1e-9  # relative, to which a reference is trusted
_LOST = 1e-15  # of J without a model: what rounding of scores at kinks may leave


@dataclass(frozen=True)
class Verdict:
    """What became of a problem.

    Attributes
    ----------
    faults
        What is wrong, one sentence each; empty where nothing is.
    status
        How the solver ended.
    """

    seed: int
    words: str
    status: str
    faults: tuple[str, ...]
    seconds: float
    gap: float


def judge(seed: int) -> Verdict:
    """Solve the problem of that number, and look for an optimum that proves the solver wrong."""
    problem = make_problem(seed)
    clock = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = problem.solver.run(problem.objective)
    except BeelineError as error:
        return _verdict(problem, "refused", (f"refused after the look: {error}",), clock, np.inf)
    except Exception as error:  # whatever it is: it must not happen
        where = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        return _verdict(problem, "raised", (fault,), clock, np.inf)
    seconds = time.perf_counter() - clock
    faults = tuple(_faults(problem, result))
    return Verdict(seed, problem.words, result.status.name.lower(), faults, seconds, result.gap)


def _verdict(problem: Problem, status: str, faults: tuple[str, ...], clock: float, gap: float) -> Verdict:
    return Verdict(problem.seed, problem.words, status, faults, time.perf_counter() - clock, float(gap))


def _faults(problem: Problem, result: Result) -> list[str]:
    o, faults = problem.objective, []
    reference = Reference(o, problem.matrix, problem.starts)
    point = o.at(result.theta)
    noise = rounding_of(point) + _DIGITS * max(abs(result.objective), result.scale) + _LOST * o.null.size
    noise += sys.float_info.min
    own = reference.value(result.theta)
    if not abs(own - result.objective) <= noise:
        faults.append(f"J is {own:.10g} at the weights, and {result.objective:.10g} is said")
    starts = [result.theta, o.null.theta] if problem.seed % 4 == 0 else [result.theta]
    lowest = reference.lowest(starts, [o.null.theta, *(_by_another(problem) if problem.seed % 4 == 1 else [])])
    if result.bound > lowest + noise:
        faults.append(f"the bound {result.bound:.10g} lies above J = {lowest:.10g}; gap {result.gap:.3g}")
    if result.status is Status.CONVERGED and result.gap > problem.solver.tol:
        faults.append(f"converged with a gap of {result.gap:.3g}")
    if result.status is Status.CONVERGED and own - lowest > problem.solver.tol * max(own, result.scale) + 2 * noise:
        faults.append(f"converged at {own:.10g}, {(own - lowest) / own:.3g} above {lowest:.10g}")
    missed = result.status is not Status.CONVERGED and result.gap > max(problem.solver.tol, ROUNDING_GAP)
    if missed and problem.solver.concern(result) is None:
        faults.append(f"{result.status.name.lower()} with a gap of {result.gap:.3g} and no word about it")
    return faults


def _by_another(problem: Problem) -> list[np.ndarray]:
    """Where another solver ends that takes the problem: a better point than SciPy finds is as good a proof."""
    takes = [kind(1e-6, 100, 1) for kind in SOLVERS.values() if kind.name != problem.solver.name]
    takes = [solver for solver in takes if solver.refusal(problem.objective) is None]
    if not takes:
        return []
    solver = takes[problem.seed % len(takes)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [solver.run(problem.objective).theta]
    except Exception:  # it is judged where it is the problem's own solver
        return []
