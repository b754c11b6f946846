"""What `beeline select` and `beeline train --C auto` refuse, each in one sentence."""

from __future__ import annotations

import pytest
from outcomes import SHORT, done_well, one_line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--folds", "1"), "--folds must be a whole number from 2, or a part of the rows"),
        (("--folds", "0"), "--folds must be a whole number from 2, or a part of the rows"),
        (("--folds", "1.5"), "--folds must be a whole number from 2, or a part of the rows"),
        (("--folds", "many"), "not 'many'"),
        (("--metric", "luck"), "there is no metric 'luck'; there are accuracy, f1, "),
        (("--C-min", "0"), "--C-min must be positive"),
        (("--tol", "0"), "--tol must be positive"),
        (("--epsilon", "auto"), "--epsilon has no meaning without an ε-insensitive loss"),
        (("--loss", "epsilon_insensitive", "--epsilon", "wide"), "--epsilon must be a number or auto, not 'wide'"),
        (("--loss", "epsilon_insensitive", "--epsilon", "auto", "--cold"), "--cold has no meaning with --epsilon auto"),
        (("-o", "."), ". is a folder"),
        (("-o", "notes.txt"), "is there already and is not a model"),
        (("-o", "x", "--resume", "x"), "x cannot be two files at once"),
        (("--report", "notes.txt"), "is there already and is not a page"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_the_data_are_read(quickly, tmp_path, options, words):
    (tmp_path / "notes.txt").write_text("buy bread")
    assert words in one_line(quickly("select", "nowhere.svm", *options), 2)
    assert (tmp_path / "notes.txt").read_text() == "buy bread"


@pytest.mark.parametrize("option", ["-o", "--report", "--resume"])
def test_folders_that_are_not_there(quickly, option):
    words = "no/file cannot be written: there is no folder no"
    assert words in one_line(quickly("select", "nowhere.svm", option, "no/file"), 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--folds", "121"), "--folds must lie between 2 and the number of rows, 120, not 121"),
        (("--loss", "hinge", "--metric", "log_loss"), "the metric 'log_loss' needs probabilities"),
        (("--loss", "hinge", "--metric", "neg_log_loss"), "the metric 'neg_log_loss' does not fit this task"),
        (("--metric", "rmse"), "the metric 'rmse' needs values, which this task does not have; take accuracy, f1"),
        (("--loss", "squared", "--metric", "accuracy"), "the metric 'accuracy' needs classes"),
        (("--resume", "rows.svm"), "rows.svm is read by this command and cannot be written to"),
    ],
)
def test_what_does_not_fit_the_data(quickly, rows, options, words):
    before = rows.read_bytes()
    assert words in one_line(quickly("select", "rows.svm", *options), 2)
    assert rows.read_bytes() == before


def test_resume_files_that_cannot_be_used(quickly, tmp_path, rows):
    done_well(quickly("select", rows, *SHORT, "--resume", "path"))
    kept = (tmp_path / "path").read_bytes()
    assert "path is the path of another search, which differs in its " in one_line(
        quickly("select", rows, *SHORT, "--resume", "path", "--seed", "1"), 2
    )
    assert (tmp_path / "path").read_bytes() == kept
    place = kept.index(b"log_loss")
    for name, content, words in (
        ("text", b"buy bread", "is no path of a search, or was cut short"),
        ("cut", kept[: len(kept) // 2], "is no path of a search, or was cut short"),
        ("altered", kept[:-1] + bytes([kept[-1] ^ 1]), "was altered after it was written"),
        ("edited", kept[:place] + b"LOG" + kept[place + 3 :], "was altered after it was written"),
    ):
        (tmp_path / name).write_bytes(content)
        assert f"{name} {words}" in one_line(quickly("select", rows, *SHORT, "--resume", name), 1)
        assert (tmp_path / name).read_bytes() == content
    done_well(quickly("train", rows, "-o", "m"))
    assert "m is no path of a search" in one_line(quickly("select", rows, *SHORT, "--resume", "m"), 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--folds", "3"), "--folds has no meaning without --C auto; leave it out"),
        (("--metric", "auc"), "--metric has no meaning without --C auto"),
        (("--resume", "path", "--C", "2"), "--resume has no meaning without --C auto"),
        (("--loss", "epsilon_insensitive", "--epsilon", "auto"), "--epsilon auto has no meaning without --C auto"),
        (("--C", "large"), "--C must be a number or auto, not 'large'"),
        (("--C", "nan"), "--C must be positive and finite"),
    ],
)
def test_options_of_the_search_need_one(quickly, options, words):
    assert words in one_line(quickly("train", "nowhere.svm", "-o", "m", *options), 2)


def test_a_page_needs_matplotlib(beeline, tmp_path):
    """Which is found out before the data are read."""
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "matplotlib.py").write_text("raise ImportError")
    done = beeline("select", "nowhere.svm", "--report", "page.html", env={"PYTHONPATH": str(tmp_path / "without")})
    assert 'pip install "beeline-ml[plot]"' in one_line(done, 1)
