"""The trained model: scores, classes and probabilities from rows.

Conventions
-----------
- z = Xw + b, one column an output. Two classes and regression have one output, K > 2 classes have K; so have vectors
  of K numbers and sets of K labels.
- Two classes: a positive score means `classes[1]`. More: the class of the largest score, the first one of several.
- Nothing here learns. Rows go through block by block, so that a data set may be larger than memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray, Floats, Ints
from beeline._words import count, label_text, shortened
from beeline.data.core.arrays import from_arrays, is_array
from beeline.data.core.block import Block, concatenate
from beeline.data.core.dataset import ArrayDataset, Dataset
from beeline.data.files.finding import as_paths, names_files
from beeline.data.options import Extra, ReadOptions
from beeline.data.reader import warn_of_passed_over
from beeline.data.recipe.recipe import Column, Recipe
from beeline.data.tables.frames import from_frame, is_frame
from beeline.exceptions import DataError, ModelError, ParameterError
from beeline.kernels import absolute_sum
from beeline.links import Link, class_numbers, label_probabilities, probabilities, values
from beeline.model.report import Report

__all__ = ["Link", "Model", "Rows"]

# The links that each kind of model may have.
_LINKS: dict[str, tuple[Link, ...]] = {
    "binary": ("none", "logistic", "softmax", "platt"),
    "multiclass": ("none", "logistic", "softmax", "cumulative", "platt"),
    "multilabel": ("none", "logistic"),
    "regression": ("none", "logistic", "exp"),
}

Rows: TypeAlias = Block | Dataset | Any
"""A block, a data set, a NumPy array, a SciPy matrix, a data frame or Arrow table, or files: a path, a URI, a folder,
or several of them."""

_MEMORY = 64 << 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """A linear model.

    Attributes
    ----------
    weights
        w, of shape (n_features, n_outputs).
    intercepts
        b, one an output; zeros where there is none.
    classes
        What the classes or labels are called, sorted: numbers or texts; levels in an order of their own in that order.
        None: a regression.
    loss, loss_settings
        The loss it was trained by and the loss's own settings.
    link
        How scores become probabilities, or the values of a regression: exp(z), or 1/(1 + exp(−z)) for `logistic`.
    multilabel
        Whether a row has any number of the `classes` as its labels: those with a positive score.
    platt
        A and B an output, of shape (n_outputs, 2), when the link is `platt`: p = 1/(1 + exp(Az + B)).
    extra
        The parameters that the loss owns; None where it owns none. Scores do not depend on them.
    feature_names
        One name a feature, or None when features have only numbers.
    recipe
        How raw rows become the rows that this model takes, or None when it was trained on plain arrays.
    settings
        What the training was asked for, as plain JSON.
    report
        What the training says about itself.
    state
        What training goes on from, as numbers, texts and arrays in lists and dictionaries; None: it cannot go on.
    version
        The version of beeline that trained it.
    """

    weights: Floats
    intercepts: Floats
    classes: AnyArray | None
    loss: str
    loss_settings: dict[str, Any] = field(default_factory=dict)
    link: Link = "none"
    multilabel: bool = False
    platt: Floats | None = None
    extra: Floats | None = None
    feature_names: list[str] | None = None
    recipe: Recipe | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    report: Report | None = None
    state: dict[str, Any] | None = None
    version: str = ""

    def __post_init__(self) -> None:
        if self.weights.ndim != 2 or self.intercepts.shape != self.weights.shape[1:]:
            raise ModelError(f"weights of shape {self.weights.shape} need one intercept an output")
        self._check_classes()
        if not (_are_finite(self.weights) and _are_finite(self.intercepts)):
            raise ModelError("a model must have finite weights and intercepts")
        if self.extra is not None and not (self.extra.ndim == 1 and _are_finite(self.extra)):
            raise ModelError("what a loss owns must be finite numbers, in one row")
        if self.link not in _LINKS[self.kind]:
            raise ModelError(f"a model of this kind cannot have the link {self.link!r}")
        if (self.link == "platt") != (self.platt is not None and self.platt.shape == (self.n_outputs, 2)):
            raise ModelError("Platt's probabilities need two numbers an output")
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise ModelError(f"{count(len(self.feature_names), 'name')} do not fit {count(self.n_features, 'feature')}")

    def _check_classes(self) -> None:
        if self.classes is None:
            if self.multilabel or not self.n_outputs:
                raise ModelError("a model must have classes, labels or values to predict")
            return
        n = len(self.classes)
        least, outputs = (1, n) if self.multilabel else (2, 1 if n == 2 else n)
        if n < least or self.n_outputs != outputs:
            raise ModelError(f"{n} {'labels' if self.multilabel else 'classes'} cannot have {self.n_outputs} outputs")

    def __repr__(self) -> str:
        return (
            f"Model({self.loss}, {self.kind}, {count(self.n_features, 'feature')}, {count(self.n_outputs, 'output')})"
        )

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.weights.shape[0])

    @property
    def n_outputs(self) -> int:
        """The number of scores a row."""
        return int(self.weights.shape[1])

    @property
    def kind(self) -> Literal["binary", "multiclass", "multilabel", "regression"]:
        """What it predicts."""
        if self.classes is None:
            return "regression"
        if self.multilabel:
            return "multilabel"
        return "binary" if self.n_outputs == 1 else "multiclass"

    @property
    def nonzeros(self) -> int:
        """The number of weights that are not zero."""
        return int(np.count_nonzero(self.weights))

    @property
    def has_probabilities(self) -> bool:
        """Whether scores can become probabilities."""
        return self.classes is not None and self.link != "none"

    @property
    def class_names(self) -> list[str]:
        """The classes or labels as people write them: 1, not 1.0; none for a regression."""
        return [] if self.classes is None else [label_text(name) for name in self.classes.tolist()]

    def feature_name(self, feature: int) -> str:
        """A feature's name, or its number as its source counts."""
        if self.feature_names is not None:
            return self.feature_names[feature]
        if self.recipe is not None and self.recipe.hash_bits is not None:
            return f"hash {feature}"
        return str(feature + (self.recipe.index_base if self.recipe is not None else 0))

    def output_name(self, output: int) -> str:
        """The class or label that a large score of this output speaks for, or `value`, numbered from 1 if several."""
        if self.classes is None:
            return "value" if self.n_outputs == 1 else f"value {output + 1}"
        return str(self.classes[1 if self.kind == "binary" else output])

    # From rows to answers

    def scores(self, block: Block) -> Floats:
        """z = Xw + b of shape (n_rows, n_outputs)."""
        if block.n_features > self.n_features:
            raise DataError(
                f"the rows have {count(block.n_features, 'feature')} but the model was trained on {self.n_features:,}; "
                "give it rows that were made the same way"
            )
        if not block.is_sparse and block.n_features < self.n_features:
            raise DataError(
                f"the rows have only {count(block.n_features, 'feature')} but the model was trained on "
                f"{self.n_features:,}; give it rows that were made the same way"
            )
        # Sparse rows that end early have zeros there: the text formats do not say how many features there are.
        w = self.weights[: block.n_features]
        z = block.scores(w[:, 0])[:, None] if self.n_outputs == 1 else block.scores(w)
        z += self.intercepts
        return z

    def stream(self, rows: Rows, memory: int = _MEMORY, *, extra: Extra = "error") -> Iterator[tuple[Block, Floats]]:
        """Every block of the rows with its scores; the blocks take at most `memory` bytes each."""
        if isinstance(rows, Block):
            _refuse_extra(extra)
            yield rows, self.scores(rows)
            return
        if names_files(rows):
            yield from self._stream_files(rows, memory, extra)
            return
        data = self.dataset(rows, extra=extra)
        for block in data.blocks(min(memory, data.memory or memory)):
            yield block, self.scores(block)

    def _stream_files(self, source: Any, memory: int, extra: Extra) -> Iterator[tuple[Block, Floats]]:  # noqa: ANN401
        from beeline.model.walk import Walk

        walk = Walk(self, as_paths(source), {"extra": extra}, targets=False)
        for block in walk.blocks(memory):
            yield block, self.scores(block)
        warn_of_passed_over(walk)

    def dataset(self, rows: Rows, *, targets: bool = False, extra: Extra = "error") -> Dataset:
        """The rows as a data set that this model can take; files, frames and tables go through the model's recipe.

        Parameters
        ----------
        rows
            What is to be scored.
        targets
            Whether labels and weights of files, frames and tables are wanted too; if not, their columns need not be
            there, nor make sense to the model.
        extra
            Columns of files, frames and tables that the model does not know are an error, or ignored.
        """
        if names_files(rows):
            return self._from_files(rows, targets, extra)
        if is_frame(rows):
            return self._from_frame(rows, targets, extra)
        _refuse_extra(extra)
        data = from_arrays(rows) if is_array(rows) else rows
        if not isinstance(data, Dataset):
            raise DataError(f"rows must be a block, a data set, an array, a frame or files, not {type(rows).__name__}")
        self.check_recipe(data.recipe)
        return data

    def _from_files(self, source: Any, targets: bool, extra: Extra) -> Dataset:  # noqa: ANN401
        from beeline.model.walk import Walk

        walk = Walk(self, as_paths(source), {"extra": extra}, targets=targets)
        blocks = list(walk.blocks(_MEMORY))
        if not blocks:
            raise DataError(f"{as_paths(source)[0]}: there are no rows")
        warn_of_passed_over(walk)
        return ArrayDataset(concatenate(blocks), walk.recipe)

    @property
    def table_recipe(self) -> Recipe | None:
        """The recipe, or else one that takes the columns of a table that its features are named after."""
        if self.recipe is not None or self.feature_names is None:
            return self.recipe
        columns = tuple(Column(name, "numeric", k) for k, name in enumerate(self.feature_names))
        return Recipe(n_features=len(columns), columns=columns)

    def _from_frame(self, frame: Any, targets: bool, extra: Extra) -> Dataset:  # noqa: ANN401
        recipe = self.recipe if extra == "error" else self.table_recipe
        if recipe is not None:
            return from_frame(frame, ReadOptions(recipe=recipe, targets=targets, extra=extra))
        data = from_frame(frame, ReadOptions(extra=extra))
        if self.feature_names is not None and data.feature_names != self.feature_names:
            raise DataError(
                f"the frame has the columns {shortened(data.feature_names or [])}, but the model was trained on "
                f"{shortened(self.feature_names)}; give it the same columns in the same order"
            )
        return data

    def decision_function(self, rows: Rows, *, extra: Extra = "error") -> Floats:
        """The scores: one a row, or one a row and output where there are several; `extra` as in `dataset`."""
        parts = [z for _, z in self.stream(rows, extra=extra)]
        z = np.concatenate(parts) if parts else np.empty((0, self.n_outputs))
        return z[:, 0] if self.n_outputs == 1 else z

    def predict(self, rows: Rows, *, extra: Extra = "error") -> AnyArray:
        """The class of each row, or its value or values in a regression; for sets of labels a matrix of 0 and 1.

        Parameters
        ----------
        rows, extra
            As in `dataset`.
        """
        parts = [self.answers(z) for _, z in self.stream(rows, extra=extra)]
        return np.concatenate(parts) if parts else self.answers(np.empty((0, self.n_outputs)))

    def predict_proba(self, rows: Rows, *, extra: Extra = "error") -> Floats:
        """The probability of each class or label, of shape (n_rows, classes); `extra` as in `dataset`."""
        parts = [self.probabilities(z) for _, z in self.stream(rows, extra=extra)]
        return np.concatenate(parts) if parts else self.probabilities(np.empty((0, self.n_outputs)))

    def class_numbers(self, z: Floats) -> Ints:
        """The number of the predicted class for scores of shape (n_rows, n_outputs)."""
        return class_numbers(z)

    def answers(self, z: Floats) -> AnyArray:
        """What is predicted for scores of shape (n_rows, n_outputs)."""
        if self.classes is None:
            found = self.values(z)
            return found[:, 0] if self.n_outputs == 1 else found
        return (z > 0).astype(np.int64) if self.multilabel else self.classes[self.class_numbers(z)]

    def values(self, z: Floats) -> Floats:
        """The values that scores of a regression stand for."""
        return values(z, self.link)

    def probabilities(self, z: Floats) -> Floats:
        """The probability of each class or label for scores of shape (n_rows, n_outputs)."""
        if not self.has_probabilities:
            raise ParameterError(self._why_no_probabilities(), parameter="probability")
        return label_probabilities(z) if self.multilabel else probabilities(z, self.link, self.platt)

    def _why_no_probabilities(self) -> str:
        if self.classes is None:
            return "a regression has no probabilities"
        if self.multilabel:
            return f"the loss {self.loss!r} gives scores, not probabilities; train by multilabel_logistic to have them"
        return Sentence(
            f"the loss {self.loss!r} gives scores, not probabilities; train with ",
            Argument("probability", True),
            " to have them calibrated, or by the logistic loss",
        )

    # Agreement with data

    def check_recipe(self, recipe: Recipe | None) -> None:
        """Raise `DataError` when data were made by another recipe, so that the weights mean something else."""
        if recipe is None or self.recipe is None:
            return
        for what, theirs, ours in (
            ("columns", recipe.columns, self.recipe.columns),
            ("scaling", recipe.scaling, self.recipe.scaling),
            ("numbering of features", recipe.index_base, self.recipe.index_base),
            ("hashing of features", recipe.hash_bits, self.recipe.hash_bits),
        ):
            if theirs != ours:
                raise DataError(
                    f"the data were made with another {what} than the model's; read the source by the model's recipe, "
                    "as `beeline predict` does with raw files"
                )

    def label_numbers(self, labels: AnyArray, recipe: Recipe | None = None, first_row: int = 0) -> Ints:
        """The class number of each label of a data set.

        Parameters
        ----------
        labels
            One label a row: of the same kind as `classes`, or numbers that the recipe turns into texts.
        recipe
            The data set's own recipe.
        first_row
            The number of the first row, for messages.

        Raises
        ------
        DataError
            When a label is none of the classes.
        """
        if self.classes is None:
            raise ModelError("a regression has no classes")
        texts = recipe.label_categories if recipe is not None else None
        names = labels if texts is None else np.array(texts, dtype=object)[labels.astype(np.int64)]
        if (names.dtype.kind in "OU") != (self.classes.dtype.kind in "OU"):
            kinds = ("texts", "numbers") if names.dtype.kind in "OU" else ("numbers", "texts")
            raise DataError(f"the labels are {kinds[0]} but the model's classes are {kinds[1]}")
        order = np.argsort(self.classes, kind="stable")  # levels may have an order of their own
        place = order[np.searchsorted(self.classes, names, sorter=order).clip(0, len(self.classes) - 1)]
        unknown = self.classes[place] != names
        if np.any(unknown):
            row = int(np.argmax(unknown))
            raise DataError(
                f"row {first_row + row} has the label {names[row]}, which the model has never seen; it knows "
                f"{shortened([str(name) for name in self.classes])}"
            )
        numbers: Ints = place.astype(np.int64)
        return numbers

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file; it appears under its name only when it is complete."""
        from beeline.model.file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a model; a file cannot make this run code."""
        from beeline.model.file import load

        return load(path)

    def to_liblinear(self, path: str | os.PathLike[str]) -> None:
        """Write a model file that LIBLINEAR's `predict` reads, names of features behind the weights."""
        from beeline.model.liblinear import write_liblinear

        write_liblinear(self, path)

    @classmethod
    def from_liblinear(cls, path: str | os.PathLike[str]) -> Model:
        """Read a model that LIBLINEAR's `train` wrote."""
        from beeline.model.liblinear import read_liblinear

        return read_liblinear(path)

    def to_onnx(self, path: str | os.PathLike[str], precision: Literal["float32", "float64"] = "float32") -> None:
        """Write an ONNX graph, of a table model with its columns as inputs; needs `pip install "beeline-ml[onnx]"`."""
        from beeline.model.onnx_graph import write_onnx

        write_onnx(self, path, precision)


def _are_finite(numbers: Floats) -> bool:
    return math.isfinite(absolute_sum(numbers)) or bool(np.isfinite(numbers).all())  # a sum may overflow


def _refuse_extra(extra: Extra) -> None:
    """Only tables have columns that a model may not know."""
    ReadOptions(extra=extra).refuse(("extra",), "rows without named columns")
