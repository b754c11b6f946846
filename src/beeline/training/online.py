"""All outputs of a model that is learned from rows as they come, with features and classes that appear later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.arrays import from_arrays
from beeline.data.core.block import Block
from beeline.exceptions import ParameterError
from beeline.losses import Loss, OneVsRest, RowLoss, ScalarLoss, VectorLoss
from beeline.objective.parameters import Intercept, Parameters
from beeline.regularizers import Regularizer
from beeline.solvers.stochastic.learner import Learner, Progress, Strengths
from beeline.solvers.stochastic.options import SGDOptions
from beeline.solvers.stochastic.rule import form_of
from beeline.training.task import Multiclass, form_of_classes, joint_loss_of

__all__ = ["OnlineOutputs", "OnlineTask"]


class OnlineTask:
    """What is learned, whatever rows come.

    Parameters
    ----------
    loss, regularizer, multiclass, intercept
        As in `Task`.
    alpha
        What multiplies Ω, where the mean of the losses is minimised.
    options
        How steps are taken.
    """

    def __init__(
        self,
        loss: Loss,
        regularizer: Regularizer,
        alpha: float,
        multiclass: Multiclass = "auto",
        intercept: Intercept = "free",
        options: SGDOptions | None = None,
    ) -> None:
        self.loss, self.regularizer, self.alpha = loss, regularizer, alpha
        self.multiclass: Multiclass = multiclass
        self.intercept: Intercept = intercept
        self.options = SGDOptions() if options is None else options
        if not regularizer.separable or regularizer.nonnegative:
            raise ParameterError(
                f"rows that come once train with L2, L1 or the elastic net, not with {regularizer!r}",
                parameter="regularizer",
            )
        strange = loss.labels in ("levels", "sets", "vectors", "none") or loss.scope != "row"
        if strange or form_of(self.loss_of(3)) is None:
            raise ParameterError(
                f"the loss {loss.name!r} has no form for rows that come once; take another, such as 'logistic', "
                "'hinge' or 'squared'",
                parameter="loss",
            )
        if self.options.given:
            raise ParameterError(
                f"{min(self.options.given)!r} has no meaning for rows that come once; leave it out", parameter="solver"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are what was said; of options there is nothing to say."""
        return OnlineTask, (self.loss, self.regularizer, self.alpha, self.multiclass, self.intercept)

    def loss_of(self, n_classes: int) -> RowLoss:
        """The loss of so many classes: of one output up to two, unless it is a joint one; 0: of numbers."""
        loss = self.loss
        if self.loss.classifies:
            joint = joint_loss_of(loss, form_of_classes(loss, self.multiclass, self.regularizer, n_classes))
            if joint is None and n_classes > 2:
                assert isinstance(loss, ScalarLoss)
                return OneVsRest(loss)
            loss = loss if joint is None else joint
        assert isinstance(loss, RowLoss)
        return loss

    def learner(self, n_features: int, n_classes: int, theta: Floats | None = None, rows: float = 0.0) -> Learner:
        """A new learner, of weights that so many rows led to."""
        loss = self.loss_of(n_classes)
        outputs = max(2, n_classes) if isinstance(loss, VectorLoss) else 1
        layout = Parameters(n_features, outputs, self.intercept)
        strengths = Strengths(self.alpha * self.regularizer.l2, self.alpha * self.regularizer.l1)
        return Learner(loss, layout, strengths, self.options, theta=theta, rows_before=rows)


