"""`beeline select` and `beeline train --C auto`, run for real."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest

from beeline import Model, select_C
from beeline import read as read_rows
from beeline.cli import select as command
from beeline.selection.result import Rule

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
# A short path: fewer values of C than it takes the weights to settle.
SHORT = ("--C-min", "0.0625", "--C-max", "8", "--folds", "3")


def write_svm(path, X, y):
    lines = (f"{a} " + " ".join(f"{j}:{float(v)!r}" for j, v in enumerate(x, 1)) for a, x in zip(y, X, strict=True))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def rows(tmp_path):
    """Two classes that overlap, in LIBSVM text."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    write_svm(tmp_path / "rows.svm", X, np.where(X[:, 0] + rng.standard_normal(120) > 0, 1, -1))
    return tmp_path / "rows.svm"


@pytest.fixture
def numbers(tmp_path):
    """Numbers to predict, in LIBSVM text."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 3))
    write_svm(tmp_path / "numbers.svm", X, X @ [2.0, -1.0, 0.5] + 0.3 * rng.standard_normal(80))
    return tmp_path / "numbers.svm"


def done_well(done):
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def curve(record):
    return [(point["C"], point["epsilon"], point["fold_scores"]) for point in record["curve"]]


def test_the_same_curve_as_in_python(quickly, rows):
    said = json.loads(done_well(quickly("select", rows, "--loss", "squared_hinge", "--seed", "3", "--json")))
    found = select_C(read_rows(rows), "squared_hinge", seed=3)
    assert curve(said) == curve(found.to_json())
    assert (said["best_C"], said["metric"], said["end"]) == (found.best_C, "accuracy", found.end.name.lower())
    assert (said["rows"], said["features"], said["loss"], said["model"]) == (120, 4, "squared_hinge", None)


def test_every_option_of_the_search_arrives(quickly, rows):
    options = ["--folds", "0.25", "--metric", "balanced_accuracy", "--rule", "one_se", "--C-min", "0.5", "--C-max", "3"]
    options += ["--tol", "0.001", "--regularizer", "l1", "--intercept", "none", "--class-weight", "1=2"]
    said = json.loads(done_well(quickly("select", rows, "--loss", "logistic", *options, "--json")))
    how = {"folds": 0.25, "metric": "balanced_accuracy", "rule": "one_se", "C_min": 0.5, "C_max": 3.0, "tol": 0.001}
    what = {"regularizer": "l1", "intercept": "none", "class_weight": {1.0: 2.0}}
    found = select_C(read_rows(rows), "logistic", **how, **what)
    assert curve(said) == curve(found.to_json())
    assert [point["C"] for point in said["curve"]] == [0.5, 1.0, 2.0]
    assert len(said["curve"][0]["fold_scores"]) == 1
    assert (said["best_C"], said["rule"]) == (found.best_C, "one_se")


def test_a_store_gives_the_same(quickly, rows):
    done_well(quickly("convert", rows, "rows.store"))
    options = ("--loss", "logistic", *SHORT, "--json")
    text, store, beyond_memory = (
        json.loads(done_well(quickly("select", source, *options, *more)))
        for source, more in ((rows, ()), ("rows.store", ()), ("rows.store", ("--memory", "1K")))
    )
    assert curve(text) == curve(store)
    for one, other in zip(curve(text), curve(beyond_memory), strict=True):
        assert one[:2] == other[:2]
        np.testing.assert_allclose(other[2], one[2], rtol=1e-9)


def test_rows_beyond_memory_leave_nothing_behind(quickly, tmp_path, rows):
    done_well(quickly("select", rows, *SHORT, "--memory", "1K"))
    assert [path.name for path in tmp_path.iterdir()] == ["rows.svm"]


def test_what_a_pipe_gets(beeline, rows):
    out = done_well(beeline("select", rows, "--loss", "hinge", *SHORT))
    lines = out.splitlines()
    assert re.match(r"C = \S+ \(2\^-?\d\): accuracy 0\.\d+ ± \S+ on 3 folds, the best of 8 values$", lines[0])
    assert lines[1].split() == ["C", "accuracy", "time"]
    assert [line.replace("best", "").split()[0] for line in lines[2:10]] == [f"2^{k}" for k in range(-4, 4)]
    assert sum(line.startswith("best ") for line in lines) == 1
    assert re.match(r"ended after \d+\.\d\d s because C reached its upper limit$", lines[10])
    assert "\x1b" not in out


def test_the_next_command_can_be_run(quickly, tmp_path, rows):
    rows = rows.rename(tmp_path / "my rows.svm")
    options = ("--loss", "squared_hinge", "--class-weight", "1=2", "--class-weight", "-1=0.5", "--one-based")
    out = done_well(quickly("select", rows, *options, *SHORT, "--seed", "5"))
    (following,) = (line for line in out.splitlines() if line.startswith("next: beeline train "))
    words = shlex.split(following.replace("MODEL", "m"))[2:]
    done_well(quickly(*words))
    settings = Model.load(tmp_path / "m").settings
    assert (settings["class_weight"], settings["seed"]) == ({"1.0": 2.0, "-1.0": 0.5}, 5)
    assert out.startswith(f"C = {settings['C']:g} ")


def test_a_model_with_what_was_found(quickly, tmp_path, rows):
    out = done_well(quickly("select", rows, *SHORT, "-o", "m"))
    assert "next: " not in out
    assert "\nm: logistic, classes -1 and 1, 4 features, 120 rows, " in out
    assert out.count("the loss was chosen because labels are 2 different whole numbers") == 1
    model = Model.load(tmp_path / "m")
    found = select_C(read_rows(rows), "logistic", C_min=0.0625, C_max=8, folds=3)
    how = {"metric": "log_loss", "score": found.best_score, "folds": 3, "candidates": 8, "rule": "best", "end": "limit"}
    assert (model.settings["C"], model.settings["selection"]) == (found.best_C, how)
    done_well(quickly("train", rows, "-o", "direct", "--C", repr(found.best_C)))
    np.testing.assert_allclose(model.weights, Model.load(tmp_path / "direct").weights, rtol=1e-4, atol=1e-6)


def test_training_can_search_too(quickly, tmp_path, rows):
    options = ("--loss", "squared_hinge", "--folds", "3", "--metric", "auc")
    said = json.loads(done_well(quickly("select", rows, *options, "-o", "a", "--json")))
    assert said["model"]["path"] == "a"
    facts = json.loads(done_well(quickly("train", rows, *options, "-o", "b", "--C", "auto", "--json")))
    assert curve(facts["selection"]) == curve(said)
    assert facts["settings"]["C"] == said["best_C"]
    np.testing.assert_array_equal(Model.load(tmp_path / "a").weights, Model.load(tmp_path / "b").weights)
    out = done_well(quickly("train", rows, *options, "-o", "b", "--C", "auto"))
    assert f"C = {said['best_C']:g} was found by auc {said['best_score']:.5g} on 3 folds, the best of " in out
    shown = done_well(quickly("inspect", "b"))
    assert re.search(r"C found by +auc 0\.\d+ on 3 folds, the best of \d+ values", shown)
    assert "selection" not in shown


def test_epsilon_is_searched_for_too(quickly, tmp_path, numbers):
    options = ("--loss", "squared_epsilon_insensitive", "--epsilon", "auto", "--folds", "0.3")
    out = done_well(quickly("select", numbers, *options, "--C-min", "0.25", "--C-max", "2", "-o", "m"))
    model = Model.load(tmp_path / "m")
    assert out.startswith(f"C = {model.settings['C']:g} (2^")
    assert f", ε = {model.loss_settings['epsilon']:,.6g}: rmse 0." in out
    assert "the best of 80 values" in out
    assert len(re.findall(r"^(?:best)? +2\^", out, re.MULTILINE)) == 20  # the best C of each ε
    following = done_well(quickly("select", numbers, *options, "--C-min", "1", "--C-max", "1"))
    assert re.search(r"--C 1\.0 --epsilon 0\.?\d*$", following, re.MULTILINE)
    trained = quickly("train", numbers, *options, "--C", "auto", "-o", "m", "--json")
    facts = json.loads(trained.stdout)
    assert facts["selection"]["best_epsilon"] == facts["loss_settings"]["epsilon"]


def test_cold_starts_to_compare(quickly, rows):
    said = json.loads(done_well(quickly("select", rows, *SHORT, "--cold", "--json")))
    assert [point["C"] for point in said["cold"]["curve"]] == [point["C"] for point in said["curve"]]
    assert "; the same from cold starts took " in done_well(quickly("select", rows, *SHORT, "--cold"))


def test_a_table_that_grows_on_a_terminal(terminal, rows):
    done = terminal("select", rows, "--loss", "hinge", *SHORT, "-o", "m")
    assert done.returncode == 0
    plain = ESCAPE.sub("", done.screen)
    growing, _, left = plain.partition("C = ")
    assert "searching for C, " in growing
    assert "best  2^-4" in growing
    assert "█" in growing
    assert "± " in growing
    assert "searching" not in left
    assert "training  pass" in left or "training  pass" in growing


def test_the_table_does_not_enter_redirected_output(terminal, rows, tmp_path):
    with (tmp_path / "out.json").open("w") as out:
        done = terminal("select", rows, *SHORT, "--json", stdout=out)
    assert done.returncode == 0
    assert "searching for C" in done.screen
    assert len(json.loads((tmp_path / "out.json").read_text())["curve"]) == 8


def test_a_page_about_the_search(quickly, tmp_path, rows):
    done_well(quickly("select", rows, *SHORT, "--report", "page.html"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    for words in ("rows.svm", "log_loss", "logistic"):
        assert words in page
    done_well(quickly("train", rows, "--C", "auto", "--folds", "0.5", "-o", "m", "--report", "page.html"))
    assert "50 % of the rows, held out once" in (tmp_path / "page.html").read_text(encoding="utf-8")


# Ctrl-C at a known moment: the signal is a real one, sent when a C is through, or while the model is trained.
SIGNALLED = """
import os, signal, sys
from contextlib import contextmanager
import beeline.cli.searching as searching
import beeline.cli.training_line as line

