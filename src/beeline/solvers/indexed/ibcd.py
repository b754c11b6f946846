"""Indexed block coordinate descent as published (Yen, Chang, Lin, Lin & Lin 2013, algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from beeline.objective import Objective, Point
from beeline.solvers.indexed.outliers import Sides, count_changed, sides_by_tally, sides_of_all, sides_of_sample
from beeline.solvers.indexed.querying import Answer
from beeline.solvers.indexed.rounds import Rounds
from beeline.solvers.indexed.running import LITTLE, MOST_RELAXATIONS, UNCHANGED
from beeline.solvers.result import Step, relative_gap
from beeline.solvers.state import State

if TYPE_CHECKING:
    from beeline.solvers.indexed.indexed import Indexed

__all__ = ["BlockLearning"]

_FINER, _MOST_VERIFICATIONS = 0.3, 5  # what ε_S and ε become of themselves where the tolerance was missed; how often


class BlockLearning(Rounds):
    """A run: one convex program and its certificate, or one after the other for a loss that is cut off (5)."""

    def __init__(self, solver: Indexed, objective: Objective) -> None:
        super().__init__(solver, objective)
        self.n_verified = 0
        self.best: Sides | None = None

    def steps(self, start: State | None) -> Iterator[Step]:
        """A query and a block each, until the certificate, or until no row changes sides."""
        self.begin(start)
        if self.interrupted:
            yield self.step(0)
            raise KeyboardInterrupt
        yield from self._convex() if self.truncated is None else self._relaxations()

    # A convex loss: one round, and a certificate.

    def _convex(self) -> Iterator[Step]:
        self.begin_round(None)
        while True:
            last = yield from self.go_round(None)
            if (step := self._certified(last)) is not None:
                yield step
                return
            self.tolerance *= _FINER

    def _certified(self, last: Answer) -> Step | None:
        """The end; None where the tolerance was missed and there is more to do."""
        if last.complete:
            missed = relative_gap(self.value, self.bound, 0.0) > self.solver.tol
            return None if missed and not self.is_stuck else self._end(self.value, None)
        if not self.options.verify:
            return self.last_step(self.value + self.rest.cost, None, known=False)
        point = self.evaluate_all(self.theta)
        self.n_verified += 1
        missed = relative_gap(point.value, self.bound, 0.0) > self.solver.tol
        if missed and self.n_verified < _MOST_VERIFICATIONS and not self.is_stuck:
            self.epsilon *= _FINER
            if self.search.learn(point, self.active):
                self.queries.closed = ~self.search.flagged
            return None
        return self._end(point.value, point)

    def _end(self, value: float, point: Point | None) -> Step:
        """The end, with a certificate; rows of S that still move are a limit's work."""
        return replace(self.last_step(value, point, known=True), limited=not self.is_idle)

    # A loss that is cut off: t = 0, 1, …

    def _relaxations(self) -> Iterator[Step]:
        """Convex programs (5) until no row changes sides, or J hardly falls."""
        self._note(sides_of_sample(self, self.pilot))
        if self.options.begin == "convex" or self.crowded:
            self.begin_round(None)
            yield from self.go_round(None)
            self._note(self._sides())
        before: Sides | None = None
        for _ in range(MOST_RELAXATIONS):
            if self.crowded:
                self.say_crowded()
                break
            outer = self.place
            self.begin_round(outer)
            yield from self.go_round(outer)
            sides = self._sides()
            if self._ends(before, sides):
                break
            before = sides
        best = self.best
        assert best is not None
        self.move(best.theta)
        self.counts = best.counts
        yield self.last_step(best.value, best.point, known=False)

    def _ends(self, before: Sides | None, sides: Sides) -> bool:
        """Whether a program was the last one; the best point is kept, so that J never rises."""
        self._note(sides)
        if before is not None and not count_changed(self.objective.rows, before, sides):
            self.ending = UNCHANGED if sides.inside is not None else "none of the random rows changes sides"
        elif before is not None and before.value - sides.value <= LITTLE * self.solver.tol * abs(sides.value):
            self.say_little()
        return bool(self.ending)

    def _note(self, sides: Sides) -> None:
        """Keep a point if it is the best so far; one whose J is only estimated gives way to any that is known."""
        assert self.truncated is not None
        self.counts, best = sides.counts, self.best
        self.crowded = sides.counts.crowded(by_class=self.truncated.classifies)
        if best is None or (best.point is None and sides.point is not None) or sides.value < best.value:
            self.best = sides

    def _sides(self) -> Sides:
        """Which rows are OUT: of all, by a look at them, or of the random ones; then J is what the last query says."""
        if self.options.verify:
            return sides_of_all(self)
        return sides_by_tally(self, self.rest, sides_of_sample(self, self.pilot))

    # What is said.

    def step(self, new: int) -> Step:
        """After a query; of a loss that is cut off, with the best point whose J is known."""
        best = self.best
        if best is None or best.point is None:
            if self.truncated is not None:
                self.counts = sides_of_sample(self, self.pilot).counts
            return super().step(new)
        facts = self.facts(new) | best.counts.facts
        return Step(best.theta, best.value, -math.inf, self.passes, facts=facts, point=best.point)
