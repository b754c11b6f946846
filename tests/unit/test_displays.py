"""Results as scikit-learn's users look at them: displays and HTML."""

from __future__ import annotations

import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from beeline import LinearSVC, LogisticRegression, Ridge, SelectionDisplay, SGDClassifier
from beeline.exceptions import MissingDependencyError, ParameterError

X = np.random.default_rng(0).normal(size=(60, 3))
TWO = np.where(X[:, 0] > 0, "<b>", "a")


def certificate(estimator):
    html = estimator._repr_html_()
    assert estimator._repr_mimebundle_()["text/html"].count("beeline-certificate") == 1
    return ElementTree.fromstring(html[html.index('<div class="beeline-certificate"') :])


def test_the_display_of_a_search():
    searched = LinearSVC(C="auto").fit(X, TWO)
    axes = Figure().subplots()
    display = SelectionDisplay.from_estimator(searched, ax=axes)
    assert display.ax_ is axes
    assert display.figure_ is axes.figure
    assert display.selection is searched.selection_
    drawn = axes.lines[0].get_xydata()
    curve = searched.selection_.curve
    np.testing.assert_allclose(drawn, [[np.log2(point.C), point.score] for point in curve])
    other = Figure().subplots()
    assert display.plot(other).ax_ is other


def test_without_axes_it_is_a_figure_of_pyplot():
    from matplotlib import pyplot

    pipeline = make_pipeline(StandardScaler(), Ridge("auto")).fit(X, X[:, 0] + X[:, 1] * X[:, 2])
    display = SelectionDisplay.from_estimator(pipeline)
    assert pyplot.gcf() is display.figure_
    pyplot.close(display.figure_)


@pytest.mark.parametrize(
    ("estimator", "said"), [(LinearSVC().fit(X, TWO), "C='auto'"), (Ridge().fit(X, X[:, 0]), "alpha='auto'")]
)
def test_there_must_have_been_a_search(estimator, said):
    with pytest.raises(ParameterError, match=f"has made no search; fit it with {said}"):
        SelectionDisplay.from_estimator(estimator)


def test_the_display_needs_matplotlib(monkeypatch):
    searched = LinearSVC(C="auto").fit(X, TWO)
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match="beeline-ml"):
        SelectionDisplay.from_estimator(searched)


def test_a_fitted_estimator_shows_its_certificate():
    model = LogisticRegression()
    assert "beeline-certificate" not in model._repr_html_()
    shown = certificate(model.fit(X, TWO))
    assert "".join(shown.itertext()) == model.report_.sentence
    assert "above the optimum" in model.report_.sentence
    assert "without a certificate" in "".join(certificate(SGDClassifier().partial_fit(X, TWO)).itertext())


def test_a_search_shows_a_curve_without_any_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    model = LinearSVC(C="auto").fit(X, TWO)
    shown = certificate(model)
    points = shown.find(".//polyline").get("points").split()
    assert len(points) == len(model.selection_.curve)
    assert all(re.fullmatch(r"\d+\.\d,\d+\.\d", point) for point in points)
    assert shown.find(".//circle") is not None
    assert model.selection_.sentence in "".join(shown.itertext())


def test_what_there_is_to_doubt_is_shown():
    with pytest.warns(UserWarning, match="no better than its intercept"):
        model = LogisticRegression(C=1e-12).fit(X, TWO)
    assert model.report_.concerns[0] in "".join(certificate(model).itertext())


def test_text_stays_text():
    with config_context(display="text"):
        assert not hasattr(LogisticRegression().fit(X, TWO), "_repr_html_")
