"""Training on rows that come once: bits, classes and features that appear later, weights, going on."""

from __future__ import annotations

import json
import math
import sys
import time
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file

import beeline
from beeline import Model
from beeline.data.files.tensors import checksum, read_tensors, write_tensors
from beeline.data.streaming import LabelledRows
from beeline.exceptions import CorruptModelError, DataError, LabelError, ModelError, ModelWarning, ParameterError
from beeline.fitting.online import Online
from beeline.fitting.online_settings import online_settings
from beeline.fitting.stream import _buffers

RNG = np.random.default_rng(0)
N = 6000
X = RNG.standard_normal((N, 6)) * [1, 1, 100, 0.01, 1, 1] + [0, 3, 0, 0, 0, 0]
Z = X / [1, 1, 100, 0.01, 1, 1]
Y2 = (Z[:, 0] + Z[:, 2] - Z[:, 1] + 3 + 0.3 * RNG.standard_normal(N) > 0).astype(int)
Y4 = np.argmax(Z @ RNG.standard_normal((6, 4)) + 0.3 * RNG.standard_normal((N, 4)), axis=1)
NAMES = np.array(["birch", "ash", "oak", "elm"])


def batches(y=Y2, rows=X, size=500, weights=None):
    for start in range(0, N, size):
        some = slice(start, start + size)
        yield (rows[some], y[some]) if weights is None else (rows[some], y[some], weights[some])


def equal(one, other):
    """Whether models and their states have the same bits."""
    same = np.array_equal(one.weights, other.weights) and np.array_equal(one.intercepts, other.intercepts)
    return same and repr(one.state) == repr(other.state)


def accuracy(model, y=Y2):
    return np.mean(model.predict(X) == y)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge", "modified_huber", "crammer_singer"])
def test_one_pass_comes_near_the_optimum(loss):
    two, four = beeline.fit_stream(batches(), loss=loss), beeline.fit_stream(batches(NAMES[Y4]), loss=loss)
    best = beeline.LogisticRegression(C=1e4)
    assert accuracy(two) > best.fit(X, Y2).score(X, Y2) - 0.01
    assert accuracy(four, NAMES[Y4]) > best.fit(X, Y4).score(X, Y4) - 0.02
    assert four.classes.tolist() == ["ash", "birch", "elm", "oak"]
    assert "6,000 rows without a certificate" in two.report.sentence
    assert (two.report.gap, two.report.objective, two.report.n_rows) == (None, None, N)


def test_numbers():
    y = Z @ np.arange(6) + 5
    model = beeline.fit_stream(batches(y), loss="squared")
    assert beeline.metrics.r2(y, model.predict(X)) > 0.999
    assert math.isnan(Online.of_model(model).trace[0].error)
    with pytest.raises(LabelError, match="needs numbers"):
        beeline.fit_stream(batches(NAMES[Y4]), loss="squared")
    with pytest.raises(LabelError, match=r"row 7 has the label 0.5, which names no class"):
        beeline.fit_stream(batches(np.where(np.arange(N) == 7, 0.5, 1)))


def test_the_same_bits_however_rows_are_read(tmp_path, monkeypatch):
    path = tmp_path / "rows.svm"
    dump_svmlight_file(X, Y4, str(path), zero_based=False)
    whole = beeline.fit_stream(path, memory="1M")
    assert equal(whole, beeline.fit_stream(path, memory="1M"))
    with path.open("rb") as file:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=file))
        piped = beeline.fit_stream("-", memory="1M")
    assert equal(whole, piped)
    store = beeline.convert(path, tmp_path / "rows.store")
    assert equal(whole, beeline.fit_stream(tmp_path / "rows.store", memory="1M")), store
    csr = scipy.sparse.csr_array(X)
    for size in (7, 1000):
        assert equal(whole, beeline.fit_stream(batches(Y4.astype(float), csr, size), memory="1M"))
    assert not equal(whole, beeline.fit_stream(path, memory="1M", seed=1))


@pytest.mark.parametrize("sizes", [[1] * 9, [9], [2, 5, 2], [4, 5]])
def test_buffers_end_where_the_rows_say(sizes):
    rows = beeline.from_arrays(np.arange(9.0).reshape(9, 1)).block  # 60 bytes each, as they count
    ends = np.cumsum([0, *sizes])
    parts = [LabelledRows(rows.rows(a, b), np.arange(a, b)) for a, b in pairwise(ends)]
    assert [block.n_rows for block, _ in _buffers(iter(parts), 4 * 60 + 1)] == [4, 4, 1]
    assert [block.n_rows for block, _ in _buffers(iter(parts), 1)] == [1] * 9


