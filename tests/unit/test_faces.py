"""The faces of the data layer: `read` and `convert` take every kind of source, and ignore no option."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import beeline
from beeline.data.options import ReadOptions
from beeline.exceptions import DataError, ParameterError

X = np.array([[1.0, 0.0, 3.0], [0.0, 5.0, 9.0], [2.0, 5.0, 0.0]])
Y = np.array([1.0, -1.0, 1.0])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,a,b,y\n1,1,0,1\n2,4,5,-1\n3,2,5,1\n")
    return path


def test_a_data_set_in_memory_is_given_back_as_it_is():
    data = beeline.from_arrays(X, Y)
    assert beeline.read(data) is data


def test_a_store_is_read_into_memory(tmp_path):
    store = beeline.convert(beeline.from_arrays(X, Y), tmp_path / "s")
    for source in (store, store.path, str(store.path)):
        data = beeline.read(source)
        assert isinstance(data, beeline.ArrayDataset)
        np.testing.assert_array_equal(data.X, X)
        np.testing.assert_array_equal(data.labels, Y)


@pytest.mark.parametrize("holder", [np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array, beeline.from_arrays])
def test_sources_in_memory_are_scaled_when_asked(holder, tmp_path):
    expected = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    read = beeline.read(holder(X), scale="minmax")
    store = beeline.convert(holder(X), tmp_path / "s", scale="minmax")
    for data in (read, store):
        np.testing.assert_array_equal(data.rows(0, 3).to_dense(), expected)
        assert data.recipe.scaling.kind == "minmax"


def test_a_scaled_store_is_not_scaled_twice(tmp_path):
    store = beeline.convert(X, tmp_path / "s", scale="maxabs")
    with pytest.raises(ParameterError, match="already scaled"):
        beeline.read(store, scale="maxabs")


@pytest.mark.parametrize("options", [{"label": "y"}, {"dtype": "float32"}, {"missing": "zero"}])
def test_options_that_a_data_set_cannot_honour_are_refused(options, tmp_path):
    store = beeline.convert(X, tmp_path / "s")
    for source in (beeline.from_arrays(X), store):
        with pytest.raises(ParameterError, match=f"^{next(iter(options))} has no meaning for a data set"):
            beeline.read(source, **options)


def test_a_seed_without_a_shuffle_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="seed has no meaning without shuffle"):
        beeline.convert(X, tmp_path / "s", seed=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ignore", [["id"], ("id",)])
def test_columns_may_be_a_list_or_a_tuple(ignore, table):
    data = beeline.read(table, label="y", ignore=ignore)
    assert data.feature_names == ["a", "b"]
    assert data.recipe.ignored == ("id",)
    again = beeline.read(table, recipe=data.recipe, ignore=[])
    np.testing.assert_array_equal(again.X, data.X)
    assert ReadOptions(text=ignore).text == ("id",)


def test_a_guess_that_proves_wrong_late_starts_the_store_anew(tmp_path):
    lines = ["1 1:2 3:4"] * 20_000 + ["-1 0:7"]
    (tmp_path / "t.svm").write_text("\n".join(lines))
    store = beeline.convert(tmp_path / "t.svm", tmp_path / "s", memory="64K")
    assert store.shape == (20_001, 4)
    assert store.recipe.index_base == 0
    assert store.rows(20_000, 20_001).to_dense().tolist() == [[7, 0, 0, 0]]
    store.verify()


def test_files_of_several_formats_are_refused(table, tmp_path):
    (tmp_path / "t.svm").write_text("1 1:2\n")
    with pytest.raises(DataError, match=r"t\.csv is csv but .*t\.svm is libsvm; read several formats one by one"):
        beeline.read([table, tmp_path / "t.svm"])
