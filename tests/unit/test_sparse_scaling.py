"""Scaling that shifts, of rows that stay sparse: the intercept takes the shift, and everything is as of dense rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file

import beeline
from beeline.data.recipe import scaling as scaling_module
from beeline.data.recipe.recipe import Recipe
from beeline.data.recipe.scaling import Scaling
from beeline.exceptions import DataError, ParameterError
from beeline.model.exporting import unscaled

RNG = np.random.default_rng(5)
KINDS = ["standard", "minmax"]
N, D = 300, 30


def raw_rows(n=N):
    """Sparse rows, with one column far from zero."""
    X = scipy.sparse.random_array((n, D), density=0.2, rng=RNG, format="csr").toarray() * 7
    X[:, 0] = 2000 + 5 * RNG.standard_normal(n)
    return X


X = raw_rows()
Z = 0.3 * (X[:, 0] - 2000) + X[:, 1] - X[:, 2] + RNG.standard_normal(N)
Y = np.where(Z > 0, 1, -1)
CLASSES = np.digitize(Z, [-1, 1])


@pytest.fixture
def files(tmp_path):
    dump_svmlight_file(scipy.sparse.csr_array(X), Y, str(tmp_path / "train.svm"), zero_based=False)
    dump_svmlight_file(scipy.sparse.csr_array(raw_rows(50)), np.zeros(50), str(tmp_path / "new.svm"), zero_based=False)
    return tmp_path / "train.svm", tmp_path / "new.svm"


def both(path, kind):
    """The rows, sparse and dense, scaled alike but for the shift."""
    kept, filled = (beeline.read(path, scale=kind, layout=layout) for layout in ("sparse", "dense"))
    assert kept.block.is_sparse
    assert not filled.block.is_sparse
    return kept, filled


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_multiplied_and_nothing_else(files, kind):
    kept, filled = both(files[0], kind)
    scaling = filled.recipe.scaling
    np.testing.assert_allclose(kept.block.to_dense(), X * scaling.factor, rtol=1e-12)
    assert kept.block.nnz == np.count_nonzero(X)
    assert kept.recipe.scaling.shift is None
    assert scaling.left_to_intercept is None
    assert scaling.without_shift() != scaling
    np.testing.assert_allclose(kept.recipe.scaling.left_to_intercept, scaling.shift, rtol=1e-12)
    assert Recipe.from_json(kept.recipe.to_json()) == kept.recipe
    assert "left_to_intercept" not in filled.recipe.to_json()["scaling"]


ESTIMATORS = [
    (beeline.LogisticRegression(C=0.3, tol=1e-9), Y),
    (beeline.LogisticRegression(C=0.3, tol=1e-9), CLASSES),
    (beeline.LinearSVC(C=0.1, tol=1e-7), Y),
    (beeline.LinearSVC(C=0.1, tol=1e-7, loss="hinge"), Y),
    (beeline.LinearSVR(C=0.1, tol=1e-7), Z),
    (beeline.Lasso(alpha=0.05, tol=1e-9), Z),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("estimator", "y"), ESTIMATORS, ids=lambda part: repr(part)[:60])
def test_training_and_predictions_are_as_of_dense_rows(files, kind, estimator, y):
    data = both(files[0], kind)
    kept, filled = (type(estimator)(**estimator.get_params()).fit(rows, y) for rows in data)
    np.testing.assert_allclose(kept.report_.objective, filled.report_.objective, rtol=1e-5)
    np.testing.assert_allclose(kept.coef_, filled.coef_, rtol=2e-2, atol=5e-3)
    for source in files:  # each by its own recipe
        scores = [model.model_.decision_function(source) for model in (kept, filled)]
        np.testing.assert_allclose(*scores, atol=1e-2)


@pytest.mark.parametrize("kind", KINDS)
def test_c_is_chosen_as_for_dense_rows(files, kind):
    found = [beeline.select_C(rows, "squared_hinge", folds=3, C_max=4) for rows in both(files[0], kind)]
    assert [point.C for point in found[0].curve] == pytest.approx([point.C for point in found[1].curve], rel=1e-3)
    assert found[0].best_C == pytest.approx(found[1].best_C, rel=1e-3)
    assert found[0].best_score == pytest.approx(found[1].best_score, abs=0.01)
    streamed = beeline.select_C(both(files[0], kind)[0].within(1), "squared_hinge", folds=3, C_max=4)
    assert streamed.best_score == pytest.approx(found[0].best_score, abs=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_stores_files_and_exports(files, tmp_path, kind):
    store = beeline.convert(files[0], tmp_path / "s", scale=kind, layout="sparse")
    kept, filled = both(files[0], kind)
    assert beeline.open_store(tmp_path / "s").recipe == kept.recipe
    model = beeline.LogisticRegression(tol=1e-9).fit(store)
    model.model_.save(tmp_path / "m")
    loaded = beeline.Model.load(tmp_path / "m")
    assert loaded.recipe == kept.recipe
    np.testing.assert_array_equal(loaded.predict(files[1]), model.predict(files[1]))
    other = beeline.LogisticRegression(tol=1e-9).fit(filled).model_
    weights, intercepts = unscaled(loaded)
    np.testing.assert_allclose(X @ weights + intercepts, loaded.decision_function(kept)[:, None], atol=1e-8)
    np.testing.assert_allclose(X @ weights + intercepts, np.add(X @ unscaled(other)[0], unscaled(other)[1]), atol=1e-2)
    with pytest.raises(DataError, match="made with another scaling"):
        loaded.predict(filled)


@pytest.mark.parametrize("source", ["svm", "csr", "npz", "table"])
def test_rows_that_would_take_too_much_memory_stay_sparse(files, tmp_path, monkeypatch, source):
    monkeypatch.setattr(scaling_module, "DENSE_LIMIT", 1000)
    wide = scipy.sparse.random_array((200, 400), density=0.01, rng=np.random.default_rng(0), format="csr")
    if source == "svm":
        dump_svmlight_file(wide, np.zeros(200), str(tmp_path / "wide.svm"))
        given = tmp_path / "wide.svm"
    elif source == "npz":
        scipy.sparse.save_npz(tmp_path / "wide.npz", wide)
        given = tmp_path / "wide.npz"
    else:
        names = [f"c{k % 150}" for k in range(200)]
        given = wide if source == "csr" else pd.DataFrame({"x": np.arange(200.0), "c": names})
    data = beeline.read(given, scale="standard")
    assert data.block.is_sparse
    assert data.recipe.scaling.left_to_intercept.any()
    store = beeline.convert(given, tmp_path / "s", scale="standard")
    assert store.recipe == data.recipe
    np.testing.assert_array_equal(store.rows(0, 200).to_dense(), data.block.to_dense())


def test_numbers_of_a_table_are_scaled_and_indicators_are_not(files):
    frame = pd.DataFrame({"x": np.arange(10.0, 40.0), "c": [f"c{k}" for k in range(30)]})
    data = beeline.read(frame, scale="standard", layout="sparse")
    found = data.block.to_dense()
    np.testing.assert_allclose(found[:, 0], frame["x"] / frame["x"].std(ddof=0))
    np.testing.assert_array_equal(np.sort(found[:, 1:].sum(axis=0)), np.ones(30))
    np.testing.assert_array_equal(data.recipe.scaling.left_to_intercept, [24.5, *np.zeros(30)])


@pytest.mark.parametrize("intercept", [False, "regularized"])
def test_an_intercept_that_is_not_free_is_refused(files, intercept):
    kept, filled = both(files[0], "standard")
    words = r"left the shift of sparse rows to the intercept, which has to be free .* fit_intercept=True, .*'dense'"
    with pytest.raises(ParameterError, match=words):
        beeline.LogisticRegression(fit_intercept=intercept).fit(kept)
    beeline.LogisticRegression(fit_intercept=intercept).fit(filled)


def test_a_stream_of_such_rows_needs_a_free_intercept_too(files, tmp_path):
    beeline.convert(files[0], tmp_path / "s", scale="standard", layout="sparse")
    with pytest.raises(ParameterError, match="has to be free"):
        beeline.fit_stream(tmp_path / "s", loss="logistic", intercept="none")


def test_a_record_that_says_both_is_refused():
    ones = np.ones(2)
    with pytest.raises(DataError, match="not both"):
        Scaling("standard", ones, ones, ones)
    with pytest.raises(DataError, match="as many shifts"):
        Scaling("standard", None, ones, np.ones(3))
