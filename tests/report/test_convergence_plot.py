"""The figure of convergence shows the numbers of the traces."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from runs import run

from beeline import LinearModel, plot_convergence
from beeline.exceptions import MissingDependencyError, ParameterError
from beeline.plotting import new_figure

GAPS = (math.inf, 3.0, 0.2, 0.01, 1e-5)


def curves(axes) -> list[tuple[list[float], list[float]]]:
    """The lines that were drawn, without what only stands for the legend or for zeros."""
    drawn = [line for line in axes.lines if line.get_marker() == "o" and len(line.get_xdata())]
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in drawn]


def triangles(axes) -> list[float]:
    return [x for line in axes.lines if line.get_marker() == "v" for x in line.get_xdata()]


def labels(figure) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_gaps_against_steps_and_seconds_from_where_a_bound_is_known():
    left, right = plot_convergence({"ocas": run(*GAPS)}).axes
    assert curves(left) == [([2, 3, 4, 5], [3.0, 0.2, 0.01, 1e-5])]
    assert curves(right) == [([0.5, 0.75, 1.0, 1.25], [3.0, 0.2, 0.01, 1e-5])]
    assert (left.get_xlabel(), right.get_xlabel()) == ("steps", "seconds")
    assert left.get_yscale() == right.get_yscale() == "log"
    low, high = left.get_ylim()
    assert low < 1e-5
    assert high > 3


def test_several_runs_are_told_apart():
    figure = plot_convergence({f"run {k}": run(*GAPS[: 2 + k % 4]) for k in range(12)})
    assert labels(figure) == [f"run {k}" for k in range(12)]
    (legend,) = figure.legends
    looks = {(line.get_color(), str(line._dash_pattern)) for line in legend.get_lines()}
    assert len(looks) == 12


def test_several_problems_of_one_run_have_one_colour():
    left, _ = plot_convergence({"each": [run(*GAPS), run(*GAPS[:3])], "one": run(0.5)}).axes
    drawn = [line for line in left.lines if line.get_marker() == "o" and len(line.get_xdata())]
    assert [len(line.get_xdata()) for line in drawn] == [4, 2, 1]
    assert drawn[0].get_color() == drawn[1].get_color() != drawn[2].get_color()
    assert drawn[0].get_alpha() < drawn[2].get_alpha() == 1


def test_an_estimator_is_a_run():
    X = np.random.default_rng(0).normal(size=(150, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = LinearModel("hinge", solver="bundle").fit(X, y)
    left, _ = plot_convergence({"mine": model}).axes
    assert len(model.results_) == 3
    for (_, gaps), result in zip(curves(left), model.results_, strict=True):
        known = [at.gap for at in result.trace if math.isfinite(at.gap)]
        np.testing.assert_allclose(gaps, [gap if gap > 0 else gaps[-1] for gap in known])


def test_a_gap_of_zero_is_a_triangle_below_all_others():
    left, right = plot_convergence({"a": run(0.5, 1e-3, 0.0), "b": run(0.1, -1e-17)}).axes
    assert triangles(left) == [3, 2]
    assert triangles(right) == [0.75, 0.5]
    (_, gaps), _ = curves(left)
    assert left.get_ylim()[0] < gaps[-1] < 1e-3


@pytest.mark.parametrize(
    "runs",
    [
        {},
        {"one step": run(0.3)},
        {"only zero": run(0.0)},
        {"no bound": run(math.inf, math.inf)},
        {"not begun": run()},
        {"no problem": []},
        {"$x_i$ of a\nb": run(*GAPS), "cost in $": run(1e-300)},
        {"long": run(*np.geomspace(1e6, 1e-12, 3000))},
    ],
    ids=lambda runs: next(iter(runs), "none"),
)
@pytest.mark.parametrize("width", [4, 9])
def test_unusual_runs_are_drawn(runs, width):
    plot_convergence(runs, new_figure((width, 5))).draw_without_rendering()  # warnings are errors


def test_a_run_without_a_bound_says_so():
    assert labels(plot_convergence({"a": run(math.inf), "b": run(0.1)})) == ["a (no bound is known)", "b"]


def test_a_given_figure_is_drawn_into():
    figure = Figure(figsize=(4, 6))
    assert plot_convergence({"a": run(*GAPS)}, figure) is figure
    upper, lower = figure.axes
    assert upper.get_position().y0 > lower.get_position().y1  # one below the other where it is narrow


def test_what_is_no_run_is_refused():
    for wrong in (3, [1, 2], LinearModel(), "bundle"):
        with pytest.raises(ParameterError, match="the run 'x' must be a fitted estimator, its results_ or a Result"):
            plot_convergence({"x": wrong})


def test_no_window_and_no_global_figure_is_made():
    code = "import sys; sys.path.insert(0, sys.argv[1]); from runs import run\n"
    code += "from beeline import plot_convergence; plot_convergence({'a': run(0.1)})\n"
    code += "assert 'matplotlib.figure' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, str(__file__).rpartition("/")[0]], check=True)


def test_without_matplotlib_it_says_what_to_do(monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        MissingDependencyError, match=r'^plots need another package; run: pip install "beeline-ml\[plot\]"$'
    ):
        plot_convergence({"a": run(0.1)})
