"""How good rankings are, query by query: the figure of a page, and the table of the worst."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from beeline._types import Floats
from beeline.evaluation import QueryTable, measure_in_words
from beeline.plotting import COLOURS
from beeline.report.evaluation_figures import DOTTED, SIZES, panels, set_axes
from beeline.report.rendering import Cell, Row, Table
from beeline.report.svg import PageFigure, page_figure
from beeline.report.values import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["main_measure", "queries_figure", "worst_queries"]

_MOST = 20
_MOST_STEPS = 400  # of the curve: more are no clearer


def main_measure(table: QueryTable) -> str:
    """The measure that rankings are judged by first."""
    return "ndcg@10" if "ndcg@10" in table.measures else next(iter(table.measures))


def queries_figure(table: QueryTable) -> PageFigure:
    """The measure of every query, from the best to the worst, and how many queries have which."""
    name = main_measure(table)
    words, mean = measure_in_words(name), table.means()[name]
    some = table.relevant > 0
    values, without = np.sort(table.measures[name][some])[::-1], int(np.count_nonzero(~some))
    drawn = float(np.average(table.measures[name][some], weights=table.weight[some])) if some.any() else 0.0
    caption = (
        f"First: {words} of every query, from the best query to the worst; the dotted line is their mean. Second: how "
        f"many queries have which {words}."
    )
    if without:
        caption += (
            f" Queries without a relevant row, {without:,} of {len(table.query):,}, are in neither picture: they count "
            f"0 in the mean above, {number(mean, 4)}; without them it is {number(drawn, 4)}."
        )
    label = f"{words} by query. The mean is {number(mean, 4)}."
    return page_figure(partial(_draw, values, drawn, words), "queries", SIZES, label, caption)


def _draw(values: Floats, mean: float, words: str, size: tuple[float, float]) -> Figure:
    figure, (left, right) = panels(size)
    steps = np.linspace(0, len(values) - 1, min(len(values), _MOST_STEPS)).round().astype(np.int64)
    share = (steps + 0.5) / max(1, len(values))
    left.plot([0, 1], [mean, mean], **DOTTED)
    left.fill_between(share, values[steps], step="mid", color=COLOURS["score"], alpha=0.18, linewidth=0)
    left.plot(share, values[steps], drawstyle="steps-mid", linewidth=1.6, color=COLOURS["score"])
    right.hist(values, bins=np.linspace(0, 1, 11), color=COLOURS["score"], rwidth=0.85)
    set_axes(left, "part of the queries", words, unit=True)
    set_axes(right, words, "queries")
    right.set_xlim(-0.02, 1.02)
    return figure


def worst_queries(table: QueryTable) -> Table:
    """The queries with the least of the main measure, of those that have relevant rows."""
    name = main_measure(table)
    some = np.flatnonzero(table.relevant > 0)
    worst = some[np.argsort(table.measures[name][some], kind="stable")][:_MOST]
    names = [name, *(other for other in table.measures if other != name)]

    def row(q: int) -> Row:
        figures = [float(table.measures[one][q]) for one in names]
        counts = [Cell(number(float(column[q]))) for column in (table.rows, table.relevant)]
        return Row(str(table.query[q]), [*counts, *(Cell(f"{value:.4f}", share=value) for value in figures)])

    caption = f"The lowest {measure_in_words(name)} of {len(some):,} queries that have a relevant row."
    return Table(
        caption, ["query", "rows", "relevant", *map(measure_in_words, names)], [row(q) for q in worst.tolist()]
    )
