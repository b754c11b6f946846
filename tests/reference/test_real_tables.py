"""Real tables, against pandas; skipped where the data are not there."""

import gzip

import numpy as np
import pandas as pd
import pytest

from beeline.data.files.finding import find_files
from beeline.data.options import ReadOptions
from beeline.data.tables.reader import TableReader


def read(path, **options):
    reader = TableReader(find_files(path), ReadOptions(format="csv", **options))
    return reader, reader.read()


@pytest.mark.parametrize("colour", ["red", "white"])
def test_wine(shared_data, colour):
    path = shared_data("wine") / f"winequality-{colour}.csv"
    _, data = read(path, header=False, label="f12")
    expected = pd.read_csv(path, header=None).to_numpy()
    np.testing.assert_array_equal(data.block.to_dense(), expected[:, :11])
    np.testing.assert_array_equal(data.labels, expected[:, 11])


@pytest.fixture(scope="module")
def kdd(shared_data):
    path = shared_data("kdd99") / "kddcup.data_10_percent.gz"
    _, data = read(path, header=False, label="f42")
    return data, pd.read_csv(path, header=None)


@pytest.mark.slow
def test_kdd99_has_text_columns_and_no_header(kdd):
    data, frame = kdd
    assert data.shape == (494_021, 118)
    np.testing.assert_array_equal(np.array(data.recipe.label_categories)[data.labels.astype(int)], frame[41])
    texts, at = {1, 2, 3}, 0
    sums = np.asarray(data.X.sum(axis=0))
    for column in data.recipe.columns:
        k = int(column.name[1:]) - 1
        if k in texts:
            assert column.categories == tuple(sorted(frame[k].unique()))
            counts = frame[k].value_counts()
            np.testing.assert_array_equal(sums[at : at + len(counts)], [counts[c] for c in column.categories])
        else:
            np.testing.assert_array_equal(data.X[:, [at]].toarray().ravel(), frame[k])
        at += column.n_features


@pytest.mark.slow
def test_kdd99_test_rows_by_the_training_recipe(kdd, shared_data):
    data, _ = kdd
    path = shared_data("kdd99") / "corrected.gz"
    reader, test = read(path, header=False, recipe=data.recipe, ignore=("f42",))
    frame = pd.read_csv(path, header=None)
    assert test.shape == (len(frame), data.n_features)
    services = next(column for column in data.recipe.columns if column.name == "f3").categories
    assert reader.unknown_categories == {"f3": int((~frame[2].isin(services)).sum())}


@pytest.mark.slow
def test_covtype_at_once_and_in_pieces(shared_data, tmp_path):
    path = tmp_path / "covtype.csv"
    with gzip.open(shared_data("covtype") / "covtype.csv.gz") as file:
        path.write_bytes(file.read())
    _, data = read(path, label="Cover_Type")
    expected = pd.read_csv(path).to_numpy(np.float64)
    np.testing.assert_array_equal(data.block.to_dense(), expected[:, :54])
    np.testing.assert_array_equal(data.labels, expected[:, 54])
    reader = TableReader(find_files(path), ReadOptions(label="Cover_Type"))
    reader.prepare(8 << 20)
    row = 0
    for block in reader.blocks(8 << 20):
        np.testing.assert_array_equal(block.to_dense(), expected[row : row + block.n_rows, :54])
        row += block.n_rows
    assert row == 581_012
