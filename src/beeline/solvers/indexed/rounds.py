"""One convex program by indexed block coordinate descent (Yen, Chang, Lin, Lin & Lin 2013, algorithm 1)."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline._types import Floats
from beeline.index import Place
from beeline.kernels import balance
from beeline.objective import Objective, conjugate_bound
from beeline.solvers.dual.dual_cd import DualCD
from beeline.solvers.indexed.active_set import ActiveSet
from beeline.solvers.indexed.block_solvers import BlockSolver, DualSolver, NewtonSolver
from beeline.solvers.indexed.querying import Answer, Patience, Queries, Tally
from beeline.solvers.indexed.running import IndexedRun
from beeline.solvers.result import Status, Step, relative_gap
from beeline.solvers.state import State

if TYPE_CHECKING:
    from beeline.solvers.indexed.indexed import Indexed

__all__ = ["Rounds"]

_PILOT_TOL, _PILOT_PASSES = 1e-2, 100.0  # of the problem over random rows
_FINELY = 0.5  # ε_S, of the tolerance
_SURELY = 3.0  # random rows are enough if so many of n_ε missing ones would be among them
_QUOTA, _LEAST_CACHE = 0.4, 0.25  # of the memory, for S and chunks that were read; of that, m_LRU for the chunks alone
_BLOCK = 8  # part of the memory for a block


class Rounds(IndexedRun):
    """What algorithm 1 does: a query, a block, and a part of S at a time.

    The constants that the paper leaves open (I23): ε_S is half of the tolerance, as a relative gap over S. m_LRU is a
    tenth of the memory, and S may take three more. M is what fits an eighth of it, or an option. T and ε are options.

    Beside N, a block has as many rows of S as the query has looked at, at least n, and up to M where few are left to be
    found: then a query on what is not shrunk looks at little, and would keep S from being solved.
    """

    def __init__(self, solver: Indexed, objective: Objective) -> None:
        super().__init__(solver, objective)
        self.options, self.random = solver.options, np.random.default_rng([solver.seed, 2])
        index, tol = self.search.index, solver.tol
        self.pilot = ActiveSet(index.pilot(), self.active.labels, self.active.costs)
        width = objective.natural_width
        self.queries = Queries(self.search, self.active, self.options.threshold * width, self.random)
        self.blocks = self._block_solver()
        self.reader, self.unchecked, self.idle, self.worked = 0, 0, 0, 0
        self.tolerance = _FINELY * tol
        self.epsilon = tol if self.options.epsilon is None else self.options.epsilon
        self.estimate, self.allowed, self.rest = math.inf, 1.0, Tally()
        self.found: Floats | None = None  # θ by the last look at S
        self.interrupted = False

    def _block_solver(self) -> BlockSolver:
        o, options = self.objective, self.options
        if options.block == "newton":
            return NewtonSolver(o, self.loss, self.active)
        return DualSolver(o, self.loss, self.active, sweeps=options.sweeps, seed=self.solver.seed)

    # Where it begins (I5).

    def begin(self, start: State | None) -> None:
        """The convex loss over random rows, at the C of all rows, as in the paper: so its variables are feasible here.

        Rows of a class of which more were drawn count less. S has those rows whose variables are not zero. A start says
        where the first query asks, and which rows are OUT then.
        """
        clock, active = time.perf_counter(), self.active
        problem = active.problem(self.objective, self.loss, active.guards / max(active.guards.max(initial=1.0), 1.0))
        solver = DualCD(max(_PILOT_TOL, self.solver.tol), _PILOT_PASSES, self.solver.seed)
        result = solver.with_time_limit(self.seconds_left).run(problem, None if start is None else start.theta)
        self.interrupted = result.status is Status.INTERRUPTED
        active.dual = np.asarray(result.state.arrays.get("dual", np.zeros(len(active))))
        active.keep(active.dual != 0)
        self.blocks.restart(float(self.objective.split(result.theta)[1]))
        self.move(result.theta if start is None else start.theta)
        self._measure()
        self.solve_seconds += time.perf_counter() - clock

    # One convex program.

    def begin_round(self, outer: Place | None) -> None:
        """S⁰ = Sᵗ∖OUT(wᵗ) (I7); all of the index is open."""
        if outer is not None:
            assert self.truncated is not None
            out = self.truncated.outside(self.active.scores(*outer), self.active.labels)
            self.blocks.leave_out(np.flatnonzero(out))
            self.active.keep(~out)
        self.queries.open_all()
        self.reader, self.unchecked, self.idle, self.worked = 0, 0, 0, 0
        self.bound, self.tolerance = -math.inf, _FINELY * self.solver.tol

    def go_round(self, outer: Place | None) -> Generator[Step, None, Answer]:
        """Queries and blocks until S is solved to ε_S and few rows are left to be found; returns the last look."""
        while True:
            answer = self._query(outer)
            self._solve(answer)
            self._measure()
            if self._are_few(answer) and self.unchecked >= len(self.active) and self._is_solved_here():
                self.queries.open_all()
                last = self._query_again(outer)
                if self._are_few(last):
                    return last
                answer = last
            self._make_room()
            yield self.step(answer.n_new)

    def _query(self, outer: Place | None) -> Answer:
        """(N, n_e): where the sampling form is asked for, no search goes on that finds too little."""
        clock, options = time.perf_counter(), self.options
        patience = Patience(self._sample_size(), self.allowed / self.n_rows) if options.stop == "sample" else None
        answer = self.queries.ask(self.place, outer, options.query_rows, patience)
        self.search_seconds += time.perf_counter() - clock
        return answer

    def _solve(self, answer: Answer) -> None:
        """Minimise over B = N and the next rows of the cyclic reader (I9); it moves on by what was read (I11)."""
        clock, active, old = time.perf_counter(), self.active, len(self.active)
        searched = max(answer.looked - answer.n_new, self.options.query_rows)
        count = min(old if self._are_few(answer) else searched, old, self._most_rows())
        read = (self.reader + np.arange(count)) % max(1, old)
        self.reader = (self.reader + count) % max(1, old)
        self._take(answer)
        grown = 0.0
        if len(active):
            grown = self.blocks.solve(np.sort(np.concatenate([read, np.arange(old, len(active))])))
        self.unchecked += count
        self.worked += count
        self.idle = 0 if answer.n_new or grown > 0 else self.idle + count
        self.place = self.blocks.place
        self.solve_seconds += time.perf_counter() - clock

    def _take(self, answer: Answer) -> None:
        """S ← S ∪ N."""
        if answer.new is not None:
            self.active.add(answer.new, self.search.chunks_of(answer.new.positions))

    def _is_solved_here(self) -> bool:
        """Whether the problem (13) over S reaches ε_S, as a relative gap, or nothing moves any more."""
        clock, o, active = time.perf_counter(), self.objective, self.active
        problem, a = active.problem(o, self.loss), active.dual.copy()
        if o.intercept == "free":
            balance(a)
        slopes = problem.rows.scatter(-a)
        point, product = problem.at_with_product(o.join(*self.blocks.primal()), slopes)
        point = point.with_best_intercept(0.05 * self.tolerance)
        if self.found is not None:
            point = problem.at(self.found).towards(point, 0.05 * self.tolerance)
        self.found, self.value = point.theta, point.value
        self.bound = max(self.bound, conjugate_bound(point, slopes, product))
        self.gap, self.unchecked = relative_gap(self.value, self.bound, 0.0), 0
        self.solve_seconds += time.perf_counter() - clock
        return self.gap <= self.tolerance or self.is_stuck

    @property
    def is_stuck(self) -> bool:
        """Whether nothing of S moves any more, or all of it has been gone through as often as the solver may."""
        return self.is_idle or self.worked >= self.solver.max_passes * len(self.active)

    @property
    def is_idle(self) -> bool:
        """Whether nothing of S moves any more."""
        return self.idle >= len(self.active)

    def _query_again(self, outer: Place | None) -> Answer:
        """What is left to be found, with nothing shrunk: by a query, or among random rows (I12); it is taken into S.

        It is asked at the weights that J over S is least at, and no row is found twice. So a complete query that finds
        few of them says what J is over all rows: what it is over S then.
        """
        clock = time.perf_counter()
        assert self.found is not None
        self.move(self.found)
        if self.options.stop == "sample":
            answer = self.queries.sample(self.place, outer, math.ceil(self._sample_size()))
        else:
            answer = self.queries.ask(self.place, outer, self.options.query_rows)
        self.rest = self._rest(answer)
        self._take(answer)
        if answer.n_new:
            self.idle = 0
            self.value = self.active.problem(self.objective, self.loss).at(self.found).value
        self.search_seconds += time.perf_counter() - clock
        return answer

    def _rest(self, answer: Answer) -> Tally:
        """About what the rows that are not in S come to, when those that were just found are in it."""
        every = 1.0 if answer.complete else self.n_rows / max(1, answer.looked)
        found = Tally()
        if answer.new is not None:
            z = answer.new.block.scores(self.place[0]) + self.place[1]
            found = self.queries.tally(answer.new, z, np.arange(answer.n_new))
        return answer.tally.times(every) + found.times(-1.0)

    # When to stop (I12).

    def _measure(self) -> None:
        """J by the random rows, and n_ε = ε(1 − Acc)|D| by their accuracy, from 1 to n: who finds n may find more.

        Of numbers no accuracy is known: it is the share of rows within the tube.
        """
        pilot, z = self.pilot, self.pilot.scores(*self.place)
        low, high = self.loss.sublevel(pilot.labels, 0.0)
        wrong = pilot.labels * z <= 0 if self.loss.labels == "binary" else (z < low) | (z > high)
        rows = np.where(pilot.costs > 0, pilot.guards, 0.0)
        share, o = float(rows[wrong].sum()) / max(float(rows.sum()), 1.0), self.objective
        self.allowed = min(max(1.0, self.epsilon * share * self.n_rows), float(self.options.query_rows))
        self.estimate = o.strength * o.omega.value(self.theta[: o.n_regularized])
        self.estimate += (self.truncated or self.loss).sum(z, pilot.labels, pilot.guards * pilot.costs)

    @property
    def n_rows(self) -> int:
        """|D|."""
        return self.objective.rows.n_rows

    def _are_few(self, answer: Answer) -> bool:
        """|N| < n_ε; or |N|/n_e < n_ε/|D|, the sampling form."""
        if self.options.stop == "sample":
            return not answer.n_new or answer.n_new * self.n_rows < self.allowed * answer.looked
        return answer.n_new < self.allowed

    def _sample_size(self) -> float:
        """Random rows among which some of n_ε missing ones would be, almost surely; at least n."""
        most = max(_SURELY * self.n_rows / self.allowed, float(self.options.query_rows))
        return min(float(self.n_rows), most)

    # Memory (I21).

    def _most_rows(self) -> int:
        """M."""
        memory = self.memory
        most = self.options.block_rows or self.n_rows
        if memory is not None:
            most = min(most, max(1, memory // _BLOCK * self.n_rows // self.total_bytes))
        return most

    def _make_room(self) -> None:
        """What S grows by, chunks that were read give up; in the end rows of S go to the disk, the oldest first."""
        memory = self.memory
        if memory is None:
            return
        quota = int(_QUOTA * memory)
        least = int(_LEAST_CACHE * quota)
        if self.active.nbytes > quota - least:
            self.active.spill(quota - least)
        self.search.reader.room = max(least, quota - self.active.nbytes)

    # What is said.

    def step(self, new: int) -> Step:
        """After a query that found so many rows: J is an estimate."""
        more: dict[str, Any] = {"facts": self.facts(new), "evaluated": False, "estimate": self.estimate_in_words}
        return Step(self.theta, self.estimate, -math.inf, self.passes, **more, **self.of_outliers())
