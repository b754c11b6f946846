"""The result page of an evaluation: measures, curves, probabilities, classes, residuals."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from beeline._words import count
from beeline.evaluation import ClassMeasures, Comparison, Evaluation, measure_in_words
from beeline.report.evaluation_figures import calibration_figure, curves_figure, values_figure
from beeline.report.label_tree_figure import label_tree_figure
from beeline.report.query_figures import main_measure, queries_figure, worst_queries
from beeline.report.rendering import Cell, KeyFigure, Row, Table, render
from beeline.report.values import decimals, number
from beeline.report.writing import write_page

__all__ = ["evaluation_page", "write_evaluation_page"]

_MOST_IN_TABLE = 20  # classes, beyond which only the most frequent confusions are shown
_MOST_CLASSES = 200  # lines of a table that anybody reads
_MOST_CONFUSIONS = 40


def write_evaluation_page(path: str | os.PathLike[str], found: Evaluation, facts: Mapping[str, Any]) -> None:
    """Write the page of `evaluation_page` to a file, which appears under its name only when it is complete."""
    write_page(path, evaluation_page(found, facts))


def evaluation_page(found: Evaluation, facts: Mapping[str, Any]) -> str:
    """One HTML page that shows how good predictions are; needs matplotlib.

    Like all pages it has no script and loads nothing.

    Parameters
    ----------
    found
        What `evaluate` gave.
    facts
        What it was about, in the order in which it is shown: model, data, loss, … Names and values may be any text.
    """
    return render(
        "evaluation.html",
        headline=_headline(found),
        over=_over(found),
        notes=[str(note) for note in found.notes],
        figures=[KeyFigure(measure_in_words(name), number(value, 4)) for name, value in found.measures.items()],
        curves=curves_figure(found) if found.curves else None,
        calibration=calibration_figure(found) if found.calibration else None,
        tree=label_tree_figure(found) if found.tree else None,
        values=None if found.residuals is None else values_figure(found),
        queries=None if found.by_query is None else queries_figure(found.by_query),
        worst_queries=None if found.by_query is None else worst_queries(found.by_query),
        against=None if found.against is None else _against(found.against),
        classes=_classes(found) if found.per_class else None,
        classes_heading="Each label" if found.kind == "multilabel" else "Each class",
        confusion=None if found.confusion is None else _confusion(found),
        facts=facts,
    )


def _headline(found: Evaluation) -> str:
    """The measure by which such models are judged first."""
    usual = ("accuracy", "exact_sets", "coverage", "d2", "r2")
    name = next((name for name in usual if name in found.measures), "")
    if not name and found.by_query is not None:
        name = main_measure(found.by_query)
    words = measure_in_words(name)
    wanted = f", wanted {number(found.tau)}" if name == "coverage" and found.tau is not None else ""
    return f"{words[:1].upper()}{words[1:]} {number(found.measures[name], 4)}{wanted}"


def _over(found: Evaluation) -> str:
    weight = "" if found.weight is None else f" of weight {number(found.weight)}"
    meant = "" if found.positive is None else f"; the positive class is {found.positive}"
    rows = count(found.rows, "row")
    if found.by_query is not None:
        rows += f" of {count(len(found.by_query.query), 'query', 'queries')}"
    return f"On {rows}{weight}{meant}"


def _classes(found: Evaluation) -> Table:
    """Each class against the rest, or each label."""
    ranked = any(not math.isnan(one.auc) for one in found.per_class)
    names = ["precision", "recall", "f1", *(["auc", "average_precision"] if ranked else [])]
    chosen, caption = list(found.per_class), "The class against all others, whatever these are."
    if found.kind == "multilabel":
        caption = "Each label by itself, present or not."
    if len(chosen) > _MOST_CLASSES:
        chosen = sorted(chosen, key=lambda one: one.f1)[:_MOST_CLASSES]
        caption += f" Those {_MOST_CLASSES} of {len(found.per_class):,} with the lowest F1."
    rows = decimals([one.rows for one in chosen], 6)

    def row(one: ClassMeasures) -> Row:
        figures = [getattr(one, name) for name in names]
        cells = [Cell("–" if math.isnan(v) else f"{v:.4f}", share=None if math.isnan(v) else v) for v in figures]
        return Row(one.name, [Cell(rows(one.rows)), Cell(number(one.predicted)), *cells])

    columns = ["class", "rows", "predicted", *map(measure_in_words, names)]
    return Table(caption, columns, [row(one) for one in chosen])


def _against(found: Comparison) -> Table:
    """What a test says of the difference from another model."""
    columns = ["measure", "model", "other", "difference", "95 % interval", "p"]
    rows = []
    for one in found.differences:
        figures = [f"{one.model:.4g}", f"{one.other:.4g}", f"{one.difference:+.4g}"]
        figures += [f"{one.low:+.4g} to {one.high:+.4g}", f"{one.p:.2g}"]
        rows.append(Row(measure_in_words(one.measure), [Cell(figure) for figure in figures]))
    return Table(f"{found.method}.", columns, rows)


def _confusion(found: Evaluation) -> Table:
    """All cells, or the most frequent confusions where there would be too many."""
    assert found.confusion is not None
    if len(found.classes) > _MOST_IN_TABLE:
        top = found.top_confusions(_MOST_CONFUSIONS)
        rows = [
            Row(one.label, [Cell(one.predicted), Cell(number(one.rows)), Cell(f"{one.share:.1%}", share=one.share)])
            for one in top
        ]
        return Table("The most frequent confusions.", ["label", "taken for", "rows", "part of the class"], rows)
    rows = []
    for name, cells in zip(found.classes, found.confusion.tolist(), strict=True):
        total = sum(cells) or 1.0
        hints = [f"{cell / total:.1%} of {name} as {other}" for cell, other in zip(cells, found.classes, strict=True)]
        rows.append(
            Row(name, [Cell(number(cell), hint, cell / total) for cell, hint in zip(cells, hints, strict=True)])
        )
    caption = "A line has the rows of a class, a column those predicted as one; bars are parts of the class."
    return Table(caption, ["label", *(f"as {name}" for name in found.classes)], rows)
