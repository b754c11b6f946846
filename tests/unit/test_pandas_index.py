"""The index of a pandas frame, where it was written as a column: names of rows, and no feature."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import beeline
from beeline.exceptions import DataError

FRAME = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1]})


def written(frame, path):
    """A Parquet or Feather file of the frame with its index."""
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        pyarrow.feather.write_feather(pa.Table.from_pandas(frame, preserve_index=True), path)
    return path


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
@pytest.mark.parametrize(
    "index",
    [
        pd.Index([7, 3, 9, 1]),
        pd.Index(["a", "b", "c", "d"], name="id"),
        pd.date_range("2020-01-01", periods=4, name="day"),
        pd.MultiIndex.from_arrays([[1, 1, 2, 2], [5, 6, 7, 8]]),
    ],
    ids=["unnamed", "named", "dates", "several"],
)
def test_an_index_is_no_feature(tmp_path, index, suffix):
    path = written(FRAME.set_index(index), tmp_path / f"rows.{suffix}")
    data = beeline.read(path, label="y")
    assert data.feature_names == ["x"]
    assert data.recipe.ignored
    plain = beeline.read(written(FRAME, tmp_path / f"plain.{suffix}"), recipe=data.recipe)
    np.testing.assert_array_equal(plain.X, data.X)


def test_the_name_tells_where_pandas_notes_are_lost(tmp_path):
    table = pa.Table.from_pandas(FRAME.set_index(pd.Index([4, 3, 2, 1]))).replace_schema_metadata(None)
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    assert beeline.read(tmp_path / "rows.parquet", label="y").feature_names == ["x"]
    assert beeline.read(table, label="y").feature_names == ["x"]


def test_new_rows_may_have_an_index_that_the_old_had_not(tmp_path):
    recipe = beeline.read(FRAME, label="y").recipe
    path = written(FRAME.set_index(pd.Index([7, 3, 9, 1], name="id")), tmp_path / "new.parquet")
    assert beeline.read(path, recipe=recipe).feature_names == ["x"]


def test_an_index_that_somebody_names_is_what_they_say(tmp_path):
    path = written(FRAME.set_index(pd.Index([7, 3, 9, 1], name="id")), tmp_path / "rows.parquet")
    assert beeline.read(path, label="y", text=["id"]).feature_names[-1] == "id=9"
    np.testing.assert_array_equal(beeline.read(path, label="id").labels, [7, 3, 9, 1])
    recipe = beeline.read(FRAME.assign(id=[1, 2, 3, 4]), label="y").recipe  # where it was a feature
    np.testing.assert_array_equal(beeline.read(path, recipe=recipe).X[:, 1], [7, 3, 9, 1])


def test_notes_that_are_not_of_pandas_are_passed_over():
    for note in (b"[", b"[]", b'{"index_columns": [{"kind": "range"}]}'):
        table = pa.table({"x": [1.0, 2.0]}).replace_schema_metadata({b"pandas": note})
        assert beeline.read(table).feature_names == ["x"]
    with pytest.raises(DataError, match="no column is left"):
        beeline.read(pa.table({"__index_level_0__": [1.0]}))
