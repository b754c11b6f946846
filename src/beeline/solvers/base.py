"""The solver's loop, written once: clock, tolerance, callback, Ctrl-C and the result's words.

A solver is a generator of steps. After each one the loop here looks at the certified gap, the pass limit and the
callback, and decides whether to go on. `tol` means the same for every solver: the relative distance from the optimum,
(J − J⁻)/|J| with a proven lower bound J⁻.
"""

from __future__ import annotations

import copy
import math
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple, Self

import numpy as np

from beeline._lazy import cached_property
from beeline._sentences import Argument, Sentence
from beeline._types import Floats
from beeline.engines.verbs import values
from beeline.exceptions import ConvergenceWarning, ParameterError
from beeline.losses import LOSSES, VectorLoss
from beeline.objective import Objective, Point
from beeline.objective.certificates import rounding_of
from beeline.regularizers import fault_between

__all__ = [
    "ROUNDING_GAP",
    "Callback",
    "Result",
    "SeededSolver",
    "Solver",
    "Start",
    "Status",
    "Step",
    "TracePoint",
    "distance_in_words",
    "knows_no_bounds",
    "needs_l2",
    "relative_gap",
    "theta_of",
]
# What is so much smaller than J without a model is lost in rounding.
_NOTHING = 1e-12
# Objectives that differ by less, relatively, are the same but for rounding.
_ALIKE = 1e-15
# Below these, a kernel that takes all iterations at once may have nothing to show for them.
_FEW_PASSES, _FEW_SECONDS = 20.0, 1.0
# A gap that rounding alone may leave; who asks for less, and gets this, has got all there is.
ROUNDING_GAP = 1e-8


class Status(Enum):
    """Why a solver stopped."""

    CONVERGED = "stopped"
    UNPROVEN = "stopped without a proof"
    LIMIT = "reached its pass limit"
    TIME = "reached its time limit"
    STALLED = "can make no more progress in double precision"
    FAILED = "failed"
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
    iterations
        For how many iterations it stands: for one, but where a kernel took all of them together.
    point
        The point itself, where its scores were computed from θ: then J there need not be evaluated anew.
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
    iterations: int = 1
    point: Point | None = None

    @property
    def gap(self) -> float:
        """(J − J⁻)/|J|: at most this far, relatively, from the optimum."""
        return relative_gap(self.objective, self.bound, self.scale)


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


def relative_gap(objective: float, bound: float, scale: float) -> float:
    """(J − J⁻)/|J|, where a J below the scale is as good as zero; never negative, ∞ where J or a bound is not known."""
    if math.isnan(objective):
        return math.inf
    if objective <= bound:
        return 0.0
    size = max(abs(objective), scale)
    return (objective - bound) / size if size else math.inf


@dataclass(frozen=True)
class Result:
    """What a solver found.

    Attributes
    ----------
    theta, objective
        The best point, and J there, evaluated anew; NaN where that cannot be done.
    bound
        A proven lower bound of the optimum; −∞ when there is none.
    status, iterations, passes, seconds
        Why it stopped and what it took.
    solver
        The solver's name.
    scale
        Objectives below this are as good as zero.
    null
        J of the best intercepts alone.
    trace
        A `TracePoint` (passes, seconds, objective, gap) after every iteration; `beeline.plot_convergence` draws it.
    dual
        The last dual variables of a solver that has them, one a row: with θ, they make a `Start`.
    facts
        What else the solver has to say after its last iteration, by name.
    error
        What it failed by, where it did: θ is then the best intercept alone.
    doubt
        What is wrong with the loss, or Ω, where training got to, so that no bound holds, and what to do; None: nothing.
    """

    theta: Floats
    objective: float
    bound: float
    status: Status
    iterations: int
    passes: float
    seconds: float
    solver: str
    scale: float = 0.0
    null: float = math.inf
    trace: list[TracePoint] = field(repr=False, default_factory=list)
    dual: Floats | None = field(repr=False, default=None)
    facts: dict[str, float] = field(default_factory=dict)
    error: str | None = None
    doubt: str | None = None

    @cached_property
    def gap(self) -> float:
        """The relative distance from the optimum that the point is certified to have at most."""
        return relative_gap(self.objective, self.bound, self.scale)

    @property
    def start(self) -> Start:
        """Where a run on a similar problem may begin."""
        return Start(self.theta, self.dual)

    @property
    def sentence(self) -> str:
        """What happened, in words."""
        passes = f"{self.passes:.0f} passes" if round(self.passes) != 1 else "1 pass"
        return f"{self.status.value} after {passes}, {distance_in_words(self.gap)}"


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


