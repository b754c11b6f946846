"""A search for C as a figure, after Figures 1 and 3 of the warm-start paper."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING

from beeline.plotting import COLOURS, SMALL, escape_math, is_narrow, lighten, new_figure
from beeline.selection.result import PathPoint, Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_curve", "draw_selection", "path_of"]


def draw_selection(selection: Selection, figure: Figure | None = None) -> Figure:
    """Score, cumulative time and losses (or stop ratio) against log₂ C.

    The upper panel has the score, with a band of one standard deviation over the folds, on its left axis, and on its
    right one the seconds from the first C to the current one, from warm starts and, where the selection has them, from
    cold ones. A solid vertical line is at the C that was chosen, a dotted one where the path ended. The lower panel has
    the mean losses of held-out and of training rows; or, where the path ended by the paper's rule, the stop ratio,
    filled where it is at or below `stop_tol`. Where ε was searched too, the path of the chosen ε is
    drawn, and the scores of the others are faint.

    Parameters
    ----------
    selection
        What a search found.
    figure
        An empty figure to draw into; by default a new one, that belongs to no window.

    Returns
    -------
    Figure
        The figure.
    """
    if figure is None:
        figure = new_figure()
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    path = path_of(selection.curve, selection.best.epsilon)
    _draw_scores(upper, selection, path)
    right = _draw_times(upper, selection, path)
    (_draw_ratios if selection.stop == "paper" else _draw_losses)(lower, selection, path)
    _draw_lines(upper, lower, selection, path)
    narrow = is_narrow(figure)
    _finish_axes(upper, lower, right, narrow)
    _draw_legend(upper, right, narrow)
    return figure


def draw_curve(selection: Selection, axes: Axes) -> None:
    """The scores against log₂ C alone, with the C that was chosen, into axes of somebody's own."""
    path = path_of(selection.curve, selection.best.epsilon)
    _draw_scores(axes, selection, path)
    axes.axvline(math.log2(selection.best_C), color=COLOURS["best"], linewidth=1.3)
    axes.set_xlabel("log₂ C")
    axes.legend(loc="best", frameon=False, fontsize=SMALL)


def path_of(curve: Iterable[PathPoint], epsilon: float | None) -> list[PathPoint]:
    """The points with one ε, in their order."""
    return [point for point in curve if point.epsilon == epsilon]


def _log2(path: list[PathPoint]) -> list[float]:
    return [math.log2(point.C) for point in path]


def _draw_scores(axes: Axes, selection: Selection, path: list[PathPoint]) -> None:
    chosen = selection.best
    for epsilon in dict.fromkeys(point.epsilon for point in selection.curve):
        if epsilon != chosen.epsilon:
            other = path_of(selection.curve, epsilon)
            axes.plot(_log2(other), [p.score for p in other], color=COLOURS["score"], alpha=0.25, linewidth=1)
    folds = len(chosen.fold_scores)
    metric = escape_math(selection.metric)
    label = metric if chosen.epsilon is None else f"{metric} at ε = {chosen.epsilon:.4g}"
    x, scores, spreads = _log2(path), [p.score for p in path], [p.spread for p in path]
    axes.plot(x, scores, color=COLOURS["score"], marker="o", markersize=4, linewidth=1.8, label=label)
    if folds > 1:
        low = [score - spread for score, spread in zip(scores, spreads, strict=True)]
        high = [score + spread for score, spread in zip(scores, spreads, strict=True)]
        words = f"± standard deviation of {folds} folds"
        axes.fill_between(x, low, high, color=COLOURS["score"], alpha=0.14, linewidth=0, label=words)
    if selection.rule == "one_se":
        axes.axhline(_enough(selection), color=COLOURS["best"], linewidth=1, dashes=(1, 2), label="one standard error")
    axes.plot(
        [math.log2(chosen.C)],
        [chosen.score],
        color=COLOURS["best"],
        marker="o",
        markersize=9,
        fillstyle="none",
        mew=1.8,
    )
    axes.set_ylabel(metric if selection.greater_is_better else f"{metric} (lower is better)", color=COLOURS["score"])


def _enough(selection: Selection) -> float:
    """The score that the rule of one standard error asks for."""
    top = selection.with_rule("best").best
    return top.score - top.standard_error if selection.greater_is_better else top.score + top.standard_error


def _draw_times(axes: Axes, selection: Selection, path: list[PathPoint]) -> Axes:
    right = axes.twinx()
    _draw_time(right, path, "warm", "seconds from warm starts" if selection.cold else "seconds")
    if selection.cold:
        _draw_time(right, path_of(selection.cold.curve, selection.best.epsilon), "cold", "seconds from cold starts")
    right.set_ylim(bottom=0)
    right.set_ylabel("cumulative seconds", color=COLOURS["warm"])
    return right


