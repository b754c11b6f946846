"""`beeline predict`, `evaluate`, `inspect` and `export`, run for real."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import threading

import numpy as np
import onnxruntime
import pytest

from beeline import Model, read
from beeline.metrics import auc, log_loss

RNG = np.random.default_rng(0)
KINDS = ["cat", "dog", "a,b"]


def write_pets(path, n=90, seed=0, label=True):
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "color", *(["kind"] if label else [])])
        for i in range(n):
            row = [round(i % 3 * 2 + rng.standard_normal(), 3), "red" if rng.random() < 0.5 else "blue"]
            writer.writerow([*row, *([KINDS[i % 3]] if label else [])])


def write_svm(path, n=80, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((n, d)), 4)
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1, -1)
    rows = (f"{label} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for label, x in zip(y, X, strict=True))
    path.write_text("\n".join(rows) + "\n")
    return X, y


def really(folder, *arguments):
    command = [sys.executable, "-m", "beeline", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100)


def done_well(done):
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def one_line(done, code):
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("beeline: error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.fixture
def run(quickly):
    """Run `beeline ARGUMENTS` in a folder, within this process."""
    return lambda folder, *arguments: quickly(*arguments, folder=folder)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with models of all kinds and rows to use them on."""
    folder = tmp_path_factory.mktemp("models")
    write_pets(folder / "pets.csv")
    write_pets(folder / "new.csv", seed=1)
    write_pets(folder / "bare.csv", seed=1, label=False)
    write_svm(folder / "two.svm")
    write_svm(folder / "more.svm", seed=1)
    (folder / "price.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 4},{3.5 * i + i % 4}\n" for i in range(50)))
    done_well(really(folder, "train", "pets.csv", "-o", "pets.model", "--label", "kind", "--scale", "standard"))
    done_well(really(folder, "train", "two.svm", "-o", "two.model"))
    done_well(really(folder, "train", "two.svm", "-o", "hinge.model", "--loss", "hinge", "--multiclass", "ovr"))
    done_well(really(folder, "train", "price.csv", "-o", "price.model", "--label", "y", "--loss", "squared"))
    return folder