def distance_in_words(gap: float | None) -> str:
    """What a gap proves: (J − J⁻)/J = g means that J is at most g/(1 − g) of J⁻ above it; rounded up, never down."""
    if gap is None or not gap < 1:
        return "an unknown distance above the optimum"
    percent = 100 * gap / (1 - gap)
    if percent > 0:
        unit = 10.0 ** min(0, math.floor(math.log10(max(percent, 1e-12))) - 1)
        percent = math.ceil(percent / unit) * unit
    return f"at most {percent:.{2 if percent < 99.5 else 6}g} % above the optimum"


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

    Attributes
    ----------
    time_limit
        Stop after the iteration in which so many seconds are over, as `within` says; None: no limit.
    """

    name: str
    takes_dual = False

    def __init__(self, tol: float = 1e-4, max_passes: float = 1000) -> None:
        if not tol > 0:
            raise ParameterError(Argument("tol"), f" must be positive, not {tol}")
        if not max_passes > 0:
            raise ParameterError(Argument("max_passes"), f" must be positive, not {max_passes}")
        self.tol, self.max_passes = tol, max_passes
        self.time_limit: float | None = None

    @classmethod
    def create(cls, tol: float, max_passes: float, seed: int) -> Solver:
        """A solver with these settings; the seed matters only to one that takes rows in random order."""
        return cls(tol, max_passes)

    def within(self, seconds: float | None) -> Self:
        """The same solver, with so much time."""
        if seconds == self.time_limit:
            return self
        limited = copy.copy(self)
        limited.time_limit = seconds
        return limited

    @abstractmethod
    def refusal(self, objective: Objective) -> str | None:
        """Why this solver cannot take the objective, or None."""

    def head_start(self, objective: Objective, max_passes: float) -> Step | None:
        """All iterations in one step, for a problem so small that a kernel takes them before Python takes one; or None.

        It may take about so many passes, and is not asked for where there is a start, a limit that may come in the
        middle of it, or a callback, which wants to see how training goes.
        """
        return None

    @abstractmethod
    def steps(self, objective: Objective, start: Floats | None) -> Iterator[Step]:
        """Iterate from the start (None: zero), yielding after every iteration."""

    def solve(
        self, objective: Objective, start: Floats | Start | None = None, callback: Callback | None = None
    ) -> Result:
        """Minimise; warns with a sentence when it ends before the tolerance, returns the best so far on Ctrl-C."""
        result = self.run(objective, start, callback)
        if concern := self.concern(result):
            warnings.warn(concern, ConvergenceWarning, stacklevel=2)
        return result

    def concern(self, result: Result) -> str | None:
        """What to know, and to change, where a result missed the tolerance; None where it did not."""
        if result.gap <= max(self.tol, ROUNDING_GAP):
            return None
        if result.doubt:
            return f"{result.solver} {result.sentence}, since {result.doubt}"
        if result.status in (Status.LIMIT, Status.TIME):
            name = "max_passes" if result.status is Status.LIMIT else "time_limit"
            return Sentence(
                f"{result.solver} {result.sentence}; raise ",
                Argument(name),
                f" (now {getattr(self, name):g}) or ",
                Argument("tol"),
                f" (now {self.tol:g}), or scale the features",
            )
        if result.status is Status.STALLED:
            return f"{result.solver} {result.sentence}; scale the features, or take another solver, loss or C"
        return None

    def run(
        self,
        objective: Objective,
        start: Floats | Start | None = None,
        callback: Callback | None = None,
        *,
        watched: bool | None = None,
    ) -> Result:
        """Minimise, without a warning; `watched` says whether the callback wants to see every iteration (None: yes)."""
        if reason := self.refusal(objective):
            raise ParameterError(f"the solver {self.name!r} {reason}", parameter="solver")
        watched = callback is not None if watched is None else watched
        return _Run(self, objective, callback).through(self._all_steps(objective, start, watched))

    def _all_steps(self, objective: Objective, start: Floats | Start | None, watched: bool) -> Iterator[Step]:
        """The head start, and from there on the steps."""
        passes = 0.0
        limited = self.max_passes < _FEW_PASSES or (self.time_limit is not None and self.time_limit < _FEW_SECONDS)
        free = start is None and not watched and not limited
        if free and (first := self.head_start(objective, self.max_passes)) is not None:
            yield first
            start, passes = Start(first.theta, first.dual() if first.dual else None), first.passes
        begin: Floats | None = start if self.takes_dual else theta_of(start)  # type: ignore[assignment]
        for step in self.steps(objective, begin):
            yield replace(step, passes=passes + step.passes) if passes else step


class _Run:
    """One run of a solver, as the loop sees it: the best point, the best bound, and whether to go on.

    What a solver says is not taken at its word. J of a point that would end the run is evaluated anew from its weights.
    A bound that is no number says nothing, and one that lies above a J that was found is false: then none is believed
    that was given so far. No model at all is better than the first ones of a dual method can be.
    """

    def __init__(self, solver: Solver, objective: Objective, callback: Callback | None) -> None:
        self.solver, self.objective, self.callback = solver, objective, callback
        self.clock = time.perf_counter()
        self.null = objective.null
        self.scale = _NOTHING * self.null.size
        self.last: Step | None = None
        self.theta, self.value = self.null.theta, math.inf  # of the best point
        self.point: Point | None = None
        self.bound = 0.0 if never_negative(objective) else -math.inf
        self.least = self.bound
        self.lowest = sys.float_info.max
        self.verified: Floats | None = None  # the θ whose J was evaluated anew
        self.trace: list[TracePoint] = []
        self.iterations = 0

    def through(self, steps: Iterator[Step]) -> Result:
        """All steps, up to the end."""
        status = Status.STALLED
        try:
            for step in steps:
                if (verdict := self._take(step)) is not None:
                    status = verdict
                    break
        except KeyboardInterrupt:
            if self.last is None:
                raise
            status = Status.INTERRUPTED
        if self.last is None:
            raise RuntimeError(f"the solver {self.solver.name} took no step")
        self._verify()
        doubt = self._doubt()
        if doubt and status is Status.CONVERGED:
            status = Status.UNPROVEN
        last = self.last
        return Result(
            self.theta,
            self.value,
            self.bound,
            status,
            self.iterations,
            last.passes,
            time.perf_counter() - self.clock,
            last.solver or self.solver.name,
            self.scale,
            self.null.value,
            self.trace,
            last.dual() if last.dual else None,
            last.facts,
            doubt=doubt,
        )

    @property
    def gap(self) -> float:
        """The certified relative distance from the optimum."""
        return relative_gap(self.value, self.bound, self.scale)

    def _take(self, step: Step) -> Status | None:
        """Take note of a step; why to stop after it, or None."""
        self.last = step
        self.iterations += step.iterations
        # Of points that J cannot tell apart, the later one: slopes led there.
        if math.isfinite(step.objective) and step.objective <= self.lowest + _ALIKE * abs(self.lowest):
            self.theta, self.value, self.point = step.theta, step.objective, step.point
            self.lowest = min(self.lowest, step.objective)
        if not self.value <= self.null.value:
            self._give_up_point()
        if math.isfinite(step.bound):
            self.bound = max(self.bound, step.bound)
        seconds = time.perf_counter() - self.clock
        stop = self.callback(self._best(seconds)) if self.callback else None
        if self.gap <= self.solver.tol or step.final:
            self._verify()
        self.trace.append(TracePoint(step.passes, seconds, self.value, self.gap))
        return self._verdict(step, stop, seconds)

    def _best(self, seconds: float) -> Step:
        """The best point with the best bound, as a callback sees them."""
        assert self.last is not None
        return replace(
            self.last, theta=self.theta, objective=self.value, bound=self.bound, seconds=seconds, scale=self.scale
        )

    def _give_up_point(self) -> None:
        self.theta, self.value, self.point = self.null.theta, self.null.value, None

    def _verify(self) -> None:
        """Evaluate J anew at the best point, and look whether the bound can be true."""
        point = None
        if self.verified is not self.theta:
            self.point = point = self._evaluated()
            self.theta, self.value = point.theta, point.value
            if not self.value <= self.null.value:
                self._give_up_point()
            self.verified = self.theta
        if self.bound > self.value and self.bound > self.value + self._noise(point):
            self.bound = self.least

    def _noise(self, point: Point | None) -> float:
        """How far J at the best θ may be off by rounding; `point` is what was just evaluated there, if anything was."""
        if self.theta is self.null.theta:
            return self.scale
        return rounding_of(point if point is not None else self.objective.at(self.theta))

    def _evaluated(self) -> Point:
        """J at the best θ, from scores that were computed from it: now, or when the solver asked for them."""
        point, theta = self.point, _centred(self.objective, self.theta)
        if point is not None and point.is_exact and point.objective is self.objective and point.theta is theta:
            return point
        if point is not None:
            point.forget()  # what it knows of every row, while another point is made; few runs go on from it
        return self.objective.at(theta).knowing_loss()

    def _doubt(self) -> str | None:
        """What is wrong with a loss or Ω of one's own where training got to; then no bound was one, nor any gap."""
        o = self.objective
        doubt = self._doubt_of_loss() if type(o.loss) not in LOSSES.values() else None
        if doubt is None and not o.regularizer.separable:
            doubt = self._doubt_of_omega()
        if doubt is not None:
            self.bound = -math.inf
            self.trace = [entry._replace(gap=math.inf) for entry in self.trace]
        return doubt

    def _doubt_of_loss(self) -> str | None:
        o, point = self.objective, self.point or self.objective.at_null()
        _, start = o.split(self.null.theta)
        loss = o.loss_along(self.null.theta, point.theta - self.null.theta)
        (faults,) = o.rows.sum(values.faults, point.z, o.labels, o.costs, loss=loss, start=start).value
        advice = "let the loss be convex there too, or keep scores smaller (a smaller C, scaled labels)"
        return f"{o.loss!r} {faults[0]}; {advice}" if faults else None

    def _doubt_of_omega(self) -> str | None:
        o = self.objective
        weights, _ = o.split(self.theta)
        for w in weights.reshape(o.rows.n_features, -1).T:
            if fault := fault_between(o.regularizer, np.zeros(len(w)), np.ascontiguousarray(w)):
                return f"{o.regularizer!r} {fault}"
        return None

    def _verdict(self, step: Step, stop: bool | None, seconds: float) -> Status | None:
        if self.gap <= self.solver.tol:
            return Status.CONVERGED
        if step.final:
            return Status.STALLED
        if stop:
            return Status.CALLBACK
        if step.passes >= self.solver.max_passes:
            return Status.LIMIT
        limit = self.solver.time_limit
        return Status.TIME if limit is not None and seconds >= limit else None


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
            raise ParameterError(Argument("seed"), f" must not be negative, not {seed}")
        self.seed = seed

    @classmethod
    def create(cls, tol: float, max_passes: float, seed: int) -> SeededSolver:
        """A solver with these settings."""
        return cls(tol, max_passes, seed)


