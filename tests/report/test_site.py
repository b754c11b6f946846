"""The site as it is built: whole, without a link that leads nowhere, nothing from elsewhere, and read by a browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from matplotlib.image import imread
from pages import DARK, LIGHT, complaints

import beeline
from beeline.cli.app import app

ROOT = Path(__file__).parents[2]
WAIT = "--virtual-time-budget=5000"  # milliseconds that scripts of a page may take
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def site(tmp_path_factory, package) -> Path:
    """The site, built from what is here."""
    package("sphinx")
    target = tmp_path_factory.mktemp("site") / "built"
    done = subprocess.run(
        [sys.executable, "tools/make_site.py", str(target)],
        cwd=ROOT,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def pages(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def errors(log: str) -> list[str]:
    """What a page complains of; the theme tells what it does, too."""
    return [line for line in complaints(log) if '"[PST]: ' not in line]


def test_there_is_a_page_for_every_name_command_guide_and_example(site):
    expected = {f"api/beeline.{name}.html" for name in beeline.__all__ if name != "__version__"}
    expected |= {f"cli/{name}.html" for name in app.commands}
    expected |= {f"{path.stem}.html" for path in (ROOT / "docs").glob("*.md")}
    expected |= {f"gallery/{path.stem}.html" for path in (ROOT / "examples" / "gallery").glob("*.py")}
    assert expected - {path.relative_to(site).as_posix() for path in pages(site)} == set()


def test_every_link_leads_somewhere(site):
    broken, anchors = [], {path: set(re.findall(r'\bid="([^"]+)"', path.read_text("utf-8"))) for path in pages(site)}
    for page in anchors:
        for link in re.findall(r'\b(?:href|src)="([^"]*)"', page.read_text("utf-8")):
            to = urlsplit(unescape(link))
            if to.scheme or to.netloc:
                continue
            target = (page.parent / unquote(to.path)).resolve() if to.path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (to.fragment and unquote(to.fragment) not in anchors.get(target, {to.fragment})):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(site):
    loads = re.compile(r'<(?:script|img|iframe|source|link|video|audio)\b[^>]*\b(?:src|href)="(?:https?:)?//[^"]*"')
    found = [f"{page.name}: {match}" for page in pages(site) for match in loads.findall(page.read_text("utf-8"))]
    for style in site.rglob("*.css"):
        found += re.findall(r"(?:@import|url\()\s*['\"]?(?:https?:)?//[^)]*", style.read_text("utf-8"))
    assert found == []


def test_a_link_that_leads_nowhere_ends_the_build(site, tmp_path):
    for part in ("static", "extra"):
        (tmp_path / part).mkdir()
    conf = (ROOT / "tools" / "site_parts" / "conf.py").read_text("utf-8")
    (tmp_path / "conf.py").write_text(conf, encoding="utf-8")
    (tmp_path / "index.md").write_text("# A page\n\n[nowhere](gone.md#at-all)\n", encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", str(tmp_path), str(tmp_path / "built")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "gone.md" in done.stderr


@pytest.mark.parametrize(
    ("name", "words", "pictures"),
    [
        ("index.html", "at most 0.003 % above the optimum", 0),
        ("gallery.html", "How solvers get to the optimum", 5),
        ("gallery/roc.html", "sparse logistic regression  area", 1),
        ("gallery/report_pages.html", "beeline select", 0),
        ("benchmarks.html", "Searches for C", 5),
        ("api/beeline.LinearSVC.html", "fit_intercept", 0),
    ],
)
def test_a_browser_reads_it(visit, site, name, words, pictures):
    dom, log = visit(site / name, WAIT, "--dump-dom")
    assert errors(log) == []
    assert words in unescape(re.sub(r"<[^>]+>", "", dom))
    assert len(re.findall(r'<svg\b[^>]*class="drawn"', dom)) == pictures


def test_the_search_finds_a_page(visit, site):
    dom, log = visit(site / "search.html", WAIT, "--dump-dom", query="?q=lasso")
    assert errors(log) == []
    assert "api/beeline.Lasso.html" in dom.partition("search-results")[2]


@pytest.mark.parametrize(("width", "height", "scheme"), [(1300, 900, LIGHT), (1300, 900, DARK), (500, 900, DARK)])
def test_it_is_light_or_dark_and_fits_the_screen(visit, site, tmp_path, width, height, scheme):
    shot = tmp_path / "shot.png"
    visit(site / "gallery" / "roc.html", WAIT, f"--window-size={width},{height}", f"--screenshot={shot}", scheme=scheme)
    picture = imread(shot)[:, :, :3]
    assert (np.median(picture) > 0.9) == (scheme == LIGHT)
    assert len(np.unique(np.round(255 * picture[height // 2 :, -1]), axis=0)) == 1  # nothing is wider than the screen
