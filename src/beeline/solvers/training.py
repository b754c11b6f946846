"""From labels to weights: the objectives that a task stands for, solved side by side.

A binary task and a regression are one objective. Several classes are one objective of all their scores together with
`softmax` and `crammer_singer`, and one objective a class with `ovr` (class k against the rest). So are sets of labels,
one objective a label, and vectors without a metric. Those are solved on threads at the same time: they share the rows
and nothing else, so that the result does not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from beeline._lazy import cached_property
from beeline._sentences import Argument
from beeline._types import Floats, Ints
from beeline.data.core.dataset import Dataset
from beeline.engines import Engine, Rows, RowVector, Threads
from beeline.engines.verbs import columns
from beeline.exceptions import LabelError, ParameterError
from beeline.losses import LOSSES, CrammerSinger, Hinge, Logistic, Loss, RowLoss, ScalarLoss, Softmax, VectorLoss
from beeline.losses.checking import check_loss, settle_smoothness
from beeline.losses.tied_checking import check_tied_loss, settle_tied_smoothness
from beeline.objective import Intercept, Objective
from beeline.objective.residual_correlation import chance_correlation, feature_spreads, residual_correlation
from beeline.regularizers import Regularizer, check_regularizer
from beeline.solvers.auto import choose_solver
from beeline.solvers.base import Callback, Result, State, Status
from beeline.solvers.concerns import Concern, concerns_about, gained
from beeline.solvers.registry import SolverLike
from beeline.solvers.side_by_side import solve_side_by_side

__all__ = [
    "Multiclass",
    "Task",
    "Trained",
    "check_own_parts",
    "counts_by_difference",
    "extra_of",
    "outputs_of",
    "train",
]

Multiclass = Literal["auto", "ovr", "softmax", "crammer_singer"]
_MULTICLASS = get_args(Multiclass)

# A model that has won less of J than the first, while one feature explains more of the slopes than the second.
_LITTLE, _MUCH = 0.02, 0.1
_LABELS = 1 << 16  # among which a loss of one's own is looked at
_TIED_ROWS = 200  # of a shard, where a loss ties rows together

# The loss of all classes together that each form has, and the loss of two classes that it extends to more.
_JOINT: dict[str, tuple[type[VectorLoss], type[ScalarLoss]]] = {
    "softmax": (Softmax, Logistic),
    "crammer_singer": (CrammerSinger, Hinge),
}


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be learned, from which rows.

    Attributes
    ----------
    data, labels
        The rows, and a label a row: a class number 0 … K−1, or a real target; for a loss of sets or vectors a row of a
        matrix.
    n_classes
        K, or None where labels are no classes.
    loss, regularizer
        The loss and Ω.
    C, strength
        What multiplies every loss, and Ω.
    sample_weight, class_weight
        What multiplies the loss of each row, and of each class's rows (None: 1).
    intercept
        As in `Objective`.
    multiclass
        How several classes are told apart: `ovr`, each against the rest; `softmax` and `crammer_singer`, all in one
        problem, by the logistic loss or the hinge. `auto`: `softmax` for the logistic loss and L2 where there are more
        than two classes, `ovr` otherwise, also where no weight may be negative: of a softmax only differences of
        weights matter, which that would leave free. A loss of several scores always has one problem.
    groups
        Where groups of rows begin, and behind the last one where it ends, for a loss of groups; None: there are none.
    engine
        Who opens the data.
    opened
        The rows, where they have been opened before; None: they are, when they are needed.
    """

    data: Dataset
    labels: Floats
    n_classes: int | None
    loss: Loss
    regularizer: Regularizer
    C: float = 1.0
    strength: float = 1.0
    sample_weight: Floats | None = None
    class_weight: Floats | None = None
    intercept: Intercept = "free"
    multiclass: Multiclass = "auto"
    groups: Ints | None = None
    engine: Engine = Threads()  # noqa: RUF009 — it holds settings only
    opened: Rows | None = None

    def __post_init__(self) -> None:
        if not 0 < self.C < math.inf:
            raise ParameterError(Argument("C"), f" must be positive and finite, not {self.C}")
        if self.multiclass not in _MULTICLASS:
            raise ParameterError(
                Argument("multiclass"), f" must be one of {', '.join(_MULTICLASS)}, not {self.multiclass!r}"
            )
        for name, column in (("labels", self.labels), ("weights", self.sample_weight)):
            if column is not None and len(column) != self.data.n_rows:
                raise LabelError(f"{len(column)} {name} do not match {self.data.n_rows} rows")
        if self.loss.classifies != (self.n_classes is not None):
            wanted = "classes" if self.loss.classifies else "real targets"
            raise ParameterError(f"the loss {self.loss.name!r} is for {wanted}", parameter="loss")
        if self.loss.scope == "group" and self.groups is None:
            raise ParameterError(
                f"the loss {self.loss.name!r} is one of groups of rows; say where these begin", parameter="groups"
            )
        self._check_form()
        self._check_labels()

    def _check_form(self) -> None:
        if self.joint_only:
            if self.multiclass not in ("auto", self.loss.name):
                raise ParameterError(
                    f"the loss {self.loss.name!r} takes all classes together; leave ",
                    Argument("multiclass", self.multiclass),
                    " out",
                )
        elif self.multiclass in _JOINT and not isinstance(self.loss, _JOINT[self.multiclass][1]):
            wanted = _JOINT[self.multiclass][1].name
            raise ParameterError(
                Argument("multiclass", self.multiclass),
                f" extends the loss {wanted!r} to more classes, not {self.loss.name!r}",
            )
        if self.regularizer.nonnegative and self.n_classes == 2 and (joint := self.joint_loss):
            raise ParameterError(
                Argument("nonnegative", True),
                f" says nothing of two classes by {joint.name!r}, of whose weights only differences "
                "are kept; take a loss of one score, such as 'logistic' or 'hinge'",
            )

    def _check_labels(self) -> None:
        if self.loss.classifies:
            return  # which were numbered, and are what they must be
        if (np.ndim(self.labels) == 2) != (self.loss.labels in ("sets", "vectors")):
            kind = "a matrix of labels, a column for each output" if np.ndim(self.labels) < 2 else "one label a row"
            raise LabelError(f"the loss {self.loss.name!r} needs {kind}")
        if self.loss.labels == "none" and self.intercept == "free":
            raise ParameterError(
                f"a free intercept alone would satisfy the loss {self.loss.name!r}; take ",
                Argument("fit_intercept", False),
                ", or a regularized one",
            )
        self.loss.check_labels(self.labels)

    @property
    def form(self) -> str:
        """How classes are told apart: `multiclass`, decided."""
        if self.joint_only:
            return self.loss.name
        if self.multiclass != "auto":
            return self.multiclass
        several = self.n_classes is not None and self.n_classes > 2
        return "softmax" if several and isinstance(self.loss, Logistic) and self.regularizer.smooth else "ovr"

    @property
    def joint_only(self) -> bool:
        """Whether the loss says itself how classes are told apart."""
        return isinstance(self.loss, VectorLoss) or self.loss.scope != "row"

    @property
    def joint_loss(self) -> Loss | None:
        """The loss of all outputs together; None where each output has a problem of its own."""
        if isinstance(self.loss, VectorLoss):
            return self.loss if self.loss.output_loss is None else None
        if self.loss.scope != "row":
            return self.loss
        return _JOINT[self.form][0]() if self.form in _JOINT else None

    @property
    def costs(self) -> Floats:
        """c_i: C times the weights of the row and of its class."""
        costs = np.empty(self.data.n_rows)
        costs.fill(self.C)
        if self.sample_weight is not None:
            costs *= self.sample_weight
        if self.class_weight is not None:
            costs *= np.asarray(self.class_weight, dtype=np.float64)[self.labels.astype(np.int64)]
        return costs

    @property
    def output_loss(self) -> ScalarLoss:
        """The loss of each output where each has a problem of its own."""
        loss = self.loss.output_loss if isinstance(self.loss, VectorLoss) else self.loss
        if not isinstance(loss, ScalarLoss):
            raise ParameterError(f"{self.loss!r} is not a loss of one score a row", parameter="loss")
        return loss

    @cached_property
    def rows(self) -> Rows:
        """The rows, as the engine has opened them."""
        return self.opened if self.opened is not None else self.engine.open(self.data, self.groups)

    def objectives(self) -> list[Objective]:
        """One objective of all outputs, or one for each."""
        costs, common = self.rows.scatter(self.costs), (self.regularizer, self.strength, self.intercept)
        if (joint := self.joint_loss) is not None:
            labels = np.ascontiguousarray(self.labels, dtype=np.float64)
            if joint.labels == "binary":
                labels = 2.0 * labels - 1.0  # from the numbers of two classes
            columns_of_labels = labels.shape[1] if labels.ndim > 1 else 1
            n_outputs = joint.n_scores(columns_of_labels if self.n_classes is None else self.n_classes)
            return [Objective(self.rows, self.rows.scatter(labels), costs, joint, *common, n_outputs=n_outputs)]
        first, *others = self._columns()
        if others and self.output_loss.n_extra(1):
            raise ParameterError(
                f"{self.loss!r} owns parameters, which outputs that have a problem each cannot share", parameter="loss"
            )
        objective = Objective(self.rows, first, costs, self.output_loss, *common)
        return [objective, *(objective.with_labels(column) for column in others)]

    def _columns(self) -> list[RowVector]:
        """The labels of each problem of one score."""
        if self.n_classes is None:
            matrix = np.asarray(self.labels, dtype=np.float64)
            each = matrix.T if matrix.ndim > 1 else [matrix]
            return [self.rows.scatter(np.ascontiguousarray(column)) for column in each]
        numbers = self.rows.scatter(self.labels)
        positive = [1] if self.n_classes <= 2 else range(self.n_classes)
        return [self.rows.map(columns.one_against_rest, numbers, k=k) for k in positive]

    def with_changes(self, **changes: Any) -> Task:  # noqa: ANN401
        """The same task over the same rows, which are not opened anew, with some things changed."""
        return replace(self, opened=self.rows, **changes)

    def with_data(self, data: Dataset) -> Task:
        """The same task over other rows, in the same order."""
        return replace(self, data=data, opened=None)


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
        """What happened, in words; of several problems, the one farthest from its optimum."""
        worst = max(self.results, key=lambda result: result.gap)
        among = f"of {len(self.results)} problems, the worst " if len(self.results) > 1 else ""
        return f"{among}{worst.sentence}"


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
    """
    objectives = task.objectives()
    check_own_parts(objectives[0])
    chosen = choose_solver(objectives[0], solver, tol=tol, max_passes=max_passes, seed=seed, warm=start is not None)
    chosen = chosen.with_time_limit(time_limit)
    results = solve_side_by_side(
        [chosen] * len(objectives), objectives, _starts(objectives, start), callback, time_limit, forgiving=True
    )
    hardly = not searched and _hardly_learned(objectives, results)
    concerns = concerns_about(chosen, results, task.loss, names, hardly=hardly, free=_is_free(task, results))
    thetas = [result.theta for result in results]
    return Trained(*outputs_of(objectives, thetas), results, tuple(concerns), extra_of(objectives, thetas))


def _hardly_learned(objectives: list[Objective], results: list[Result]) -> bool:
    """Whether no problem has gained anything to speak of, and one feature alone could tell much of what is left."""
    if any(result.status is not Status.CONVERGED or gained(result) > _LITTLE for result in results):
        return False
    o, result = objectives[0], results[0]
    correlation = residual_correlation(o.at(result.theta), feature_spreads(o))
    return correlation > max(_MUCH, chance_correlation(o))


def _is_free(task: Task, results: list[Result]) -> bool:
    """Whether zero weights cost nothing, though labels differ: whatever there is to know, the loss does not ask."""
    if task.loss.labels == "none" or any(result.null or result.objective for result in results):
        return False
    counts = task.labels if task.sample_weight is None else task.labels[task.sample_weight > 0]
    return bool(np.ptp(counts, axis=0).any())


def check_own_parts(objective: Objective) -> None:
    """Look at a loss, or Ω, that is none of the library's before it is trusted; find out whether the loss is smooth."""
    if not objective.regularizer.separable:
        check_regularizer(objective.regularizer, objective.rows.n_features)
    loss = objective.loss
    if type(loss) in LOSSES.values():
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
    return p.extra(thetas[0]).copy() if p.n_extra else None


def outputs_of(objectives: list[Objective], thetas: list[Floats]) -> tuple[Floats, Floats]:
    """The weights and intercepts of all outputs, as `Trained` has them, from a θ for each objective."""
    if len(objectives) == 1 and objectives[0].n_outputs == 1:
        w, b = objectives[0].split(thetas[0])
        return w.reshape(-1, 1).copy(), b.reshape(1).copy()
    split = [o.split(theta) for o, theta in zip(objectives, thetas, strict=True)]
    weights, intercepts = np.column_stack([w for w, _ in split]), np.hstack([b for _, b in split])
    if counts_by_difference(objectives[0]):
        weights, intercepts = weights[:, 1:] - weights[:, :1], intercepts[1:] - intercepts[:1]
    return weights, intercepts


def counts_by_difference(objective: Objective) -> bool:
    """Whether there are two scores, of two classes: which is the larger one follows from the difference."""
    loss = objective.loss
    return objective.n_outputs == 2 and isinstance(loss, VectorLoss) and loss.labels == "classes"


def _starts(objectives: list[Objective], start: Trained | Sequence[State] | None) -> Sequence[State | None]:
    """A state for each problem."""
    if start is None:
        return [None] * len(objectives)
    if isinstance(start, Trained):
        return [State(theta) for theta in _thetas(objectives, start)]
    if len(start) != len(objectives):
        raise ParameterError(
            f"a start must have a state for each of {len(objectives)} problems, not {len(start)}", parameter="start"
        )
    return start


def _thetas(objectives: list[Objective], start: Trained) -> list[Floats]:
    """θ of each problem from the weights of all outputs."""
    first = objectives[0]
    if first.regularizer.nonnegative:
        start = replace(start, weights=np.maximum(start.weights, 0.0))
    halves = np.array([-0.5, 0.5]) if counts_by_difference(first) else None
    outputs = first.n_outputs if first.n_outputs > 1 and halves is None else len(objectives)
    if start.weights.shape != (shape := (first.rows.n_features, outputs)):
        raise ParameterError(
            f"a start must have weights of shape {shape}, not {start.weights.shape}", parameter="start"
        )
    if first.n_outputs == 1:
        return [o.join(start.weights[:, k], start.intercepts[k], start.extra) for k, o in enumerate(objectives)]
    if halves is not None:
        return [first.join(start.weights * halves, start.intercepts * halves)]
    return [first.join(start.weights, start.intercepts, start.extra)]
