"""A model that learns from rows as they come: `Online`, its state and its model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from beeline import __version__
from beeline._numbers import as_number
from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray, Floats
from beeline._words import count, percentage
from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset
from beeline.data.core.magnitude import refuse_large_targets, refuse_large_values
from beeline.data.core.memory import available_memory
from beeline.data.options import size_in_words
from beeline.data.recipe.recipe import Recipe
from beeline.exceptions import CorruptModelError, DataError, LabelError, ModelError, ModelWarning, ParameterError
from beeline.fitting.class_names import ClassNames
from beeline.fitting.online_settings import settings_of_model, settings_of_record
from beeline.fitting.settings import Settings
from beeline.links import Link
from beeline.losses import Softmax, get_loss
from beeline.model import Model, Report
from beeline.solvers.registry import the_solver
from beeline.solvers.stochastic.learner import Progress
from beeline.solvers.stochastic.sgd import SGD, words_for_drowned
from beeline.training.baseline import Baseline
from beeline.training.concerns import Concern, concern_about_rows
from beeline.training.online import OnlineOutputs, OnlineTask
from beeline.training.task import form_of_classes

__all__ = ["Online", "ProgressPoint"]

_KIND, _VERSION = "online", 1
_NUMBERS_A_WEIGHT = 4  # that a learner holds


class ProgressPoint(NamedTuple):
    """What progressive validation has said of some rows, each scored before it was learned from.

    Attributes
    ----------
    rows
        How many rows had been learned from after them.
    loss, error
        The means over them of the loss and of wrong classes, by their costs; the error of numbers is NaN.
    """

    rows: int
    loss: float
    error: float


@dataclass(eq=False)
class Online:
    """What has been learned from rows so far, and goes on with more.

    Minimises alpha·Ω(w) + the mean of weight_i·l_i over all rows that come. Features and classes may appear later: they
    have had zero weights until then.

    With `class_weight="balanced"` a row of class k counts n/(K·n_k) times, where n and n_k are the weights of the rows
    so far, those that are being learned from included, and K is the number of classes so far: what was learned from
    earlier rows is not weighed anew.

    Parameters
    ----------
    settings
        As `online_settings` gives them.
    classes
        Where labels are classes, those that are known from the beginning; None: they become known.

    Attributes
    ----------
    rows
        How many rows were learned from.
    total, recent
        Progressive validation of all rows, and of those since the last point of the trace.
    trace
        A point whenever there were twice as many rows as at the last one.
    """

    settings: Settings
    classes: AnyArray | None = None
    rows: int = 0
    cost: float = 0.0
    total: Progress = Progress(0.0, 0.0, 0.0)  # noqa: RUF009 — it is a tuple
    recent: Progress = Progress(0.0, 0.0, 0.0)  # noqa: RUF009
    trace: list[ProgressPoint] = field(default_factory=list)

    def __post_init__(self) -> None:
        s = self.settings
        assert isinstance(s.alpha, float | int)
        solver = the_solver(s.solver)
        assert isinstance(solver, SGD)
        self.task = OnlineTask(
            s.the_loss, s.the_regularizer, float(s.alpha), s.multiclass, s.the_intercept, solver.options
        )
        self.names = ClassNames(self.classes, closed=self.classes is not None) if s.the_loss.classifies else None
        self.outputs = OnlineOutputs(self.task)
        self.baseline = Baseline(self.task)
        if self.names is None:
            for name, unset in (("class_weight", None), ("multiclass", "auto")):
                if getattr(s, name) != unset:
                    raise ParameterError(Argument(name), " has no meaning for a regression; leave it out")
        elif isinstance(s.class_weight, Mapping):
            for name, weight in s.class_weight.items():
                if not 0 <= as_number("class_weight", weight, f" of {name!r}") < np.inf:
                    raise ParameterError(
                        Argument("class_weight"), f" of {name!r} must be finite and not negative, not {weight}"
                    )

    @property
    def n_features(self) -> int:
        """How many features there were so far."""
        return self.outputs.n_features

    def number(self, labels: AnyArray, texts: tuple[str, ...] | None = None, before: int = 0) -> Floats:
        """Labels as numbers of classes, of which new ones become known, or as the numbers that they are.

        Parameters
        ----------
        labels, texts
            Labels, or the numbers of texts.
        before
            How many rows come before, that were not learned from yet; for messages.
        """
        if self.names is not None:
            return self.names.number(labels, texts, self.rows + before)
        if texts is not None:
            raise LabelError(f"the labels are texts such as {texts[0]!r}; a regression needs numbers")
        try:
            numbers = np.asarray(labels, np.float64)
        except (TypeError, ValueError):
            raise LabelError(f"the label {labels[0]!r} is no number; a regression needs numbers") from None
        refuse_large_targets(numbers)
        self.settings.the_loss.check_labels(numbers)
        return numbers

    def learn(self, block: Block, labels: Floats, *, shuffle: bool = True) -> Progress:
        """Learn from rows whose labels are numbers.

        By default their order is random, as the seed and the number of rows before tell.
        """
        refuse_large_values(ArrayDataset(block))
        n = block.n_rows
        costs = self._costs(block, labels)
        order = np.random.default_rng([self.settings.seed, self.rows]).permutation(n) if shuffle else np.arange(n)
        n_classes = 0 if self.names is None else len(self.names)
        self._check_size(block.n_features, n_classes)
        self.outputs.grow(block.n_features, n_classes)
        found = self.outputs.learn(block, labels, costs, order)
        self.rows += n
        self.total, self.recent = self.total + found, self.recent + found
        self.baseline.add(labels, costs, found, n_classes)
        if self.rows >= 2 * (self.trace[-1].rows if self.trace else 0):
            self.trace.append(self.point(self.recent))
            self.recent = Progress(0.0, 0.0, 0.0)
            self.baseline.begin_window()
        return found

    def point(self, sums: Progress) -> ProgressPoint:
        """Means of sums."""
        loss, errors, weight = sums
        if not weight > 0:
            return ProgressPoint(self.rows, math.nan, math.nan)
        return ProgressPoint(self.rows, loss / weight, errors / weight if self.names is not None else math.nan)

    def _costs(self, block: Block, labels: Floats) -> Floats:
        """What each row costs, in units of the mean cost of all rows so far."""
        weights = block.weights
        costs = np.ones(block.n_rows) if weights is None else np.array(weights, np.float64)
        if self.names is not None:
            self.names.count(labels, weights)
            if (each := self._class_weights()) is not None:
                costs *= each[labels.astype(np.int64)]
        if weights is None and self.settings.class_weight is None:
            self.cost += block.n_rows
            return costs
        self.cost += float(costs.sum())
        mean = self.cost / (self.rows + block.n_rows)
        return costs / mean if mean > 0 else costs

    def refuse_without_weight(self) -> None:
        """Raise where no row so far has a weight, or those of one class alone have any."""
        weights = self.settings.class_weight
        if self.names is not None and isinstance(weights, Mapping) and len(self.names) > 1:
            weighty = [name for name in self.names.names if weights.get(name, 1.0) > 0]
            if len(weighty) < 2:
                raise ParameterError(
                    Argument("class_weight"),
                    " leaves fewer than two classes a weight; a classifier needs at least two",
                )
        if not self.cost > 0:
            raise DataError("all sample weights are zero: there is nothing to learn from")

    def _class_weights(self) -> Floats | None:
        assert self.names is not None
        chosen = self.settings.class_weight
        if chosen is None:
            return None
        if isinstance(chosen, Mapping):
            return np.array([float(chosen.get(name, 1.0)) for name in self.names.names])
        return self.names.balanced()

    def _check_size(self, n_features: int, n_classes: int) -> None:
        """Refuse, in a sentence, what would not fit in memory."""
        if n_features <= self.n_features and n_classes <= self.outputs.n_classes:
            return
        size = 8 * _NUMBERS_A_WEIGHT * max(n_features, self.n_features) * (n_classes if n_classes > 2 else 1)
        if size > available_memory():
            sentence = Sentence(
                f"{n_features:,} features would take {size_in_words(size)} of memory for their weights, more than "
                "there is; number features without gaps, or read LIBSVM text with ",
                Argument("hash"),
            )
            raise DataError(sentence)

    # The model, and going on.

    def model(
        self,
        *,
        recipe: Recipe | None = None,
        feature_names: list[str] | None = None,
        status: str = "unproven",
        seconds: float = 0.0,
    ) -> Model:
        """The model so far, with the state by which it goes on."""
        s, names = self.settings, self.names
        if not self.rows:
            raise DataError("there were no rows to learn from")
        self.refuse_without_weight()
        if names is not None and len(names) < 2:
            raise LabelError(
                f"the rows have only one class so far, {names.names[0]}; a classifier needs at least two classes"
            )
        if names is not None:
            self.outputs.grow(self.n_features, len(names))  # Ctrl-C may have come before new ones were learned from
        weights, intercepts = self.outputs.outputs(np.zeros(0, np.int64) if names is None else names.order())
        if recipe is not None and recipe.columns is None and recipe.hash_bits is None:
            recipe = replace(recipe, n_features=len(weights))
        settings = self._said()
        if names is not None:
            settings["multiclass"] = form_of_classes(s.the_loss, s.multiclass, s.the_regularizer, len(names))
        return Model(
            weights=weights,
            intercepts=intercepts,
            classes=None if names is None else names.sorted,
            loss=s.the_loss.name,
            loss_settings=s.the_loss.settings,
            link=self._link(),
            feature_names=feature_names or (None if recipe is None else recipe.feature_names),
            recipe=recipe,
            settings=settings,
            report=self._report(status, seconds),
            state=self.to_document(),
            version=__version__,
        )

    def _link(self) -> Link:
        link = self.settings.the_loss.link
        if self.names is None or link == "none":
            return link
        return (
            "softmax" if isinstance(self.task.loss_of(len(self.names)), Softmax) and len(self.names) > 2 else "logistic"
        )

    def _report(self, status: str, seconds: float) -> Report:
        return Report(
            sentence=self.sentence(status),
            status=status,
            solver=SGD.name,
            objective=None,
            gap=None,
            passes=1.0,
            iterations=len(self.trace),
            seconds=seconds,
            n_rows=self.rows,
            concerns=tuple(concern.sentence for concern in self.concerns),
        )

    def sentence(self, status: str = "unproven") -> str:
        """What is known of the model, in words: no certificate, but progressive validation and its trend."""
        ends = {"time": "reached its time limit", "interrupted": "was interrupted", "callback": "was stopped"}
        said = f"{ends.get(status, 'ended')} after {count(self.rows, 'row')} without a certificate"
        last, before = self.point(self.recent), self.trace[-1] if self.trace else None
        if not self.recent.weight > 0 and len(self.trace) > 1:
            last, before = self.trace[-1], self.trace[-2]
        every = self.point(self.total)
        if not self.total.weight > 0:  # it goes on from a model, with no row so far
            return said
        if self.names is None:
            said += f"; rows before they were learned from: mean loss {every.loss:.4g}"
            return said if math.isnan(last.loss) else f"{said}, of the last {last.loss:.4g}"
        by_weight = ", by weight" if self.cost != self.rows else ""
        said += f"; rows before they were learned from{by_weight}: "
        said += f"{percentage(every.error)} wrong, mean loss {every.loss:.4g}"
        if before is None or math.isnan(last.loss):
            return said
        return f"{said}; of the last {percentage(last.error)}, {last.loss:.4g}"

    @property
    def concerns(self) -> list[Concern]:
        """Class weights of classes that never came, features that are lost, and a model that is worth nothing."""
        return [*self._stray_weights(), *self._doubts_of_worth()]

    def _stray_weights(self) -> list[Concern]:
        weights = self.settings.class_weight
        if self.names is None or not isinstance(weights, Mapping):
            return []
        stray = [str(name) for name in weights if name not in self.names.names]
        said = f"class_weight names classes that no row had: {', '.join(stray)}"
        return [Concern(said, ModelWarning)] if stray else []

    def _doubts_of_worth(self) -> list[Concern]:
        drowned = self.outputs.learner.drowned
        found = [Concern(words_for_drowned(drowned), ModelWarning)] if drowned else []
        if (short := self.baseline.shortfall(self.outputs.n_classes)) is not None:
            found.append(concern_about_rows(self.settings.the_loss, *short, known=drowned > 0))
        return found

    def to_document(self) -> dict[str, Any]:
        """All that it goes on from: numbers, texts and arrays."""
        weights = self.settings.class_weight
        return {
            "kind": _KIND,
            "version": _VERSION,
            "rows": self.rows,
            "cost": self.cost,
            "total": list(self.total),
            "recent": list(self.recent),
            "trace": [list(point) for point in self.trace],
            "names": None if self.names is None else self.names.to_document(),
            "multiclass": self.settings.multiclass,
            "class_weight": [list(pair) for pair in weights.items()] if isinstance(weights, Mapping) else weights,
            "outputs": self.outputs.to_document(),
            "baseline": self.baseline.to_document(),
        }

    @classmethod
    def of_model(cls, model: Model) -> Online:
        """What goes on from a model: from its state, or from its weights alone where it has none."""
        settings = settings_of_model(model)
        again = cls(settings)
        if model.state is None:
            again._begin_from(model)
        else:
            again._restore_checked(model.state)
        return again

    def to_record(self) -> dict[str, Any]:
        """Itself as numbers, texts and arrays: its state, and the settings that a model has beside it."""
        loss = self.settings.the_loss
        said = {"loss": loss.name, "loss_settings": loss.settings, "said": self._said()}
        return said | {"state": self.to_document()}

    def _said(self) -> dict[str, Any]:
        """The settings that mean something here; the seed is that of the rows' order, in which a solver has no say."""
        said = self.settings.to_json() | {"seed": int(self.settings.seed)}
        return {name: value for name, value in said.items() if name not in ("tol", "max_passes")}

    @classmethod
    def of_record(cls, loss: str, loss_settings: Mapping[str, Any], said: Mapping[str, Any], state: Any) -> Online:  # noqa: ANN401
        """What `to_record` described."""
        again = cls(settings_of_record(get_loss(loss, **loss_settings), said, state))
        again._restore_checked(state)
        return again

    def _restore_checked(self, document: Mapping[str, Any]) -> None:
        try:
            self._restore(document)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CorruptModelError(f"the model has a state that makes no sense: {error}") from error

    def _restore(self, document: Mapping[str, Any]) -> None:
        if document["kind"] != _KIND or document["version"] > _VERSION:
            raise ModelError("the model was trained by a newer beeline; update beeline to go on")
        self.rows, self.cost = int(document["rows"]), float(document["cost"])
        self.total, self.recent = Progress(*document["total"]), Progress(*document["recent"])
        self.trace = [ProgressPoint(int(rows), *point) for rows, *point in document["trace"]]
        if document["names"] is not None:
            self.names = ClassNames.from_document(document["names"])
        self.outputs = OnlineOutputs.from_document(self.task, document["outputs"])
        if self.outputs.n_classes != (0 if self.names is None else len(self.names)):
            raise ValueError("its classes do not fit")
        if "baseline" in document:  # the first states had none
            self.baseline.restore(document["baseline"])

    def _begin_from(self, model: Model) -> None:
        """The weights of a model that was trained in another way; its rows count as learned from."""
        self.rows = model.report.n_rows if model.report is not None else 1
        self.cost = float(self.rows)
        n_classes = 0
        if model.classes is not None:
            self.names, n_classes = ClassNames(model.classes), len(model.classes)
        self.outputs.begin_from(model.weights, model.intercepts, n_classes, float(self.rows))
