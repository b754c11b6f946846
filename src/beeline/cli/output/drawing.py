"""Numbers, texts and tables as people read them."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from beeline.cli.output.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "byte_size",
    "csv_field",
    "escape_markup",
    "number_text",
    "percent",
    "plain_table",
    "signed_text",
    "standard_console",
]


def byte_size(n_bytes: int) -> str:
    """Bytes as people write them: 263.1 MB."""
    value, unit = float(n_bytes), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{n_bytes:,} bytes" if unit == "bytes" else f"{value:.1f} {unit}"


@contextmanager
def standard_console() -> Iterator[Console]:
    """A console on standard output."""
    from rich.console import Console

    if sys.stdout.isatty():
        yield Console()
        return
    # Without a terminal there is no width to fit into: lines are better long than broken, and end with their text.
    text = io.StringIO()
    yield Console(file=text, width=10_000)
    sys.stdout.write("".join(line.rstrip() + "\n" for line in text.getvalue().splitlines()))


def plain_table() -> Table:
    """A table without lines around its cells."""
    from rich.table import Table

    return Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))


def number_text(value: float | str) -> str:
    """A number with as many digits as people read."""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:,.6g}"


def signed_text(value: float) -> str:
    """A number with its sign and four digits; large ones as whole numbers, as far as people read these."""
    text = f"{value:+.4g}"
    return f"{value:+,.0f}" if "e+" in text and abs(value) < 1e15 else text


def percent(share: float) -> str:
    """A share as people write it: 12.3 %."""
    figure = 100 * share
    return f"{figure:.1f} %" if figure >= 0.1 or figure == 0 else f"{figure:.2g} %"


def csv_field(text: str) -> str:
    """A field of CSV."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([text])
    return line.getvalue()


def escape_markup(text: str) -> str:
    """Text of the user's data, which must not be taken for markup."""
    from rich.markup import escape

    return escape(printable(text))
