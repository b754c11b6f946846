"""Where sources, readers and stores meet."""

from __future__ import annotations

import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import beeline
from beeline.exceptions import DataError, FormatError, ParameterError, StoreError

X = np.array([[0.0, 2.0], [4.0, 0.0], [1.0, 3.0], [2.0, 8.0]])


@pytest.fixture
def store(tmp_path):
    return beeline.convert(beeline.from_arrays(X, np.arange(4.0)), tmp_path / "rows.store")


def test_arrays_frames_matrices_and_data_sets_become_stores(tmp_path):
    sources = [X, sp.csr_array(X), pd.DataFrame(X, columns=["a", "b"]), beeline.from_arrays(X)]
    for k, source in enumerate(sources):
        made = beeline.convert(source, tmp_path / f"{k}.store")
        np.testing.assert_array_equal(made.rows(0, 4).to_dense(), X)
    assert made.recipe.n_features == 2


def test_a_store_is_a_source(store, tmp_path):
    read = beeline.read(store.path)
    np.testing.assert_array_equal(read.X, X)
    np.testing.assert_array_equal(read.labels, np.arange(4))
    scaled = beeline.convert(store.path, tmp_path / "scaled.store", scale="maxabs")
    np.testing.assert_array_equal(scaled.rows(0, 4).to_dense(), X / [4, 8])
    np.testing.assert_array_equal(beeline.read(store).X, X)


def test_scaling_is_learned_and_not_twice(tmp_path):
    scaled = beeline.read(X, scale="minmax")
    np.testing.assert_array_equal(scaled.X, X / [4, 8])
    assert X[1, 0] == 4, "the caller's array was changed"
    assert scaled.recipe.scaling.kind == "minmax"
    with pytest.raises(ParameterError, match="already scaled"):
        beeline.convert(scaled, tmp_path / "twice.store", scale="standard")


def test_indicators_stay_as_they_are_when_a_store_is_scaled(tmp_path):
    frame = pd.DataFrame({"size": [2.0, 4.0], "color": ["red", "blue"]})
    plain = beeline.convert(frame, tmp_path / "plain.store")
    scaled = beeline.convert(plain, tmp_path / "scaled.store", scale="standard")
    np.testing.assert_array_equal(scaled.rows(0, 2).to_dense(), [[-1, 0, 1], [1, 1, 0]])


def test_options_without_a_meaning_are_refused(store, tmp_path):
    with pytest.raises(ParameterError, match="label has no meaning for"):
        beeline.read(X, label="y")
    with pytest.raises(ParameterError, match="dtype has no meaning for"):
        beeline.read(store.path, dtype="float32")
    with pytest.raises(ParameterError, match="seed has no meaning without shuffle"):
        beeline.convert(X, tmp_path / "x.store", seed=3)


def test_shuffling_keeps_the_rows_and_depends_on_the_seed_alone(tmp_path):
    many = np.arange(2000.0).reshape(-1, 1)
    orders = [
        beeline.convert(many, tmp_path / f"{k}.store", shuffle=True, seed=seed, memory=memory).rows(0, 2000).to_dense()
        for k, (seed, memory) in enumerate([(1, "4K"), (1, "1G"), (2, "1G")])
    ]
    np.testing.assert_array_equal(np.sort(orders[0], axis=0), many)
    np.testing.assert_array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], orders[2])
    assert not np.array_equal(orders[0], many)


def test_a_store_without_its_manifest_is_not_a_table(store):
    (store.path / "manifest.json").unlink()
    with pytest.raises(StoreError, match=r"lost its manifest\.json"):
        beeline.read(store.path)
    with pytest.raises(StoreError, match=r"lost its manifest\.json"):
        beeline.read(store.path / "part-00000.arrow")


def test_files_of_several_formats_are_named(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.svm").write_text("1 1:2\n")
    with pytest.raises(DataError, match=r"a\.csv is csv but .*b\.svm is libsvm"):
        beeline.read(tmp_path)


def test_a_delimiter_that_separates_nothing_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(FormatError, match="';' separates nothing in the first line but ',' does"):
        beeline.read(tmp_path / "a.csv", delimiter=";")


def test_a_zip_archive_is_not_an_npz_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "text.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(FormatError, match="holds no NumPy array"):
        beeline.read(tmp_path / "text.zip")
