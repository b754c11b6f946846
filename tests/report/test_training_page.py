"""The page of a training: what is proven, how it converged, and nothing from elsewhere."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace

import pytest
from pages import Page
from runs import run, trained
from searches import search

from beeline.exceptions import MissingDependencyError
from beeline.report import selection_page, training_page, write_training_page
from beeline.solvers.base import Status

FACTS = {"data": "R&D <train>.csv", "rows": "1,234", "loss": "hinge", "regularizer": "l2", "C": 2.0}
GAPS = (math.inf, 0.8, 0.02, 8.1e-5)


@pytest.fixture(scope="module")
def html() -> str:
    return training_page(trained(run(*GAPS)), FACTS)


@pytest.fixture(scope="module")
def page(html) -> Page:
    return Page(html)


def test_it_says_what_is_proven_and_what_it_took(page):
    assert "The hinge model At most 0.0082 % above the optimum" in page.text
    assert "bundle: stopped after 8 passes, at most 0.0082 % above the optimum." in page.text
    for name, figure in (("objective", "6.25"), ("steps", "4"), ("passes over the data", "8"), ("seconds", "1.5")):
        assert f"{name}{figure}" in page.text
    assert ["data", "R&D <train>.csv"] in [cells for _, cells in page.rows]
    assert ["C", "2"] in [cells for _, cells in page.rows]


def test_what_else_the_solver_says_is_there():
    told = replace(run(*GAPS), facts={"planes": 4, "step_bound": 4100.0})
    rows = [cells for _, cells in Page(training_page(trained(told), FACTS)).rows]
    assert ["planes", "4"] in rows
    assert ["step bound", "4,100"] in rows


def test_the_figure_is_there_for_wide_and_narrow_screens(html, page):
    pictures = [found for tag, found in page.elements if tag == "svg"]
    assert [picture["class"] for picture in pictures] == ["broad", "slim"]
    assert all("at most 0.0082 % above the optimum" in picture["aria-label"] for picture in pictures)
    assert html.count("certified relative gap</text>") == 3  # two panels beside each other share the axis
    for picture in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        assert re.findall(r"#[0-9a-f]{6}\b", picture.replace('href="#', "")) == []


def test_it_needs_nothing_from_elsewhere(html, page):
    assert not re.search(r"https?:|//|@import|src=", html)
    assert {tag for tag, _ in page.elements} & {"script", "img", "iframe", "object", "embed", "base", "form"} == set()
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))


def test_every_problem_has_a_line():
    found = Page(training_page(trained(run(*GAPS), run(0.5, 0.25), run(0.5, 0.0)), {}))
    assert "Each output was a problem of its own: 3." in found.text
    assert [cells for _, cells in found.rows] == [
        ["problem", "steps", "passes", "seconds", "objective", "gap"],
        ["class <0>", "4", "8", "1.00", "6.25000", "8.1e-05"],
        ["class <1>", "2", "4", "0.50", "7.50000", "0.25"],
        ["class <2>", "2", "4", "0.50", "7.50000", "0"],
    ]


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (run(math.inf, status=Status.LIMIT), "An unknown distance above the optimum"),
        (run(0.3, status=Status.LIMIT), "reached its pass limit after 2 passes, at most 43 % above the optimum"),
        (run(0.3, status=Status.INTERRUPTED), "was interrupted after 2 passes"),
        (run(0.0), "At most 0 % above the optimum"),
    ],
)
def test_how_it_ended_is_said(result, words):
    html = training_page(trained(result), {})
    assert words in Page(html).text
    assert ('<p class="note">' in html) == (result.status is not Status.CONVERGED)


def test_the_page_of_a_search_tells_of_the_training_too():
    html = selection_page(search(cold=False, n_points=3), {}, trained(run(*GAPS)))
    found = Page(html)
    assert "Training with this C bundle: stopped after 8 passes" in found.text
    assert len([tag for tag, _ in found.elements if tag == "svg"]) == 4
    ids = found.attributes("id")
    assert len(ids) == len(set(ids))


def test_the_same_training_gives_the_same_bytes_and_any_name_is_text(html):
    assert training_page(trained(run(*GAPS)), FACTS) == html
    nasty = replace(run(*GAPS), solver="<script>alert(1)</script>")
    found = Page(training_page(trained(nasty), {"<b>": "</table>"}))
    assert {tag for tag, _ in found.elements} & {"script", "b"} == set()


def test_without_matplotlib_the_old_file_stays(tmp_path, monkeypatch):
    path = tmp_path / "t.html"
    write_training_page(path, trained(run(*GAPS)), FACTS)
    before = path.read_bytes()
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError):
        write_training_page(path, trained(run(0.1)), FACTS)
    assert path.read_bytes() == before
