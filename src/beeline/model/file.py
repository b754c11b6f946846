"""The model file: safetensors with JSON, checked by a checksum.

The arrays are tensors; what describes them is JSON. The short description (`model`) lies in the file's header, where
any safetensors tool shows it. Recipe and feature names, which may be long, are JSON too, in tensors of bytes.
`checksum` covers the description and every tensor. `docs/model-file.md` tells the whole format.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from beeline import __version__
from beeline._types import AnyArray, Floats
from beeline.data.files.documents import from_plain, to_plain
from beeline.data.files.tensors import NotTensorsError, Tensors, checksum, read_tensors, write_tensors
from beeline.data.recipe.recipe import Recipe
from beeline.exceptions import BeelineError, CorruptModelError, ModelError, ModelVersionError
from beeline.model.liblinear import is_liblinear, read_liblinear
from beeline.model.model import Model
from beeline.model.report import Report

__all__ = ["FORMAT", "VERSION", "is_model_file", "load", "load_model", "save"]

FORMAT = "beeline-model"
VERSION = 1
_STATE = "state."  # begins the names of the arrays of a state
_BEGINNING = 100  # bytes within which every model file names its format


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model, under a temporary name first."""
    tensors = _weights_to_tensors(model.weights) | {"intercepts": np.ascontiguousarray(model.intercepts)}
    if model.platt is not None:
        tensors["platt"] = np.ascontiguousarray(model.platt)
    if model.extra is not None:
        tensors["extra"] = np.ascontiguousarray(model.extra)
    if model.recipe is not None:
        tensors["recipe.json"] = _to_bytes(model.recipe.to_json())
    if model.feature_names is not None:
        tensors["feature_names.json"] = _to_bytes(model.feature_names)
    if model.state is not None:
        arrays: Tensors = {}
        tensors["state.json"] = _to_bytes(to_plain(model.state, arrays, _STATE))
        tensors |= arrays
    description = json.dumps(_describe(model), ensure_ascii=False, allow_nan=False)
    metadata = {"format": FORMAT, "version": str(VERSION), "model": description}
    metadata["checksum"] = checksum(description, tensors)
    write_tensors(path, metadata, tensors)


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model and check all of it; raises `ModelError` with one sentence when that fails."""
    path = Path(path)
    metadata, tensors = _read(path)
    if metadata.get("format") != FORMAT:
        raise ModelError(f"{path} is a safetensors file but not a beeline model")
    if not metadata.get("version", "").isdecimal() or "checksum" not in metadata or "model" not in metadata:
        raise _corrupt(path)
    if int(metadata["version"]) < 1:  # which no beeline has written
        raise _corrupt(path)
    if int(metadata["version"]) > VERSION:
        raise ModelVersionError(
            f"{path} has version {metadata['version']} of the model format and this beeline ({__version__}) knows "
            f"up to {VERSION}; update beeline"
        )
    if metadata["checksum"] != checksum(metadata["model"], tensors):
        raise _corrupt(path)
    try:
        return _build(json.loads(metadata["model"]), tensors)
    except (BeelineError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise CorruptModelError(f"{path} is not a valid model: {error}") from error
    except MemoryError:
        raise ModelError(f"{path} needs more memory than there is") from None


def load_model(path: str | os.PathLike[str]) -> Model:
    """The model of a file: beeline's own, or LIBLINEAR's text."""
    return read_liblinear(path) if is_liblinear(path) else load(path)


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins like a model; it may still be damaged."""
    try:
        with Path(path).open("rb") as file:
            return FORMAT.encode() in file.read(_BEGINNING)
    except OSError:
        return False


def _read(path: Path) -> tuple[dict[str, str], Tensors]:
    try:
        return read_tensors(path)
    except NotTensorsError as error:
        if is_model_file(path):
            raise _corrupt(path) from error
        hint = "; read it by Model.from_liblinear" if is_liblinear(path) else ""
        raise ModelError(f"{path} is not a beeline model{hint}") from error


def _corrupt(path: Path) -> CorruptModelError:
    return CorruptModelError(f"{path} was truncated or altered after it was written; train again or take a backup")


def _describe(model: Model) -> dict[str, Any]:
    return {
        "beeline": model.version or __version__,
        "kind": model.kind,
        "n_features": model.n_features,
        "n_outputs": model.n_outputs,
        "classes": None if model.classes is None else _classes_to_json(model.classes),
        "loss": model.loss,
        "loss_settings": model.loss_settings,
        "link": model.link,
        "settings": model.settings,
        "report": None if model.report is None else model.report.to_json(),
    }


