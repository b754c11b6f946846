"""Where a solver is: all that another run needs to go on from there, and no more."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from beeline._types import Floats
from beeline.data.files.tensors import NotTensorsError, Tensors, checksum, read_tensors, write_tensors
from beeline.exceptions import ParameterError, SourceError
from beeline.objective import Objective

__all__ = ["State", "as_state", "snapshot_of", "theta_of"]

FORMAT, VERSION = "beeline-state", 1
_ARRAY = "array."  # before the names of arrays in a file


@dataclass(frozen=True, eq=False)
class State:
    """Where a solver is.

    Every `Result` has one, and every solver begins from one: its own, to go on; that of a similar problem, such as the
    same rows at another C; or one that another solver left, of which it uses what it knows. A solver that begins twice
    from the same state gives the same bits.

    With C inside the strength of Ω, J/C = Ω(w)/C + Σ c_i l_i, both starts of the warm-start paper are copies of a
    state: w̄ = w (13), and ᾱ = Δα (14), which divided by C is the same a.

    Attributes
    ----------
    theta
        The point: weights, what the loss owns, intercepts.
    arrays
        What else it goes on from, by name: `dual`, the dual variables, one a row.
    counters
        What it took to get here, over all runs that led here: `iterations` and `passes`.
    solver
        Whose state it is.
    snapshot
        All that its solver goes on from to the same bits, as `Step.snapshot` gave it; in the state of a run that is
        resumed, and nowhere else.

    Examples
    --------
    >>> import numpy as np
    >>> State(np.zeros(3), counters={"passes": 2.0}).counters
    {'passes': 2.0}
    """

    theta: Floats
    arrays: Mapping[str, Floats] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)
    solver: str = ""
    snapshot: Mapping[str, Any] | None = None

    def check(self, objective: Objective, row_arrays: tuple[str, ...] = ()) -> None:
        """Raise `ParameterError` where θ is not one of the objective's, or an array does not have an entry a row.

        Of arrays only those are looked at that the solver uses, by their names.
        """
        if np.shape(self.theta) != (objective.size,):
            raise ParameterError(
                f"a start must have {objective.size} coordinates, not shape {np.shape(self.theta)}: it belongs to "
                "other features, outputs or intercepts",
                parameter="start",
            )
        n = objective.rows.n_rows
        for name in row_arrays:
            if name in self.arrays and np.shape(self.arrays[name]) != (n,):
                raise ParameterError(
                    f"the array {name!r} of a start must have one number a row, {n} in all, not shape "
                    f"{np.shape(self.arrays[name])}: it belongs to other rows",
                    parameter="start",
                )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as a safetensors file, under a temporary name first; the same state gives the same bytes."""
        tensors: Tensors = {"theta": _plain(self.theta)}
        tensors |= {f"{_ARRAY}{name}": _plain(array) for name, array in self.arrays.items()}
        counters = {name: float(value) for name, value in self.counters.items()}
        record = {"solver": self.solver, "counters": counters}
        description = json.dumps(record, ensure_ascii=False, allow_nan=False, sort_keys=True)
        metadata = {"format": FORMAT, "version": str(VERSION), "description": description}
        write_tensors(path, metadata | {"checksum": checksum(description, tensors)}, tensors)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> State:
        """Read what `save` has written; that never runs code."""
        try:
            metadata, tensors = read_tensors(Path(path))
        except NotTensorsError:
            raise SourceError(f"{path} is no state of a solver, or was cut short") from None
        if metadata.get("format") != FORMAT or not metadata.get("version", "").isdecimal():
            raise SourceError(f"{path} is no state of a solver")
        if int(metadata["version"]) > VERSION:
            raise SourceError(f"{path} was written by a newer beeline; update beeline")
        description = metadata.get("description", "")
        if metadata.get("checksum") != checksum(description, tensors) or "theta" not in tensors:
            raise SourceError(f"{path} was altered after it was written")
        record: dict[str, Any] = json.loads(description)
        arrays = {name.removeprefix(_ARRAY): array for name, array in tensors.items() if name.startswith(_ARRAY)}
        return cls(tensors["theta"], arrays, record["counters"], record["solver"])


def as_state(start: Floats | State | None) -> State | None:
    """A state; a θ alone becomes one."""
    return start if start is None or isinstance(start, State) else State(np.asarray(start, dtype=np.float64))


def theta_of(start: State | None) -> Floats | None:
    """The point of a state; None, which is zero, of none."""
    return None if start is None else start.theta


def snapshot_of(start: State | None) -> Mapping[str, Any] | None:
    """The snapshot of a run that is resumed; None of any other start."""
    return None if start is None else start.snapshot


def _plain(array: Floats) -> Floats:
    return np.ascontiguousarray(array, dtype=np.float64)
