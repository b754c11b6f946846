"""How solvers got to the optimum as a figure, after Figure 7 of the paper on the bundle method."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beeline.exceptions import ParameterError
from beeline.plotting import COLOURS, SMALL, escape_math, is_narrow, lighten, line_styles, new_figure
from beeline.solvers.base import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_convergence"]

_FEW = 40  # steps, each of which is marked
_FAINT = 0.3


@dataclass(frozen=True)
class _Line:
    """The steps of a run at which a gap was known."""

    steps: list[int]
    seconds: list[float]
    gaps: list[float]

    @classmethod
    def of(cls, result: Result) -> _Line:
        """The steps of a trace; the first is 1."""
        known = [(k, at) for k, at in enumerate(result.trace, start=1) if math.isfinite(at.gap)]
        return cls([k for k, _ in known], [at.seconds for _, at in known], [max(at.gap, 0.0) for _, at in known])


def plot_convergence(runs: Mapping[str, Any], figure: Figure | None = None) -> Figure:
    """Draw the certified relative gap against steps, and against seconds; needs matplotlib.

    A line begins where a bound of the optimum is first known. A gap of zero, which has no logarithm, is a triangle at
    the lower edge. A run of several problems, such as each class against the rest, has a line for each, in one colour.

    Parameters
    ----------
    runs : dict of str to Result, list of Result or fitted estimator
        What is drawn, by the name that it has in the legend.
    figure : matplotlib.figure.Figure, default=None
        An empty figure to draw into; None: a new one, that belongs to no window.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from beeline import LinearSVC, plot_convergence
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> runs = {name: LinearSVC(solver=name).fit(X, X[:, 0] > 0) for name in ("bundle", "dual_cd")}
    >>> figure = plot_convergence(runs)
    """
    lines = {name: [_Line.of(result) for result in _results(name, run)] for name, run in runs.items()}
    if figure is None:
        figure = new_figure((9.0, 4.2))
    shape = (2, 1) if is_narrow(figure) else (1, 2)
    left, right = figure.subplots(*shape, sharey=True)
    floor = _set_gaps(left, [gap for line in _all_lines(lines) for gap in line.gaps])
    for (name, of_run), style in zip(lines.items(), line_styles(), strict=False):
        style |= {"alpha": max(_FAINT, 1 / math.sqrt(max(1, len(of_run))))}
        for line in of_run:
            _draw(left, line.steps, line.gaps, floor, style)
            _draw(right, line.seconds, line.gaps, floor, style)
        unknown = "" if any(line.gaps for line in of_run) else " (no bound is known)"
        left.plot([], [], label=escape_math(name) + unknown, **(style | {"alpha": 1.0}))
    _finish(figure, left, right, len(lines))
    return figure


def _results(name: str, run: Any) -> Sequence[Result]:  # noqa: ANN401
    """The results of a run: its own, or those of an estimator."""
    found = getattr(run, "results_", run)
    results = [found] if isinstance(found, Result) else found
    if not isinstance(results, Sequence) or not all(isinstance(result, Result) for result in results):
        raise ParameterError(
            f"the run {name!r} must be a fitted estimator, its results_ or a Result, not {run!r}", parameter="runs"
        )
    return results


def _all_lines(lines: Mapping[str, list[_Line]]) -> Iterator[_Line]:
    return (line for of_run in lines.values() for line in of_run)


def _set_gaps(axes: Axes, gaps: list[float]) -> float:
    """A logarithmic scale around all gaps; gives its lower end, where gaps of zero are drawn."""
    seen = [gap for gap in gaps if gap > 0] or [1e-4, 1.0]
    floor, top = min(seen) / 2, 2 * max(seen)
    if min(gaps, default=1.0) == 0:
        floor /= 5  # so that a zero stands apart from what is only small
    axes.set_yscale("log")
    axes.set_ylim(floor * (floor / top) ** 0.04, top)
    return floor


def _draw(axes: Axes, x: Sequence[float], gaps: list[float], floor: float, style: dict[str, Any]) -> None:
    marks: dict[str, Any] = {"marker": "o", "markersize": 3.5, "markevery": 1 if len(x) <= _FEW else [len(x) - 1]}
    axes.plot(x, [max(gap, floor) for gap in gaps], linewidth=1.6, **marks, **style)
    zeros = [at for at, gap in zip(x, gaps, strict=True) if gap == 0]
    axes.plot(zeros, [floor] * len(zeros), marker="v", markersize=7, linestyle="none", color=style["color"])


def _finish(figure: Figure, left: Axes, right: Axes, n_runs: int) -> None:
    """Light grids, whole steps, seconds from zero, and one legend above both panels."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    lighten(left, right)
    for axes, words in ((left, "steps"), (right, "seconds")):
        axes.grid(color=COLOURS["grid"], linewidth=0.7)
        axes.set_axisbelow(True)
        axes.set_xlim(0, max(axes.get_xlim()[1], 1.05 if axes is left else 0.0))
        axes.set_xlabel(words, color=COLOURS["ink"])
    left.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    right.xaxis.set_major_locator(MaxNLocator(nbins=6))
    left.yaxis.set_major_locator(LogLocator(numticks=10))
    left.yaxis.set_minor_formatter(NullFormatter())
    left.set_ylabel("certified relative gap", color=COLOURS["ink"])
    if is_narrow(figure):
        right.set_ylabel("certified relative gap", color=COLOURS["ink"])
    if n_runs:
        columns = 2 if is_narrow(figure) else 5
        figure.legend(loc="outside upper left", ncols=columns, frameon=False, fontsize=SMALL, labelcolor=COLOURS["ink"])
