"""Losses that are cut off, by convex problems one after the other (I2, I3)."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from beeline._types import Floats
from beeline.data.core.block import Block, concatenate
from beeline.data.core.dataset import ArrayDataset
from beeline.engines import RowVector
from beeline.engines.verbs import products, truncation
from beeline.exceptions import ParameterError
from beeline.losses import Ramp, Truncated
from beeline.objective import Objective, Point
from beeline.solvers.base import ROUNDING_GAP, Solver
from beeline.solvers.needs import Needs
from beeline.solvers.options import SolverOptions, option
from beeline.solvers.result import Result, Status, Step, distance_in_words
from beeline.solvers.state import State, snapshot_of
from beeline.solvers.truncated.cccp import LeaningHinge
from beeline.solvers.truncated.sides import SideCounts, costs_inside

__all__ = ["Relaxation", "RelaxationOptions"]

Method = Literal["relaxation", "cccp"]
Begin = Literal["sample", "convex"]

_MOST_DOUBLINGS = 40
_LITTLE = 0.1  # of the tolerance, that a step has to lower J by


@dataclass(frozen=True, kw_only=True)
class RelaxationOptions(SolverOptions):
    """Options of the relaxation."""

    method: Method = option(  # noqa: RUF009 — a field
        "relaxation",
        "`relaxation` leaves rows that are OUT aside; `cccp`, for the ramp, replaces what bends down by its tangent.",
        choices=get_args(Method),
    )
    begin: Begin = option(  # noqa: RUF009 — a field
        "sample",
        "Begin at the optimum of the convex loss: of a `sample`, as many rows of either class, or of all (`convex`).",
        choices=get_args(Begin),
    )
    sample_size: int = option(10_000, "How many rows the sample has.", least=10)
    continuation: int = option(
        0, "Begin with a cap of 2 to this power times 1 + s, and halve it so many times.", least=0, most=100
    )
    inner: str = option("auto", "The solver of the convex problems, by its name.")


class Relaxation(Solver):
    """Minimises a loss that is cut off at 1 + s (eq. 2), by the relaxation (5) of the IBCD paper.

    At weights w a row is OUT where its loss lies above 1 + s, and IN elsewhere. A step solves the convex problem
    Ω + Σ_IN c_i·l_i, in which rows that are OUT cost 1 + s each and nothing else. That is nowhere below J, and equal to
    it at w: so J never rises. Where no row changes sides any more, the step's optimum is a local optimum of J.

    CCCP (3, 4) keeps rows that are OUT in the problem, with the concave part of their loss replaced by its tangent:
    of the ramp, max(1, yz) is left. In (6) the constraint is yz ≥ 1 − ξ, which is printed the other way round.

    It begins at the optimum of the convex loss over a sample that has as many rows of either class (I5), and where that
    would leave more than half of a class OUT, over all rows. Where that happens even there, the outliers may have
    ruined the convex optimum: the cap begins so much higher that no class is given up, and is halved step by step,
    which lets go of the farthest rows first. If in the end more than half of a class would still be OUT, those are no
    outliers: what was found with a higher cap stays, and a warning says so.

    What is proven: the gap of each convex problem. J itself is not convex, so that the end is a local optimum. A
    result's `facts` have how many rows are OUT (`outside`, and by their label `outside_negative` and
    `outside_positive`) and the gap of the last convex problem (`convex_gap`); the array `outside` of its state marks
    those rows.

    Options are those of `RelaxationOptions`.
    """

    name = "relaxation"
    needs = Needs(losses=(Truncated,), losses_named="losses that are cut off", convex=False, own_omega="any")
    kind_of_options = RelaxationOptions
    options: RelaxationOptions

    def concern(self, result: Result) -> str | None:
        """Also where cutting off would have given up a class, or the last convex problem missed the tolerance."""
        ended = result.status is Status.UNPROVEN
        if ended and not result.facts["crowded"] and result.facts["convex_gap"] > max(self.tol, ROUNDING_GAP):
            return f"{self.name} {result.sentence}; scale the features, or name another solver by inner"
        if ended and result.facts["crowded"]:
            return f"{self.name} {result.sentence}; raise s or C, or scale the labels, or give a rare class more weight"
        return super().concern(result)

    def steps(self, objective: Objective, start: State | None) -> Iterator[Step]:
        """One convex problem at a time."""
        loss = objective.loss
        assert isinstance(loss, Truncated)
        if self.options.method == "cccp" and not isinstance(loss, Ramp):
            raise ParameterError(f"method='cccp' is for the ramp, not {loss!r}; leave it out", parameter="solver")
        run = _Relaxing(self, objective)
        if (saved := snapshot_of(start)) is not None:
            theta, run.halvings = np.array(saved["theta"]), saved["halvings"]
            run.passes, run.gap, run.resumed = saved["passes"], saved["gap"], True
        else:
            theta = run.begin() if start is None else start.theta
            run.halvings = max(self.options.continuation, run.doublings(theta))
        while run.halvings:
            theta = yield from run.descend(theta, loss.with_cap(2.0**run.halvings * loss.cap), last=False)
            run.halvings -= 1
        yield from run.descend(theta, loss, last=True)

    def resumes(self, objective: Objective) -> bool:
        """Always, from one convex problem to the next."""
        return True


class _Sides(NamedTuple):
    """Which rows are IN at a point.

    Attributes
    ----------
    inside
        The costs of these rows, 0 for the others.
    counts
        How many are OUT.
    """

    inside: RowVector
    counts: SideCounts


class _Relaxing:
    """One run: the convex problems, and what they have taken so far."""

    def __init__(self, solver: Relaxation, objective: Objective) -> None:
        self.solver, self.objective, self.clock = solver, objective, time.perf_counter()
        self.passes, self.gap, self.interrupted = 0.0, math.inf, False
        self.halvings, self.resumed = 0, False  # of the cap, that are left; whether the first step was taken before
        assert isinstance(objective.loss, Truncated)
        self.loss = objective.loss
        self.convex = objective.with_loss(self.loss.loss)

    def begin(self) -> Floats:
        """The optimum of the convex loss: of a sample, or of all rows where a sample leaves a class OUT."""
        o, options = self.objective, self.solver.options
        theta = None
        if options.begin == "sample" and o.rows.n_rows > options.sample_size:
            theta = self._solved(self._sample(), None).theta
            self.passes += 1
            if self.interrupted or not self._sides(o.at(theta), self.loss).counts.crowded(
                by_class=self.loss.classifies
            ):
                return theta
        return self._solved(self.convex, theta).theta

    def doublings(self, theta: Floats) -> int:
        """How often the cap has to be doubled for no class to be given up at θ; none where nothing helps."""
        point = self.objective.at(theta)
        for k in range(_MOST_DOUBLINGS):
            raised = self.loss.with_cap(2.0**k * self.loss.cap)
            if not self._sides(point, raised).counts.crowded(by_class=self.loss.classifies):
                return k
        return 0

    def _sample(self) -> Objective:
        """The convex problem of a sample of the rows."""
        o, most = self.objective, self.solver.options.sample_size
        blocks: list[Block] = o.rows.sum(
            products.sampled_rows,
            o.labels,
            o.costs,
            most=-(-most // o.rows.n_shards),
            seed=self.solver.seed,
            stratified=self.loss.classifies,
        ).value[0]
        block = concatenate(blocks)
        assert isinstance(block.labels, np.ndarray)
        assert block.weights is not None
        common = self.loss.loss, o.regularizer, o.strength, o.intercept
        return Objective.of(ArrayDataset(block), block.labels, block.weights, *common)

    def descend(self, theta: Floats, loss: Truncated, *, last: bool) -> Generator[Step, None, Floats]:
        """Convex problems from θ on, for a loss that is cut off so high; returns where they end."""
        o = self.objective if last else self.objective.with_loss(loss)
        point = o.at(theta)
        sides, ending = self._sides(point, loss), ""
        while True:
            crowded = sides.counts.crowded(by_class=loss.classifies)
            if crowded and last and not self.interrupted and point.value > o.null.value:  # the end, and worth nothing
                point = o.at_null()
                sides = self._sides(point, loss)
            if crowded:
                what = "a class" if loss.classifies else "most rows"
                ending = f"cutting off would give up {what}"
            if (last or not ending) and not self.resumed:
                yield self._step(point, sides, ending if last else "", crowded=crowded)
            self.resumed = False
            if self.interrupted:
                raise KeyboardInterrupt
            if ending:
                return point.theta
            result = self._solved(self._relaxed(sides), point.theta)
            moved = o.at(result.theta)
            self.passes += 1
            fall, before = point.value - moved.value, sides
            if fall > 0:
                point, sides = moved, self._sides(moved, loss)
            if not self.interrupted and result.status not in (Status.LIMIT, Status.TIME):  # which end the loop
                ending = self._ending(before, sides, little=fall <= _LITTLE * self.solver.tol * abs(point.value))

    def _ending(self, before: _Sides, sides: _Sides, *, little: bool) -> str:
        """Why it ends after a step, by which J may have fallen little; empty where it goes on.

        A point that its convex problem cannot lower is within that problem's gap of its optimum.
        """
        changed = self.objective.rows.sum(truncation.changed_sides, sides.inside, before.inside).value[0]
        if changed and not little:
            return ""
        why = f"a step lowers J by less than {_LITTLE * self.solver.tol:g} of it" if changed else "no row changes sides"
        local = ": a local optimum" if not changed and self.gap <= max(self.solver.tol, ROUNDING_GAP) else ""
        return f"{why}{local}, whose convex problem was solved to {distance_in_words(self.gap)}"

    def _step(self, point: Point, sides: _Sides, ending: str, *, crowded: bool) -> Step:
        o = self.objective

        def snapshot() -> dict[str, Any]:
            return {"theta": point.theta, "halvings": self.halvings, "passes": self.passes, "gap": self.gap}

        facts = sides.counts.facts | {"crowded": float(crowded), "convex_gap": self.gap}
        value = point.value if point.objective is o else o.at(point.theta).value
        return Step(point.theta, value, -math.inf, self.passes, ending=ending, facts=facts, snapshot=snapshot)

    def _sides(self, point: Point, loss: Truncated) -> _Sides:
        return _Sides(*costs_inside(point, loss))

    def _relaxed(self, sides: _Sides) -> Objective:
        """The convex problem of a step."""
        if self.solver.options.method == "relaxation":
            return self.convex.with_costs(sides.inside)
        o = self.objective
        labels = o.rows.map(truncation.marked_outside, o.labels, sides.inside, o.costs)
        return o.with_loss(LeaningHinge()).with_labels(labels)

    def _solved(self, objective: Objective, theta: Floats | None) -> Result:
        """The optimum of a convex problem, near θ where that is given."""
        from beeline.solvers.auto import choose_solver  # which knows this solver too

        s = self.solver
        start = None if theta is None else State(theta)
        left = max(s.max_passes - self.passes, 1.0)
        inner = choose_solver(
            objective, s.options.inner, tol=s.tol, max_passes=left, seed=s.seed, warm=theta is not None
        )
        if s.time_limit is not None:
            inner = inner.with_time_limit(max(s.time_limit - (time.perf_counter() - self.clock), 1e-3))
        result = inner.run(objective, start)
        self.gap, self.interrupted = result.gap, result.status is Status.INTERRUPTED
        self.passes += result.passes if objective.rows is self.objective.rows else 0.0
        return result
