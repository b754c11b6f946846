"""Rows that a program gives batch by batch."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import beeline
from beeline.exceptions import DataError, ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4))
Y = RNG.normal(size=90)
W = RNG.uniform(1, 2, size=90)


def batches(size=40, weights=True, sparse=False):
    for start in range(0, 90, size):
        rows = slice(start, start + size)
        some = scipy.sparse.csr_array(X[rows]) if sparse else X[rows]
        yield (some, Y[rows], W[rows]) if weights else (some, Y[rows])


class Iter:
    """As XGBoost's `DataIter`."""

    def __init__(self, **others):
        self.left, self.others = None, others

    def reset(self):
        self.left = list(batches())

    def next(self, input_data):
        if not self.left:
            return 0
        rows, labels, weights = self.left.pop(0)
        input_data(data=rows, label=labels, weight=weights, **self.others)
        return 1


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("size", [1, 40, 90])
def test_a_generator(tmp_path, size, sparse):
    store = beeline.convert(batches(size, sparse=sparse), tmp_path / "s")
    known = beeline.convert(beeline.from_arrays(X, Y, weights=W), tmp_path / "known")
    assert store.shape == (90, 4)
    found = np.vstack([np.asarray(block.to_scipy().todense()) for block in store.blocks()]) if sparse else None
    if found is not None:
        np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(store.labels, known.labels)
    np.testing.assert_array_equal(store.weights, known.weights)
    model = beeline.LinearModel("squared", tol=1e-9)
    np.testing.assert_allclose(model.fit(store).coef_, model.fit(X, Y, W).coef_, atol=1e-4)


def test_rows_alone_data_sets_and_what_calls_back(tmp_path):
    assert beeline.convert(iter([X[:3], X[3:]]), tmp_path / "a").labels is None
    assert beeline.convert(iter([beeline.from_arrays(X, Y)]), tmp_path / "b").n_rows == 90
    store = beeline.convert(Iter(base_margin=None), tmp_path / "c")
    np.testing.assert_array_equal(np.vstack([block.to_dense() for block in store.blocks()]), X)
    np.testing.assert_array_equal(store.labels, Y)
    np.testing.assert_array_equal(store.weights, W)
    with pytest.raises(DataError, match="'qid' cannot be kept; give data, label and weight"):
        beeline.convert(Iter(qid=[1]), tmp_path / "d")
    assert not (tmp_path / "d").exists()


def test_an_error_of_the_program_is_its_own(tmp_path):
    def broken():
        yield X, Y
        raise RuntimeError("the network is down")

    with pytest.raises(RuntimeError, match="the network is down"):
        beeline.convert(broken(), tmp_path / "s")
    assert not list(tmp_path.iterdir())


def test_many_batches_in_little_memory(tmp_path):
    """Each is asked for once; all rows are there, in another order."""
    asked = []

    def many():
        for number in range(60):
            asked.append(number)
            yield np.full((500, 4), float(number)), np.full(500, float(number % 2))

    store = beeline.convert(many(), tmp_path / "s", memory="100K", shuffle=1)
    assert store.shape == (30_000, 4)
    assert asked == list(range(60))
    assert store.labels.sum() == 15_000


def test_into_memory():
    data = beeline.read(batches())
    assert data.shape == (90, 4)
    np.testing.assert_array_equal(data.labels, Y)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ([(X, Y), (X[:, :3], Y)], "batch 1: it has 3 features, and those before have 4"),
        ([(X, Y[:5])], "batch 0: "),
        ([(X, Y, W, W)], r"batch 0: a batch is X, \(X, y\) or \(X, y, weights\), not 4 things"),
        ([(np.full((2, 2), np.nan), [1, 2])], "batch 0: "),
        (
            [(X, Y > 0), (X, ["b"] * 90)],
            "batch 1: labels must .* give each class a number, the same one in all batches",
        ),
        ([], "the source has no rows"),
    ],
)
def test_bad_batches_are_named(tmp_path, source, words):
    with pytest.raises(DataError, match=words):
        beeline.convert(iter(source), tmp_path / "s")
    assert not list(tmp_path.iterdir())


class TestNothingIsDropped:
    @pytest.mark.parametrize("more", [(Y,), (None, W)])
    def test_labels_and_weights_beside_a_data_set(self, tmp_path, more):
        batch = (beeline.from_arrays(X), *more)
        with pytest.raises(DataError, match="batch 0: a data set has its own labels and weights; give it alone"):
            beeline.convert(iter([batch]), tmp_path / "s")

    @pytest.mark.parametrize(("handed", "returned"), [(2, 1), (0, 1), (1, 0)])
    def test_batches_of_a_call_that_says_otherwise(self, tmp_path, handed, returned):
        class Odd(Iter):
            def next(self, input_data):
                for _ in range(handed):
                    input_data(data=X, label=Y)
                return returned

        with pytest.raises(DataError, match=f"it handed over {handed} and returned {returned}"):
            beeline.convert(Odd(), tmp_path / "s")


def test_options_that_need_more_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="scale has no meaning for batches that are walked once"):
        beeline.convert(batches(), tmp_path / "s", scale="minmax")
    with pytest.raises(ParameterError, match="label has no meaning for batches of arrays"):
        beeline.convert(batches(), tmp_path / "s", label="y")


def test_a_stream_of_arrow_batches(tmp_path):
    pa = pytest.importorskip("pyarrow")
    names = ["a", "b", "a", "c"] * 25
    table = pa.table({"x": np.arange(100.0), "name": names, "y": np.arange(100) % 2})
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=30))
    store = beeline.convert(stream, tmp_path / "s", label="y")
    known = beeline.convert(table, tmp_path / "known", label="y")
    assert store.feature_names == known.feature_names == ["x", "name=a", "name=b", "name=c"]
    np.testing.assert_array_equal(store.labels, known.labels)

    class Relation:
        """Whatever speaks the PyCapsule interface."""

        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    assert beeline.convert(Relation(), tmp_path / "other", label="y").n_rows == 100


@pytest.mark.parametrize(("name", "value"), [("merge", "x"), ("merge", None), ("overwrite", "no")])
def test_what_is_neither_true_nor_false(tmp_path, name, value):
    with pytest.raises(ParameterError, match=f"{name} must be True or False, not"):
        beeline.convert(batches(), tmp_path / "s", **{name: value})


def test_true_is_no_size(tmp_path):
    with pytest.raises(ParameterError, match="True is not a size"):
        beeline.convert(batches(), tmp_path / "s", memory=True)
