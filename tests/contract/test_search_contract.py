"""What a search for C promises for every loss: offsets, scales and the order of rows do not matter."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from loss_rows import CONVEX, learned_labels
from sklearn.datasets import load_diabetes

from beeline import LinearModel, from_arrays, select_C
from beeline.exceptions import ModelWarning
from beeline.losses import LOSSES
from beeline.objective import Objective
from beeline.objective.residual_correlation import feature_spreads, residual_correlation
from beeline.regularizers import L2
from beeline.solvers.auto import choose_solver

N = 120
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 4)) * [3, 1, 1, 1]
OF_ROW = np.arange(N) % 3
FOLDS = [(np.flatnonzero(k != OF_ROW), np.flatnonzero(k == OF_ROW)) for k in range(3)]
NUMBERS = [name for name, kind in CONVEX.items() if kind().labels in ("real", "vectors") and kind().link == "none"]
RATES = [name for name, kind in CONVEX.items() if kind().link == "exp"]
# Their solvers take seconds to the digits that are compared here.
SLOW = {
    "weston_watkins",
    "multiclass_margin",
    "scaled_multiclass_margin",
    "crammer_singer",
    "hinge",
    "multilabel_hinge",
    "tree_margin",
    "all_threshold_hinge",
    "immediate_threshold_hinge",
}


def marked(names):
    return [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in names]


def scores(loss, rows, y, folds=FOLDS):
    """(the scores of the mean of the folds' models at the best C, the search)."""
    intercept = "none" if loss.labels == "none" or loss.differences_only else "free"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # a perceptron's
        found = select_C(rows, loss, y, folds=folds, tol=1e-8 if loss.smooth else 1e-5, intercept=intercept)
    return rows @ found.start.weights + found.start.intercepts, found


def assert_same(one, other, loss):
    size = np.abs(one - one.mean(axis=0)).max() or 1.0
    np.testing.assert_allclose(other, one, atol=(1e-3 if loss.smooth else 2e-2) * size)


@pytest.mark.parametrize("name", marked(CONVEX))
def test_scales_and_order_do_not_matter(name):
    loss = LOSSES[name]()
    y = learned_labels(loss, X)
    plain, found = scores(loss, X, y)
    for factor in (1e-3, 1e3):
        scaled, again = scores(loss, factor * X, y)
        assert_same(plain, scaled, loss)
        if "perceptron" not in name:  # whose weights are zero at any C
            assert again.best_C == pytest.approx(found.best_C / factor**2)
    order = np.random.default_rng(0).permutation(N)
    place = np.argsort(order)
    mixed, _ = scores(loss, X[order], y[order], [(place[train], place[test]) for train, test in FOLDS])
    assert_same(plain, mixed[place], loss)


@pytest.mark.parametrize("name", NUMBERS)
def test_an_offset_of_the_targets_does_not_matter(name):
    loss = LOSSES[name]()
    y = learned_labels(loss, X)
    plain, _ = scores(loss, X, y)
    moved, _ = scores(loss, X, y + 1e6)
    assert_same(plain, moved - 1e6, loss)


@pytest.mark.parametrize("name", RATES)
def test_the_unit_of_rates_does_not_matter(name):
    loss = LOSSES[name]()
    y = learned_labels(loss, X)
    plain, _ = scores(loss, X, y)
    moved, _ = scores(loss, X, 1000 * y)
    assert_same(plain, moved - np.log(1000), loss)


@pytest.mark.parametrize("loss", ["squared", "huber", "squared_epsilon_insensitive", "absolute", "quantile"])
def test_an_offset_costs_no_score(loss):
    rows, y = load_diabetes(return_X_y=True)
    rows = rows / rows.std(axis=0)
    held = np.arange(len(y)) % 3 == 0
    model = LinearModel(loss, C="auto").fit(rows[~held], y[~held] + 1e6)
    assert model.score(rows[held], y[held] + 1e6) > 0.35


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_a_model_no_better_than_none_is_said(loss):
    rng = np.random.default_rng(0)
    noise, y = rng.normal(size=(90, 6)), rng.normal(size=90)
    with pytest.warns(ModelWarning, match=r"at no C of .* was the .* better than that of the intercept alone"):
        found = select_C(noise, loss, y if loss == "squared" else y > 0.3, folds=FOLDS_OF_90)
    assert any(concern.warning is ModelWarning for concern in found.concerns)


FOLDS_OF_90 = [(np.flatnonzero(np.arange(90) % 3 != k), np.flatnonzero(np.arange(90) % 3 == k)) for k in range(3)]


@pytest.mark.parametrize("factor", [1e3, 1e5])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared", "huber", "absolute"])
def test_a_column_in_larger_units_hides_nothing(loss, factor):
    """Its weight is learned at a C that is factor² smaller; the path goes on until the others are heard."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(600, 3)), factor * rng.lognormal(size=600)])
    z = rows[:, :3].sum(axis=1) + 0.5 * np.log(rows[:, 3] / factor)
    y = z if loss in NUMBERS else z + 0.3 * rng.logistic(size=600) > 0
    model = LinearModel(loss, C="auto").fit(rows[:400], y[:400])
    assert model.score(rows[400:], y[400:]) > 0.85


def test_outliers_among_held_out_rows_are_no_reason_to_doubt():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 5))
    y = 3 * rows[:, 0] - rows[:, 1] + 0.1 * rng.normal(size=300)
    y[:9] += 1e5
    model = LinearModel("huber", C="auto", scoring="mae").fit(rows, y)
    assert model.score(rows[9:], y[9:]) > 0.99
    assert model.report_.concerns == ()


@pytest.mark.parametrize("scale", [1e2, 1e5, 1e6, 1e7])
@pytest.mark.parametrize("loss", ["huber", "log_cosh", "soft_epsilon_insensitive"])
def test_targets_far_beyond_the_curve_of_a_loss(loss, scale):
    """Where all losses are straight, no curvature says where to go."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 5))
    y = scale * (rows[:, 0] + 0.1 * rng.normal(size=300))
    model = LinearModel(loss, C="auto").fit(rows, y)
    assert model.score(rows, y) > 0.97
    assert model.report_.concerns == ()


@pytest.mark.parametrize("seed", range(5))
def test_one_long_row_does_not_make_scores_of_its_own(seed):
    """It is in the Hessian that all folds share, and held out by one: whose score must be that of its own model."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(200, 8))
    y = rows @ rng.normal(size=8) / 3 + 0.5 * rng.normal(size=200)
    rows[7] *= 1e3
    folds = [(np.flatnonzero(np.arange(200) % 5 != k), np.flatnonzero(np.arange(200) % 5 == k)) for k in range(5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        found = select_C(rows, "squared", y, folds=folds)
        exact = LinearModel("squared", C=found.best_C, tol=1e-10)
        errors = [y[test] - exact.fit(rows[train], y[train]).predict(rows[test]) for train, test in folds]
    assert np.mean([np.sqrt(np.mean(e**2)) for e in errors]) < 1.3 * found.best_score


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_weights_have_not_settled_while_their_gradient_is_large(loss):
    """A row 10,000 times as long makes J nearly all loss at first: no step promises much, and all is to be learned."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 8))
    y = rows @ rng.normal(size=8) / 3 + 0.5 * rng.normal(size=200) > 0
    rows[7] *= 1e4
    assert LinearModel(loss, C="auto", scoring="accuracy").fit(rows, y).score(rows, y) > 0.8


@pytest.mark.parametrize("seed", range(4))
def test_a_rare_class_that_is_never_predicted_is_said(seed):
    """A better loss, at this C or another, is no better score."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(400, 5))
    y = rows[:, 0] + 1.5 * rng.normal(size=400) > 2.8
    with pytest.warns(ModelWarning, match="at no C of .* was the accuracy"):
        found = select_C(rows, "squared_hinge", y)
    assert found.best_score <= found.null_score


def test_a_held_out_row_far_out_gets_the_score_of_the_exact_model():
    rng = np.random.default_rng(41)
    rows = rng.standard_t(1.5, size=(150, 3))
    y = (rows - rows.mean(0)) / rows.std(0) @ rng.normal(size=3) + rng.normal(size=150)
    fold = rng.permutation(150) % 3
    folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
    found = select_C(rows, "squared", y, folds=folds)
    errors = []
    for train, test in folds:
        mean, level = rows[train].mean(0), y[train].mean()
        centred = rows[train] - mean
        w = np.linalg.solve(centred.T @ centred + np.eye(3) / found.best_C, centred.T @ (y[train] - level))
        errors.append(np.sqrt(np.mean(((rows[test] - mean) @ w + level - y[test]) ** 2)))
    assert found.best_score == pytest.approx(np.mean(errors), rel=0.01)


@pytest.mark.parametrize("loss", ["crammer_singer", pytest.param("hinge", marks=pytest.mark.slow)])
def test_a_plateau_of_accuracy_is_not_the_end_while_the_loss_falls(loss):
    rng = np.random.default_rng(1)
    centres, y = 0.6 * rng.normal(size=(50, 40)), rng.integers(0, 50, 2000)
    found = select_C(centres[y] + rng.normal(size=(2000, 40)), loss, y)
    losses = [point.loss for point in found.curve]
    assert losses[-2] - losses[-1] < 0.02 * losses[0]


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive", "absolute"])
def test_rows_at_their_kinks_leave_nothing_to_be_told(loss):
    """Which slope a kink has, only the optimum knows: those that the loss gives would keep a path going for ever."""
    rng = np.random.default_rng(0)
    rows = (rng.uniform(size=(400, 60)) < 0.1).astype(float)
    z = rows @ rng.normal(size=60) + 0.8 * rng.normal(size=400)
    y = np.where(z > 0, 1.0, -1.0) if loss == "hinge" else z
    o = Objective.of(from_arrays(rows), y, np.ones(400), LOSSES[loss](), L2(), 1e-6)
    point = o.at(choose_solver(o, tol=1e-5).run(o).theta)
    assert residual_correlation(point, feature_spreads(o)) < 1e-8
