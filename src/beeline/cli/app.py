"""The `beeline` command and its sub-commands."""

from __future__ import annotations

from typing import Annotated

import typer

from beeline import __version__
from beeline.cli.commands.convert import convert
from beeline.cli.commands.evaluate import evaluate
from beeline.cli.commands.export import export
from beeline.cli.commands.info import info
from beeline.cli.commands.inspect import inspect
from beeline.cli.commands.losses import losses
from beeline.cli.commands.predict import predict
from beeline.cli.commands.select import select
from beeline.cli.commands.train import train
from beeline.cli.output.exit_codes import exit_codes_in_words
from beeline.cli.output.help import Command, Group, paragraphs

__all__ = ["app"]

app = typer.Typer(
    name="beeline",
    cls=Group,
    help="Linear models on data of any size.",
    epilog=f"Each command explains itself: beeline COMMAND --help\n\nExit codes: {exit_codes_in_words()}.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (convert, info, select, train, predict, evaluate, inspect, export, losses):
    app.command(cls=Command, help=paragraphs(command.__doc__))(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"beeline {__version__}")
        raise typer.Exit


@app.callback()
def _beeline(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass
