"""Levels in an order, by the commands."""

from __future__ import annotations

import json

import numpy as np
import pytest
from test_losses import done_well, refused

from beeline import Model
from beeline.losses import LOSSES

RNG = np.random.default_rng(4)
X = RNG.normal(size=(120, 3)).round(4)
LEVELS = np.digitize(X @ [2.0, -1.0, 0.5] + 0.5 * RNG.normal(size=120), [-1.5, 1.5])
NAMES = ["low", "middle", "high"]


@pytest.fixture
def table(tmp_path):
    rows = [",".join(map(str, row)) + f",{NAMES[level]}" for row, level in zip(X.tolist(), LEVELS, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,grade", *rows]) + "\n")
    return ["t.csv", "--label", "grade"]


@pytest.mark.parametrize("loss", ["immediate_threshold", "all_threshold", "level_pairs"])
def test_levels_by_their_names(quickly, tmp_path, table, loss):
    more = ["--loss-setting", "costs=unit"] if loss == "level_pairs" else []
    done_well(quickly("train", *table, "-o", "m", "--loss", loss, "--levels", "low, middle,high", *more))
    model = Model.load(tmp_path / "m")
    assert model.classes.tolist() == NAMES
    printed = done_well(quickly("predict", "m", "t.csv")).split()
    predicted = np.array([NAMES.index(name) for name in printed])
    z = model.decision_function(X)
    np.testing.assert_array_equal(predicted, ((z[:, 1] - z[:, 0] + model.extra[0])[:, None] > model.extra).sum(axis=1))
    found = json.loads(done_well(quickly("evaluate", "m", "t.csv", "--json")))
    assert found["measures"]["level_mae"] == pytest.approx(np.abs(predicted - LEVELS).mean())
    assert found["measures"]["quadratic_kappa"] > 0.7
    assert loss in done_well(quickly("inspect", "m"))


def test_half_stars_are_levels_where_they_are_named(quickly, tmp_path):
    rows = [",".join(map(str, row)) + f",{(level + 1) / 2}" for row, level in zip(X.tolist(), LEVELS, strict=True)]
    (tmp_path / "stars.csv").write_text("\n".join(["a,b,c,stars", *rows]) + "\n")
    given = ("train", "stars.csv", "--label", "stars", "-o", "m", "--loss", "all_threshold")
    said = refused(quickly(*given), 1)
    assert "which is no whole number; if it is a level, give --levels, all of them" in said
    done_well(quickly(*given, "--levels", "0.5,1.0,1.5"))
    assert set(done_well(quickly("predict", "m", "stars.csv")).split()) <= {"0.5", "1.0", "1", "1.5"}
    assert json.loads(done_well(quickly("evaluate", "m", "stars.csv", "--json")))["measures"]["accuracy"] > 0.5


def test_an_order_that_nothing_tells_is_warned_of(quickly, table):
    said = "so that the levels are taken by the alphabet: 'high', 'low', 'middle'; give --levels, all of them"
    for more in ((), ("--C", "auto", "--folds", "2")):
        ran = quickly("train", *table, "-o", "m", "--loss", "all_threshold", *more)
        assert ran.returncode == 3
        assert ran.stderr.count(said) == 1
    ran = quickly("select", *table, "--loss", "all_threshold", "--folds", "2")
    assert ran.returncode == 3
    assert said in ran.stderr


def test_a_search_by_levels(quickly, table):
    args = ("train", *table, "-o", "m", "--loss", "all_threshold", "--levels", "low,middle,high", "--C", "auto")
    done_well(quickly(*args, "--folds", "3"))
    assert "level_mae" in done_well(quickly("select", *table, "--loss", "all_threshold", "--levels", "low,middle,high"))


def test_what_is_refused(quickly, table):
    assert "--levels has no meaning" in refused(quickly("train", *table, "-o", "m", "--levels", "low,high"), 2)
    given = ("train", *table, "-o", "m", "--loss", "all_threshold")
    assert "'high' is none of the levels" in refused(quickly(*given, "--levels", "low,middle"), 1)
    assert "has the level 'best'" in refused(quickly(*given, "--levels", "low,middle,high,best"), 1)
    assert "thresholds in the place of an intercept" in refused(quickly(*given, "--intercept", "free"), 2)


def test_all_losses_of_levels_are_listed(quickly):
    listed = done_well(quickly("losses"))
    assert all(name in listed for name, kind in LOSSES.items() if kind.labels == "levels")
