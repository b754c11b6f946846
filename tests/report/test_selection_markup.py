"""The page of a search for C: complete, harmless, by itself, and the same for the same search."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.resources import files

import matplotlib as mpl
import pytest
from pages import Page
from searches import FACTS, search

from beeline.exceptions import MissingDependencyError, ModelWarning, SourceError
from beeline.plotting import COLOURS
from beeline.report import selection_page, write_selection_page
from beeline.report.rendering import DARK_COLOURS
from beeline.report.svg import PageFigure
from beeline.report.values import decimals, number, shown
from beeline.selection import End
from beeline.training.concerns import Concern


@pytest.fixture(scope="module")
def html() -> str:
    return selection_page(search(), FACTS)


@pytest.fixture(scope="module")
def page(html) -> Page:
    return Page(html)


@pytest.fixture
def no_figure(monkeypatch):
    """For tests of words: drawing takes most of a page's time."""
    monkeypatch.setattr("beeline.report.selection.selection_figure", lambda _: PageFigure((), ""))


needs_no_figure = pytest.mark.usefixtures("no_figure")


def test_it_says_which_c_and_why(page):
    assert "C = 0.125 Its accuracy on average over 5 folds is 0.84825, the best of 20 values tried" in page.text
    assert "The search ended because the weights no longer change with C: at three values of C" in page.text


def test_the_whole_curve_is_in_the_table(page):
    found = search()
    (head,) = [i for i, (_, cells) in enumerate(page.rows) if cells[0] == "C"]
    assert page.rows[head][1] == [
        "C", "log₂ C", "accuracy ± spread", "seconds", "seconds, cold", "passes", "stop ratio"
    ]  # fmt: skip
    rows = page.rows[head + 1 : head + 21]
    assert [cells[0].split()[0] for _, cells in rows] == [f"{point.C:.6g}" for point in found.curve]
    assert [cells[1] for _, cells in rows] == [str(k) for k in range(-18, 2)]
    best = found.curve[15]
    assert rows[15] == ("best", ["0.125 best", "-3", "0.84825 ± 0.0052", "0.218", "0.784", "30", "0.0172"])
    assert f"{best.score:.5f} ± {best.spread:.4f}" == "0.84825 ± 0.0052"
    assert [mark for mark, _ in rows].count("best") == 1
    assert rows[0][1][-1] == "–"


def test_facts_and_totals_are_there(page):
    cells = [tuple(cells) for _, cells in page.rows]
    assert ("rows", "32,561") in cells
    assert ("data", "a9a.svm.bz2") in cells
    assert ("warm", "20", "3.03", "600", "0.125", "0.84825") in cells
    assert ("cold", "20", "10.90", "2,400", "0.125", "0.84825") in cells
    assert "took 0.28 of the time and 0.25 of the passes" in page.text


@needs_no_figure
def test_without_cold_starts_nothing_is_compared():
    alone = Page(selection_page(search(cold=False), {}))
    assert "cold" not in alone.text
    assert "The search " not in alone.text.replace("The search ended", "")


def test_it_needs_nothing_from_elsewhere(html, page):
    assert not re.search(r"https?:|//|@import|src=", html)
    assert {tag for tag, _ in page.elements} & {"script", "img", "iframe", "object", "embed", "base", "form"} == set()
    assert [value for value in page.attributes("href") if not value.startswith("#")] == ["data:,"]
    assert re.findall(r"url\((?!#)", html) == []
    assert "default-src 'none'" in page.attributes("content")[0]


def test_every_reference_inside_leads_somewhere(html, page):
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    references = {value[1:] for value in page.attributes("href") if value.startswith("#")}
    references |= set(re.findall(r"url\(#([^)]+)\)", html))
    assert references
    assert references <= set(ids)


def test_it_can_be_heard(page):
    tags = dict(page.elements)
    assert tags["html"]["lang"] == "en"
    assert "title" in tags
    pictures = [found for tag, found in page.elements if tag == "svg"]
    assert [picture["role"] for picture in pictures] == ["img", "img"]
    assert all("best of 20 values" in picture["aria-label"] for picture in pictures)
    assert {found.get("scope") for tag, found in page.elements if tag == "th"} == {"row", "col"}


def test_pointing_at_a_c_shows_its_numbers(html):
    hints = re.findall(r'class="hint"><title>([^<]*)</title>', html)
    assert len(hints) == 20 * 2 * 2  # two panels, wide and narrow
    assert "C = 0.125 (log₂ C = -3)\naccuracy 0.84825 ± 0.0052\n0.809 seconds up to here\nstop ratio 0.0172" in hints


def test_every_colour_is_the_pages_own(html):
    assert DARK_COLOURS.keys() == COLOURS.keys()
    for colours in (COLOURS, DARK_COLOURS):
        assert len(set(colours.values())) == len(colours)
    pictures = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    assert len(pictures) == 2
    for picture in pictures:
        assert re.findall(r"#[0-9a-f]{6}\b", picture.replace('href="#', "")) == []
        assert "var(--score)" in picture


TEMPLATE = "{{ 7 * 7 }} {% raw %} {# gone #} {{ facts.__class__ }}"


@needs_no_figure
@pytest.mark.parametrize("place", ["metric", "name", "value", "concern"])
def test_what_looks_like_a_template_is_text_too(place):
    found = search(metric=TEMPLATE if place == "metric" else "accuracy", cold=False)
    if place == "concern":
        found = replace(found, concerns=(Concern(TEMPLATE, ModelWarning),))
    facts = {"name": {TEMPLATE: 1}, "value": {"data": TEMPLATE}}.get(place, {})
    assert TEMPLATE in Page(selection_page(found, facts)).text


@needs_no_figure
@pytest.mark.parametrize("quoted", ['" onmouseover="alert(1)', "' onmouseover='alert(1)", "x' \" > <", "&amp;"])
def test_quotes_do_not_leave_their_attribute(quoted):
    found = Page(selection_page(search(metric=quoted, cold=False), {quoted: quoted}))
    assert "onmouseover" not in {name for _, attributes in found.elements for name in attributes}
    assert [quoted, quoted] in [cells for _, cells in found.rows]


def test_pictures_alone_are_taken_for_markup():
    """All else is escaped because nothing says that it is not."""
    folder = files("beeline.report").joinpath("templates")
    templates = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}
    pages = {"evaluation.html", "page.html", "parts.html", "selection.html", "training.html"}
    assert pages | {"page.css"} == set(templates)
    assert [line.strip() for words in templates.values() for line in words.split("\n") if "| safe" in line] == [
        "{{ picture | safe }}"
    ]
    assert not any("autoescape" in words for words in templates.values())


def test_without_jinja_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        MissingDependencyError, match=r'pages need another package; run: pip install "beeline-ml\[plot\]"'
    ):
        selection_page(search(cold=False, n_points=3), {})


NASTY = "<script>alert('x')</script> & \"<b>\" ]]> --> \x1b[31m \u202e"


@pytest.mark.parametrize(
    "facts",
    [{NASTY: 1}, {"data": NASTY}, {"columns": ["a", NASTY]}],
    ids=["name", "value", "list"],
)
@needs_no_figure
def test_what_comes_from_data_is_text(facts):
    check_that_it_is_text("accuracy", facts)


def test_the_name_of_a_metric_is_text_in_the_figure_too():
    check_that_it_is_text(NASTY, {})


def check_that_it_is_text(metric, facts):
    html = selection_page(search(metric=metric), facts)
    found = Page(html)
    assert {tag for tag, _ in found.elements} & {"script", "b"} == set()
    assert "<script>alert('x')</script> & \"<b>\" ]]> -->" in found.text
    assert "\x1b" not in html
    assert "\u202e" not in html


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (32561, "32,561"),
        (0.1, "0.1"),
        (True, "yes"),
        (None, "–"),
        (float("nan"), "–"),
        (float("-inf"), "-∞"),
        (["a", 2, None], "a, 2, –"),
        ("", ""),
        (1e-7, "1e-07"),
        (2.0**60, "1.15292e+18"),
    ],
)
def test_values_are_shown_as_people_write_them(value, words):
    assert shown(value) == words


@pytest.mark.parametrize(
    ("value", "digits", "shown"), [(1234.5678, 6, "1,234.57"), (20750.3, 4, "20,750"), (0.00240812, 3, "0.00241")]
)
def test_digits(value, digits, shown):
    assert number(value, digits) == shown


def test_columns_have_their_points_in_line():
    assert [decimals([31.78, 29.3], 4)(value) for value in (31.78, 29.3, float("nan"))] == ["31.78", "29.30", "–"]
    assert decimals([30.0, 600.0], 4)(30.0) == "30"
    assert decimals([0.0], 4)(0.0) == "0"
    assert decimals([2e10, 0.5], 4)(2e10) == "20,000,000,000"
    assert decimals([1.5e-12], 5)(1.5e-12) == "1.5e-12"


@needs_no_figure
@pytest.mark.parametrize("end", End)
def test_every_end_is_explained(end):
    words = Page(selection_page(search(end=end, cold=False, n_points=16), {})).text
    assert f"The search ended because {end.value}" in words
    at_the_edge = "The chosen C is the largest that was tried: a larger one may be better still." in words
    assert at_the_edge == (end not in (End.SETTLED, End.FLAT, End.PERFECT))


@needs_no_figure
def test_the_smallest_c_is_noted():
    found = search(cold=False, greater_is_better=False)
    assert found.best == found.curve[0]
    assert "The chosen C is the smallest that was tried." in Page(selection_page(found, {})).text


@needs_no_figure
def test_the_rule_of_one_standard_error_is_explained():
    words = Page(selection_page(search(rule="one_se", cold=False), {})).text
    assert "It is the smallest C within one standard error, 0.0023, of the best of 20 values tried: 0.84825 at" in words
    alone = Page(selection_page(search(rule="one_se", cold=False, stop_tol=1.0, n_points=1), {})).text
    assert "the only C tried" in alone


@needs_no_figure
def test_epsilon_has_a_column_and_a_place_in_the_heading():
    found = Page(selection_page(search(epsilons=(0.1, 0.0), cold=False), {}))
    assert "C = 0.125, ε = 0" in found.text
    assert "the best of 40 pairs of C and ε tried" in found.text
    heads = [i for i, (_, cells) in enumerate(found.rows) if cells[0] == "C"]
    assert [found.rows[head][1][2] for head in heads] == ["ε", "ε"]
    first, other = found.rows[heads[0] + 1 : heads[1]], found.rows[heads[1] + 1 :]
    assert [cells[2] for _, cells in first] == ["0"] * 20
    assert [cells[2] for _, cells in other] == ["0.1"] * 20
    assert [cells[0] for mark, cells in found.rows if mark == "best"] == ["0.125 best"]
    assert "details" in dict(found.elements)


def test_a_single_hold_out_has_no_spread():
    found = search(cold=False, n_points=17)
    curve = tuple(replace(point, fold_scores=(point.score,), fold_weights=(1.0,)) for point in found.curve)
    words = Page(selection_page(replace(found, curve=curve), {})).text
    assert "Its accuracy on the rows held out is 0.84825" in words
    assert "0.84825 ±" not in words


@needs_no_figure
def test_cold_starts_that_ended_early_are_not_compared():
    found = search()
    cold = replace(found.cold, curve=found.cold.curve[:7], end=End.INTERRUPTED)
    words = Page(selection_page(replace(found, cold=cold), {})).text
    assert "of the time and" not in words
    assert "cold 7 " in words.replace("cold7", "cold 7 ")


class TestSameBytes:
    def test_in_threads(self, html):
        with ThreadPoolExecutor(2) as pool:
            pages = list(pool.map(lambda _: selection_page(search(), FACTS), range(2)))
        assert set(pages) == {html}

    def test_under_other_settings_which_are_left_alone(self, html):
        mine = {"font.size": 23.0, "axes.facecolor": "black", "svg.fonttype": "path", "axes.grid": True}
        with mpl.rc_context(mine):
            assert selection_page(search(), FACTS) == html
            assert {name: mpl.rcParams[name] for name in mine} == mine

    def test_in_another_process(self, html):
        code = "import sys; sys.path.insert(0, sys.argv[1]); from searches import FACTS, search\n"
        code += "from beeline.report import selection_page\n"
        code += "sys.stdout.buffer.write(selection_page(search(), FACTS).encode())"
        command = [sys.executable, "-c", code, str(__file__).rpartition("/")[0]]
        environment = os.environ | {"PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1"}
        done = subprocess.run(command, capture_output=True, check=True, env=environment)
        assert done.stdout.decode() == html


class TestWriting:
    def test_the_file_is_the_page(self, tmp_path, html):
        write_selection_page(tmp_path / "c.html", search(), FACTS)
        assert (tmp_path / "c.html").read_text(encoding="utf-8") == html
        assert [path.name for path in tmp_path.iterdir()] == ["c.html"]

    def test_a_folder_that_is_not_there(self, tmp_path):
        with pytest.raises(SourceError, match="cannot be written: no such file or directory"):
            write_selection_page(tmp_path / "nowhere" / "c.html", search(), FACTS)

    def test_without_matplotlib_the_old_file_stays(self, tmp_path, monkeypatch):
        (tmp_path / "c.html").write_text("old")
        for name in ("matplotlib", "matplotlib.figure"):
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MissingDependencyError, match=r'pip install "beeline-ml\[plot\]"'):
            write_selection_page(tmp_path / "c.html", search(), FACTS)
        assert (tmp_path / "c.html").read_text() == "old"
