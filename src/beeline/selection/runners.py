"""All folds at one C after the other: in lockstep where the problem is smooth, side by side on threads elsewhere.

C lies inside the strength: J/C = Ω(w)/C + Σ c_i l_i. A warm start, (13) in the primal and (14) in the dual, is then a
start from the same numbers, and what a fold knows of its losses stays known.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from beeline._lazy import cached_property
from beeline._sentences import Argument
from beeline._types import Floats
from beeline.data.core.memory import available_memory
from beeline.data.options import size_in_words
from beeline.engines import RowVector
from beeline.engines.verbs import columns
from beeline.exceptions import ParameterError
from beeline.kernels import dot
from beeline.losses import VectorLoss
from beeline.objective import Objective, Point
from beeline.objective.residual_correlation import feature_spreads, residual_correlation
from beeline.selection.folds import Fold
from beeline.selection.rescaling import Rescaling
from beeline.solvers.auto import choose_solver
from beeline.solvers.base import Result, Solver, State, Status, relative_gap
from beeline.solvers.newton.lockstep import ByGradient, ByPredictedDecrease, Ending, LockstepNewton
from beeline.solvers.registry import SolverLike
from beeline.training.indexing import without_index
from beeline.training.parallel import solve_in_parallel
from beeline.training.run import Trained, counts_by_difference, extra_of, outputs_of
from beeline.training.task import Task
from beeline.training.threshold import best_thresholds

__all__ = ["Runner", "Stopping", "make_runner"]

_LEVEL = 0.1  # of the gradient without a model, that weights which have settled may leave
_DOUBTFUL = 0.2  # of J, that a bound leaves open
_BYTES_PER_SCORE = 64  # scores, costs, slopes and curvatures of a row in one problem, and those of points to move to


@dataclass(frozen=True)
class Stopping:
    """When a fold is solved well enough.

    Attributes
    ----------
    solver
        A solver, as `choose_solver` takes it.
    tol
        The part of J that smooth losses with L2 may still promise to lose, three times that as a certified gap for
        others; or (28)'s ε, where others end at a certified gap of a tenth of it.
    by_gradient
        Whether `tol` is (28)'s ε.
    max_passes, seed
        As for solvers.
    """

    solver: SolverLike = "auto"
    tol: float = 1e-4
    by_gradient: bool = False
    max_passes: float = 1000
    seed: int = 0

    @property
    def gap(self) -> float:
        """The relative certified gap."""
        return 0.1 * self.tol if self.by_gradient else 3 * self.tol

    def ending(self, shares: Sequence[float]) -> Ending:
        """When a problem in lockstep is solved."""
        return ByGradient(self.tol, shares) if self.by_gradient else ByPredictedDecrease(self.tol)


class Runner(ABC):
    """The state of all folds: a θ for each problem, of which every fold has one an output (or one for all outputs).

    Attributes
    ----------
    passes
        Passes over the data so far.
    unsolved
        How many problems have met a limit, or could go no further, so far.
    deadline
        When to stop, by the clock of `time.perf_counter`; None: never.
    late
        Whether the deadline has ended a training.
    stop_tols
        (24)'s ε for each problem: that of (28), so that the last values of C needed no step at all.
    """

    stop_tols: list[float]

    def __init__(self, problems: list[list[Objective]], folds: Sequence[Fold], strength: float) -> None:
        self.problems, self.folds, self.strength = problems, folds, strength
        self.tests = [o[0].rows.scatter(fold.test) for o, fold in zip(problems, folds, strict=True)]
        self.passes, self.unsolved = 0.0, 0
        self.deadline: float | None = None
        self.late = False

    @property
    def flat(self) -> list[Objective]:
        """All problems, fold after fold."""
        return [objective for fold in self.problems for objective in fold]

    @property
    @abstractmethod
    def points(self) -> list[Point]:
        """Where each problem is."""

    @abstractmethod
    def go(self, C: float) -> tuple[float, bool]:
        """Solve all problems at C, from where they are.

        Returns
        -------
        tuple
            The largest stop ratio (NaN at the first C), and whether each is at most its ε.
        """

    def _settled(self, ratios: Sequence[float]) -> tuple[float, bool]:
        settled = all(ratio <= tol for ratio, tol in zip(ratios, self.stop_tols, strict=True))
        return max(ratios), settled

    def _time_left(self) -> float | None:
        """Seconds until the deadline, a few moments where it has passed; None: there is no limit."""
        return None if self.deadline is None else max(self.deadline - time.perf_counter(), 1e-3)

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """All that the next C is begun from, to the same bits."""

    @abstractmethod
    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go on from a snapshot; none of the costs of getting there count."""

    @abstractmethod
    def reset(self) -> None:
        """Put every problem to its model without weights."""

    @cached_property
    def spreads(self) -> Floats:
        """The spread of every feature, over all rows."""
        return feature_spreads(self.flat[0])

    @cached_property
    def row_numbers(self) -> RowVector:
        """The number of every row in the data set, for rows that lie in another order."""
        rows = self.flat[0].rows
        return rows.scatter(np.arange(rows.n_rows))

    @property
    def residual_correlation(self) -> float:
        """The largest part of its slopes that one feature explains to any problem."""
        return max(residual_correlation(point, self.spreads) for point in self.points)

    @property
    def training_loss(self) -> float:
        """The mean loss of the training rows, or of their groups, over all folds; they count by their costs."""
        total = sum(fold[0].loss_cost for fold in self.problems)
        return sum(point.loss for point in self.points) / total if total else 0.0

    def of_fold(self, k: int) -> slice:
        """The places of a fold's problems in `flat`."""
        per_fold = len(self.problems[0])
        return slice(k * per_fold, (k + 1) * per_fold)

    def held_out_scores(self, k: int) -> Floats:
        """The scores of the rows that fold k holds out, in the order of the data set, of shape (rows, outputs)."""
        points = self.points[self.of_fold(k)]
        rows = points[0].objective.rows
        found = [rows.concat(columns.picked, p.z, self.tests[k]) for p in points]
        z = np.column_stack([promise.value[0] for promise in found])
        if rows.ordered:
            z = z[np.argsort(rows.concat(columns.picked, self.row_numbers, self.tests[k]).value[0])]
        if isinstance(loss := self.flat[0].loss, VectorLoss):
            z = loss.to_classes(z)
        return z[:, 1:] - z[:, :1] if counts_by_difference(self.flat[0]) else z

    def extra(self, k: int) -> Floats:
        """The parameters that the loss owns, in fold k."""
        point = self.points[self.of_fold(k)][0]
        return point.objective.loss.in_order(point.objective.parameters.extra(point.theta))

    def thresholds(self, k: int) -> Floats:
        """The thresholds between levels in fold k: those of the loss, or those that suit the rows it trains on."""
        extra = self.extra(k)
        return extra if len(extra) else best_thresholds(self.points[self.of_fold(k)][0])

    def mean_outputs(self) -> Trained:
        """The mean over the folds of their weights, intercepts and more: where training on all rows may begin."""
        fold, size = self.problems[0], len(self.problems[0])
        # Outputs are linear in θ; to put them side by side costs more than to add vectors: once, not for each fold.
        thetas = [_mean([point.theta for point in self.points[output::size]]) for output in range(size)]
        return Trained(*outputs_of(fold, thetas), [], extra=extra_of(fold, thetas))


