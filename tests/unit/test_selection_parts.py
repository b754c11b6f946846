"""Folds, metrics, and where a path begins and ends."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import (
    balanced_accuracy_score,
    cohen_kappa_score,
    fbeta_score,
    make_scorer,
    mean_absolute_error,
)
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, StratifiedKFold

from beeline import from_arrays, select_C
from beeline.exceptions import ParameterError
from beeline.fitting import Settings, fit
from beeline.losses import get_loss
from beeline.objective import Objective
from beeline.query_measures import RankedQueries, query_measure
from beeline.regularizers import L1, L2
from beeline.selection.bounds import highest_C, lowest_C, null_C
from beeline.selection.folds import make_folds
from beeline.selection.scoring import METRICS, HeldOut, get_metric
from beeline.solvers.l1.l1_cd import L1CD
from beeline.solvers.newton.lockstep import LockstepNewton
from beeline.solvers.newton.newton import Newton


def labelled(n=90, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X @ rng.normal(size=d) + 1.0 * rng.normal(size=n) > 0.3, 1.0, -1.0)
    return X, y


# Folds


@pytest.mark.parametrize("how", [2, 5, 0.2, 0.35])
def test_rows_are_held_out_once_and_never_trained_on_then(how):
    labels = np.repeat([0.0, 1.0, 2.0], [50, 30, 20])
    folds = make_folds(how, labels, classes=True, seed=3)
    held = np.sum([fold.test for fold in folds], axis=0)
    assert held.max() == 1
    assert all(not np.any(fold.train & fold.test) and np.all(fold.train | fold.test) for fold in folds)
    if isinstance(how, int):
        assert len(folds) == how
        assert np.all(held == 1)
    for fold in folds:
        part = fold.test.sum() / 100
        for k in range(3):
            of_class = fold.test[labels == k].mean()
            assert abs(of_class - part) < 0.06, "classes are not spread evenly"


def test_the_seed_decides_and_only_the_seed():
    labels = np.tile([0.0, 1.0], 30)
    first, again, other = (make_folds(5, labels, classes=True, seed=seed)[0].test for seed in (1, 1, 2))
    assert_array_equal(first, again)
    assert np.any(first != other)


@pytest.mark.parametrize("how", [3, 0.3])
def test_groups_stay_whole(how):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 12, size=100)
    for fold in make_folds(how, rng.normal(size=100), classes=False, groups=groups):
        assert not set(groups[fold.train]) & set(groups[fold.test])
        assert fold.train.any()
        assert fold.test.any()


def test_folds_of_groups_have_about_the_same_size():
    groups = np.repeat(np.arange(30), np.arange(1, 31))
    sizes = [fold.test.sum() for fold in make_folds(5, np.zeros(len(groups)), classes=False, groups=groups)]
    assert max(sizes) - min(sizes) <= 15


@pytest.mark.parametrize("splitter", [KFold(3), StratifiedKFold(3), ShuffleSplit(2, random_state=0), LeaveOneOut()])
def test_splitters_of_scikit_learn(splitter):
    labels = np.tile([0.0, 1.0], 6)
    folds = make_folds(splitter, labels, classes=True)
    for fold, (train, test) in zip(folds, splitter.split(np.zeros((12, 1)), labels), strict=True):
        assert_array_equal(np.flatnonzero(fold.train), np.sort(train))
        assert_array_equal(np.flatnonzero(fold.test), np.sort(test))


def test_pairs_of_rows_or_masks():
    mask = np.arange(6) < 2
    (first, second) = make_folds([([0, 1], [2]), (~mask, mask)], np.zeros(6), classes=False)
    assert_array_equal(np.flatnonzero(first.train), [0, 1])
    assert_array_equal(second.test, mask)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (1, "between 2 and the number of rows"),
        (7, "between 2 and the number of rows, 6"),
        (1.5, "a part of the rows below 1"),
        ("five", "not 'five'"),
        ([], "at least one pair"),
        ([([0, 1], [1, 2])], "fold 0 trains on row 1 and holds it out"),
        ([([0, 1], [9])], "fold 0 must be a pair"),
        ([([0, 1], [])], "no rows to hold out"),
        ([([0.5], [1])], "whole numbers"),
    ],
)
def test_folds_that_cannot_be(how, message):
    with pytest.raises(ParameterError, match=message):
        make_folds(how, np.zeros(6), classes=False)


def test_more_folds_than_groups():
    with pytest.raises(ParameterError, match="3 folds need as many groups, and the rows have 2"):
        make_folds(3, np.zeros(6), classes=False, groups=np.array([0, 0, 0, 1, 1, 1]))


def test_a_splitter_that_refuses_is_quoted():
    with pytest.raises(ParameterError, match="cannot split these rows"):
        make_folds(KFold(9), np.zeros(6), classes=False)


# Metrics


def held_out(link="logistic", names=("no", "yes"), weights=None):
    rng = np.random.default_rng(5)
    outputs = 1 if names is None or len(names) == 2 else len(names)
    z = rng.normal(size=(40, outputs))
    labels = rng.normal(size=40) if names is None else rng.integers(0, len(names), size=40).astype(float)
    return HeldOut(labels, z, weights, None if names is None else np.array(names), link)


@pytest.mark.parametrize("weights", [None, np.arange(40) / 7])
@pytest.mark.parametrize(
    ("ours", "theirs", "names"),
    [
        ("accuracy", "accuracy", ("no", "yes")),
        ("auc", "roc_auc", ("no", "yes")),
        ("log_loss", "neg_log_loss", ("no", "yes")),
        ("log_loss", "neg_log_loss", ("a", "b", "c")),
        ("f1", "f1_macro", ("a", "b", "c")),
        ("rmse", "neg_root_mean_squared_error", None),
        ("mae", "neg_mean_absolute_error", None),
        ("r2", "r2", None),
    ],
)
def test_own_metrics_are_those_of_scikit_learn(ours, theirs, names, weights):
    rows = held_out("none" if names is None else "softmax" if len(names) > 2 else "logistic", names, weights)
    n_classes = None if names is None else len(names)
    own, scorer = get_metric(ours, n_classes, rows.link), get_metric(theirs, n_classes, rows.link)
    sign = 1 if own.greater_is_better else -1
    assert scorer.greater_is_better
    assert scorer.name == theirs
    assert_allclose(scorer.measure(rows), sign * own.measure(rows), rtol=1e-12)


def test_a_scorer_of_ones_own_sees_names_and_answers():
    rows = held_out()
    scorer = make_scorer(balanced_accuracy_score)
    predicted = np.where(rows.z[:, 0] > 0, "yes", "no")
    truth = np.array(["no", "yes"])[rows.labels.astype(int)]
    assert_allclose(get_metric(scorer, 2, "none").measure(rows), balanced_accuracy_score(truth, predicted))

    def hits(estimator, X, y):
        return float(np.sum(estimator.predict(X) == y))

    assert get_metric(hits, 2, "none").name == "hits"
    assert get_metric(hits, 2, "none").measure(rows) == np.sum(predicted == truth)


@pytest.mark.parametrize(
    ("n_classes", "link", "usual"), [(2, "none", "accuracy"), (3, "softmax", "log_loss"), (None, "none", "rmse")]
)
def test_the_usual_metric(n_classes, link, usual):
    assert get_metric(None, n_classes, link) is METRICS[usual]


def test_rankings_are_means_over_queries_wherever_their_rows_lie():
    rng = np.random.default_rng(2)
    queries, z, labels = rng.integers(0, 7, 40) * 10, rng.normal(size=(40, 1)), rng.integers(0, 3, 40).astype(float)
    rows = HeldOut(labels, z, None, None, "none", queries=queries)
    for text in ("ndcg@5", "ndcg@5:letor4", "map", "mrr", "precision@2", "recall@2", "mean_ndcg:letor4"):
        metric = get_metric(text, None, "none", queries=True)
        assert (metric.name, metric.greater_is_better) == (text, True)
        each = [
            RankedQueries(labels[queries == q], z[queries == q, 0], np.array([0, np.sum(queries == q)])).by_query(
                query_measure(text)
            )
            for q in np.unique(queries)
        ]
        assert metric.measure(rows) == pytest.approx(np.mean(each))


def test_precision_at_k_is_over_all_rows_where_there_are_no_queries():
    rng = np.random.default_rng(2)
    z, labels = rng.normal(size=(40, 1)), rng.integers(0, 2, 40).astype(float)
    rows = HeldOut(labels, z, None, np.array(["no", "yes"]), "none")
    first = np.argsort(-z[:, 0])[:9]
    assert get_metric("precision@9", 2, "none").measure(rows) == np.mean(labels[first])
    assert get_metric("recall@9", 2, "none").measure(rows) == np.sum(labels[first]) / np.sum(labels)
    queries = np.repeat([0, 1], 20)
    by_query = [np.mean(labels[q][np.argsort(-z[q, 0])[:9]]) for q in (queries == 0, queries == 1)]
    asked = get_metric("precision@9", 2, "none", queries=True)
    assert asked.measure(replace(rows, queries=queries)) == pytest.approx(np.mean(by_query))


def test_metrics_of_a_confusion_table():
    rows = held_out("none", ("a", "b", "c"), np.arange(40) / 7)
    truth, found = rows.numbers, rows.predicted
    more = {"sample_weight": rows.weights}
    for name, expected in (
        ("f2", fbeta_score(truth, found, beta=2, average="macro", **more)),
        ("f0.5", fbeta_score(truth, found, beta=0.5, average="macro", **more)),
        ("balanced_error", 1 - balanced_accuracy_score(truth, found, **more)),
        ("quadratic_kappa", cohen_kappa_score(truth, found, weights="quadratic", **more)),
        ("level_mae", mean_absolute_error(truth, found, **more)),
    ):
        assert get_metric(name, 3, "none").measure(rows) == pytest.approx(expected)
    assert not get_metric("balanced_error", 3, "none").greater_is_better


@pytest.mark.parametrize(
    ("metric", "n_classes", "queries", "message"),
    [
        ("ndcg@10", None, False, r"'ndcg@10' needs queries; give groups, one a row, or data with query ids \(qid:\)"),
        ("map", 2, False, "needs queries; give groups"),
        ("ndcg@10", 3, True, "needs queries, which this task does not have; take accuracy"),
        ("precision@3", None, False, "needs two classes, or queries, which this task does not have; take rmse"),
        ("ndcg@0", None, True, "a whole number from 1"),
        ("ndgc@10", None, True, "did you mean 'ndcg@10'"),
        ("f2", None, False, "needs classes"),
    ],
)
def test_metrics_of_rankings_that_do_not_fit(metric, n_classes, queries, message):
    with pytest.raises(ParameterError, match=message) as caught:
        get_metric(metric, n_classes, "none", queries=queries)
    assert caught.value.parameter == "metric"


@pytest.mark.parametrize(
    ("metric", "n_classes", "message"),
    [
        ("log_loss", 2, "needs probabilities, which this task does not have; take accuracy, f1, auc"),
        ("auc", 3, "needs two classes"),
        ("accuracy", None, "needs classes.*take rmse, mae, r2"),
        ("acuracy", 2, "there is no metric 'acuracy'; did you mean 'accuracy'"),
        (7, 2, "must be a name or a scorer"),
    ],
)
def test_metrics_that_do_not_fit(metric, n_classes, message):
    with pytest.raises(ParameterError, match=message):
        get_metric(metric, n_classes, "none")


# Where a path begins and ends


@pytest.mark.parametrize(("loss", "slope"), [("hinge", 1.0), ("logistic", 1.0), ("squared_hinge", 2.0)])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_lowest_is_that_of_the_paper(loss, slope, sparse):
    X, y = labelled()
    data = from_arrays(scipy.sparse.csr_matrix(X) if sparse else X)
    bound = 1 / (slope * len(y) * (X**2).sum(axis=1).max())
    found = lowest_C(Objective.of(data, y, np.ones(len(y)), get_loss(loss), L2(), intercept="none"))
    assert found <= bound < 2 * found
    assert math.log2(found).is_integer()


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_below_the_lowest_no_score_reaches_its_margin(loss):
    X, y = labelled()
    o = Objective.of(from_arrays(X), y, np.ones(len(y)), get_loss(loss), L2(), intercept="none")
    theta = Newton(tol=1e-12).run(o.with_strength(1 / lowest_C(o))).theta
    assert np.abs(X @ theta).max() < 1


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_with_l1_a_path_begins_where_all_weights_are_zero(intercept):
    X, y = labelled()
    o = Objective.of(from_arrays(X), y, np.ones(len(y)), get_loss("logistic"), L1(), intercept=intercept)
    C = null_C(o)
    assert not np.any(L1CD(tol=1e-10).run(o.with_strength(1 / C)).theta[:6])
    assert np.any(L1CD(tol=1e-10).run(o.with_strength(1 / (2.1 * C))).theta[:6])


def test_the_highest():
    assert highest_C(2.0**-30) == 2.0**10
    assert highest_C(2.0**10) == 2.0**30


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_theorem_8(loss):
    """‖∇f(w_{C/Δ}; C)‖/‖∇f(0; C)‖ tends to (Δ − 1)/Δ as C → 0 and to 0 as C → ∞."""
    X, y = labelled()
    o = Objective.of(from_arrays(X), y, np.ones(len(y)), get_loss(loss), L2(), intercept="none")
    for delta in (2.0, 3.0):
        ratios = {}
        for C in (1e-7, 1e7):
            before = Newton(tol=1e-14).run(o.with_strength(delta / C)).theta
            now = o.with_strength(1 / C)
            ratios[C] = np.linalg.norm(now.at(before).gradient) / np.linalg.norm(now.at().gradient)
        assert_allclose(ratios[1e-7], (delta - 1) / delta, rtol=1e-3)
        assert ratios[1e7] < 1e-6


@pytest.mark.parametrize("tol", [1e-14, 1e-2])
@pytest.mark.parametrize("delta", [2.0, 5.0])
def test_the_stop_ratio_needs_no_data(tol, delta):
    """∇f(w; ΔC) = (1 − Δ)w + Δr, with r = ∇f(w; C), whether w is an exact optimum or not; so goes lockstep."""
    X, y = labelled()
    C = 0.3
    form = Objective.of(from_arrays(X), y, np.full(len(y), C), get_loss("logistic"), L2(), intercept="none")
    w = Newton(tol=tol).run(form).theta
    later = form.with_costs(form.rows.scatter(np.full(len(y), delta * C)))
    residual = form.at(w).gradient
    assert_allclose((1 - delta) * w + delta * residual, later.at(w).gradient, rtol=1e-9, atol=1e-12)
    unit = form.with_costs(form.rows.scatter(np.ones(len(y))))
    lockstep = LockstepNewton([unit], [0])
    lockstep.move(0, w)
    before = lockstep.passes
    (ratio,) = lockstep.set_strength(1 / (delta * C))
    assert lockstep.passes == before
    computed = np.linalg.norm(later.at(w).gradient) / np.linalg.norm(later.at().gradient)
    assert_allclose(ratio, computed, rtol=1e-9)
    if tol < 1e-10:
        assert_allclose(np.linalg.norm(later.at(w).gradient), (delta - 1) * np.linalg.norm(w), rtol=1e-5)


@pytest.mark.parametrize("alpha", [None, "auto"])
def test_a_training_can_begin_from_an_earlier_search(alpha):
    X, y = labelled()
    settings = Settings(loss="squared_hinge", C="auto" if alpha is None else 1.0, alpha=alpha)
    searched = fit(from_arrays(X), settings, y)
    again = fit(from_arrays(X), settings, y, start=searched.selection)
    assert again.selection is searched.selection
    assert_array_equal(again.model.weights, searched.model.weights)
    assert again.model.settings == searched.model.settings
    found = again.model.settings["selection"]
    assert (found["metric"], found["folds"]) == ("accuracy", 5)
    assert (found["score"], found["candidates"]) == (searched.selection.best_score, len(searched.selection.curve))


@pytest.mark.parametrize("metric", ["neg_log_loss", "neg_mean_poisson_deviance"])
def test_a_scorer_that_does_not_fit(metric):
    X, y = labelled()
    with pytest.raises(ParameterError, match=f"the metric '{metric}' does not fit this task: .*[^.]$"):
        select_C(X, "hinge", y, metric=metric)
