"""Sentences of the library in the words of the command line: arguments become the options that set them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from beeline._sentences import Argument, Sentence
from beeline.cli.options.names import as_one_name

if TYPE_CHECKING:
    import click

__all__ = ["spelled", "spelled_argument"]

# Options with another name than the argument of the library: (the option's name, values that it calls otherwise).
_OTHERWISE: dict[str, tuple[str, dict[object, str]]] = {
    "fit_intercept": ("intercept", {True: "free", False: "none"}),
    "recipe": ("like", {}),
    "compare_cold": ("cold", {}),
}


def spelled(sentence: str) -> str:
    """The sentence with options where it names arguments."""
    return sentence.spelled(spelled_argument) if isinstance(sentence, Sentence) else sentence


def spelled_argument(argument: Argument) -> str:
    """The option that sets an argument, with its value if one is said; Python's words where no command has it."""
    name, values = _OTHERWISE.get(argument.name, (argument.name, {}))
    option = next((one for one in _options() if one.name == name), None)
    if option is None:
        return str(argument)
    long = next(opt for opt in option.opts if opt.startswith("--"))
    if not argument.has_value or argument.value is None:
        return long
    value = argument.value
    if option.is_flag:
        return long if value or not option.secondary_opts else option.secondary_opts[0]
    several = [as_one_name(one) for one in value] if isinstance(value, list | tuple) else [value]
    return " ".join(f"{long} {_quoted(values.get(one, str(one)))}" for one in several)


def _quoted(value: str) -> str:
    return shlex.quote(value) if value.isprintable() else repr(value)


def _options() -> Iterator[click.Option]:
    """The options of all commands: sentences may tell what to do elsewhere. What is called alike is spelled alike."""
    import click

    from beeline.cli.app import app

    for command in app.commands.values():
        yield from (param for param in command.params if isinstance(param, click.Option))
