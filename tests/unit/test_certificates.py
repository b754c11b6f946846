"""Certificates are true where the data are hostile: every gap is held against an optimum that others found."""

import sys
import warnings
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from sklearn import linear_model
from sklearn.datasets import load_diabetes, load_wine, make_blobs

from beeline import CostSensitiveClassifier, LinearModel, LinearSVC, LinearSVR, LogisticRegression, PoissonRegressor
from beeline.data.core.arrays import from_arrays
from beeline.exceptions import ConvergenceWarning, ModelWarning
from beeline.losses import (
    LOSSES,
    LeastSquares,
    Logistic,
    SoftEpsilonInsensitive,
    SoftQuantile,
    SquaredEpsilonInsensitive,
)
from beeline.objective import Objective, Penalty, conjugate_bound
from beeline.objective.certificates import cancelling_parts, rounding_of
from beeline.regularizers import L2
from beeline.solvers.base import Solver, Status, Step

DIABETES = load_diabetes(return_X_y=True)
WINE = load_wine(return_X_y=True)


def judged(model, X, y, best, **fit):
    """Fit, and hold J, the bound and the gap against min J: what was said, if anything was."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (result,) = model.fit(X, y, **fit).results_
    assert result.bound <= best * (1 + 1e-9) <= result.objective * (1 + 2e-9)
    if not caught:
        assert result.gap <= model.tol
        assert result.objective <= best * (1 + model.tol + 1e-9)
    return {warning.category for warning in caught}


def least(value_and_slope, d, l1=0.0, l2=0.0, nonnegative=False):
    """min over (w, b) of Ω(w) + f(w, b) for a smooth f, by SciPy: parts of the weights are variables of their own."""

    def both(v):
        w, b = v[:d] - v[d : 2 * d], v[-1]
        value, slope, incline = value_and_slope(w, b)
        smooth = slope + l2 * w
        return value + l1 * v[:-1].sum() + l2 / 2 * w @ w, np.concatenate([smooth + l1, l1 - smooth, [incline]])

    bounds = [(0, None)] * d + [(0, 0 if nonnegative else None)] * d + [(None, None)]
    best, at = np.inf, np.zeros(2 * d + 1)
    for _ in range(3):  # restarts shake off a line search that gave up
        options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 50}
        found = minimize(both, at, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        best, at = min(best, found.fun), found.x
    return best


def logistic(X, y, c):
    def value_and_slope(w, b):
        m = y * (X @ w + b)
        slopes = -c * y * np.exp(-np.logaddexp(0, m))
        return c @ np.logaddexp(0, -m), X.T @ slopes, slopes.sum()

    return value_and_slope


def by_its_own_formula(loss, X, y):
    def value_and_slope(w, b):
        values, slopes = loss.value_and_grad(X @ w + b, y)
        return values.sum(), X.T @ slopes, slopes.sum()

    return value_and_slope


@pytest.mark.parametrize("loss", [SoftQuantile(), SoftEpsilonInsensitive()], ids=lambda loss: loss.name)
class TestSoftKinksFarAway:
    """Labels are hundreds of widths apart: far from a kink there is no curvature to lead anywhere."""

    @pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs"])
    def test_with_l2(self, loss, solver):
        X, y = DIABETES
        best = least(by_its_own_formula(loss, X, y), 10, l2=1.0)
        model = LinearModel(loss, solver=solver)
        assert not judged(model, X, y, best) - {ModelWarning}  # features so small have more to tell than C lets them
        assert np.abs(model.coef_).max() > 1

    def test_with_l1(self, loss):
        X, y = DIABETES
        model = LinearModel(loss, "l1")
        assert not judged(model, X, y, least(by_its_own_formula(loss, X, y), 10, l1=1.0))
        assert np.abs(model.coef_).max() > 10


@pytest.mark.parametrize("seed", range(12))
def test_weights_at_a_bound_of_a_large_c(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(50, 10))
    y = X[:, 0] + random.normal(size=50) > 0.7
    best = least(logistic(X, np.where(y, 1.0, -1.0), np.full(50, 1e4)), 10, l1=1.0, nonnegative=True)
    assert not judged(LinearModel("logistic", "l1", nonnegative=True, C=1e4), X, y, best)


@pytest.mark.parametrize("solver", ["auto", "bundle"])
@pytest.mark.parametrize("nonnegative", [True, False])
def test_large_c_by_several_solvers(solver, nonnegative):
    random = np.random.default_rng(8)
    X = random.normal(size=(50, 10))
    y = X[:, 0] + random.normal(size=50) > 0.7
    best = least(logistic(X, np.where(y, 1.0, -1.0), np.full(50, 1e4)), 10, l1=1.0, nonnegative=nonnegative)
    assert not judged(LinearModel("logistic", "l1", nonnegative=nonnegative, C=1e4, solver=solver), X, y, best)


@pytest.mark.parametrize(("seed", "optimum"), [(30, 61.854), (31, 47.959), (32, 50.439), (33, None)])
def test_one_row_outweighs_all_others(seed, optimum):
    X, y, w = np.random.default_rng(seed).normal(size=(10, 30)), np.arange(10) % 2, np.ones(10)
    w[0] = 1e6
    c = w / np.bincount(y, w)[y] * w.sum() / 2  # balanced
    best = least(logistic(X, 2.0 * y - 1, 1e3 * c), 30, l1=0.5, l2=0.5)
    assert optimum is None or best == pytest.approx(optimum, abs=1e-3)
    assert not judged(LogisticRegression(l1_ratio=0.5, C=1e3, class_weight="balanced"), X, y, best, sample_weight=w)


def test_rates_that_are_all_zero():
    """The best intercept is at −∞, and J there is zero."""
    model = PoissonRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 0.0, 0.0])
    assert 0 <= model.report_.gap <= model.tol
    assert model.predict([[0.0], [2.0]]) == pytest.approx(0, abs=1e-6)


def test_least_squares_of_no_negative_weight_as_by_scikit_learn():
    X, y = DIABETES
    peer = linear_model.Lasso(alpha=1e-4 / len(y), positive=True, tol=1e-12, max_iter=100_000).fit(X, y)
    best = 5e3 * ((y - peer.predict(X)) ** 2).sum() + peer.coef_.sum()
    assert not judged(LinearModel("squared", "l1", nonnegative=True, C=1e4), X, y, best)


@pytest.mark.parametrize("seed", range(10))
def test_targets_far_from_zero(seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(30, 5))
    y = X @ random.normal(size=5) + random.normal(size=30)
    # Over L1 it is a linear programme: w⁺, w⁻, b, and what targets exceed predictions by, or fall short of them.
    rows = np.hstack([X, -X, np.ones((30, 1)), np.eye(30), -np.eye(30)])
    limits = [(0, None)] * 10 + [(None, None)] + [(0, None)] * 60
    best = linprog(np.r_[np.ones(10), 0, np.ones(60)], A_eq=rows, b_eq=y, bounds=limits).fun
    assert not judged(LinearModel("absolute", "l1"), X, y + 100, best)
    near = LinearModel("absolute", tol=1e-8).fit(X, y).report_.objective
    assert not judged(LinearModel("absolute"), X, y + 100, near)
    assert not judged(LinearSVR(), X, y + 1e5, near)


class TestFewPasses:
    """Passes are counted, not seconds: how many there are does not depend on the machine."""

    def test_costs_of_mistakes_over_features_of_all_sizes(self):
        X, y = WINE
        model = CostSensitiveClassifier([[0, 1, 5], [1, 0, 1], [2, 2, 0]]).fit(X, y)
        assert model.report_.gap <= model.tol
        assert model.results_[0].passes <= 900

    def test_a_scaled_margin(self):
        random = np.random.default_rng(0)
        X = random.normal(size=(120, 10))
        y = (X @ random.normal(size=(10, 4)) + random.normal(size=(120, 4))).argmax(axis=1)
        model = LinearModel("scaled_multiclass_margin").fit(X, y)
        assert model.report_.gap <= model.tol
        assert model.results_[0].passes <= 800

    @pytest.mark.filterwarnings("ignore:the model is:beeline.exceptions.ModelWarning")  # so small a C learns little
    def test_rows_that_all_leave_are_looked_at_again(self):
        """Without that, sweeps over no row went on for ever."""
        random = np.random.default_rng(5)
        X = random.normal(size=(120, 5))
        y = X @ random.normal(size=5) + 0.7 * random.normal(size=120) > 0
        for C in 2.0 ** np.arange(-14, -5):
            model = CostSensitiveClassifier([[0, 5], [1, 0]], C=C).fit(X, y)
            assert model.results_[0].passes <= 400

    def test_many_classes_of_many_rows(self):
        X, y = make_blobs(6000, centers=26, n_features=16, cluster_std=4.0, random_state=0)
        X /= np.abs(X).max()
        model = LinearModel("multiclass_margin", max_passes=400).fit(X, y)
        assert model.report_.gap <= model.tol
        assert model.score(X, y) > 0.9


def test_a_hinge_over_features_of_all_sizes(same_bits):
    """A solver that stalls hands over, and takes the same way for any number of threads."""
    X, y = WINE
    same_bits(lambda: LinearSVC(loss="hinge").fit(X, y).coef_, threads=(1, 2, 3), by_kernels=False)
    for label in range(3):
        best = LinearModel("hinge", solver="bundle", tol=1e-9).fit(X, y == label).report_.objective
        assert not judged(LinearModel("hinge"), X, y == label, best)


@pytest.mark.parametrize("C", [1.0, 1e6, 1e12])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_softmax_whose_gradient_hides_in_rounding(C, intercept):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4))
    y = (X @ random.normal(size=(4, 3)) + 2 * random.normal(size=(60, 3))).argmax(axis=1)
    model = LogisticRegression(C=C, fit_intercept=intercept).fit(X, y)
    assert model.report_.gap <= model.tol


class _Liar(Solver):
    """Yields the same points as an honest solver would, with a J or a bound that is not true."""

    name = "liar"

    def __init__(self, value=None, bound=0.0):
        super().__init__(1e-4, 10)
        self.value, self.bound = value, bound

    def refusal(self, objective):
        return None

    def steps(self, objective, start):
        for k in range(20):
            theta = np.full(objective.size, 0.01 * k)
            yield Step(theta, objective.at(theta).value if self.value is None else self.value, self.bound, k + 1.0)


class TestLies:
    """What a solver says is not taken at its word."""

    X = np.random.default_rng(0).normal(size=(40, 3))
    y, c = np.where(X[:, 0] > 0, 1.0, -1.0), np.ones(40)
    o = Objective.of(from_arrays(X), y, c, Logistic(), L2())

    def test_a_bound_above_the_objective_ends_nothing(self):
        result = _Liar(bound=1e9).run(self.o)
        assert result.status is Status.LIMIT
        assert result.bound == 0
        assert result.gap == 1

    def test_a_bound_that_is_no_number_says_nothing(self):
        assert _Liar(bound=np.nan).run(self.o).gap == 1
        assert _Liar(bound=np.inf).run(self.o).gap == 1

    def test_numbers_that_have_lost_their_digits_prove_nothing(self):
        """J and its bound may differ by more than rounding usually leaves, below the least normal number."""
        o = replace(self.o, costs=self.o.rows.scatter(np.full(40, 1e-315)))
        result = _Liar(bound=1e-313).run(o)
        assert result.bound == 0
        assert result.scale == sys.float_info.min

    def test_the_objective_is_evaluated_anew(self):
        result = _Liar(value=1e-9).run(self.o)
        assert result.status is not Status.CONVERGED
        assert result.objective == self.o.at(result.theta).value > 1

    def test_no_model_is_better_than_a_bad_one(self):
        result = _Liar(value=1e9).run(self.o)
        assert result.objective == self.o.null.value
        assert not result.theta[:3].any()


def test_a_bound_holds_wherever_the_intercept_is():
    o = TestLies.o
    best = least(logistic(TestLies.X, TestLies.y, TestLies.c), 3, l2=1.0)
    for b in (-100.0, -1.0, 0.0, 0.3, 50.0):
        point = o.at(np.array([1.0, -0.2, 0.1, b]))
        assert max(point.bound, conjugate_bound(point, point.slopes, point.loss_gradient)) <= best


def test_what_is_worth_nothing_is_said():
    with pytest.warns(ModelWarning, match="no better than its intercept alone"):
        LinearModel("hinge", "l1", C=1e-6).fit(TestLies.X, TestLies.y)
    with pytest.warns(ConvergenceWarning, match="reached its pass limit"):
        LinearModel("logistic", max_passes=3, tol=1e-6).fit(TestLies.X, TestLies.y)


def test_rounding_counts_where_labels_are_met_to_the_last_digit():
    """Slopes are zero there as far as doubles go, and the losses of the weights themselves are not."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=20), 1e6 + random.normal(size=20)
    x, y = x[x * (y / x) == y], y[x * (y / x) == y]
    o = Objective.of(from_arrays(np.diag(x)), y, np.full(len(y), 1e7), LeastSquares(), L2(), 1e-20, "none")
    point = o.at(y / x)
    assert point.loss == 0
    missed = [Fraction(a) * Fraction(b) - Fraction(c) for a, b, c in zip(x, point.theta, y, strict=True)]
    assert 0 < 0.5e7 * float(sum(r * r for r in missed)) <= rounding_of(point)


