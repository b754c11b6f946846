"""What is to be said about a training beside its result: warnings, reports, limits of time, classes that fail."""

from __future__ import annotations

import json
import math
import signal
import time
import warnings

import numpy as np
import pytest

from beeline import HuberRegressor, LinearModel, LinearSVC, LogisticRegression, Model, PoissonRegressor, select_C
from beeline.data.core.arrays import from_arrays
from beeline.exceptions import ConvergenceWarning, DataError, ModelError, ModelWarning, ParameterError
from beeline.losses import (
    EpsilonInsensitive,
    Huber,
    LeastSquares,
    LogCosh,
    ScalarLoss,
    SquaredEpsilonInsensitive,
    Truncated,
)
from beeline.model import Report
from beeline.objective import Objective
from beeline.regularizers import L1, L2
from beeline.solvers.auto import SOLVERS, choose_solver
from beeline.solvers.base import Status, Step, distance_in_words
from beeline.training.parallel import solve_in_parallel
from beeline.training.run import train
from beeline.training.task import Task

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 6))
TWO = np.where(X[:, 0] + RNG.normal(size=300) > 0, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.5 * RNG.normal(size=300), [-0.7, 0.4])]


def fitted(estimator, y, *, warning):
    """The estimator, and the only warning that came."""
    with pytest.warns(warning) as caught:
        estimator.fit(X, y)
    (one,) = caught
    return estimator, one


class TestReports:
    def test_a_stop_far_from_the_optimum(self):
        model, warning = fitted(LogisticRegression(tol=1e-13, max_passes=2), TWO, warning=ConvergenceWarning)
        assert model.report_.concerns == (str(warning.message),)
        assert "raise max_passes (now 2)" in model.report_.concerns[0]
        assert model.report_.summary.splitlines()[1:] == [str(warning.message)]

    def test_a_model_that_is_no_better_than_none(self):
        model, warning = fitted(LogisticRegression(C=1e-12), TWO, warning=ModelWarning)
        assert "no better than its intercept alone" in str(warning.message)
        assert "raise C" in str(warning.message)
        assert model.report_.concerns == (str(warning.message),)

    @pytest.mark.parametrize("loss", [Huber(), LogCosh(), Truncated(Huber(), 2.0), Truncated(LeastSquares(), 2.0)])
    def test_labels_that_are_too_small_for_a_robust_loss(self, loss):
        """Outliers a hundred times the noise, of less than one: they pull as in least squares, and that is said."""
        y = 0.01 * X[:, 0] + np.where(np.arange(300) % 10, 0.0, 0.4)
        _, warning = fitted(LinearModel(loss, C=10.0), y, warning=ModelWarning)
        advice = "lower delta" if "delta" in loss.settings else "scale the labels up"
        assert "outliers pull as in least squares; scale the labels up" in str(warning.message)
        assert str(warning.message).endswith(advice)
        assert LinearModel(loss, C=10.0).fit(X, 100 * y).report_.concerns == ()

    def test_a_model_that_is_hardly_better_than_none(self):
        """Targets of a million, weights that Ω keeps small: there is more to tell than alpha lets the features say."""
        y = 1e6 * X[:, 0]
        _, warning = fitted(HuberRegressor(), y, warning=ModelWarning)
        assert "hardly better than its intercept alone, though the features have more to tell" in str(warning.message)
        assert HuberRegressor(alpha="auto").fit(X, y).report_.concerns == ()
        assert LinearModel("squared").fit(X, np.random.default_rng(1).normal(size=len(X))).report_.concerns == ()

    @pytest.mark.parametrize("solver", ["auto", "sgd"])
    def test_it_is_told_without_a_certificate_too(self, solver):
        estimator = LinearModel("absolute", solver=solver)
        model, warning = fitted(estimator, 1e6 * X[:, 0], warning=ModelWarning)
        assert "hardly better than its intercept alone" in str(warning.message)
        assert (model.report_.sentence.startswith("ended without a certificate")) == (solver == "sgd")

    @pytest.mark.parametrize(
        ("loss", "y", "advice"),
        [
            (EpsilonInsensitive(0.5), 0.1 * X[:, 0], "lower epsilon"),
            (SquaredEpsilonInsensitive(0.5), 0.1 * X[:, 0], "lower epsilon"),
            ("perceptron", TWO, "take another loss"),
            ("multiclass_perceptron", THREE, "take another loss"),
        ],
    )
    def test_a_loss_that_zero_weights_satisfy(self, loss, y, advice):
        model, warning = fitted(LinearModel(loss), y, warning=ModelWarning)
        assert not model.coef_.any()
        assert "its intercept alone" in str(warning.message)
        assert advice in str(warning.message)
        assert model.report_.concerns == (str(warning.message),)

    def test_labels_that_an_intercept_meets(self):
        """Nothing is left to learn, and the model knows all there is."""
        assert LinearModel("epsilon_insensitive").fit(X, np.full(len(X), 7.0)).report_.concerns == ()
        assert PoissonRegressor().fit(X, np.zeros(len(X))).report_.concerns == ()

    def test_nothing_to_say(self):
        assert LogisticRegression().fit(X, TWO).report_.concerns == ()

    @pytest.mark.parametrize("estimator", [LinearSVC(C=1e-12), LinearSVC(C=1e-12, multi_class="crammer_singer")])
    def test_the_warning_points_at_the_call_of_fit(self, estimator):
        _, warning = fitted(estimator, THREE, warning=ModelWarning)
        assert warning.filename == __file__

    def test_so_does_that_of_an_estimator_that_calls_another(self):
        with pytest.warns((ConvergenceWarning, ModelWarning)) as caught:
            PoissonRegressor(tol=1e-14, max_passes=1).fit(X, np.exp(X[:, 0]))
        assert {warning.filename for warning in caught} == {__file__}

    def test_they_are_kept_in_the_file(self, tmp_path):
        model, _ = fitted(LogisticRegression(C=1e-12), TWO, warning=ModelWarning)
        model.model_.save(tmp_path / "m")
        assert Model.load(tmp_path / "m").report == model.report_
        record = model.report_.to_json()
        assert record["concerns"] == list(model.report_.concerns)
        assert Report.from_json(json.loads(json.dumps(record))) == model.report_

    def test_older_files_have_none(self):
        record = LogisticRegression().fit(X, TWO).report_.to_json()
        del record["concerns"]
        assert Report.from_json(record).concerns == ()

    @pytest.mark.parametrize("concerns", ["words", [1], None, {"a": "b"}])
    def test_files_with_something_else_are_refused(self, concerns):
        record = LogisticRegression().fit(X, TWO).report_.to_json()
        with pytest.raises(ModelError, match="in words"):
            Report.from_json(record | {"concerns": concerns})

    def test_a_search_is_part_of_it(self):
        noise = RNG.permutation(TWO)
        with pytest.warns(ModelWarning):
            model = LogisticRegression(C="auto", scoring="accuracy").fit(X[:, 3:], noise)
        assert model.selection_.concerns
        assert set(model.report_.concerns) >= {concern.sentence for concern in model.selection_.concerns}

    def test_poor_calibration(self):
        """The folds are trained to the same limit as the model, and one sentence tells of all."""
        model = LinearSVC(probability=True, tol=1e-13, max_passes=2)
        fitted(model, TWO, warning=ConvergenceWarning)
        assert len(model.report_.concerns) == 1


