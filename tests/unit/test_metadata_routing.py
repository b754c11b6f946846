"""Weights and groups of rows reach estimators through scikit-learn's meta-estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import beeline
import beeline.estimators
from beeline import LinearSVC, LogisticRegression, SGDClassifier

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 3))
TWO = (X[:, 0] + 0.5 * RANDOM.normal(size=90) > 0).astype(int)
WEIGHTS = RANDOM.uniform(0.1, 3, size=90)
GROUPS = np.arange(90) // 3


@pytest.fixture(autouse=True)
def _routing():
    with config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("name", beeline.estimators.__all__)
def test_every_estimator_may_ask_for_weights_and_groups(name):
    if name == "LinearRanker":  # weights belong to queries
        asked = {"qid": True, "query_weight": True, "groups": False, "group": False}
        assert getattr(beeline, name)().set_fit_request(**asked).get_metadata_routing().fit.requests == asked
        return
    estimator = getattr(beeline, name)().set_fit_request(sample_weight=True, groups=True)
    requested = estimator.get_metadata_routing().fit.requests
    assert requested == {"sample_weight": True, "groups": True}
    if name != "NoveltyDetector":
        assert estimator.set_score_request(sample_weight=True) is estimator


def test_weights_go_through_a_pipeline():
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, LogisticRegression().set_fit_request(sample_weight=True))
    pipeline.fit(X, TWO, sample_weight=WEIGHTS)
    direct = LogisticRegression().fit(StandardScaler().fit_transform(X), TWO, WEIGHTS)
    np.testing.assert_array_equal(pipeline[-1].coef_, direct.coef_)


def test_groups_go_through_a_pipeline_to_a_search():
    pipeline = make_pipeline(StandardScaler(), LinearSVC(C="auto").set_fit_request(groups=True))
    pipeline.fit(X, TWO, groups=GROUPS)
    rows = StandardScaler().fit_transform(X)
    scores = [LinearSVC(C="auto").fit(rows, TWO, groups=groups).selection_.best_score for groups in (GROUPS, None)]
    assert pipeline[-1].selection_.best_score == scores[0] != scores[1]


def test_a_grid_search_hands_weights_to_fit_and_score():
    model = LogisticRegression().set_fit_request(sample_weight=True, groups=False)
    model.set_score_request(sample_weight=True)
    search = GridSearchCV(model, {"C": [0.01, 1.0]}, cv=GroupKFold(3))
    search.fit(X, TWO, sample_weight=WEIGHTS, groups=GROUPS)
    train, test = next(iter(GroupKFold(3).split(X, TWO, GROUPS)))
    direct = LogisticRegression(C=0.01).fit(X[train], TWO[train], WEIGHTS[train])
    expected = direct.score(X[test], TWO[test], WEIGHTS[test])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(expected)


def test_partial_fit_may_ask_for_weights():
    online = SGDClassifier().set_partial_fit_request(sample_weight=True, classes=True)
    assert online.get_metadata_routing().partial_fit.requests == {"classes": True, "sample_weight": True}
