"""Commands from functions: what a parameter's annotation says becomes an option or an argument of click's."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import cleandoc
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import click

from beeline._words import did_you_mean
from beeline.cli.output.errors import styled

__all__ = ["Command", "Group", "Option", "PanelOption", "Positional", "as_command"]

_OPTIONS = "Options"


@dataclass(frozen=True)
class Positional:
    """Marks a parameter that is known by its place, as in `Annotated[str, Positional("MODEL")]`; a list takes more."""

    metavar: str


@dataclass(frozen=True)
class Option:
    """Marks a parameter as an option.

    Attributes
    ----------
    help
        What its value means.
    names
        `--name`, `-n`, or `--yes/--no`; when not given, the parameter's name behind two dashes. A parameter that is
        true or false needs one, by which it is told whether it has an opposite.
    metavar
        What stands for the value on the help page.
    panel
        The part of the help page where it is shown.
    show_default
        Whether the help page tells what it is when it is not given.
    least
        The smallest number that is allowed.
    places
        Whether a text that is one of some may go on with @ and a number, as `ndcg@10`.
    """

    help: str
    names: tuple[str, ...] = ()
    metavar: str | None = None
    panel: str = _OPTIONS
    show_default: bool = True
    least: int | None = None
    places: bool = False


class PanelOption(click.Option):
    """An option with its part of the help page."""

    def __init__(self, *arguments: Any, panel: str, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **settings)
        self.panel = panel


# What people call options that are none of a command's, and the one that they mean.
_CALLED_ELSEWHERE = {
    other: ours
    for ours, others in {
        "--qid": "--query --group --groups",
        "--label": "--target --labels --response --y",
        "--ignore": "--drop --drop-columns",
        "--delimiter": "--sep --separator",
        "--scale": "--standardize --standardise --normalize",
        "--metric": "--scoring --score --measure",
        "--folds": "--cv -v",
        "--regularizer": "--penalty --l1 --l2",
        "--alpha": "--lambda",
        "--C": "-c -C",
        "--loss": "-s --objective --loss-function",
        "--epsilon": "-p",
        "--tol": "-e --tolerance",
        "--max-passes": "--max-iter --max-iterations --epochs --passes",
        "--intercept": "-B --bias --noconstant --fit-intercept",
        "--multiclass": "--multi-class --oaa",
        "--threads": "--n-jobs --jobs --nthread --n-threads -m",
        "--seed": "--random-state --random-seed",
        "--probabilities": "--proba --probability -b",
        "--output": "--out --model -f",
        "--loss-setting": "--tau --quantile --delta --power",
    }.items()
    for other in others.split()
}


class _Formatter(click.HelpFormatter):
    """Headings that are easily found."""

    def write_heading(self, heading: str) -> None:
        self.write(f"{styled(f'{heading}:', '1', sys.stdout)}\n")


class _Context(click.Context):
    formatter_class = _Formatter


class Command(click.Command):
    """A sub-command, whose options are shown in panels."""

    context_class = _Context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, which is told of options that have other names elsewhere."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            meant = _CALLED_ELSEWHERE.get(error.option_name)
            if meant is not None and any(meant in param.opts for param in self.params):
                error.possibilities = [meant]  # type: ignore[misc]  # its constructor drops names that look different
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A list for each panel, that of no panel first."""
        panels: dict[str, list[tuple[str, str]]] = {_OPTIONS: []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                panels.setdefault(getattr(param, "panel", _OPTIONS), []).append(record)
        for panel, records in panels.items():
            with formatter.section(panel):
                formatter.write_dl(records)


class Group(click.Group):
    """The command that has sub-commands, each told in a whole sentence."""

    context_class = _Context
    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """In the order in which they are used."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, (one.help or "").partition("\n")[0]) for name, one in self.commands.items()])

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the same order."""
        return list(self.commands)


class OneOf(click.Choice):  # type: ignore[type-arg]
    """One of some texts; of a text that is like some of them it is asked whether they were meant.

    With `places`, @ and more may follow, which others look at.
    """

    places = False

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """The text, if it is one of them."""
        if self.places and "@" in value:
            name, _, more = value.partition("@")
            return f"{self.convert(name, param, ctx)}@{more}"
        if value not in self.choices and (question := did_you_mean(value, self.choices)):
            self.fail(f"there is no {value!r}; {question}", param, ctx)
        return super().convert(value, param, ctx)


def as_command(function: Callable[..., None]) -> Command:
    """The command that calls a function, with a parameter of type `click.Context` given by click."""
    parameters = inspect.signature(function, eval_str=True).parameters
    wants_context = [name for name, p in parameters.items() if p.annotation is click.Context]

    def called(**given: Any) -> None:  # noqa: ANN401
        # click gives tuples where annotations say lists.
        lists = {name: list(value) for name, value in given.items() if isinstance(value, tuple)}
        function(**given | lists, **dict.fromkeys(wants_context, click.get_current_context()))

    params = [_declared(p) for name, p in parameters.items() if name not in wants_context]
    return Command(function.__name__, callback=called, params=params, help=_paragraphs(function.__doc__))


def _paragraphs(docstring: str | None) -> str:
    """The text with line breaks only between paragraphs, so that it can be broken to fit any terminal."""
    return "\n\n".join(" ".join(part.split()) for part in cleandoc(docstring or "").split("\n\n"))


def _declared(parameter: inspect.Parameter) -> click.Parameter:
    hint, mark = get_args(parameter.annotation)
    several, kind = _kind(hint)
    required = parameter.default is inspect.Parameter.empty
    if isinstance(mark, Positional):
        count = {"nargs": -1, "metavar": f"{mark.metavar}..."} if several else {"metavar": mark.metavar}
        return click.Argument([parameter.name], type=kind, required=required, **count)
    assert isinstance(mark, Option)
    settings: dict[str, Any] = {"required": True}
    if not required:
        settings = {"default": None if several else parameter.default}
    if kind is bool:
        settings["is_flag"] = True
    elif mark.least is not None:
        settings["type"] = click.IntRange(min=mark.least)
    else:
        if isinstance(kind, OneOf):
            kind.places = mark.places
        settings |= {"type": kind, "multiple": several}
    names = mark.names or (f"--{parameter.name.replace('_', '-')}",)
    return PanelOption(
        [parameter.name, *names],
        help=mark.help,
        metavar=mark.metavar,
        show_default=mark.show_default,
        panel=mark.panel,
        **settings,
    )


def _kind(hint: Any) -> tuple[bool, Any]:  # noqa: ANN401
    """(whether there may be several values, the type of each as click knows it)."""
    (kind,) = _alternatives(hint)
    if get_origin(kind) is list:
        return True, get_args(kind)[0]
    if get_origin(kind) is Literal:
        return False, OneOf(get_args(kind))
    return False, kind


def _alternatives(hint: Any) -> Iterator[Any]:  # noqa: ANN401
    """The types that a value may have, None left out: it stands for one that was not given."""
    kinds = get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,)
    return (kind for kind in kinds if kind is not NoneType)
