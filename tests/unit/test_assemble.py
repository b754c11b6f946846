"""The kernel that makes rows of columns, against a NumPy twin."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beeline import kernels
from beeline.data.recipe.recipe import Column
from beeline.data.tables.assembly import RowAssembler, RowsBuilder
from beeline.data.tables.batches import Piece
from beeline.exceptions import DataError

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
WORDS = ["", "a", "b", "tcp", "udp"]


def number_arrays(draw, n, kind):
    if kind == "bool":
        values = draw(st.lists(st.booleans() | st.none(), min_size=n, max_size=n))
        return pa.array(values, pa.bool_())
    if kind in ("float", "double"):
        numbers = st.sampled_from([0.0, -0.0, 1.5, -2.25, 1e30, float("nan")]) | st.none()
        return pa.array(draw(st.lists(numbers, min_size=n, max_size=n)), pa.type_for_alias(kind), from_pandas=False)
    info = np.iinfo(kind)
    numbers = st.integers(int(info.min), int(info.max)) | st.just(0) | st.none()
    return pa.array(draw(st.lists(numbers, min_size=n, max_size=n)), pa.type_for_alias(kind))


@st.composite
def tables(draw):
    """(columns of a recipe, record batches that may be slices)."""
    sizes = draw(st.lists(st.integers(0, 40), min_size=1, max_size=3))
    kinds = draw(st.lists(st.sampled_from([*INTEGERS, "float", "double", "bool", "text", "list"]), max_size=6))
    columns, at = [], 0
    for k, kind in enumerate(kinds):
        if kind == "text":
            known = tuple(sorted(draw(st.sets(st.sampled_from(WORDS), max_size=4))))
            column = Column(f"c{k}", "categories", at, known, fill=0.0)
        else:
            fill = draw(st.sampled_from([0.0, 7.5]))
            column = Column(f"c{k}", "numeric", at, fill=fill, width=3 if kind == "list" else 1)
        columns.append(column)
        at += column.n_features
    batches = []
    for size in sizes:
        before, after = draw(st.integers(0, 9)), draw(st.integers(0, 9))
        n = before + size + after
        arrays = []
        for kind in kinds:
            if kind == "text":
                texts = draw(st.lists(st.sampled_from(WORDS) | st.none(), min_size=n, max_size=n))
                arrays.append(pa.array(texts, pa.string()))
            elif kind == "list":
                inner = number_arrays(draw, 3 * n, "double")
                arrays.append(pa.FixedSizeListArray.from_arrays(inner, 3))
            else:
                arrays.append(number_arrays(draw, n, kind))
        batch = pa.RecordBatch.from_arrays(arrays, [column.name for column in columns])
        batches.append(batch.slice(before, size) if columns else batch)
    return columns, batches


def twin(columns, batches):
    """Row by row, value by value."""
    rows = []
    for batch in batches:
        for i in range(batch.num_rows):
            row = []
            for column in columns:
                value = batch.column(column.name)[i].as_py()
                if column.kind == "categories":
                    row += [float(value == category) for category in column.categories]
                    continue
                for number in value if column.width > 1 else [value]:
                    missing = number is None or number != number  # noqa: PLR0124
                    row.append(column.fill if missing else float(number))
            rows.append(row)
    return np.array(rows, np.float64).reshape(len(rows), sum(column.n_features for column in columns))


@given(tables(), st.sampled_from(["float32", "float64"]), st.integers(1, 4))
def test_rows_are_those_of_the_twin(table, dtype, threads):
    columns, batches = table
    expected = twin(columns, batches).astype(dtype)
    for is_sparse in (False, True):
        builder = RowsBuilder(RowAssembler(columns, dtype, threads=threads), is_sparse=is_sparse)
        for batch in batches:
            builder.add(Piece([batch], "", 1))
        block = builder.finish().checked()
        np.testing.assert_array_equal(block.to_dense(), expected)
        if is_sparse:
            assert block.nnz == np.count_nonzero(expected)


@given(tables())
def test_missing_and_unknown_values_are_counted(table):
    columns, batches = table
    assembler = RowAssembler(columns, "float64")
    RowsBuilder(assembler, is_sparse=False).add(Piece(batches, "", 1))
    missing, unknown = [], {}
    for column in columns:
        values = [value for batch in batches for value in batch.column(column.name).to_pylist()]
        if column.kind == "categories":
            unknown[column.name] = sum(v is not None and v not in column.categories for v in values)
        else:
            lanes = values if column.width > 1 else [[value] for value in values]
            missing += [sum(v[k] is None or v[k] != v[k] for v in lanes) for k in range(column.width)]
    assert assembler.missing.tolist() == missing
    assert assembler.unknown == unknown


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(
    ("values", "dtype", "row", "message"),
    [
        ([1.0] * 700 + [None, float("nan")], "float64", 701, "has no value"),
        ([1.0, float("-inf"), None], "float64", 2, "is infinite"),
        ([1.0, 2.0, 3.5e38], "float32", 3, "too large for float32"),
    ],
)
def test_the_first_flaw_is_named_by_row_and_column(is_sparse, values, dtype, row, message):
    batch = pa.record_batch({"fine": [1] * len(values), "x y": pa.array(values, pa.float64())})
    columns = [Column("fine", "numeric", 0), Column("x y", "numeric", 1)]
    builder = RowsBuilder(RowAssembler(columns, dtype), is_sparse=is_sparse)
    with pytest.raises(DataError, match=rf"t.csv, row {row + 4}: column 'x y' .*{message}"):
        builder.add(Piece([batch], "t.csv", 5))


def test_nonfinite_values_pass_when_they_are_allowed():
    batch = pa.record_batch({"x": pa.array([1.0, None, np.inf])})
    builder = RowsBuilder(RowAssembler([Column("x", "numeric", 0)], "float64", finite=False), is_sparse=False)
    builder.add(Piece([batch], "", 1))
    np.testing.assert_array_equal(builder.finish().values.ravel(), [1.0, np.nan, np.inf])


def test_a_missing_category_without_a_fill_is_a_flaw():
    batch = pa.record_batch({"x": pa.array(["a", None])})
    builder = RowsBuilder(RowAssembler([Column("x", "categories", 0, ("a",))], "float64"), is_sparse=True)
    with pytest.raises(DataError, match="row 2: column 'x' has no value"):
        builder.add(Piece([batch], "", 1))


@pytest.mark.parametrize("codes", [pa.int8(), pa.uint16(), pa.int64()])
def test_dictionaries_of_any_index_type_and_with_nulls_in_them(codes):
    array = pa.DictionaryArray.from_arrays(pa.array([1, 0, 2, None], codes), pa.array(["b", None, "a"]))
    builder = RowsBuilder(RowAssembler([Column("x", "categories", 0, ("a", "b"), 0.0)], "float64"), is_sparse=False)
    builder.add(Piece([pa.record_batch({"x": array})], "", 1))
    assert builder.finish().values.tolist() == [[0, 0], [0, 1], [1, 0], [0, 0]]


def test_what_python_gets_wrong_is_refused_and_not_read_beyond_the_end():
    batch = pa.record_batch({"x": [1, 2]})
    export = batch.__arrow_c_array__
    plan = kernels.AssemblyPlan([(0, 1, False, None)], 1, True)
    with pytest.raises(ValueError, match="one place a value"):
        kernels.assemble_dense([kernels.ArrowBatch(*export(), [None])], plan, np.empty((1, 1)))
    with pytest.raises(ValueError, match="one lookup a column"):
        kernels.ArrowBatch(*export(), [])
    with pytest.raises(ValueError, match="cannot have a lookup"):
        kernels.ArrowBatch(*export(), [np.zeros(1, np.int32)])
    with pytest.raises(ValueError, match="is not a number"):
        kernels.ArrowBatch(*pa.record_batch({"x": ["a"]}).__arrow_c_array__(), [None])
    with pytest.raises(ValueError, match="beyond the last feature"):
        kernels.AssemblyPlan([(1, 1, False, None)], 1, True)
    texts = pa.record_batch({"x": pa.array(["a", "b"]).dictionary_encode()})
    wide = kernels.ArrowBatch(*texts.__arrow_c_array__(), [np.array([0, 5], np.int32)])
    with pytest.raises(ValueError, match="beyond the categories"):
        kernels.assemble_dense([wide], kernels.AssemblyPlan([(0, 1, True, None)], 1, True), np.empty((2, 1)))
    schema, array = export()
    kernels.ArrowBatch(schema, array, [None])
    with pytest.raises(ValueError, match="nobody has taken"):
        kernels.ArrowBatch(schema, array, [None])
