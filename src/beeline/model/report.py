"""What training says about itself, kept with the model."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from beeline.exceptions import ModelError

__all__ = ["Report"]


@dataclass(frozen=True, kw_only=True)
class Report:
    """How a model came to be.

    Attributes
    ----------
    sentence
        What happened, in words.
    status
        Why the solver stopped: converged, limit, stalled, interrupted or callback. Of several outputs, the worst.
    solver
        Who solved it.
    objective
        J at the model; the sum over the outputs.
    gap
        The certified relative distance from the optimum; of several outputs, the largest. None: no bound is known.
    passes, iterations
        Passes over the data and iterations; of several outputs, the most.
    seconds
        The time it took, reading not included.
    n_rows
        The number of rows it was trained on.
    """

    sentence: str
    status: str
    solver: str
    objective: float
    gap: float | None
    passes: float
    iterations: int
    seconds: float
    n_rows: int

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.status == "converged"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Any) -> Report:  # noqa: ANN401
        """The report that `to_json` wrote; anything else raises `ModelError`."""
        names = {field.name for field in fields(cls)}
        if not isinstance(record, dict) or set(record) != names:
            raise ModelError(f"a training report must have the fields {', '.join(sorted(names))}")
        texts, numbers = ("sentence", "status", "solver"), names - {"sentence", "status", "solver"}
        if not all(isinstance(record[name], str) for name in texts):
            raise ModelError("a training report must describe itself in words")
        for name in numbers:
            value = record[name]
            if not (value is None and name == "gap") and (type(value) not in (int, float) or not math.isfinite(value)):
                raise ModelError(f"the {name} of a training report must be a number")
        return cls(**record)
