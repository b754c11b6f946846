"""The solver's loop, written once: clock, tolerance, callback, Ctrl-C and the result's words.

A solver is a generator of steps. After each one the loop here looks at the certified gap, the pass limit and the
callback, and decides whether to go on. `tol` means the same for every solver: the relative distance from the optimum,
(J − J⁻)/|J| with a proven lower bound J⁻.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from beeline._sentences import Argument, Sentence
from beeline._types import Floats
from beeline.engines.verbs import values
from beeline.exceptions import ConvergenceWarning, ParameterError
from beeline.losses import VectorLoss, is_built_in
from beeline.objective import Objective, Point
from beeline.objective.certificates import rounding_of
from beeline.regularizers import fault_of_omega
from beeline.solvers.checkpoint import RunCheckpoint
from beeline.solvers.needs import Needs, refusal, unmet
from beeline.solvers.options import SolverOptions
from beeline.solvers.result import (
    Callback,
    Result,
    Status,
    Step,
    TracePoint,
    distance_in_words,
    relative_gap,
)
from beeline.solvers.state import State, as_state

__all__ = [
    "ROUNDING_GAP",
    "Callback",
    "Result",
    "Solver",
    "State",
    "Status",
    "Step",
    "TracePoint",
    "distance_in_words",
    "never_negative",
    "relative_gap",
]
# What is so much smaller than J without a model is lost in rounding.
_NOTHING = 1e-12
# Objectives that differ by less, relatively, are the same but for rounding.
_ALIKE = 1e-15
# By how much, relatively, rounding may be off in a J that was not summed here.
_UNSEEN = 1e-12
# Sums of numbers below this have lost their digits.
_LEAST = sys.float_info.min
# Below these, a kernel that takes all iterations at once may have nothing to show for them.
_FEW_PASSES, _FEW_SECONDS = 20.0, 1.0
# A gap that rounding alone may leave; who asks for less, and gets this, has got all there is.
ROUNDING_GAP = 1e-8
# What a solver goes by where neither it nor anybody else was told.
_TOL, _MAX_PASSES, _SEED = 1e-4, 1000.0, 0


class Solver(ABC):
    """Minimises an objective.

    A solver that is handed to an estimator, a search or `train` keeps what was said to it. What was not said (None) is
    as the estimator has it; where a solver is used by itself, it is 1e-4, 1000 and 0.

    Parameters
    ----------
    tol
        Stop when the certified relative distance from the optimum is at most this.
    max_passes
        Stop after so many passes over the data.
    seed
        The seed of what is random, of a solver that takes rows in random order.
    **options
        Those of the solver, as its `kind_of_options` lists them.

    Attributes
    ----------
    time_limit
        Stop after the iteration in which so many seconds are over, as `with_time_limit` says; None: no limit.
    options
        All options, with the defaults of those that were not given.
    needs
        What it needs of loss, regularizer and rows.
    row_arrays
        The arrays of a `State` that it goes on from, each with an entry a row.
    certifies
        Whether it looks for a bound, and so for the tolerance; one that does not ends by a rule of its own.
    """

    name: str
    needs: Needs = Needs()
    kind_of_options: ClassVar[type[SolverOptions]] = SolverOptions
    row_arrays: tuple[str, ...] = ()
    certifies: ClassVar[bool] = True
    default_options: ClassVar[SolverOptions] = SolverOptions()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.default_options = cls.kind_of_options()

    def __init__(
        self,
        tol: float | None = None,
        max_passes: float | None = None,
        seed: int | None = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        self._given = tol, max_passes, seed
        self.tol = _TOL if tol is None else tol
        self.max_passes = _MAX_PASSES if max_passes is None else max_passes
        self.seed = _SEED if seed is None else seed
        self.time_limit: float | None = None
        if not self.tol > 0:
            raise ParameterError(Argument("tol"), f" must be positive, not {tol}")
        if not self.max_passes > 0:
            raise ParameterError(Argument("max_passes"), f" must be positive, not {max_passes}")
        if self.seed < 0:
            raise ParameterError(Argument("seed"), f" must not be negative, not {seed}")
        self.options = self.default_options
        if options:
            self.options = self.kind_of_options.of(self.name, options)
            self.needs = self.options.refine(self.needs)

    @property
    def given(self) -> dict[str, float]:
        """What was said to it of tolerance, limit and seed, by name."""
        named = zip(("tol", "max_passes", "seed"), self._given, strict=True)
        return {name: value for name, value in named if value is not None}

    def __repr__(self) -> str:
        said = self.given | self.options.given
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in said.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are what was said, and nothing that a run has kept, such as the rows."""
        return _again, (type(self), self.given, self.options.given, self.time_limit)

    def with_defaults(self, tol: float, max_passes: float, seed: int) -> Self:
        """A new solver with the same options; what was not said to this one is as given here."""
        settings = {"tol": tol, "max_passes": max_passes, "seed": seed} | self.given
        again: Self = _again(type(self), settings, self.options.given, self.time_limit)
        return again

    def with_time_limit(self, seconds: float | None) -> Self:
        """The same solver, with so much time, or less where it has less already; None: no other limit."""
        if seconds is None or (self.time_limit is not None and self.time_limit <= seconds):
            return self
        limited = object.__new__(type(self))
        vars(limited).update(vars(self))  # with what it keeps of the rows, which several problems share
        limited.time_limit = seconds
        return limited

    def takes(self, objective: Objective) -> bool:
        """Whether it can take the objective."""
        return unmet(self.needs, objective) is None

    def refusal(self, objective: Objective) -> str | None:
        """Why it cannot take the objective, as the rest of a sentence; None where it can."""
        return refusal(self.needs, objective)

    def solve_in_kernel(self, objective: Objective, max_passes: float) -> Step | None:
        """All iterations in one step, for a problem so small that a kernel takes them before Python takes one; or None.

        It may take about so many passes, and is not asked for where there is a start, a limit that may come in the
        middle of it, or a callback, which wants to see how training goes.
        """
        return None

    @abstractmethod
    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """Iterate from a state (None: zero), yielding after every iteration."""

    def solve(
        self, objective: Objective, start: Floats | State | None = None, callback: Callback | None = None
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
        start: Floats | State | None = None,
        callback: Callback | None = None,
        *,
        watched: bool | None = None,
    ) -> Result:
        """Minimise, without a warning; `watched` says whether the callback wants to see every iteration (None: yes)."""
        if not self.takes(objective):
            raise ParameterError(f"the solver {self.name!r} {self.refusal(objective)}", parameter="solver")
        return self.minimise(objective, start, callback, watched=watched)

    def minimise(
        self,
        objective: Objective,
        start: Floats | State | None = None,
        callback: Callback | None = None,
        *,
        watched: bool | None = None,
        checkpoint: RunCheckpoint | None = None,
    ) -> Result:
        """As `run`, for an objective that the solver is known to take; a run that has a checkpoint goes on from it."""
        begin = as_state(start)
        if begin is not None:
            begin.check(objective, self.row_arrays)
        watched = callback is not None if watched is None else watched
        saved = None if checkpoint is None else checkpoint.load()
        if saved is not None and "result" in saved:
            return Result.from_document(saved["result"])
        run = _Run(self, objective, callback, begin, checkpoint)
        if saved is not None:
            begin = run.restore(saved["run"], saved["steps"])
        result = run.through(self._all_steps(objective, begin, watched, run))
        if checkpoint is not None:
            checkpoint.finish(result)
        return result

    @property
    def learns_classes_together(self) -> bool:
        """Whether it learns each class against the rest on one walk over the rows, as one problem of all of them."""
        return False

    def keeps_point(self, objective: Objective) -> bool:
        """Whether what it finds is kept where no weights at all have a lower J."""
        return False

    def resumes(self, objective: Objective) -> bool:
        """Whether its steps give snapshots, from which `steps` goes on to the same bits."""
        return False

    def _all_steps(self, objective: Objective, start: State | None, watched: bool, run: _Run) -> Iterator[Step]:
        """What a kernel solves at once, and from there on the steps."""
        passes = run.passes_before
        limited = self.max_passes < _FEW_PASSES or (self.time_limit is not None and self.time_limit < _FEW_SECONDS)
        free = start is None and not watched and not limited
        if free and (first := self.solve_in_kernel(objective, self.max_passes)) is not None:
            yield first
            start, passes = State(first.theta, first.arrays() if first.arrays else {}), first.passes
            run.passes_before = passes
        for step in self.steps(objective, start):
            yield replace(step, passes=passes + step.passes) if passes else step


