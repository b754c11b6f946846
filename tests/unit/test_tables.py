"""Parquet, Arrow and frames: the same table gives the same rows, whatever holds it and however it is cut."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beeline.data.files.finding import find_files
from beeline.data.options import ReadOptions
from beeline.data.reader import BadLines, NoProgress
from beeline.data.tables import csv_text
from beeline.data.tables.columnar import ParquetSource
from beeline.data.tables.frames import from_frame
from beeline.data.tables.reader import TableReader
from beeline.exceptions import DataError, DataWarning, FormatError, ParameterError

numbers = st.floats(-1e9, 1e9).map(lambda x: round(x, 4))
words = st.sampled_from(["a", "b c", "NA ", "ä", 'say "hi"', "x,y", "two\nlines"])
SORTS = {
    "int": (pa.int64(), st.integers(0, 2**53)),  # of both signs, such numbers cancel and leave nothing but rounding
    "small": (pa.int8(), st.integers(-128, 127)),
    "float": (pa.float64(), numbers),
    "bool": (pa.bool_(), st.booleans()),
    "text": (pa.string(), words),
}


@st.composite
def tables(draw):
    n = draw(st.integers(1, 30))
    sorts = draw(st.lists(st.sampled_from(list(SORTS)), min_size=1, max_size=5))
    holes = draw(st.booleans())
    columns = {}
    for k, sort in enumerate(sorts):
        kind, values = SORTS[sort]
        column = draw(st.lists(values | st.none() if holes else values, min_size=n, max_size=n))
        column[0] = column[0] if column[0] is not None else draw(values)  # a column needs a type in every format
        columns[f"c{k}"] = pa.array(column, kind)
    columns["y"] = pa.array(draw(st.lists(st.sampled_from(["no", "yes"]), min_size=n, max_size=n)))
    columns["w"] = pa.array(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), pa.float64())
    columns["q"] = pa.array(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)))
    return pa.table(columns)


def write(table, folder, n_batch=7):
    pyarrow.csv.write_csv(table, folder / "t.csv")
    pyarrow.parquet.write_table(table, folder / "t.parquet", row_group_size=n_batch)
    pyarrow.feather.write_feather(table, folder / "t.arrow", chunksize=n_batch, compression="lz4")
    with pa.ipc.new_stream(folder / "t.arrows", table.schema) as stream:
        stream.write_table(table, max_chunksize=n_batch)
    return [folder / name for name in ("t.csv", "t.parquet", "t.arrow", "t.arrows")]


def streamed(path, memory, options):
    reader = TableReader(find_files(path), options)
    reader.prepare(memory)
    blocks = list(reader.blocks(memory))
    targets = [np.concatenate([getattr(b, name) for b in blocks]) for name in ("labels", "weights", "queries")]
    return np.vstack([b.to_dense() for b in blocks]), targets, reader.recipe


def same_recipe(a, b):
    """Equal, where statistics of differently cut rows may differ in their last bits."""
    np.testing.assert_array_equal(
        [c.fill for c in a.columns if c.fill is None], [c.fill for c in b.columns if c.fill is None]
    )
    fills = [[c.fill or 0.0 for c in r.columns] for r in (a, b)]
    np.testing.assert_allclose(fills[0], fills[1], rtol=1e-12, atol=1e-9)  # values that cancel leave rounding
    assert [(c.name, c.kind, c.first, c.categories) for c in a.columns] == [
        (c.name, c.kind, c.first, c.categories) for c in b.columns
    ]
    assert a.label_categories == b.label_categories


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    tables(),
    st.sampled_from(["zero", "mean"]),
    st.sampled_from(["none", "standard", "minmax", "maxabs", "unit-norm"]),
    st.sampled_from(["auto", "dense"]),
)
def test_every_holder_gives_the_same_rows(tmp_path, table, missing, scale, layout):
    options = ReadOptions(label="y", weight="w", query="q", missing=missing, scale=scale, layout=layout)
    expected = from_frame(table, options)
    rows = expected.block.to_dense()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_text, "_SMALLEST_PIECE", 1)
        for path in write(table, tmp_path):
            data = TableReader(find_files(path), options).read()
            np.testing.assert_allclose(data.block.to_dense(), rows, rtol=1e-9, atol=1e-12, err_msg=str(path))
            np.testing.assert_array_equal(data.labels, expected.labels)
            np.testing.assert_array_equal(data.weights, expected.weights)
            np.testing.assert_array_equal(data.queries, expected.queries)
            same_recipe(data.recipe, expected.recipe)
            for memory in (1, 5000):
                again, (labels, weights, queries), recipe = streamed(path, memory, options)
                np.testing.assert_allclose(again, rows, rtol=1e-9, atol=1e-12, err_msg=f"{path} {memory}")
                np.testing.assert_array_equal(labels, expected.labels)
                np.testing.assert_array_equal(weights, expected.weights)
                np.testing.assert_array_equal(queries, expected.queries)
                same_recipe(recipe, expected.recipe)
    for frame in (table.to_pandas(), pl.from_arrow(table), table.to_reader(3)):
        data = from_frame(frame, options)
        np.testing.assert_allclose(data.block.to_dense(), rows, rtol=1e-9, atol=1e-12, err_msg=str(type(frame)))
        np.testing.assert_array_equal(data.labels, expected.labels)
        same_recipe(data.recipe, expected.recipe)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(tables(), st.sampled_from(["none", "standard", "unit-norm"]))
def test_a_recipe_makes_the_same_rows_again(tmp_path, table, scale):
    options = ReadOptions(label="y", weight="w", query="q", missing="mean", scale=scale)
    learned = from_frame(table, options)
    for path in write(table, tmp_path):
        data = TableReader(find_files(path), ReadOptions(recipe=learned.recipe)).read()
        np.testing.assert_array_equal(data.block.to_dense(), learned.block.to_dense())
        np.testing.assert_array_equal(data.labels, learned.labels)
        np.testing.assert_array_equal(data.weights, learned.weights)


def test_the_same_bits_for_any_number_of_threads(same_bits, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_text, "_LARGEST_PIECE", 1 << 16)  # so that threads have pieces of text to share out
    rng = np.random.default_rng(5)
    n = 40_000
    table = pa.table(
        {
            "a": rng.normal(size=n),
            "b": rng.integers(0, 3, n),
            "c": rng.choice(["x", "y", "z"], n),
            "d": pa.array(rng.normal(size=n), mask=rng.random(n) < 0.1),
        }
    )
    for path in write(table, tmp_path, 5000):

        def read(path=path):
            data = TableReader(find_files(path), ReadOptions(missing="mean", scale="standard", dtype="float32")).read()
            return data.block.to_dense(), str(data.recipe.to_json())

        same_bits(read)


def test_little_memory_is_shared_out_without_a_trace(same_bits, tmp_path):
    """Where memory limits what is held at one time, more threads must not mean smaller pieces of text."""
    rng = np.random.default_rng(6)
    values = rng.normal(size=(40_000, 3)) * 10.0 ** rng.uniform(-5, 5, size=(40_000, 1))
    path = write(pa.table(dict(zip("abc", values.T, strict=True))), tmp_path, 5000)[0]

    def streamed_rows():
        reader = TableReader(find_files(path), ReadOptions(scale="standard"))
        reader.prepare(2 << 20)
        return [block.to_dense() for block in reader.blocks(2 << 20)], str(reader.recipe.to_json())

    assert len(same_bits(streamed_rows, by_kernels=False)[0]) > 8  # one for each piece of text


def test_types_that_tables_hold(tmp_path):
    from decimal import Decimal

    table = pa.table(
        {
            "large": pa.array(["a", "b"], pa.large_string()),
            "decimal": pa.array([Decimal("1.25"), Decimal("-2.5")], pa.decimal128(6, 2)),
            "half": pa.array(np.array([0.5, 2.0], np.float16)),
            "coded": pa.array([7, 9]).dictionary_encode(),
            "pixels": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
            "unsigned": pa.array([2**64 - 1, 0], pa.uint64()),
        }
    )
    expected = [[1, 0, 1.25, 0.5, 7, 1, 2, 2.0**64], [0, 1, -2.5, 2, 9, 3, 4, 0]]
    pyarrow.feather.write_feather(table, tmp_path / "t.arrow")
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    for source in ("t.arrow", "t.parquet"):
        data = TableReader(find_files(tmp_path / source), ReadOptions(layout="dense")).read()
        assert data.X.tolist() == expected
        assert data.feature_names[4:7] == ["coded", "pixels[0]", "pixels[1]"]


def test_text_may_be_asked_of_numbers():
    data = from_frame(pa.table({"zip": [10115, 80331, 10115]}), ReadOptions(text=("zip",), layout="dense"))
    assert data.feature_names == ["zip=10115", "zip=80331"]
    assert data.X.tolist() == [[1, 0], [0, 1], [1, 0]]


def test_categories_that_no_row_uses_are_left_out():
    frame = pd.DataFrame({"c": pd.Categorical(["b", "b"], categories=["a", "b"])})
    assert from_frame(frame).feature_names == ["c=b"]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([[1], [2, 3]]), r"column 'x' holds lists or records.*ignore=\['x'\]"),
        (pa.array([{"a": 1}, {"a": 2}]), "column 'x' holds lists or records"),
        (pa.array([1, 2], pa.timestamp("s")), "column 'x' holds dates or times"),
        (pa.array([b"a", b"b"]), "column 'x' holds neither numbers nor text"),
    ],
)
def test_columns_that_cannot_be_features(tmp_path, column, message):
    table = pa.table({"x": column, "fine": [1, 2]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    for make in (lambda: from_frame(table), lambda: TableReader(find_files(tmp_path / "t.parquet"), ReadOptions())):
        with pytest.raises(DataError, match=message):
            make()
    ignored = TableReader(find_files(tmp_path / "t.parquet"), ReadOptions(ignore=("x",))).read()
    assert ignored.feature_names == ["fine"]


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.arrows"])
def test_broken_files_are_named(tmp_path, name):
    write(pa.table({"a": list(range(1000))}), tmp_path)
    path = tmp_path / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormatError, match=rf"{name}: this is no valid (Parquet|Arrow IPC) file"):
        TableReader(find_files(path), ReadOptions()).read()


def test_options_without_a_meaning_are_refused(tmp_path):
    write(pa.table({"a": [1]}), tmp_path)
    for name in ("t.parquet", "t.arrow"):
        with pytest.raises(ParameterError, match="delimiter has no meaning"):
            TableReader(find_files(tmp_path / name), ReadOptions(delimiter=";"))
    with pytest.raises(ParameterError, match="header has no meaning"):
        from_frame(pa.table({"a": [1]}), ReadOptions(header=True))


def test_files_of_several_formats_or_columns_are_refused(tmp_path):
    write(pa.table({"a": [1]}), tmp_path)
    with pytest.raises(DataError, match="several formats"):
        TableReader(find_files([tmp_path / "t.csv", tmp_path / "t.parquet"]), ReadOptions())
    pyarrow.parquet.write_table(pa.table({"b": [1]}), tmp_path / "u.parquet")
    reader = TableReader(find_files([tmp_path / "t.parquet", tmp_path / "u.parquet"]), ReadOptions())
    with pytest.raises(DataError, match=r"u.parquet: there is no column 'a', which .*t.parquet has"):
        reader.read()


def test_an_empty_table_has_no_rows(tmp_path):
    for path in write(pa.table({"a": pa.array([], pa.int64())}), tmp_path):
        with pytest.raises(DataError, match="there are no rows"):
            TableReader(find_files(path), ReadOptions()).read()


def test_missing_values_of_lists(tmp_path):
    table = pa.table({"v": pa.array([[1.0, None], None, [3.0, 4.0]], pa.list_(pa.float64(), 2))})
    assert from_frame(table, ReadOptions(missing="zero", layout="dense")).X.tolist() == [[1, 0], [0, 0], [3, 4]]
    with pytest.raises(DataError, match="cannot be filled by the mean"):
        from_frame(table, ReadOptions(missing="mean"))
    with pytest.raises(DataError, match="row 1: column 'v' has no value"):
        from_frame(table)


def test_streaming_holds_no_more_than_it_may(tmp_path):
    """Blocks of a wide indicator table stay small although a piece of text makes many rows."""
    lines = "".join(f"word{k % 500},{k % 7}\n" for k in range(20_000))
    path = tmp_path / "t.csv"
    path.write_text("w,x\n" + lines)
    reader = TableReader(find_files(path), ReadOptions(layout="dense"))
    memory = 4 << 20
    reader.prepare(memory)
    sizes = [block.nbytes for block in reader.blocks(memory)]
    assert max(sizes) <= memory // 4
    assert sum(sizes) == 20_000 * 501 * 8


@pytest.mark.parametrize("ignore", [("x",), ["x"]])
def test_columns_may_be_named_by_a_list_or_a_tuple(ignore):
    frame = pa.table({"x": [1.0, 2.0], "y": [3.0, 4.0]})
    data = from_frame(frame, ReadOptions(ignore=ignore))
    assert data.feature_names == ["y"]
    assert from_frame(frame, ReadOptions(recipe=data.recipe)).feature_names == ["y"]


def test_lists_of_numbers_count_as_many_columns(tmp_path):
    """A batch of wide lists is as small as one of as many columns."""
    rows = np.ones((3000, 1000), np.float32)
    table = pa.table({"v": pa.FixedSizeListArray.from_arrays(rows.ravel(), 1000)})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    source = ParquetSource(find_files(tmp_path / "t.parquet"))
    memory = 4 << 20
    sizes = [piece.batches[0].nbytes for piece in source.walk({"v": "numeric"}, memory, NoProgress(), BadLines())]
    assert sum(sizes) >= rows.nbytes
    assert max(sizes) <= memory // 4


def test_columns_that_name_rows_are_doubted():
    n = 80
    table = pd.DataFrame({"id": [f"order {i}" for i in range(n)], "kind": ["a", "b"] * (n // 2), "y": range(n)})
    with pytest.warns(DataWarning, match=r"'id' has 80 different values in 80 rows.*ignore=\['id'\]$") as told:
        data = from_frame(table, ReadOptions(label="y"))
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_frame(table[:50], ReadOptions(label="y"))  # so few may well be kinds
        from_frame(table, ReadOptions(label="y", ignore=("id",)))
        from_frame(table, ReadOptions(recipe=data.recipe))
        from_frame(pd.concat([table, table]), ReadOptions(label="y"))
