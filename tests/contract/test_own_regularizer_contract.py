"""A regularizer of one's own: certified optima, by every solver that takes it, and what is refused."""

import numpy as np
import pytest
from scipy.optimize import minimize

from beeline import LinearModel
from beeline.exceptions import ParameterError
from beeline.losses import get_loss
from beeline.regularizers import L2, Regularizer, check_regularizer

D = 12


class NearWeights(Regularizer):
    """½wᵀPw."""

    def __init__(self, ridge=0.5, pull=3.0):
        differences = np.diff(np.eye(D), axis=0)
        self.ridge, self.pull, self.modulus = ridge, pull, ridge
        self.P = ridge * np.eye(D) + pull * differences.T @ differences

    def value(self, w):
        return 0.5 * float(w @ self.P @ w)

    def gradient(self, w):
        return self.P @ w

    def prox(self, v, step):
        return np.linalg.solve(np.eye(D) + step * self.P, v)


class Kinked(NearWeights):
    """With |w_0 − w_1| beside it."""

    differentiable = False

    def value(self, w):
        return super().value(w) + abs(w[0] - w[1])

    def gradient(self, w):
        sign = np.sign(w[0] - w[1])
        return super().gradient(w) + np.append([sign, -sign], np.zeros(D - 2))

    prox = Regularizer.prox


class Steep(NearWeights):
    """As a change of units makes it: ½‖1000·w‖²."""

    def __init__(self):
        self.modulus = 1e6

    def value(self, w):
        return 0.5e6 * float(w @ w)

    def gradient(self, w):
        return 1e6 * w

    prox = Regularizer.prox


def rows(loss, n=80):
    random = np.random.default_rng(3)
    X = random.normal(size=(n, D))
    scores = X @ np.sin(np.arange(D)) + random.normal(size=n)
    return X, np.where(scores > 0, 1.0, -1.0) if get_loss(loss).classifies else scores


def optimum(loss, omega, C, *, free, nonnegative=False):
    X, y = rows(loss)
    the_loss = get_loss(loss)

    def J(theta):  # noqa: N802
        values, slopes = the_loss.value_and_grad(X @ theta[:-1] + free * theta[-1], y)
        gradient = np.append(omega.gradient(theta[:-1]) + C * slopes @ X, free * C * slopes.sum())
        return omega.value(theta[:-1]) + C * values.sum(), gradient

    bounds = [(0 if nonnegative else None, None)] * D + [(None, None)]
    return minimize(J, np.zeros(D + 1), jac=True, bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-10}).fun


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("solver", ["lbfgs", "bundle"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "huber"])
def test_optimum_of_smooth_losses(loss, solver, free, nonnegative):
    X, y = rows(loss)
    kind = {"C": 2.0, "fit_intercept": free, "nonnegative": nonnegative, "tol": 1e-6, "solver": solver}
    report = LinearModel(loss, NearWeights(), **kind).fit(X, y).model_.report
    best = optimum(loss, NearWeights(), 2.0, free=free, nonnegative=nonnegative)
    assert report.status == "converged"
    assert report.objective * (1 - report.gap) <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= report.objective <= best * (1 + 2e-6)


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "absolute", "epsilon_insensitive", "quantile"])
def test_kinked_losses_agree_with_l2_in_other_units(loss, free):
    X, y = rows(loss)
    plain = LinearModel(loss, "l2", fit_intercept=free, tol=1e-6).fit(X, y)
    steep = LinearModel(loss, Steep(), fit_intercept=free, tol=1e-6).fit(1000 * X, y)
    assert steep.model_.report.status == "converged"
    assert steep.model_.report.objective == pytest.approx(plain.model_.report.objective, rel=3e-6)
    np.testing.assert_allclose(1000 * steep.coef_, plain.coef_, atol=2e-3)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_kinked_omega_goes_through_the_bundle_method(loss):
    X, y = rows(loss)
    model = LinearModel(loss, Kinked(), tol=1e-5).fit(X, y)
    report = model.model_.report
    assert (report.solver, report.status) == ("bundle", "converged")
    best = LinearModel(loss, Kinked(), tol=1e-7, max_passes=20000).fit(X, y).model_.report.objective
    assert best <= report.objective <= best * (1 + 1.1e-5)
    with pytest.raises(ParameterError, match="gradient everywhere"):
        LinearModel(loss if loss == "logistic" else "squared_hinge", Kinked(), solver="lbfgs").fit(X, y)


