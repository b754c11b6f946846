"""Losses with labels, links and settings of their own, by the commands."""

from __future__ import annotations

import json

import numpy as np
import pytest

from beeline import Model
from beeline.losses import LOSSES

RNG = np.random.default_rng(1)
X = RNG.normal(size=(90, 3)).round(4)
COUNTS = RNG.poisson(np.exp(X[:, 0] + 0.5))
SETS = X + 0.2 * RNG.normal(size=X.shape) > 0.5


def done_well(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(done, code):
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("beeline: error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def svm_text(labels):
    return "".join(
        f"{label} {' '.join(f'{j + 1}:{v}' for j, v in enumerate(row))}\n" for label, row in zip(labels, X, strict=True)
    )


@pytest.fixture
def counts(tmp_path):
    (tmp_path / "counts.svm").write_text(svm_text(COUNTS))
    return "counts.svm"


@pytest.fixture
def sets(tmp_path):
    """Rows with the labels 10, 20 and 30, some with none."""
    (tmp_path / "sets.svm").write_text(
        svm_text(",".join(str(10 * (k + 1)) for k in np.flatnonzero(row)) for row in SETS)
    )
    return "sets.svm"


def test_rates(quickly, tmp_path, counts):
    assert "poisson" in done_well(quickly("train", counts, "-o", "m", "--loss", "poisson"))
    model = Model.load(tmp_path / "m")
    printed = np.array([float(line) for line in done_well(quickly("predict", "m", counts)).splitlines()])
    np.testing.assert_allclose(printed, model.predict(X), rtol=1e-14)
    assert (printed > 0).all()
    measures = json.loads(done_well(quickly("evaluate", "m", counts, "--json")))["measures"]
    assert measures["rmse"] == pytest.approx(np.sqrt(np.mean((COUNTS - printed) ** 2)), rel=1e-9)
    assert measures["r2"] > 0.3
    assert "a number, exp of the score" in done_well(quickly("inspect", "m"))


def test_a_negative_count_is_refused(quickly, tmp_path, counts):
    with (tmp_path / counts).open("a") as file:
        file.write("-3 1:1\n")
    assert "row 90 has the label -3; the labels of 'poisson' must be finite numbers that are not negative" in refused(
        quickly("train", counts, "-o", "m", "--loss", "poisson"), 1
    )


def test_settings(quickly, tmp_path, counts):
    options = ["--loss", "huber", "--loss-setting", "delta=0.5"]
    assert "huber (delta 0.5)" in done_well(quickly("train", counts, "-o", "m", *options))
    assert Model.load(tmp_path / "m").loss_settings == {"delta": 0.5}
    options = ["--loss", "softmax_margin", "--loss-setting", "costs=[[0,1,1],[3,0,1],[1,1,0]]"]
    (tmp_path / "three.svm").write_text(svm_text(np.digitize(X[:, 0], [-0.5, 0.5])))
    assert "softmax_margin (costs 3 × 3)" in done_well(quickly("train", "three.svm", "-o", "m", *options))
    assert Model.load(tmp_path / "m").loss_settings["costs"][1] == [3, 0, 1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--loss", "huber", "--loss-setting", "tau=1"), "the loss 'huber' has no setting 'tau'; it has delta"),
        (("--loss", "huber", "--loss-setting", "delta=-1"), "delta must be positive and finite, not -1"),
        (("--loss", "huber", "--loss-setting", "delta"), "--loss-setting must be a name with a number or a matrix"),
        (
            ("--loss", "huber", "--loss-setting", "delta=wide"),
            "--loss-setting must be a name with a number or a matrix",
        ),
        (("--loss-setting", "delta=1"), "--loss-setting has no meaning without --loss"),
        (("--loss", "novelty"), "a free intercept alone would satisfy the loss 'novelty'"),
        (("--loss", "multiclass_margin", "--loss-setting", "costs=[[0,1],[1,0]]"), "2 × 2 numbers, but there are"),
    ],
)
def test_options_that_make_no_sense(quickly, counts, options, words):
    assert words in refused(quickly("train", counts, "-o", "m", *options), 2)


def test_a_tree_of_labels(quickly, tmp_path):
    (tmp_path / "three.svm").write_text(svm_text(np.digitize(X[:, 0], [-0.5, 0.5])))
    (tmp_path / "tree.txt").write_text("all low\nall 2\nlow 0\nlow 1\n")
    options = ["--loss", "tree_margin", "--tree", "tree.txt", "--loss-setting", "rescaling=slack"]
    said = done_well(quickly("train", "three.svm", "-o", "m", *options))
    assert "tree_margin (tree of 4 edges, rescaling slack), 3 classes" in said
    settings = Model.load(tmp_path / "m").loss_settings
    assert settings == {"tree": [["all", "low"], ["low", "0"], ["low", "1"], ["all", "2"]], "rescaling": "slack"}
    assert "tree of 4 edges" in done_well(quickly("inspect", "m"))
    found = json.loads(done_well(quickly("evaluate", "m", "three.svm", "--json")))
    assert {"tree_loss", "hierarchical_precision", "hierarchical_recall", "hierarchical_f1"} <= set(found["measures"])
    assert [node["name"] for node in found["tree"]] == ["all", "low", "0", "1", "2"]
    assert "hierarchical F1" in done_well(quickly("evaluate", "m", "three.svm"))


def test_a_tree_by_the_names_of_the_classes(quickly, tmp_path):
    names = np.array(["a.x", "a.y", "b"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    lines = [f"{name},{','.join(map(str, row))}" for name, row in zip(names, X.tolist(), strict=True)]
    head = ",".join(["kind", *(f"f{k}" for k in range(X.shape[1]))])
    (tmp_path / "t.csv").write_text("\n".join([head, *lines]))
    options = ["--label", "kind", "--loss", "tree_logistic", "--tree"]
    done_well(quickly("train", "t.csv", "-o", "m", *options, "dots"))
    assert Model.load(tmp_path / "m").loss_settings["tree"] == [["", "a"], ["a", "a.x"], ["a", "a.y"], ["", "b"]]
    assert "cannot be read: no such file" in refused(quickly("train", "t.csv", "-o", "m", *options, "none.txt"), 1)
    (tmp_path / "tree.txt").write_text("all a.x\nall b\n")
    words = "the tree of labels has no node 'a.y'; did you mean 'a.x'?"
    assert words in refused(quickly("train", "t.csv", "-o", "m", *options, "tree.txt"), 1)
    words = "--tree has no meaning without --loss tree_logistic or tree_margin"
    assert words in refused(quickly("train", "t.csv", "-o", "m", "--label", "kind", "--tree", "dots"), 2)


def test_sets_of_labels(quickly, tmp_path, sets):
    assert "sets of 3 labels" in done_well(quickly("train", sets, "-o", "m", "--loss", "multilabel_logistic"))
    model = Model.load(tmp_path / "m")
    np.testing.assert_array_equal(model.classes, [10, 20, 30])
    lines = done_well(quickly("predict", "m", sets)).splitlines()
    found = np.array([[str(name) in line.split() for name in (10, 20, 30)] for line in lines])
    np.testing.assert_array_equal(found, model.predict(X) == 1)
    measures = json.loads(done_well(quickly("evaluate", "m", sets, "--json")))["measures"]
    assert measures["exact_sets"] == pytest.approx(np.mean((found == SETS).all(axis=1)))
    hits = (found & SETS).sum(axis=0)
    sizes = found.sum(axis=0) + SETS.sum(axis=0)
    assert measures["f1_micro"] == pytest.approx(2 * hits.sum() / sizes.sum())
    assert measures["f1_macro"] == pytest.approx(np.mean(2 * hits / sizes))
    head, first, *_ = done_well(quickly("predict", "m", sets, "--probabilities")).splitlines()
    assert head == "label,10,20,30"
    np.testing.assert_allclose([float(v) for v in first.split(",")[1:]], model.predict_proba(X)[0])
    assert "largest weights for 20" in done_well(quickly("inspect", "m"))


def test_sets_and_single_labels_are_told_apart(quickly, tmp_path, sets, counts):
    done_well(quickly("train", sets, "-o", "m", "--loss", "multilabel_hinge"))
    (tmp_path / "new.svm").write_text("10,77 1:1\n")
    measures = json.loads(done_well(quickly("evaluate", "m", "new.svm", "--json")))["measures"]
    assert measures["exact_sets"] == 0
    assert "the model predicts sets of labels, and the data have none" in refused(quickly("evaluate", "m", counts), 1)
    assert "train by multilabel_logistic" in refused(quickly("predict", "m", sets, "--probabilities"), 2)
    assert "read the data with --multilabel" in refused(
        quickly("train", counts, "-o", "n", "--loss", "multilabel_hinge"), 1
    )
    done_well(quickly("train", counts, "-o", "n", "--loss", "multilabel_hinge", "--multilabel"))


def test_all_losses_are_listed(quickly):
    lines = done_well(quickly("losses")).splitlines()
    names = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert sorted(names) == sorted(LOSSES)
    assert [line for line in lines if line and not line.startswith(" ")] == [
        "Two classes",
        "Several classes together",
        "Levels in an order",
        "Sets of labels",
        "Numbers",
        "Relevances of the documents of queries",
        "Vectors of numbers",
        "No labels",
    ]
    (formula,) = (line for line in lines if line.startswith("  quantile "))
    about = lines[lines.index(formula) + 1]
    assert "max(τ(y − z), (1 − τ)(z − y))" in formula
    for words in (
        "quantile regression",
        "settings tau=0.5",
        "smoothed_newton, interior_point, bundle, sgd with l2",
        "bundle, sgd with l1",
    ):
        assert words in about


def test_losses_as_json(quickly):
    facts = {loss["name"]: loss for loss in json.loads(done_well(quickly("losses", "--json")))["losses"]}
    assert set(facts) == set(LOSSES)
    assert facts["tweedie"]["settings"] == {"power": 1.5}
    assert facts["tweedie"]["domain"] == "finite numbers that are not negative"
    assert facts["poisson"]["link"] == "exp"
    assert facts["crammer_singer"]["solvers"] == {
        "l2": ["smoothed_newton", "class_dual_cd", "bundle", "block_cd", "sgd"],
        "l1": ["bundle", "sgd"],
    }
    assert all(loss["formula"] and loss["summary"] and all(loss["solvers"].values()) for loss in facts.values())


def test_settings_of_the_loss_in_a_search(quickly, counts):
    words = ("--loss", "tweedie", "--loss-setting", "power=1.2", "--folds", "3")
    found = json.loads(done_well(quickly("select", counts, *words, "--C-max", "1", "--json")))
    assert found["metric"] == "loss"
    done_well(quickly("train", counts, "-o", "m", "--C", "auto", *words))
    refused(quickly("select", counts, "--loss", "tweedie", "--loss-setting", "power=3"), 2)


@pytest.mark.parametrize("tau", [".9", "+0.9", "9e-1"])
def test_settings_are_numbers_as_people_write_them(tau):
    from beeline.cli.options.training import _named_value

    assert _named_value("loss_setting", f"tau={tau}") == ("tau", 0.9)