@contextmanager
def watched_search(metric, rule):
    points = []
    def on_point(point):
        points.append(point)
        if len(points) == {point}:
            os.kill(os.getpid(), signal.{signal})
    yield on_point

@contextmanager
def training_line():
    def callback(step):
        if {training}:
            os.kill(os.getpid(), signal.SIGINT)
    yield callback

searching.watched_search, line.training_line = watched_search, training_line
from beeline.cli import main
sys.argv = ["beeline", *sys.argv[1:]]
main()
"""


@pytest.fixture
def signalled(tmp_path):
    def run(*arguments, point=4, name="SIGINT", training="False"):
        code = SIGNALLED.format(point=point, signal=name, training=training)
        command = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)

    return run


def test_ctrl_c_tells_the_best_so_far(signalled, rows):
    done = signalled("select", rows, *SHORT)
    assert done.returncode == 130, done.stderr
    best = re.match(r"C = (\S+) .*, the best of 4 values$", done.stdout, re.MULTILINE)[1]
    assert "s because it was interrupted" in done.stdout
    assert f"next: beeline train {rows} -o MODEL --C {best}" in done.stdout
    assert done.stderr == f"beeline: interrupted: the best C so far is {best}\n"


def test_ctrl_c_trains_with_the_best_so_far(signalled, tmp_path, rows):
    done = signalled("select", rows, *SHORT, "-o", "m")
    assert done.returncode == 130, done.stderr
    first, second = done.stderr.splitlines()
    assert first.startswith("beeline: interrupted: training with the best C so far, 2^-")
    assert second.endswith(", and the model with it was saved as m")
    model = Model.load(tmp_path / "m")
    assert model.report.status == "converged"
    assert (model.settings["selection"]["candidates"], model.settings["selection"]["end"]) == (4, "interrupted")
    done = signalled("train", rows, "--C", "auto", "-o", "m")
    assert done.returncode == 130
    assert done.stderr.endswith("beeline: interrupted: the model with the best C so far was saved as m\n")


def test_a_second_ctrl_c_ends_the_training(signalled, tmp_path, rows):
    done = signalled("select", rows, *SHORT, "-o", "m", training="True")
    assert done.returncode == 130, done.stderr
    assert done.stderr.count("\n") == 2
    assert Model.load(tmp_path / "m").report.status == "interrupted"


def test_ctrl_c_before_anything_is_known(tmp_path, rows):
    code = """