class OnlineOutputs:
    """The learner of all outputs.

    Numbers and two classes have one output; more classes have one each, by a joint loss or each against the rest. A
    class that comes later begins with zero weights. When the third class comes, the weights w of two become those of
    all: ∓w/2 of each in a joint loss, ∓w against the rest; averages begin anew from there.

    Parameters
    ----------
    task
        What is learned.
    """

    def __init__(self, task: OnlineTask) -> None:
        self.task = task
        self.n_features = 0
        self.n_classes = 0
        self._learner: Learner | None = None

    @property
    def learner(self) -> Learner:
        """What learns."""
        assert self._learner is not None
        return self._learner

    @property
    def _joint(self) -> bool:
        """Whether there is an output for each class, also of two."""
        return isinstance(self.task.loss_of(self.n_classes), VectorLoss)

    def begin_from(self, weights: Floats, intercepts: Floats, n_classes: int, rows: float) -> None:
        """Go on from a model's weights, of shape (n_features, n_outputs), which so many rows led to."""
        self.n_features, self.n_classes = len(weights), n_classes
        theta = weights if self.task.intercept == "none" else np.vstack([weights, intercepts])
        if n_classes == 2 and self._joint:
            theta = np.hstack([-theta / 2, theta / 2])
        self._learner = self.task.learner(self.n_features, n_classes, theta.ravel(), rows)

    def grow(self, n_features: int, n_classes: int) -> None:
        """There are so many features and classes now, or more; numbers have no classes."""
        n_features, n_classes = max(n_features, self.n_features), max(n_classes, self.n_classes)
        before, self.n_classes = self._joint, n_classes
        self.n_features = n_features
        if self._learner is None:
            self._learner = self.task.learner(n_features, n_classes)
            return
        self._learner.grow(n_features, max(2, n_classes) if before else 1)
        if self._joint and not before:
            theta = self._learner.theta
            part = 1.0 if isinstance(self.task.loss_of(n_classes), OneVsRest) else 0.5
            every = np.zeros((len(theta), n_classes))
            every[:, 0], every[:, 1] = -part * theta, part * theta
            self._learner = self.task.learner(n_features, n_classes, every.ravel(), self._learner.rows)

    def learn(self, block: Block, labels: Floats, costs: Floats, order: Ints) -> Progress:
        """Learn from rows; labels are class numbers, or numbers."""
        signs = self.n_classes > 0 and not self._joint
        return self.learner.learn(block, 2.0 * labels - 1.0 if signs else labels, costs, order)

    def outputs(self, order: Ints) -> tuple[Floats, Floats]:
        """The weights and intercepts of a model whose classes have that order; two classes have one output."""
        layout = self.learner.layout
        w, b = layout.split(self.learner.theta)
        weights, intercepts = w.reshape(len(w), -1), b.reshape(-1)
        if not self.n_classes:
            return weights, intercepts
        if len(order) > 2:
            return np.ascontiguousarray(weights[:, order]), intercepts[order]
        if self._joint:
            first, second = order
            return weights[:, [second]] - weights[:, [first]], intercepts[[second]] - intercepts[[first]]
        sign = 1.0 if order[0] == 0 else -1.0
        return sign * weights, sign * intercepts

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles go on to the same bits; kernels themselves cannot be copied."""
        return OnlineOutputs.from_document, (self.task, self.to_document())

    def to_document(self) -> dict[str, Any]:
        """Itself as numbers, texts and arrays."""
        sizes = {"n_features": self.n_features, "n_classes": self.n_classes}
        return sizes | {"learner": None if self._learner is None else self._learner.snapshot()}

    @classmethod
    def from_document(cls, task: OnlineTask, document: Mapping[str, Any]) -> OnlineOutputs:
        """What `to_document` described, of the same task."""
        again = cls(task)
        again.n_features, again.n_classes = int(document["n_features"]), int(document["n_classes"])
        if document["learner"] is not None:
            again._check(document["learner"])
            again._learner = Learner.restored(task.loss_of(again.n_classes), document["learner"])
        return again

    def _check(self, snapshot: Mapping[str, Any]) -> None:
        """Raise `ValueError` where a snapshot is none of a learner of this size: kernels believe their arrays."""
        like = self.task.learner(self.n_features, self.n_classes)
        fresh = like.snapshot()
        if self.n_features:
            row = from_arrays(np.eye(1, self.n_features)).block
            like.learn(row, np.ones(1))
        begun = like.snapshot()
        for name in ("layout", "strengths", "horizon", "options"):
            if snapshot[name] != fresh[name]:
                raise ValueError(f"its {name} do not fit")
        if not (_is_like(snapshot["method"], begun["method"]) or _is_like(snapshot["method"], fresh["method"])):
            raise ValueError("its arrays do not fit")


def _is_like(found: Any, known: Any) -> bool:  # noqa: ANN401
    """Whether it is made of the same things: arrays of the same shapes, and numbers; what is known may be absent."""
    if found is None:
        return True
    if isinstance(known, np.ndarray):
        return isinstance(found, np.ndarray) and _is_like_array(found, known)
    if isinstance(known, Mapping):
        same = isinstance(found, Mapping) and found.keys() <= known.keys()  # one of an earlier version may know less
        return same and all(_is_like(found[name], known[name]) for name in found)
    if isinstance(known, list | tuple):
        same = isinstance(found, list | tuple) and len(found) == len(known)
        return same and all(_is_like(one, two) for one, two in zip(found, known, strict=True))
    return isinstance(found, bool | int | float | str) and isinstance(known, bool | int | float | str)


def _is_like_array(found: AnyArray, known: AnyArray) -> bool:
    if known.ndim == 1 and known.dtype.kind == "i":  # places, of any number
        return found.ndim == 1 and found.dtype.kind == "i"
    same = found.shape == known.shape and found.dtype == known.dtype
    return same and (known.ndim > 0 or bool(found == known))
