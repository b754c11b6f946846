"""The loop of all solvers, written once: clock, limits, callback, Ctrl-C, and what is believed of a step.

A solver is a generator of steps. After each one the loop looks at the certified gap, the limits and the callback, and
decides whether to go on.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline._types import Floats
from beeline.engines.verbs import values
from beeline.losses import is_built_in
from beeline.objective import Objective, Point
from beeline.objective.certificates import rounding_of
from beeline.objective.points import centred
from beeline.regularizers import fault_of_omega
from beeline.solvers.checkpoint import RunCheckpoint
from beeline.solvers.result import Callback, Result, Status, Step, TracePoint, relative_gap
from beeline.solvers.state import State
from beeline.solvers.truncated.sides import Outliers, outliers_at

if TYPE_CHECKING:
    from beeline.solvers.base import Solver

__all__ = ["SolverRun", "never_negative"]

# What is so much smaller than J without a model is lost in rounding.
_NOTHING = 1e-12
# Objectives that differ by less, relatively, are the same but for rounding.
_ALIKE = 1e-15
# By how much, relatively, rounding may be off in a J that was not summed here.
_UNSEEN = 1e-12
# Sums of numbers below this have lost their digits.
_LEAST = sys.float_info.min


class SolverRun:
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
        last, outliers = self.last, self._outliers()
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
            last.facts if outliers is None else last.facts | outliers.counts.facts,
            self._state(name, outliers),
            self._ending(outliers) if status is Status.UNPROVEN and not doubt else "",
            self._estimate(),
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
            "estimate": last.estimate,
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
        more = {"facts": facts, "evaluated": evaluated, "estimate": run.get("estimate", "")}
        self.last = Step(self.theta, self.value, self.bound, passes, solver=solver, **more)
        self.trace = [TracePoint(*point) for point in run["trace"]]
        self.iterations, self.passes_before = run["iterations"], run["passes_before"]
        self.clock -= run["seconds"]
        return State(self.theta, snapshot=steps)

    def _outliers(self) -> Outliers | None:
        """Which rows a loss cuts off at the best point, which need not be that of the last step.

        None for a loss that does not, and where the scores of all rows there are not known: then it is the last one.
        """
        if self.theta is self.null.theta:
            return outliers_at(self.objective.at_null())
        return None if self.point is None else outliers_at(self.point)

    def _state(self, name: str, outliers: Outliers | None) -> State:
        """Where the run got to; what it took counts on from where it began."""
        last = self.last
        assert last is not None
        counters = {"iterations": self.iterations, "passes": last.passes}
        if self.start is not None:
            counters = {key: value + self.start.counters.get(key, 0) for key, value in counters.items()}
        arrays = dict(last.arrays()) if last.arrays else {}
        if outliers is not None:
            arrays["outside"] = outliers.outside
        return State(self.theta, arrays, counters, name)

    def _ending(self, outliers: Outliers | None) -> str:
        """Why there is no certificate, and why it ended nevertheless."""
        assert self.last is not None
        why = self.last.ending or "J falls no further in double precision"
        if remark := self.last.remark if outliers is None else outliers.words:
            why = f"{why}; {remark}"
        return why if self.provable else f"{self.objective.loss!r} is not convex, so that no bound holds; {why}"

    def _estimate(self) -> str:
        """That J is an estimate, if it is one: of the last point, and it was not evaluated since."""
        assert self.last is not None
        estimated = self.theta is self.last.theta and self.point is None
        return self.last.estimate if estimated else ""

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
        point, theta = self.point, centred(self.objective, self.theta)
        if point is not None and point.is_exact and point.objective is self.objective and point.theta is theta:
            return point
        # What they know of every row, while another point is made; few runs go on from there.
        if point is not None:
            point.forget()
        if self.last is not None and self.last.forget is not None:
            self.last.forget()
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
        if gap <= self.solver.tol and gap < 1:  # a gap of 1 proves nothing, whatever was asked for
            return Status.CONVERGED
        if step.ending or (step.final and not self.provable):
            return Status.UNPROVEN
        if step.final:
            return Status.LIMIT if step.limited else Status.STALLED
        if stop:
            return Status.CALLBACK
        if step.passes >= self.solver.max_passes:
            return Status.LIMIT
        limit = self.solver.time_limit
        return Status.TIME if limit is not None and seconds >= limit else None


def never_negative(objective: Objective) -> bool:
    """Whether the loss is one of the library's, none of which is ever negative; one of one's own is believed less."""
    return is_built_in(objective.loss)
