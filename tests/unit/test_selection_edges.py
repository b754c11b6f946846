"""The search for C where something is missing: rows without a weight, folds without a score, passes, half a path."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from beeline import Lasso, LinearModel, LogisticRegression, from_arrays, select_C
from beeline.exceptions import ConvergenceWarning, LabelError, ModelWarning, ParameterError
from beeline.fitting import Settings, fit
from beeline.losses import get_loss
from beeline.objective import Objective
from beeline.regularizers import L2
from beeline.selection import End, PathPoint, Selection
from beeline.solvers.newton.lockstep import ByPredictedDecrease, LockstepNewton


def rows(n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + 0.5 * rng.normal(size=n)


# Rows of weight zero


def test_rows_without_a_weight_are_not_there_in_a_regression():
    """Also where a user's own folds name them, and where their targets are out of all bounds."""
    X, y = rows()
    weight = np.where(np.arange(60) < 40, 1.0, 0.0)
    wild = np.where(weight > 0, y, 1e6)
    pairs = [(np.arange(20, 60), np.arange(20)), (np.r_[:20, 40:60], np.arange(20, 40))]
    few = [(np.arange(20, 40), np.arange(20)), (np.arange(20), np.arange(20, 40))]
    settings = {"search_epsilon": True, "C_min": 0.25, "C_max": 1.0, "delta": 4.0}
    there = select_C(X, "squared_epsilon_insensitive", wild, sample_weight=weight, folds=pairs, **settings)
    gone = select_C(X[:40], "squared_epsilon_insensitive", y[:40], folds=few, **settings)
    assert [p.epsilon for p in there.curve] == [p.epsilon for p in gone.curve]
    assert_allclose([p.score for p in there.curve], [p.score for p in gone.curve], rtol=1e-6)


@pytest.mark.parametrize(("train", "test"), [(slice(0, 40), slice(40, 60)), (slice(40, 60), slice(0, 40))])
def test_a_fold_of_rows_without_a_weight_is_refused(train, test):
    X, y = rows()
    weight = np.where(np.arange(60) < 40, 1.0, 0.0)
    pair = np.arange(60)[train], np.arange(60)[test]
    with pytest.raises(ParameterError, match=r"fold 0 (holds no rows out|has no rows to train on) that have a weight"):
        select_C(X, "squared", y, sample_weight=weight, folds=[pair])


def test_rows_without_a_weight_are_no_second_class():
    X, _ = rows()
    classes, weight = (np.arange(60) < 30).astype(int), np.ones(60)
    weight[:10] = 0.0
    with pytest.raises(LabelError, match="fold 0 trains on have only one class"):
        select_C(X, "hinge", classes, sample_weight=weight, folds=[(np.r_[:10, 30:50], np.r_[10:30, 50:60])])


# Folds without a score


def test_a_metric_without_a_value_is_said():
    X, _ = rows()
    groups = np.repeat(np.arange(6), 10)
    one_class_each = groups % 2
    with pytest.raises(ParameterError, match="the metric 'auc' has no value for the rows that fold 0 holds out"):
        select_C(X, "logistic", one_class_each, metric="auc", groups=groups, folds=6, C_max=1.0)


@pytest.mark.parametrize("rule", ["best", "one_se"])
def test_a_curve_without_any_score_has_a_first_point(rule):
    curve = tuple(PathPoint(C, (math.nan, 0.5), (1.0, 1.0), 0.1, 1.0, math.nan) for C in (1.0, 2.0))
    assert Selection(curve, "auc", True, End.LIMIT, 0.01, rule).best is curve[0]


# Passes


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_pass_limit_is_kept_and_said(loss):
    X, y = rows(d=20)
    with pytest.warns(ConvergenceWarning, match=r"5 trainings .* ended before .* raise max_passes \(now 2\)") as caught:
        select_C(X * np.logspace(0, 4, 20), loss, y > 0, max_passes=2, C_min=1.0, C_max=2.0, tol=1e-9)
    assert len(caught) == 1


def test_one_training_is_not_many():
    X, y = rows(d=20)
    with pytest.warns(ConvergenceWarning, match=r"^a training at the best C, 1, ended before the tolerance;"):
        select_C(X, "hinge", y > 0, folds=0.3, max_passes=1, C_min=1.0, C_max=1.0, tol=1e-9)


def test_an_estimator_limits_its_search_too():
    X, y = rows(d=20)
    with pytest.warns(
        ConvergenceWarning, match=r"ended before|pass limit"
    ):  # of the search, of the last training, or both
        model = LogisticRegression(C="auto", max_passes=1).fit(X * np.logspace(0, 4, 20), y > 0)
    assert any(point.unsolved for point in model.selection_.curve)