def _build(record: dict[str, Any], tensors: Tensors) -> Model:
    names = json.loads(tensors["feature_names.json"].tobytes()) if "feature_names.json" in tensors else None
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ModelError("the feature names must be a list of texts")
    for name in ("settings", "loss_settings"):
        if not isinstance(record[name], dict):
            raise ModelError(f"{name} must be a JSON object")
    recipe = json.loads(tensors["recipe.json"].tobytes()) if "recipe.json" in tensors else None
    state = json.loads(tensors["state.json"].tobytes()) if "state.json" in tensors else None
    if not isinstance(state, dict | None):
        raise ModelError("the state must be a JSON object")
    return Model(
        weights=_weights_from_tensors(tensors, record["n_features"], record["n_outputs"]),
        intercepts=_floats(tensors["intercepts"]),
        classes=None if record["classes"] is None else _classes_from_json(record["classes"]),
        loss=str(record["loss"]),
        loss_settings=record["loss_settings"],
        link=record["link"],
        multilabel=record["kind"] == "multilabel",
        platt=_floats(tensors["platt"]) if "platt" in tensors else None,
        extra=_floats(tensors["extra"]) if "extra" in tensors else None,
        feature_names=names,
        recipe=None if recipe is None else Recipe.from_json(recipe),
        settings=record["settings"],
        report=None if record["report"] is None else Report.from_json(record["report"]),
        state=None if state is None else from_plain(state, tensors),
        version=str(record["beeline"]),
    )


def _weights_to_tensors(weights: Floats) -> Tensors:
    """The weights as they are, or column by column without the zeros where that is smaller."""
    nonzeros = int(np.count_nonzero(weights))
    index = np.dtype(np.int32 if len(weights) < 2**31 else np.int64)
    if nonzeros * (8 + index.itemsize) + 8 * (weights.shape[1] + 1) >= weights.nbytes:
        return {"weights": np.ascontiguousarray(weights)}
    output, feature = np.nonzero(weights.T)
    starts = np.searchsorted(output, np.arange(weights.shape[1] + 1)).astype(np.int64)
    return {
        "weights.starts": starts,
        "weights.features": feature.astype(index),
        "weights.values": np.ascontiguousarray(weights[feature, output]),
    }


def _weights_from_tensors(tensors: Tensors, n_features: int, n_outputs: int) -> Floats:
    if "weights" in tensors:
        if tensors["weights"].shape != (n_features, n_outputs):
            raise ModelError(f"the weights have shape {tensors['weights'].shape}, not {(n_features, n_outputs)}")
        return _floats(tensors["weights"])
    starts, feature = tensors["weights.starts"], tensors["weights.features"]
    weights = np.zeros((n_features, n_outputs))
    counts = np.diff(starts)
    if len(counts) != n_outputs or np.any(counts < 0) or (len(feature) and feature.min() < 0):
        raise ModelError("the places of the weights make no sense")
    try:
        weights[feature, np.repeat(np.arange(n_outputs), counts)] = tensors["weights.values"]
    except (IndexError, ValueError) as error:
        raise ModelError("the places of the weights make no sense") from error
    return weights


def _floats(tensor: AnyArray) -> Floats:
    if tensor.dtype != np.float64:
        raise ModelError(f"weights must be float64, not {tensor.dtype}")
    return tensor


def _to_bytes(record: Any) -> AnyArray:  # noqa: ANN401
    return np.frombuffer(json.dumps(record, ensure_ascii=False, allow_nan=False).encode(), np.uint8)


def _classes_to_json(classes: AnyArray) -> dict[str, Any]:
    values = classes.tolist()
    if not all(isinstance(value, str | bool | int | float) for value in values):
        raise ModelError(f"classes of type {type(values[0]).__name__} cannot be saved; use numbers or texts as labels")
    return {"type": "text" if classes.dtype.kind == "U" else classes.dtype.name, "values": values}


def _classes_from_json(record: dict[str, Any]) -> AnyArray:
    kind, values = record["type"], record["values"]
    allowed = np.bool_, np.integer, np.floating
    if kind not in ("text", "object") and not issubclass(np.dtype(kind).type, allowed):
        raise ModelError(f"classes cannot have the type {kind!r}")
    if not isinstance(values, list) or not all(isinstance(value, str | bool | int | float) for value in values):
        raise ModelError("classes must be numbers or texts")
    return np.array(values, dtype=str if kind == "text" else kind)
