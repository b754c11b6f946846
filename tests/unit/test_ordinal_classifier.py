"""The classifier of levels: predictions by thresholds, orders of names, probabilities, searches and files."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import beeline
from beeline import LinearModel, LogisticRegression, Model, OrdinalClassifier
from beeline.exceptions import LabelError, ModelWarning, ParameterError

LOSSES = ["immediate_threshold", "all_threshold", "immediate_threshold_hinge", "all_threshold_hinge", "level_pairs"]
NAMES = np.array(["poor", "fair", "good", "fine"])
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(160, 4))
LEVELS = np.digitize(X @ [2.0, -1.0, 0.5, 0.0] + 0.7 * RANDOM.normal(size=160), [-2.0, 0.0, 2.0])
Y = NAMES[LEVELS]


def fitted(loss, X=X, y=Y, weights=None, **settings):
    given = {"levels": NAMES.tolist(), "C": 2.0, "tol": 1e-6} | settings
    return OrdinalClassifier(loss, **given).fit(X, y, weights)


@pytest.mark.parametrize("loss", LOSSES)
def test_predictions_are_by_thresholds(loss, tmp_path):
    model = fitted(loss)
    z, thresholds = X @ model.coef_[0], model.thresholds_
    assert model.classes_.tolist() == NAMES.tolist()
    assert np.all(np.diff(thresholds) >= 0)
    np.testing.assert_allclose(model.position(X), z, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), NAMES[(z[:, None] > thresholds).sum(axis=1)])
    scores = model.decision_function(X)
    np.testing.assert_allclose(np.diff(scores, axis=1), z[:, None] - thresholds, atol=1e-10)
    assert model.score(X, Y) > 0.6
    assert model.report_.gap <= 1e-6
    model.model_.save(tmp_path / "m.beeline")
    again = Model.load(tmp_path / "m.beeline")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.extra, thresholds)
    assert again.loss_settings["levels"] == NAMES.tolist()
    np.testing.assert_array_equal(again.label_numbers(Y), LEVELS)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_wherever_rows_are(loss, tmp_path):
    model = fitted(loss)
    sparse = fitted(loss, sp.csr_array(X))
    np.testing.assert_allclose(sparse.coef_, model.coef_, atol=1e-3)
    store = beeline.convert(beeline.from_arrays(X, LEVELS.astype(float)), tmp_path / "store")
    on_disk = OrdinalClassifier(loss, C=2.0, tol=1e-6, memory="200K").fit(store)
    np.testing.assert_allclose(on_disk.coef_, model.coef_, atol=1e-3)
    agree = NAMES[on_disk.predict(X).astype(int)] == model.predict(X)
    assert agree.mean() > 0.98


@pytest.mark.parametrize("loss", LOSSES)
def test_only_the_order_of_levels_matters(loss):
    """Numbers far apart, names with an order and names in alphabetical order are the same levels."""
    named = fitted(loss)
    for y in (np.array([-3, 5, 6, 100])[LEVELS], np.array(["a", "b", "c", "d"])[LEVELS]):
        order = np.unique(y).tolist()
        other = OrdinalClassifier(loss, levels=order, C=2.0, tol=1e-6).fit(X, y)
        np.testing.assert_array_equal(other.coef_, named.coef_)
        np.testing.assert_array_equal(other.thresholds_, named.thresholds_)


@pytest.mark.parametrize("estimator", [OrdinalClassifier("all_threshold"), LinearModel("all_threshold")])
def test_categories_in_an_order_are_levels_in_it(estimator):
    """Those without rows are none; levels that are named go before."""
    pandas = pytest.importorskip("pandas")
    y = pandas.Categorical(Y, categories=["worst", *NAMES], ordered=True)
    for given in (y, pandas.Series(y)):
        model = estimator.fit(X, given)
        assert model.classes_.tolist() == NAMES.tolist()
        assert model.model_.loss_settings["levels"] == NAMES.tolist()
    if isinstance(estimator, OrdinalClassifier):
        assert OrdinalClassifier(levels=NAMES[::-1].tolist()).fit(X, y).classes_.tolist() == NAMES[::-1].tolist()
        for named in (pandas.Series(NAMES), pandas.Index(NAMES)):
            assert OrdinalClassifier(levels=named).fit(X, Y).classes_.tolist() == NAMES.tolist()
    with pytest.warns(ModelWarning, match="taken by the alphabet: 'fair', 'fine', 'good', 'poor'; give levels, all"):
        estimator.fit(X, pandas.Series(Y).astype("category"))


def test_an_order_that_nothing_tells_is_warned_of():
    said = "the labels are texts, which have no order of their own"
    with pytest.warns(ModelWarning, match=said) as caught:
        model = OrdinalClassifier(C="auto", cv=2).fit(X, Y)
    assert len([one for one in caught if said in str(one.message)]) == 1
    assert said in model.report_.concerns[0]
    with pytest.warns(ModelWarning, match=said):
        beeline.select_C(X, "all_threshold", Y, folds=2, intercept="none")
    OrdinalClassifier().fit(X[LEVELS < 2], Y[LEVELS < 2])  # of two levels, either order is as good


def test_numbers_that_are_written_as_texts_are_in_the_order_of_numbers():
    y = np.array(["0", "5", "10", "2.5e1"])[LEVELS]
    assert OrdinalClassifier().fit(X, y).classes_.tolist() == ["0", "5", "10", "2.5e1"]


@pytest.mark.parametrize("levels", [[0.5, 1, 1.5, 2], ["0.5", "1.0", "1.5", "2.0"], np.arange(1, 5) / 2])
def test_half_stars_are_levels_where_they_are_named(levels, tmp_path):
    y = (LEVELS + 1) / 2
    wanted = fitted("all_threshold")
    model = OrdinalClassifier("all_threshold", levels=levels, C=2.0, tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(model.coef_, wanted.coef_)
    assert model.classes_.tolist() == [0.5, 1.0, 1.5, 2.0]
    assert model.score(X, y) == wanted.score(X, Y)
    model.model_.save(tmp_path / "m.beeline")
    assert beeline.evaluate(tmp_path / "m.beeline", X, y).measures["accuracy"] == model.score(X, y)
    by_set = OrdinalClassifier("all_threshold", levels=levels, C=2.0, tol=1e-6).fit(beeline.from_arrays(X, y))
    np.testing.assert_array_equal(by_set.coef_, wanted.coef_)
    for loss in ("all_threshold", OrdinalClassifier()._loss()):
        with pytest.raises(LabelError, match=r"name all of them, the lowest first: levels=\[0.5, 1, 1.5\]"):
            LinearModel(loss).fit(X, y)
        with pytest.raises(
            LabelError, match=r"row 0 has the label \d.\d, which is no whole number; .* give levels, all"
        ):
            LinearModel(loss).fit(beeline.from_arrays(X, np.append(0.5, y[1:])))
    with pytest.raises(LabelError, match=r"the label 2\.0 is none of the levels, which are 0\.5"):
        OrdinalClassifier(levels=levels[:3]).fit(X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_repetition(loss):
    times = RANDOM.integers(0, 4, len(X))
    weights = times / (times[times > 0].mean() if loss == "level_pairs" else 1.0)
    one, other = fitted(loss, weights=weights), fitted(loss, np.repeat(X, times, axis=0), np.repeat(Y, times))
    np.testing.assert_allclose(one.coef_, other.coef_, atol=2e-3)
    np.testing.assert_allclose(one.thresholds_, other.thresholds_, atol=5e-3)


def test_probabilities():
    every, neighbours = fitted("all_threshold"), fitted("immediate_threshold")
    p = every.predict_proba(X)
    above = 1 - np.cumsum(p, axis=1)[:, :-1]
    np.testing.assert_allclose(above, 1 / (1 + np.exp(every.thresholds_ - every.position(X)[:, None])), atol=1e-12)
    p = neighbours.predict_proba(X)
    apart = neighbours.position(X)[:, None] - neighbours.thresholds_
    np.testing.assert_allclose(p[:, 1:] / p[:, :-1], np.exp(apart), rtol=1e-9)
    for model in (every, neighbours):
        p = model.predict_proba(np.vstack([X, 1e3 * X]))
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert (p >= 0).all()
    with pytest.raises(AttributeError, match="take one with probabilities, such as 'all_threshold'"):
        fitted("level_pairs").predict_proba(X)


@pytest.mark.parametrize("loss", ["immediate_threshold", "all_threshold"])
def test_of_two_levels_it_is_logistic_regression(loss):
    y = LEVELS > 1
    model = OrdinalClassifier(loss, C=2.0, tol=1e-9).fit(X, y)
    flat = LogisticRegression(C=2.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_, flat.coef_, atol=1e-4)
    np.testing.assert_allclose(-model.thresholds_, flat.intercept_, atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(X), flat.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] - model.thresholds_[0], atol=1e-12)


@pytest.mark.parametrize(
    "loss", [pytest.param(loss, marks=pytest.mark.slow if "hinge" in loss else ()) for loss in LOSSES]
)
def test_a_search_goes_by_how_many_levels_off(loss):
    model = fitted(loss, C="auto", cv=2, tol=1e-3)
    found = model.selection_
    assert (found.metric, found.greater_is_better) == ("level_mae", False)
    assert found.best_score < found.null_score
    alone = beeline.select_C(X, model._loss(), Y, folds=3, C_min=1.0, C_max=1.0, intercept="none", tol=1e-7)
    from beeline.selection.folds import make_folds

    for fold, score in zip(make_folds(3, LEVELS, classes=True, seed=0), alone.curve[0].fold_scores, strict=True):
        part = fitted(loss, X[fold.train], Y[fold.train], C=1.0, tol=1e-7)
        predicted = [NAMES.tolist().index(name) for name in part.predict(X[fold.test])]
        assert score == pytest.approx(np.abs(predicted - LEVELS[fold.test]).mean(), abs=0.04)


def test_evaluation_by_levels():
    model = fitted("immediate_threshold")
    found = beeline.evaluate(model, X, Y).measures
    predicted = np.array([NAMES.tolist().index(name) for name in model.predict(X)])
    assert found["level_mae"] == pytest.approx(np.abs(predicted - LEVELS).mean())
    from sklearn.metrics import cohen_kappa_score

    assert found["quadratic_kappa"] == pytest.approx(cohen_kappa_score(LEVELS, predicted, weights="quadratic"))
    assert "level_mae" not in beeline.evaluate(LogisticRegression().fit(X, Y), X, Y).measures


def test_models_of_the_same_levels_in_another_order_are_compared():
    levels, flat = fitted("immediate_threshold"), LogisticRegression().fit(X, Y)
    differences = beeline.evaluate(levels, X, Y, against=flat).against.differences
    assert differences[0][:3] == ("accuracy", levels.score(X, Y), flat.score(X, Y))
    of_own = flat.predict_proba(X)[np.arange(len(Y)), np.searchsorted(flat.classes_, Y)]
    assert differences[1].other == pytest.approx(-np.log(of_own).mean())


def test_two_levels_in_another_order_are_compared_by_the_same_one():
    """Queries of rows are ranked by the same level, whichever of the two is the higher."""
    y, queries = np.where(LEVELS > 1, "a", "b"), np.arange(160) // 8
    up, down = (OrdinalClassifier(levels=levels).fit(X, y) for levels in (["a", "b"], ["b", "a"]))
    found = beeline.evaluate(up, X, y, groups=queries, against=down).against
    assert found.unit == "query"
    assert all(one.difference == pytest.approx(0, abs=1e-9) for one in found.differences)


@pytest.mark.parametrize("loss", ["all_threshold", "all_threshold_hinge", "immediate_threshold_hinge", "level_pairs"])
def test_levels_are_told_from_the_rest(loss):
    """Also without probabilities, where the score of a level rises or falls with z, whatever level is meant."""
    random = np.random.default_rng(0)
    z = random.normal(size=600)
    rows, y = np.c_[3 * z, random.normal(size=600)], np.digitize(z, [-0.5, 0.5])
    found = beeline.evaluate(OrdinalClassifier(loss, C=10.0).fit(rows, y), rows, y).measures
    assert min(found["accuracy"], found["auc_macro"], found["average_precision_macro"]) > 0.98


def test_pairs_with_other_costs():
    """What costs more is told better: the highest level, where only pairs with it cost anything."""
    costs = np.zeros((4, 4))
    costs[:3, 3] = costs[3, :3] = 1.0
    model = fitted("level_pairs", costs=costs, C=100.0)
    assert model.model_.loss_settings["costs"] == costs.tolist()
    best = np.mean((model.predict(X) == "fine") == (Y == "fine"))
    assert best >= np.mean((fitted("level_pairs", C=100.0).predict(X) == "fine") == (Y == "fine"))


def test_a_warm_start_and_onward():
    model = fitted("all_threshold", warm_start=True, tol=1e-8)
    thresholds = model.thresholds_
    again = model.set_params(tol=1e-6).fit(X, Y)
    assert again.results_[0].iterations <= 2
    np.testing.assert_allclose(again.thresholds_, thresholds, atol=1e-3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fitted("all_threshold", levels=["poor", "good"]), LabelError, "'fair' is none of the levels"),
        (lambda: fitted("all_threshold", levels=[*NAMES, "best"]), LabelError, "no row .* has the level 'best'"),
        (lambda: fitted("all_threshold", y=np.full(160, "fair")), LabelError, "only one class, fair"),
        (lambda: fitted("all_threshold", costs="unit"), ParameterError, "costs has no meaning without loss='level_"),
        (lambda: fitted("level_pairs", costs=[[0, 1], [1, 0]]), ParameterError, "2 × 2 numbers, but there are 4"),
        (lambda: fitted("level_pairs", costs=np.triu(np.ones((4, 4)), 1)), ParameterError, "all zero below the diag"),
        (lambda: fitted("level_pairs", costs=np.tril(np.ones((4, 4)), -1)), ParameterError, "all zero above the diag"),
        (lambda: fitted("hinge"), ParameterError, "loss must be"),
        (
            lambda: LinearModel("all_threshold", probability=True).fit(X, Y),
            ParameterError,
            "probability has no meaning",
        ),
        (
            lambda: LinearModel("all_threshold", fit_intercept="regularized").fit(X, Y),
            ParameterError,
            "in the place of",
        ),
        (lambda: LinearModel("all_threshold", multi_class="ovr").fit(X, Y), ParameterError, "multi_class|multiclass"),
        (lambda: LinearModel("all_threshold", solver="newton").fit(X, LEVELS), ParameterError, "curvature"),
    ],
)
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("loss", ["all_threshold", "immediate_threshold"])
def test_an_onnx_graph_has_the_probabilities(loss, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    model = fitted(loss)
    model.model_.to_onnx(tmp_path / "m.onnx", "float64")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    names = [one.name for one in session.get_outputs()]
    found = dict(zip(names, session.run(None, {session.get_inputs()[0].name: X}), strict=True))
    np.testing.assert_array_equal(found["label"], model.predict(X))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-12)
