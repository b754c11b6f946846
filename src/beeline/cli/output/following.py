"""The command to run next, with what was said to this one."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Set
from typing import Any

import click

__all__ = ["following_command"]


def following_command(context: click.Context, name: str, left_out: Set[str], *added: str) -> str:
    """`beeline NAME` with the arguments and options of the command that runs, and more.

    Parameters
    ----------
    context
        That of the command that runs.
    name
        The other command; it must have all options but those left out.
    left_out
        The parameters of this command that the other has no need of.
    added
        What comes after all else.
    """
    said: list[str] = []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE" and parameter.name not in left_out:
            said += _spelled(parameter, context.params[parameter.name or ""])
    return shlex.join(["beeline", name, *said, *added])


def _spelled(parameter: Any, value: Any) -> Iterator[str]:  # noqa: ANN401
    """An argument or option as it is written on the command line."""
    values = value if isinstance(value, list | tuple) else [value]
    if parameter.param_type_name == "argument":
        yield from (str(v) for v in values)
    elif parameter.is_flag:
        yield parameter.opts[0] if value else parameter.secondary_opts[0]
    else:
        for v in values:
            yield from (parameter.opts[0], str(v))
