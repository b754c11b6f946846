"""What the estimators share that learn from rows as they come: `partial_fit`, streams, going on from a model."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _num_samples, validate_data

from beeline._sentences import Argument
from beeline._types import AnyArray, Floats
from beeline._words import count
from beeline.data.batches import gives_batches, is_arrow_stream
from beeline.data.core.arrays import from_arrays
from beeline.data.core.dataset import Dataset
from beeline.data.options import ReadOptions
from beeline.estimators.base import LinearEstimator, mixture
from beeline.estimators.callbacks import FitTask, with_callbacks
from beeline.estimators.learned import Learned
from beeline.exceptions import ModelError, ParameterError
from beeline.fitting import Settings
from beeline.fitting.fit import Fitted
from beeline.fitting.online import Online
from beeline.fitting.online_settings import ALPHA, default_strength, online_settings, settings_of_model
from beeline.fitting.stream import StreamStep, StreamTraining
from beeline.losses import Loss, get_loss, is_built_in
from beeline.model import Model
from beeline.solvers.base import Step
from beeline.solvers.registry import SolverLike
from beeline.training.concerns import warn_of

__all__ = ["OnlineEstimator", "Progress"]

_FEW = 5000  # rows, up to which "auto" has the optimum itself
_ENOUGH = 100  # passes, with which exact solvers get there
Progress = Callable[[Step | StreamStep], bool | None]


class OnlineEstimator(LinearEstimator):
    """What the stochastic classifier and regression share."""

    loss: str | Loss
    alpha: float | None
    l1_ratio: float
    shuffle: bool
    _trained: Learned

    @property
    def model_(self) -> Model:
        """The model."""
        if "_trained" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit first")
        return self._trained.model

    @model_.setter
    def model_(self, model: Model) -> None:
        self._trained = Learned(model)

    def _learned_names(self) -> tuple[str, ...]:
        online = self._trained.online if self._is_trained() else None
        by_name = online is None or is_built_in(online.settings.the_loss)  # a loss of one's own cannot be found again
        return ("results_", "_trained") if by_name else ("results_",)

    def __sklearn_is_fitted__(self) -> bool:
        return self._is_trained()

    def _is_trained(self) -> bool:
        return "_trained" in vars(self)

    def _settings(self) -> dict[str, Any]:
        loss = get_loss(self.loss)
        if loss.classifies != self._classifies:
            raise ParameterError(
                f"the loss {loss.name!r} is for {'classes' if loss.classifies else 'numbers'}; take another",
                parameter="loss",
            )
        strength = default_strength(loss) if self.alpha is None else {"alpha": self.alpha}
        return {"loss": loss, "regularizer": mixture(self.l1_ratio), **strength}

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:  # noqa: ANN401
        """Train the model, in as many passes as it takes; batches that come once are learned from once.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset, Store, iterator of batches or DataIter
            The rows. A batch is (X, y) or (X, y, weights); sparse batches may have more and more features.
        y, sample_weight
            As for other estimators; batches have their own.
        groups
            Have no meaning here.

        Returns
        -------
        self
        """
        if not _comes_once(X):
            if str(self.alpha) == "auto":
                raise ParameterError(
                    Argument("alpha", "auto"),
                    f" is nothing that {type(self).__name__} searches for; give a number, or let "
                    "LinearModel(C='auto', solver='sgd') or beeline.select_C search",
                )
            return super().fit(X, y, sample_weight, groups)
        self._refuse_beside_batches(y, sample_weight, groups)
        task = FitTask.begun(self, None, None, None)
        again = self.warm_start and self._is_trained()
        if not again:
            self.__dict__.pop("feature_names_in_", None)
        self._learn_batches(self._going_on(None) if again else self._new_online(None), X, task)
        if task is not None:
            task.end()
        if self._trained.online is not None:
            warn_of(self._trained.online.concerns)
        return self

    def _solver_for(self, X: Any) -> SolverLike:  # noqa: ANN401
        rows = X.n_rows if isinstance(X, Dataset) else _num_samples(X)
        # Where zero weights are an optimum, that is all that an exact solver would find.
        exact = rows <= _FEW and self.max_passes >= _ENOUGH and not get_loss(self.loss).zero_is_optimal
        return self.solver if self.solver != "auto" or exact else "sgd"

    def _remember(self, fitted: Fitted) -> None:
        super()._remember(fitted)
        self.alpha_ = float(settings_of_model(fitted.model).alpha or 0.0)  # also where a rule says C

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Self:  # noqa: ANN401
        if _comes_once(X):
            self._refuse_beside_batches(y, sample_weight, None)
            return self._learn_batches(self._going_on(classes), X)
        online, first = self._going_on(classes), not self._is_trained()
        data, labels = self._rows_to_add(X, y, first)
        weights = self._weights(sample_weight, data.n_rows)
        training = self._training(online)
        training.add(_batches(data, labels, weights), ReadOptions())
        return self._keep(training)

    def _rows_to_add(self, X: Any, y: Any, first: bool) -> tuple[Dataset, AnyArray | None]:  # noqa: ANN401
        """Rows and labels; as wide as those before, but sparse rows may be wider or narrower."""
        known: int | None = getattr(self, "n_features_in_", None)
        if isinstance(X, Dataset):
            if not first and X.n_features != known:
                raise ParameterError(
                    f"X has {count(X.n_features, 'feature')}, but those before have {known}", parameter="X"
                )
            return self._training_data(X, y)
        options: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
        options["y_numeric"] = not self._classifies
        if known is not None and not first and hasattr(X, "tocsr") and len(X.shape) == 2 and X.shape[1] != known:
            self.n_features_in_ = max(X.shape[1], known)
            X = _padded(X, self.n_features_in_)
        X, y = validate_data(self, X, y, reset=first, **options)
        return from_arrays(X, allow_nonfinite=True), y

    def _going_on(self, classes: Any) -> Online:  # noqa: ANN401
        """What goes on: from the last call, from a model, or anew."""
        if not self._is_trained():
            return self._new_online(classes)
        online = self._trained.online
        if online is None:
            online = Online.of_model(self._trained.model)
        self._refuse_changes(online.settings)
        if classes is not None and online.names is not None:
            given = np.unique(np.asarray(classes))
            if not np.array_equal(given, online.names.sorted):
                raise ParameterError(
                    Argument("classes"), f" must be those of the first call, {online.names.sorted}, not {given}"
                )
        return online

    def _new_online(self, classes: Any) -> Online:  # noqa: ANN401
        return Online(self._online_settings(), None if classes is None else np.unique(np.asarray(classes)))

    def _online_settings(self) -> Settings:
        solver = "sgd" if self.solver == "auto" else self.solver
        more = {"intercept": self._intercept(), "solver": solver, "seed": self._seed()}
        said = self._settings() | more | {"alpha": ALPHA if self.alpha is None else self.alpha}
        said.pop("C", None)
        return online_settings(said)

    def _refuse_changes(self, learned: Settings) -> None:
        """Refuse to go on where a parameter says something else than what was learned by."""
        now = self._online_settings()
        for name, values in (
            ("loss", [(s.the_loss.name, s.the_loss.settings) for s in (now, learned)]),
            ("l1_ratio", [(s.the_regularizer.l1, s.the_regularizer.l2) for s in (now, learned)]),
            ("fit_intercept", [s.the_intercept for s in (now, learned)]),
            ("class_weight", [s.class_weight for s in (now, learned)]),
        ):
            if values[0] != values[1]:
                raise ParameterError(Argument(name), " cannot change between batches; call fit to begin anew")
        if self.alpha is not None and not math.isclose(self.alpha, float(learned.alpha or 0.0), rel_tol=1e-9):
            raise ParameterError(Argument("alpha"), " cannot change between batches; call fit to begin anew")

    def _training(self, online: Online, task: FitTask | None = None) -> StreamTraining:
        watched = self.verbose or self.callback is not None or task is not None
        return StreamTraining(
            online,
            time_limit=self.time_limit,
            memory=self.memory,
            shuffle=bool(self.shuffle),
            callback=partial(self._on_stream_step, online, task) if watched else None,
        )

    def _learn_batches(self, online: Online, batches: Any, task: FitTask | None = None) -> Self:  # noqa: ANN401
        if is_arrow_stream(batches):
            raise ParameterError(
                "a stream of Arrow record batches needs to know its columns; train by beeline.fit_stream", parameter="X"
            )
        training = self._training(online, task)
        training.add(batches, ReadOptions())
        return self._keep(training)

    def _keep(self, training: StreamTraining) -> Self:
        online = training.learned
        online.refuse_without_weight()
        names = list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None
        self._trained = Learned(None, online, training.status, names)
        self.__dict__.pop("results_", None)
        self.n_features_in_ = max(online.n_features, getattr(self, "n_features_in_", 0))
        self.n_iter_ = 1
        if online.names is not None:
            self.classes_ = online.names.sorted
        return self

    def _on_stream_step(self, online: Online, task: FitTask | None, step: StreamStep) -> bool:
        if self.verbose:
            sys.stdout.write(f"{step}\n")
        ended = self.callback is not None and bool(self.callback(step))  # type: ignore[arg-type]
        return (task is not None and task.end_of("buffer", online.model)) or ended

    @staticmethod
    def _refuse_beside_batches(y: Any, sample_weight: Any, groups: Any) -> None:  # noqa: ANN401
        for name, value in (("y", y), ("sample_weight", sample_weight), ("groups", groups)):
            if value is not None:
                raise ParameterError(Argument(name), " comes with each batch: give (X, y) or (X, y, weights)")

    @classmethod
    def from_model(cls, model: Model | str | PathLike[str], **parameters: Any) -> Self:  # noqa: ANN401
        """An estimator that goes on where a model, or the file of one, has ended.

        Parameters
        ----------
        model : Model, str or path
            One of `fit_stream`, `beeline train --stream` or `partial_fit` goes on to the same bits as if it had never
            ended; any other gives its weights.
        **parameters
            Parameters that are no part of a model, such as `time_limit`.
        """
        model = model if isinstance(model, Model) else Model.load(model)
        online = Online.of_model(model)
        s, ratio = online.settings, {"l1": 1.0, "l2": 0.0}
        said = {
            "loss": s.the_loss if s.the_loss.settings else s.the_loss.name,
            "alpha": s.alpha,
            "l1_ratio": ratio.get(s.the_regularizer.name, s.the_regularizer.l1),
            "fit_intercept": {"free": True, "none": False}.get(s.the_intercept, s.the_intercept),
            "solver": s.solver if online.task.options.given else "auto",
            "random_state": s.seed,
        }
        again = cls(**said | cls._said_of_classes(online) | parameters)
        if again._classifies != (model.classes is not None):
            raise ModelError(f"a {model.kind} model is none for {cls.__name__}")
        again._trained = Learned(model, online, feature_names=model.feature_names)
        again.n_features_in_, again.n_iter_ = model.n_features, 1
        if model.feature_names is not None:
            again.feature_names_in_ = np.array(model.feature_names, dtype=object)
        if model.classes is not None:
            again.classes_ = model.classes
        return again

    @staticmethod
    def _said_of_classes(online: Online) -> dict[str, Any]:
        return {}


def _comes_once(X: object) -> bool:
    return gives_batches(X) or is_arrow_stream(X)


def _batches(data: Dataset, labels: AnyArray | None, weights: Floats | None) -> Any:  # noqa: ANN401
    """The rows of a data set as batches."""
    row = 0
    for block in data.blocks(data.memory):
        rows = slice(row, row + block.n_rows)
        y = block.labels if labels is None else labels[rows]
        yield block, y, block.weights if weights is None else weights[rows]
        row = rows.stop


def _padded(X: Any, width: int) -> Any:  # noqa: ANN401
    """Sparse rows with so many columns."""
    wide = X.tocsr().copy()
    wide.resize((wide.shape[0], width))
    return wide
