"""A path on disk: what was found so far, and where every fold is, so that a search can go on after it was ended.

A safetensors file, written under a temporary name after every C. `description` is JSON: the curve, and a fingerprint of
the task and the folds, which a search must share to go on from it.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from beeline._types import Floats
from beeline.data.files.tensors import NotTensorsError, Tensors, checksum, read_tensors, write_tensors
from beeline.exceptions import ParameterError, SourceError
from beeline.selection.folds import Fold
from beeline.selection.result import PathPoint, finite
from beeline.training.run import Trained
from beeline.training.task import Task

__all__ = ["Checkpoint", "fingerprint", "load_checkpoint", "save_checkpoint"]

FORMAT, VERSION = "beeline-path", 3
_NUMBERS = ("stop_ratio", "loss", "training_loss")  # of a point, that may be none


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Where a search is.

    Attributes
    ----------
    curve
        What was found so far, in the order in which it was.
    nulls
        The scores without a model, for each ε that was begun.
    thetas
        A θ for each problem, at the last C.
    best
        Weights, intercepts and what the loss owns at the best C: the mean of the folds'.
    stop_tol
        (24)'s ε, of all problems the smallest.
    """

    curve: list[PathPoint]
    nulls: list[PathPoint]
    thetas: list[Floats]
    best: Trained
    stop_tol: float


def fingerprint(task: Task, folds: list[Fold], settings: dict[str, Any]) -> dict[str, Any]:
    """What two searches must share for one to go on from the other."""
    import xxhash

    state = xxhash.xxh3_64(np.ascontiguousarray(task.labels).view(np.uint8).data)
    for column in (task.sample_weight, task.class_weight):
        state.update(b"none" if column is None else np.ascontiguousarray(column, np.float64).data)
    for fold in folds:
        state.update(np.packbits(fold.train).data)
        state.update(np.packbits(fold.test).data)
    for block in task.data.blocks():
        for array in (block.values, block.indptr, block.indices):
            if array is not None:
                state.update(np.ascontiguousarray(array).data)
    return {
        "rows": task.data.n_rows,
        "features": task.data.n_features,
        "entries": task.data.nnz,
        "labels, weights, folds and rows": state.hexdigest(),
        "loss": repr(task.loss),
        "regularizer": repr(task.regularizer),
        "intercept": task.intercept,
        "multiclass": task.form,
        **settings,
    }


def save_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint, mark: dict[str, Any]) -> None:
    """Write where the search is."""
    curve, nulls = ([_to_json(point) for point in points] for points in (checkpoint.curve, checkpoint.nulls))
    record = {"fingerprint": mark, "stop_tol": checkpoint.stop_tol, "curve": curve, "nulls": nulls}
    description = json.dumps(record, ensure_ascii=False, allow_nan=False)
    tensors: Tensors = {f"theta.{k:06d}": theta for k, theta in enumerate(checkpoint.thetas)}
    tensors |= {"best.weights": checkpoint.best.weights, "best.intercepts": checkpoint.best.intercepts}
    if checkpoint.best.extra is not None:
        tensors["best.extra"] = checkpoint.best.extra
    metadata = {"format": FORMAT, "version": str(VERSION), "description": description}
    write_tensors(path, metadata | {"checksum": checksum(description, tensors)}, tensors)


def load_checkpoint(path: str | os.PathLike[str], mark: dict[str, Any]) -> Checkpoint | None:
    """Where a search with this fingerprint was; None where there is no file."""
    if not (file := Path(path)).exists():
        return None
    try:
        metadata, tensors = read_tensors(file)
    except NotTensorsError:
        raise SourceError(f"{path} is no path of a search, or was cut short; remove it to begin anew") from None
    if metadata.get("format") != FORMAT or not metadata.get("version", "").isdecimal():
        raise SourceError(f"{path} is no path of a search; choose another name")
    if int(metadata["version"]) > VERSION:
        raise SourceError(f"{path} was written by a newer beeline; update beeline")
    if int(metadata["version"]) < VERSION:
        raise SourceError(f"{path} was written by an older beeline, whose paths were others; remove it to begin anew")
    description = metadata.get("description", "")
    if metadata.get("checksum") != checksum(description, tensors):
        raise SourceError(f"{path} was altered after it was written; remove it to begin anew")
    record = json.loads(description)
    _check_mark(path, record["fingerprint"], mark)
    thetas = [tensors[name] for name in sorted(tensors) if name.startswith("theta.")]
    best = Trained(tensors["best.weights"], tensors["best.intercepts"], [], extra=tensors.get("best.extra"))
    curve, nulls = ([_from_json(point) for point in record[name]] for name in ("curve", "nulls"))
    return Checkpoint(curve, nulls, thetas, best, record["stop_tol"])


def _check_mark(path: str | os.PathLike[str], theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    for name, value in ours.items():
        if theirs.get(name) != value:
            raise ParameterError(
                f"{path} is the path of another search, which differs in its {name}; choose another file, or remove it",
                parameter="resume",
            )


def _to_json(point: PathPoint) -> dict[str, Any]:
    """NaN and infinity, which JSON does not know, are null."""
    record = asdict(point)
    record |= {name: finite(record[name]) for name in _NUMBERS}
    return record | {"fold_scores": [finite(score) for score in point.fold_scores]}


def _from_json(record: dict[str, Any]) -> PathPoint:
    values = record | {name: _number(record[name]) for name in _NUMBERS}
    values["fold_scores"] = tuple(_number(score) for score in record["fold_scores"])
    return PathPoint(**(values | {"fold_weights": tuple(record["fold_weights"])}))


def _number(value: float | None) -> float:
    return math.nan if value is None else value