class _InLockstep(Runner):
    """Smooth losses with L2: Newton's method, one pass for all."""

    def __init__(self, task: Task, folds: Sequence[Fold], stopping: Stopping, rescaling: Rescaling | None) -> None:
        whole = task.objectives()
        problems = [_held_in(whole, fold) for fold in folds]
        super().__init__(problems, folds, task.strength)
        self.kinds = [kind for _ in folds for kind in range(len(whole))]
        self.affine = rescaling.affine(folds, len(whole)) if rescaling else None
        self.stopping = stopping
        self.shares = [_smallest_class(o) for o in self.flat]
        self.stop_tols = [stopping.tol * share for share in self.shares]
        self.reset()

    def reset(self) -> None:
        self.newton = LockstepNewton(self.flat, self.kinds, self.stopping.ending(self.shares), self.affine)
        self.begun = False

    @property
    def points(self) -> list[Point]:
        return self.newton.points

    def go(self, C: float) -> tuple[float, bool]:
        before = self.newton.passes if self.begun else 0.0
        ratios = self.newton.set_strength(self.strength / C)
        settled = (self.stopping.by_gradient or max(ratios) <= _LEVEL) and not self.newton.unsolved
        verdict = (max(ratios), settled) if self.begun else (np.nan, False)
        self.begun = True
        self.newton.deadline = self.deadline
        ended = self.newton.solve(self.stopping.max_passes)
        self.unsolved += ended
        self.late = self.newton.late
        self.passes += self.newton.passes - before
        if ended:
            return verdict
        if self.affine is None:
            self._help(sorted({*self.newton.stuck, *self._doubtful()}))
        else:
            self.unsolved += len(self.newton.stuck)  # no other solver sees the features as the problem does
        return verdict

    def _doubtful(self) -> list[int]:
        """The problems that no bound confirms: what they promised by a Hessian that others share may be false.

        A bound is weaker than a promise, and that of several free intercepts needs the best ones.
        """
        if self.flat[0].n_outputs > 1:
            return []
        return [k for k, p in enumerate(self.newton.points) if relative_gap(p.value, p.bound, 0.0) > _DOUBTFUL]

    def _help(self, those: Sequence[int]) -> None:
        """Let a solver of its own go on with each problem that could not be solved with the others, or may not be.

        One that is only doubtful has kept its promise where that solver comes to a bound and has hardly lowered J.
        """
        tol = self.stopping.tol
        for k in those:
            point = self.newton.points[k]
            if k not in self.newton.stuck:
                result = self._alone(point.objective, point.theta, _DOUBTFUL)
                if point.value - result.objective <= tol * abs(point.value):
                    continue
                point = point.objective.at(result.theta)
            self.newton.move(k, self._alone(point.objective, point.theta, self.stopping.gap).theta)

    def _alone(self, objective: Objective, theta: Floats, tol: float) -> Result:
        """One problem, solved by itself from a start."""
        settings = {"tol": tol, "max_passes": self.stopping.max_passes, "seed": self.stopping.seed}
        solver = choose_solver(objective, self.stopping.solver, **settings)  # type: ignore[arg-type]
        result = solver.with_time_limit(self._time_left()).run(objective, theta)
        self.passes += result.passes + 2
        self.unsolved += solver.concern(result) is not None
        return result

    def snapshot(self) -> dict[str, Any]:
        return self.newton.snapshot()

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        self.reset()
        self.newton.restore(snapshot)
        self.begun = True


