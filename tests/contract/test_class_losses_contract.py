"""Every loss of classes reaches its tolerance, for few classes and many, with any intercept."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from beeline import LinearModel
from beeline.losses import LOSSES, MulticlassMargin, ScaledMulticlassMargin

COSTLY = {"margin costs": MulticlassMargin, "slack costs": ScaledMulticlassMargin}
NAMES = [*(name for name, kind in LOSSES.items() if kind.labels == "classes"), *COSTLY]
A_CLASS, D = 6, 8  # rows, features
MANY = 105


def loss_of(name, k):
    if name not in COSTLY:
        return LOSSES[name]()
    costs = np.random.default_rng(k).integers(1, 5, size=(k, k)).astype(float)
    np.fill_diagonal(costs, 0.0)
    return COSTLY[name](costs)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("intercept", [True, "regularized", False])
@pytest.mark.parametrize("k", [2, 7, 26, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::beeline.exceptions.ModelWarning")  # a perceptron has none but the worthless
def test_reaches_its_tolerance(name, k, intercept):
    X, y = make_blobs(A_CLASS * k, centers=k, n_features=D, cluster_std=2.0, random_state=0)
    model = LinearModel(loss_of(name, k), fit_intercept=intercept).fit(X / np.abs(X).max(), y)
    assert model.report_.status == "converged"
    assert model.report_.gap <= model.tol


@pytest.mark.parametrize("name", ["softmax", "softmax_margin", "crammer_singer", "multiclass_margin", "margin costs"])
def test_many_classes_are_told_apart(name):
    X, y = make_blobs(A_CLASS * MANY, centers=MANY, n_features=D, cluster_std=0.3, random_state=0)
    X /= np.abs(X).max()
    assert LinearModel(loss_of(name, MANY), C=10.0, tol=1e-2).fit(X, y).score(X, y) > 0.9
