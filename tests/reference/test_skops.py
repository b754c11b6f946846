"""skops saves and loads every estimator, with no class in the file but public ones of beeline's."""

from __future__ import annotations

import copy
import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import skops.io
from sklearn.base import clone, is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import beeline
from beeline import (
    CostSensitiveClassifier,
    LinearModel,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    MultiTaskRegressor,
    NoveltyDetector,
    SGDClassifier,
    SGDRegressor,
    estimators,
)
from beeline.exceptions import CorruptModelError, ModelWarning
from beeline.losses import Hinge, HuberHinge, LeastSquares, Truncated
from beeline.regularizers import ElasticNet
from beeline.solvers.lbfgs import LBFGS
from beeline.solvers.registry import SOLVERS
from beeline.solvers.result import Status

RNG = np.random.default_rng(7)
X = RNG.standard_normal((150, 5))
Z = X @ np.array([1.0, -2.0, 0.5, 0.0, 1.5]) + 0.3 * RNG.standard_normal(150)
CLASSES = np.array(["ash", "elm", "oak"])[np.digitize(Z, [-1.0, 1.0])]
EVERY = [getattr(estimators, name)() for name in estimators.__all__]
MORE = [
    LogisticRegression(C="auto", cv=3),
    LinearSVR(C="auto", epsilon="auto", cv=3),
    LinearSVC(loss="hinge", probability=True),
    LinearModel(loss=HuberHinge(0.3), regularizer=ElasticNet(0.4), solver=LBFGS(tol=1e-7)),
    LinearModel(loss=Truncated(LeastSquares(), 3.0)),
    LinearSVC(solver=("lbfgs", {"history": 3}), random_state=3),
]
# By their defaults a few of them learn little from so few rows, and say so.
pytestmark = pytest.mark.filterwarnings("ignore::beeline.exceptions.ModelWarning")
PUBLIC = set(beeline.trusted_types())


def labels_of(estimator):
    if isinstance(estimator, NoveltyDetector):
        return None
    if isinstance(estimator, MultiTaskRegressor):
        return np.stack([Z, -Z], axis=1)
    if is_classifier(estimator) and not get_tags(estimator).classifier_tags.multi_class:
        return CLASSES[0] == CLASSES
    if is_classifier(estimator) or (isinstance(estimator, LinearModel) and "Hinge" in repr(estimator.loss)):
        return CLASSES
    return np.exp(Z / 4)


def through_skops(estimator, path):
    """The estimator, saved and loaded, once every class in the file was looked at."""
    skops.io.dump(estimator, path)
    unknown = skops.io.get_untrusted_types(file=path)
    assert set(unknown) <= PUBLIC
    return skops.io.load(path, trusted=beeline.trusted_types())


def assert_alike(again, model):
    """That it has the same attributes, and gives the same bits."""
    assert type(again) is type(model)
    assert vars(again).keys() == vars(model).keys()
    assert repr(again.get_params()) == repr(model.get_params())
    for name in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(again, name)(X), getattr(model, name)(X), strict=True)
    np.testing.assert_array_equal(again.coef_, model.coef_, strict=True)
    np.testing.assert_array_equal(again.intercept_, model.intercept_)
    assert again.report_ == model.report_
    assert again.model_.settings == model.model_.settings
    assert again.n_iter_ == model.n_iter_
    if hasattr(model, "results_"):
        assert_same_results(again.results_, model.results_)


def assert_same_results(again, results):
    for one, two in zip(again, results, strict=True):
        assert (one.status, one.sentence, one.gap, one.bound) == (two.status, two.sentence, two.gap, two.bound)
        assert isinstance(one.status, Status)
        assert [tuple(point) for point in one.trace] == [tuple(point) for point in two.trace]
        np.testing.assert_array_equal(one.theta, two.theta, strict=True)
        assert one.state.arrays.keys() == two.state.arrays.keys()


@pytest.mark.parametrize("estimator", EVERY, ids=repr)
def test_an_estimator_that_is_not_fitted(estimator, tmp_path):
    again = through_skops(estimator, tmp_path / "e.skops")
    assert again.get_params() == estimator.get_params()
    assert vars(again).keys() == vars(estimator).keys()


@pytest.mark.parametrize("estimator", EVERY + MORE, ids=repr)
def test_a_fitted_estimator(estimator, tmp_path):
    model = clone(estimator).fit(X, labels_of(estimator))
    again = through_skops(model, tmp_path / "e.skops")
    assert_alike(again, model)
    assert repr(clone(again)) == repr(clone(model))
    assert_alike(pickle.loads(pickle.dumps(again)), model)
    assert_alike(copy.deepcopy(again), model)


@pytest.mark.parametrize("estimator", EVERY, ids=repr)
def test_a_file_has_the_estimator_s_class_and_no_other(estimator, tmp_path):
    skops.io.dump(clone(estimator).fit(X, labels_of(estimator)), tmp_path / "e.skops")
    kind = type(estimator)
    assert skops.io.get_untrusted_types(file=tmp_path / "e.skops") == [f"{kind.__module__}.{kind.__name__}"]


def test_a_search_for_c(tmp_path):
    model = LinearSVR(C="auto", epsilon="auto", cv=3).fit(X, Z)
    again = through_skops(model, tmp_path / "e.skops")
    assert again.selection_.to_json() == model.selection_.to_json()
    assert again.selection_.end is model.selection_.end
    assert repr(again.selection_.curve) == repr(model.selection_.curve)  # NaN is not itself
    assert again.selection_.with_rule("one_se").best_C == model.selection_.with_rule("one_se").best_C
    assert (again.C_, again.epsilon_) == (model.C_, model.epsilon_)


