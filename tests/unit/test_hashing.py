"""Features of LIBSVM text by a hash of their numbers."""

from __future__ import annotations

import numpy as np
import pytest

import beeline
from beeline import Model, Recipe
from beeline.data.recipe.hashing import hashed, mixed
from beeline.exceptions import DataError, ModelError, ParameterError

LINES = "1 3:1 1234567890123:2\n-1 0:1 77:-3\n1 3:5 99999:1\n-1 77:1\n"


@pytest.fixture
def rows(tmp_path):
    (tmp_path / "rows.svm").write_text(LINES)
    return tmp_path / "rows.svm"


def places(numbers, bits):
    return (mixed(np.array(numbers, np.uint64)) & np.uint64((1 << bits) - 1)).astype(int)


def test_rows_are_the_same_however_they_are_read(rows, tmp_path):
    data = beeline.read(rows, hash=10)
    assert data.shape == (4, 1024)
    X = data.X.toarray()
    assert X[0, places([3, 1234567890123], 10)].tolist() == [1, 2]
    assert X[1, places([0, 77], 10)].tolist() == [1, -3]
    assert data.recipe.hash_bits == 10
    again = beeline.read(rows, recipe=Recipe.from_json(data.recipe.to_json()))
    np.testing.assert_array_equal(again.X.toarray(), X)
    store = beeline.convert(rows, tmp_path / "s", hash=10)
    np.testing.assert_array_equal(store.rows(0, 4).to_dense(), X)
    assert beeline.open_store(tmp_path / "s").recipe == data.recipe
    dense = beeline.read(rows, hash=10, layout="dense")
    np.testing.assert_array_equal(dense.X, X)


def test_what_falls_together_is_summed():
    block = beeline.from_arrays(np.arange(1.0, 61.0).reshape(3, 20)).block
    indptr, indices = np.arange(4) * 20, np.tile(np.arange(20, dtype=np.int32), 3)
    sparse = type(block)(block.values.ravel(), 20, indptr, indices)
    small = hashed(sparse, 2)
    expected = np.zeros((3, 4))
    for j, place in enumerate(places(np.arange(20), 2)):
        expected[:, place] += block.values[:, j]
    np.testing.assert_allclose(small.to_dense(), expected)


def test_a_model_hashes_as_it_was_trained(rows, tmp_path):
    model = beeline.fit_stream([rows] * 5, hash=12)
    model.save(tmp_path / "m")
    model = Model.load(tmp_path / "m")
    assert (model.n_features, model.recipe.hash_bits) == (4096, 12)
    assert beeline.fit_stream(rows, start=model).n_features == 4096
    assert model.predict(beeline.read(rows, recipe=model.recipe)).tolist() == [1, -1, 1, -1]
    with pytest.raises(DataError, match="another"):
        model.predict(beeline.read(rows, hash=11))
    with pytest.raises(ModelError, match="hashes"):
        model.to_liblinear(tmp_path / "m.txt")
    with pytest.raises(ParameterError, match="hash=11 contradicts the recipe"):
        beeline.fit_stream(rows, start=model, hash=11)
    assert model.feature_name(7) == "hash 7"


def test_what_is_refused(rows, tmp_path):
    for options in ({"hash": 0}, {"hash": 31}):
        with pytest.raises(ParameterError, match="from 1 to 30"):
            beeline.read(rows, **options)
    with pytest.raises(ParameterError, match="n_features has no meaning with hash"):
        beeline.read(rows, hash=5, n_features=9)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ParameterError, match="hash has no meaning for tables"):
        beeline.read(tmp_path / "t.csv", hash=5)
    plain = Recipe(n_features=8).to_json()
    assert "hash_bits" not in plain
    assert plain["version"] == 1
    for wrong in ({"hash_bits": 4, "version": 2}, {"hash_bits": 3}, {"version": 2}, {"hash_bits": "3", "version": 2}):
        with pytest.raises(DataError):
            Recipe.from_json(plain | wrong)
