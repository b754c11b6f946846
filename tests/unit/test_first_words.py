"""What is said to somebody who gives what scikit-learn or habit would have: files, arrays with gaps, misspelt names."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import beeline
import beeline.losses
from beeline.cli.output.drawing import signed_text
from beeline.exceptions import DataError, LabelError

X = np.random.default_rng(0).normal(size=(20, 3))
Y = np.arange(20) % 2


def _with(value):
    changed = X.copy()
    changed[4, 1] = value
    return changed


@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist, scipy.sparse.csr_array])
def test_a_missing_value_of_an_array_is_named(form):
    told = r"^row 4 has a value that is NaN or infinite, of feature 1; replace or remove it, as .*SimpleImputer"
    with pytest.raises(DataError, match=told):
        beeline.LinearSVC().fit(form(_with(np.nan)), Y)
    with pytest.raises(DataError, match=told):
        beeline.LinearSVC().fit(X, Y).predict(form(_with(np.nan)))


def test_an_infinite_value_is_named_and_no_imputer_is():
    with pytest.raises(DataError, match=r"^row 4 .* of feature 1; replace or remove it$"):
        beeline.Ridge().fit(_with(-np.inf), Y)


def test_a_stored_value_of_a_sparse_row_is_named_by_its_feature():
    rows = scipy.sparse.csr_array(([1.0, np.inf, 2.0], [9, 7, 3], [0, 0, 3]), shape=(2, 10))
    with pytest.raises(DataError, match=r"row 1 .* of feature 7;"):
        beeline.from_arrays(rows)


def test_texts_in_arrays_point_to_frames():
    with pytest.raises(
        DataError, match=r"could not convert .*columns of text become indicators where X is a data fram"
    ):
        beeline.LinearSVC().fit(np.array([["a", "b"]] * 20, dtype=object), Y)


@pytest.mark.parametrize("files", ["rows.csv", ["a.csv", "b.csv"]])
def test_fit_is_given_rows_and_no_files(files):
    with pytest.raises(DataError, match=r"read them first: fit\(beeline\.read\(.*\.csv.*, label='NAME'\)\)"):
        beeline.LogisticRegression().fit(files)
    with pytest.raises(DataError, match="not names of files"):
        beeline.Lasso(alpha="auto").fit(files, Y)


def test_misspelt_names_of_the_package_are_asked_about():
    with pytest.raises(AttributeError, match=r"no attribute 'LogisticRegresion'; did you mean 'LogisticRegression'\?$"):
        _ = beeline.LogisticRegresion
    for name in ("nothing_like_it", "__reads__"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
            getattr(beeline, name)


def test_rows_to_compare_with_name_the_column_that_is_not_there(tmp_path):
    (tmp_path / "a.csv").write_text("x,price\n1,0.5\n2,1.5\n3,2.5\n")
    model = beeline.Ridge().fit(beeline.read(tmp_path / "a.csv", label="price"))
    (tmp_path / "b.csv").write_text("x\n1\n2\n")
    with pytest.raises(LabelError, match=r"no labels to compare with: there is no column 'price'; .* label='NAME'$"):
        beeline.evaluate(model, tmp_path / "b.csv")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(88105.3, "+88,105"), (-12345678.0, "-12,345,678"), (359.44, "+359.4"), (-1.5e-7, "-1.5e-07"), (1e20, "+1e+20")],
)
def test_large_weights_are_whole_numbers(value, shown):
    assert signed_text(value) == shown
