"""What can be said to a solver beside tolerance, limits and seed: a frozen dataclass for each solver.

An option is written down once, with its type, default, range and what it does (`option`). From there come the check of
what a user says, in Python and on the command line, the model file's record and the table in the documentation.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Self

import numpy as np

from beeline._words import offer
from beeline.exceptions import ParameterError
from beeline.solvers.needs import Needs

__all__ = ["SolverOptions", "option", "options_of"]


def option(
    default: Any,  # noqa: ANN401
    text: str,
    *,
    choices: tuple[str, ...] | None = None,
    least: int | None = None,
    most: int | None = None,
    least_number: float | None = None,
) -> Any:  # noqa: ANN401
    """An option: what it does, in a sentence, and the choices, whole numbers, or the least number it may be."""
    metadata = {"text": text, "choices": choices, "least": least, "most": most, "least_number": least_number}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class SolverOptions:
    """The options of a solver that has none; base of all others."""

    def __post_init__(self) -> None:
        for its in fields(self):
            _check(its, getattr(self, its.name))

    @classmethod
    def of(cls, solver: str, given: Mapping[str, Any]) -> Self:
        """The options that were given, the others as by default."""
        for name in given:
            if name not in (known := options_of(cls)):
                instead = offer(name, known) if known else "it has none"
                raise ParameterError(f"the solver {solver!r} has no option {name!r}; {instead}", parameter="solver")
        return cls(**given)

    def refine(self, needs: Needs) -> Needs:
        """What the solver needs, with what these options add to it."""
        return needs

    @property
    def given(self) -> dict[str, Any]:
        """Those that differ from their defaults."""
        return {its.name: value for its in fields(self) if (value := getattr(self, its.name)) is not its.default}

    def to_json(self) -> dict[str, Any]:
        """Those that differ from their defaults, as plain JSON: enough to make them again."""
        return {name: _plain(value) for name, value in self.given.items()}


def options_of(kind: type[SolverOptions]) -> dict[str, Field[Any]]:
    """The options of a kind, by name."""
    return {its.name: its for its in fields(kind)}


def _check(its: Field[Any], value: Any) -> None:  # noqa: ANN401
    """Raise when a value is none of the choices, or no number, or no whole one, from the least one on."""
    choices, least, least_number = (its.metadata[name] for name in ("choices", "least", "least_number"))
    if value is its.default and its.default is not MISSING:
        return
    if choices is not None and not (isinstance(value, str) and value in choices):
        raise ParameterError(
            f"the solver's {its.name} must be one of {', '.join(choices)}, not {value!r}", parameter="solver"
        )
    if least is not None:
        none = " or None" if its.default is None else ""
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise ParameterError(
                f"the solver's {its.name} must be a whole number{none}, not {value!r}", parameter="solver"
            )
        if value < least:
            raise ParameterError(f"the solver's {its.name} must be at least {least}, not {value!r}", parameter="solver")
        if (most := its.metadata["most"]) is not None and value > most:
            raise ParameterError(f"the solver's {its.name} must be at most {most}, not {value!r}", parameter="solver")
    if least_number is not None:
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not number or not least_number <= value < np.inf:
            raise ParameterError(
                f"the solver's {its.name} must be a number from {least_number:g} on, not {value!r}", parameter="solver"
            )
    if isinstance(its.default, str) and not isinstance(value, str):
        raise ParameterError(f"the solver's {its.name} must be a text, not {value!r}", parameter="solver")
    if isinstance(its.default, bool) and not isinstance(value, bool | np.bool_):
        raise ParameterError(f"the solver's {its.name} must be True or False, not {value!r}", parameter="solver")


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Numbers, texts and lists of them; an infinite bound is a text, since JSON has no such number."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
