"""The page of a search for C in a real browser."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from pages import DARK, LIGHT, complaints
from runs import run, trained
from searches import FACTS, search

from beeline.plotting import COLOURS
from beeline.report import write_selection_page, write_training_page
from beeline.report.rendering import DARK_COLOURS

INKS = {LIGHT: COLOURS | {"ground": "#f6f8fa"}, DARK: DARK_COLOURS | {"ground": "#10151c"}}


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("page") / "select & <C>.html"
    write_selection_page(path, search(), FACTS | {"data": "R&D <train>.csv"})
    return path


def test_a_browser_reads_the_page_of_a_training(visit, tmp_path):
    path = tmp_path / "training.html"
    write_training_page(path, trained(run(math.inf, 0.8, 0.02, 8.1e-5)), FACTS)
    dom, log = visit(path, "--dump-dom")
    assert complaints(log) == []
    assert re.search(r"<h1>At most 0\.0082 % above the optimum</h1>", dom)
    assert len(re.findall(r"<text\b[^>]*>certified relative gap</text>", dom)) == 3


def test_a_browser_reads_all_of_it(visit, page):
    dom, log = visit(page, "--dump-dom")
    assert complaints(log) == []
    assert re.search(r"<h1>C = 0\.125</h1>", dom)
    assert len(re.findall(r"<svg\b", dom)) == 2
    assert len(re.findall(r"<text\b[^>]*>best C = 0\.125</text>", dom)) == 2
    body = dom.partition("seconds, cold")[2].partition("</table>")[0]
    assert body.count("<tr") == 20
    assert body.count('<tr class="best">') == 1
    assert "R&amp;D &lt;train&gt;.csv" in dom


def test_a_page_that_reaches_out_would_be_noticed(visit, page, tmp_path):
    bad = tmp_path / "bad.html"
    html = page.read_text(encoding="utf-8")
    bad.write_text(html.replace("</main>", "<script>document.title = 'taken over'</script></main>"), encoding="utf-8")
    dom, log = visit(bad, "--dump-dom")
    assert len(complaints(log)) == 1
    assert "<title>taken over" not in dom


@pytest.mark.parametrize(("width", "height", "scheme"), [(1100, 1000, LIGHT), (400, 1300, DARK)])
def test_it_is_drawn_on_wide_and_narrow_screens_light_and_dark(visit, page, tmp_path, width, height, scheme):
    visit(page, f"--window-size={width},{height}", f"--screenshot={tmp_path / 'shot.png'}", scheme=scheme)
    picture = np.round(255 * imread(tmp_path / "shot.png")[:, :, :3]).astype(int)
    assert picture.shape == (height, width, 3)

    def shown(role: str) -> int:
        """How many pixels have just the colour of a role."""
        colour = [int(INKS[scheme][role][i : i + 2], 16) for i in (1, 3, 5)]
        return int((picture == colour).all(axis=2).sum())

    assert 0.02 < shown("ground") / (width * height) < 0.6
    assert shown("sheet") / (width * height) > 0.2
    assert shown("best") > 500  # the heading and the line of the best C
    for role in ("score", "warm", "stop"):
        assert shown(role) > 50, role
    for edge in (0, -1):  # nothing is wider than the screen
        assert len(np.unique(picture[:, edge], axis=0)) == 1
