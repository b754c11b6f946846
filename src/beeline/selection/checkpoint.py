"""A path on disk: what was found so far, and where every fold is, so that a search can go on after it was ended.

A safetensors file, written under a temporary name after every C. `description` is JSON: the curve, and a fingerprint of
the task and the folds, which a search must share to go on from it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from beeline._types import AnyArray
from beeline.data.files.documents import from_plain, to_plain
from beeline.data.files.tensors import NotTensorsError, Tensors, checksum, map_tensors, write_tensors
from beeline.exceptions import ParameterError, SourceError
from beeline.selection.folds import Fold
from beeline.selection.result import PathPoint
from beeline.training.run import Trained
from beeline.training.task import Task

__all__ = ["Checkpoint", "fingerprint", "load_checkpoint", "save_checkpoint"]

FORMAT, VERSION = "beeline-path", 4
_OF_BEST = ("weights", "intercepts", "extra")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Where a search is.

    Attributes
    ----------
    curve
        What was found so far, in the order in which it was.
    nulls
        The scores without a model, for each ε that was begun.
    runner
        Where every problem is at the last C, as `Runner.snapshot` gives it.
    best
        Weights, intercepts and what the loss owns at the best C: the mean of the folds'.
    stop_tol
        (24)'s ε, of all problems the smallest.
    """

    curve: list[PathPoint]
    nulls: list[PathPoint]
    runner: dict[str, Any]
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
        "loss": task.loss.identity,
        "regularizer": repr(task.regularizer),
        "intercept": task.intercept,
        "multiclass": task.form,
        **settings,
    }


def save_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint, mark: dict[str, Any]) -> None:
    """Write where the search is."""
    curve, nulls = ([asdict(point) for point in points] for points in (checkpoint.curve, checkpoint.nulls))
    best = {name: getattr(checkpoint.best, name) for name in _OF_BEST}
    record = {"fingerprint": mark, "stop_tol": checkpoint.stop_tol, "curve": curve, "nulls": nulls}
    tensors: Tensors = {}
    plain = to_plain(record | {"best": best, "runner": checkpoint.runner}, tensors)
    description = json.dumps(plain, ensure_ascii=False, allow_nan=False)
    metadata = {"format": FORMAT, "version": str(VERSION), "description": description}
    write_tensors(path, metadata | {"checksum": checksum(description, tensors)}, tensors)


def load_checkpoint(path: str | os.PathLike[str], mark: dict[str, Any]) -> Checkpoint | None:
    """Where a search with this fingerprint was; None where there is no file."""
    if not (file := Path(path)).exists():
        return None
    try:
        metadata, tensors = map_tensors(file)
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
    record = from_plain(json.loads(description), tensors)
    _check_mark(path, record["fingerprint"], mark)
    weights, intercepts, extra = (_copy(record["best"][name]) for name in _OF_BEST)
    curve, nulls = ([_point(point) for point in record[name]] for name in ("curve", "nulls"))
    best = Trained(weights, intercepts, [], extra=extra)
    return Checkpoint(curve, nulls, record["runner"], best, record["stop_tol"])


def _check_mark(path: str | os.PathLike[str], theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    for name, value in ours.items():
        if theirs.get(name) != value:
            raise ParameterError(
                f"{path} is the path of another search, which differs in its {name}; choose another file, or remove it",
                parameter="resume",
            )


def _point(record: dict[str, Any]) -> PathPoint:
    return PathPoint(**(record | {name: tuple(record[name]) for name in ("fold_scores", "fold_weights")}))


def _copy(array: AnyArray | None) -> Any:  # noqa: ANN401
    """An array that may be changed, which those of a file may not."""
    return None if array is None else np.array(array)
