"""Commands from annotated functions."""

from __future__ import annotations

from typing import Annotated, Literal

import click
import pytest
from click.testing import CliRunner

from beeline.cli.app import app
from beeline.cli.options.declaring import Group, Option, Positional, as_command

Colour = Literal["red", "blue"]


def paint(
    context: click.Context,
    walls: Annotated[list[str], Positional("WALL")],
    *,
    name: Annotated[str, Option("Who paints.", ("--name", "-n"), metavar="NAME")],
    colour: Annotated[Colour | None, Option("With what.", metavar="COLOUR", panel="Paint")] = None,
    layers: Annotated[int, Option("How often.", metavar="N", least=1)] = 2,
    gloss: Annotated[bool | None, Option("How it shines.", ("--gloss/--matt",), panel="Paint")] = None,
    dry: Annotated[bool, Option("Wait.", ("--dry",))] = False,
    C_max: Annotated[float | None, Option("The most.", metavar="C")] = None,
    leave_out: Annotated[list[str] | None, Option("What not to paint.", metavar="PART")] = None,
) -> None:
    """Paint walls
    in a colour.

    WALL is one of them.
    """
    said = (walls, name, colour, layers, gloss, dry, C_max, leave_out)
    click.echo(f"{context.command.name} {said!r}")


group = Group("house")
group.add_command(as_command(paint))


def run(*arguments):
    return CliRunner().invoke(group, ["paint", *arguments], prog_name="house")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a", "-n", "x"), "(['a'], 'x', None, 2, None, False, None, [])"),
        (("a", "b", "--name", "x", "--layers", "3", "--dry"), "(['a', 'b'], 'x', None, 3, None, True, None, [])"),
        (("a", "-n", "x", "--colour", "red", "--matt"), "(['a'], 'x', 'red', 2, False, False, None, [])"),
        (("a", "-n", "x", "--gloss", "--C-max", "2"), "(['a'], 'x', None, 2, True, False, 2.0, [])"),
        (
            ("-n", "x", "--leave-out", "p", "--leave-out", "q", "a"),
            "(['a'], 'x', None, 2, None, False, None, ['p', 'q'])",
        ),
    ],
)
def test_a_command_gets_what_was_said(arguments, said):
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (0, f"paint {said}\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Missing argument 'WALL...'"),
        (("a",), "Missing option '--name'"),
        (("a", "-n", "x", "--colour", "green"), "'green' is not one of 'red', 'blue'"),
        (("a", "-n", "x", "--colour", "bleu"), "'--colour': there is no 'bleu'; did you mean 'blue'?"),
        (("a", "-n", "x", "--layers", "0"), "0 is not in the range x>=1"),
        (("a", "-n", "x", "--layers", "many"), "'many' is not a valid integer"),
        (("a", "-n", "x", "--no-dry"), "No such option"),
    ],
)
def test_what_is_given_wrongly_is_told_with_the_usage(arguments, words):
    done = run(*arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.startswith("Usage: house paint [OPTIONS] WALL...\n")


def test_the_help_page_has_panels_and_no_noise():
    shown = " ".join(run("--help").stdout.split())
    assert shown.startswith(
        "Usage: house paint [OPTIONS] WALL... Paint walls in a colour. WALL is one of them. Options: -n, --name NAME"
    )
    assert "--layers N How often. [default: 2" in shown
    assert shown.endswith("Paint: --colour COLOUR With what. --gloss / --matt How it shines.")
    assert "paint Paint walls in a colour." in " ".join(CliRunner().invoke(group, ["--help"]).stdout.split())


def test_every_option_of_beeline_is_shown_under_its_heading():
    for name, command in app.commands.items():
        shown = CliRunner().invoke(app, [name, "--help"]).stdout
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.opts[0] in shown.partition(f"{option.panel}:\n")[2], (name, option.name)


def test_every_option_says_what_kind_of_value_it_takes():
    for name, command in app.commands.items():
        for option in command.params:
            assert option.metavar or getattr(option, "is_flag", False), (name, option.name)


def test_headings_are_bold_on_a_terminal(terminal):
    assert "\x1b[1mOptions:\x1b[0m" in terminal("info", "--help").screen
