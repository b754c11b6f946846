"""The command line: one file per sub-command; `exit_codes` has the numbers that it ends with."""

from __future__ import annotations

import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command that the program was called with."""
    from beeline.cli.output.errors import interrupted

    # What a command does is guarded inside it, where --debug is known; here only start-up is left.
    try:
        from beeline.cli.input.prefetch import begin_prefetch

        begin_prefetch(sys.argv[1:])
        import click

        from beeline.cli.app import app

        try:
            sys.exit(app.main(prog_name="beeline", standalone_mode=False))
        except click.Abort:
            interrupted()
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
    except KeyboardInterrupt:
        interrupted()
