"""SGDClassifier and SGDRegressor: batches, streams, and going on."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier as TheirClassifier

import beeline
from beeline import Model, SGDClassifier, SGDRegressor
from beeline.exceptions import ConvergenceWarning, DataError, LabelError, ModelError, ModelWarning, ParameterError

RNG = np.random.default_rng(1)
N = 6000
X = RNG.standard_normal((N, 5))
Y = np.array(["ash", "birch", "oak"])[np.argmax(X @ RNG.standard_normal((5, 3)), axis=1)]
T = X @ np.arange(5.0) + 1


def parts(size=1000):
    return [slice(start, start + size) for start in range(0, N, size)]


def learned(estimator, y=Y, rows=X, **options):
    for part in parts():
        estimator.partial_fit(rows[part], y[part], **options)
    return estimator


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_batches_of_any_kind_are_the_same(loss):
    known = learned(SGDClassifier(loss))
    assert known.score(X, Y) > 0.95
    assert known.coef_.shape == (3, 5)
    assert known.classes_.tolist() == ["ash", "birch", "oak"]
    assert hasattr(known, "predict_proba") == (loss == "logistic")
    lists = learned(SGDClassifier(loss), Y.tolist(), X.tolist())
    frame = pd.DataFrame(X, columns=list("abcde"))
    frames = learned(SGDClassifier(loss), pd.Series(Y), frame)
    assert frames.model_.feature_names == list("abcde")
    stream = SGDClassifier(loss).fit((X[part], Y[part]) for part in parts())
    for other in (lists, frames):
        np.testing.assert_array_equal(known.coef_, other.coef_)
    assert stream.score(X, Y) > 0.95
    sparse = learned(SGDClassifier(loss), Y, scipy.sparse.csr_matrix(X))
    np.testing.assert_allclose(known.coef_, sparse.coef_, rtol=0.1, atol=0.1)


@pytest.mark.parametrize(
    ("loss", "alpha"), [("hinge", 1 / (3 * N)), ("squared_hinge", 1 / (3 * N)), ("logistic", 1e-6)]
)
def test_the_strength_has_a_rule(loss, alpha):
    """Hinges have C = 3 where all rows are at hand; a model goes on with what it has, batches begin with 1e-6."""
    model = SGDClassifier(loss).fit(X, Y)
    assert model.alpha_ == pytest.approx(alpha, rel=1e-12)
    assert SGDClassifier(loss, alpha=1e-3).fit(X, Y).alpha_ == 1e-3
    model.partial_fit(X[:100], Y[:100])
    assert model.model_.settings["alpha"] == pytest.approx(alpha, rel=1e-12)
    assert SGDClassifier(loss).partial_fit(X, Y).model_.settings["alpha"] == 1e-6


def test_few_rows_in_few_passes_are_learned_from_too():
    """An exact solver would not get anywhere in one pass."""
    once = SGDClassifier("squared_hinge", max_passes=1)
    with pytest.warns(ConvergenceWarning, match="raise max_passes"):
        once.fit(X[:800], Y[:800])
    assert once.score(X[800:], Y[800:]) > 0.9


def test_classes_may_be_said_or_appear():
    said = SGDClassifier().partial_fit(X[:50], Y[:50], classes=["oak", "birch", "ash", "elm"])
    assert said.predict_proba(X[:2]).shape == (2, 4)
    said.partial_fit(X, Y, classes=np.array(["oak", "birch", "ash", "elm"]))
    with pytest.raises(ParameterError, match="those of the first call"):
        said.partial_fit(X, Y, classes=["oak", "ash"])
    with pytest.raises(LabelError, match="row 6050 has the label yew, which is none of the classes"):
        said.partial_fit(X[:1], ["yew"])
    grown = SGDClassifier()
    for name in ("birch", "oak", "ash"):
        grown.partial_fit(X[name == Y][:100], Y[name == Y][:100])
        if name == "birch":
            with pytest.raises(LabelError, match="only one class"):
                grown.predict(X)
    assert learned(grown).score(X, Y) > 0.95


def test_sparse_features_may_appear_later_and_dense_ones_not():
    rows = scipy.sparse.csr_array(X)
    wide = SGDClassifier().partial_fit(rows[:3000, :3], Y[:3000]).partial_fit(rows[3000:], Y[3000:])
    assert (wide.n_features_in_, wide.coef_.shape) == (5, (3, 5))
    wide.partial_fit(rows[:, :2], Y)
    assert wide.n_features_in_ == 5
    with pytest.raises(ValueError, match="X has 3 features"):
        learned(SGDClassifier()).partial_fit(X[:, :3], Y)


def test_weights_and_balance():
    rare = np.flatnonzero((Y != "ash") | (np.arange(N) % 50 == 0))

    def found(**options):
        weights = options.pop("sample_weight", None)
        few = SGDClassifier(**options).partial_fit(X[rare], Y[rare], sample_weight=weights)
        return np.mean(few.predict(X[Y == "ash"]) == "ash")

    assert found(class_weight="balanced") > found() + 0.02
    assert found(class_weight={"ash": 30.0}) > found() + 0.02
    assert found(sample_weight=np.where(Y[rare] == "ash", 30.0, 1.0)) > found() + 0.02


def test_going_on_from_pickles_files_and_fits(tmp_path):
    half = SGDClassifier(alpha=1e-5, class_weight={"oak": 2.0}).partial_fit(X[:3000], Y[:3000])
    half.model_.save(tmp_path / "half")
    again = SGDClassifier.from_model(tmp_path / "half")
    assert (again.alpha, again.class_weight) == (1e-5, {"oak": 2.0})
    copies = [
        half,
        copy.deepcopy(half),
        pickle.loads(pickle.dumps(half)),
        again,
        SGDClassifier.from_model(Model.load(tmp_path / "half")),
    ]
    ends = [one.partial_fit(X[3000:], Y[3000:]).coef_ for one in copies]
    assert all(np.array_equal(ends[0], end) for end in ends[1:])
    fitted = SGDClassifier().fit(X, Y)
    assert fitted.report_.solver == "sgd"
    assert fitted.partial_fit(X[:100], Y[:100]).report_.n_rows == N + 100
    assert fitted.score(X, Y) > 0.93
    with pytest.raises(ModelError, match="none for SGDRegressor"):
        SGDRegressor.from_model(tmp_path / "half")


@pytest.mark.parametrize("labels", [Y, Y == "oak"])
def test_few_rows_teach_a_perceptron(labels):
    """Zero weights are its optimum, which is no model; the direction is what is learned."""
    assert SGDClassifier("perceptron").fit(X, labels).score(X, labels) > 0.8


def test_few_rows_have_the_optimum():
    few = SGDClassifier(alpha=1e-3).fit(X[:500], Y[:500])
    assert few.report_.gap <= 1e-4
    assert SGDClassifier(alpha=1e-3, solver="sgd").fit(X[:500], Y[:500]).report_.status == "unproven"


def test_numbers():
    assert learned(SGDRegressor(), T).score(X, T) > 0.999
    assert SGDRegressor(loss="huber").fit((X[part], T[part]) for part in parts()).score(X, T) > 0.99
    assert SGDRegressor(loss="epsilon_insensitive").fit(X, T).score(X, T) > 0.99
    assert isinstance(SGDRegressor.from_model(learned(SGDRegressor(), T).model_).intercept_, float)


def test_streams_have_their_labels(capsys):
    seen = []
    stream = SGDClassifier(callback=seen.append, verbose=True).fit((X[part], Y[part]) for part in parts())
    assert [step.rows for step in seen] == [N]
    assert "rows      6,000   loss" in capsys.readouterr().out
    assert clone(stream).loss == "logistic"
    with pytest.raises(ParameterError, match="y comes with each batch"):
        SGDClassifier().fit(iter([]), Y)
    with pytest.raises(ParameterError, match="is for numbers"):
        SGDClassifier(loss="squared").fit(X, Y)
    with pytest.raises(ParameterError, match="is for classes"):
        SGDRegressor(loss="hinge").partial_fit(X, T)
    with pytest.raises(ParameterError, match="fit_stream"):
        SGDClassifier().fit(pa.RecordBatchReader.from_batches(pa.schema([]), []))


def test_what_was_said_stays_said():
    for name, value in {"alpha": 1.0, "loss": "hinge", "l1_ratio": 1.0, "fit_intercept": False}.items():
        with pytest.raises(ParameterError, match=f"{name} cannot change between batches"):
            learned(SGDClassifier()).set_params(**{name: value}).partial_fit(X, Y)
    warm = SGDClassifier(warm_start=True)
    for _ in range(2):
        warm.fit((X[part], Y[part]) for part in parts())
    assert warm.report_.n_rows == 2 * N


def test_a_data_set_and_the_seed():
    data = beeline.from_arrays(X, T)
    once = SGDRegressor(shuffle=False).partial_fit(data)
    np.testing.assert_array_equal(once.coef_, SGDRegressor(shuffle=False, random_state=3).partial_fit(X, T).coef_)
    assert not np.array_equal(once.coef_, SGDRegressor().partial_fit(X, T).coef_)


def test_no_worse_than_theirs():
    theirs = TheirClassifier(loss="log_loss", random_state=0)
    for part in parts():
        theirs.partial_fit(X[part] * [1, 100, 0.01, 1, 1], Y[part], classes=np.unique(Y))
    ours = learned(SGDClassifier(), rows=X * [1, 100, 0.01, 1, 1])
    assert ours.score(X * [1, 100, 0.01, 1, 1], Y) > theirs.score(X * [1, 100, 0.01, 1, 1], Y)


def test_offsets_of_features_do_not_matter():
    assert SGDRegressor().fit(X + 1e6, T).score(X + 1e6, T) > 0.999
    assert SGDClassifier().fit(X + 1e6, Y).score(X + 1e6, Y) > 0.95
    assert learned(SGDRegressor(), T, X + 1e6).score(X + 1e6, T) > 0.999


def test_offsets_that_swallow_the_spread_are_told():
    with pytest.warns(ConvergenceWarning, match="5 features have an offset"), pytest.warns(ModelWarning):
        model = SGDClassifier().fit(X + 1e9, Y == "oak")
    assert "optimum" not in " ".join(model.report_.concerns)  # which would be false: a larger C is no help


@pytest.mark.parametrize("loss", ["logistic", "hinge", "perceptron", "crammer_singer"])
@pytest.mark.parametrize("labels", [Y, Y == "oak"])
def test_classes_learned_from_nothing_are_told(loss, labels):
    assert "better than without a model" in learned(SGDClassifier(loss, alpha=1e10), labels).report_.concerns[0]
    assert learned(SGDClassifier(loss), labels).report_.concerns == ()


@pytest.mark.parametrize("loss", ["squared", "huber", "absolute", "quantile"])
def test_numbers_learned_from_nothing_are_told(loss):
    noisy = T + 20 * np.random.default_rng(0).standard_normal(N)
    assert "better than without a model" in learned(SGDRegressor(loss, alpha=1e10), T).report_.concerns[0]
    assert "hardly better" not in " ".join(learned(SGDRegressor(loss), noisy).report_.concerns)


def test_other_models_that_are_worth_nothing():
    assert "5 features have an offset" in learned(SGDClassifier(), Y, X + 1e9).report_.concerns[0]
    assert "lower alpha" in learned(SGDClassifier(), Y, X * 1e-12).report_.concerns[0]
    small = learned(SGDRegressor("epsilon_insensitive"), 1e-6 * T)
    assert "lower epsilon" in small.report_.concerns[0]
    assert learned(SGDRegressor("epsilon_insensitive"), np.ones(N)).report_.concerns == ()  # nothing was to be learned
    with pytest.warns(ModelWarning, match="better than without"):
        beeline.fit_stream(iter([(X, Y)]), alpha=1e10)
    with pytest.warns(ModelWarning, match="better than without"):
        SGDClassifier(alpha=1e10).fit(iter([(X, Y)]))


def test_a_worthless_model_without_a_certificate_is_not_called_the_optimum():
    solver = ("sgd", {"variant": "pegasos"})  # whose first steps are as long as alpha is small
    with pytest.warns(ModelWarning, match="no better than its intercept alone, and how far from the optimum"):
        SGDClassifier("hinge", alpha=1e-6, fit_intercept=False, solver=solver).fit(100 * X, Y == "oak")


def test_what_is_known_of_a_model_without_worth_goes_on(tmp_path):
    first = SGDRegressor(alpha=1e10).partial_fit(X[:500], T[:500])
    first.model_.save(tmp_path / "model")
    again = SGDRegressor.from_model(tmp_path / "model")
    for estimator in (first, again):
        estimator.partial_fit(X[500:1500], T[500:1500])
    assert first.report_.concerns == again.report_.concerns != ()


def test_rows_without_a_weight_are_refused():
    for estimator, labels in ((SGDClassifier(), Y), (SGDRegressor(), T)):
        with pytest.raises(DataError, match="all sample weights are zero"):
            estimator.partial_fit(X, labels, sample_weight=np.zeros(N))
    with pytest.raises(ParameterError, match="fewer than two classes a weight"):
        SGDClassifier(class_weight={"ash": 0, "birch": 0, "oak": 0}).partial_fit(X, Y)
    with pytest.raises(DataError, match="all sample weights are zero"):
        beeline.fit_stream(iter([(X, Y, np.zeros(N))]))


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
def test_sentences_have_numbers(loss):
    first = SGDRegressor(loss).partial_fit(X, T).report_.sentence
    assert "nan" not in first
    assert "of the last" not in first


@pytest.mark.parametrize("limit", [0, -1, float("nan"), "1s"])
def test_time_limits_are_checked(limit):
    with pytest.raises(ParameterError, match="time_limit"):
        SGDClassifier(time_limit=limit).partial_fit(X, Y)
