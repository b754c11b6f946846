"""The command line: one file per sub-command; `exit_codes` has the numbers that it ends with."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command that the program was called with."""
    from beeline.cli.output.errors import interrupted

    # What a command does is guarded inside it, where --debug is known; here only start-up is left.
    try:
        from beeline.cli.input.head_start import begin_reading

        begin_reading(sys.argv[1:])
        from beeline.cli.app import app

        app(prog_name="beeline")
    except KeyboardInterrupt:
        interrupted()