def test_concerns_keep_their_warnings(tmp_path):
    noise = RNG.standard_normal(150)
    with pytest.warns(ModelWarning):
        model = LinearSVR(C="auto", cv=3).fit(X, noise)
    again = through_skops(model, tmp_path / "e.skops")
    assert model.selection_.concerns
    assert again.selection_.concerns == model.selection_.concerns
    assert again.report_.concerns == model.report_.concerns


ONLINE = [
    SGDClassifier(),
    SGDClassifier(loss="hinge", class_weight={"oak": 2.0}, l1_ratio=0.3),
    SGDClassifier(class_weight="balanced", multi_class="ovr", random_state=5),
    SGDClassifier(loss=HuberHinge(0.4), alpha=1e-4, shuffle=False),
    SGDRegressor(),
    SGDRegressor(loss="quantile", fit_intercept=False),
]


@pytest.mark.parametrize("begin", ["partial_fit", "fit"])
@pytest.mark.parametrize("estimator", ONLINE, ids=repr)
def test_partial_fit_goes_on_to_the_same_bits(estimator, begin, tmp_path):
    y = labels_of(estimator)
    model = getattr(clone(estimator), begin)(X[:90], y[:90])
    first = through_skops(model, tmp_path / "first.skops")  # before anybody has asked for the model
    model.predict(X)
    again = [first, through_skops(model, tmp_path / "e.skops"), pickle.loads(pickle.dumps(model))]
    for one in again:
        assert_alike(one, model)
    model.partial_fit(X[90:], y[90:])
    for one in again:
        assert_alike(one.partial_fit(X[90:], y[90:]), model)
        assert one.model_.report.n_rows == 150


class Own(Hinge):
    """A loss that nobody finds by its name."""


def test_pickles_of_a_loss_of_one_s_own_go_on():
    model = SGDClassifier(loss=Own()).partial_fit(X[:90], CLASSES[:90])
    again = pickle.loads(pickle.dumps(model))
    assert_alike(again.partial_fit(X[90:], CLASSES[90:]), model.partial_fit(X[90:], CLASSES[90:]))


def test_one_class_so_far(tmp_path):
    model = SGDClassifier().partial_fit(X[:5], np.ones(5, int))
    again = through_skops(model, tmp_path / "e.skops")
    y = np.arange(20) % 2
    assert_alike(again.partial_fit(X[:20], y), model.partial_fit(X[:20], y))


def test_features_and_classes_that_come_later(tmp_path):
    narrow = scipy.sparse.csr_array(X[:, :3])
    model = SGDClassifier().partial_fit(narrow[:60], CLASSES[:60] == "oak")
    again = through_skops(model, tmp_path / "e.skops")
    rest, y = scipy.sparse.csr_array(X[60:]), CLASSES[60:] == "oak"
    assert_alike(again.partial_fit(rest, y), model.partial_fit(rest, y))


def test_the_seed_of_a_solver_is_not_that_of_the_rows(tmp_path):
    model = SGDRegressor(solver=SOLVERS["sgd"](seed=4), random_state=9).partial_fit(X[:90], Z[:90])
    again = through_skops(model, tmp_path / "e.skops")
    model.model_.save(tmp_path / "e.model")
    from_file = SGDRegressor.from_model(tmp_path / "e.model").partial_fit(X[90:], Z[90:])
    assert_alike(again.partial_fit(X[90:], Z[90:]), model.partial_fit(X[90:], Z[90:]))
    np.testing.assert_array_equal(from_file.coef_, model.coef_)


def test_a_pipeline(tmp_path):
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=0.3)).fit(X, CLASSES)
    skops.io.dump(pipeline, tmp_path / "p.skops")
    names = skops.io.get_untrusted_types(file=tmp_path / "p.skops")
    assert names == ["beeline.estimators.classifiers.LogisticRegression"]
    again = skops.io.load(tmp_path / "p.skops", trusted=beeline.trusted_types())
    np.testing.assert_array_equal(again.predict_proba(X), pipeline.predict_proba(X))


def test_tables_keep_their_recipe(tmp_path):
    frame = pd.DataFrame({"height": Z, "tree": CLASSES})
    model = LogisticRegression().fit(frame, X[:, 0] > 0)
    again = through_skops(model, tmp_path / "e.skops")
    assert again.model_.recipe == model.model_.recipe
    assert again.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers(name, tmp_path):
    solver = SOLVERS[name](tol=1e-6, seed=3).with_time_limit(5.0)
    again = through_skops(LinearSVC(solver=solver), tmp_path / "e.skops").solver
    assert repr(again) == repr(solver)
    assert again.time_limit == 5.0


def test_costs(tmp_path):
    costs = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [5.0, 1.0, 0.0]])
    model = CostSensitiveClassifier(costs).fit(X, CLASSES)
    assert_alike(through_skops(model, tmp_path / "e.skops"), model)


def test_only_public_classes_are_trusted():
    for name in beeline.trusted_types():
        assert name.startswith("beeline.")
        assert "._" not in name
        assert not name.rpartition(".")[2].startswith("_")


def test_a_file_that_was_altered(tmp_path):
    skops.io.dump(LinearSVC().fit(X, CLASSES), tmp_path / "e.skops")
    with zipfile.ZipFile(tmp_path / "e.skops") as file:
        parts = {name: file.read(name) for name in file.namelist()}
    schema = json.loads(parts["schema.json"])
    text = schema["content"]["content"]["_saved"]["content"]["text"]
    text["content"] = text["content"].replace("Report", "Popen")
    with zipfile.ZipFile(tmp_path / "other.skops", "w") as file:
        for name, part in (parts | {"schema.json": json.dumps(schema)}).items():
            file.writestr(name, part)
    with pytest.raises(CorruptModelError, match="Popen"):
        skops.io.load(tmp_path / "other.skops", trusted=beeline.trusted_types())
