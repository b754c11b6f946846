"""Options that several commands share: declared once, handed over together."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any, get_type_hints

__all__ = ["with_group", "with_parameters"]

Command = Callable[..., None]


def with_group(name: str, kind: type) -> Callable[[Command], Command]:
    """Give a command the options that are the fields of a dataclass; it gets one object of it as argument `name`.

    The fields are annotated as the parameters of a command are. The dataclass checks nothing when it is made: errors
    belong inside the command, which knows how to say them.
    """
    hints = get_type_hints(kind, include_extras=True)
    parameters = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(kind)
    ]
    return with_parameters(name, parameters, lambda given: kind(**given))


def with_parameters(
    name: str, parameters: Sequence[inspect.Parameter], gather: Callable[[dict[str, Any]], Any]
) -> Callable[[Command], Command]:
    """Put parameters in the place of the argument `name`, which the command gets as `gather` makes it of them."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_options(**given: Any) -> None:  # noqa: ANN401
            taken = {p.name: given.pop(p.name) for p in parameters}
            command(**given, **{name: gather(taken)})

        every: list[inspect.Parameter] = []
        for p in inspect.signature(command, eval_str=True).parameters.values():
            every += parameters if p.name == name else [p]
        with_options.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
        with_options.__annotations__ = {p.name: p.annotation for p in every}
        return with_options

    return decorate
