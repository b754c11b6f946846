"""Problems so small that a kernel takes all steps at once."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from beeline import LinearSVC
from beeline.data.core.arrays import from_arrays
from beeline.losses import LOSSES, EpsilonInsensitive, RowLoss, get_loss
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers.base import Status
from beeline.solvers.dual.dual_cd import DualCD
from beeline.solvers.l1.l1_cd import L1CD
from beeline.solvers.newton import small
from beeline.solvers.newton.newton import Newton
from beeline.solvers.newton.small import is_small

N, D = 90, 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.7)
COSTS = np.where(RNG.random(N) < 0.1, 0.0, 3 * RNG.random(N))
SCORES = X @ RNG.normal(size=D) + 0.5 * RNG.normal(size=N) + 0.3
LABELS = {
    "binary": np.sign(SCORES),
    "real": SCORES,
    "classes": np.digitize(SCORES, [-1.0, 0.0, 1.0]).astype(float),
}
LAYOUTS = {
    "dense": X,
    "single": X.astype(np.float32),
    "sparse": scipy.sparse.csr_array(X),
}
SMOOTH = ("logistic", "squared_hinge", "squared", "huber", "softmax", "poisson")
KINKED = ("hinge", "epsilon_insensitive", "squared_hinge", "logistic", "squared", "squared_epsilon_insensitive")
INTERCEPTS = ("free", "regularized", "none")


def problem(name, intercept="free", layout="dense", regularizer=None, strength=1.0):
    loss = get_loss(name)
    y = np.round(np.exp(0.3 * SCORES)) if name == "poisson" else LABELS[loss.labels]
    outputs = 4 if loss.labels == "classes" else 1
    data = from_arrays(LAYOUTS[layout])
    return Objective.of(data, y, COSTS, loss, regularizer or L2(), strength, intercept, n_outputs=outputs)


def agree(solver, o, tol):
    """All steps at once, and one by one for somebody who watches."""
    seen = []
    at_once, watched = solver.run(o), solver.run(o, callback=seen.append)
    assert at_once.status is watched.status is Status.CONVERGED
    assert at_once.gap <= tol
    assert len(at_once.trace) == 1 <= len(seen)
    assert at_once.iterations > 1
    assert at_once.objective == pytest.approx(o.at(at_once.theta).value, rel=1e-14)
    assert at_once.bound <= watched.objective * (1 + 1e-14)
    assert watched.bound <= at_once.objective * (1 + 1e-14)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", SMOOTH)
def test_newton(name, intercept, layout):
    o = problem(name, intercept, layout)
    assert is_small(o)
    agree(Newton(1e-10), o, 1e-10)


@pytest.mark.parametrize("regularizer", [L1(), ElasticNet(0.5), L1(nonnegative=True), L2(nonnegative=True)], ids=repr)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", ["logistic", "squared", "squared_hinge", "poisson"])
def test_l1(name, intercept, regularizer):
    agree(L1CD(1e-8), problem(name, intercept, regularizer=regularizer, strength=4.0), 1e-8)


def test_l1_where_no_weight_is_the_optimum():
    result = L1CD(1e-8).run(problem("squared", regularizer=L1(), strength=1e4))
    assert result.status is Status.CONVERGED
    assert not result.theta[:-1].any()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("name", KINKED)
def test_dual_cd(name, intercept, layout):
    agree(DualCD(1e-4), problem(name, intercept, layout, strength=10.0), 1e-4)


def test_what_the_kernel_says_is_not_believed(monkeypatch):
    """A point that is not good enough has no certificate, and the solver goes on from there."""
    monkeypatch.setattr(small, "small_newton", lambda *arguments: 1)
    for solver, regularizer in ((Newton(1e-8), L2()), (L1CD(1e-8), L1())):
        result = solver.run(problem("logistic", regularizer=regularizer))
        assert result.status is Status.CONVERGED
        assert len(result.trace) > 1
        assert result.gap <= 1e-8


def test_sweeps_that_do_not_suffice():
    o = problem("hinge", strength=1e-2)
    result = DualCD(1e-3, max_passes=20_000).run(o)
    assert len(result.trace) > 1
    assert result.status is Status.CONVERGED
    passes = [point.passes for point in result.trace]
    assert passes == sorted(passes)


def test_limits_are_kept():
    result = Newton(1e-12, max_passes=4).run(problem("logistic", strength=1e-6))
    assert result.status is Status.LIMIT
    assert result.passes <= 8


def test_large_problems_are_not_small():
    assert not is_small(
        Objective.of(from_arrays(np.ones((10, 300))), np.ones(10), np.ones(10), get_loss("squared"), L2())
    )


def test_ctrl_c_between_small_problems(monkeypatch):
    """What was solved is kept, and the problems behind return at once."""
    calls = []

    def interrupt(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments)

    original = small.small_newton
    monkeypatch.setattr(small, "small_newton", interrupt)
    results = LinearSVC().fit(X, LABELS["classes"]).results_
    assert [result.status for result in results] == [Status.CONVERGED, *[Status.INTERRUPTED] * 3]


WITH_FORMULA = [
    name
    for name, kind in LOSSES.items()
    if issubclass(kind, RowLoss) and kind.best_constant is not RowLoss.best_constant and name != "tree_margin"
]


@pytest.mark.parametrize("name", WITH_FORMULA)
def test_the_best_constant(name):
    loss = EpsilonInsensitive(0.0) if name == "epsilon_insensitive" else get_loss(name)
    y = LABELS[loss.labels]
    best = loss.best_constant(y, COSTS)

    def value(b):
        return loss.sum(np.tile(b, (N, *([1] * np.ndim(b)))) if np.ndim(b) else np.full(N, float(b)), y, COSTS)

    for size in (1e-4, 1e-2, 1.0):
        for sign in (-1, 1):
            shift = np.zeros(np.shape(best))
            shift[(0,) * np.ndim(best)] = sign * size
            assert value(best) <= value(best + shift) * (1 + 1e-14)
