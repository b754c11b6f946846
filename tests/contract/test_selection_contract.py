"""C="auto" for every loss of the registry."""

import numpy as np
import pytest
from loss_rows import CONVEX, learned_labels

from beeline import select_C
from beeline.losses import LOSSES, ScalarLoss
from beeline.selection.scoring import METRICS

X = np.random.default_rng(0).normal(size=(60, 4)) + 0.5
TILTED = {"quantile": (0.3,), "soft_quantile": (0.3,), "expectile": (0.8,)}
COSTS = [[0, 1, 3], [1, 0, 0.5], [2, 1.5, 0]]
JUDGED = {  # by what, where it is not by accuracy or by the root of the mean squared error
    "log_loss": {"logistic", "softmax"},
    "loss": {"poisson", "gamma", "tweedie", "cross_entropy", "quantile", "soft_quantile", "expectile", "novelty"},
}


def search(loss, y=None, **options):
    y = learned_labels(loss, X) if y is None else y
    if loss.labels == "none":
        options["intercept"] = "none"
    return select_C(X, loss, y, folds=3, **options)


def usual_metric(loss):
    for name, losses in JUDGED.items():
        if loss.name in losses:
            return name
    if loss.labels in ("sets", "vectors"):
        return "loss"
    if loss.labels == "levels":
        return "level_mae"
    if loss.name == "tree_logistic":  # a softmax where no tree is given
        return "log_loss"
    return "accuracy" if loss.classifies else "rmse"


# With L1, one loss for each solver and kind of labels does for all in the quick run.
QUICK = {
    "logistic",
    "hinge",
    "quantile",
    "poisson",
    "novelty",
    "softmax",
    "multilabel_logistic",
    "multivariate_squared",
}
SEARCHES = [pytest.param(name, "l2", id=f"{name}-l2") for name in CONVEX] + [
    pytest.param(name, "l1", id=f"{name}-l1", marks=() if name in QUICK else pytest.mark.slow) for name in CONVEX
]


@pytest.mark.filterwarnings("ignore:at no C:beeline.exceptions.ModelWarning")
@pytest.mark.parametrize(("name", "regularizer"), SEARCHES)
def test_every_loss(name, regularizer):
    loss = LOSSES[name](*TILTED.get(name, ()))
    found = search(loss, regularizer=regularizer, C_min=2.0**-6, C_max=4.0, delta=4.0)
    assert found.metric == usual_metric(loss)
    assert found.greater_is_better == METRICS[found.metric].greater_is_better
    scores = [point.score for point in found.curve]
    assert np.isfinite(scores).all()
    assert found.best_score == (max if found.greater_is_better else min)(scores)
    if "perceptron" in name:  # whose minimum is at zero weights whatever C is
        (concern,) = found.concerns
        assert "take another loss" in concern.sentence
    else:
        assert len(set(scores)) > 1
        assert found.start.weights.any()


@pytest.mark.filterwarnings("ignore:at no C:beeline.exceptions.ModelWarning")
@pytest.mark.parametrize("name", CONVEX)
def test_a_path_begins_where_weights_are_small(name):
    loss = LOSSES[name]()
    found = search(loss, metric="loss", on_point=lambda point: True)
    assert 2.0**-30 < found.curve[0].C <= 1
    scores = X @ found.start.weights
    width = loss.natural_width(float(np.std(learned_labels(loss, X))))
    assert np.abs(scores).max() <= 1.5 * width  # the mean of three folds, of two thirds of the rows each


@pytest.mark.parametrize("name", ["logistic", "softmax", "hinge", "crammer_singer", "weston_watkins", "quantile"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_loss_of_held_out_rows_is_the_loss(name, classes):
    loss, test = LOSSES[name](), np.arange(60) < 20
    y = learned_labels(loss, X)
    y = y % classes if loss.classifies and loss.labels == "classes" else y
    found = select_C(X, loss, y, folds=[(~test, test)], metric="loss", C_min=1.0, C_max=1.0, tol=1e-6)
    z = X[test] @ found.start.weights + found.start.intercepts
    if isinstance(loss, ScalarLoss):
        values = loss.value_and_grad(z[:, 0], np.where(y[test] > 0, 1.0, -1.0) if loss.classifies else y[test])[0]
    else:
        z = z if z.shape[1] > 1 else np.hstack([-0.5 * z, 0.5 * z])
        values = loss.value_and_grad(z, y[test].astype(float))[0]
    assert found.best_score == pytest.approx(values.mean(), rel=1e-9)


def test_weighted_rows_count_more():
    loss, test = LOSSES["poisson"](), np.arange(60) < 20
    y, weights = learned_labels(loss, X), np.random.default_rng(3).integers(1, 4, size=60).astype(float)
    once = {"folds": [(~test, test)], "C_min": 1.0, "C_max": 1.0, "tol": 1e-8}
    weighted = select_C(X, loss, y, sample_weight=weights, **once)
    rows = np.repeat(np.arange(60), weights.astype(int))
    repeated = select_C(X[rows], loss, y[rows], **(once | {"folds": [(~test[rows], test[rows])]}))
    assert weighted.best_score == pytest.approx(repeated.best_score, rel=1e-6)


@pytest.mark.parametrize("name", ["multiclass_margin", "scaled_multiclass_margin", "softmax_margin"])
def test_costs_of_mistakes_are_judged_by_the_loss(name):
    assert search(LOSSES[name](COSTS), C_min=1.0, C_max=1.0).metric == "loss"


def test_a_regression_under_a_link_is_judged_by_its_values():
    loss, test = LOSSES["poisson"](), np.arange(60) < 20
    y = learned_labels(loss, X)
    fixed = {"folds": [(~test, test)], "C_min": 1.0, "C_max": 1.0}
    found = select_C(X, loss, y, metric="mae", **fixed)
    predicted = np.exp(X[test] @ found.start.weights[:, 0] + found.start.intercepts[0])
    assert found.best_score == pytest.approx(np.abs(y[test] - predicted).mean(), rel=1e-9)
    theirs = select_C(X, loss, y, metric="neg_mean_absolute_error", **fixed)
    assert theirs.best_score == pytest.approx(-found.best_score, rel=1e-9)


def test_scikit_learn_judges_sets_of_labels():
    found = search(LOSSES["multilabel_logistic"](), metric="f1_macro", C_min=1.0, C_max=4.0)
    assert 0.3 < found.best_score < 1
