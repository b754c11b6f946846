"""Frames: taken without a copy where they lie by rows already."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import beeline
from beeline.data.options import ReadOptions
from beeline.data.tables.frames import from_frame, is_frame
from beeline.exceptions import DataError

X = np.arange(12, dtype=np.float64).reshape(4, 3) + 1


def shares(a, b):
    return np.shares_memory(np.asarray(a), np.asarray(b))


def test_what_is_a_frame():
    table = pa.table({"a": [1]})
    for frame in (pd.DataFrame(), pl.DataFrame(), pl.LazyFrame(), table, table.to_batches()[0], table.to_reader()):
        assert is_frame(frame)
    for other in (X, "t.csv", [1], pd.Series([1]), None):
        assert not is_frame(other)


def test_looking_for_frames_imports_nothing():
    code = "import sys; from beeline.data.tables.frames import is_frame; is_frame(1); print([m for m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"'pandas'", "'polars'", "'pyarrow'"} & set(loaded.strip("[]\n").split(", "))


def test_a_pandas_frame_of_rows_is_not_copied():
    frame = pd.DataFrame(X, columns=["a", "b", "c"], copy=False)
    data = from_frame(frame)
    assert shares(data.X, X)
    assert data.X.__array_interface__["data"][0] == X.__array_interface__["data"][0]
    assert data.feature_names == ["a", "b", "c"]


@pytest.mark.parametrize("make", [lambda: pd.DataFrame({"a": X[:, 0].copy(), "b": X[:, 1].copy()})])
def test_a_pandas_frame_of_columns_gives_the_same_rows(make):
    np.testing.assert_array_equal(from_frame(make()).X, X[:, :2])


@pytest.mark.parametrize("shape", [(1, 3), (4, 1), (1, 1)])
def test_frames_of_one_row_or_column(shape):
    values = np.arange(shape[0] * shape[1], dtype=np.float64).reshape(shape) + 1
    frame = pd.DataFrame(values, columns=list("abc")[: shape[1]], copy=False)
    np.testing.assert_array_equal(from_frame(frame).X, values)


def test_a_frame_with_a_label_column():
    frame = pd.DataFrame(X, columns=["a", "b", "y"], copy=False)
    data = from_frame(frame, ReadOptions(label="y"))
    np.testing.assert_array_equal(data.X, X[:, :2])
    np.testing.assert_array_equal(data.labels, X[:, 2])


def test_a_list_column_of_fixed_length_is_not_copied():
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 3)
    table = pa.table({"x": lists, "y": [1, 2, 3, 4]})
    data = from_frame(table, ReadOptions(label="y"))
    assert data.X.ctypes.data == lists.values.buffers()[1].address
    assert data.labels.tolist() == [1, 2, 3, 4]
    assert data.feature_names == ["x[0]", "x[1]", "x[2]"]
    part = from_frame(table.slice(1, 2), ReadOptions(label="y"))
    np.testing.assert_array_equal(part.X, X[1:3])
    assert shares(part.X, data.X)
    narrow = from_frame(table, ReadOptions(label="y", dtype="float32"))
    assert narrow.X.dtype == np.float32


def test_a_polars_array_column_is_not_copied():
    frame = pl.DataFrame({"x": pl.Series(X, dtype=pl.Array(pl.Float64, 3)), "y": [1, 2, 3, 4]})
    data = from_frame(frame, ReadOptions(label="y"))
    np.testing.assert_array_equal(data.X, X)
    assert shares(data.X, frame["x"].to_numpy(allow_copy=False))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_must_not_be_are_named_by_row_and_column(value):
    flawed = X.copy()
    flawed[2, 1] = value
    frames = [
        pd.DataFrame(flawed, columns=["a", "b", "c"], copy=False),
        pl.DataFrame(flawed, schema=["a", "b", "c"]),
        pa.table({"a": flawed[:, 0], "b": flawed[:, 1]}),
    ]
    for frame in frames:
        with pytest.raises(DataError, match=r"row 3: column 'b' (has no value|is infinite)"):
            from_frame(frame)
    assert not np.isfinite(from_frame(frames[0], ReadOptions(allow_nonfinite=True)).X[2, 1])
    np.testing.assert_array_equal(flawed[2, 1], value)


def test_missing_values_in_a_frame_of_rows_are_filled_in_a_copy():
    flawed = X.copy()
    flawed[2, 1] = np.nan
    data = from_frame(pd.DataFrame(flawed, columns=["a", "b", "c"], copy=False), ReadOptions(missing="zero"))
    assert data.X[2, 1] == 0
    assert np.isnan(flawed[2, 1])


@pytest.mark.parametrize("scale", ["standard", "unit-norm"])
def test_scaling_leaves_the_frame_alone(scale):
    kept = X.copy()
    for frame in (pd.DataFrame(kept, copy=False), pa.table({"x": pa.FixedSizeListArray.from_arrays(kept.ravel(), 3)})):
        from_frame(frame, ReadOptions(scale=scale))
        np.testing.assert_array_equal(kept, X)


def test_frames_that_cannot_be_read():
    with pytest.raises(DataError, match="collect"):
        from_frame(pl.LazyFrame({"a": [1]}))
    with pytest.raises(DataError, match="do not go together"):
        from_frame(pd.DataFrame({"a": [1, "x", (2, 3)]}))
    with pytest.raises(DataError, match=r"2 columns have the name 'a'|cannot be read"):
        from_frame(pd.DataFrame(X[:, :2], columns=["a", "a"]))


def test_column_names_that_are_numbers_become_text():
    assert from_frame(pd.DataFrame(X, copy=False)).feature_names == ["0", "1", "2"]


DAYS = pd.date_range("2020", periods=4)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"d": DAYS}),
        pd.DataFrame({"d": DAYS.tz_localize("UTC"), "f": 1.0}),
        pd.DataFrame({"d": DAYS - DAYS[0], "f": 1.0}),
        pd.DataFrame({"d": DAYS.date, "f": 1.0}),
        pl.DataFrame({"d": DAYS.to_numpy()}),
        pa.table({"d": DAYS.to_numpy()}),
    ],
    ids=["alone", "with a zone", "durations", "objects", "polars", "arrow"],
)
def test_dates_are_no_features_in_fit_either(frame):
    for use in (beeline.read, lambda frame: beeline.LogisticRegression().fit(frame, [0, 1, 0, 1])):
        with pytest.raises(DataError, match=r"column 'd' holds dates or times .*, which cannot be features"):
            use(frame)


def test_categories_that_are_numbers_become_indicators():
    frame = pd.DataFrame({"c": pd.Categorical([10, 20, 30, 20])})
    names = ["c=10", "c=20", "c=30"]
    assert beeline.read(frame).feature_names == names
    assert list(beeline.LogisticRegression().fit(frame, [0, 1, 0, 1]).feature_names_in_) == names
    labelled = beeline.read(frame.assign(x=1.0), label="c")
    assert labelled.labels.tolist() == [10, 20, 30, 20]  # a label stays a number
