"""A training in a folder: where each of its problems is, so that it can go on after it was ended at any moment.

`training.json` says which training it is; a file for each problem has where its run is, or what was found.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import xxhash

from beeline import __version__
from beeline._numbers import as_number
from beeline._sentences import Argument
from beeline._types import AnyArray
from beeline.data.core.dataset import ArrayDataset, Dataset
from beeline.data.files.atomic import replacing
from beeline.data.files.sealed import checksum_text, seal, unseal
from beeline.exceptions import ParameterError, SourceError
from beeline.objective import Objective
from beeline.solvers.base import Solver, State
from beeline.solvers.checkpoint import RunCheckpoint
from beeline.training.task import Task

__all__ = ["SEARCH_FILE", "TrainingCheckpoint", "check_interval", "fingerprint"]

FORMAT, VERSION, FILE = "beeline-training", 1, "training.json"
SEARCH_FILE = "search.path"
_OWN = re.compile(r"(fold-\d+\.)?(training\.json|problem-\d{6})|search\.path")
_PARTIAL = re.compile(rf"\.({_OWN.pattern})\.partial-\d+-[0-9a-f]+")  # of a process that was killed
_DIGEST = re.compile(r"[0-9a-f]{16}")


def check_interval(seconds: float) -> float:
    """The interval as a number that is not negative."""
    interval = as_number("checkpoint_interval", seconds)
    if not 0 <= interval < float("inf"):
        raise ParameterError(Argument("checkpoint_interval"), f" must be finite and not negative, not {seconds!r}")
    return interval


class TrainingCheckpoint:
    """The folder of one training; no other process may work in it meanwhile.

    Parameters
    ----------
    folder
        The folder, which is made where there is none.
    interval
        Seconds between two times that a problem's file is written.
    tell
        Is told in a sentence that training goes on, and what it cannot go on from.
    """

    def __init__(
        self, folder: str | os.PathLike[str], interval: float, tell: Callable[[str], None] | None = None
    ) -> None:
        self.folder, self.interval, self.tell, self.prefix = Path(folder), interval, tell, ""
        self._lock: int | None = None
        self._digest = ""
        try:
            self.folder.mkdir(exist_ok=True)
            self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        except (FileExistsError, NotADirectoryError):
            raise ParameterError(f"{folder} is a file; name a folder for checkpoints", parameter="checkpoint") from None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SourceError(f"{folder} cannot be made a folder for checkpoints: {reason}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise ParameterError(
                f"another training works in {folder}; wait for its end, or choose another folder",
                parameter="checkpoint",
            ) from None
        except OSError:  # a file system without locks
            pass
        self._remove(_PARTIAL)
        if others := [path.name for path in self.folder.iterdir() if not _OWN.fullmatch(path.name)]:
            self.close()
            raise ParameterError(
                f"{folder} has other files than checkpoints, such as {min(others)}; name a folder of its own for them",
                parameter="checkpoint",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def part(self, name: str) -> TrainingCheckpoint:
        """The checkpoint of a further training that belongs to this one, in the same folder."""
        part = object.__new__(TrainingCheckpoint)
        vars(part).update(vars(self), prefix=f"{name}.", tell=None, _lock=None)
        return part

    def begin(self, mark: dict[str, Any], *, renew: bool = False) -> None:
        """Go on with the training that has this fingerprint, or begin it; `renew`: another one gives way to it."""
        path = self.folder / f"{self.prefix}{FILE}"
        self._digest = checksum_text(xxhash.xxh3_64_intdigest(json.dumps(mark, sort_keys=True).encode()))
        theirs = self._read(path)
        if theirs is not None and renew and _difference(theirs, mark) is not None:
            self._forget()
            theirs = None
        if theirs is None:
            self._forget()
            with replacing(path) as temporary:
                temporary.write_bytes(seal({"format": FORMAT, "version": VERSION, "fingerprint": mark}))
            return
        if (found := _difference(theirs, mark)) is not None:
            raise ParameterError(
                f"{self.folder} has the checkpoint of another training, which differs in its {found}; choose another "
                "folder, or remove it",
                parameter="checkpoint",
            )
        if self.tell is not None:
            self.tell(f"training goes on from the checkpoint in {self.folder}")

    def run(self, number: int) -> RunCheckpoint:
        """The file of a problem."""
        return RunCheckpoint(self.folder / f"{self.prefix}problem-{number:06d}", self.interval, self._digest)

    def close(self) -> None:
        """Let others work in the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def remove(self) -> None:
        """Remove all checkpoints, and the folder where nothing else is in it: what they were for is done."""
        self._remove(re.compile(r"(fold-\d+\.)?training\.json"))  # what belongs to none counts as nothing from here on
        self._remove(_OWN)
        with suppress(OSError):
            self.folder.rmdir()

    def _forget(self) -> None:
        """Remove what a removal that was cut short has left of this part, or another training."""
        self._remove(re.compile(rf"{re.escape(self.prefix)}(training\.json|problem-\d{{6}})"))

    def _remove(self, names: re.Pattern[str]) -> None:
        with suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in [entry for entry in entries if names.fullmatch(entry.name)]:
                with suppress(FileNotFoundError):
                    Path(entry.path).unlink()

    def _read(self, path: Path) -> dict[str, Any] | None:
        """The fingerprint that a training has left; None where there is none."""
        try:
            document, intact = unseal(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SourceError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
        if not intact or document is None or document.get("format") != FORMAT:
            raise SourceError(
                f"{path} was cut short, or altered after it was written; remove {self.folder} to begin anew"
            )
        if document["version"] != VERSION:
            raise SourceError(f"{path} was written by another beeline; remove {self.folder} to begin anew")
        theirs: dict[str, Any] = document["fingerprint"]
        return theirs


def _difference(theirs: dict[str, Any], ours: dict[str, Any]) -> str | None:
    """What differs first, with both values where these say something; None: nothing."""
    for name, value in ours.items():
        other = theirs.get(name)
        if other == value:
            continue
        if isinstance(value, str) and _DIGEST.fullmatch(value):
            return name
        return f"{name} ({other} there, {value} here)"
    return None


def fingerprint(task: Task, solver: Solver, objective: Objective, starts: Sequence[State | None]) -> dict[str, Any]:
    """What two trainings must share for one to go on from the other, and give the same bits."""
    labels, start = xxhash.xxh3_64(), xxhash.xxh3_64()
    for column in (task.labels, task.sample_weight, task.class_weight, task.groups):
        _add(labels, column)
    for state in starts:
        for array in () if state is None else (state.theta, *state.arrays.values()):
            _add(start, array)
    return {
        "version of beeline": __version__,
        "number of rows": task.data.n_rows,
        "number of features": task.data.n_features,
        "number of entries": task.data.nnz,
        "rows": _digest_of(task.data),
        "labels or weights": _text(labels),
        "loss": task.loss.identity,
        "regularizer": repr(task.regularizer),
        "C": task.C,
        "strength of the regularizer": task.strength,
        "intercept": task.intercept,
        "multiclass": task.form,
        "solver": solver.name,
        "options of the solver": json.dumps(solver.options.to_json(), sort_keys=True),
        "tol": solver.tol,
        "max_passes": solver.max_passes,
        "seed": solver.seed,
        "index": None if objective.rows.index is None else objective.rows.index.fingerprint,
        "memory": objective.rows.memory,
        "number of shards": objective.rows.n_shards,
        "start": _text(start),
    }


def _text(state: Any) -> str:  # noqa: ANN401 — of xxhash
    return checksum_text(state.intdigest())


def _digest_of(data: Dataset) -> str:
    """What tells these rows from all others; a store has checksums of its own, so that nothing is read."""
    if not isinstance(data, ArrayDataset):
        from beeline.data.store import Store
        from beeline.index.info import fingerprint

        if isinstance(data, Store):
            return fingerprint(data)
    state = xxhash.xxh3_64()
    for block in data.blocks():
        for array in (block.values, block.indptr, block.indices):
            _add(state, array)
    return _text(state)


def _add(state: Any, array: AnyArray | None) -> None:  # noqa: ANN401 — of xxhash
    if array is None:
        state.update(b"none")
        return
    plain = np.ascontiguousarray(array)
    state.update(f"{plain.dtype.str}{plain.shape}".encode())
    state.update(plain.reshape(-1).view(np.uint8).data)
