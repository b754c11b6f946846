"""LIBLINEAR's text models, read and written.

A header of `key value` lines, then `w` and one line a feature with one weight an output; with a bias, the last line
holds the bias weights. LIBLINEAR names the class of a positive score first. It reads as many weights as the header
says and nothing behind them, so that this is where the names of features are: a line `# feature 1 "age"` each, the name
as a JSON text.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

from beeline import __version__
from beeline._types import AnyArray, Floats
from beeline.data.files.atomic import replacing
from beeline.exceptions import FormatError, ModelError, SourceError
from beeline.links import Link
from beeline.model.exporting import unscaled
from beeline.model.model import Model

__all__ = ["is_liblinear", "read_liblinear", "write_liblinear"]

# What each of LIBLINEAR's solvers minimises: (loss, regularizer, multi-class form).
_SOLVERS = {
    "L2R_LR": ("logistic", "l2", "ovr"),
    "L2R_LR_DUAL": ("logistic", "l2", "ovr"),
    "L1R_LR": ("logistic", "l1", "ovr"),
    "L2R_L2LOSS_SVC": ("squared_hinge", "l2", "ovr"),
    "L2R_L2LOSS_SVC_DUAL": ("squared_hinge", "l2", "ovr"),
    "L1R_L2LOSS_SVC": ("squared_hinge", "l1", "ovr"),
    "L2R_L1LOSS_SVC_DUAL": ("hinge", "l2", "ovr"),
    "MCSVM_CS": ("hinge", "l2", "crammer_singer"),
    "L2R_L2LOSS_SVR": ("squared_epsilon_insensitive", "l2", "ovr"),
    "L2R_L2LOSS_SVR_DUAL": ("squared_epsilon_insensitive", "l2", "ovr"),
    "L2R_L1LOSS_SVR_DUAL": ("epsilon_insensitive", "l2", "ovr"),
}
_NO_MODEL = {"ONECLASS_SVM": "a one-class model has no counterpart here"}
_LINES = 1 << 16  # of weights at a time
_NAMES = "# feature "  # begins the line of a name


def write_liblinear(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model that LIBLINEAR's `predict` reads; a learned scaling is folded into the weights.

    LIBLINEAR predicts the same classes and values. It knows no softmax and no calibration: a softmax model is written
    as MCSVM_CS, which predicts by the largest score, and probabilities are LIBLINEAR's own.
    """
    if model.recipe is not None and model.recipe.scaling.kind == "unit-norm":
        raise ModelError("LIBLINEAR cannot scale rows to unit norm as this model needs; export it to ONNX instead")
    _refuse_what_liblinear_cannot_predict(model)
    weights, intercepts = unscaled(model)
    bias = bool(np.any(intercepts))
    with replacing(path) as temporary, temporary.open("w", encoding="ascii", newline="\n") as file:
        file.write(
            f"solver_type {_solver_type(model)}\nnr_class {2 if model.classes is None else len(model.classes)}\n"
        )
        if model.classes is not None:
            labels = _whole_numbers(model.classes)
            file.write(f"label {' '.join(map(str, labels[::-1] if model.n_outputs == 1 else labels))}\n")
        file.write(f"nr_feature {model.n_features}\nbias {1 if bias else -1}\nw\n")
        for start in range(0, len(weights), _LINES):
            file.writelines(_lines(weights[start : start + _LINES]))
        if bias:
            file.writelines(_lines(intercepts[None, :]))
        names = model.feature_names or []
        file.writelines(f"{_NAMES}{number} {json.dumps(name)}\n" for number, name in enumerate(names, 1))


def _refuse_what_liblinear_cannot_predict(model: Model) -> None:
    if model.multilabel:
        raise ModelError("LIBLINEAR knows no sets of labels; export the model to ONNX instead")
    if model.classes is None and (model.link != "none" or model.n_outputs > 1):
        what = "one number a row" if model.n_outputs > 1 else "the score itself"
        raise ModelError(f"LIBLINEAR's regressions predict {what}, unlike this one; export it to ONNX instead")


def _lines(weights: Floats) -> Iterator[str]:
    return (" ".join(map(repr, row)) + " \n" for row in weights.tolist())


def _solver_type(model: Model) -> str:
    form = model.settings.get("multiclass", "ovr")
    if model.kind == "multiclass" and form in ("crammer_singer", "softmax"):
        return "MCSVM_CS"
    wanted = (model.loss, model.settings.get("regularizer", "l2"))
    for name, (loss, regularizer, multiclass) in _SOLVERS.items():
        if (loss, regularizer, multiclass) == (*wanted, "ovr"):
            return name
    # Prediction is by the score alone, so that any solver of the same kind predicts alike.
    return "L2R_L2LOSS_SVR" if model.classes is None else "L2R_LR" if model.link == "logistic" else "L2R_L2LOSS_SVC"


def _whole_numbers(classes: AnyArray) -> list[int]:
    if classes.dtype.kind in "OU" or np.any(classes.astype(np.float64) % 1):
        raise ModelError(
            f"LIBLINEAR's labels are whole numbers, not {str(classes[0])!r}; number the labels, or export to ONNX"
        )
    return [int(label) for label in classes]


