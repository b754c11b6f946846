"""The result page of a search for C."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from beeline.fitting import Fitted
from beeline.report.markup import concern_box, decimals, definitions, key_figures, number, page, section, text
from beeline.report.selection_figure import selection_figure
from beeline.report.selection_tables import curve_table, starts_table
from beeline.report.training import training_story
from beeline.report.writing import write_page
from beeline.selection import End, Selection

__all__ = ["selection_page", "write_selection_page"]


def write_selection_page(
    path: str | os.PathLike[str], selection: Selection, facts: Mapping[str, Any], trained: Fitted | None = None
) -> None:
    """Write the page of `selection_page` to a file, which appears under its name only when it is complete."""
    write_page(path, selection_page(selection, facts, trained))


def selection_page(selection: Selection, facts: Mapping[str, Any], trained: Fitted | None = None) -> str:
    """One HTML page that shows what a search for C found; needs matplotlib.

    It has no script and loads nothing: it can be sent, kept and opened anywhere. The same selection and facts give the
    same page, byte for byte.

    Parameters
    ----------
    selection
        What the search found.
    facts
        What it was about, in the order in which it is shown: data, rows, features, loss, folds, … Names and values may
        be any text, also that of somebody else's file.
    trained
        The model that was trained with the C found, where there is one.
    """
    title = _chosen(selection)
    parts = [
        '<p class="over">The C that was chosen</p>',
        f"<h1>{text(title)}</h1>",
        concern_box(_concerns(selection, trained)),
        *_reasons(selection),
        _key_figures(selection),
        section("The path of C", selection_figure(selection)),
        section("Warm against cold starts", starts_table(selection)) if selection.cold is not None else "",
        section("Every C", curve_table(selection)),
        section("Training with this C", training_story(trained)) if trained is not None else "",
        section("The search", definitions(facts.items())) if facts else "",
    ]
    return page(f"{title}: {selection.metric} {number(selection.best_score, 5)}", parts)


def _concerns(selection: Selection, trained: Fitted | None) -> list[str]:
    """What was warned of, in the search and in the training after it, each once."""
    report = None if trained is None else trained.model.report
    said = [concern.sentence for concern in selection.concerns]
    return list(dict.fromkeys([*said, *(() if report is None else report.concerns)]))


def _chosen(selection: Selection) -> str:
    epsilon = selection.best.epsilon
    return f"C = {selection.best_C:.6g}" + ("" if epsilon is None else f", ε = {epsilon:.6g}")


def _reasons(selection: Selection) -> list[str]:
    """Why this C, and why no further one, as paragraphs."""
    sentences = [_why_this(selection), f"The search ended because {selection.end.value}{_beyond(selection)}."]
    paragraphs = [f"<p>{text(sentence)}</p>" for sentence in sentences]
    if note := _at_the_edge(selection):
        paragraphs.append(f'<p class="note">{text(note)}</p>')
    return paragraphs


def _why_this(selection: Selection) -> str:
    best, folds = selection.best, len(selection.best.fold_scores)
    where = "on the rows held out" if folds == 1 else f"on average over {folds} folds"
    kind = "values" if best.epsilon is None else "pairs of C and ε"
    tried = "the only C tried" if len(selection.curve) == 1 else f"the best of {len(selection.curve)} {kind} tried"
    measured = f"Its {selection.metric} {where} is {number(best.score, 5)}"
    if selection.rule == "best" or len(selection.curve) == 1:
        return f"{measured}, {tried}; of equal ones the smallest C is taken."
    top = selection.with_rule("best").best
    if top is best:
        return (
            f"{measured}, {tried}; no smaller C is within one standard error, {number(top.standard_error, 2)}, of it."
        )
    return (
        f"{measured}. It is the smallest C within one standard error, {number(top.standard_error, 2)}, of {tried}: "
        f"{number(top.score, 5)} at C = {top.C:.6g}."
    )


def _beyond(selection: Selection) -> str:
    if selection.end is End.SETTLED:
        return (
            ": at three values of C in a row the weights of the last one were good enough as they were, so larger ones "
            "would give nearly the same model"
        )
    if selection.end in (End.WORSE, End.FLAT):
        return ": neither their score nor their loss was noticeably better at the last values of C"
    return "; larger values were not tried"


def _at_the_edge(selection: Selection) -> str | None:
    values = [point.C for point in selection.curve if point.epsilon == selection.best.epsilon]
    if len(values) == 1:
        return None
    if selection.best_C == max(values) and selection.end not in (End.SETTLED, End.FLAT):
        return "The chosen C is the largest that was tried: a larger one may be better still."
    if selection.best_C == min(values):
        return "The chosen C is the smallest that was tried."
    return None


def _key_figures(selection: Selection) -> str:
    best = selection.best
    score = decimals([best.score], 5)(best.score)
    spread = f" <small>± {number(best.spread, 2)}</small>" if len(best.fold_scores) > 1 else ""
    figures = [
        (selection.metric, f"{score}{spread}"),
        *([] if math.isnan(selection.null_score) else [("without a model", number(selection.null_score, 5))]),
        ("values tried" if best.epsilon is None else "pairs tried", number(len(selection.curve))),
        ("seconds", number(selection.seconds, 3)),
        ("passes over the data", number(sum(point.passes for point in selection.curve), 4)),
    ]
    return key_figures(figures)
