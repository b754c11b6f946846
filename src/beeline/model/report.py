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
        Why the solver stopped: converged, unproven, limit, time, stalled, failed, interrupted or callback. Of several
        outputs, the worst.
    solver
        Who solved it.
    objective
        J at the model; the sum over the outputs. None: it could not be evaluated for an output that failed.
    gap
        The certified relative distance from the optimum; of several outputs, the largest. None: no bound is known.
    passes, iterations
        Passes over the data and iterations; of several outputs, the most.
    seconds
        The time it took, reading not included.
    n_rows
        The number of rows it was trained on.
    concerns
        What was warned of, a sentence each, with what to do: training that ended early or in part failed, a model that
        is no better than none, a search for C that found nothing.
    """

    sentence: str
    status: str
    solver: str
    objective: float | None
    gap: float | None
    passes: float
    iterations: int
    seconds: float
    n_rows: int
    concerns: tuple[str, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the tolerance was reached."""
        return self.status == "converged"

    @property
    def summary(self) -> str:
        """The sentence with the solver and the time, and a line for each concern."""
        return "\n".join([f"{self.solver}: {self.sentence}, in {self.seconds:.2f} s", *self.concerns])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self) | {"concerns": list(self.concerns)}

    @classmethod
    def from_json(cls, record: Any) -> Report:  # noqa: ANN401
        """The report that `to_json` wrote; anything else raises `ModelError`."""
        names = {field.name for field in fields(cls)}
        if not isinstance(record, dict) or {*record, "concerns"} != names:  # the first files have no concerns
            raise ModelError(f"a training report must have the fields {', '.join(sorted(names))}")
        texts, concerns = ("sentence", "status", "solver"), record.get("concerns", [])
        if not isinstance(concerns, list) or not all(
            isinstance(words, str) for words in (*concerns, *(record[name] for name in texts))
        ):
            raise ModelError("a training report must describe itself in words")
        for name in names.difference(texts, ["concerns"]):
            value = record[name]
            if value is None and name in ("gap", "objective"):
                continue
            if type(value) not in (int, float) or not math.isfinite(value):
                raise ModelError(f"the {name} of a training report must be a number")
        return cls(**record | {"concerns": tuple(concerns)})