def test_going_on_from_a_file_gives_the_same_bits(tmp_path):
    parts = [tmp_path / f"{k}.svm" for k in range(3)]
    for k, path in enumerate(parts):
        some = slice(2000 * k, 2000 * (k + 1))
        width = 4 + k  # features, and with them classes, that appear later
        dump_svmlight_file(X[some, :width], np.minimum(Y4[some], k + 1), str(path), zero_based=False)
    whole = beeline.fit_stream(parts, class_weight="balanced", loss="hinge", regularizer="elastic_net", alpha=1e-4)
    beeline.fit_stream(parts[0], class_weight="balanced", loss="hinge", regularizer="elastic_net", alpha=1e-4).save(
        tmp_path / "model"
    )
    for path in parts[1:]:
        beeline.fit_stream(path, start=tmp_path / "model").save(tmp_path / "model")
    assert equal(whole, Model.load(tmp_path / "model"))
    assert whole.weights.shape == (6, 4)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "softmax"])
def test_classes_that_come_later(loss):
    order = np.argsort(Y4 >= 2, kind="stable")
    late = beeline.fit_stream(batches(NAMES[Y4][order], X[order]), loss=loss)
    assert late.classes.tolist() == ["ash", "birch", "elm", "oak"]
    again = beeline.fit_stream(batches(NAMES[Y4]), start=late)
    assert accuracy(again, NAMES[Y4]) > accuracy(beeline.fit_stream(batches(NAMES[Y4]), loss=loss), NAMES[Y4]) - 0.01
    with pytest.raises(LabelError, match="only one class so far, oak"):
        beeline.fit_stream(iter([(X, ["oak"] * N)]), loss=loss)
    with pytest.raises(LabelError, match="different types"):
        beeline.fit_stream(iter([(X, Y2), (X, NAMES[Y4])]), loss=loss)


def test_a_second_class_that_is_the_first_in_order():
    swapped = beeline.fit_stream(batches(np.where(Y2[0] == Y2, "z", "a")))
    plain = beeline.fit_stream(batches(np.where(Y2[0] == Y2, "a", "z")))
    np.testing.assert_array_equal(swapped.weights, -plain.weights)


def test_features_that_come_later():
    y = np.where(Y2, "yes", "no")
    rows = [(scipy.sparse.csr_array(X[:3000, :4]), y[:3000]), (scipy.sparse.csr_array(X[3000:]), y[3000:])]
    model = beeline.fit_stream(iter(rows))
    assert model.n_features == 6
    assert np.all(model.weights != 0)
    assert accuracy(model, y) > 0.9


def test_weights():
    light = np.where(np.arange(N) % 2, 1.0, 0.0)
    y = np.where(light > 0, Y2, 1 - Y2)
    assert accuracy(beeline.fit_stream(batches(y, weights=light))) > 0.93  # rows that weigh nothing are absent
    one = beeline.fit_stream(batches(weights=np.ones(N)))
    four = beeline.fit_stream(batches(weights=np.full(N, 4.0)))
    np.testing.assert_allclose(one.weights, four.weights, rtol=1e-9)
    assert np.array_equal(one.weights, beeline.fit_stream(batches()).weights)


def test_balanced_weights_are_those_of_the_rows_so_far():
    rare = np.flatnonzero((Y2 == 0) | (np.arange(N) % 40 == 0))
    y = Y2[rare]

    def share(class_weight):
        rows = iter([(X[rare][k : k + 100], y[k : k + 100]) for k in range(0, len(y), 100)])
        return np.mean(beeline.fit_stream(rows, class_weight=class_weight).predict(X)[Y2 == 1])

    assert share("balanced") > share(None) + 0.05
    assert share({0: 1.0, 1: 20.0}) > share(None) + 0.05
    online = Online(online_settings({"class_weight": "balanced"}))
    labels = online.number(np.array([5, 5, 5, 9]))
    np.testing.assert_allclose(online._costs(beeline.from_arrays(X[:4]).block, labels), [2 / 3, 2 / 3, 2 / 3, 2])
    online.rows = 4
    labels = online.number(np.array([9, 9]))
    np.testing.assert_allclose(online._costs(beeline.from_arrays(X[:2]).block, labels), [1, 1])


