"""`--memory` and `--cache`: the same answers, and a word on where rows are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from outcomes import done_well, done_with_note, one_line

from beeline.model import Model

ROOT = Path(__file__).parents[2]


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 5))
    y = np.where(X[:, 0] + rng.normal(size=300) > 0, 1, -1)
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{x:.4f}" for j, x in enumerate(row)) for label, row in zip(y, X, strict=True)
    ]
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    return "rows.svm"


def test_a_cache_is_kept_and_read_again(quickly, tmp_path, rows):
    options = ("--tol", "1e-8", "--cache", "cache", "--memory", "1K")
    first = done_with_note(quickly("train", rows, "-o", "a", *options))
    again = done_with_note(quickly("train", rows, "-o", "b", *options))
    (store,) = (tmp_path / "cache").iterdir()
    assert first == f"the rows of rows.svm are kept, for the next time, in cache/{store.name}\n"
    assert again == f"the rows of rows.svm are read from cache/{store.name}\n"
    assert "read from" in done_with_note(quickly("select", rows, "--cache", "cache", "--C-max", "0.01"))
    done_well(quickly("train", rows, "-o", "c", "--tol", "1e-8"))
    a, b, c = (Model.load(tmp_path / name).weights for name in "abc")
    np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(a, c, rtol=1e-6)


def test_a_store_needs_no_cache(quickly, rows):
    done_well(quickly("convert", rows, "s"))
    error = one_line(quickly("train", "s", "-o", "m", "--cache", "cache"), 2)
    assert "--cache has no meaning for a store" in error


def test_a_solver_that_does_not_fit(quickly, rows):
    done_well(quickly("convert", rows, "s"))
    error = one_line(quickly("train", "s", "-o", "m", "--loss", "hinge", "--solver", "dual_cd", "--memory", "1K"), 2)
    assert "needs about 36.3 KB to hold all rows" in error
    assert "take smoothed_newton or bundle" in error


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("source", ["rows.svm", "s"])
def test_predictions_and_measures_do_not_depend_on_memory(quickly, tmp_path, rows, source, loss):
    done_well(quickly("convert", rows, "s"))
    done_well(quickly("train", rows, "-o", "m", "--loss", loss))
    for memory in ("1K", "10M"):
        done_well(quickly("predict", "m", source, "-o", f"answers-{memory}", "--memory", memory))
    assert (tmp_path / "answers-1K").read_text() == (tmp_path / "answers-10M").read_text()
    facts = [
        json.loads(done_well(quickly("evaluate", "m", source, "--json", *more)))
        for more in ((), ("--memory", "1K"), ("--memory", "10M"))
    ]
    for other in facts[1:]:
        for name, value in facts[0]["measures"].items():
            assert other["measures"][name] == pytest.approx(value, rel=1e-12)


def test_info_takes_memory_too(quickly, rows):
    done_well(quickly("convert", rows, "s"))
    for source in (rows, "s"):
        free, held = (
            json.loads(done_well(quickly("info", source, "--features", "--json", *more)))
            for more in ((), ("--memory", "1K"))
        )
        assert held["rows"] == free["rows"] == 300
        assert held["features"] == free["features"]


@pytest.mark.parametrize("command", [("predict", "m", "rows.svm"), ("evaluate", "m", "rows.svm"), ("info", "rows.svm")])
def test_a_size_must_be_one(quickly, rows, command):
    done_well(quickly("train", rows, "-o", "m"))
    assert "'lots' is not a size" in one_line(quickly(*command, "--memory", "lots"), 2)


@pytest.mark.slow
def test_commands_hold_the_budget(tmp_path):
    """Watched from outside, with data forty times the budget, which do not fit what is allowed beside it either."""
    script = [sys.executable, str(ROOT / "benchmarks" / "memory.py"), "--quick", "--check", "--folder", str(tmp_path)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("holds") > 10