def _draw_time(axes: Axes, path: list[PathPoint], role: str, label: str) -> None:
    times = list(accumulate(point.seconds for point in path))
    dashes = (5, 2) if role == "warm" else (2, 1.5)
    axes.plot(_log2(path), times, color=COLOURS[role], linewidth=1.6, dashes=dashes, label=label)


def _draw_ratios(axes: Axes, selection: Selection, path: list[PathPoint]) -> None:
    x, ratios = _log2(path), [point.stop_ratio for point in path]
    seen = [value for value in (*ratios, selection.stop_tol) if 0 < value < math.inf]
    axes.set_yscale("log")  # a ratio of 0 lies below the panel
    axes.set_ylim(min(seen, default=0.1) / 2, 2 * max(seen, default=0.1))
    axes.plot(x, ratios, color=COLOURS["stop"], marker="o", markersize=4.5, linewidth=1.4, mfc=COLOURS["sheet"])
    reached = [(at, ratio) for at, ratio in zip(x, ratios, strict=True) if ratio <= selection.stop_tol]
    for at, ratio in reached:
        axes.plot([at], [ratio], color=COLOURS["stop"], marker="o", markersize=4.5, linestyle="none")
    if selection.stop_tol > 0:
        axes.axhline(selection.stop_tol, color=COLOURS["muted"], linewidth=1, dashes=(4, 3))
        axes.annotate(
            f"stop_tol = {selection.stop_tol:.3g}",
            (0, selection.stop_tol),
            xycoords=axes.get_yaxis_transform(),
            xytext=(4, 2),
            textcoords="offset points",
            va="bottom",
            color=COLOURS["muted"],
            fontsize=SMALL,
        )
    axes.set_ylabel("stop ratio", color=COLOURS["stop"])
    axes.set_xlabel("log₂ C")


def _draw_losses(axes: Axes, selection: Selection, path: list[PathPoint]) -> None:
    x = _log2(path)
    held_out, training = [point.loss for point in path], [point.training_loss for point in path]
    axes.plot(x, held_out, color=COLOURS["stop"], linewidth=1.4, marker="o", markersize=3.5, label="held out")
    axes.plot(x, training, color=COLOURS["stop"], linewidth=1.4, dashes=(4, 2), label="training")
    if min(*held_out, *training) > 0:
        axes.set_yscale("log")
    axes.legend(loc="lower left", frameon=False, fontsize=SMALL, labelcolor=COLOURS["ink"])
    axes.set_ylabel("mean loss", color=COLOURS["stop"])
    axes.set_xlabel("log₂ C")


def _draw_lines(upper: Axes, lower: Axes, selection: Selection, path: list[PathPoint]) -> None:
    """The vertical lines, each with its words above a panel: the best C the upper, the end the lower."""
    best, last = math.log2(selection.best_C), math.log2(path[-1].C)
    upper.set_xlim(min(_log2(path)) - 0.6, max(_log2(path)) + 0.6)
    for axes in (upper, lower):
        axes.axvline(best, color=COLOURS["best"], linewidth=1.3)
        axes.axvline(last, color=COLOURS["muted"], linewidth=1.3, dashes=(1, 1.5))
    _name_line(upper, best, f"best C = {selection.best_C:.6g}", COLOURS["best"], "bold")
    _name_line(lower, last, f"ended: {selection.end.value}", COLOURS["muted"], "normal")


def _name_line(axes: Axes, x: float, words: str, colour: str, weight: str) -> None:
    """Write words above a panel, beside a line, on the side where the panel is wider."""
    low, high = axes.get_xlim()
    axes.annotate(
        words,
        (x, 1),
        xycoords=axes.get_xaxis_transform(),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right" if x > (low + high) / 2 else "left",
        va="bottom",
        color=colour,
        fontsize=SMALL,
        fontweight=weight,
    )


def _finish_axes(upper: Axes, lower: Axes, right: Axes, narrow: bool) -> None:
    """Light grids and no frames; whole numbers of log₂ C."""
    from matplotlib.ticker import MaxNLocator, NullFormatter, StrMethodFormatter

    for axes in (upper, lower):
        axes.grid(color=COLOURS["grid"], linewidth=0.7)
        axes.set_axisbelow(True)
    lighten(upper, lower, right)
    lower.xaxis.set_major_locator(MaxNLocator(nbins=6 if narrow else 12, integer=True))
    lower.xaxis.label.set_color(COLOURS["ink"])
    lower.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    lower.yaxis.set_minor_formatter(NullFormatter())


def _draw_legend(upper: Axes, right: Axes, narrow: bool) -> None:
    """One legend for both axes of the upper panel, above it and above the words of the best C."""
    handles = [handle for axes in (upper, right) for handle in axes.get_legend_handles_labels()[0]]
    upper.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        borderaxespad=2.2,
        borderpad=0,
        ncols=1 if narrow else len(handles),
        frameon=False,
        fontsize=SMALL,
        labelcolor=COLOURS["ink"],
    )
