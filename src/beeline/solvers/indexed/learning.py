"""One run of indexed learning, in which the active set is solved as a whole."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline._types import AnyArray, Floats
from beeline.index import Place
from beeline.objective import Objective, Point
from beeline.solvers.bundle.line_search import is_piecewise_linear
from beeline.solvers.indexed.resuming import restore_learning, snapshot_of_learning
from beeline.solvers.indexed.running import LITTLE, MOST_RELAXATIONS, UNCHANGED, IndexedRun
from beeline.solvers.newton.newton import MOST_FEATURES
from beeline.solvers.result import Result, Status, Step
from beeline.solvers.state import State, snapshot_of
from beeline.solvers.truncated.sides import SideCounts

if TYPE_CHECKING:
    from beeline.solvers.indexed.indexed import Indexed

__all__ = ["Learning"]

_FIRST, _FIRST_ROWS = 0.02, 100_000  # of all rows that the first query reads, and how many at most
_GROWTH = 2.0  # how much more each of the following ones reads
_LARGEST, _ABOVE = 10.0, 2.0  # rows that one which was found may stand for, or so many times as many as others do
_ROUGHLY, _FEW_PASSES = 0.1, 60.0  # of J, and passes over the active set, while much is still to be read
_MANY_PASSES = 10_000.0  # over the active set after that, which is small: the solver's limit counts what is read
_NEARLY, _FINELY = 0.01, 0.3  # of J, and of the tolerance, for the problem over the active set after that
_REST = 0.6  # of the tolerance, for rows that were not found
_NEAR = 1.0  # widths of the loss: rows so near to mattering are kept where an index cannot say when they will
_FEW_RELAXATIONS = 2  # after a query, while much is still to be read: the next one tells more than the last of many
_SETTLED = 0.05  # of J: a change after which the convex loss has settled, and may be cut off
_MOST_VERIFICATIONS = 5
_QUOTA = 0.3  # of the memory, for the active set; the rest of it is on disk
_SMALL, _AFTER = 4 << 20, 0.8  # bytes for what is kept beside rows, in any memory; what is left when rows were dropped
_BESIDE, _LEAST = 2, 4 << 20  # part of the memory for that at most, and bytes in any: with more the set is given up


class Learning(IndexedRun):
    """A run in which every query is followed by a solution of the problem over the active set.

    Attributes
    ----------
    told
        J over the active set where it is: of the loss as it is cut off, also before the weights go by that.
    """

    def __init__(self, solver: Indexed, objective: Objective) -> None:
        super().__init__(solver, objective)
        self.target = min(_FIRST, _FIRST_ROWS / max(1, objective.rows.n_rows)) * self.total_bytes
        self.cuts_off = self.steady = self.finely = self.interrupted = False
        self.n_verified, self.told, self.unproven = 0, math.inf, False

    def steps(self, start: State | None) -> Iterator[Step]:
        """Query and solve, until nothing is left to be found and the active set is solved."""
        left, saved = True, snapshot_of(start)
        if saved is not None:
            left = restore_learning(self, saved)
        elif self.begin(start):  # a model by which one can go on, long before the best one
            snapshot = partial(snapshot_of_learning, self, left=True)
            yield replace(self._step(0, known=False), snapshot=snapshot)
        while True:
            before = self.value
            new = self._query() if left else 0
            if len(self.active) > self._most_rows:
                yield from self._over_all_rows()
                return
            each = self._stands_for() if left else np.ones(len(self.active))
            whole = float(each.max(initial=1.0)) == 1
            self._solve(each, whole=whole, new=new)
            self.steady |= whole
            self._make_room()
            left = self._is_left()
            complete = whole and not left
            finished = complete and not new and (self.truncated is None or self.cuts_off)
            if finished and not self.interrupted:
                if (step := self._last_step()) is not None:
                    yield step
                    return
                left = True
                continue
            settled = complete or abs(before - self.value) <= _SETTLED * self.value
            self.cuts_off |= self.truncated is not None and settled
            snapshot = partial(snapshot_of_learning, self, left=left)
            yield replace(self._step(new, known=complete and self.search.exact), snapshot=snapshot)
            if self.interrupted:
                raise KeyboardInterrupt

    # Where it begins (I5).

    def begin(self, start: State | None) -> bool:
        """At a start, or at the optimum of the convex loss over random rows, roughly; whether they tell J there."""
        clock = time.perf_counter()
        if start is not None:
            self.move(start.theta)
        else:
            problem = self.active.problem(self.objective, self.loss, self.active.guards)
            result = self._solved(problem, None, _ROUGHLY, _FEW_PASSES)
            self.move(result.theta)
            self.told = result.objective if self.truncated is None else self._inside(self.active.guards)[1]
        self.solve_seconds += time.perf_counter() - clock
        return start is None

    # Queries (I8).

    def _query(self) -> int:
        """Read some of the chunks that may matter, and take rows into the active set; how many."""
        clock, search, active = time.perf_counter(), self.search, self.active
        (w, b), new = self.place, 0
        left = search.left(self.place, self._outer)
        for found in search.read(search.draw(left, int(self.target)), self.place):
            z = found.block.scores(w) + b
            if search.exact:  # all rows of a leaf that may matter, so that it need not be read again
                keep = found.matter(z) | (left[search.leaves_of(found.positions)] > 0)
            else:
                keep = found.matter(z, _NEAR * self.objective.natural_width)
            own, chunks = active.places(found.positions), search.chunks_of(found.positions)
            active.find(own[keep & (own >= 0)], chunks[keep & (own >= 0)])
            fresh = keep & (own < 0)
            active.add(found.pick(fresh), chunks[fresh])
            self._spill()
            search.note(found, z, ~keep & (own < 0))
            new += int(np.count_nonzero(fresh))
            if len(active) > self._most_rows:  # by which the run goes on without the index
                break
        search.know(active)
        self.target *= _GROWTH
        self.search_seconds += time.perf_counter() - clock
        return new

    @property
    def _outer(self) -> Place | None:
        """Where outliers are told, once the loss is cut off."""
        return self.place if self.cuts_off else None

    def _stands_for(self) -> Floats:
        """For how many rows each of the active set stands."""
        factors = self.search.factors(self.search.weights(self.place, self._outer))
        chunks = self.active.chunks
        found = chunks >= 0
        own = factors[chunks[found]]
        each = np.ones(len(chunks))
        each[found] = np.minimum(own, max(_LARGEST, _ABOVE * float(own.mean()) if len(own) else 1.0))
        return each

    def _is_left(self) -> bool:
        """Whether rows that matter may be left to be found; by an estimate of what they cost, where none is certain."""
        left = bool(np.any(self.search.left(self.place, self._outer) > 0))
        if self.search.exact or not left:
            return left
        return self.search.estimated_rest(self.place, self.active) > _REST * self.solver.tol * self.value

    def _make_room(self) -> None:
        """Spill rows where the active set takes too much; drop those far from mattering where even that is not enough.

        Rows that are dropped have to be read again from among others, so that to write them to disk is cheaper. Once
        every row stands for itself none is dropped: the set only grows, and so does the optimum over it, so that the
        end comes. With rows that go and come again weights would run in circles. Where more rows matter than there is
        room for with what is kept beside each, the set is given up (`_over_all_rows`).
        """
        memory = self.memory
        if memory is None:
            return
        most = max(memory // 4, _SMALL) // self.active.ROW_BYTES
        if not self.steady and len(self.active) > most:
            self._drop(int(_AFTER * most))
        self._spill()

    def _spill(self) -> None:
        """Bring rows to the disk, where they take more than their part of the memory."""
        memory, active = self.memory, self.active
        if memory is not None and active.nbytes > _QUOTA * memory:
            active.spill(int(_QUOTA * memory))

    @property
    def _most_rows(self) -> float:
        """Of the active set, that the memory has room for with what is kept beside them."""
        memory = self.memory
        return math.inf if memory is None else max(memory // _BESIDE, _LEAST) // self.active.ROW_BYTES

    def _over_all_rows(self) -> Iterator[Step]:
        """From here on without the index, by a solver that streams: more rows matter than the memory has room for."""
        from beeline.solvers.auto import choose_solver  # which knows this solver too

        s, o, before = self.solver, self.objective, self.passes
        self.active.keep(np.zeros(len(self.active), np.bool_))
        settings = {"tol": s.tol, "max_passes": s.max_passes, "seed": s.seed, "warm": True, "indexed": False}
        if self.truncated is not None:
            inner = choose_solver(o.with_loss(self.loss), **settings).name  # type: ignore[arg-type]
            solver = choose_solver(o, ("relaxation", {"inner": inner}), **settings)  # type: ignore[arg-type]
        else:
            solver = choose_solver(o, **settings)  # type: ignore[arg-type]
        for step in solver.with_time_limit(self.seconds_left).steps(o, State(self.theta)):
            name = step.solver or solver.name
            yield replace(step, passes=before + step.passes, solver=name, snapshot=None)

    def _drop(self, fitting: int) -> None:
        """Drop the rows that are farthest from mattering, until about so many are left."""
        active = self.active
        z = self._scores()
        low, high = self.loss.sublevel(active.labels, 0.0)
        slack = np.where(active.guards > 1, -np.inf, np.minimum(z - low, high - z))
        keep = slack <= max(np.partition(slack, fitting)[fitting], 0.0)
        if not keep.all():
            dropped = ~keep
            self.search.drop(active.positions[dropped], (z - low)[dropped], (high - z)[dropped], self.place)
            active.keep(keep)
            self.search.know(active)

    # The problem over the active set.

    def _solve(self, each: Floats, *, whole: bool, new: int) -> None:
        """Solve it where each row stands for so many, and move there; by relaxations where the loss is cut off."""
        clock, tol = time.perf_counter(), _FINELY * self.solver.tol
        self.finely |= whole and not new
        if not whole:
            tol = max(_ROUGHLY, tol)
        elif not self.finely:
            tol = max(_NEARLY, tol)
        if self.cuts_off:
            self._relax(each, tol, whole=whole)
        else:
            self._solve_convex(each, tol, whole=whole)
        cut = self.truncated is not None and not self.cuts_off  # of which J is told nevertheless
        self.told = self._inside(each)[1] if cut else self.value
        self.solve_seconds += time.perf_counter() - clock

    def _solve_convex(self, each: Floats, tol: float, *, whole: bool) -> None:
        """The convex problem; the weights move towards its optimum, as far as guards allow."""
        o, active, here = self.objective, self.active, self.theta
        problem = active.problem(o, self.loss, each)
        passes = _MANY_PASSES if whole else _FEW_PASSES
        result = self._solved(problem, active.start(here, problem), tol, passes)
        self.bound, self.gap = result.bound, result.gap
        self.unproven = result.status is Status.UNPROVEN
        if whole:
            self.value = result.objective
            self.move(result.theta)
            return
        guarded = active.problem(o, self.loss, each * self._guards())
        point = guarded.at(here).towards(guarded.at(result.theta), 0.01 * _ROUGHLY)
        self.value = point.value
        self.move(point.theta)

    def _guards(self) -> Floats:
        """For how many rows each stands that do not matter here, and are not in the active set."""
        low, high = self.loss.sublevel(self.active.labels, 0.0)
        z = self._scores()
        return np.where((z >= low) & (z <= high), self.active.guards, 1.0)

    def _scores(self) -> Floats:
        return self.active.scores(*self.place)

    def _relax(self, each: Floats, tol: float, *, whole: bool) -> None:
        """Convex problems (5) over the rows that are IN, until none changes sides, or J hardly falls."""
        inside, value = self._inside(each)
        for _ in range(MOST_RELAXATIONS if whole else _FEW_RELAXATIONS):
            if self.crowded:
                self.say_crowded()
                break
            self._solve_convex(np.where(inside, each, 0.0), tol, whole=whole)
            (now, lower), before = self._inside(each), value
            changed, value = int(np.count_nonzero(now != inside)), lower
            inside = now
            if not changed or self.interrupted:
                self.ending = UNCHANGED
                break
            if before - value <= LITTLE * self.solver.tol * abs(value):
                self.say_little()
                break
            if whole and self._is_left():  # of which the next step has to know
                break
        self.value = value

    def _inside(self, each: Floats) -> tuple[AnyArray, float]:
        """(which rows of the active set are IN, J over it)."""
        loss, active = self.truncated, self.active
        assert loss is not None
        outside = loss.outside(self._scores(), active.labels)
        counts, positive = np.where(active.costs > 0, each, 0.0), active.labels > 0
        out = (float(counts[outside & ~positive].sum()), float(counts[outside & positive].sum()))
        self.counts = SideCounts(*out, *self.search.rows_of_labels)
        self.crowded = self.counts.crowded(by_class=loss.classifies)
        return ~outside, active.problem(self.objective, loss, each).at(self.theta).value

    def _solved(self, problem: Objective, start: State | None, tol: float, max_passes: float) -> Result:
        """The optimum of a problem over the active set."""
        from beeline.solvers.auto import choose_solver  # which knows this solver too

        s = self.solver
        inner = choose_solver(
            problem, self._inner(problem), tol=tol, max_passes=max_passes, seed=s.seed, warm=start is not None
        )
        result = inner.with_time_limit(self.seconds_left).run(problem, start)
        self.active.dual = np.asarray(result.state.arrays.get("dual", np.zeros(len(self.active))))
        self.interrupted |= result.status is Status.INTERRUPTED
        return result

    def _inner(self, problem: Objective) -> str:
        """The bundle method makes the most of a good start, where features are few."""
        named = self.solver.options.inner
        return "bundle" if named == "auto" and is_piecewise_linear(problem) and problem.size <= MOST_FEATURES else named

    # What is said.

    def _step(self, new: int, *, known: bool) -> Step:
        bound = self.bound if known and self.truncated is None else -math.inf
        estimate = "" if known else self.estimate_in_words
        more: dict[str, Any] = {"facts": self.facts(new), "evaluated": False, "estimate": estimate}
        return Step(self.theta, self.told, bound, self.passes, **more, **self.of_outliers())

    def _last_step(self) -> Step | None:
        """The end; None where a look at all rows has found more that matter."""
        if self.search.exact or not self.solver.options.verify:
            return self._end(self.value, None, known=self.search.exact)
        point = self.evaluate_all(self.theta)
        self.n_verified += 1
        missing = point.value - self.value > _REST * self.solver.tol * abs(point.value)
        if missing and self.n_verified < _MOST_VERIFICATIONS and self.search.learn(point, self.active):
            return None
        return self._end(point.value, point, known=True)

    def _end(self, value: float, point: Point | None, *, known: bool) -> Step:
        """The last step; a solver of the active set that proves nothing leaves nothing to be proven."""
        step = self.last_step(value, point, known=known)
        unsaid = self.unproven and not step.ending
        return replace(step, ending=f"inner={self.solver.options.inner!r} proves nothing") if unsaid else step