class _InParallel(Runner):
    """Whatever a solver can train: folds on threads, each from its last point."""

    def __init__(self, task: Task, folds: Sequence[Fold], stopping: Stopping, rescaling: Rescaling | None) -> None:
        problems = [self._of(task, fold, rescaling) for fold in folds]
        super().__init__(problems, folds, task.strength)
        self.by_gradient = self.flat[0].loss.smooth and self.flat[0].regularizer.smooth
        shares = [_smallest_class(o) if self.by_gradient else 1.0 for o in self.flat]
        self.solvers = self._solvers(
            replace(stopping, tol=stopping.tol * min(shares)) if stopping.by_gradient else stopping
        )
        self.stop_tols = [stopping.tol * share for share in shares]
        self.reset()

    @staticmethod
    def _of(task: Task, fold: Fold, rescaling: Rescaling | None) -> list[Objective]:
        return _held_in((task.with_data(rescaling.dataset(fold)) if rescaling else task).objectives(), fold)

    def _solvers(self, stopping: Stopping) -> list[Solver]:
        """One for all problems over the same rows, of which it may keep a copy."""
        made: dict[int, Solver] = {}
        for o in self.flat:
            if id(o.rows) not in made:
                settings = {"tol": stopping.gap, "max_passes": stopping.max_passes, "seed": stopping.seed}
                made[id(o.rows)] = choose_solver(o, stopping.solver, **settings)  # type: ignore[arg-type]
        return [made[id(o.rows)] for o in self.flat]

    def reset(self) -> None:
        self._points = [o.at_null() for o in self.flat]
        self.starts: list[State | None] = [None for _ in self.flat]
        self.begun = False
        if self.by_gradient:
            self.norms_at_zero = [point.gradient_norm for point in self._points]

    @property
    def points(self) -> list[Point]:
        return self._points

    def go(self, C: float) -> tuple[float, bool]:
        before = self._points
        objectives = [o.with_strength(self.strength / C) for o in self.flat]
        ratios = self._gradient_ratios(self.strength / C) if self.by_gradient else []
        left = self._time_left()
        solvers = [solver.with_time_limit(left) for solver in self.solvers]
        results = solve_in_parallel(solvers, objectives, self.starts, time_limit=left)
        if any(result.status is Status.INTERRUPTED for result in results):
            raise KeyboardInterrupt
        self.late = any(result.status is Status.TIME for result in results)
        self.unsolved += sum(s.concern(result) is not None for s, result in zip(solvers, results, strict=True))
        self.passes += sum(result.passes for result in results)
        self.starts = [result.state for result in results]
        self._points = [o.at(result.theta) for o, result in zip(objectives, results, strict=True)]
        self.passes += len(results)
        if not self.by_gradient:
            ratios = [_change(*pair) for pair in zip(before, self._points, strict=True)]
        begun, self.begun = self.begun, True
        if not begun:
            return np.nan, False
        ratio, settled = self._settled(ratios)
        # A gradient is that of the largest features; the certified gap sees all of them.
        at_once = not self.by_gradient or all(result.iterations <= 1 for result in results)
        return ratio, settled and at_once

    def _gradient_ratios(self, strength: float) -> list[float]:
        """(24): the gradient of the next objective where this one ended; one pass for each problem."""
        norms = [point.with_strength(strength).gradient_norm for point in self._points]
        self.passes += len(norms)
        return [norm / zero if zero else 0.0 for norm, zero in zip(norms, self.norms_at_zero, strict=True)]

    def snapshot(self) -> dict[str, Any]:
        names = "theta", "arrays", "counters", "solver"
        starts = [{name: getattr(start, name) for name in names} for start in self.starts]
        return {"thetas": [point.theta for point in self._points], "starts": starts}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        self.reset()
        self.starts = [_state(**start) for start in snapshot["starts"]]
        self._points = [o.at(np.array(theta)) for o, theta in zip(self.flat, snapshot["thetas"], strict=True)]
        self.begun = True


