"""The result page of a training: what is proven of the model, and how the solver got there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from beeline.fitting import Fitted
from beeline.model import Report
from beeline.plotting import new_figure
from beeline.report.rendering import Cell, KeyFigure, Row, Table, render
from beeline.report.svg import PageFigure, Sizes, page_figure
from beeline.report.values import decimals, number, shown
from beeline.report.writing import write_page
from beeline.solvers.base import distance_in_words
from beeline.solvers.convergence import plot_convergence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from beeline.solvers.base import Result

__all__ = ["TrainingSummary", "training_page", "training_summary", "write_training_page"]

_SIZES = Sizes(broad=(9.4, 4.0), slim=(4.0, 6.2))
_CAPTION = (
    "How far the model is at most from the optimum, relatively, by a bound that is proven; against the solver's steps, "
    "and against seconds. A line begins where a bound is first known; a triangle stands for a distance of zero."
)
_MOST_PROBLEMS = 200  # lines of a table that anybody reads


class TrainingSummary(NamedTuple):
    """How a training went: a sentence, the figure, what else the solver says, and a table of several problems."""

    sentence: str
    converged: bool
    figure: PageFigure
    said: dict[str, str]
    problems: Table | None


def write_training_page(path: str | os.PathLike[str], trained: Fitted, facts: Mapping[str, Any]) -> None:
    """Write the page of `training_page` to a file, which appears under its name only when it is complete."""
    write_page(path, training_page(trained, facts))


def training_page(trained: Fitted, facts: Mapping[str, Any]) -> str:
    """One HTML page that shows how a model was trained; needs matplotlib.

    Like all pages it has no script and loads nothing.

    Parameters
    ----------
    trained
        The model, and what the solver said.
    facts
        What it was about, in the order in which it is shown: data, rows, features, loss, regularizer, … Names and
        values may be any text.
    """
    report = _report(trained)
    return render(
        "training.html",
        loss=trained.model.loss,
        distance=distance_in_words(report.gap).capitalize(),
        concerns=report.concerns,
        figures=_figures(report),
        summary=training_summary(trained),
        facts=facts,
    )


def training_summary(trained: Fitted) -> TrainingSummary:
    """How the training went."""
    report = _report(trained)
    label = f"Certified gap against steps and seconds: {report.sentence}."
    runs = {report.solver: trained.results}
    return TrainingSummary(
        sentence=f"{report.solver}: {report.sentence}.",
        converged=report.converged,
        figure=page_figure(partial(_drawn, runs), "convergence", _SIZES, label, _CAPTION),
        said=_said(trained),
        problems=_problems(trained),
    )


def _drawn(runs: dict[str, list[Result]], size: tuple[float, float]) -> Figure:
    return plot_convergence(runs, new_figure(size))


def _report(trained: Fitted) -> Report:
    report = trained.model.report
    assert report is not None
    return report


def _figures(report: Report) -> list[KeyFigure]:
    return [
        KeyFigure("objective", shown(report.objective)),
        KeyFigure("steps", number(report.iterations)),
        KeyFigure("passes over the data", number(report.passes, 4)),
        KeyFigure("seconds", number(report.seconds, 3)),
    ]


def _said(trained: Fitted) -> dict[str, str]:
    """What else the solver of a single problem has to say, such as how many steps theory allows."""
    facts = trained.results[0].facts if len(trained.results) == 1 else {}
    return {name.replace("_", " "): number(value, 4) for name, value in facts.items()}


def _problems(trained: Fitted) -> Table | None:
    """A line for each problem, where there were several."""
    results, model = trained.results[:_MOST_PROBLEMS], trained.model
    if len(results) == 1:
        return None
    names = [model.output_name(k) for k in range(len(results))] if model.classes is None else model.classes.tolist()
    columns = {"steps": [number(result.iterations) for result in results]}
    for name, digits in (("passes", 4), ("seconds", 3), ("objective", 6)):
        figures = [getattr(result, name) for result in results]
        columns[name] = list(map(decimals(figures, digits), figures))
    columns["gap"] = [number(result.gap, 2) for result in results]
    rows = [Row(name, list(map(Cell, cells))) for name, *cells in zip(names, *columns.values(), strict=False)]
    first = f"the first {_MOST_PROBLEMS} of " if len(trained.results) > _MOST_PROBLEMS else ""
    return Table(f"Each output was a problem of its own: {first}{len(trained.results):,}.", ["problem", *columns], rows)
