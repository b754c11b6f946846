"""Words of messages: counts, percentages, names that may have been meant, and names from elsewhere."""

from __future__ import annotations

import inspect
import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import beeline
from beeline import (
    CostSensitiveClassifier,
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearModel,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    NoveltyDetector,
    SGDClassifier,
    SGDRegressor,
    select_C,
)
from beeline._words import count, did_you_mean, offer, percentage, quoted
from beeline.exceptions import ModelWarning, ParameterError
from beeline.fitting.stream import StreamStep
from beeline.losses import get_loss
from beeline.regularizers import get_regularizer
from beeline.solvers.result import Step

X = np.random.default_rng(0).normal(size=(60, 3))
TWO = (X[:, 0] > 0).astype(int)
THREE = np.arange(60) % 3


def test_numbers_agree_with_their_nouns():
    assert [count(n, "row") for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
    assert (count(2, "class"), count(1, "entry", "entries"), count(3, "entry", "entries")) == (
        "2 classes",
        "1 entry",
        "3 entries",
    )


@pytest.mark.parametrize(
    ("part", "digits", "text"),
    [(1, 2, "100 %"), (12.345, 3, "1,234 %"), (0.1234, 3, "12.3 %"), (1e-7, 2, "1e-05 %"), (0.996, 2, "100 %")],
)
def test_percentages_have_no_powers_of_ten(part, digits, text):
    assert percentage(part, digits) == text


@pytest.mark.parametrize(
    ("value", "text"), [(np.str_("a"), "'a'"), (np.float64(0.5), "0.5"), ("a", "'a'"), (np.arange(2), "array([0, 1])")]
)
def test_values_are_written_as_python_does(value, text):
    assert quoted(value) == text


def test_names_that_may_have_been_meant():
    assert did_you_mean("Hige", ["hinge", "huber"]) == "did you mean 'hinge'?"
    assert did_you_mean("logstic", ["logistic", "tree_logistic"]) == "did you mean 'logistic'?"
    assert did_you_mean("loss", ["losses", "lesson", "los"]) == "did you mean 'los' or 'losses'?"
    assert did_you_mean("xyz", ["hinge"]) == did_you_mean(3, ["hinge"]) == ""
    assert offer("xyz", ["a", "b"], " and more") == "there are a, b and more"


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: get_loss("hige"), "there is no loss 'hige'; did you mean 'hinge'?"),
        (lambda: get_loss(np.str_("logstic")), "there is no loss 'logstic'; did you mean 'logistic'?"),
        (lambda: get_loss("log_loss"), "there is no loss 'log_loss'; it is called 'logistic' here"),
        (lambda: SGDRegressor("squared_error").fit(X, X[:, 0]), "'squared_error'; it is called 'squared' here"),
        (lambda: SGDClassifier(alpha="auto").fit(X, TWO), "alpha='auto' is nothing that SGDClassifier searches for"),
        (lambda: get_loss("huber", dleta=1), "the loss 'huber' has no setting 'dleta'; did you mean 'delta'?"),
        (lambda: get_regularizer("elasticnet"), "there is no regularizer 'elasticnet'; did you mean 'elastic_net'?"),
        (lambda: LinearModel(solver="newtn").fit(X, TWO), "there is no solver 'newtn'; did you mean 'newton'"),
        (lambda: select_C(X, "hinge", TWO, metric="acc uracy"), "did you mean 'accuracy'?"),
        (lambda: select_C(X, "hinge", TWO, metrc="auc"), "select_C has no option 'metrc'; did you mean 'metric'?"),
        (lambda: LinearSVC(loss="hing").fit(X, TWO), "ramp, not 'hing'; did you mean 'hinge'"),
        (
            lambda: LinearSVC(C=np.inf).fit(X, TWO),
            "not inf; for next to no regularization take a large one such as 1e8",
        ),
        (lambda: Lasso(alpha=0).fit(X, X[:, 0]), "not 0; for next to no regularization take a small one such as 1e-8"),
        (lambda: LogisticRegression(cv=3).fit(X, TWO), "cv has no meaning without a search; give C='auto', or leave"),
        (lambda: ElasticNet(scoring="r2").fit(X, TWO), "scoring has no meaning without a search; give alpha='auto'"),
        (lambda: LinearSVC(verbose=2).fit(X, TWO), "verbose must be True or False, a line after every iteration"),
        (lambda: LinearSVC().set_params(max_iter=3), "LinearSVC has no parameter 'max_iter'; max_passes limits"),
    ],
)
def test_sentences_say_what_to_give(ask, sentence):
    with pytest.raises(ParameterError, match=re.escape(sentence)):
        ask()


