"""What was passed over while rows were read, said on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beeline.cli.output.errors import print_line

if TYPE_CHECKING:
    from beeline.data.reader import PassesOver

__all__ = ["show_passed_over"]


def show_passed_over(walk: PassesOver) -> None:
    """Say what had no effect: bad lines, rows that were left out, categories and features that nobody knows."""
    for sentence in walk.passed_over():
        print_line("warning", sentence, color="33")