def test_classes_each_have_their_weights():
    random = np.random.default_rng(5)
    X = random.normal(size=(90, D))
    y = np.digitize(X @ np.cos(np.arange(D)), [-1, 1])
    joint = [LinearModel("softmax", NearWeights(), solver=s, tol=1e-6).fit(X, y).model_ for s in ("lbfgs", "bundle")]
    assert joint[0].report.objective == pytest.approx(joint[1].report.objective, rel=3e-6)
    apart = LinearModel("logistic", NearWeights(), multi_class="ovr", tol=1e-6).fit(X, y)
    assert apart.coef_.shape == (3, D)


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_a_search_for_c(loss):
    X, y = rows(loss)
    model = LinearModel(loss, NearWeights(), C="auto", cv=3).fit(X, y)
    assert model.C_ > 0
    assert model.score(X, y) > 0.6


def test_regularized_intercepts_cost_half_the_modulus():
    X, y = rows("logistic")
    one = LinearModel("logistic", NearWeights(1.0, 0.0), fit_intercept="regularized", tol=1e-8).fit(X, y)
    other = LinearModel("logistic", L2(), fit_intercept="regularized", tol=1e-8).fit(X, y)
    assert one.model_.report.objective == pytest.approx(other.model_.report.objective, rel=1e-7)


WRONG = {
    "wrong gradient": {"gradient": lambda self, w: 0.9 * self.P @ w},
    "not as convex": {"modulus": property(lambda self: 2.0, lambda self, value: None)},
    "positive modulus": {"modulus": property(lambda self: 0.0, lambda self, value: None)},
    "zero, and least": {"value": lambda self, w: 1.0 + 0.5 * float(w @ self.P @ w)},
    "one number as its value": {"gradient": lambda self, w: (self.P @ w)[1:]},
    "must be numbers": {"value": lambda self, w: float("nan") if w.any() else 0.0},
    "changes the weights": {"gradient": lambda self, w: w.__imul__(2.0)},
    "cannot be evaluated": {"gradient": lambda self, w: np.eye(3) @ w},
    "wrong prox": {"prox": lambda self, v, step: v},
    "differentiable = False": {
        "value": lambda self, w: 0.5 * float(w @ self.P @ w) + abs(w).sum(),
        "gradient": lambda self, w: self.P @ w + np.sign(w),
        "prox": Regularizer.prox,
    },
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_said(words):
    omega = type("Wrong", (NearWeights,), WRONG[words])()
    X, y = rows("logistic")
    with pytest.raises(ParameterError, match=words):
        LinearModel("logistic", omega).fit(X, y)


def test_a_trusted_one_is_not_looked_at():
    kind = type("Trusted", (NearWeights,), {"trusted": True, **WRONG["wrong prox"]})
    check_regularizer(kind(), D)


def test_what_goes_wrong_far_out_takes_the_bound_with_it():
    class Saturated(NearWeights):
        """Flat beyond 1: convex, but not as its modulus says."""

        def value(self, w):
            return 0.5 * float(np.sum(np.where(abs(w) < 20, w * w, 40 * abs(w) - 400)))

        def gradient(self, w):
            return np.clip(w, -20, 20)

        prox = Regularizer.prox

    X, y = rows("squared")
    with pytest.warns(UserWarning, match="not as convex"):
        model = LinearModel("squared", Saturated(), C=1e3).fit(X, 1000 * y)
    assert model.model_.report.gap is None


def test_other_solvers_say_what_they_need():
    X, y = rows("logistic")
    for solver in ("newton", "dual_cd", "l1_cd", "interior_point"):
        with pytest.raises(ParameterError, match="lbfgs or bundle"):
            LinearModel("logistic", NearWeights(), solver=solver).fit(X, y)


def test_its_name_and_words():
    assert NearWeights.name == "near_weights"
    assert repr(NearWeights()) == "NearWeights(ridge=0.5, pull=3.0)"