@pytest.mark.parametrize(
    ("kind", "given", "sentence"),
    [
        (LogisticRegression, {"max_iter": 100}, "LogisticRegression has no parameter 'max_iter'; max_passes limits"),
        (LinearSVC, {"n_jobs": 2}, "beeline.set_num_threads"),
        (LogisticRegression, {"penalty": "l1"}, "l1_ratio=1 is L1"),
        (LinearModel, {"penalty": "l1"}, "regularizer is 'l2', 'l1' or 'elastic_net'"),
        (Lasso, {"penalty": "l1"}, "part of what the estimator is"),
        (LinearSVC, {"dual": True}, "solver='dual_cd'"),
        (LinearSVR, {"alpha": 1.0}, "C = 1/(alpha·n)"),
        (ElasticNet, {"C": 1.0}, "alpha = 1/(C·n)"),
        (HuberRegressor, {"epsilon": 1.35}, "delta is where the loss becomes straight"),
        (SGDClassifier, {"eta0": 0.1}, "nothing to tune"),
        (SGDRegressor, {"max_pases": 3}, "did you mean 'max_passes'?"),
    ],
)
def test_parameters_from_elsewhere_are_told_ours(kind, given, sentence):
    with pytest.raises(TypeError, match=re.escape(sentence)):
        kind(**given)


@pytest.mark.parametrize("name", beeline.estimators.__all__)
def test_hints_leave_constructors_as_they_are(name):
    kind = getattr(beeline, name)
    assert "self" in inspect.signature(kind.__init__).parameters
    assert sorted(kind().get_params()) == sorted(set(inspect.signature(kind).parameters))
    assert type(clone(kind())) is kind


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (LinearSVC(), "this LinearSVC has no predict_proba: give probability=True"),
        (LinearModel("hinge"), "give probability=True to have the scores calibrated, or take the logistic loss"),
        (LinearModel("squared"), "this is a model of numbers"),
        (SGDClassifier("hinge"), "the loss 'hinge' gives scores only; take one with probabilities, such as 'logistic'"),
        (CostSensitiveClassifier(np.ones((2, 2))), "LogisticRegression has probabilities"),
        (NoveltyDetector(), "only classes have probabilities"),
    ],
)
def test_missing_probabilities_say_how_to_have_them(estimator, sentence):
    assert not hasattr(estimator, "predict_proba")
    with pytest.raises(AttributeError, match=re.escape(sentence)):
        estimator.predict_proba(X)


def test_a_regression_has_no_scores_of_classes():
    with pytest.raises(AttributeError, match="this Lasso has no decision_function: a model of numbers"):
        Lasso().decision_function(X)


def test_steps_print_as_one_line(capsys):
    LogisticRegression(verbose=1, callback=print).fit(X, TWO)
    lines = capsys.readouterr().out.splitlines()
    assert lines[::2] == lines[1::2]
    assert all(re.fullmatch(r"pass +\d+   objective \S+   gap \S+ %   \d+\.\d s", line) for line in lines)
    assert "gap unknown" in str(Step(np.zeros(1), 1.0, -np.inf, 1.0))
    assert str(StreamStep(1000, 2.0, 0.5, 1.0, 0.5, 0.5)) == "rows      1,000   loss 0.5   wrong 100 %   2.0 s"
    select_C(X, "hinge", TWO, on_point=print, C_min=1.0, C_max=1.0)
    assert re.fullmatch(r"C +1   score \S+ ± \S+   \S+ s\n", capsys.readouterr().out)


def test_a_search_shows_its_arguments():
    parameters = inspect.signature(select_C).parameters
    assert parameters["folds"].default == 5
    assert parameters["regularizer"].default == "l2"
    assert not any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    documented = set(re.findall(r"\w+", " ".join(re.findall(r"^\w.*$", inspect.getdoc(select_C), re.MULTILINE))))
    assert set(parameters) <= documented


@pytest.mark.parametrize(("loss", "y"), [("perceptron", TWO), ("multiclass_perceptron", THREE)])
def test_an_optimum_at_zero_is_told_before_training(loss, y):
    said = []

    def stop(_):
        said.append(len(caught))
        return True

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LinearModel(loss, callback=stop).fit(X, y)
    assert said[0] == 1
    assert "zero weights are an optimum" in str(caught[0].message)
    assert [warning.category for warning in caught].count(ModelWarning) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LinearModel(loss, solver="sgd").fit(X, y).coef_.any()


def test_every_loss_that_says_so_has_an_optimum_at_zero():
    for name, kind in beeline.losses.LOSSES.items():
        assert kind.zero_is_optimal == ("perceptron" in name), name
