"""The `beeline` command and its sub-commands."""

from __future__ import annotations

import click

from beeline import __version__
from beeline.cli.commands.convert import convert
from beeline.cli.commands.evaluate import evaluate
from beeline.cli.commands.export import export
from beeline.cli.commands.index import index
from beeline.cli.commands.info import info
from beeline.cli.commands.inspect import inspect
from beeline.cli.commands.losses import losses
from beeline.cli.commands.predict import predict
from beeline.cli.commands.select import select
from beeline.cli.commands.train import train
from beeline.cli.options.declaring import Group, as_command
from beeline.cli.output.exit_codes import exit_codes_in_words

__all__ = ["app"]

app = Group(
    "beeline",
    help="Linear models on data of any size.",
    epilog=f"Each command explains itself: beeline COMMAND --help\n\nExit codes: {exit_codes_in_words()}.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
click.version_option(__version__, message="%(prog)s %(version)s", help="Print the version and exit.")(app)
for command in (convert, index, info, select, train, predict, evaluate, inspect, export, losses):
    app.add_command(as_command(command))
