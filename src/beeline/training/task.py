"""From labels to objectives: the problems that a task stands for.

A binary task and a regression are one objective. Several classes are one objective of all their scores together with
`softmax` and `crammer_singer`, and one objective a class with `ovr` (class k against the rest). So are sets of labels,
one objective a label, and vectors without a metric. Those are solved on threads at the same time: they share the rows
and nothing else, so that the result does not depend on the number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from beeline._lazy import cached_property
from beeline._numbers import as_choice
from beeline._sentences import Argument
from beeline._types import Floats, Ints
from beeline._words import count
from beeline.data.core.dataset import Dataset
from beeline.engines import Engine, Rows, RowVector, Threads
from beeline.engines.verbs import columns
from beeline.exceptions import LabelError, ParameterError
from beeline.losses import CrammerSinger, Hinge, LevelLoss, Logistic, Loss, OneVsRest, ScalarLoss, Softmax, VectorLoss
from beeline.objective import Intercept, Objective
from beeline.regularizers import Regularizer

if TYPE_CHECKING:
    from beeline.index import StoreIndex

__all__ = ["Multiclass", "Task", "form_of_classes", "joint_loss_of", "total_weight"]

Multiclass = Literal["auto", "ovr", "softmax", "crammer_singer"]
_MULTICLASS = get_args(Multiclass)

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
    index
        An index of the data, through which the rows are opened; None: as they lie.
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
    index: StoreIndex | None = None
    opened: Rows | None = None

    def __post_init__(self) -> None:
        if not 0 < self.C < math.inf:
            raise ParameterError(Argument("C"), f" must be positive and finite, not {self.C}")
        as_choice("multiclass", self.multiclass, _MULTICLASS)
        for name, column in (("labels", self.labels), ("weights", self.sample_weight)):
            if column is not None and len(column) != self.data.n_rows:
                raise LabelError(f"{len(column):,} {name} do not match {count(self.data.n_rows, 'row')}")
        if self.loss.classifies != (self.n_classes is not None):
            wanted = "classes" if self.loss.classifies else "real targets"
            raise ParameterError(f"the loss {self.loss.name!r} is for {wanted}", parameter="loss")
        if self.loss.scope == "group" and self.groups is None:
            raise ParameterError(
                f"the loss {self.loss.name!r} is one of groups of rows; say where these begin", parameter="groups"
            )
        self._check_form()
        self._check_intercept()
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

    def _check_intercept(self) -> None:
        if isinstance(self.loss, LevelLoss) and self.intercept != "none":
            raise ParameterError(
                f"the loss {self.loss.name!r} has thresholds in the place of an intercept; take ",
                Argument("fit_intercept", False),
                ", or say nothing about it",
            )
        if self.loss.differences_only and self.intercept != "none":
            raise ParameterError(
                f"to the loss {self.loss.name!r} only differences of scores matter, which say nothing about an "
                "intercept; take ",
                Argument("fit_intercept", False),
                ", or say nothing about it",
            )

    def _check_labels(self) -> None:
        if self.loss.classifies:
            return  # which were numbered, and are what they must be
        if (self.labels.ndim == 2) != (self.loss.labels in ("sets", "vectors")):
            kind = "a matrix of labels, a column for each output" if self.labels.ndim < 2 else "one label a row"
            raise LabelError(f"the loss {self.loss.name!r} needs {kind}")
        if self.loss.labels == "none" and self.intercept == "free":
            raise ParameterError(
                f"a free intercept alone would satisfy the loss {self.loss.name!r}; take ",
                Argument("fit_intercept", False),
                ", or a regularized one",
            )
        self.loss.check_labels(self.labels)

    @cached_property
    def form(self) -> str:
        """How classes are told apart: `multiclass`, decided."""
        return form_of_classes(self.loss, self.multiclass, self.regularizer, self.n_classes)

    @cached_property
    def joint_only(self) -> bool:
        """Whether the loss says itself how classes are told apart."""
        return _says_form(self.loss)

    @cached_property
    def joint_loss(self) -> Loss | None:
        """The loss of all outputs together; None where each output has a problem of its own."""
        return joint_loss_of(self.loss, self.form)

    @property
    def costs(self) -> Floats:
        """c_i: C times the weights of the row and of its class; their mean is C where the loss is one of all rows.

        Such a loss is one number, by which J = Ω + C·l: a row that is given twice makes it no larger, nor does a weight
        of 2.
        """
        costs = np.empty(self.data.n_rows)
        costs.fill(self.C)
        if self.sample_weight is not None:
            costs *= self.sample_weight
        if self.class_weight is not None:
            costs *= np.asarray(self.class_weight, dtype=np.float64)[self.labels.astype(np.int64)]
        if self.loss.scope == "all" and (present := np.count_nonzero(costs)):
            costs *= self.C / (costs.sum() / present)
        return costs

    def _row_costs(self) -> RowVector:
        """What rows cost, where the rows are."""
        if self.sample_weight is None and self.class_weight is None:
            on_disk = self.rows.memory is not None and not self.rows.in_memory
            return self.rows.map(columns.same if on_disk else columns.constant, value=self.C)
        return self.rows.scatter(self.costs)

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
        if self.opened is not None:
            return self.opened
        return self.engine.open(self.data if self.index is None else self.index.as_rows(), self.groups)

    def objectives(self, *, together: bool = False) -> list[Objective]:
        """One objective of all outputs, or one for each; `together`: one also of classes that are told apart singly."""
        costs, common = self._row_costs(), (self.regularizer, self.strength, self.intercept)
        if together and self.joint_loss is None and self.n_classes is not None and self.n_classes > 2:
            loss, numbers = OneVsRest(self.output_loss), self.rows.scatter(self.labels.astype(np.float64))
            return [Objective(self.rows, numbers, costs, loss, *common, n_outputs=self.n_classes)]
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
            labels = np.ascontiguousarray(self.labels.T, dtype=np.float64)
            return [self.rows.scatter(column) for column in (labels if labels.ndim > 1 else [labels])]
        numbers = self.rows.scatter(self.labels)
        positive = [1] if self.n_classes <= 2 else range(self.n_classes)
        return [self.rows.map(columns.one_against_rest, numbers, k=k) for k in positive]

    def with_changes(self, **changes: Any) -> Task:  # noqa: ANN401
        """The same task over the same rows, which are not opened anew, with some things changed."""
        return replace(self, opened=self.rows, **changes)

    def with_data(self, data: Dataset) -> Task:
        """The same task over other rows, in the same order."""
        return replace(self, data=data, index=None, opened=None)


def total_weight(loss: Loss, n_rows: int, weights: Floats | None) -> float:
    """1/C where J = alpha·Ω + the weighted mean of the losses: the weight of all rows; a loss of all rows is a mean."""
    if loss.scope == "all":
        return 1.0
    return float(n_rows if weights is None else weights.sum())


def form_of_classes(loss: Loss, multiclass: Multiclass, regularizer: Regularizer, n_classes: int | None) -> str:
    """How so many classes are told apart: `multiclass`, decided; where there are none, `ovr`."""
    if _says_form(loss):
        return loss.name
    if multiclass != "auto":
        return multiclass
    several = n_classes is not None and n_classes > 2
    return "softmax" if several and isinstance(loss, Logistic) and regularizer.smooth else "ovr"


def joint_loss_of(loss: Loss, form: str) -> Loss | None:
    """The loss of all outputs together; None where each output has a problem of its own."""
    if isinstance(loss, VectorLoss):
        return loss if loss.output_loss is None else None
    if loss.scope != "row" or isinstance(loss, LevelLoss):
        return loss
    return _JOINT[form][0]() if form in _JOINT else None


def _says_form(loss: Loss) -> bool:
    return isinstance(loss, VectorLoss | LevelLoss) or loss.scope != "row"
