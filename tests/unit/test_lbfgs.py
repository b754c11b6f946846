"""L-BFGS beyond what every solver has to do: its settings, and the digits that it is sure of."""

import math

import numpy as np
import pytest
from bundle_problems import problem

from beeline import LinearModel, from_arrays
from beeline.exceptions import ParameterError
from beeline.losses import Exponential, Hinge, Logistic
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers.lbfgs import LBFGS, _Pairs


@pytest.mark.parametrize("regularizer", [L2(), L1(), ElasticNet(0.5)])
def test_figures_are_those_of_the_gap(regularizer):
    o, figures = problem(Logistic(), regularizer), []
    for tol in (1e-2, 1e-6):
        result = LBFGS(tol).solve(o)
        best = LBFGS(1e-9).solve(o).objective
        figures.append(result.facts["significant_figures"])
        assert figures[-1] >= -math.log10(tol) - 0.01
        assert abs(result.objective - best) <= 10 ** -figures[-1] * result.objective * (1 + 1e-6)
    assert figures[1] >= figures[0] + 3


def test_a_longer_memory_takes_fewer_steps():
    o = problem(Logistic(), n=500, d=30, strength=0.01)
    assert LBFGS(1e-8, history=10).solve(o).iterations < LBFGS(1e-8, history=1).solve(o).iterations


def test_changes_whose_square_vanishes_are_no_curvature():
    # The slopes of rows that are far on the right side are 1e-200, and most of J is that of rows without a feature.
    X, costs = np.zeros((5, 5)), 460.912193 * np.array([1, 1, 1, 1e6, 1])
    X[[0, 1, 4], 2] = X[1, 3] = 1.0
    o = Objective.of(from_arrays(X), -np.ones(5), costs, Exponential(), L1(), 1.0, "none")
    result = LBFGS(1e-6).run(o)
    assert (result.theta[2:4] < 0).all()
    assert result.objective - result.bound <= 2e-6 * result.objective


def test_what_it_cannot_take():
    with pytest.raises(ParameterError, match="history must be at least 1, not 0"):
        LBFGS(history=0)
    with pytest.raises(ParameterError, match="'lbfgs' needs a smooth loss"):
        LBFGS().solve(problem(Hinge()))


def test_a_gradient_that_changes_by_next_to_nothing_is_not_learned_from():
    pairs = _Pairs(5)
    pairs.add(np.full(3, 1e-3), np.full(3, 1e-170))
    assert not pairs.kept
    np.testing.assert_array_equal(pairs.times(np.ones(3)), np.ones(3))
    pairs.add(np.full(3, 1e-3), np.full(3, 1e-3))
    assert len(pairs.kept) == 1


@pytest.mark.parametrize("loss", ["all_threshold", "immediate_threshold"])
@pytest.mark.parametrize(("regularizer", "tol"), [("l2", 1e-6), ("l1", 1e-4)])
def test_thresholds_follow_features_that_are_far_from_zero(loss, regularizer, tol):
    """Where thresholds shift with the scores, it takes no more passes."""
    random = np.random.default_rng(7)
    X = random.normal(size=(400, 6))
    y = np.digitize(X @ [1.0, -1.0, 0.5, 0.0, 0.0, 0.2] + 0.5 * random.normal(size=400), [-0.5, 0.5])
    near, far = (
        LinearModel(loss, regularizer=regularizer, tol=tol).fit(X + offset * (np.arange(6) == 2), y)
        for offset in (0.0, 1e4)
    )
    assert far.report_.gap <= tol
    assert far.report_.objective == pytest.approx(near.report_.objective, rel=2 * tol)
    assert far.report_.passes <= near.report_.passes + 4