def test_rounding_counts_at_the_edge_of_a_tube():
    """Slopes and curvatures are zero there, and a rounding further on they are not."""
    random, epsilon = np.random.default_rng(0), 9.82
    x, y = random.normal(size=200), random.normal(size=200)
    edge = y + epsilon
    kept = (x * (edge / x) == edge) & (edge - y <= epsilon)
    x, y, edge = x[kept], y[kept], edge[kept]
    loss = SquaredEpsilonInsensitive(epsilon)
    o = Objective.of(from_arrays(np.diag(x)), y, np.full(len(y), 1e7), loss, L2(), 1e-20, "none")
    point = o.at(edge / x)
    assert point.loss == 0
    beyond = [
        Fraction(a) * Fraction(b) - Fraction(c) - Fraction(epsilon) for a, b, c in zip(x, point.theta, y, strict=True)
    ]
    assert 0 < 0.5e7 * float(sum(r * r for r in beyond if r > 0)) <= rounding_of(point)


def test_squares_of_bounds_that_overflow_are_no_errors():
    """Weights of 10^160 have no bound, but a training that passed by them goes on."""
    assert Penalty(0.0, 1.0).floor(np.array([1e200])) == -np.inf


@pytest.mark.parametrize("seed", range(200))
def test_what_is_left_of_groups_cancels(seed):
    """Also of groups that slope to the same side, which can give up all or nothing."""
    random = np.random.default_rng(seed)
    sums = random.normal(size=(random.integers(1, 8), random.integers(1, 4))) * 10.0 ** random.uniform(
        -12, 0, size=(1, 1)
    )
    if seed % 3 == 0:
        sums = np.abs(sums) * random.choice([0.0, 1.0], size=sums.shape)
    if seed % 3 == 1:
        sums = sums[:1] * (1 + 1e-9 * random.normal(size=(len(sums), 1)))
    rounding = 7e-15 * float(np.abs(sums).sum())
    parts = cancelling_parts(sums, sums.sum(axis=0), rounding)
    assert np.all((parts >= 0) & (parts <= 1))
    assert np.abs(((1 - parts)[:, None] * sums).sum(axis=0)).max() <= 2 * rounding


