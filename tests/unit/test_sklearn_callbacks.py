"""scikit-learn's callbacks on every estimator, beside beeline's own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import beeline
from beeline import LinearSVC, LogisticRegression, Ridge, SGDClassifier

callback = pytest.importorskip("sklearn.callback")

X = np.random.default_rng(0).normal(size=(60, 3))
TWO = np.where(X[:, 0] > 0, "yes", "no")
THREE = np.digitize(X[:, 0], [-0.5, 0.5])


class Recorder:
    """Keeps what it was told; asks to stop after so many iterations."""

    def __init__(self, most=np.inf):
        self.most, self.told, self.models = most, [], []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.told.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.told.append(f"end {context.task_name}")
        self.models.append(None if fitted_estimator is None else fitted_estimator.predict(X))
        return self.told.count("end iteration") >= self.most


@pytest.mark.parametrize("name", beeline.estimators.__all__)
@pytest.mark.filterwarnings("ignore::beeline.exceptions.ModelWarning")
def test_every_estimator_tells_of_its_tasks(name):
    recorder, estimator = Recorder(), getattr(beeline, name)()
    y = THREE if name == "CostSensitiveClassifier" else TWO if estimator._classifies else np.exp(X[:, 0])
    y = np.column_stack([y, y]) if name == "MultiTaskRegressor" else y
    assert estimator.set_callbacks(recorder) is estimator
    estimator.fit(X, y)
    told = recorder.told
    assert (told[:2], told[-2:]) == (["setup", "begin fit"], ["end fit", "teardown"])
    assert told.count("begin iteration") == told.count("end iteration") > 0
    np.testing.assert_array_equal(recorder.models[-1], estimator.predict(X))
    assert not hasattr(estimator, "_callback_fit_ctx")


def test_the_model_of_an_iteration_predicts():
    recorder = Recorder()
    model = LogisticRegression().set_callbacks(recorder).fit(X, TWO)
    assert all(set(predicted) <= {"yes", "no"} for predicted in recorder.models)
    assert len(recorder.models) > 2
    plain = LogisticRegression(callback=lambda _: None).fit(X, TWO)
    np.testing.assert_array_equal(model.coef_, plain.coef_)


def test_several_problems_have_no_model_before_the_end():
    recorder = Recorder()
    LinearSVC().set_callbacks(recorder).fit(X, THREE)
    assert all(predicted is None for predicted in recorder.models[:-1])
    assert recorder.models[-1] is not None


def test_a_callback_may_stop_the_training():
    recorder, steps = Recorder(most=1), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(callback=steps.append, tol=1e-12).set_callbacks(recorder).fit(X, TWO)
    assert "was stopped by the callback" in model.report_.sentence
    assert len(steps) == 1  # ours is called too


def test_steps_know_their_model():
    models = []
    model = Ridge(tol=1e-12, callback=lambda step: models.append(step.model())).fit(X, X[:, 0])
    np.testing.assert_allclose(models[-1].weights[:, 0], model.coef_, rtol=1e-6)


def test_a_search_tells_of_every_value():
    recorder = Recorder()
    model = LinearSVC(C="auto").set_callbacks(recorder).fit(X, TWO)
    assert recorder.told.count("end value of C") == len(model.selection_.curve)


def test_batches_are_tasks_too():
    recorder = Recorder()
    SGDClassifier().set_callbacks(recorder).fit(iter([(X, TWO), (X, TWO)]))
    assert "end buffer" in recorder.told
    assert all(set(predicted) <= {"yes", "no"} for predicted in recorder.models)
    assert recorder.told[-2:] == ["end fit", "teardown"]


def test_the_scoring_monitor_and_the_progress_bar(capsys):
    monitor = callback.ScoringMonitor(scoring="accuracy")
    LogisticRegression().set_callbacks(monitor, callback.ProgressBar()).fit(X, TWO)
    scores = [row["accuracy"] for row in monitor.get_logs().data if row["task_name"] == "iteration"]
    assert len(scores) > 1
    assert scores[-1] >= scores[0]
    assert "LogisticRegression" in capsys.readouterr().out


def test_an_error_in_fit_still_ends_the_callbacks():
    recorder = Recorder()
    with pytest.raises(ValueError, match="C must be positive"):
        LogisticRegression(C=-1).set_callbacks(recorder).fit(X, TWO)
    with pytest.raises(ValueError, match="NaN or infinite"):
        LogisticRegression().set_callbacks(recorder).fit(np.full((4, 1), np.nan), [0, 1, 0, 1])
    assert recorder.told == ["setup", "begin fit", "teardown"]
