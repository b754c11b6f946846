"""What was passed over while rows were read, said on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beeline.cli.output.errors import print_line

if TYPE_CHECKING:
    from beeline.data.reader import PassesOver

__all__ = ["show_passed_over"]


def show_passed_over(walk: PassesOver) -> None:
    """Say what has no effect: bad lines, rows left out, categories and features that nobody knows, columns of names."""
    from beeline.cli.output.spelling import spelled

    for sentence in walk.passed_over():
        print_line("warning", spelled(sentence), color="33")
