"""The solver's loop, written once: clock, tolerance, callback, Ctrl-C and the result's words.

A solver is a generator of steps. After each one the loop here looks at the certified gap, the pass limit and the
callback, and decides whether to go on. `tol` means the same for every solver: the relative distance from the optimum,
(J − J⁻)/|J| with a proven lower bound J⁻.
"""

from __future__ import annotations

import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from beeline._types import Floats
from beeline.exceptions import ConvergenceWarning, ParameterError
from beeline.kernels import dot
from beeline.losses import LOSSES
from beeline.objective import Objective

__all__ = [
    "Callback",
    "Result",
    "SeededSolver",
    "Solver",
    "Start",
    "Status",
    "Step",
    "TracePoint",
    "knows_no_bounds",
    "needs_l2",
    "size_without_model",
    "theta_of",
]
# What is so much smaller than J without a model is lost in rounding.
_NOTHING = 1e-12


class Status(Enum):
    """Why a solver stopped."""

    CONVERGED = "stopped"
    LIMIT = "reached its pass limit"
    STALLED = "can make no more progress in double precision"
    INTERRUPTED = "was interrupted"
    CALLBACK = "was stopped by the callback"


@dataclass(frozen=True)
class Step:
    """Where a solver is after an iteration.

    Attributes
    ----------
    theta, objective
        The point (weights, then the intercept) and J there.
    bound
        A proven lower bound of the optimum, −∞ when there is none yet.
    passes
        Passes over the data so far; a shrunken pass counts as its fraction.
    seconds
        Time since the start.
    final
        The solver can do no better.
    solver
        Who took the step, where several work together.
    scale
        Objectives below this are as good as zero.
    dual
        Gives the dual variables of a solver that has them.
    facts
        What else the solver has to say, by name.
    """

    theta: Floats
    objective: float
    bound: float
    passes: float
    seconds: float = 0.0
    final: bool = False
    solver: str | None = None
    scale: float = 0.0
    dual: Callable[[], Floats] | None = None
    facts: dict[str, float] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """(J − J⁻)/|J|: at most this far, relatively, from the optimum."""
        if self.objective == self.bound:
            return 0.0
        size = max(abs(self.objective), self.scale)
        return (self.objective - self.bound) / size if size else math.inf


class TracePoint(NamedTuple):
    """How far a solver was after an iteration: a row of a trace.

    Attributes
    ----------
    passes, seconds
        Passes over the data and time since the start.
    objective, gap
        The least J so far, and the relative distance from the optimum that is certified; ∞ where no bound is known yet.
    """

    passes: float
    seconds: float
    objective: float
    gap: float


@dataclass(frozen=True)
class Result:
    """What a solver found.

    Attributes
    ----------
    theta, objective, gap
        The best point, J there, and the relative distance from the optimum that it is certified to have.
    status, iterations, passes, seconds
        Why it stopped and what it took.
    solver
        The solver's name.
    trace
        A `TracePoint` (passes, seconds, objective, gap) after every iteration; `beeline.plot_convergence` draws it.
    dual
        The last dual variables of a solver that has them, one a row: with θ, they make a `Start`.
    facts
        What else the solver has to say after its last iteration, by name.
    """

    theta: Floats
    objective: float
    gap: float
    status: Status
    iterations: int
    passes: float
    seconds: float
    solver: str
    trace: list[TracePoint] = field(repr=False, default_factory=list)
    dual: Floats | None = field(repr=False, default=None)
    facts: dict[str, float] = field(default_factory=dict)

    @property
    def start(self) -> Start:
        """Where a run on a similar problem may begin."""
        return Start(self.theta, self.dual)

    @property
    def sentence(self) -> str:
        """What happened, in words."""
        distance = f"at most {_percent(self.gap)} above the optimum" if math.isfinite(self.gap) else "no bound is known"
        passes = f"{self.passes:.0f} passes" if round(self.passes) != 1 else "1 pass"
        return f"{self.status.value} after {passes}, {distance}"


@dataclass(frozen=True, eq=False)
class Start:
    """Where a solver begins: a primal point, and dual variables for a solver that can use them.

    With C inside the strength of Ω, J/C = Ω(w)/C + Σ c_i l_i, both starts of the warm-start paper are copies: w̄ = w
    (13), and ᾱ = Δα (14), which divided by C is the same a.
    """

    theta: Floats
    dual: Floats | None = None


def theta_of(start: Floats | Start | None) -> Floats | None:
    """The primal point of a start."""
    return start.theta if isinstance(start, Start) else start


def _percent(gap: float) -> str:
    return f"{100 * max(gap, 0.0):.2g} %"


Callback = Callable[[Step], bool | None]
"""Is called after every iteration; returning True stops the solver."""