import os, signal, sys
import beeline.selection.runners as runners
def interrupted(*arguments):
    os.kill(os.getpid(), signal.SIGINT)
    while True:
        pass
for kind in runners.Runner.__subclasses__():
    kind.go = interrupted
from beeline.cli import main
sys.argv = ["beeline", "select", "rows.svm", "-o", "m"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "beeline: interrupted: stopped before the end, nothing was written\n"
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_a_path_goes_on_from_its_file(signalled, beeline, rows, name):
    options = ("--loss", "squared_hinge", *SHORT, "--json")
    whole = json.loads(done_well(beeline("select", rows, *options)))
    cut = signalled("select", rows, *options, "--resume", "path", name=name)
    if name == "SIGINT":
        assert cut.stderr.endswith("; the same command goes on from path\n")
        assert curve(json.loads(cut.stdout)) == curve(whole)[:4]
    else:
        assert cut.returncode == -signal.SIGKILL
    resumed = json.loads(done_well(beeline("select", rows, *options, "--resume", "path")))
    assert curve(resumed) == curve(whole)
    assert resumed["best_C"] == whole["best_C"]
    again = json.loads(done_well(beeline("select", rows, *options, "--resume", "path")))
    assert again["curve"] == resumed["curve"]  # nothing was left to do


def one_line(done, code):
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("beeline: error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


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
        (("--report", "page.html"), "--report has no meaning without --C auto"),
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
    assert "pip install beeline[plot]" in one_line(done, 1)


def test_help_names_the_rules():
    assert get_args(command.RuleName) == get_args(Rule)


def test_a_search_does_not_load_scikit_learn(tmp_path, rows):
    code = "import sys; from beeline.cli import main\nsys.argv = ['beeline', 'select', 'rows.svm', '--C-max', '0.1']\n"
    code += "try:\n    main()\nexcept SystemExit:\n    pass\n"
    code += "print(sorted({'sklearn', 'pandas', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
