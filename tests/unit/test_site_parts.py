"""What the site is put together from: charts from tables, a section for each heading, links that go along."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tools():
    """The modules of tools/, which are no package."""
    sys.path.insert(0, str(ROOT / "tools"))
    import make_picture
    import make_site

    yield {"site": make_site, "picture": make_picture, "charts": make_site.charts}
    sys.path.remove(str(ROOT / "tools"))


def test_every_chart_has_its_table(tools):
    for chart in tools["charts"].CHARTS:
        shown = tools["charts"].bars(BENCHMARKS, chart)
        assert len(shown) > 2
        assert all(value > 0 for _, value in shown)


def test_a_chart_shows_the_numbers_of_its_table(tools):
    charts = tools["charts"]
    text = "# B\n\n## Speed\n\n| set | ratio |\n|---|---|\n| a | **1,200.5** |\n| b | 0.2 / 0.1 (3) |\n\n## Next\n"
    chart = charts.Chart("Speed", "", column="ratio")
    assert charts.bars(text, chart) == [("a", 1200.5), ("b", 3.0)]
    assert charts.bars(text, charts.Chart("Speed", "", row="a")) == [("ratio", 1200.5)]


@pytest.mark.parametrize(
    "wrong", [{"heading": "Sped"}, {"column": "rato"}, {"table": 9}, {"column": None, "row": "no"}]
)
def test_a_table_that_is_gone_ends_the_build(tools, wrong):
    settings = {"heading": "Small data", "title": "", "column": "ratio"} | wrong
    with pytest.raises(SystemExit, match=r"docs/benchmarks\.md: table .* was expected"):
        tools["charts"].bars(BENCHMARKS, tools["charts"].Chart(**settings))


def test_a_chart_stands_below_its_table(tools):
    text = tools["charts"].with_charts(BENCHMARKS)
    assert text.count('<div class="picture"><svg') == len(tools["charts"].CHARTS)
    assert re.sub(r"\n```\{raw\} html\n<div class=\"picture\">.*?\n```\n", "", text, flags=re.DOTALL) == BENCHMARKS


def test_the_picture_of_the_readme_is_fresh(tools):
    kept = (ROOT / "docs" / "figures" / "against-peers.svg").read_text(encoding="utf-8")
    assert tools["picture"].picture(BENCHMARKS) == kept, "run `make docs`"


def test_every_page_is_in_the_navigation(tools):
    pages = tools["site"].section_pages((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    listed = {line for text in pages.values() for line in text.partition(":hidden:")[2].splitlines()}
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"} <= listed
    assert {name.removesuffix(".md") for name in pages} - {"index"} <= listed


def test_links_out_of_the_docs_lead_to_copies(tools, tmp_path):
    text = "[rows](../examples/data/README.md), [code](../examples/stream.py#main), [page](store.md)"
    told = tools["site"].with_files(text, tmp_path)
    assert told == "[rows](/examples-data-readme.md), [code](/files/examples/stream.py#main), [page](store.md)"
    assert (tmp_path / "files" / "examples" / "stream.py").is_file()
    assert "covtype" in (tmp_path / "examples-data-readme.md").read_text(encoding="utf-8")