class Solver(ABC):
    """Minimises an objective.

    Parameters
    ----------
    tol
        Stop when the certified relative distance from the optimum is at most this.
    max_passes
        Stop after so many passes over the data.
    """

    name: str
    takes_dual = False

    def __init__(self, tol: float = 1e-4, max_passes: float = 1000) -> None:
        if not tol > 0:
            raise ParameterError(f"tol must be positive, not {tol}")
        if not max_passes > 0:
            raise ParameterError(f"max_passes must be positive, not {max_passes}")
        self.tol, self.max_passes = tol, max_passes

    @classmethod
    def create(cls, tol: float, max_passes: float, seed: int) -> Solver:
        """A solver with these settings; the seed matters only to one that takes rows in random order."""
        return cls(tol, max_passes)

    @abstractmethod
    def refusal(self, objective: Objective) -> str | None:
        """Why this solver cannot take the objective, or None."""

    @abstractmethod
    def steps(self, objective: Objective, start: Floats | None) -> Iterator[Step]:
        """Iterate from the start (None: zero), yielding after every iteration."""

    def solve(
        self, objective: Objective, start: Floats | Start | None = None, callback: Callback | None = None
    ) -> Result:
        """Minimise; warns with a sentence when the pass limit comes first, returns the best so far on Ctrl-C."""
        result = self.run(objective, start, callback)
        self.warn(result, stacklevel=3)
        return result

    def warn(self, result: Result, stacklevel: int = 2) -> None:
        """Say what to change, when the pass limit came before the tolerance."""
        if result.status is Status.LIMIT:
            advice = f"raise max_passes (now {self.max_passes:g}) or tol (now {self.tol:g}), or scale the features"
            warnings.warn(f"{result.solver} {result.sentence}; {advice}", ConvergenceWarning, stacklevel=stacklevel)

    def run(
        self, objective: Objective, start: Floats | Start | None = None, callback: Callback | None = None
    ) -> Result:
        """Minimise, without a warning."""
        if reason := self.refusal(objective):
            raise ParameterError(f"the solver {self.name!r} {reason}")
        clock = time.perf_counter()
        best: Step | None = None
        dual: Callable[[], Floats] | None = None
        bound, status, trace = -math.inf, Status.LIMIT, []
        at_zero = objective.at().value
        scale = _NOTHING * size_without_model(objective)
        nowhere_negative = type(objective.loss) in LOSSES.values()
        try:
            for step in self.steps(objective, start if self.takes_dual else theta_of(start)):  # type: ignore[arg-type]
                dual = step.dual
                bound = max(bound, step.bound)
                seconds = time.perf_counter() - clock
                if best is None or step.objective <= best.objective:
                    best = step
                if not best.objective <= at_zero:  # no model at all is better than a dual method's first ones can be
                    best = replace(best, theta=np.zeros(objective.size), objective=at_zero)
                if nowhere_negative and best.objective == 0:
                    bound = 0.0
                best = replace(
                    step, theta=best.theta, objective=best.objective, bound=bound, seconds=seconds, scale=scale
                )
                trace.append(TracePoint(step.passes, seconds, best.objective, best.gap))
                if (verdict := self._verdict(best, callback)) is not None:
                    status = verdict
                    break
        except KeyboardInterrupt:
            if best is None:
                raise
            status = Status.INTERRUPTED
        if best is None:
            raise RuntimeError(f"the solver {self.name} took no step")
        seconds = time.perf_counter() - clock
        name = best.solver or self.name
        found = best.theta, best.objective, best.gap, status, len(trace), best.passes, seconds, name, trace
        return Result(*found, dual() if dual else None, best.facts)

    def _verdict(self, step: Step, callback: Callback | None) -> Status | None:
        stop = callback(step) if callback else None
        if step.gap <= self.tol:
            return Status.CONVERGED
        if step.final:
            return Status.STALLED
        if stop:
            return Status.CALLBACK
        return Status.LIMIT if step.passes >= self.max_passes else None


class SeededSolver(Solver):
    """A solver that takes rows in random order.

    Parameters
    ----------
    seed
        The order of the rows.
    """

    def __init__(self, tol: float = 1e-4, max_passes: float = 1000, seed: int = 0) -> None:
        super().__init__(tol, max_passes)
        if seed < 0:
            raise ParameterError(f"seed must not be negative, not {seed}")
        self.seed = seed

    @classmethod
    def create(cls, tol: float, max_passes: float, seed: int) -> SeededSolver:
        """A solver with these settings."""
        return cls(tol, max_passes, seed)


def size_without_model(objective: Objective) -> float:
    """How large J is without a model: at zero weights.

    Under a logarithmic link, that J says nothing: rates of 1 may be as far from the labels as numbers go. There, all
    rows have their mean instead, at which the sum of such losses is least.
    """
    costs, at_zero = float(objective.costs.sum()), objective.at().value
    if objective.loss.link != "exp" or not costs > 0:
        return abs(at_zero)
    mean = dot(objective.costs, objective.labels) / costs
    if not mean > 0:
        return abs(at_zero)
    z = np.full(len(objective.labels), math.log(mean))
    return max(objective.loss.sum(z, objective.labels, objective.costs), 1e-6 * costs)


def needs_l2(objective: Objective) -> str | None:
    """Why a solver that needs L2 and nothing else in Ω cannot take the objective, or None."""
    if objective.regularizer.l1 or not objective.regularizer.l2:
        return f"needs L2 regularization, not {objective.regularizer!r}"
    return knows_no_bounds(objective)


def knows_no_bounds(objective: Objective) -> str | None:
    """Why a solver whose weights may have any sign cannot take the objective, or None."""
    if objective.regularizer.nonnegative:
        return f"cannot keep weights at zero or above, as {objective.regularizer!r} asks"
    return None
