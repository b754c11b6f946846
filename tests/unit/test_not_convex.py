"""Losses that say they are not convex: trained, and never certified."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from beeline import LinearModel, Model
from beeline.data.core.arrays import from_arrays
from beeline.exceptions import ConvergenceWarning, ParameterError
from beeline.losses import GroupLoss, ScalarLoss, SquaredHinge
from beeline.objective import Objective, conjugate_bound
from beeline.objective.certificates import tangent_bound
from beeline.regularizers import L1, L2
from beeline.solvers import LBFGS, SOLVERS, Status
from beeline.solvers.auto import choose_solver

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = np.where(X @ [1.0, -2.0, 0.5, 0.0] + 0.3 > 0, 1.0, -1.0)
FLIPPED = np.where(RNG.random(200) < 0.1, -Y, Y)


class Truncated(ScalarLoss):
    """min(max(0, 1 − yz)², 4): what is hopeless costs no more than so much."""

    labels, convex, smooth = "binary", False, True

    def value_and_grad(self, z, y):
        margin = np.maximum(1 - y * z, 0)
        inside = margin < 2
        return np.where(inside, margin**2, 4.0), np.where(inside, -2 * y * margin, 0.0)


class Silent(Truncated):
    """The same, without saying so."""

    convex = True


def problem(loss=None, regularizer=None, intercept="free", labels=FLIPPED):
    rows = from_arrays(X)
    return Objective.of(rows, labels, np.ones(200), loss or Truncated(), regularizer or L2(), 1.0, intercept)


@pytest.mark.parametrize("regularizer", [L2(), L1(), L2(nonnegative=True)], ids=repr)
@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
def test_it_ends_at_a_stationary_point_without_a_certificate(regularizer, intercept):
    o = problem(regularizer=regularizer, intercept=intercept)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = LBFGS(1e-5).solve(o)
    assert result.status is Status.UNPROVEN
    assert result.bound == -math.inf
    assert result.gap == math.inf
    assert all(point.gap == math.inf for point in result.trace)
    assert result.objective < o.null.value
    assert result.objective == pytest.approx(o.at(result.theta).value, rel=1e-12)
    assert result.sentence.startswith("ended without a certificate after ")
    assert "Truncated() is not convex, so that no bound holds; " in result.sentence
    # A step to either side along any coordinate that is free to move wins next to nothing.
    for k in range(o.size):
        for step in (1e-3, -1e-3):
            theta = result.theta.copy()
            theta[k] += step
            if regularizer.nonnegative and k < 4:
                theta[k] = max(theta[k], 0.0)
            assert o.at(theta).value >= result.objective * (1 - 1e-5)


def test_no_bound_is_given_whatever_the_slopes():
    point = problem().at(np.full(5, 0.1))
    assert tangent_bound(point) == point.bound == -math.inf
    assert conjugate_bound(point, point.slopes, point.loss_gradient) == -math.inf
    assert math.isfinite(problem(SquaredHinge()).at(np.full(5, 0.1)).bound)


def test_limits_still_end_it_and_warn():
    with pytest.warns(ConvergenceWarning, match="lbfgs reached its pass limit"):
        result = LBFGS(1e-12, 4).solve(problem())
    assert result.status is Status.LIMIT
    assert result.gap == math.inf


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "lbfgs"])
def test_all_others_refuse(name):
    with pytest.raises(ParameterError, match=rf"the solver '{name}' .*Truncated\(\).* take lbfgs$"):
        choose_solver(problem(), name)


def test_solvers_that_take_any_loss_say_why():
    with pytest.raises(ParameterError, match=r"the solver 'bundle' needs a convex loss, unlike Truncated\(\)"):
        choose_solver(problem(), "bundle")


def test_auto_takes_the_one_that_can():
    assert choose_solver(problem()).name == "lbfgs"


def test_an_estimator(tmp_path):
    model = LinearModel(Truncated(), C=1.0).fit(X, FLIPPED)
    assert model.report_.status == "unproven"
    assert not model.report_.converged
    assert model.report_.gap is None
    assert "ended without a certificate" in model.report_.sentence
    assert np.mean(model.predict(X) == Y) > 0.9
    model.model_.save(tmp_path / "m")
    report = Model.load(tmp_path / "m").report
    assert report is not None
    assert report.sentence == model.report_.sentence


def test_a_search_for_c():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = LinearModel(Truncated(), C="auto", cv=3).fit(X, FLIPPED)
    assert model.report_.status == "unproven"
    assert np.mean(model.predict(X) == Y) > 0.9


def test_a_loss_that_does_not_say_so_is_found_out():
    with pytest.raises(ParameterError, match=r"Silent\(\) is not convex.*convex = False is trained without a cert"):
        LinearModel(Silent()).fit(X, FLIPPED)


class Saturated(GroupLoss):
    """l/(1 + l) of a group's squared errors l."""

    convex, smooth = False, True

    def value_and_grad(self, z, y, weights):
        error = float(np.sum(weights * (z - y) ** 2))
        return error / (1 + error), 2 * weights * (z - y) / (1 + error) ** 2


class WrongSlopes(Saturated):
    def value_and_grad(self, z, y, weights):
        value, slopes = super().value_and_grad(z, y, weights)
        return value, 2 * slopes


def test_a_loss_of_groups():
    target, groups = X @ [1.0, -2.0, 0.5, 0.0], np.repeat(np.arange(50), 4)
    model = LinearModel(Saturated(), C=10.0).fit(X, target, groups=groups)
    assert model.report_.status == "unproven"
    assert model.score(X, target) > 0.9
    with pytest.raises(ParameterError, match=r"WrongSlopes\(\) has wrong slopes"):
        LinearModel(WrongSlopes()).fit(X, target, groups=groups)
    with pytest.raises(ParameterError, match=r"'bundle' needs a convex loss, unlike Saturated\(\)"):
        LinearModel(Saturated(), solver="bundle").fit(X, target, groups=groups)


def test_the_same_bits():
    first, second = (LBFGS(1e-6).run(problem()).theta for _ in range(2))
    np.testing.assert_array_equal(first, second)
