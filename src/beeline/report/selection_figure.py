"""The figure of a search for C inside its page, once for wide and once for narrow screens."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from beeline.plotting import new_figure
from beeline.report.svg import PageFigure, Sizes, page_figure
from beeline.report.values import number
from beeline.selection import PathPoint, Selection
from beeline.selection.plot import draw_selection, path_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["selection_figure"]

_SIZES = Sizes(broad=(9.4, 5.8), slim=(4.0, 5.8))


def selection_figure(selection: Selection) -> PageFigure:
    """The figure with its caption."""
    path = path_of(selection.curve, selection.best.epsilon)
    hints = {f"{kind}{i}": words for i, words in enumerate(_hints(selection, path)) for kind in ("point", "ratio")}

    def drawn(size: tuple[float, float]) -> Figure:
        figure = draw_selection(selection, new_figure(size))
        _add_places_to_point_at(figure, path)
        return figure

    return page_figure(drawn, "path", _SIZES, _label(selection), _caption(selection), hints)


def _label(selection: Selection) -> str:
    return (
        f"{selection.metric}, cumulative seconds and {_below(selection)} against the logarithm of C: "
        f"{selection.sentence}. "
        "The table below has the numbers."
    )


def _below(selection: Selection) -> str:
    return "stop ratio" if selection.stop == "paper" else "losses"


def _about_below(selection: Selection) -> str:
    """What the lower panel shows."""
    if selection.stop == "paper":
        return "Below: by how much the weights still change with C; filled points are at or below the tolerance."
    return "Below: the mean of the loss itself, over held-out rows and over those trained on."


def _caption(selection: Selection) -> str:
    words = (
        f"Left axis: {selection.metric} on held-out rows. Right axis: seconds from the first C to the current one. "
        f"Solid line: the chosen C; dotted line: the largest C tried. {_about_below(selection)}"
    )
    if selection.best.epsilon is None:
        return words
    return f"{words} Drawn is the path of the chosen ε; faint lines are the scores of the others."


def _hints(selection: Selection, path: list[PathPoint]) -> list[str]:
    """What appears when the pointer rests on a C."""
    texts = []
    for point, seconds in zip(path, accumulate(point.seconds for point in path), strict=True):
        lines = [f"C = {point.C:.6g} (log₂ C = {math.log2(point.C):.5g})"]
        spread = f" ± {number(point.spread, 2)}" if len(point.fold_scores) > 1 else ""
        lines += [f"{selection.metric} {number(point.score, 5)}{spread}"]
        lines.append(f"{number(seconds, 3)} seconds up to here")
        if selection.stop == "paper":
            lines.append(f"stop ratio {number(point.stop_ratio, 3)}")
        else:
            lines.append(f"loss {number(point.loss, 4)} held out, {number(point.training_loss, 4)} in training")
        texts.append("\n".join(lines))
    return texts


def _add_places_to_point_at(figure: Figure, path: list[PathPoint]) -> None:
    """A column around each C, in both panels, that cannot be seen until the pointer is over it."""
    _, lower, right = figure.axes  # the axis of the times lies on top of the upper panel
    x = sorted({math.log2(point.C) for point in path})
    order = {math.log2(point.C): i for i, point in enumerate(path)}
    edges = [x[0] - 0.5, *((a + b) / 2 for a, b in pairwise(x)), x[-1] + 0.5]
    for at, span in zip(x, pairwise(edges), strict=True):
        for axes, kind in ((right, "point"), (lower, "ratio")):
            axes.axvspan(*span, facecolor="none", edgecolor="none", gid=f"{kind}{order[at]}")