def exact_entropy(p, c):
    """p log(p/c) + (c − p) log((c − p)/c) with fifty digits."""
    with localcontext() as context:
        context.prec = 50
        p, c = Decimal(p), Decimal(c)
        return float(p * (p / c).ln() + (c - p) * ((c - p) / c).ln())


def exact_log_cosh(p, c):
    """½((c + p) log(1 + p/c) + (c − p) log(1 − p/c)) with fifty digits."""
    with localcontext() as context:
        context.prec = 50
        p, c = Decimal(p), Decimal(c)
        return float(((c + p) * ((c + p) / c).ln() + (c - p) * ((c - p) / c).ln()) / 2)


# A loss, its conjugate by another way, and dual variables and labels of which p is the part of the cost.
HEAVY = {
    "logistic": (exact_entropy, lambda p: ([p], [1.0])),
    "multilabel_logistic": (exact_entropy, lambda p: ([[p, 0.0]], [[1.0, 1.0]])),
    "softmax": (exact_entropy, lambda p: ([[-p, p]], [1.0])),
    "cross_entropy": (exact_entropy, lambda p: ([-p], [0.0])),
    "log_cosh": (exact_log_cosh, lambda p: ([p], [0.0])),
}


@pytest.mark.parametrize("part", [1e-15, 1e-9, 1e-3, 0.4, 0.7])
@pytest.mark.parametrize("name", HEAVY)
def test_conjugates_keep_the_digits_of_small_dual_variables(name, part):
    """A row may cost 10⁹ times its dual variable: rounding must be relative to the variable, not to the cost."""
    loss, c, p = LOSSES[name](), 4.1e8, part * 4.1e8
    exact, rows = HEAVY[name]
    a, y = (np.array(column) for column in rows(p))
    for value in (loss.conjugate_sum(a.copy(), y, np.array([c])), loss.dual_cost(a.copy(), y, np.array([c]))):
        assert value == pytest.approx(exact(p, c), rel=1e-13, abs=1e-15 * p)
