"""Rows in which something is missing: left out and counted, or named all at once."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import beeline
from beeline.data.files.finding import find_files
from beeline.data.options import ReadOptions
from beeline.data.tables.reader import TableReader
from beeline.exceptions import DataError, DataWarning, LabelError

TEXT = "age,city,y\n31,Paris,1\n45,,0\n,Oslo,1\n28,Rome,\n50,Oslo,0\n"


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(TEXT)
    return path


def reader(path, **options):
    return TableReader(find_files(path), ReadOptions(label="y", missing="drop", **options))


def test_rows_with_missing_values_are_left_out_and_counted(people):
    with pytest.warns(DataWarning) as told:
        data = beeline.read(people, label="y", missing="drop")
    assert data.feature_names == ["age", "city=Oslo", "city=Paris"]  # Rome has no label
    np.testing.assert_array_equal(data.block.to_dense(), [[31, 0, 1], [50, 1, 0]])
    np.testing.assert_array_equal(data.labels, [1, 0])
    assert [str(one.message) for one in told] == [
        f"2 rows without all features left out: {people}, line 3; {people}, line 4",
        f"1 row without a label left out: {people}, line 5",
    ]
    assert told[0].filename == __file__


@pytest.mark.parametrize("kind", ["csv.gz", "parquet", "arrow", "frame"])
def test_every_kind_of_table_gives_the_same_rows(tmp_path, people, kind):
    frame = pd.read_csv(people)
    source = tmp_path / f"rows.{kind}"
    if kind == "csv.gz":
        source.write_bytes(gzip.compress(TEXT.encode()))
    elif kind == "parquet":
        frame.to_parquet(source)
    elif kind == "arrow":
        frame.to_feather(source, compression="uncompressed")
    with pytest.warns(DataWarning, match=r"without (all features|a label)"):
        data = beeline.read(frame if kind == "frame" else source, label="y", missing="drop")
    np.testing.assert_array_equal(data.block.to_dense(), [[31, 0, 1], [50, 1, 0]])


def test_stores_and_rows_within_a_budget(tmp_path, people):
    for read in (
        lambda: beeline.convert(people, tmp_path / "s", label="y", missing="drop"),
        lambda: beeline.read(people, label="y", missing="drop", memory="1K"),
    ):
        with pytest.warns(DataWarning, match=r"without (all features|a label)"):
            data = read()
        np.testing.assert_array_equal(data.rows(0, 2).to_dense(), [[31, 0, 1], [50, 1, 0]])


def test_blocks_of_any_size_and_places_behind_rows_that_were_left_out(tmp_path):
    path = tmp_path / "long.csv"
    values = ["" if k % 3 == 0 else "1" for k in range(3000)]
    values[1999] = "inf"
    path.write_text("x,y\n" + "".join(f"{v},{k % 2}\n" for k, v in enumerate(values)))
    with pytest.raises(DataError, match="line 2001: column 'x' is infinite"):
        list(reader(path).blocks_once(1 << 16))
    walk = reader(path, allow_nonfinite=True)
    walk.prepare(1 << 16)
    blocks = list(walk.blocks(1 << 14))
    assert len(blocks) > 1
    assert sum(block.n_rows for block in blocks) == 2000
    assert walk.left_out.features.count == 1000
    assert walk.passed_over()[0].endswith(f"{path}, line 14; and 995 more")


def test_lists_and_dictionaries(tmp_path):
    lists = pa.array([[1.0, 2.0], [3.0, None], None, [7.0, 8.0]], pa.list_(pa.float64(), 2))
    texts = pa.DictionaryArray.from_arrays(pa.array([0, 0, 0, 1]), pa.array(["a", None]))
    with pytest.warns(DataWarning, match="2 rows without all features left out: row 2; row 3"):
        data = beeline.read(pa.table({"x": lists}), missing="drop")
    np.testing.assert_array_equal(data.X, [[1, 2], [7, 8]])
    with pytest.warns(DataWarning, match="1 row without all features left out: row 4"):
        assert beeline.read(pa.table({"x": texts, "z": [1, 2, 3, 4]}), missing="drop").n_rows == 3


def test_nothing_may_be_left(people):
    people.write_text("x,y\n,1\n,0\n")
    with pytest.raises(DataError, match=r"there are no rows; 2 rows without all features left out"):
        beeline.read(people, label="y", missing="drop")


def test_new_rows_may_be_left_out_by_a_recipe_that_fills_nothing(people):
    recipe = beeline.read(pd.DataFrame({"age": [1, 2], "city": ["Oslo", "Paris"]})).recipe
    with pytest.raises(DataError, match="none to fill in; leave rows with missing values out with missing='drop'"):
        beeline.read(people, recipe=recipe, ignore=["y"])
    with pytest.warns(DataWarning) as told:
        data = beeline.read(people, recipe=recipe, missing="drop", ignore=["y"])
    assert data.n_rows == 3
    assert [str(one.message).partition(":")[0] for one in told] == [
        "2 rows without all features left out",
        "column 'city' has 1 value that the recipe does not know",
    ]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_without_a_label_are_all_counted_before_it_ends(tmp_path, kind):
    labels = [None if k % 500 == 7 else k % 2 for k in range(4000)]
    table = pa.table({"x": np.arange(4000.0), "y": labels})
    source = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(table, source, row_group_size=600)
        first = "row 8"
    else:
        source.write_text("x,y\n" + "".join(f"{k},{'' if y is None else y}\n" for k, y in enumerate(labels)))
        first = "line 9"
    words = rf"the label \(column 'y'\) is missing in 8 rows: .*{first}; .*; and 3 more; leave .* missing='drop'"
    with pytest.raises(LabelError, match=words):
        beeline.read(source, label="y")
    with pytest.raises(LabelError, match=words):
        beeline.convert(source, tmp_path / "s", label="y")
    assert not (tmp_path / "s").exists()
    with pytest.raises(LabelError, match="is missing"):  # of rows that come once, the first
        beeline.fit_stream(source, label="y", loss="logistic")
    with pytest.warns(DataWarning, match="8 rows without a label"):
        assert beeline.read(source, label="y", missing="drop").n_rows == 3992


def test_what_rows_lack_beside_features_is_named(people):
    people.write_text("x,y,q\n1,1,a\n2,0,\n")
    with pytest.warns(DataWarning, match=r"1 row without a label or query id left out: .*people.csv, line 3"):
        assert beeline.read(people, label="y", query="q", missing="drop").n_rows == 1


def test_lines_are_only_said_where_they_are_known(people):
    people.write_text('x,t,y\n1,"a\nb",1\n2,c,\n')
    with pytest.raises(LabelError, match=r"people.csv, row 2;"):
        beeline.read(people, label="y")
    people.write_text("x,y\n1,1\n\n2,\n")
    with pytest.raises(LabelError, match=r"people.csv, line 4;"):
        beeline.read(people, label="y")
    people.write_text("x,y\n1,1\n2,")
    with pytest.raises(LabelError, match=r"people.csv, line 3;"):
        beeline.read(people, label="y")