def test_what_stops_it():
    def slow():
        for batch in batches(size=100):
            yield batch
            time.sleep(0.02)

    model = beeline.fit_stream(slow(), time_limit=0.1, memory=8 * 6000)
    assert model.report.status == "time"
    assert model.report.n_rows < N
    seen = []
    model = beeline.fit_stream(batches(), memory=8 * 120_000, callback=lambda step: seen.append(step) or len(seen) == 2)
    assert model.report.status == "callback"
    assert [step.rows for step in seen] == [model.report.n_rows // 2, model.report.n_rows]
    assert seen[1].error < seen[0].error

    def interrupted():
        yield X, Y2
        raise KeyboardInterrupt

    assert beeline.fit_stream(interrupted(), memory=8 * 120_000).report.status == "interrupted"


def test_a_pipe_that_is_slow_does_not_hold_the_time_limit_up(tmp_path, monkeypatch):
    class Slow:
        def __init__(self):
            self.text = b"1 1:1\n-1 1:-1\n" * 100

        def read(self, size):
            if not self.text:
                time.sleep(5)
            piece, self.text = self.text[:size], self.text[size:]
            return piece

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Slow()))
    clock = time.perf_counter()
    with pytest.raises(DataError, match="no rows"):
        beeline.fit_stream("-", time_limit=0.2, format="libsvm", zero_based=False)
    assert time.perf_counter() - clock < 4


def test_a_model_of_another_solver_goes_on_from_its_weights():
    for y, loss in ((Y2, "logistic"), (Y4, "logistic"), (Y4, "hinge"), (Y2, "softmax")):
        first = beeline.LinearModel(loss=loss, C=1e4).fit(X, y)
        again = beeline.fit_stream(iter([(X[:50], y[:50])]), start=first.model_)
        assert again.report.n_rows == N + 50
        assert accuracy(again, y) > first.score(X, y) - 0.03
        assert again.settings["alpha"] == pytest.approx(1e-4 / N)
    with pytest.raises(ModelError, match="may not be negative"):
        beeline.fit_stream(batches(), start=beeline.LinearModel(nonnegative=True).fit(X, Y2).model_)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"C": 1.0}, "C has no meaning for rows that come once"),
        ({"alpha": "auto"}, "come more than once"),
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"solver": "newton"}, "'sgd'"),
        ({"solver": ("sgd", {"early_stopping": False})}, "'early_stopping' has no meaning"),
        ({"loss": "multilabel_logistic"}, "no form for rows that come once"),
        ({"loss": "squared", "class_weight": "balanced"}, "class_weight has no meaning for a regression"),
        ({"class_weight": {1: -1.0}}, "class_weight of 1 must be finite and not negative"),
        ({"time_limit": 0}, "time_limit must be positive"),
        ({"label": "y"}, "label has no meaning for batches of arrays"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        beeline.fit_stream(batches(), **options)


def test_other_refusals():
    model = beeline.fit_stream(batches())
    with pytest.raises(ParameterError, match="loss is what the model says"):
        beeline.fit_stream(batches(), start=model, loss="hinge")
    with pytest.raises(DataError, match="no rows"):
        beeline.fit_stream(iter([]))
    with pytest.raises(DataError, match="so large"):
        beeline.fit_stream(iter([(X * 1e200, Y2)]))
    huge = scipy.sparse.csr_array(([1.0], ([0], [2**40])), (1, 2**40 + 1))
    with pytest.raises(DataError, match="features would take"):
        beeline.fit_stream(iter([(huge, [1])]))


def test_class_weights_of_classes_that_never_came():
    with pytest.warns(ModelWarning, match="no row had"):
        model = beeline.fit_stream(batches(), class_weight={7: 2.0})
    assert model.report.concerns == ("class_weight names classes that no row had: 7",)


def test_a_state_that_was_made_up_is_refused(tmp_path):
    model = beeline.fit_stream(batches(NAMES[Y4]))
    model.save(tmp_path / "model")
    metadata, tensors = read_tensors(tmp_path / "model")
    places = sorted(name for name in tensors if name.startswith("state.0"))
    assert places
    for name in places:
        array = tensors[name]
        if array.ndim == 1 and array.dtype.kind == "i":
            continue
        other = tensors | {name: np.zeros((*array.shape, 2), array.dtype)}
        write_tensors(tmp_path / "other", metadata | {"checksum": checksum(metadata["model"], other)}, other)
        with pytest.raises(CorruptModelError, match="state that makes no sense"):
            beeline.fit_stream(batches(NAMES[Y4]), start=tmp_path / "other")
    record = json.loads(tensors["state.json"].tobytes())
    record["outputs"]["n_features"] = 1000
    text = np.frombuffer(json.dumps(record).encode(), np.uint8)
    other = tensors | {"state.json": text}
    write_tensors(tmp_path / "other", metadata | {"checksum": checksum(metadata["model"], other)}, other)
    with pytest.raises(CorruptModelError, match="state that makes no sense"):
        beeline.fit_stream(batches(NAMES[Y4]), start=tmp_path / "other")
