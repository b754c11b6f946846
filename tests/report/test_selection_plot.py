"""The figure of a search for C shows the numbers of its path."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from searches import search

from beeline.exceptions import MissingDependencyError
from beeline.selection import End


def line(axes, label: str):
    (found,) = [line for line in axes.lines if line.get_label() == label]
    return found


def vertical_lines(axes) -> set[float]:
    return {line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 2 and np.ptp(line.get_xdata()) == 0}


def texts(figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_the_score_is_drawn_with_its_spread():
    found = search()
    upper = found.plot().axes[0]
    np.testing.assert_array_equal(line(upper, "accuracy").get_xdata(), range(-18, 2))
    np.testing.assert_array_equal(line(upper, "accuracy").get_ydata(), [point.score for point in found.curve])
    (band,) = [band for band in upper.collections if "5 folds" in band.get_label()]
    heights = {round(y, 9) for x, y in band.get_paths()[0].vertices if x == -3}
    best = found.best
    assert heights == {round(best.score - best.spread, 9), round(best.score + best.spread, 9)}


def test_times_are_cumulative_from_warm_and_cold_starts():
    found = search()
    right = found.plot().axes[2]
    for label, path in (("seconds from warm starts", found), ("seconds from cold starts", found.cold)):
        times = line(right, label).get_ydata()
        assert times[0] == path.curve[0].seconds
        assert times[-1] == pytest.approx(path.seconds)
        assert (np.diff(times) > 0).all()
    assert [drawn.get_label() for drawn in search(cold=False).plot().axes[2].lines] == ["seconds"]


def test_lines_stand_at_the_best_c_and_at_the_end():
    figure = search().plot()
    upper, lower, _ = figure.axes
    for axes in (upper, lower):
        assert vertical_lines(axes) == {-3.0, 1.0}
    assert "best C = 0.125" in texts(figure)
    assert "ended: the weights no longer change with C" in texts(figure)
    assert "ended: it was interrupted" in texts(search(end=End.INTERRUPTED).plot())


def test_the_stop_ratio_has_its_tolerance():
    found = search()
    lower = found.plot().axes[1]
    ratios = next(drawn for drawn in lower.lines if len(drawn.get_xdata()) == 20).get_ydata()
    np.testing.assert_array_equal(ratios, [point.stop_ratio for point in found.curve])
    assert [drawn.get_ydata()[0] for drawn in lower.lines if set(drawn.get_ydata()) == {2.5e-3}] == [2.5e-3]
    filled = {drawn.get_xdata()[0] for drawn in lower.lines if len(drawn.get_xdata()) == 1}
    assert filled == {-1.0, 0.0, 1.0}


def test_of_several_epsilons_the_best_is_drawn_and_the_others_are_faint():
    found = search(epsilons=(0.2, 0.0, 0.1))
    assert found.best.epsilon == 0.0
    upper, _, right = found.plot().axes
    curves = {drawn.get_label(): drawn for drawn in upper.lines if len(drawn.get_xdata()) == 20}
    assert [label for label in curves if not label.startswith("_")] == ["accuracy at ε = 0"]
    assert [drawn.get_alpha() for label, drawn in curves.items() if label.startswith("_")] == [0.25, 0.25]
    for drawn in right.lines:
        assert len(drawn.get_xdata()) == 20


def test_the_rule_of_one_standard_error_shows_what_it_asks_for():
    found = search(rule="one_se")
    assert found.best_C < search().best_C
    top = search().best
    drawn = line(found.plot().axes[0], "one standard error")
    assert drawn.get_ydata()[0] == pytest.approx(top.score - top.standard_error)


def test_a_lower_is_better_metric_says_so():
    found = search(metric="log_loss", greater_is_better=False)
    assert found.plot().axes[0].get_ylabel() == "log_loss (lower is better)"


def test_a_given_figure_is_drawn_into():
    figure = Figure(figsize=(4, 4))
    assert search().plot(figure) is figure
    assert len(figure.axes) == 3


@pytest.mark.parametrize(
    "found",
    [
        search(n_points=1),
        search(n_points=2, cold=False),
        search(stop_tol=0.0),
        search(metric="$x_i$ of a\nb"),
        search(metric="cost in $"),
    ],
)
def test_unusual_searches_are_drawn(found):
    found.plot().draw_without_rendering()  # warnings are errors


@pytest.mark.parametrize(
    "changes",
    [
        {"fold_scores": (math.nan,) * 5},
        {"fold_scores": (math.inf,) * 5},
        {"stop_ratio": 0.0},
        {"stop_ratio": math.nan},
        {"seconds": 0.0},
    ],
)
@pytest.mark.parametrize("which", [(0, 3, 5), range(6)], ids=["some", "all"])
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # the spread of infinite scores
def test_unusual_points_are_drawn(changes, which):
    found = search(cold=False, n_points=6)
    curve = [replace(point, **changes) if i in which else point for i, point in enumerate(found.curve)]
    replace(found, curve=tuple(curve)).plot().draw_without_rendering()


def test_a_single_hold_out_has_no_band():
    found = search(cold=False)
    curve = [replace(point, fold_scores=(point.score,), fold_weights=(1.0,)) for point in found.curve]
    assert not replace(found, curve=tuple(curve)).plot().axes[0].collections


def test_no_window_and_no_global_figure_is_made():
    code = "import sys; sys.path.insert(0, sys.argv[1]); from searches import search; search().plot()\n"
    code += "assert 'matplotlib.figure' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, str(__file__).rpartition("/")[0]], check=True)


def test_without_matplotlib_it_says_what_to_do(monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        MissingDependencyError, match=r'^plots need another package; run: pip install "beeline-ml\[plot\]"$'
    ):
        search().plot()