def _again(kind: type[Any], settings: dict[str, Any], options: dict[str, Any], seconds: float | None) -> Any:  # noqa: ANN401
    """A solver of that kind, made anew."""
    return kind(**settings, **options).with_time_limit(seconds)


class _Run:
    """One run of a solver, as the loop sees it: the best point, the best bound, and whether to go on.

    What a solver says is not taken at its word. J of a point that would end the run is evaluated anew from its weights.
    A bound that is no number says nothing, and one that lies above a J that was found is false: then none is believed
    that was given so far. Of a loss that says it is not convex no bound is believed at all: every proof of one, by
    slopes or by dual variables, is by convexity. No model at all is better than the first ones of a dual method can be.
    """

    def __init__(
        self,
        solver: Solver,
        objective: Objective,
        callback: Callback | None,
        start: State | None = None,
        checkpoint: RunCheckpoint | None = None,
    ) -> None:
        self.solver, self.objective, self.callback, self.start = solver, objective, callback, start
        self.checkpoint, self.passes_before = checkpoint, 0.0  # by a kernel, before the steps
        self.clock = time.perf_counter()
        self.null = objective.null
        self.scale = max(_NOTHING * self.null.size, _LEAST)
        self.last: Step | None = None
        self.theta, self.value = self.null.theta, math.inf  # of the best point
        self.point: Point | None = None
        self.provable = objective.loss.convex
        self.bound = 0.0 if self.provable and never_negative(objective) else -math.inf
        self.least = self.bound
        self.lowest = sys.float_info.max
        self.verified: Floats | None = None  # the θ whose J was evaluated anew
        self.trace: list[TracePoint] = []
        self.iterations = 0

    def through(self, steps: Iterator[Step]) -> Result:
        """All steps, up to the end."""
        status = Status.STALLED if self.provable else Status.UNPROVEN
        try:
            for step in steps:
                if (verdict := self._take(step)) is not None:
                    status = verdict
                    break
                if self.checkpoint is not None:
                    self.checkpoint.offer(self._snapshot, step.snapshot)
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
        name = last.solver or self.solver.name
        return Result(
            self.theta,
            self.value,
            self.bound,
            status,
            self.iterations,
            last.passes,
            time.perf_counter() - self.clock,
            name,
            self.scale,
            self.null.value,
            self.trace,
            last.facts,
            self._state(name),
            self._ending() if status is Status.UNPROVEN and not doubt else "",
            doubt=doubt,
        )

    def _snapshot(self) -> dict[str, Any]:
        """What the loop goes on from, as its solver does from the snapshot of a step."""
        last = self.last
        assert last is not None
        return {
            "theta": self.theta,
            "value": self.value,
            "lowest": self.lowest,
            "bound": self.bound,
            "verified": self.verified is self.theta,
            "without_weights": self.theta is self.null.theta,
            "last": [last.passes, last.solver, last.facts, last.evaluated],
            "trace": self.trace,
            "iterations": self.iterations,
            "passes_before": self.passes_before,
            "seconds": time.perf_counter() - self.clock,
        }

    def restore(self, run: Mapping[str, Any], steps: Mapping[str, Any]) -> State:
        """Go on where a run of the same problem was; from where its solver goes on."""
        self.theta = self.null.theta if run["without_weights"] else np.array(run["theta"])
        self.value, self.lowest, self.bound = run["value"], run["lowest"], run["bound"]
        if run["verified"]:
            self.verified = self.theta
            self.point = self.objective.at(self.theta).with_loss_value()
        passes, solver, facts, evaluated = run["last"]
        self.last = Step(self.theta, self.value, self.bound, passes, solver=solver, facts=facts, evaluated=evaluated)
        self.trace = [TracePoint(*point) for point in run["trace"]]
        self.iterations, self.passes_before = run["iterations"], run["passes_before"]
        self.clock -= run["seconds"]
        return State(self.theta, snapshot=steps)

    def _state(self, name: str) -> State:
        """Where the run got to; what it took counts on from where it began."""
        last = self.last
        assert last is not None
        counters = {"iterations": self.iterations, "passes": last.passes}
        if self.start is not None:
            counters = {key: value + self.start.counters.get(key, 0) for key, value in counters.items()}
        return State(self.theta, last.arrays() if last.arrays else {}, counters, name)

    def _ending(self) -> str:
        """Why there is no certificate, and why it ended nevertheless."""
        assert self.last is not None
        why = self.last.ending or "J falls no further in double precision"
        return why if self.provable else f"{self.objective.loss!r} is not convex, so that no bound holds; {why}"

    @property
    def gap(self) -> float:
        """The certified relative distance from the optimum."""
        return relative_gap(self.value, self.bound, self.scale)

    def _take(self, step: Step) -> Status | None:
        """Take note of a step; why to stop after it, or None."""
        self.last = step
        self.iterations += step.iterations
        # Of points that J cannot tell apart, the later one: slopes led there.
        best = not step.evaluated or step.objective <= self.lowest + _ALIKE * abs(self.lowest)
        if math.isfinite(step.objective) and best:
            self.theta, self.value, self.point = step.theta, step.objective, step.point
            self.lowest = min(self.lowest, step.objective) if step.evaluated else self.lowest
        if self._is_no_better and not self._will_evaluate:
            self._give_up_point()
        if self.provable and math.isfinite(step.bound):
            self.bound = max(self.bound, step.bound - _LEAST)
        seconds = time.perf_counter() - self.clock
        stop = self.callback(self._best(seconds)) if self.callback else None
        if (gap := self.gap) <= self.solver.tol or step.final:
            self._verify()
            gap = self.gap
        self.trace.append(TracePoint(step.passes, seconds, self.value, gap, step.facts))
        return self._verdict(step, stop, seconds, gap)

    def _best(self, seconds: float) -> Step:
        """The best point with the best bound, as a callback sees them."""
        assert self.last is not None
        return replace(
            self.last, theta=self.theta, objective=self.value, bound=self.bound, seconds=seconds, scale=self.scale
        )

    @property
    def _will_evaluate(self) -> bool:
        """Whether J of the last point is an estimate that is made good where the run ends: over rows in memory."""
        return self.last is not None and not self.last.evaluated and self.objective.rows.in_memory

    @property
    def _is_no_better(self) -> bool:
        """Whether the point is to give way to that of the best intercepts alone."""
        return not self.value <= self.null.value and not (
            math.isfinite(self.value) and self.solver.keeps_point(self.objective)
        )

    def _give_up_point(self) -> None:
        self.theta, self.value, self.point = self.null.theta, self.null.value, None

    def _verify(self) -> None:
        """Evaluate J anew at the best point, and look whether the bound can be true."""
        point = None
        if self.last is not None and not self.last.evaluated and not self._will_evaluate:
            self.verified = self.theta  # it would take the pass that the solver does without
        if self.verified is not self.theta:
            self.point = point = self._evaluated()
            self.theta, self.value = point.theta, point.value
            if self._is_no_better:
                self._give_up_point()
            self.verified = self.theta
        if self.bound > self.value and self.bound > self.value + self._noise(point):
            self.bound = self.least

    def _noise(self, point: Point | None) -> float:
        """How far J at the best θ may be off by rounding; `point` is what was just evaluated there, if anything was."""
        if self.theta is self.null.theta:
            return self.scale
        if self.last is not None and not self.last.evaluated:
            return _UNSEEN * abs(self.value)
        return rounding_of(point if point is not None else self.objective.at(self.theta))

    def _evaluated(self) -> Point:
        """J at the best θ, from scores that were computed from it: now, or when the solver asked for them."""
        point, theta = self.point, _centred(self.objective, self.theta)
        if point is not None and point.is_exact and point.objective is self.objective and point.theta is theta:
            return point
        if point is not None:
            point.forget()  # what it knows of every row, while another point is made; few runs go on from it
        return self.objective.at(theta).with_loss_value()

    def _doubt(self) -> str | None:
        """What is wrong with a loss or Ω of one's own where training got to; then no bound was one, nor any gap."""
        o = self.objective
        doubt = self._doubt_of_loss() if self.provable and not is_built_in(o.loss) else None
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
            if fault := fault_of_omega(o.regularizer, np.zeros(len(w)), np.ascontiguousarray(w)):
                return f"{o.regularizer!r} {fault}"
        return None

    def _verdict(self, step: Step, stop: bool | None, seconds: float, gap: float) -> Status | None:
        if gap <= self.solver.tol:
            return Status.CONVERGED
        if step.ending or (step.final and not self.provable):
            return Status.UNPROVEN
        if step.final:
            return Status.STALLED
        if stop:
            return Status.CALLBACK
        if step.passes >= self.solver.max_passes:
            return Status.LIMIT
        limit = self.solver.time_limit
        return Status.TIME if limit is not None and seconds >= limit else None


def _centred(o: Objective, theta: Floats) -> Floats:
    """θ with the mean over the outputs taken off every feature's weights, where only their differences count.

    That is what the optimum is like: without it, L2 is smaller and all losses are the same.
    """
    if not (isinstance(o.loss, VectorLoss) and o.loss.shift_invariant and o.penalty.plain and o.regularizer.separable):
        return theta
    columns = theta.reshape(-1, o.n_outputs)
    centred: Floats = columns - columns.mean(axis=1, keepdims=True)
    return centred.ravel()


def never_negative(objective: Objective) -> bool:
    """Whether the loss is one of the library's, none of which is ever negative; one of one's own is believed less."""
    return is_built_in(objective.loss)