class TestPredict:
    def test_raw_rows_through_the_recipe_to_text_labels(self, shop):
        out = done_well(really(shop, "predict", "pets.model", "bare.csv"))
        answers = [row[0] for row in csv.reader(out.splitlines())]
        model = Model.load(shop / "pets.model")
        expected = model.predict(read(shop / "new.csv", recipe=model.recipe))
        assert answers == expected.tolist()
        assert set(answers) == set(KINDS)

    def test_the_label_column_may_be_there(self, run, shop):
        assert (
            run(shop, "predict", "pets.model", "new.csv").stdout
            == run(shop, "predict", "pets.model", "bare.csv").stdout
        )

    def test_probabilities(self, run, shop):
        rows = list(
            csv.reader(done_well(run(shop, "predict", "pets.model", "bare.csv", "--probabilities")).splitlines())
        )
        assert rows[0] == ["label", "a,b", "cat", "dog"]
        p = np.array([row[1:] for row in rows[1:]], float)
        np.testing.assert_allclose(p.sum(1), 1)
        assert [rows[0][1 + k] for k in p.argmax(1)] == [row[0] for row in rows[1:]]

    def test_scores_of_two_classes(self, run, shop):
        rows = list(csv.reader(done_well(run(shop, "predict", "hinge.model", "more.svm", "--scores")).splitlines()))
        assert rows[0] == ["label", "1"]
        assert all((float(z) > 0) == (label == "1") for label, z in rows[1:])

    def test_numbers_are_whole(self, run, shop):
        assert set(done_well(run(shop, "predict", "two.model", "more.svm")).split()) == {"1", "-1"}

    def test_regression(self, run, shop):
        values = [float(x) for x in done_well(run(shop, "predict", "price.model", "price.csv")).split()]
        np.testing.assert_allclose(values, [3.5 * i + i % 4 for i in range(50)], rtol=0.1, atol=3)

    def test_to_a_file(self, run, shop, tmp_path):
        out = done_well(run(shop, "predict", "two.model", "more.svm", "-o", tmp_path / "answers"))
        assert out == ""
        assert (tmp_path / "answers").read_text() == run(shop, "predict", "two.model", "more.svm").stdout
        assert [path.name for path in tmp_path.iterdir()] == ["answers"]

    def test_a_store(self, run, shop, tmp_path):
        done_well(run(shop, "convert", "more.svm", tmp_path / "more.store"))
        out = done_well(run(shop, "predict", "two.model", tmp_path / "more.store"))
        assert out == run(shop, "predict", "two.model", "more.svm").stdout

    def test_a_store_of_another_recipe(self, run, shop, tmp_path):
        done_well(run(shop, "convert", "more.svm", tmp_path / "s", "--scale", "maxabs"))
        assert "another scaling" in one_line(run(shop, "predict", "two.model", tmp_path / "s"), 1)

    def test_features_never_seen_are_passed_over_and_counted(self, run, shop, tmp_path):
        (tmp_path / "wide.svm").write_text("1 1:2.5 7:1 9:3\n-1 1:-2.5\n")
        done = run(shop, "predict", "two.model", tmp_path / "wide.svm")
        assert done.returncode == 0
        assert done.stdout == "1\n-1\n"
        assert "2 entries of features that the model has never seen: passed over" in done.stderr

    @pytest.mark.parametrize("name", ["bare.svm", "bare"])
    def test_lines_of_text_need_no_label(self, run, shop, tmp_path, name):
        lines = (shop / "more.svm").read_text().splitlines(keepends=True)
        bare = [line.split(maxsplit=1)[1] if i % 3 else line for i, line in enumerate(lines[1:])]
        (tmp_path / name).write_text("".join([lines[0].split(maxsplit=1)[1], "# a comment\n", *bare]))
        out = done_well(run(shop, "predict", "two.model", tmp_path / name))
        assert out == run(shop, "predict", "two.model", "more.svm").stdout
        for command in (
            ("train", tmp_path / name, "-o", tmp_path / "m"),
            ("evaluate", "two.model", tmp_path / name),
            ("convert", tmp_path / name, tmp_path / "s"),
            ("predict", "two.model", tmp_path / name, "--single-label"),
        ):
            assert "has no label; pass --multilabel if rows may have none" in one_line(run(shop, *command), 1)

    def test_categories_never_seen(self, run, shop, tmp_path):
        (tmp_path / "odd.csv").write_text("size,color\n1,green\n2,red\n")
        done = run(shop, "predict", "pets.model", tmp_path / "odd.csv")
        assert len(done.stdout.splitlines()) == 2
        assert "column 'color' has 1 value" in done.stderr

    def test_a_missing_column(self, run, shop, tmp_path):
        (tmp_path / "odd.csv").write_text("size\n1\n")
        assert "no column 'color'" in one_line(run(shop, "predict", "pets.model", tmp_path / "odd.csv"), 1)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("two.model", "more.svm", "--scores", "--probabilities"), "not both"),
            (("hinge.model", "more.svm", "--probabilities"), "--probability"),
            (("price.model", "price.csv", "--scores"), "regression"),
        ],
    )
    def test_what_makes_no_sense(self, run, shop, arguments, words):
        assert words in one_line(run(shop, "predict", *arguments), 2)

    @pytest.mark.parametrize(
        ("model", "words"),
        [("nothing", "no such file"), ("two.svm", "is not a beeline model"), (".", "is a directory")],
    )
    def test_what_is_no_model(self, run, shop, model, words):
        assert words in one_line(run(shop, "predict", model, "more.svm"), 1)

    def test_rows_of_several_blocks_stream(self, run, shop, tmp_path):
        line = (shop / "more.svm").read_text()
        (tmp_path / "many.svm").write_text(line * 50)
        out = done_well(run(shop, "predict", "two.model", tmp_path / "many.svm"))
        assert out == run(shop, "predict", "two.model", "more.svm").stdout * 50