def _state(theta: Floats, arrays: Mapping[str, Floats], counters: Mapping[str, float], solver: str) -> State:
    """A state whose arrays are its own: those of a file cannot be changed."""
    return State(np.array(theta), {name: np.array(array) for name, array in arrays.items()}, counters, solver)


def make_runner(task: Task, folds: Sequence[Fold], stopping: Stopping, rescaling: Rescaling | None = None) -> Runner:
    """The runner for a task whose C is 1."""
    if rescaling is not None:
        task = without_index(task, stopping.solver)
    needed, memory = _BYTES_PER_SCORE * task.data.n_rows * len(folds) * _n_outputs(task), task.rows.memory
    on_disk = memory is not None and not task.rows.in_memory
    if not on_disk and needed > (free := available_memory() if memory is None else memory):
        raise ParameterError(
            f"{len(folds)} folds of {task.data.n_rows:,} rows need {size_in_words(needed)} for their scores and "
            f"{size_in_words(free)} are free; hold a part of the rows out once instead, as ",
            Argument("folds", 0.2),
            " does",
        )
    kind = _InLockstep if _can_go_in_lockstep(task, stopping.solver) else _InParallel
    return kind(task, folds, stopping, rescaling)


def _mean(arrays: Sequence[Floats]) -> Floats:
    mean = arrays[0].copy()
    for array in arrays[1:]:
        mean += array
    mean /= len(arrays)
    return mean


def _n_outputs(task: Task) -> int:
    if task.n_classes is None:
        return 1 if np.ndim(task.labels) == 1 else np.shape(task.labels)[1]
    loss = task.joint_loss
    if isinstance(loss, VectorLoss) and loss.n_scores(task.n_classes) > task.n_classes:
        return loss.n_scores(task.n_classes)
    return 1 if task.n_classes == 2 else task.n_classes


def _can_go_in_lockstep(task: Task, solver: SolverLike) -> bool:
    """Whether Newton's method is meant, with nothing said to it by itself, and can take all folds together.

    It reads all rows in every step: not where an index was opened because it pays.
    """
    if task.index is not None or not (isinstance(solver, str) and solver in ("auto", "newton")):
        return False
    loss = task.joint_loss or task.output_loss
    omega = task.regularizer
    coupled = loss.scope != "row" or loss.n_extra(_n_outputs(task)) > 0
    return loss.convex and loss.has_curvature and not coupled and omega.separable and omega.smooth and omega.l2 > 0


def _smallest_class(objective: Objective) -> float:
    """min(l₊, l₋)/l, by the costs, or the same for several classes; 1 where labels are no classes."""
    if not objective.loss.classifies:
        return 1.0
    sizes = objective.label_totals
    return float(sizes[sizes > 0].min() / sizes.sum()) if sizes.any() else 1.0


def _held_in(objectives: Sequence[Objective], fold: Fold) -> list[Objective]:
    """The objectives over the rows that a fold trains on; the others cost nothing."""
    rows = objectives[0].rows
    train = rows.scatter(fold.train)
    return [o.with_costs(rows.map(columns.held_in, o.costs, train)) for o in objectives]


def _change(before: Point, after: Point) -> float:
    """‖w − w'‖/‖w'‖, over the regularized coordinates."""
    n = before.objective.n_regularized
    size, step = _norm(after.theta[:n]), _norm(after.theta[:n] - before.theta[:n])
    return step / size if size else np.inf


def _norm(v: Floats) -> float:
    return float(np.sqrt(dot(v, v)))
