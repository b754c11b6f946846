"""What was passed over while rows were read for a model, said on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beeline.cli.output.errors import print_line

if TYPE_CHECKING:
    from beeline.cli.input.rows import Walk
    from beeline.data.reader import Reader

__all__ = ["show_passed_over", "show_passed_over_by"]


def show_passed_over(walk: Walk) -> None:
    """Say what had no effect on the predictions: bad lines, categories and features that the model does not know."""
    if walk.strange_entries:
        print_line(
            "warning",
            f"{walk.strange_entries:,} entries belong to features that the model has never seen, and were passed over",
            color="33",
        )
    if walk.reader is not None:
        show_passed_over_by(walk.reader)


def show_passed_over_by(reader: Reader) -> None:
    """Say what a reader has passed over."""
    if reader.bad_lines.count:
        example = reader.bad_lines.examples[0]
        print_line("warning", f"{reader.bad_lines.count:,} bad lines skipped; the first: {example}", color="33")
    for column, n in getattr(reader, "unknown_categories", {}).items():
        print_line("warning", f"column {column!r} has {n:,} values that the model has never seen", color="33")
