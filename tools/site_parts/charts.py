"""Charts of the benchmarks, drawn from the tables of docs/benchmarks.md: what was measured is written down once."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from beeline.plotting import COLOURS, SMALL, lighten, new_figure
from beeline.report.svg import inline_svg
from site_parts.gallery import raw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CHARTS", "Chart", "bars", "with_charts"]

_TABLE = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
_NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e[+-]?\d+)?")
_OURS = "beeline"


@dataclass(frozen=True)
class Chart:
    """Bars from a table: the cells of a column, named by the columns before it, or those of a row, named by the head.

    `table` counts the tables under the heading. Of a cell with several numbers the last one is taken.
    """

    heading: str
    title: str
    column: str | None = None
    row: str | None = None
    table: int = 0
    names: int = 1
    is_share: bool = True


CHARTS = (
    Chart("Reading", "Seconds to read 334 MB of LIBSVM text", column="seconds", is_share=False),
    Chart("Training in memory", "Training to 1e-4 above the optimum: share of LIBLINEAR's time", row="geometric mean"),
    Chart("Small data", "fit: share of scikit-learn's time", column="ratio", names=2),
    Chart("Searches for C", "The search: share of LogisticRegressionCV's time", column="ratio", table=1),
    Chart(
        "Choosing C by the rule of the paper",
        "The search: share of the time of LIBLINEAR's -C",
        column="ratio",
        names=2,
    ),
)


def with_charts(text: str) -> str:
    """The page of the benchmarks with a chart below each table that has one."""
    for number, chart in enumerate(CHARTS):
        _, end = _place(text, chart)
        drawn = inline_svg(partial(_drawn, chart, bars(text, chart)), f"chart-{number}", "drawn", chart.title, {})
        picture = raw(f'<div class="picture">{drawn}</div>')
        text = f"{text[:end]}\n{picture}\n{text[end:]}"
    return text


def bars(text: str, chart: Chart) -> list[tuple[str, float]]:
    """What a chart shows: names and numbers; a table that does not have them ends the build."""
    start, end = _place(text, chart)
    head, _, *rows = [_cells(line) for line in text[start:end].splitlines()]
    if chart.row is not None:
        found = [row for row in rows if row[0] == chart.row]
        pairs = list(zip(head[1:], found[0][1:], strict=True)) if found else []
    else:
        at = head.index(chart.column) if chart.column in head else sys.exit(_missing(chart))
        pairs = [(", ".join(row[: chart.names]), row[at]) for row in rows if "mean" not in row[0]]
    numbers = [(name, _NUMBER.findall(cell)) for name, cell in pairs]
    if not numbers or not all(found for _, found in numbers):
        sys.exit(_missing(chart))
    return [(name, float(found[-1].replace(",", ""))) for name, found in numbers]


def _place(text: str, chart: Chart) -> tuple[int, int]:
    """Where the table of a chart begins and ends."""
    start = text.find(f"\n## {chart.heading}\n")
    end = text.find("\n## ", start + 1)
    tables = list(_TABLE.finditer(text, start, end if end > 0 else len(text))) if start >= 0 else []
    if len(tables) <= chart.table:
        sys.exit(_missing(chart))
    return tables[chart.table].span()


def _missing(chart: Chart) -> str:
    what = f"column {chart.column!r}" if chart.row is None else f"row {chart.row!r}"
    return f"docs/benchmarks.md: table {chart.table + 1} under {chart.heading!r} with a {what} of numbers was expected"


def _cells(line: str) -> list[str]:
    return [re.sub(r"[`*]", "", cell).strip() for cell in line.strip().strip("|").split("|")]


def _drawn(chart: Chart, shown: list[tuple[str, float]]) -> Figure:
    figure = new_figure((7.6, 0.9 + 0.3 * len(shown)))
    axes = figure.subplots()
    names, values = [name for name, _ in shown], [value for _, value in shown]
    roles = ["score" if chart.is_share or name == _OURS else "cold" for name in names]
    drawn = axes.barh(names, values, color=[COLOURS[role] for role in roles], height=0.66)
    axes.bar_label(drawn, fmt="{:g}", padding=3, fontsize=SMALL, color=COLOURS["ink"])
    axes.invert_yaxis()
    lighten(axes)
    axes.set_title(chart.title, loc="left", fontsize=10, color=COLOURS["ink"])
    if chart.is_share:
        axes.axvline(1.0, color=COLOURS["warm"], linewidth=1.2)
        axes.set_xlim(0, max(1.05, 1.1 * max(values)))
    else:
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 2, 2 * max(values))
    return figure
