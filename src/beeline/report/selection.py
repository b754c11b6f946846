"""The result page of a search for C."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from beeline.fitting import Fitted
from beeline.report.rendering import KeyFigure, render
from beeline.report.selection_figure import selection_figure
from beeline.report.selection_tables import compared_starts, curve_tables
from beeline.report.training import training_summary
from beeline.report.values import decimals, number
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
    curve, others = curve_tables(selection)
    return render(
        "selection.html",
        chosen=_chosen(selection),
        measured=f"{selection.metric} {number(selection.best_score, 5)}",
        concerns=_concerns(selection, trained),
        reasons=[_why_this(selection), f"The search ended because {selection.end.value}{_beyond(selection)}."],
        note=_at_the_edge(selection),
        figures=_figures(selection),
        figure=selection_figure(selection),
        starts=compared_starts(selection),
        curve=curve,
        others=others,
        summary=None if trained is None else training_summary(trained),
        facts=facts,
    )


def _concerns(selection: Selection, trained: Fitted | None) -> list[str]:
    """What was warned of, in the search and in the training after it, each once."""
    report = None if trained is None else trained.model.report
    said = [concern.sentence for concern in selection.concerns]
    return list(dict.fromkeys([*said, *(() if report is None else report.concerns)]))


def _chosen(selection: Selection) -> str:
    epsilon = selection.best.epsilon
    return f"C = {selection.best_C:.6g}" + ("" if epsilon is None else f", ε = {epsilon:.6g}")


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
    if selection.best_C == max(values) and selection.end not in (End.SETTLED, End.FLAT, End.PERFECT):
        return "The chosen C is the largest that was tried: a larger one may be better still."
    if selection.best_C == min(values):
        return "The chosen C is the smallest that was tried."
    return None


def _figures(selection: Selection) -> list[KeyFigure]:
    best = selection.best
    score = decimals([best.score], 5)(best.score)
    figures = [KeyFigure(selection.metric, score, number(best.spread, 2) if len(best.fold_scores) > 1 else None)]
    if not math.isnan(selection.null_score):
        figures.append(KeyFigure("without a model", number(selection.null_score, 5)))
    return [
        *figures,
        KeyFigure("values tried" if best.epsilon is None else "pairs tried", number(len(selection.curve))),
        KeyFigure("seconds", number(selection.seconds, 3)),
        KeyFigure("passes over the data", number(sum(point.passes for point in selection.curve), 4)),
    ]
