"""ONNX graphs of models of tables, which onnxruntime gives raw columns."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beeline import LinearModel, LogisticRegression, Model, convert
from beeline.exceptions import ModelError

CITIES = ["Oslo", "Paris", "Rome", "Zürich"]


def table(n=80, seed=0, new=False):
    """Numbers, some missing, far from zero or not; texts, lists, booleans; names that a graph has its own use for."""
    rng = np.random.default_rng(seed)
    age = 20 + 5 * rng.standard_normal(n)
    t0 = np.where(rng.random(n) < 0.2, np.nan, rng.standard_normal(n))
    city = rng.choice([*CITIES, "Atlantis"] if new else CITIES, n).tolist()
    columns = {
        "age": age,
        "scores": pa.array([None if i % 7 == 3 else text for i, text in enumerate(city)]),
        "t0": pa.array(t0, from_pandas=True),
        "pixels": pa.FixedSizeListArray.from_arrays(rng.standard_normal(2 * n), 2),
        "label": pa.array(rng.random(n) < 0.5),
        "kind": np.where(age + 3 * np.nan_to_num(t0) > 20, "old", "young"),
    }
    columns["amount"] = np.exp(0.02 * (age - 20) + 0.1 * rng.standard_normal(n))
    return pa.table(columns)


def fed(raw, model, precision):
    """The columns of the table as a graph takes them."""
    given = {}
    for column in model.recipe.columns:
        values = raw[column.name].combine_chunks()
        if column.kind == "categories":
            given[column.name] = np.array([text or "" for text in values.to_pylist()], object)[:, None]
        elif column.width > 1:
            given[column.name] = np.array(values.to_pylist(), precision)
        else:
            numbers = [np.nan if x is None else float(x) for x in values.to_pylist()]
            given[column.name] = np.array(numbers, precision)[:, None]
    return given


def run(path, given):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    assert [node.name for node in session.get_inputs()] == list(given)
    return dict(zip([node.name for node in session.get_outputs()], session.run(None, given), strict=True))


def trained(tmp_path, estimator, *, label="kind", **options):
    ignored = "amount" if label == "kind" else "kind"
    pq.write_table(table(), tmp_path / "rows.parquet")
    store = convert(tmp_path / "rows.parquet", tmp_path / "s", label=label, ignore=[ignored], **options)
    return estimator.fit(store).model_


@pytest.mark.filterwarnings("ignore::beeline.exceptions.DataWarning")  # of the city that nobody has seen
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("scale", ["none", "standard", "minmax", "maxabs", "unit-norm"])
@pytest.mark.parametrize("missing", ["zero", "mean"])
def test_raw_columns_give_the_same_predictions(tmp_path, scale, missing, precision):
    model = trained(tmp_path, LogisticRegression(C=100), scale=scale, missing=missing)
    model.to_onnx(tmp_path / "m.onnx", precision)
    new = table(seed=1, new=True)
    theirs = run(tmp_path / "m.onnx", fed(new, model, precision))
    rows = new.drop_columns(["kind", "amount"])
    close = {"rtol": 2e-3, "atol": 2e-4} if precision == "float32" else {"rtol": 1e-8, "atol": 1e-9}
    assert set(theirs) == {"label_", "scores_", "probabilities"}  # columns are called label and scores
    np.testing.assert_allclose(theirs["scores_"][:, 0], model.decision_function(rows), **close)
    np.testing.assert_allclose(theirs["probabilities"], model.predict_proba(rows), **close)
    sure = np.abs(model.decision_function(rows)) > 1e-3
    assert theirs["label_"][sure].tolist() == model.predict(rows)[sure].tolist()


def test_a_regression_of_rates_on_columns(tmp_path):
    model = trained(tmp_path, LinearModel("gamma"), label="amount", scale="standard", missing="mean")
    model.to_onnx(tmp_path / "m.onnx", "float64")
    new = table(seed=2)
    theirs = run(tmp_path / "m.onnx", fed(new, model, "float64"))
    expected = model.predict(new.drop_columns(["kind", "amount"]))
    np.testing.assert_allclose(theirs["value"], expected, rtol=1e-8)


@pytest.mark.parametrize("columns", [["scores"], ["pixels"]], ids=["texts alone", "numbers alone"])
@pytest.mark.parametrize("scale", ["none", "unit-norm"])
def test_tables_of_one_kind_of_column(tmp_path, columns, scale):
    frame = table().select(columns).drop_null()
    values = frame[columns[0]].to_pylist()
    y = [len(value) % 3 if isinstance(value, str) else (value[0] > value[1]) + (value[0] > 0) for value in values]
    pq.write_table(frame.append_column("y", pa.array(y)), tmp_path / "rows.parquet")
    store = convert(tmp_path / "rows.parquet", tmp_path / "s", label="y", scale=scale)
    model = LogisticRegression(C=10).fit(store).model_
    model.to_onnx(tmp_path / "m.onnx", "float64")
    theirs = run(tmp_path / "m.onnx", fed(frame, model, "float64"))
    np.testing.assert_allclose(theirs["probabilities"], model.predict_proba(frame), rtol=1e-8)


def test_a_missing_number_that_nothing_fills_stays_missing(tmp_path):
    pq.write_table(pa.table({"a": np.arange(20.0), "y": np.arange(20) // 10}), tmp_path / "rows.parquet")
    model = LogisticRegression().fit(convert(tmp_path / "rows.parquet", tmp_path / "s", label="y")).model_
    model.to_onnx(tmp_path / "m.onnx")
    theirs = run(tmp_path / "m.onnx", {"a": np.array([[1], [np.nan]], np.float32)})
    assert np.isnan(theirs["scores"][:, 0]).tolist() == [False, True]


def test_a_column_without_a_name_is_refused(tmp_path):
    pq.write_table(pa.table({"": np.arange(20.0), "y": np.arange(20) // 10}), tmp_path / "rows.parquet")
    model = LogisticRegression().fit(convert(tmp_path / "rows.parquet", tmp_path / "s", label="y")).model_
    with pytest.raises(ModelError, match="a column has no name"):
        model.to_onnx(tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_the_file_of_a_model_exports_the_same(tmp_path):
    model = trained(tmp_path, LogisticRegression(), missing="mean")
    model.save(tmp_path / "m")
    model.to_onnx(tmp_path / "a.onnx")
    Model.load(tmp_path / "m").to_onnx(tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
