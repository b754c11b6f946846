"""All problems of a task, solved: `train`, and what it gives.

Three layers mean to train. `fitting.fit` is what estimators and commands call: from data and settings to a model.
`train` solves all problems of a task, one an output or one for all, and says what there is to doubt. `Solver.run`
solves one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np

from beeline._types import Floats
from beeline._words import count
from beeline.engines.verbs import columns, values
from beeline.exceptions import ParameterError
from beeline.losses import LOSSES, LevelLoss, RowLoss, ScalarLoss, Truncated, VectorLoss, is_built_in
from beeline.losses.checking import check_loss, settle_smoothness
from beeline.losses.ordinal import from_level_columns, level_columns
from beeline.losses.tied_checking import check_tied_loss, settle_tied_smoothness
from beeline.objective import Objective
from beeline.objective.residual_correlation import chance_correlation, feature_spreads, residual_correlation
from beeline.regularizers import check_regularizer
from beeline.solvers.auto import choose_solver
from beeline.solvers.base import Callback, Result, Solver, State, Status, Step
from beeline.solvers.checkpoint import RunCheckpoint
from beeline.solvers.registry import SolverLike, the_solver
from beeline.solvers.result import rows_outside
from beeline.training.checkpoint import TrainingCheckpoint, fingerprint
from beeline.training.concerns import Concern, concern_about_scale, concerns_about, gained
from beeline.training.parallel import solve_in_parallel
from beeline.training.task import Task

__all__ = ["Trained", "check_own_parts", "counts_by_difference", "extra_of", "outputs_of", "train"]

# A model that has won less of J than the first, while one feature explains more of the slopes than the second.
_LITTLE, _MUCH = 0.02, 0.1
# Losses whose rows have a curvature or none: from the mean of folds Newton's method has many of them to sort anew.
_CURVED_IN_PARTS = frozenset(("squared_hinge", "squared_epsilon_insensitive"))
_LABELS = 1 << 16  # among which a loss of one's own is looked at
_NO_ROWS = np.zeros(0)
_TIED_ROWS = 200  # of a shard, where a loss ties rows together


@dataclass(frozen=True, eq=False)
class Trained:
    """The weights that were found, and how.

    Attributes
    ----------
    weights, intercepts
        Of shape (n_features, n_outputs) and (n_outputs,); one output for two classes and for a regression of numbers.
    results
        What the solver says, for each problem that it solved.
    concerns
        What there is to warn of.
    extra
        The parameters that the loss owns; None where it owns none.
    """

    weights: Floats
    intercepts: Floats
    results: list[Result]
    concerns: tuple[Concern, ...] = ()
    extra: Floats | None = None

    @property
    def sentence(self) -> str:
        """What happened, in words; of several problems, the one farthest from its optimum, and rows OUT of any."""
        worst = max(self.results, key=lambda result: result.distance)
        if len(self.results) == 1:
            return worst.sentence
        outside = rows_outside(self.results)
        in_all = "" if outside is None else f"; beyond the cap in any of them: {count(len(outside), 'row')}"
        return f"of {len(self.results)} problems, the worst {worst.sentence}{in_all}"


def train(  # noqa: PLR0913
    task: Task,
    solver: SolverLike = "auto",
    *,
    tol: float = 1e-4,
    max_passes: float = 1000,
    time_limit: float | None = None,
    seed: int = 0,
    callback: Callback | None = None,
    start: Trained | Sequence[State] | None = None,
    names: Sequence[object] | None = None,
    searched: bool = False,
    checkpoint: TrainingCheckpoint | None = None,
) -> Trained:
    """Learn the task, without a warning.

    Of several problems, one that fails by an error of the numbers does not take the others with it: it gets the best
    intercept alone, and there is a concern. Bad input still raises.

    Parameters
    ----------
    solver, tol, max_passes, seed
        As in `choose_solver`.
    time_limit
        Seconds for all problems together; None: no limit. Each gets its share of what is left when it begins.
    callback
        Is called after every iteration of every problem, by one thread at a time; returning True stops them all.
    start
        An earlier result for the same outputs, to begin from; or a state for each problem, as results have it.
    names
        The classes by their names, for concerns.
    searched
        Whether C was found by a search, which knows better whether another one would tell more.
    checkpoint
        Where to keep each problem while it is worked on, and to go on from where it is there already; None: nowhere.
    """
    objectives = _problems(task, solver)
    check_own_parts(objectives[0])
    near = start is not None and not (searched and objectives[0].loss.name in _CURVED_IN_PARTS)
    chosen = choose_solver(objectives[0], solver, tol=tol, max_passes=max_passes, seed=seed, warm=near)
    chosen = chosen.with_time_limit(time_limit)
    starts = _starts(objectives, start)
    kept = None if checkpoint is None else _checkpoints(checkpoint, task, chosen, objectives, starts, renew=searched)
    results = solve_in_parallel(
        [chosen] * len(objectives),
        objectives,
        starts,
        _told_outputs(callback, objectives),
        time_limit,
        forgiving=True,
        checkpoints=kept,
    )
    hardly = not searched and _hardly_learned(objectives, results)
    concerns = concerns_about(chosen, results, task.loss, names, hardly=hardly, free=_is_free(task, results))
    small = (o for o, result in zip(objectives, results, strict=True) if _has_small_labels(o, result))
    concerns += [concern_about_scale(o.loss, o.natural_width) for o in islice(small, 1)]
    thetas = [result.theta for result in results]
    return Trained(*outputs_of(objectives, thetas), results, tuple(concerns), extra_of(objectives, thetas))


def _told_outputs(callback: Callback | None, objectives: list[Objective]) -> Callback | None:
    """The callback, whose steps know their weights and intercepts where there is one problem."""
    if callback is None or len(objectives) > 1:
        return callback

    def told(step: Step) -> bool | None:
        thetas = [step.theta]
        return callback(replace(step, outputs=lambda: (*outputs_of(objectives, thetas), extra_of(objectives, thetas))))

    return told


def _problems(task: Task, solver: SolverLike) -> list[Objective]:
    """Those of the task; for a solver that learns classes together, one of all of them where it takes it."""
    meant = the_solver(solver)
    if meant is not None and meant.learns_classes_together:
        together = task.objectives(together=True)
        return together if meant.takes(together[0]) else task.objectives()
    return task.objectives()


def _checkpoints(
    checkpoint: TrainingCheckpoint,
    task: Task,
    solver: Solver,
    objectives: list[Objective],
    starts: Sequence[State | None],
    *,
    renew: bool,
) -> list[RunCheckpoint]:
    """A checkpoint for each problem; `renew`: another search may have found another C, whose training gives way."""
    checkpoint.begin(fingerprint(task, solver, objectives[0], starts), renew=renew)
    if checkpoint.tell is not None and not solver.resumes(objectives[0]):
        checkpoint.tell(
            f"{solver.name} keeps nothing on the way to this optimum: where training is ended, problems that are "
            "solved stay so, and others begin anew"
        )
    return [checkpoint.run(number) for number in range(len(objectives))]


def _hardly_learned(objectives: list[Objective], results: list[Result]) -> bool:
    """Whether no problem has gained anything to speak of, and one feature alone could tell much of what is left."""
    at_an_end = (Status.CONVERGED, Status.UNPROVEN)  # of others it is said what they are short of
    if any(result.status not in at_an_end or gained(result) > _LITTLE for result in results):
        return False
    o, result = objectives[0], results[0]
    correlation = residual_correlation(o.at(result.theta), feature_spreads(o))
    return correlation > max(_MUCH, chance_correlation(o))


def _has_small_labels(o: Objective, result: Result) -> bool:
    """Whether a robust loss is least squares at all rows, with weights and without: its scale is not the labels'."""
    if not isinstance(o.loss, ScalarLoss) or o.loss.lets_go(_NO_ROWS, _NO_ROWS) is None:
        return False
    if not result.null > 0 or result.status is Status.FAILED:
        return False
    # The first costs no pass, and is mostly enough.
    return not any(
        o.rows.sum(values.letting_go, point().z, o.labels, o.costs, loss=o.loss).value[0]
        for point in (o.at_null, partial(o.at, result.theta))
    )