def is_liblinear(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like LIBLINEAR's models."""
    try:
        with Path(path).open("rb") as file:
            return file.read(12) == b"solver_type "
    except OSError:
        return False


def read_liblinear(path: str | os.PathLike[str]) -> Model:
    """Read a model that LIBLINEAR's `train` wrote."""
    try:
        with Path(path).open(encoding="ascii") as file:
            return _Parser(file, str(path)).model()
    except UnicodeDecodeError:
        raise FormatError("this is not a LIBLINEAR model", str(path)) from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error


class _Parser:
    def __init__(self, file: TextIO, name: str) -> None:
        self.file, self.name, self.line = file, name, 0

    def model(self) -> Model:
        header = self._header()
        solver = header.get("solver_type", "")
        if solver not in _SOLVERS:
            raise self._error(_NO_MODEL.get(solver, f"there is no LIBLINEAR solver {solver!r}"), at=1)
        loss, regularizer, form = _SOLVERS[solver]
        n_classes, n_features = self._count(header, "nr_class"), self._count(header, "nr_feature")
        bias = self._bias(header)
        labels = self._labels(header, n_classes)
        n_columns = 1 if n_classes == 2 and form == "ovr" else n_classes
        w = self._weights(n_features + (bias >= 0), n_columns)
        names = self._names(n_features)
        intercepts = bias * w[-1] if bias >= 0 else np.zeros(n_columns)
        w = w[:n_features]
        classes = None if labels is None else np.sort(labels)
        if labels is not None:
            w, intercepts = self._arranged(w, intercepts, labels)
        link: Link = "logistic" if loss == "logistic" else "none"
        settings = {"regularizer": regularizer, "multiclass": form, "solver": f"LIBLINEAR {solver}"}
        return Model(
            weights=np.ascontiguousarray(w),
            intercepts=np.ascontiguousarray(intercepts),
            classes=classes,
            loss=loss,
            link=link,
            feature_names=names,
            settings=settings,
            version=__version__,
        )

    @staticmethod
    def _arranged(w: Floats, intercepts: Floats, labels: AnyArray) -> tuple[Floats, Floats]:
        """Columns in the order of the sorted classes; a single one speaks for the larger class."""
        if len(labels) == 2:
            column, b = (
                (w[:, 0], intercepts[0]) if w.shape[1] == 1 else (w[:, 0] - w[:, 1], intercepts[0] - intercepts[1])
            )
            sign = 1.0 if labels[0] > labels[1] else -1.0
            return sign * column[:, None], np.array([sign * b])
        order = np.argsort(labels)
        return w[:, order], intercepts[order]

    def _header(self) -> dict[str, str]:
        header: dict[str, str] = {}
        for text in self.file:
            self.line += 1
            if text.strip() == "w":
                return header
            key, _, value = text.strip().partition(" ")
            if key not in {"solver_type", "nr_class", "label", "nr_feature", "bias", "rho"}:
                raise self._error(f"a LIBLINEAR model cannot have a line that begins with {key[:40]!r}")
            header[key] = value
        raise self._error("the file ends before the weights")

    def _count(self, header: dict[str, str], key: str) -> int:
        value = header.get(key, "")
        if not value.isdecimal() or not 0 < int(value) < 2**48:
            raise self._error(f"{key} must be a whole number of at least 1, not {value!r}")
        return int(value)

    def _bias(self, header: dict[str, str]) -> float:
        try:
            bias = float(header.get("bias", ""))
        except ValueError:
            bias = math.nan
        if not math.isfinite(bias):
            raise self._error(f"bias must be a number, not {header.get('bias')!r}")
        return bias

    def _labels(self, header: dict[str, str], n_classes: int) -> AnyArray | None:
        regression = "SVR" in header["solver_type"]
        if regression:
            if n_classes != 2 or "label" in header:
                raise self._error("a regression has nr_class 2 and no labels")
            return None
        try:
            labels = np.array([int(label) for label in header.get("label", "").split()])
        except (ValueError, OverflowError):
            raise self._error(f"labels must be whole numbers, not {header.get('label')!r}") from None
        if len(labels) != n_classes or len(np.unique(labels)) != n_classes:
            raise self._error(f"nr_class is {n_classes} but the labels are {header.get('label')!r}")
        if n_classes < 2:
            raise self._error("a model of a single class decides nothing")
        return labels

    def _weights(self, n_rows: int, n_columns: int) -> Floats:
        parts, rows = [], 0
        while lines := list(islice(self.file, min(_LINES, n_rows - rows))):
            parts.append(self._numbers(lines, n_columns))
            rows += len(lines)
            self.line += len(lines)
        if rows != n_rows:
            raise self._error(f"the file has weights for {rows} features, not {n_rows}")
        return np.concatenate(parts)

    def _names(self, n_features: int) -> list[str] | None:
        """The names of the features, behind the weights; None where there is nothing."""
        names: list[str] = []
        for text in self.file:
            self.line += 1
            begins = f"{_NAMES}{len(names) + 1} "
            if not text.startswith(_NAMES):
                raise self._error(f"the file goes on behind the weights for {n_features} features")
            try:
                name = json.loads(text.removeprefix(begins))
            except ValueError:
                name = None
            if not isinstance(name, str):
                raise self._error(f"this line must be {begins}and the name in quotation marks")
            names.append(name)
        if names and len(names) != n_features:
            raise self._error(f"the file has names for {len(names)} features, not {n_features}")
        return names or None

    def _numbers(self, lines: list[str], n_columns: int) -> Floats:
        for number, text in enumerate(lines, self.line + 1):
            if len(fields := text.split()) != n_columns:
                raise self._error(f"this line has {len(fields)} weights, not {n_columns}", at=number)
        try:
            weights = np.array(" ".join(lines).split(), dtype=np.float64).reshape(-1, n_columns)
        except ValueError as error:
            raise self._error(f"a weight is not a number: {error}", at=self.line + 1) from None
        if not np.isfinite(weights).all():
            row = int(np.argmin(np.isfinite(weights).all(axis=1)))
            raise self._error("a weight is not finite", at=self.line + 1 + row)
        return weights

    def _error(self, reason: str, at: int | None = None) -> FormatError:
        return FormatError(reason, self.name, self.line if at is None else at)
