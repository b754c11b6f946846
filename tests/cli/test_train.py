"""`beeline train`, run for real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest
from outcomes import done_well, done_with_note, one_line
from sklearn.datasets import dump_svmlight_file

from beeline import LogisticRegression, Model
from beeline import read as read_rows
from beeline.cli.options import training as command
from beeline.data.text import dialect
from beeline.data.text.libsvm import LibsvmReader
from beeline.losses import LOSSES
from beeline.objective import Intercept
from beeline.regularizers import REGULARIZERS

RNG = np.random.default_rng(0)


@pytest.fixture
def svm_rows(tmp_path):
    """Two classes in LIBSVM text."""
    X = RNG.standard_normal((80, 4))
    y = np.where(X[:, 0] + 0.3 * RNG.standard_normal(80) > 0, 1, -1)
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{float(v)!r}" for j, v in enumerate(x)) for label, x in zip(y, X, strict=True)
    ]
    path = tmp_path / "rows.svm"
    path.write_text("\n".join(lines) + "\n")
    return path, X, y


@pytest.fixture
def houses(tmp_path):
    """A table with a number to predict, a category and weights."""
    path = tmp_path / "houses.csv"
    rows = [f"{20 + i},{'town' if i % 3 else 'land'},{1000.5 + 37.25 * i + 500 * (i % 3 > 0)},1" for i in range(60)]
    path.write_text("\n".join(["area,place,price,w", *rows]) + "\n")
    return path


@pytest.fixture
def pets(tmp_path):
    """A table with text labels."""
    path = tmp_path / "pets.csv"
    kinds = ["cat", "dog", "bird"]
    rows = [f"{i % 3 * 2 + (i % 7) / 10},{'red' if i % 2 else 'blue'},{kinds[i % 3]}" for i in range(60)]
    path.write_text("\n".join(["size,color,kind", *rows]) + "\n")
    return path


def test_text_to_model(beeline, tmp_path, svm_rows):
    path, X, y = svm_rows
    out = done_well(beeline("train", path, "-o", "m", "--tol", "1e-8"))
    assert out.startswith("m: logistic, classes -1 and 1, 4 features, 80 rows, ")
    assert "% above the optimum" in out
    assert "the loss was chosen because labels are 2 different whole numbers; --loss squared" in out
    model = Model.load(tmp_path / "m")
    direct = LogisticRegression(tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.weights.T, direct.coef_, rtol=1e-4)
    assert model.recipe is not None


def test_nonnegative_weights(quickly, tmp_path, svm_rows):
    path = svm_rows[0]
    free = json.loads(done_well(quickly("train", path, "-o", "free", "--loss", "hinge", "--json")))
    assert Model.load(tmp_path / "free").weights.min() < 0
    assert "nonnegative" not in free["settings"]
    facts = json.loads(done_well(quickly("train", path, "-o", "m", "--loss", "hinge", "--nonnegative", "--json")))
    assert facts["settings"]["nonnegative"] is True
    assert facts["report"]["solver"] == "interior_point"
    assert facts["report"]["objective"] > free["report"]["objective"]
    assert Model.load(tmp_path / "m").weights.min() == 0
    done_well(quickly("select", path, "-o", "s", "--loss", "hinge", "--regularizer", "l1", "--nonnegative"))
    assert Model.load(tmp_path / "s").weights.min() == 0
    follow = done_well(quickly("select", path, "--loss", "hinge", "--nonnegative", "--C-max", "1"))
    assert "--nonnegative" in follow
    assert "nonnegative True" in done_well(quickly("inspect", "m"))


def test_nonnegative_weights_and_solvers_that_cannot(quickly, svm_rows):
    words = "the solver 'dual_cd' cannot keep weights at zero or above, as L2(nonnegative=True) asks"
    assert words in one_line(quickly("train", svm_rows[0], "-o", "m", "--nonnegative", "--solver", "dual_cd"), 2)
    words = "--nonnegative says nothing of two classes by 'softmax'"
    assert words in one_line(quickly("train", svm_rows[0], "-o", "m", "--nonnegative", "--loss", "softmax"), 2)


def test_json(quickly, svm_rows):
    facts = json.loads(done_well(quickly("train", svm_rows[0], "-o", "m", "--loss", "hinge", "--json")))
    assert facts["loss"] == "hinge"
    assert facts["classes"] == ["-1", "1"]
    assert facts["loss_chosen_because"] is None
    assert facts["report"]["status"] == "converged"
    assert facts["report"]["n_rows"] == 80
    (trace,) = facts["trace"]
    assert len(trace) == facts["report"]["iterations"]
    assert trace[-1]["gap"] == facts["report"]["gap"]
    assert trace[-1]["objective"] == facts["report"]["objective"]
    assert {"passes", "seconds", "objective", "gap"} == trace[0].keys()


def test_json_has_what_a_solver_says_beside_the_gap(quickly, svm_rows):
    run = quickly("train", svm_rows[0], "-o", "m", "--loss", "hinge", "--solver", "bundle", "--json")
    facts = json.loads(done_well(run))
    (said,) = facts["solver_facts"]
    assert said["step_bound"] > said["planes"] > 0
    assert said["plane_bytes"] > 0


def test_a_page_about_the_training(quickly, tmp_path, svm_rows):
    done_well(quickly("train", svm_rows[0], "-o", "m", "--loss", "huber_hinge", "--C", "2", "--report", "page.html"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    for words in (svm_rows[0].name, "The huber_hinge model", "above the optimum", "certified relative gap", "l2"):
        assert words in page
    assert "The path of C" not in page


def test_real_labels_make_a_regression(quickly, tmp_path, houses):
    out = done_well(quickly("train", houses, "-o", "m", "--label", "price", "--weight", "w"))
    assert "because labels are real numbers" in out
    model = Model.load(tmp_path / "m")
    assert (model.kind, model.loss) == ("regression", "squared")
    assert model.feature_names == ["area", "place=land", "place=town"]


def test_text_labels_are_classes(quickly, tmp_path, pets):
    out = done_well(quickly("train", pets, "-o", "m", "--label", "kind", "--scale", "standard"))
    assert "because labels are 3 different texts" in out
    assert Model.load(tmp_path / "m").classes.tolist() == ["bird", "cat", "dog"]


def test_crammer_singer(quickly, tmp_path, pets):
    options = ["--loss", "hinge", "--multiclass", "crammer_singer", "--tol", "1e-6"]
    out = done_well(quickly("train", pets, "-o", "m", "--label", "kind", *options))
    assert "above the optimum" in out
    model = Model.load(tmp_path / "m")
    assert (model.loss, model.report.solver) == ("hinge", "class_dual_cd")
    assert model.settings["multiclass"] == "crammer_singer"
    assert model.weights.shape[1] == 3


def test_every_option_reaches_the_model(quickly, tmp_path, pets):
    options = ["--loss", "squared_hinge", "--C", "0.5", "--regularizer", "l2", "--intercept", "regularized"]
    options += ["--multiclass", "ovr", "--class-weight", "cat=2", "--class-weight", "dog=0.5", "--probability"]
    options += ["--solver", "auto", "--tol", "1e-3", "--max-passes", "500", "--seed", "7", "--threads", "1"]
    done_well(quickly("train", pets, "-o", "m", "--label", "kind", *options))
    model = Model.load(tmp_path / "m")
    assert model.settings == {
        "regularizer": "l2",
        "C": 0.5,
        "class_weight": {"cat": 2.0, "dog": 0.5},
        "intercept": "regularized",
        "multiclass": "ovr",
        "solver": "auto",
        "tol": 1e-3,
        "max_passes": 500.0,
        "seed": 7,
        "probability": True,
    }
    assert model.link == "platt"


def test_softmax(quickly, tmp_path, pets):
    """Three ways to ask for one problem of all classes, and what it says of a contradiction."""
    ways = {"a": [], "b": ["--multiclass", "softmax"], "c": ["--loss", "softmax"]}
    for name, options in ways.items():
        done_well(quickly("train", pets, "-o", name, "--label", "kind", "--scale", "standard", *options))
    models = {name: Model.load(tmp_path / name) for name in ways}
    for model in models.values():
        assert (model.link, model.settings["multiclass"]) == ("softmax", "softmax")
        np.testing.assert_array_equal(model.weights, models["a"].weights)
    assert "3 classes (softmax)" in done_well(quickly("inspect", "c"))
    result = quickly("train", pets, "-o", "d", "--label", "kind", "--loss", "hinge", "--multiclass", "softmax")
    assert result.returncode == 2
    assert "--multiclass softmax extends the loss 'logistic' to more classes, not 'hinge'" in result.stderr


def test_balanced(quickly, tmp_path, svm_rows):
    done_well(quickly("train", svm_rows[0], "-o", "m", "--class-weight", "balanced"))
    assert Model.load(tmp_path / "m").settings["class_weight"] == "balanced"


def test_epsilon(quickly, tmp_path, houses):
    options = ["--label", "price", "--weight", "w", "--loss", "squared_epsilon_insensitive", "--epsilon", "5"]
    done_well(quickly("train", houses, "-o", "m", *options))
    assert Model.load(tmp_path / "m").loss_settings == {"epsilon": 5.0}


def test_a_store_and_rows_beyond_memory_give_the_same_model(quickly, tmp_path, svm_rows):
    done_well(quickly("train", svm_rows[0], "-o", "a", "--tol", "1e-8"))
    note = done_with_note(quickly("train", svm_rows[0], "-o", "b", "--tol", "1e-8", "--memory", "1K"))
    assert note.startswith(
        "rows.svm may take more than 512 bytes, which is what rows may take of memory; they are kept in a store in "
    )
    done_well(quickly("convert", svm_rows[0], "rows.store"))
    done_well(quickly("train", "rows.store", "-o", "c", "--tol", "1e-8"))
    done_well(quickly("train", "rows.store", "-o", "d", "--tol", "1e-8", "--memory", "1K"))
    first = Model.load(tmp_path / "a")
    for name in "bcd":
        other = Model.load(tmp_path / name)
        np.testing.assert_allclose(other.weights, first.weights, rtol=1e-6)
        assert other.recipe == first.recipe
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "c", "d", "rows.store", "rows.svm"}


def test_float32_is_taken_for_much_text_of_six_digits_and_can_be_declined(quickly, tmp_path, monkeypatch):
    X = RNG.standard_normal((60, 4))
    y = np.where(X[:, 0] + RNG.standard_normal(60) > 0, 1, -1)
    lines = (f"{a} " + " ".join(f"{j}:{v:.6g}" for j, v in enumerate(x, 1)) for a, x in zip(y, X, strict=True))
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    kinds, read = [], LibsvmReader.read

    def noted(self, *, narrow=False):
        data = read(self, narrow=narrow)
        kinds.append(data.block.values.dtype.name)
        return data

    monkeypatch.setattr(LibsvmReader, "read", noted)
    few = done_well(quickly("train", "rows.svm", "-o", "few")) and Model.load(tmp_path / "few")
    monkeypatch.setattr(dialect, "_MANY", 0)
    models, scores = {}, {}
    for name, options in {"auto": [], "wide": ["--dtype", "float64"], "fine": ["--tol", "1e-7"]}.items():
        done_well(quickly("train", "rows.svm", "-o", name, *options))
        out = done_well(quickly("predict", name, "rows.svm", "--scores")).splitlines()[1:]
        models[name], scores[name] = Model.load(tmp_path / name), np.array([float(row.split(",")[1]) for row in out])
    assert kinds == ["float64", "float32", "float64", "float64"]
    np.testing.assert_array_equal(models["wide"].weights, few.weights)
    np.testing.assert_allclose(models["auto"].weights, few.weights, rtol=1e-5)
    np.testing.assert_allclose(scores["auto"], scores["wide"], rtol=1e-5, atol=1e-6)
    # Rows are told apart by a file as by a data set in Python, which is never rounded.
    data = read_rows(tmp_path / "rows.svm")
    assert data.block.values.dtype == np.float64
    np.testing.assert_allclose(models["auto"].decision_function(data), scores["auto"], rtol=1e-12)


def test_the_same_model_for_any_number_of_threads(beeline, tmp_path):
    # So many rows that threads share out the text, the products with it and the losses.
    X = RNG.standard_normal((20_000, 6)).round(4)
    y = np.where(X[:, 0] + 0.3 * RNG.standard_normal(20_000) > 0, 1, -1)
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"))
    for n in (1, 3):
        done_well(beeline("train", "rows.svm", "-o", f"m{n}", "--threads", n, "--loss", "hinge"))
    one, three = Model.load(tmp_path / "m1"), Model.load(tmp_path / "m3")
    np.testing.assert_array_equal(one.weights, three.weights)


def test_the_pass_limit_warns(quickly, tmp_path, svm_rows):
    done = quickly("train", svm_rows[0], "-o", "m", "--tol", "1e-14", "--max-passes", "2")
    assert done.returncode == 3
    assert done.stderr.startswith("beeline: warning: ")
    assert "above the optimum; raise --max-passes (now 2) or --tol (now 1e-14)" in done.stderr
    assert Model.load(tmp_path / "m").report.status == "limit"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--C", "0"), "--C must be positive"),
        (("--tol", "-1"), "--tol must be positive"),
        (("--l1-ratio", "0.5"), "--l1-ratio has no meaning without"),
        (("--epsilon", "0.5"), "--epsilon has no meaning without"),
        (("--regularizer", "elastic_net", "--l1-ratio", "2"), "--l1-ratio must lie between"),
        (("--solver", "magic"), "there is no solver 'magic'"),
        (("--class-weight", "much"), "LABEL=WEIGHT"),
        (("--class-weight", "9=2"), "class 9.0, which is not among the labels: -1.0, 1.0"),
        (("--loss", "squared", "--class-weight", "1=2"), "--class-weight has no meaning for a regression"),
        (("--loss", "squared", "--probability"), "--probability has no meaning for a regression"),
        (("--memory", "lots"), "'lots' is not a size"),
        (("-o", "."), "is a folder"),
        (("-o", "rows.svm"), "is there already and is not a model"),
    ],
)
def test_options_that_make_no_sense(quickly, svm_rows, options, words):
    assert words in one_line(quickly("train", svm_rows[0], "-o", "m", *options), 2)


def test_failures_are_found_before_the_data_are_read(quickly, tmp_path):
    assert "there is no folder" in one_line(quickly("train", "nowhere.svm", "-o", "no/such/m"), 1)
    assert "nowhere.svm: no such file" in one_line(quickly("train", "nowhere.svm", "-o", "m"), 1)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("1 1:1\n1 2:1\n", (), "only one class, 1.0"),
        ("1,2 1:1\n1 2:1\n", (), "sets of labels"),
        ("1.5 1:1\n2 2:1\n", ("--loss", "hinge"), "row 0 has the label 1.5, which names no class"),
    ],
)
def test_labels_that_do_not_fit(quickly, tmp_path, text, options, words):
    (tmp_path / "x.svm").write_text(text)
    assert words in one_line(quickly("train", "x.svm", "-o", "m", *options), 1)
    assert not (tmp_path / "m").exists()


def test_a_table_without_a_label(quickly, houses):
    assert "by --label" in one_line(quickly("train", houses, "-o", "m"), 1)


def test_options_of_a_source_are_refused_for_a_store(quickly, svm_rows):
    done_well(quickly("convert", svm_rows[0], "rows.store"))
    assert "--scale has no meaning for a store" in one_line(
        quickly("train", "rows.store", "-o", "m", "--scale", "maxabs"), 2
    )


INTERRUPTED = """
import os, signal, sys
import beeline.cli.output.training_line as line
from contextlib import contextmanager