def _is_free(task: Task, results: list[Result]) -> bool:
    """Whether zero weights cost nothing, though labels differ: whatever there is to know, the loss does not ask.

    Of queries, whether labels differ or not: they have to do so within a query.
    """
    if task.loss.labels == "none" or any(result.null or result.objective for result in results):
        return False
    if task.loss.scope == "group" and task.loss.differences_only:
        return True
    counts = task.labels if task.sample_weight is None else task.labels[task.sample_weight > 0]
    return bool(np.ptp(counts, axis=0).any())


def check_own_parts(objective: Objective) -> None:
    """Look at a loss, or Ω, that is none of the library's before it is trusted; find out whether the loss is smooth."""
    if not objective.regularizer.separable:
        check_regularizer(objective.regularizer, objective.rows.n_features)
    loss = objective.loss
    if is_built_in(loss):
        return
    if isinstance(loss, Truncated):
        check_own_parts(objective.with_loss(loss.loss))
        return
    if loss.name in LOSSES:
        raise ParameterError(f"the library has a loss {loss.name!r}; give {loss!r} another name", parameter="loss")
    for kind in type(loss).__mro__:
        if kind in LOSSES.values() and kind.value_and_grad is not type(loss).value_and_grad:  # type: ignore[attr-defined]
            raise ParameterError(
                f"{loss!r} has a value_and_grad of its own, which the rest of {kind.__name__} does not fit; derive it "
                f"from {'VectorLoss' if isinstance(loss, VectorLoss) else 'ScalarLoss'}",
                parameter="loss",
            )
    if objective.couples_rows:
        _check_tied(objective)
        return
    assert isinstance(loss, RowLoss)
    most = -(-_LABELS // objective.rows.n_shards)
    (labels,) = objective.rows.concat(columns.sample, objective.labels, most=most).value
    check_loss(loss, labels, objective.n_outputs)
    settle_smoothness(loss, labels, objective.n_outputs)


def _check_tied(objective: Objective) -> None:
    """Look at a loss that ties rows together, by the first groups of each shard."""
    o = objective
    labels, sizes = o.rows.concat(columns.first_groups, o.labels, most=_TIED_ROWS).value
    starts = np.append(0, np.cumsum(sizes)) if o.loss.scope == "group" else np.array([0, len(labels)])
    check_tied_loss(o.loss, labels, starts, o.n_outputs)
    settle_tied_smoothness(o.loss, labels, starts, o.n_outputs)


def extra_of(objectives: list[Objective], thetas: list[Floats]) -> Floats | None:
    """The parameters that the loss owns, as `Trained` has them."""
    p = objectives[0].parameters
    if not p.n_extra:
        return None
    return objectives[0].loss.in_order(p.extra(thetas[0]).copy())


def outputs_of(objectives: list[Objective], thetas: list[Floats]) -> tuple[Floats, Floats]:
    """The weights and intercepts of all outputs, as `Trained` has them, from a θ for each objective."""
    first = objectives[0]
    if isinstance(first.loss, LevelLoss):
        thresholds = extra_of(objectives, thetas)
        thresholds = np.zeros(first.loss.n_levels - 1) if thresholds is None else thresholds
        return level_columns(first.split(thetas[0])[0].reshape(-1, 1), thresholds)
    if len(objectives) == 1 and first.n_outputs == 1:
        w, b = first.split(thetas[0])
        return w.reshape(-1, 1).copy(), b.reshape(1).copy()
    split = [o.split(theta) for o, theta in zip(objectives, thetas, strict=True)]
    weights, intercepts = np.column_stack([w for w, _ in split]), np.hstack([b for _, b in split])
    if isinstance(first.loss, VectorLoss):
        weights, intercepts = first.loss.to_classes(weights), first.loss.to_classes(intercepts[None])[0]
    if counts_by_difference(first):
        weights, intercepts = weights[:, 1:] - weights[:, :1], intercepts[1:] - intercepts[:1]
    return weights, intercepts


def counts_by_difference(objective: Objective) -> bool:
    """Whether there are two scores, of two classes: which is the larger one follows from the difference."""
    loss = objective.loss
    return objective.n_classes == 2 and isinstance(loss, VectorLoss) and loss.labels == "classes"


def _starts(objectives: list[Objective], start: Trained | Sequence[State] | None) -> Sequence[State | None]:
    """A state for each problem."""
    if start is None:
        return [None] * len(objectives)
    if isinstance(start, Trained):
        return [State(theta) for theta in _thetas(objectives, start)]
    if len(start) != len(objectives):
        raise ParameterError(
            f"a start must have a state for each of {count(len(objectives), 'problem')}, not {len(start)}",
            parameter="start",
        )
    return start


def _thetas(objectives: list[Objective], start: Trained) -> list[Floats]:
    """θ of each problem from the weights of all outputs."""
    first = objectives[0]
    if first.regularizer.nonnegative:
        start = replace(start, weights=np.maximum(start.weights, 0.0))
    if isinstance(first.loss, LevelLoss):
        _check_start(start, first, 1 if first.loss.n_levels == 2 else first.loss.n_levels)
        return [first.join(from_level_columns(start.weights), extra=start.extra)]
    halves = np.array([-0.5, 0.5]) if counts_by_difference(first) else None
    outputs = first.n_classes if first.n_outputs > 1 and halves is None else len(objectives)
    _check_start(start, first, outputs)
    if first.n_outputs == 1:
        return [o.join(start.weights[:, k], start.intercepts[k], start.extra) for k, o in enumerate(objectives)]
    weights, intercepts = start.weights, start.intercepts
    if halves is not None:
        weights, intercepts = weights * halves, intercepts * halves
    if isinstance(first.loss, VectorLoss):
        weights, intercepts = first.loss.from_classes(weights), first.loss.from_classes(intercepts[None])[0]
    return [first.join(weights, intercepts, start.extra)]


def _check_start(start: Trained, objective: Objective, outputs: int) -> None:
    if start.weights.shape != (shape := (objective.rows.n_features, outputs)):
        raise ParameterError(
            f"a start must have weights of shape {shape}, not {start.weights.shape}", parameter="start"
        )
