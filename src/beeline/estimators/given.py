"""Rows and labels as the estimators are given them: what scikit-learn would check, and what data sets have inside."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from beeline._sentences import Sentence
from beeline._types import AnyArray, Floats
from beeline._words import quoted
from beeline.data.core.arrays import from_arrays, is_array
from beeline.data.core.dataset import Dataset
from beeline.data.core.labels import LabelSets, refuse_missing
from beeline.data.files.finding import names_files
from beeline.data.tables.frames import from_frame, is_frame
from beeline.exceptions import DataError, LabelError
from beeline.fitting.settings import Settings
from beeline.kernels import value_range
from beeline.losses import LevelLoss, Loss
from beeline.metrics import accuracy, r2
from beeline.model import Model

__all__ = [
    "check_classes",
    "check_given_labels",
    "extra_columns",
    "in_given_order",
    "own_labels",
    "plain_rows",
    "read_frame",
    "refuse_files",
    "rows_errors",
    "score_of_several",
]


def plain_rows(X: Any, y: Any) -> Dataset | None:  # noqa: ANN401
    """The rows, if scikit-learn would take both arrays as they are: its look takes longer than small trainings."""
    if type(X) is not np.ndarray or type(y) is not np.ndarray:
        return None
    if X.ndim != 2 or y.ndim != 1 or len(X) != len(y) or not X.size or not (X.dtype.isnative and y.dtype.isnative):
        return None
    if X.dtype.char not in "fd" or (y.dtype.kind not in "biu" and y.dtype.char not in "fd"):
        return None
    if y.dtype.kind == "f" and not _are_finite(value_range(np.ascontiguousarray(y))):
        return None
    data = from_arrays(X, allow_nonfinite=True)
    return data if data.value_range is not None and _are_finite(data.value_range) else None


def read_frame(frame: Any) -> Dataset:  # noqa: ANN401
    """The rows of a frame as `beeline.read` gives them; what has to be said about it is said there."""
    try:
        return from_frame(frame)
    except DataError as error:
        said = error.args[0]
        if not (isinstance(said, Sentence) and said.argument):
            raise
        where = ": these are arguments of beeline.read(frame, …), which gives a data set that fit takes"
        raise DataError(Sentence(said, where)) from error


def refuse_files(X: Any) -> None:  # noqa: ANN401
    """Raise where rows to learn from are given as files: which column has the labels is said to who reads them."""
    if names_files(X):
        raise DataError(
            f"fit takes rows and not names of files; read them first: fit(beeline.read({quoted(X)}, label='NAME')), "
            "or take beeline.convert for a store on disk"
        )


@contextmanager
def rows_errors(X: Any) -> Iterator[None]:  # noqa: ANN401
    """Where scikit-learn cannot take rows: why, by row and column."""
    try:
        yield
    except ValueError as error:
        said = str(error)
        if is_frame(X):
            read_frame(X)
        elif said.startswith("could not convert string to float"):
            raise DataError(
                f"X holds something that is not a number ({said}); columns of text become indicators where X is a data "
                "frame"
            ) from error
        elif said.startswith("Input X contains"):
            how = ", as scikit-learn's SimpleImputer does in a pipeline" if "NaN" in said else ""
            try:
                from_arrays(X if is_array(X) else np.asarray(X))
            except DataError as flaw:
                raise DataError(f"{flaw}{how}") from error
        raise


@contextmanager
def extra_columns(X: Any, names: AnyArray | None) -> Iterator[None]:  # noqa: ANN401
    """Where scikit-learn refuses a frame for columns that fit has not seen: how to leave them out."""
    try:
        yield
    except ValueError as error:
        given: Any = getattr(X, "column_names", getattr(X, "columns", ()))  # of Arrow, or of pandas and polars
        if names is not None and is_frame(X) and set(names) < set(given):
            raise ValueError(f"{str(error).rstrip()}\nLeave such columns out with extra='ignore'.") from error
        raise


def _are_finite(ends: tuple[float, float]) -> bool:
    return math.isfinite(ends[0]) and math.isfinite(ends[1])


def score_of_several(model: Model, y: AnyArray, predicted: AnyArray, weights: Floats | None) -> float:
    """The part of the sets that are predicted, or the mean of R² over the numbers of a row."""
    if y.shape != predicted.shape:
        raise LabelError(f"y must have the shape {predicted.shape}, not {y.shape}")
    if model.multilabel:
        return accuracy(np.ones(len(y), bool), (y == predicted).all(axis=1), weights)
    columns = zip(y.astype(np.float64).T, predicted.T, strict=True)
    return float(np.mean([r2(np.ascontiguousarray(a), np.ascontiguousarray(b), weights) for a, b in columns]))


def own_labels(data: Dataset) -> Floats:
    """The labels inside a data set, one a row."""
    labels = data.labels
    if labels is None or isinstance(labels, LabelSets):
        raise LabelError("the data have no single label a row; pass y")
    return labels


def check_given_labels(y: Any, estimator: object, *, several: bool) -> None:  # noqa: ANN401
    """Raise where rows have no label, or several for an estimator of one.

    About infinite labels scikit-learn has its own sentence, which its checks ask for.
    """
    labels = np.asarray(y)
    refuse_missing(labels, infinite=False)
    if not several and labels.ndim == 2 and labels.shape[1] > 1:
        raise LabelError(
            f"y has {labels.shape[1]} columns, and {type(estimator).__name__} learns one label a row; for several "
            "numbers a row take MultiTaskRegressor, for sets of labels LinearModel('multilabel_logistic')"
        )


def in_given_order(settings: Settings, y: Any) -> Settings:  # noqa: ANN401
    """Levels that are categories of pandas' in an order come in that, where nobody names them; all but unused ones."""
    loss, kind = settings.the_loss, getattr(y, "dtype", None)
    if not isinstance(loss, LevelLoss) or loss.levels is not None or not getattr(kind, "ordered", False):
        return settings
    used = set(np.asarray(y).tolist())
    levels = [level for level in kind.categories.tolist() if level in used]  # type: ignore[union-attr]
    return replace(settings, loss=loss.with_levels(levels)) if len(levels) > 1 else settings


def check_classes(y: AnyArray, loss: Loss) -> None:
    """As scikit-learn looks at them; labels that cannot be compared get a sentence of ours, named levels are let be."""
    if isinstance(loss, LevelLoss) and loss.levels is not None:
        return
    try:
        check_classification_targets(y)
    except TypeError:
        raise LabelError("labels of different types cannot be told apart; make them all numbers or all texts") from None
    except ValueError as error:
        if isinstance(loss, LevelLoss) and y.dtype.kind == "f":
            how = "Where such numbers are levels, name all of them, the lowest first: levels=[0.5, 1, 1.5]."
            raise LabelError(f"{error} {how}") from None
        raise
