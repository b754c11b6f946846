"""`beeline select` and `beeline train --C auto`, run for real."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import get_args

import numpy as np
from outcomes import SHORT, done_well, done_with_note

from beeline import Model, select_C
from beeline import read as read_rows
from beeline.cli.commands import select as command
from beeline.selection.result import Rule

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


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
    assert "until the end" in done_with_note(quickly("select", rows, *SHORT, "--memory", "1K"))
    assert [path.name for path in tmp_path.iterdir()] == ["rows.svm"]


def test_what_a_pipe_gets(beeline, rows):
    out = done_well(beeline("select", rows, "--loss", "hinge", "--stop", "paper", *SHORT))
    lines = out.splitlines()
    assert re.match(r"C = \S+ \(2\^-?\d\): accuracy 0\.\d+ ± \S+ on 3 folds, the best of 8 values$", lines[0])
    assert lines[1].split() == ["C", "accuracy", "time"]
    assert [line.replace("best", "").split()[0] for line in lines[2:10]] == [f"2^{k}" for k in range(-4, 4)]
    assert sum(line.startswith("best ") for line in lines) == 1
    assert re.match(r"ended after \d+\.\d\d s because C reached its upper limit$", lines[10])
    assert "\x1b" not in out


def test_the_end_of_a_path_that_still_climbs(quickly, rows):
    out = done_well(quickly("select", rows, "--loss", "logistic", "--C-min", "0.001", "--C-max", "0.01"))
    assert "\nthe best C is the last one tried; a larger --C-max goes further\n" in out
    assert "last one tried" not in done_well(quickly("select", rows, "--loss", "logistic", *SHORT))


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
    how = {"metric": "log_loss", "score": found.best_score, "folds": 3, "candidates": len(found.curve), "rule": "best"}
    how |= {"end": found.end.name.lower()}
    assert (model.settings["C"], model.settings["selection"]) == (found.best_C, how)
    done_well(quickly("train", rows, "-o", "direct", "--C", repr(found.best_C)))
    np.testing.assert_allclose(model.weights, Model.load(tmp_path / "direct").weights, atol=1e-2)


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
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "50 % of the rows, held out once" in page
    assert "Training with this C" in page
    assert "Every C" in page
    done_well(quickly("select", rows, *SHORT, "-o", "m", "--report", "page.html"))
    assert "Training with this C" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_help_names_the_rules():
    assert get_args(command.RuleName) == get_args(Rule)


def test_a_search_does_not_load_scikit_learn(tmp_path, rows):
    code = "import sys; from beeline.cli import main\nsys.argv = ['beeline', 'select', 'rows.svm', '--C-max', '0.1']\n"
    code += "try:\n    main()\nexcept SystemExit:\n    pass\n"
    code += "print(sorted({'sklearn', 'pandas', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
