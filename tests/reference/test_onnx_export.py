"""ONNX graphs, run by onnxruntime."""

from __future__ import annotations

import sys

import numpy as np
import onnxruntime
import pytest

from beeline.data.recipe.recipe import Recipe
from beeline.data.recipe.scaling import Scaling
from beeline.exceptions import MissingDependencyError, ModelError, ParameterError
from beeline.model import Model

RNG = np.random.default_rng(0)
X = RNG.standard_normal((50, 6))
X[7] = 0
PLATT = {"link": "platt", "platt": np.array([[-1.5, 0.1], [-0.5, 0.0], [-2.0, -0.3]])}


def model(classes, **others):
    outputs = 1 if classes is None or len(classes) == 2 else len(classes)
    return Model(
        weights=RNG.standard_normal((6, outputs)),
        intercepts=RNG.standard_normal(outputs),
        classes=None if classes is None else np.array(classes),
        loss="squared" if classes is None else "logistic",
        **others,
    )


def run(path, rows):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": rows}), strict=True))


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(
    "ours",
    [
        model((-1, 1), link="logistic"),
        model((0.5, 1.5), link="logistic"),
        model((False, True), link="logistic"),
        model(("no", "yes")),
        model((0, 1), link="platt", platt=PLATT["platt"][:1]),
        model((1, 2, 3), link="softmax"),
        model(("a", "b", "ç"), link="logistic"),
        model((1, 2, 3), **PLATT),
        model(None),
    ],
    ids=str,
)
def test_gives_the_same_answers(tmp_path, ours, precision):
    ours.to_onnx(tmp_path / "m.onnx", precision)
    rows = X.astype(precision)
    theirs = run(tmp_path / "m.onnx", rows)
    close = {"rtol": 1e-4, "atol": 1e-5} if precision == "float32" else {"rtol": 1e-12, "atol": 1e-12}
    if ours.classes is None:
        np.testing.assert_allclose(theirs["value"], ours.predict(rows), **close)
        return
    assert theirs["label"].tolist() == ours.predict(rows).tolist()
    np.testing.assert_allclose(theirs["scores"].reshape(50, -1), ours.decision_function(rows).reshape(50, -1), **close)
    assert ("probabilities" in theirs) == ours.has_probabilities
    if ours.has_probabilities:
        np.testing.assert_allclose(theirs["probabilities"], ours.predict_proba(rows), **close)


@pytest.mark.parametrize("kind", ["standard", "maxabs", "unit-norm"])
def test_takes_rows_as_they_were_before_scaling(tmp_path, kind):
    shift = RNG.standard_normal(6) if kind == "standard" else None
    scaling = Scaling(kind, shift, None if kind == "unit-norm" else RNG.random(6) + 0.5)
    ours = model((1, 2, 3), link="softmax", recipe=Recipe(6, scaling=scaling))
    ours.to_onnx(tmp_path / "m.onnx", "float64")
    if kind == "unit-norm":
        scaled = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    else:
        scaled = (X - (0 if shift is None else shift)) * scaling.factor
    theirs = run(tmp_path / "m.onnx", X)
    np.testing.assert_allclose(theirs["probabilities"], ours.predict_proba(scaled), rtol=1e-9)


def test_hopeless_rows_give_even_odds(tmp_path):
    ours = Model(weights=np.full((6, 3), -1e4), intercepts=np.zeros(3), classes=np.arange(3), loss="x", link="logistic")
    ours.to_onnx(tmp_path / "m.onnx")
    theirs = run(tmp_path / "m.onnx", np.ones((1, 6), np.float32))
    np.testing.assert_allclose(theirs["probabilities"], np.full((1, 3), 1 / 3), rtol=1e-6)


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "beeline-ml\[onnx\]"'):
        model(None).to_onnx(tmp_path / "m.onnx")


def test_what_cannot_be(tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match="precision must be one of"):
        model(None).to_onnx(tmp_path / "m.onnx", "float16")
    monkeypatch.setattr("beeline.model.onnx_graph._MOST_BYTES", 10)
    with pytest.raises(ModelError, match="2 GB"):
        model(None).to_onnx(tmp_path / "m.onnx")