def test_what_rounding_stops_is_no_pass_limit():
    """Nothing lowers J any more, and the tolerance is out of reach: more passes would not help."""
    X, y = rows()
    o = Objective.of(from_arrays(X), np.where(y > 0, 1.0, -1.0), np.ones(60), get_loss("logistic"), L2())
    newton = LockstepNewton([o], [0], ByPredictedDecrease(1e-300))
    newton.set_strength(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        newton.solve(max_passes=300)
    assert newton.passes < 310
    assert newton.points[0].gradient_norm < 1e-10


# A path on disk


def test_a_finished_path_tells_the_same_tolerance_and_the_same_warning(tmp_path):
    X, _ = rows(d=20)
    classes = (np.arange(60) < 12).astype(int)
    settings = {"resume": tmp_path / "path", "max_passes": 2, "C_min": 1.0, "C_max": 2.0, "tol": 1e-3, "stop": "paper"}
    with pytest.warns((ConvergenceWarning, ModelWarning)) as one:
        first = select_C(X * np.logspace(0, 4, 20), "logistic", classes, **settings)
    with pytest.warns((ConvergenceWarning, ModelWarning)) as other:
        again = select_C(X * np.logspace(0, 4, 20), "logistic", classes, **settings)
    assert len(one) == 2
    assert [str(w.message) for w in other] == [str(w.message) for w in one]
    assert again.stop_tol == first.stop_tol < 1e-3
    assert [p.unsolved for p in again.curve] == [p.unsolved for p in first.curve]


def test_a_path_knows_the_last_rows_too(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = X[:, 0] > 0
    select_C(X, "squared_hinge", y, resume=tmp_path / "path", C_min=1.0, C_max=1.0)
    X[1200:] *= 2
    with pytest.raises(ParameterError, match="differs in its labels, weights, folds and rows"):
        select_C(X, "squared_hinge", y, resume=tmp_path / "path", C_min=1.0, C_max=1.0)


# What is said


@pytest.mark.parametrize("option", ["alpha", "C", "probability"])
def test_what_a_search_has_no_use_for_is_refused(option):
    X, y = rows()
    with pytest.raises(ParameterError, match=f"select_C has no option '{option}'"):
        select_C(X, "logistic", y > 0, **{option: 1.0})


def test_a_search_gives_its_strength_whatever_alpha_says():
    X, y = rows()
    selection = select_C(X, "squared", y, C_max=1.0)
    data = from_arrays(X)
    by_C, by_alpha = (
        fit(data, settings, y, start=selection).model
        for settings in (Settings(loss="squared"), Settings(loss="squared", alpha=0.1))
    )
    assert_allclose(by_alpha.weights, by_C.weights, rtol=1e-10)
    assert by_alpha.settings["alpha"] == pytest.approx(1 / (selection.best_C * 60))


# The same bits


def test_threads_do_not_show_where_problems_share_transposed_rows(same_bits):
    """Whichever problem makes the transposed matrix first, gradients are those of the rows as they lie."""
    rng = np.random.default_rng(1)
    n = 10_000
    S = scipy.sparse.random(n, 4000, 0.005, "csr", random_state=rng)
    o = Objective.of(from_arrays(S), np.where(rng.random(n) < 0.5, 1.0, -1.0), np.ones(n), get_loss("logistic"), L2())
    alone = o.at(theta := rng.normal(size=o.size)).gradient
    point = o.at(theta)
    point.hessian_product(theta)
    assert_array_equal(point.gradient, alone)
    labels = np.arange(n) % 3
    same_bits(lambda: LogisticRegression(multi_class="ovr", solver="newton").fit(S, labels).coef_)


def test_a_search_over_separable_classes_ends_at_a_sane_c_and_says_so():
    rng = np.random.default_rng(0)
    c = rng.choice([0.0, 1.0], 300)
    with pytest.warns(ModelWarning, match=r"the classes are separable: at C = .* held-out rows are told without"):
        model = LogisticRegression(C="auto").fit(np.c_[c, rng.normal(size=300)], c == 1)
    assert model.C_ < 1e4
    assert "small beside others" not in str(model.report_.concerns)
    assert model.score(np.c_[c, rng.normal(size=300)], c == 1) == 1


def test_a_search_speaks_of_the_parameter_that_was_given():
    X = np.random.default_rng(0).normal(size=(100, 3))
    lasso = Lasso(alpha="auto").fit(X, X[:, 0])
    assert f"at alpha = {lasso.alpha_:.6g}, " in lasso.selection_.sentence
    assert " at C = " not in lasso.selection_.sentence


@pytest.mark.parametrize(("loss", "regularizer", "n_classes"), [("softmax", "l2", 5), ("squared_hinge", "l2", 3)])
def test_a_gradient_that_is_rounding_tells_no_c(loss, regularizer, n_classes):
    X, y = np.full((60, 3), 0.1), np.arange(60) % n_classes
    with warnings.catch_warnings(action="ignore", category=ModelWarning):  # that there is nothing to learn
        model = LinearModel(loss, regularizer, C="auto").fit(X, y)
    assert model.C_ <= 1  # and not 1e30, by what rounding leaves of a gradient that is zero
    assert model.report_.gap < 1e-4
