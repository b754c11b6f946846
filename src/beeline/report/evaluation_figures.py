"""The figures of an evaluation inside its page, each once for wide and once for narrow screens."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline._types import Floats
from beeline.evaluation import Evaluation, Residuals
from beeline.plotting import COLOURS, SMALL, escape_math, is_narrow, lighten, line_styles, new_figure
from beeline.report.svg import PageFigure, Sizes, page_figure
from beeline.report.values import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["DOTTED", "SIZES", "calibration_figure", "curves_figure", "panels", "set_axes", "values_figure"]

SIZES = Sizes(broad=(9.4, 4.2), slim=(4.0, 7.4))
_MOST_POINTS = 600  # of a cloud: more make a page slow, and no clearer
_GROUPS = 10  # of equally many rows, by prediction


def curves_figure(found: Evaluation) -> PageFigure:
    """ROC and precision–recall curves: of the positive class, or of several classes, each against the rest."""
    several = found.positive is None
    areas = {one.name: (one.auc, one.average_precision) for one in found.per_class}
    if found.positive is not None:
        areas = {found.positive: (found.measures["auc"], found.measures["average_precision"])}
    told = "; ".join(f"{name}: ROC area {number(areas[name][0], 4)}" for name in found.curves)
    caption = (
        "First: the part of the class that is found, against the part of the other rows that is taken for it, at every "
        "threshold; the dotted line is chance. Second: how much of what is found is right, against how much is found"
    )
    caption += "; the dotted line is the part of all rows. " if not several else ". "
    if several and len(found.curves) < len(found.classes):
        caption += f"Drawn are {len(found.curves)} of {len(found.classes):,} classes."
    label = f"ROC and precision–recall curves. {told}."
    return page_figure(partial(_draw_curves, found), "curves", SIZES, label, caption.strip())


def _draw_curves(found: Evaluation, size: tuple[float, float]) -> Figure:
    figure, (roc, trade) = panels(size)
    roc.plot([0, 1], [0, 1], **DOTTED)
    if found.positive is not None and found.confusion is not None:
        rows = found.confusion.sum(axis=1)[found.classes.index(found.positive)]
        share = rows / (found.confusion.sum() or 1)
        trade.plot([0, 1], [share, share], **DOTTED)
    for (name, curve), style in zip(found.curves.items(), line_styles(), strict=False):
        roc.plot([0, *curve.false_positives], [0, *curve.recall], linewidth=1.6, label=escape_math(name), **style)
        first = curve.precision[:1]
        trade.plot([0, *curve.recall], [*first, *curve.precision], drawstyle="steps-pre", linewidth=1.6, **style)
    set_axes(roc, "part of other rows taken for it", "part of the class found", unit=True)
    set_axes(trade, "recall: part of the class found", "precision: part that is right", unit=True)
    if len(found.curves) > 1:
        columns = 3 if is_narrow(figure) else 6
        roc_lines = [line for line in roc.lines if not line.get_label().startswith("_")]
        look: dict[str, Any] = {"frameon": False, "fontsize": SMALL, "labelcolor": COLOURS["ink"]}
        figure.legend(handles=roc_lines, loc="outside upper left", ncols=columns, **look)
    return figure


def calibration_figure(found: Evaluation) -> PageFigure:
    """Probabilities against what came true, and how many rows have which."""
    whose = "the predicted class" if found.positive is None else f"class {found.positive}"
    caption = (
        f"First: the mean predicted probability of {whose} in each tenth, against the part of these rows for which it "
        "came true; on the dotted line probabilities are what they say. Second: how many rows are in each tenth."
    )
    points = ", ".join(f"{number(one.probability, 2)}: {number(one.share, 2)}" for one in found.calibration)
    label = f"Predicted probabilities and what came true. {points}."
    return page_figure(partial(_draw_calibration, found), "calibration", SIZES, label, caption)


def _draw_calibration(found: Evaluation, size: tuple[float, float]) -> Figure:
    figure, (left, right) = panels(size)
    p, share, rows = np.array(found.calibration).T
    left.plot([0, 1], [0, 1], **DOTTED)
    left.plot(p, share, marker="o", markersize=4.5, linewidth=1.6, color=COLOURS["score"])
    places = (np.minimum(np.floor(p * 10), 9) + 0.5) / 10
    right.bar(places, rows, width=0.085, color=COLOURS["score"])
    set_axes(left, "predicted probability", "part that came true", unit=True)
    set_axes(right, "predicted probability", "rows")
    right.set_xlim(0, 1)
    return figure


def values_figure(found: Evaluation) -> PageFigure:
    """Residuals against predictions; of a quantile model labels against predictions, and the coverage."""
    assert found.residuals is not None
    rows = _finite(found.residuals)
    some = " A sample of the rows." if rows.is_sample or len(rows.labels) > _MOST_POINTS else ""
    if found.tau is None:
        caption = (
            "First: label minus prediction against the prediction; the line joins the means of ten groups of equally "
            "many rows, and lies near zero where the model is right on average. Second: how often residuals of each "
            f"size occur.{some}"
        )
        label = f"Residuals against predictions: RMSE {number(found.measures['rmse'], 4)}."
        return page_figure(partial(_draw_residuals, rows), "residuals", SIZES, label, caption)
    caption = (
        "First: labels against predictions; those below the dotted line are covered. Second: the part of the labels at "
        f"or below the prediction, in ten groups of equally many rows; the dotted line is what is wanted.{some}"
    )
    label = f"Coverage of a quantile: {number(found.measures['coverage'], 4)}, wanted {number(found.tau)}."
    return page_figure(partial(_draw_coverage, rows, found.tau), "coverage", SIZES, label, caption)


def _draw_residuals(rows: Residuals, size: tuple[float, float]) -> Figure:
    figure, (left, right) = panels(size)
    residuals = rows.labels - rows.predicted
    left.axhline(0, **DOTTED)
    _cloud(left, rows.predicted, residuals)
    left.plot(*_by_prediction(rows, residuals), color=COLOURS["warm"], linewidth=1.8, marker="o", markersize=3.5)
    right.hist(residuals, bins=30, weights=rows.weights, color=COLOURS["score"])
    set_axes(left, "prediction", "label − prediction")
    set_axes(right, "label − prediction", "rows")
    return figure


def _draw_coverage(rows: Residuals, tau: float, size: tuple[float, float]) -> Figure:
    figure, (left, right) = panels(size)
    _cloud(left, rows.predicted, rows.labels)
    if len(rows.labels):
        ends = [float(rows.predicted.min()), float(rows.predicted.max())]
        left.plot(ends, ends, **DOTTED)
    right.axhline(tau, **DOTTED)
    covered = (rows.labels <= rows.predicted).astype(np.float64)
    right.plot(*_by_prediction(rows, covered), color=COLOURS["warm"], linewidth=1.8, marker="o", markersize=4)
    set_axes(left, "prediction", "label")
    set_axes(right, "prediction", "part of labels covered")
    right.set_ylim(-0.02, 1.02)
    return figure


DOTTED: dict[str, Any] = {"color": COLOURS["muted"], "linestyle": (0, (1.5, 2.5)), "linewidth": 1.2}


def panels(size: tuple[float, float]) -> tuple[Figure, Any]:
    """Two panels, beside each other where there is room."""
    figure = new_figure(size)
    layout: Any = figure.get_layout_engine()
    layout.set(w_pad=0.1, h_pad=0.1)
    return figure, figure.subplots(*((2, 1) if is_narrow(figure) else (1, 2)))


def set_axes(axes: Axes, x: str, y: str, *, unit: bool = False) -> None:
    """Words at both axes, and a grid; with `unit` both go from 0 to 1."""
    lighten(axes)
    axes.grid(color=COLOURS["grid"], linewidth=0.7)
    axes.set_axisbelow(True)
    axes.set_xlabel(x, color=COLOURS["ink"])
    axes.set_ylabel(y, color=COLOURS["ink"])
    if unit:
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)


def _cloud(axes: Axes, x: Floats, y: Floats) -> None:
    some = slice(None, _MOST_POINTS)  # the sample is in random order
    axes.plot(x[some], y[some], "o", markersize=3, alpha=0.45, markeredgewidth=0, color=COLOURS["score"])


def _by_prediction(rows: Residuals, values: Floats) -> tuple[list[float], list[float]]:
    """Mean prediction and mean value of groups of rows, from the smallest predictions to the largest."""
    order = np.argsort(rows.predicted, kind="stable")
    groups = [part for part in np.array_split(order, _GROUPS) if rows.weights[part].sum() > 0]
    means = [
        [float(np.average(column[part], weights=rows.weights[part])) for part in groups]
        for column in (rows.predicted, values)
    ]
    return means[0], means[1]


def _finite(rows: Residuals) -> Residuals:
    """The rows that can be drawn: a rate may be beyond all numbers."""
    known = np.isfinite(rows.predicted) & np.isfinite(rows.labels)
    return Residuals(rows.predicted[known], rows.labels[known], rows.weights[known], rows.is_sample)