def _centred(o: Objective, theta: Floats) -> Floats:
    """θ with the mean over the outputs taken off every feature's weights, where only their differences count.

    That is what the optimum is like: without it, L2 is smaller and all losses are the same.
    """
    if not (isinstance(o.loss, VectorLoss) and o.loss.shift_free and o.penalty.plain and o.regularizer.separable):
        return theta
    columns = theta.reshape(-1, o.n_outputs)
    centred: Floats = columns - columns.mean(axis=1, keepdims=True)
    return centred.ravel()


def never_negative(objective: Objective) -> bool:
    """Whether the loss is one of the library's, none of which is ever negative; one of one's own is believed less."""
    return type(objective.loss) in LOSSES.values()


def needs_l2(objective: Objective) -> str | None:
    """Why a solver that needs L2 and nothing else in Ω cannot take the objective, or None."""
    if objective.regularizer.l1 or not objective.regularizer.l2 or not objective.regularizer.separable:
        return f"needs L2 regularization, not {objective.regularizer!r}"
    return knows_no_bounds(objective)


def knows_no_bounds(objective: Objective) -> str | None:
    """Why a solver whose weights may have any sign cannot take the objective, or None."""
    if objective.regularizer.nonnegative:
        return f"cannot keep weights at zero or above, as {objective.regularizer!r} asks"
    return None
