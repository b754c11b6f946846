"""The demo and the examples run, on the rows that are shipped."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(600)  # the demo and the tour, on a busy machine


@pytest.fixture(scope="module")
def demo(tmp_path_factory, tool):
    """The output of the demo and of the tour behind it, run on a copy of the examples."""
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(ROOT / "examples", folder / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [tool("bash"), "-c", "bash examples/demo.sh && bash examples/tour.sh"],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, done


@pytest.mark.slow
def test_the_demo_tells_what_it_did(demo):
    folder, done = demo
    notes = [line.removeprefix("beeline: note: ") for line in done.stderr.splitlines()]
    assert notes
    assert all(re.match("this is taken as classes: (the first )?labels are 7 different whole", note) for note in notes)
    assert "out/train.store: 4,000 rows × 54 features" in done.stdout
    assert "out/test.store: 1,001 rows × 54 features" in done.stdout
    assert "label 2  1,950  48.8 %" in done.stdout
    assert sorted(p.name for p in (folder / "out").iterdir()) == [
        "answers.csv",
        "forest.model",
        "late.model",
        "readings.store",
        "search.html",
        "small.model",
        "stream.model",
        "svm.model",
        "test.store",
        "train.store",
        "training.html",
    ]


@pytest.mark.slow
def test_the_demo_predicts_and_writes_pages(demo):
    folder, done = demo
    head, *answers = (folder / "out" / "answers.csv").read_text(encoding="utf-8").splitlines()
    assert head.count(",") == 7  # the class, and a probability for each of seven
    assert len(answers) == 1001
    assert head in done.stdout
    training, search = (
        (folder / "out" / name).read_text(encoding="utf-8") for name in ("training.html", "search.html")
    )
    assert "above the optimum" in training
    assert re.search(r"<h1>C = [\d.]+</h1>", search)


@pytest.mark.slow
def test_the_demo_trains_a_good_model(demo):
    out = demo[1].stdout
    accuracy = float(re.search(r"^accuracy +([\d.]+)$", out, re.MULTILINE)[1])
    assert accuracy > 0.68
    assert "largest weights for 7" in out
    lasso = re.search(r"^lasso +([\d.]+)", out, re.MULTILINE)
    assert float(lasso[1]) > 0.75
    squared, clearance = (float(x) for x in re.findall(r"([\d.]+)% of the heights more than 100 m too low", out))
    assert clearance < squared / 10
    read = [int(part) for part in re.findall(r"right, (\d+)% of the bytes read", out)]
    assert len(read) == 2
    assert max(read) < 90


@pytest.mark.slow
def test_the_demo_finds_a_good_c(demo):
    out = demo[1].stdout
    assert re.search(r"^C = \S+: accuracy 0\.7\d+ ± \S+ on 3 folds, the best of \d+ values$", out, re.MULTILINE)
    scores = [float(score) for score in re.findall(r"^C = .* accuracy on other rows ([\d.]+)$", out, re.MULTILINE)]
    assert len(scores) == 3
    assert scores[1] > scores[0]


@pytest.mark.slow
def test_the_example_gives_metres_back(demo):
    """Elevations are those of the source, although the stores hold scaled ones."""
    import csv
    import gzip

    with gzip.open(ROOT / "examples" / "data" / "covtype-test.csv.gz", "rt", encoding="ascii") as file:
        rows = [row for row in csv.DictReader(file) if row["Cover_Type"] == "7"]
    mean = sum(float(row["Elevation"]) for row in rows) / len(rows)
    line = next(line for line in demo[1].stdout.splitlines() if line.startswith("cover type 7"))
    assert line.endswith(f"{mean:5.0f} m")


def test_train_and_test_rows_differ():
    import gzip

    parts = [
        gzip.decompress((ROOT / "examples" / "data" / f"covtype-{name}.csv.gz").read_bytes()).splitlines()
        for name in ("train", "test")
    ]
    assert parts[0][0] == parts[1][0]
    assert [len(lines) - 1 for lines in parts] == [4000, 1001]
    assert not set(parts[0][1:]) & set(parts[1][1:])


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_every_example_is_in_the_demo_or_the_tour(script):
    shown = [(ROOT / "examples" / name).read_text(encoding="utf-8") for name in ("demo.sh", "tour.sh")]
    assert any(script.name in text for text in shown)
