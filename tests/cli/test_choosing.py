"""What `train` takes labels for where nobody says it, and that it says so."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from outcomes import done_well, done_with_note

import beeline
from beeline import Model
from beeline.cli.input.choosing import loss_for

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("labels", "decimals", "loss", "words"),
    [
        (np.repeat([-1, 1], 40), True, "logistic", "2 different whole numbers; --loss squared"),
        (np.repeat([0, 1, 2], 40), False, "logistic", "3 different whole numbers; --loss squared"),
        (np.repeat([3, 17, 99], 40), False, "logistic", "3 different whole numbers; --loss squared"),
        (np.repeat([0, 1, 2], 40), True, "squared", "written with decimals; --loss logistic"),
        (np.repeat([-1, 0, 1], 40), False, "squared", "some of them negative; --loss logistic"),
        (np.repeat(np.arange(30), 10), False, "logistic", "30 different"),
        (np.repeat(np.arange(1, 31), 10), False, "logistic", "30 different"),
        (np.repeat(np.arange(2, 32), 10), False, "squared", "30 different"),  # from 2 on
        (np.repeat(np.arange(0, 60, 2), 10), False, "squared", "30 different"),  # not all of them
        (np.repeat(np.arange(30), 9), False, "squared", "30 different"),  # too few rows of each
        (np.repeat(np.arange(1001), 10), False, "squared", "1,001 different"),
        (np.repeat([0.5, 1.0, 2.0], 40), True, "squared", "real numbers"),
    ],
)
def test_the_rule(labels, decimals, loss, words):
    choice = loss_for(labels.astype(float), None, decimals=decimals)
    assert choice.loss == loss
    assert words in choice.why
    assert choice.doubtful == ("real" not in words and len(np.unique(labels)) > 2)


@pytest.fixture
def delays(tmp_path):
    """Whole minutes from -20 to 500, written with decimals."""
    x = RNG.standard_normal(3000)
    minutes = np.clip(np.round(120 * x + 40 * RNG.standard_normal(3000)), -20, 500)
    path = tmp_path / "delays.csv"
    path.write_text("x,delay\n" + "".join(f"{a:.4f},{b:.1f}\n" for a, b in zip(x, minutes, strict=True)))
    return path


def test_delays_are_a_regression_and_it_is_said_first(quickly, tmp_path, delays):
    done = quickly("train", delays, "-o", "m", "--label", "delay")
    note = done_with_note(done)
    assert note.startswith("this is taken as a regression: labels are ")
    assert note.endswith("different whole numbers, some of them negative; --loss logistic takes them as classes\n")
    assert Model.load(tmp_path / "m").kind == "regression"
    facts = json.loads(quickly("train", delays, "-o", "m", "--label", "delay", "--json").stdout)
    assert "some of them negative" in facts["loss_chosen_because"]
    assert "taken as a regression: the first labels are" in done_with_note(
        quickly("train", delays, "-o", "m", "--label", "delay", "--stream")
    )


@pytest.mark.parametrize("written", ["csv", "parquet", "store"])
def test_a_table_tells_whether_labels_have_decimals(quickly, tmp_path, written):
    grades = RNG.integers(1, 6, 200)
    for name, labels in (("whole", grades), ("decimal", grades.astype(float))):
        table = pa.table({"x": grades + 0.1 * RNG.standard_normal(200), "grade": labels})
        source = tmp_path / f"{name}.{written}"
        if written == "csv":
            rows = (f"{x},{y}" for x, y in zip(table["x"].to_pylist(), labels.tolist(), strict=True))
            source.write_text("\n".join(["x,grade", *rows]) + "\n")
        elif written == "parquet":
            pq.write_table(table, source)
        else:
            beeline.convert(table, source, label="grade")
        label = () if written == "store" else ("--label", "grade")
        note = done_with_note(quickly("train", source, "-o", name, *label))
        assert ("written with decimals" in note) == (name == "decimal")
        assert Model.load(tmp_path / name).kind == ("multiclass" if name == "whole" else "regression")
        if written != "store":
            done_with_note(quickly("train", source, "-o", "stream", *label, "--stream"))
            assert Model.load(tmp_path / "stream").kind == ("multiclass" if name == "whole" else "regression")


def test_a_late_fraction_of_a_feature_makes_no_decimals_of_labels(tmp_path):
    lines = [f"{i},{i % 3}" for i in range(300_000)]  # beyond the first megabyte, by which types are told
    (tmp_path / "late.csv").write_text("\n".join(["x,kind", *lines, "0.5,1"]) + "\n")
    assert not beeline.read(tmp_path / "late.csv", label="kind").recipe.label_decimals
    (tmp_path / "late.csv").write_text("x,kind\n1,0.0\n2,1.0\n")
    assert beeline.read(tmp_path / "late.csv", label="kind").recipe.label_decimals


def test_nothing_is_announced_where_there_is_no_choice(quickly, delays, tmp_path):
    done_well(quickly("train", delays, "-o", "m", "--label", "delay", "--loss", "absolute"))
    (tmp_path / "two.csv").write_text("x,y\n" + "0.5,0.0\n1.5,1.0\n" * 20)
    assert "m: logistic" in done_well(quickly("train", "two.csv", "-o", "m", "--label", "y"))
