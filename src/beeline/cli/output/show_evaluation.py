"""Drawing how good predictions are, for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from beeline._words import count
from beeline.cli.output.drawing import escape_markup, number_text, percent, plain_table, standard_console
from beeline.cli.output.spelling import spelled

if TYPE_CHECKING:
    from rich.table import Table

    from beeline.evaluation import ClassMeasures, Comparison, Evaluation

__all__ = ["show_evaluation"]

_MOST_IN_TABLE = 12  # classes, beyond which a confusion table does not fit a screen
_MOST_CLASSES = 20
_MOST_CONFUSIONS = 10
_OF_POSITIVE = ("precision", "recall", "f1", "average_precision")  # of two classes


def show_evaluation(model: str, found: Evaluation, other: str | None = None) -> None:
    """Print how good predictions are: measures, each class, what is taken for what, and the difference from another."""
    with standard_console() as out:
        weight = "" if found.weight is None else f" of weight {number_text(found.weight)}"
        rows = count(found.rows, "row")
        if found.by_query is not None:
            rows += f" of {count(len(found.by_query.query), 'query', 'queries')}"
        out.print(f"[bold]{escape_markup(model)}[/] on {rows}{weight}", highlight=False)
        out.print(_measures(found))
        for note in found.notes:
            out.print(f"[dim]{escape_markup(spelled(note))}[/]", highlight=False)
        if found.per_class:
            out.print()
            out.print(_classes(found.per_class))
            if len(found.per_class) > _MOST_CLASSES:
                out.print(f"[dim]the lowest F1 of {len(found.per_class):,}; --json shows all[/]", highlight=False)
        if found.confusion is not None:
            out.print()
            wide = len(found.classes) > _MOST_IN_TABLE
            out.print(_top_confusions(found) if wide else _confusion(found))
        if found.against is not None and other is not None:
            out.print()
            out.print(f"against [bold]{escape_markup(other)}[/]", highlight=False)
            out.print(_comparison(found.against))
            out.print(f"[dim]{escape_markup(found.against.method)}[/]", highlight=False)


def _measures(found: Evaluation) -> Table:
    from beeline.evaluation import measure_in_words

    lines = plain_table()
    for name, value in found.measures.items():
        shown = "undefined" if math.isnan(value) else f"{value:.6g}"
        lines.add_row(f"[bold cyan]{measure_in_words(name)}[/]", shown, _about(name, found))
    return lines


def _about(name: str, found: Evaluation) -> str:
    """What a measure is about, where that is not all rows."""
    if found.positive is not None and name in _OF_POSITIVE:
        return f"[dim]of class {escape_markup(found.positive)}[/]"
    if name == "coverage" and found.tau is not None:
        return f"[dim]of labels are at or below the prediction; wanted {found.tau:.6g}[/]"
    return ""


def _classes(per_class: tuple[ClassMeasures, ...]) -> Table:
    chosen = list(per_class)
    if len(chosen) > _MOST_CLASSES:
        chosen = sorted((one for one in chosen if one.rows), key=lambda one: one.f1)[:_MOST_CLASSES]
    ranked = any(not math.isnan(one.auc) for one in chosen)
    names = ["class", "rows", "precision", "recall", "F1", *(["ROC area", "average precision"] if ranked else [])]
    table = plain_table()
    table.add_row(*(f"[bold]{name}[/]" for name in names))
    for one in chosen:
        figures = [one.precision, one.recall, one.f1, *([one.auc, one.average_precision] if ranked else [])]
        shown = ["–" if math.isnan(figure) else f"{figure:.4f}" for figure in figures]
        table.add_row(f"[bold cyan]{escape_markup(one.name)}[/]", number_text(one.rows), *shown)
    return table


def _confusion(found: Evaluation) -> Table:
    assert found.confusion is not None
    shown = plain_table()
    shown.add_row("[bold]label[/]", *(f"[bold cyan]as {escape_markup(name)}[/]" for name in found.classes))
    for i, (name, row) in enumerate(zip(found.classes, found.confusion.tolist(), strict=True)):
        marked = [f"[green]{number_text(cell)}[/]" if i == j else number_text(cell) for j, cell in enumerate(row)]
        shown.add_row(f"[bold cyan]{escape_markup(name)}[/]", *marked)
    return shown


def _top_confusions(found: Evaluation) -> Table | str:
    """The most frequent confusions, where a table of all would be too wide."""
    top = found.top_confusions(_MOST_CONFUSIONS)
    if not top:
        return "[dim]no row was taken for another class[/]"
    shown = plain_table()
    shown.add_row("[bold]label[/]", "[bold]most often taken for[/]", "[bold]rows[/]", "[bold]of the class[/]")
    for one in top:
        names = (f"[bold cyan]{escape_markup(one.label)}[/]", escape_markup(one.predicted))
        shown.add_row(*names, number_text(one.rows), percent(one.share))
    return shown


def _comparison(found: Comparison) -> Table:
    from beeline.evaluation import measure_in_words

    shown = plain_table()
    names = ["measure", "model", "other", "difference", "95 % interval", "p"]
    shown.add_row(*(f"[bold]{name}[/]" for name in names))
    for one in found.differences:
        interval = f"{one.low:+.4g} to {one.high:+.4g}"
        figures = [f"{one.model:.6g}", f"{one.other:.6g}", f"{one.difference:+.4g}", interval, f"{one.p:.2g}"]
        shown.add_row(f"[bold cyan]{measure_in_words(one.measure)}[/]", *figures)
    return shown
