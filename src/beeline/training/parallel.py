"""Several problems over the same rows, solved at the same time on threads."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, wait

import numpy as np

from beeline._thread_pool import DaemonThreadPool
from beeline.engines.verbs import columns
from beeline.exceptions import BeelineError
from beeline.kernels import num_threads
from beeline.objective import Objective
from beeline.solvers.base import Callback, Result, Solver, State, Status, Step, never_negative
from beeline.solvers.checkpoint import RunCheckpoint
from beeline.solvers.state import theta_of

__all__ = ["solve_in_parallel"]

Problem = tuple[Solver, Objective, State | None, RunCheckpoint | None]
# Of all problems together, that one thread is done with before others have begun.
_FEW_ENTRIES = 2**15


def solve_in_parallel(
    solvers: Sequence[Solver],
    objectives: Sequence[Objective],
    starts: Sequence[State | None],
    callback: Callback | None = None,
    time_limit: float | None = None,
    *,
    forgiving: bool = False,
    checkpoints: Sequence[RunCheckpoint | None] | None = None,
) -> list[Result]:
    """The results of several problems, each by a solver that takes it, on threads, in order; Ctrl-C stops them all.

    Parameters
    ----------
    callback
        Is called after every iteration of every problem, by one thread at a time; returning True stops them all.
    time_limit
        Seconds for all of them together; None: no limit. A problem gets its share of what is left when it begins, and
        ends with its best so far.
    forgiving
        Whether a problem whose solver fails becomes its null model, instead of ending all of them. What still ends all:
        errors that beeline raises on purpose, which tell of bad input; those of the callback; the failure of every
        problem.
    checkpoints
        Where each problem is kept on disk while it is worked on, and after; None: nowhere.
    """
    kept = [None] * len(objectives) if checkpoints is None else checkpoints
    if len(objectives) == 1:
        solver = solvers[0] if time_limit is None else solvers[0].with_time_limit(time_limit)
        return [solver.minimise(objectives[0], starts[0], callback, checkpoint=kept[0])]
    problems = list(zip(solvers, objectives, starts, kept, strict=True))
    return _Parallel(callback, time_limit, forgiving, len(objectives)).solve(problems)


class _Parallel:
    """Runs solvers on several objectives, side by side on threads.

    Ctrl-C reaches the main thread only: it raises `KeyboardInterrupt` inside every problem at its next iteration, and
    each returns its best so far. A problem that had not begun returns its start. What ends the process, as SIGTERM
    does, reaches it too: then all stop at their next iteration, and nothing is returned.
    """

    def __init__(self, callback: Callback | None, time_limit: float | None, forgiving: bool, n_problems: int) -> None:
        self.callback, self.forgiving = callback, forgiving
        self.deadline = None if time_limit is None else time.perf_counter() + time_limit
        self.waiting, self.n_threads = n_problems, min(num_threads(), n_problems)
        self.lock, self.interrupted, self.stopped = threading.Lock(), threading.Event(), threading.Event()
        self.failures: list[Exception] = []
        self.of_callback: Exception | None = None

    def solve(self, problems: Sequence[Problem]) -> list[Result]:
        """The results, in the order of the problems."""
        if any(_holds_rows(solver, objective) for solver, objective, _, _ in problems):
            self.n_threads = 1
        if sum(objective.rows.nnz for _, objective, _, _ in problems) <= _FEW_ENTRIES:
            self.n_threads = 1
            results = [self._run_here(*problem) for problem in problems]
        else:
            with DaemonThreadPool(self.n_threads) as pool:
                try:
                    futures = [pool.submit(self._run, *problem) for problem in problems]
                    self._wait(futures)
                except BaseException:  # the end of the process, for which leaving the pool would wait
                    self.stopped.set()
                    raise
            results = [future.result() for future in futures]
        if len(self.failures) == len(results):
            raise self.failures[0]
        return results

    def _wait(self, futures: list[Future[Result]]) -> None:
        try:
            wait(futures, return_when="FIRST_EXCEPTION")
        except KeyboardInterrupt:
            self.interrupted.set()
        finally:
            if any(future.done() and future.exception() for future in futures):
                self.stopped.set()

    def _run(
        self, solver: Solver, objective: Objective, start: State | None, checkpoint: RunCheckpoint | None
    ) -> Result:
        if self.interrupted.is_set() or self.stopped.is_set():
            status = Status.INTERRUPTED if self.interrupted.is_set() else Status.CALLBACK
            point = objective.at(theta_of(start))
            return Result(point.theta, point.value, -math.inf, status, 0, 0.0, 0.0, solver.name)
        try:
            watched = self.callback is not None
            return self._timed(solver).minimise(objective, start, self._step, watched=watched, checkpoint=checkpoint)
        except BeelineError:
            raise
        except Exception as error:
            if not self.forgiving or error is self.of_callback:
                raise
            self.failures.append(error)
            return _without_model(objective, solver, error)

    def _run_here(
        self, solver: Solver, objective: Objective, start: State | None, checkpoint: RunCheckpoint | None
    ) -> Result:
        """As `_run`, in the thread that Ctrl-C reaches, which goes on with the next problem."""
        try:
            result = self._run(solver, objective, start, checkpoint)
        except KeyboardInterrupt:  # before the first step
            self.interrupted.set()
            return self._run(solver, objective, start, checkpoint)
        if result.status is Status.INTERRUPTED:
            self.interrupted.set()
        return result

    def _timed(self, solver: Solver) -> Solver:
        """The solver, with the share of the time that its problem has, if there is a limit."""
        if self.deadline is None:
            return solver
        with self.lock:
            left = self.deadline - time.perf_counter()
            share = left * min(self.n_threads, self.waiting) / self.waiting
            self.waiting -= 1
        return solver.with_time_limit(max(share, 0.0))

    def _step(self, step: Step) -> bool:
        if self.interrupted.is_set():
            raise KeyboardInterrupt
        if self.callback and not self.stopped.is_set():
            with self.lock:
                try:
                    stop = self.callback(step)
                except Exception as error:
                    self.of_callback = error
                    raise
                if stop:
                    self.stopped.set()
        return self.stopped.is_set()


def _holds_rows(solver: Solver, objective: Objective) -> bool:
    """Whether a solver holds rows of its own, as many as the memory allows: then problems come one after the other."""
    return solver.needs.rows in ("blocks", "index") and objective.rows.memory is not None


def _without_model(objective: Objective, solver: Solver, error: Exception) -> Result:
    """The null model, in the place of what could not be trained."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    theta, value, bound = np.zeros(objective.size), math.nan, -math.inf
    try:
        theta, value = objective.null.theta, objective.null.value
        bound = 0.0 if never_negative(objective) else -math.inf
    except Exception:  # the loss fails at zero weights too; the mean label is at least no wild guess
        if objective.has_intercept:
            weighted, total, plain, n = objective.rows.sum(
                columns.weighted_mean, objective.labels, objective.costs
            ).value
            theta[-objective.n_outputs :] = weighted / total if total else plain / max(1, n)
    return Result(theta, value, bound, Status.FAILED, 0, 0.0, 0.0, solver.name, null=value, error=what)