@pytest.mark.parametrize("gap", [0.0, 1e-16, 8.1e-5, 1e-4, 0.1, 0.3, 0.499, 0.5, 0.9, 0.9999])
def test_the_distance_in_words_is_true(gap):
    """J and a bound that have the gap: J is not further above the bound than the words say, nor much closer."""
    bound = 1 - gap
    said = float(distance_in_words(gap).removeprefix("at most ").removesuffix(" % above the optimum")) / 100
    above = (1 - bound) / bound
    assert above <= said * (1 + 1e-12)
    assert said <= above * 1.1 + 1e-14


@pytest.mark.parametrize("gap", [1.0, 3.0, math.inf, math.nan, None])
def test_where_nothing_is_proven_nothing_is_said(gap):
    assert distance_in_words(gap) == "an unknown distance above the optimum"


class _Slow(ScalarLoss):
    """The squared loss, by somebody who takes his time."""

    name, labels, smooth = "slow", "real", True

    def value_and_grad(self, z, y):
        time.sleep(0.002)
        return 0.5 * (z - y) ** 2, z - y


class TestTimeLimit:
    @pytest.mark.parametrize("name", [name for name, kind in SOLVERS.items() if kind.needs.rows != "index"])
    def test_every_solver_obeys(self, name):
        multi = name == "class_dual_cd"
        loss = {"newton": "logistic", "lbfgs": "logistic", "l1_cd": "logistic", "class_dual_cd": "crammer_singer"}
        loss["relaxation"] = "ramp"
        labels = np.digitize(X[:, 0], [-0.5, 0.5]) if multi else (TWO == "yes")
        task = Task(
            from_arrays(X),
            labels.astype(float),
            3 if multi else 2,
            _loss(loss.get(name, "hinge")),
            L1() if name == "l1_cd" else L2(),
            C=1e4,
        )
        trained = train(task, name, tol=1e-15, time_limit=1e-9)
        (result,) = trained.results
        assert result.status is Status.TIME
        assert result.iterations == 1
        (concern, *_) = trained.concerns
        assert concern.warning is ConvergenceWarning
        assert f"reached its time limit after {result.passes:.0f} pass" in concern.sentence
        or_else = " or tol (now 1e-15)" if SOLVERS[name].certifies else ", or take another solver"
        assert f"raise time_limit (now 1e-09){or_else}" in concern.sentence

    def test_two_solvers_in_a_row_obey_too(self):
        task = Task(from_arrays(X), (TWO == "yes").astype(float), 2, _loss("hinge"), L2(), C=1e6)
        relay = choose_solver(task.objectives()[0], tol=1e-15).with_time_limit(1e-9)
        assert relay.run(task.objectives()[0]).status is Status.TIME

    def test_it_ends_a_fit_in_time_with_the_best_so_far(self):
        clock = time.perf_counter()
        model = LinearModel(_Slow(), tol=1e-15, max_passes=1e9, C=1e3, time_limit=0.2)
        with pytest.warns(ConvergenceWarning, match=r"reached its time limit .* raise time_limit \(now 0.2\)"):
            model.fit(X * 10.0 ** np.arange(-3, 3), X[:, 0])
        assert time.perf_counter() - clock < 2
        assert model.report_.status == "time"
        assert model.report_.objective < model.results_[0].null
        assert model.model_.settings["time_limit"] == 0.2

    def test_every_class_gets_its_share(self):
        """Six classes of which none would end by itself: all have had a step or more, and none all of the time."""
        y = np.digitize(X[:, 0], [-1, -0.5, 0, 0.5, 1])
        with pytest.warns(ConvergenceWarning, match=r"time limit.*\(so did 5 more of 6 problems\)"):
            model = LinearModel(_SlowSquare(), multi_class="ovr", tol=1e-15, max_passes=1e9, time_limit=1.2).fit(
                X * 10.0 ** np.arange(-3, 3), y
            )
        seconds = [result.seconds for result in model.results_]
        assert {result.status for result in model.results_} == {Status.TIME}
        assert max(seconds) < 1
        assert min(seconds) > 0.05
        assert all(result.objective < result.null for result in model.results_)

    def test_a_limit_that_is_not_reached_changes_nothing(self):
        one, other = (LinearSVC(time_limit=limit).fit(X, THREE) for limit in (None, 1000))
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert "time_limit" not in one.model_.settings
        assert other.model_.settings["time_limit"] == 1000

    @pytest.mark.parametrize("limit", [0, -1, math.inf, math.nan, "long"])
    def test_it_is_a_positive_number(self, limit):
        with pytest.raises(ParameterError, match="time_limit must be positive and finite"):
            LogisticRegression(time_limit=limit).fit(X, TWO)

    def test_probabilities_and_searches_have_time_too(self):
        assert LinearSVC(probability=True, time_limit=100).fit(X, TWO).predict_proba(X).shape == (300, 2)
        model = LogisticRegression(C="auto", time_limit=100).fit(X, TWO)
        assert model.report_.converged

    def test_a_search_ends_in_time_and_the_model_still_has_some(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LogisticRegression(C="auto", time_limit=1e-6).fit(X, TWO)
        assert model.selection_.end.name == "TIME"
        assert model.predict(X).shape == (300,)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert select_C(X, "logistic", TWO, time_limit=1e-6).end.name == "TIME"


def _loss(name):
    from beeline.losses import get_loss

    return get_loss(name)


class _SlowSquare(ScalarLoss):
    """A loss of two classes that takes its time."""

    name, labels, smooth = "slow_square", "binary", True

    def value_and_grad(self, z, y):
        time.sleep(0.001)
        return 0.5 * (z - y) ** 2, z - y


class _Fragile(ScalarLoss):
    """The squared margin, which fails for the class with so many rows: always, or as soon as a score is large."""

    name, labels, smooth = "fragile", "binary", True

    def __init__(self, n_positive: int, largest: float = -1.0, error: type[Exception] = FloatingPointError) -> None:
        self.n_positive, self.largest, self.error = n_positive, largest, error

    def value_and_grad(self, z, y):
        if np.count_nonzero(y > 0) == self.n_positive and np.abs(z).max() > self.largest and len(y) > 3:
            raise self.error("too much of class b")
        return 0.5 * (z - y) ** 2, z - y


class TestFailures:
    B = int(np.count_nonzero(THREE == "b"))

    def test_one_class_is_lost_and_the_others_are_not(self, tmp_path):
        with pytest.warns(ModelWarning) as caught:
            model = LinearModel(_Fragile(self.B), multi_class="ovr").fit(X, THREE)
        (sentence,) = model.report_.concerns
        assert [str(w.message) for w in caught] == [sentence]
        assert sentence.startswith("class 'b' could not be trained (FloatingPointError: too much of class b)")
        assert "take another solver or loss" in sentence
        whole = LinearModel(_Fragile(-1), multi_class="ovr").fit(X, THREE)
        np.testing.assert_array_equal(model.coef_[[0, 2]], whole.coef_[[0, 2]])
        np.testing.assert_array_equal(model.intercept_[[0, 2]], whole.intercept_[[0, 2]])
        assert not model.coef_[1].any()
        signs = np.where(THREE == "b", 1.0, -1.0)
        assert model.intercept_[1] == pytest.approx(signs.mean())  # which is the best one of this loss
        assert model.report_.status == "failed"
        assert [result.status for result in model.results_].count(Status.FAILED) == 1
        model.model_.save(tmp_path / "m")
        assert Model.load(tmp_path / "m").report == model.report_

    def test_numbers_that_are_not_known_are_none(self):
        with pytest.warns(ModelWarning):
            model = LinearModel(_Fragile(self.B), multi_class="ovr").fit(X, THREE)
        assert model.report_.objective is None or math.isfinite(model.report_.objective)
        assert model.report_.gap is None
        assert "unknown distance" in model.report_.sentence

    def test_the_null_model_where_it_can_be_found(self):
        """The loss fails only once weights have grown."""
        with pytest.warns(ModelWarning, match="class 'b'"):
            model = LinearModel(_Fragile(self.B, largest=1.0), multi_class="ovr", C=100.0).fit(X, THREE)
        failed = model.results_[1]
        assert failed.objective == failed.null
        assert model.report_.objective == sum(result.objective for result in model.results_)

    def test_numbered_classes_and_several_of_them(self):
        y = np.digitize(X[:, 0], [-0.5, 0.0, 0.5]).astype(float)
        sizes = np.bincount(y.astype(int))
        with pytest.warns(ModelWarning, match=r"class 2 could not be trained"):
            LinearModel(_Fragile(int(sizes[2])), multi_class="ovr").fit(X, y)

    def test_bad_input_still_raises(self):
        for error in (DataError, ParameterError):
            with pytest.raises(error, match="too much of class b"):
                LinearModel(_Fragile(self.B, error=error), multi_class="ovr").fit(X, THREE)

    def test_a_failure_of_all_still_raises(self):
        objectives = [_objective(X[:, :k]) for k in (1, 2)]
        solver = choose_solver(objectives[0], "newton")

        class Broken(type(solver)):
            def solve_in_kernel(self, objective, max_passes):
                return None

            def steps(self, objective, start):
                raise ZeroDivisionError("no way")

        with pytest.raises(ZeroDivisionError, match="no way"):
            solve_in_parallel([Broken(), Broken()], objectives, [None, None], forgiving=True)
        with pytest.raises(ZeroDivisionError, match="no way"):
            solve_in_parallel([Broken(), solver], objectives, [None, None])
        failed, well = solve_in_parallel([Broken(), solver], objectives, [None, None], forgiving=True)
        assert (failed.status, well.status) == (Status.FAILED, Status.CONVERGED)
        assert failed.error == "ZeroDivisionError: no way"
        assert failed.gap == 1  # zero is a bound of what is never negative, and all that is known

    def test_what_ends_the_process_ends_all(self):
        """SIGTERM waited for the optimum of every problem."""

        def leave(number, frame):
            raise SystemExit(143)

        rows = np.random.default_rng(0).normal(size=(20_000, 6))
        problem = Objective.of(from_arrays(rows), rows[:, 0] ** 2, np.full(20_000, 50.0), EpsilonInsensitive(0.0), L2())
        endless, clock = SOLVERS["dual_cd"](1e-15, 10**9), time.perf_counter()
        before = signal.signal(signal.SIGALRM, leave)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(SystemExit):
                solve_in_parallel([endless] * 2, [problem] * 2, [None] * 2, time_limit=20.0)
        finally:
            signal.signal(signal.SIGALRM, before)
        assert time.perf_counter() - clock < 10

    def test_an_error_of_the_callback_still_raises(self):
        def refuse(step: Step) -> None:
            raise ZeroDivisionError("of the callback")

        with pytest.raises(ZeroDivisionError, match="of the callback"):
            LinearSVC(callback=refuse).fit(X, THREE)


def _objective(rows):
    return Objective.of(from_arrays(rows), np.where(TWO == "yes", 1.0, -1.0), np.ones(300), _loss("logistic"), L2())