class TestEvaluate:
    def test_two_classes(self, shop):
        facts = json.loads(done_well(really(shop, "evaluate", "two.model", "more.svm", "--json")))
        model = Model.load(shop / "two.model")
        data = read(shop / "more.svm", recipe=model.recipe)
        numbers = (data.labels == 1).astype(int)
        assert facts["rows"] == 80
        assert facts["measures"]["accuracy"] == pytest.approx(np.mean(model.predict(data) == data.labels))
        assert facts["measures"]["auc"] == pytest.approx(auc(numbers == 1, model.decision_function(data)))
        assert facts["measures"]["log_loss"] == pytest.approx(log_loss(numbers, model.predict_proba(data)))
        assert facts["classes"] == ["-1", "1"]
        assert np.sum(facts["confusion"]) == 80

    def test_several_classes_of_text(self, run, shop):
        facts = json.loads(done_well(run(shop, "evaluate", "pets.model", "new.csv", "--json")))
        means = ("precision", "recall", "f1", "auc", "average_precision")
        assert set(facts["measures"]) == {"accuracy", "log_loss", *(f"{name}_macro" for name in means)}
        assert [one["name"] for one in facts["per_class"]] == ["a,b", "cat", "dog"]
        assert [one["rows"] for one in facts["per_class"]] == [30, 30, 30]
        assert facts["measures"]["accuracy"] == pytest.approx(np.trace(facts["confusion"]) / 90)
        assert facts["measures"]["accuracy"] > 0.6

    def test_regression(self, run, shop):
        facts = json.loads(done_well(run(shop, "evaluate", "price.model", "price.csv", "--json")))
        assert set(facts["measures"]) == {"rmse", "mae", "r2"}
        assert facts["measures"]["r2"] > 0.99
        assert facts["confusion"] is None

    def test_for_people(self, shop):
        out = done_well(really(shop, "evaluate", "pets.model", "new.csv"))
        assert out.startswith("pets.model on 90 rows\naccuracy")
        assert "as dog" in out

    def test_a_label_never_seen(self, run, shop, tmp_path):
        (tmp_path / "odd.svm").write_text("1 1:1\n7 1:1\n")
        message = one_line(run(shop, "evaluate", "two.model", tmp_path / "odd.svm"), 1)
        assert "row 1 has the label 7" in message
        assert "knows -1" in message

    def test_no_labels(self, run, shop):
        assert "by --label" in one_line(run(shop, "evaluate", "pets.model", "bare.csv"), 1)

    def test_weights_count(self, run, shop, tmp_path):
        (tmp_path / "w.csv").write_text("a,b,y,w\n1,0,3.5,1\n2,0,100,0\n")
        done_well(run(shop, "convert", "price.csv", tmp_path / "p.store", "--label", "y"))
        facts = json.loads(
            done_well(run(shop, "evaluate", "price.model", tmp_path / "w.csv", "--weight", "w", "--json"))
        )
        assert facts["measures"]["mae"] < 10

    def test_undefined_measures_are_null(self, run, shop, tmp_path):
        (tmp_path / "one.svm").write_text("1 1:1\n")
        facts = json.loads(done_well(run(shop, "evaluate", "two.model", tmp_path / "one.svm", "--json")))
        assert facts["measures"]["auc"] is None
        assert "undefined" in done_well(run(shop, "evaluate", "two.model", tmp_path / "one.svm"))


class TestInspect:
    def test_for_people(self, shop):
        out = done_well(really(shop, "inspect", "pets.model", "--top", "1"))
        assert "predicts       3 classes (softmax)" in out
        assert "scaling        standard" in out
        assert "above the optimum" in out
        assert out.count("largest weights for") == 3
        assert "size" in out

    def test_json(self, run, shop):
        facts = json.loads(done_well(run(shop, "inspect", "two.model", "--json", "--top", "2")))
        model = Model.load(shop / "two.model")
        assert facts["bytes"] == (shop / "two.model").stat().st_size
        assert facts["report"] == model.report.to_json()
        (top,) = facts["top"]
        assert top["output"] == "1"
        assert len(top["features"]) == 2
        largest = int(np.abs(model.weights[:, 0]).argmax())
        assert top["features"][0] == {"feature": str(largest + 1), "weight": model.weights[largest, 0]}

    def test_regression(self, run, shop):
        assert "predicts       a number" in done_well(run(shop, "inspect", "price.model"))

    def test_a_damaged_model(self, run, shop, tmp_path):
        content = bytearray((shop / "two.model").read_bytes())
        content[-1] ^= 1
        (tmp_path / "m").write_bytes(content)
        assert "truncated or altered" in one_line(run(shop, "inspect", tmp_path / "m"), 1)


class TestExport:
    def test_liblinear_and_back(self, shop, tmp_path):
        done_well(really(shop, "export", "two.model", tmp_path / "two.txt", "--to", "liblinear"))
        expected = really(shop, "predict", "two.model", "more.svm").stdout
        assert done_well(really(shop, "predict", tmp_path / "two.txt", "more.svm")) == expected
        assert "LIBLINEAR model" in done_well(really(shop, "inspect", tmp_path / "two.txt"))
        done_well(really(shop, "export", tmp_path / "two.txt", tmp_path / "again", "--to", "beeline"))
        assert done_well(really(shop, "predict", tmp_path / "again", "more.svm")) == expected

    def test_the_ending_says_the_format(self, run, shop, tmp_path):
        for name in ("two.txt", "two.liblinear", "two.model"):
            done_well(run(shop, "export", "two.model", tmp_path / name))
            assert (tmp_path / name).read_text().startswith("solver_type ")
        for name in ("again.model", "again.beeline", "again.safetensors"):
            done_well(run(shop, "export", tmp_path / "two.txt", tmp_path / name))
            assert Model.load(tmp_path / name).n_features == 5
        done_well(run(shop, "export", "two.model", tmp_path / "two.ONNX"))
        assert onnxruntime.InferenceSession(tmp_path / "two.ONNX").get_inputs()[0].name == "X"
        done_well(run(shop, "export", "two.model", tmp_path / "odd.onnx", "--to", "liblinear"))
        assert (tmp_path / "odd.onnx").read_text().startswith("solver_type ")
        message = one_line(run(shop, "export", "two.model", tmp_path / "two.bin"), 2)
        assert "does not say by its ending what it is to be" in message
        assert "name the format by --to" in message
        assert not (tmp_path / "two.bin").exists()

    def test_liblinear_keeps_the_names_of_columns(self, run, shop, tmp_path):
        done_well(run(shop, "export", "price.model", tmp_path / "p.txt"))
        assert Model.from_liblinear(tmp_path / "p.txt").feature_names == ["a", "b"]
        assert json.loads(done_well(run(shop, "inspect", tmp_path / "p.txt", "--json")))["top"][0]["features"][0][
            "feature"
        ] in ("a", "b")

    def test_onnx_takes_columns_as_they_are(self, run, shop, tmp_path):
        done_well(run(shop, "export", "pets.model", tmp_path / "p.onnx", "--precision", "float64"))
        session = onnxruntime.InferenceSession(tmp_path / "p.onnx", providers=["CPUExecutionProvider"])
        model = Model.load(shop / "pets.model")
        rows = list(csv.DictReader((shop / "new.csv").read_text().splitlines()))
        size, color = np.array([[float(r["size"])] for r in rows]), np.array([[r["color"]] for r in rows], object)
        label, *_ = session.run(None, {"size": size, "color": color})
        assert label.tolist() == model.predict(read(shop / "new.csv", recipe=model.recipe)).tolist()

    def test_text_labels_cannot_go_to_liblinear(self, run, shop, tmp_path):
        message = one_line(run(shop, "export", "pets.model", tmp_path / "x", "--to", "liblinear"), 1)
        assert "whole numbers" in message

    def test_precision_is_for_onnx(self, run, shop, tmp_path):
        arguments = ("two.model", tmp_path / "x", "--to", "liblinear", "--precision", "float32")
        assert "--precision has no meaning" in one_line(run(shop, "export", *arguments), 2)