@contextmanager
def training_line(tol):
    def callback(step):
        if {condition}:
            os.kill(os.getpid(), signal.SIGINT)
    yield callback

line.training_line = training_line
from beeline.cli import main
sys.argv = ["beeline", "train", "rows.svm", "-o", "m", "--tol", "1e-13"]
main()
"""


def test_ctrl_c_saves_the_best_so_far(tmp_path, svm_rows):
    code = INTERRUPTED.format(condition="step.passes > 2")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    assert done.stderr == "beeline: interrupted: the best model so far was saved as m\n"
    assert "was interrupted after" in done.stdout
    assert Model.load(tmp_path / "m").report.status == "interrupted"


def test_progress_on_a_terminal(terminal, svm_rows):
    done = terminal("train", svm_rows[0], "-o", "m")
    assert done.returncode == 0
    assert "training  pass " in done.screen
    assert "objective" in done.screen
    assert "gap" in done.screen


def test_help_names_what_the_registries_have():
    assert set(get_args(command.LossName)) == set(LOSSES)
    assert set(get_args(command.RegularizerName)) == set(REGULARIZERS)
    assert set(get_args(command.InterceptKind)) == set(get_args(Intercept))


def test_training_does_not_load_scikit_learn(tmp_path, svm_rows):
    code = "import sys; from beeline.cli import main\nsys.argv = ['beeline', 'train', 'rows.svm', '-o', 'm']\n"
    code += "try:\n    main()\nexcept SystemExit:\n    pass\n"
    code += "print(sorted({'sklearn', 'pandas', 'onnx'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert os.path.exists(tmp_path / "m")  # noqa: PTH110


def test_options_of_the_solver(quickly, tmp_path, svm_rows):
    options = ["--loss", "hinge", "--solver", "bundle", "--tol", "1e-3"]
    said = ["--solver-setting", "variant=bmrm", "--solver-setting", "max_planes=30"]
    done_well(quickly("train", svm_rows[0], "-o", "m", "--report", "p.html", *options, *said))
    settings = Model.load(tmp_path / "m").settings
    assert settings["solver"] == "bundle"
    assert settings["solver_options"] == {"variant": "bmrm", "max_planes": 30}
    assert "<td>bundle (variant=bmrm, max_planes=30)</td>" in (tmp_path / "p.html").read_text(encoding="utf-8")
    done_well(quickly("train", svm_rows[0], "-o", "n", *options))
    first, second = (Model.load(tmp_path / name) for name in "mn")
    assert first.report.iterations != second.report.iterations
    assert "solver_options" not in second.settings
    limits = ["--folds", "2", "--C-min", "0.1", "--C-max", "0.2"]
    out = done_well(quickly("select", svm_rows[0], *options[:4], *said, *limits))
    assert "--solver bundle --solver-setting variant=bmrm --solver-setting max_planes=30" in out


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("varant=bmrm", "the solver 'bundle' has no option 'varant'; did you mean 'variant'?"),
        ("variant=bmrx", "the solver's variant must be one of ocas, bmrm, line, not 'bmrx'"),
        ("max_planes=many", "the solver's max_planes must be a whole number or None, not 'many'"),
        ("variant", "--solver-setting must be a name with a value, such as variant=bmrm"),
        ("variant=", "--solver-setting must be a name with a value"),
        ("=bmrm", "--solver-setting must be a name with a value"),
    ],
)
def test_bad_options_of_the_solver(quickly, svm_rows, said, words):
    for command_line in (("train", svm_rows[0], "-o", "m"), ("select", svm_rows[0])):
        done = quickly(*command_line, "--loss", "hinge", "--solver", "bundle", "--solver-setting", said)
        assert words in one_line(done, 2)


def test_options_without_a_solver(quickly, svm_rows):
    done = quickly("train", svm_rows[0], "-o", "m", "--solver-setting", "memory=3")
    assert "auto has no options, such as 'memory'; name the solver that they are for" in one_line(done, 2)


def test_every_command_that_trains_has_a_time_limit(quickly):
    for name in ("train", "select"):
        assert "--time-limit" in done_well(quickly(name, "--help"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["tol=0.5"], "--solver-setting cannot say tol, which is said by --tol; leave it out"),
        (["variant=bmrm", "variant=line"], "--solver-setting says variant twice; leave one out"),
    ],
)
def test_settings_that_are_said_elsewhere_or_twice(quickly, svm_rows, settings, words, tmp_path):
    options = [part for item in settings for part in ("--solver-setting", item)]
    done = quickly("train", svm_rows[0], "-o", tmp_path / "m", "--solver", "bundle", *options)
    assert words in one_line(done, code=2)


def test_settings_take_words_of_python(quickly, svm_rows, tmp_path):
    options = ["--solver-setting", "max_planes=None", "--solver-setting", "nonnegative=True"]
    done_well(quickly("train", svm_rows[0], "-o", tmp_path / "m", "--solver", "bundle", *options))
