"""The commands on tables as people have them: labels that are not there, columns too many, values that are missing."""

from __future__ import annotations

import json

import pytest
from outcomes import done_well, done_with_note, one_line

from beeline import Model


@pytest.fixture
def shop(tmp_path, quickly):
    """A model of a table, and its folder."""
    rows = [f"{k % 7},{'red' if k % 2 else 'blue'},{'yes' if k % 7 + k % 2 > 3 else 'no'}" for k in range(70)]
    (tmp_path / "train.csv").write_text("\n".join(["size,color,bought", *rows]) + "\n")
    done_well(quickly("train", "train.csv", "-o", "m", "--label", "bought"))
    return tmp_path


@pytest.mark.parametrize("text", ["size,color,bought\n6,red,\n0,blue,perhaps\n", "color,size\nred,6\nblue,0\n"])
def test_predict_needs_no_labels(quickly, shop, text):
    (shop / "new.csv").write_text(text)
    assert done_well(quickly("predict", "m", "new.csv")) == "yes\nno\n"


def test_a_label_of_another_name_is_no_feature(quickly, shop):
    (shop / "new.csv").write_text("size,color,answer\n6,red,\n0,blue,7\n")
    assert done_well(quickly("predict", "m", "new.csv", "--label", "answer")) == "yes\nno\n"


def test_evaluate_does_need_them(quickly, shop):
    (shop / "new.csv").write_text("size,color,bought\n6,red,\n0,blue,no\n5,red,\n")
    words = "the label (column 'bought') is missing in 2 rows: new.csv, line 2; new.csv, line 4; leave such rows out"
    assert f"{words} with --missing drop" in one_line(quickly("evaluate", "m", "new.csv"), 1)
    done = quickly("evaluate", "m", "new.csv", "--missing", "drop", "--json")
    assert json.loads(done.stdout)["rows"] == 1
    assert done.stderr == "beeline: warning: 2 rows without a label left out: new.csv, line 2; new.csv, line 4\n"


def test_extra_columns(quickly, shop):
    (shop / "new.csv").write_text("size,color,shop,day\n6,red,1,mo\n")
    words = "new.csv: the recipe does not know columns 'shop', 'day'; leave them out with --extra ignore"
    assert words in one_line(quickly("predict", "m", "new.csv"), 1)
    assert done_well(quickly("predict", "m", "new.csv", "--extra", "ignore")) == "yes\n"
    done_well(quickly("convert", "train.csv", "train.store", "--label", "bought"))
    done_well(quickly("convert", "new.csv", "new.store", "--like", "train.store", "--extra", "ignore"))
    words = "--extra has no meaning for a table whose columns are all learned from"
    assert words in one_line(quickly("train", "new.csv", "-o", "n", "--label", "day", "--extra", "ignore"), 2)


def test_rows_with_missing_values_are_left_out_and_told(quickly, shop):
    with (shop / "train.csv").open("a") as file:
        file.write(",red,yes\n3,blue,\n")
    words = "row without all features left out: train.csv, line 72"
    assert "--missing drop" in one_line(quickly("train", "train.csv", "-o", "n", "--label", "bought"), 1)
    for more in ((), ("--memory", "1K")):
        done = quickly("train", "train.csv", "-o", "n", "--label", "bought", "--missing", "drop", *more)
        assert done.returncode == 0
        assert f"beeline: note: 1 {words}\n" in done.stderr
        assert "beeline: note: 1 row without a label left out: train.csv, line 73\n" in done.stderr
        assert Model.load(shop / "n").report.n_rows == 70
    done = quickly("convert", "train.csv", "s", "--label", "bought", "--missing", "drop")
    assert f"beeline: warning: 1 {words}\n" in done.stderr
    facts = json.loads(quickly("info", "train.csv", "--label", "bought", "--missing", "drop", "--json").stdout)
    assert facts["left_out"][0] == f"1 {words}"
    done = quickly("train", "train.csv", "-o", "n", "--label", "bought", "--missing", "drop", "--stream")
    assert f"beeline: warning: 1 {words}\n" in done.stderr


def test_sparse_rows_are_scaled_and_stay_sparse(quickly, shop):
    scaled = ("train", "train.csv", "--label", "bought", "--scale", "standard", "-o", "n")
    done_well(quickly(*scaled, "--layout", "sparse"))
    kept = Model.load(shop / "n")
    assert "standard, shifts left to the intercept" in done_well(quickly("inspect", "n"))
    answers = done_well(quickly("predict", "n", "train.csv", "--scores"))
    done_well(quickly(*scaled, "--layout", "dense"))
    other = done_well(quickly("predict", "n", "train.csv", "--scores"))
    for one, two in zip(answers.splitlines()[1:], other.splitlines()[1:], strict=True):
        assert float(one.rpartition(",")[2]) == pytest.approx(float(two.rpartition(",")[2]), abs=0.05)
    assert abs(kept.intercepts[0] - Model.load(shop / "n").intercepts[0]) > 0.5
    words = "which has to be free for that; take --intercept free, or read with --scale maxabs or --layout dense"
    for none in ("none", "regularized"):
        assert words in one_line(quickly(*scaled, "--layout", "sparse", "--intercept", none), 2)
    done_well(quickly("convert", "train.csv", "s", "--label", "bought", "--scale", "minmax", "--layout", "sparse"))
    assert "minmax" in done_well(quickly("info", "s"))


def test_bad_lines_are_told_by_train_too(quickly, shop):
    with (shop / "train.csv").open("a") as file:
        file.write("1\n")
    done = quickly("train", "train.csv", "-o", "n", "--label", "bought", "--skip-bad-lines")
    assert done_with_note(done).startswith("1 bad line skipped; the first: train.csv, line 72")