def test_nothing_is_written_over_what_is_read(beeline, tmp_path):
    text, model = tmp_path / "a.svm", tmp_path / "a.model"
    text.write_text("1 1:0.5 2:1\n-1 1:-0.5\n1 1:0.7\n-1 2:-1\n")
    assert beeline("train", text, "-o", model, "--loss", "hinge").returncode == 0
    before = text.read_bytes(), model.read_bytes()
    for command in (
        ("predict", model, text, "-o", model),
        ("predict", model, text, "-o", text),
        ("export", model, model, "--to", "liblinear"),
    ):
        done = beeline(*command)
        assert done.returncode == 2
        assert "is read by this command" in done.stderr
    assert (text.read_bytes(), model.read_bytes()) == before


def test_a_pipe_and_a_link_are_written_to_as_they_are(beeline, tmp_path):
    text, model = tmp_path / "a.svm", tmp_path / "a.model"
    text.write_text("1 1:0.5 2:1\n-1 1:-0.5\n1 1:0.7\n-1 2:-1\n")
    assert beeline("train", text, "-o", model, "--loss", "hinge").returncode == 0
    real, link, pipe = tmp_path / "real.txt", tmp_path / "link.txt", tmp_path / "pipe"
    real.write_text("old")
    link.symlink_to(real)
    assert beeline("predict", model, text, "-o", link).returncode == 0
    assert link.is_symlink()
    assert real.read_text().split() == ["1", "-1", "1", "-1"]
    os.mkfifo(pipe)
    read = threading.Thread(target=lambda: got.append(pipe.read_text()))
    got = []
    read.start()
    assert beeline("predict", model, text, "-o", pipe).returncode == 0
    read.join(10)
    assert pipe.is_fifo()
    assert got[0].split() == ["1", "-1", "1", "-1"]


def test_a_form_of_several_classes_implies_its_loss(beeline, tmp_path):
    text = tmp_path / "a.svm"
    text.write_text("0 1:1\n1 2:1\n2 3:1\n" * 5)
    done = beeline("train", text, "-o", tmp_path / "a.model", "--multiclass", "crammer_singer", "--json")
    facts = json.loads(done.stdout)
    assert (facts["loss"], facts["settings"]["multiclass"]) == ("hinge", "crammer_singer")


def test_a_table_must_have_the_features_of_a_model_without_a_recipe(beeline, tmp_path):
    text, model, table = tmp_path / "a.svm", tmp_path / "a.txt", tmp_path / "new.csv"
    text.write_text("1 1:0.5 2:1\n-1 1:-0.5\n1 1:0.7\n-1 2:-1\n")
    assert beeline("train", text, "-o", tmp_path / "a.model", "--loss", "hinge").returncode == 0
    assert beeline("export", tmp_path / "a.model", model, "--to", "liblinear").returncode == 0
    table.write_text("y,a,b\n-1,0.5,1\n1,-0.5,0\n")
    done = beeline("predict", model, table)
    assert done.returncode == 2
    assert "the table has 3 features and the model 2" in done.stderr
    assert beeline("predict", model, table, "--label", "y").stdout.split() == ["1", "-1"]
