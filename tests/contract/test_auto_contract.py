"""Every loss of the registry has a solver that `auto` takes, and reaches a certified optimum."""

import numpy as np
import pytest
from loss_rows import CONVEX, learned_labels

from beeline.data.core.arrays import from_arrays
from beeline.losses import LOSSES, Gamma, Perceptron, Poisson, SquaredPerceptron, VectorLoss
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers.auto import SOLVERS, choose_solver
from beeline.solvers.base import Status

REGULARIZERS = (L2(), L1(), ElasticNet(0.4))
# Who takes a loss with kinks and L2, where it is not the one for L1.
WITH_L2 = {
    "hinge": "dual_cd",
    "epsilon_insensitive": "dual_cd",
    "crammer_singer": "class_dual_cd",
    "weston_watkins": "class_dual_cd",
    "multiclass_margin": "class_dual_cd",
    "scaled_multiclass_margin": "class_dual_cd",
    "multiclass_perceptron": "class_dual_cd",
}
ROWS = np.random.default_rng(0).normal(size=(50, 4)) + 0.5


def problem(loss, regularizer=REGULARIZERS[0], intercept="free", X=ROWS, y=None):
    y = learned_labels(loss, X).astype(float) if y is None else y
    y = np.where(y > 0, 1.0, -1.0) if loss.labels in ("binary", "sets") else y
    intercept = "regularized" if loss.labels == "none" else "none" if loss.differences_only else intercept
    outputs = 3 if isinstance(loss, VectorLoss) else 1
    return Objective.of(from_arrays(X), y, np.ones(len(X)), loss, regularizer, 1.0, intercept, n_outputs=outputs)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=lambda r: r.name)
@pytest.mark.parametrize("name", CONVEX)
def test_auto_has_a_solver(name, regularizer):
    loss = LOSSES[name]()
    o = problem(loss, regularizer)
    solver = choose_solver(o, tol=1e-6)
    result = solver.solve(o)
    assert result.status is Status.CONVERGED
    assert result.gap <= 1e-6
    assert solver.name == who(loss, regularizer)


def who(loss, regularizer):
    if loss.n_extra(1):
        return "lbfgs" if loss.smooth else "bundle"
    if not loss.has_curvature:
        if loss.name == "tree_margin" and not regularizer.l1:
            return "smoothed_newton"
        others = "bundle" if isinstance(loss, VectorLoss) else "interior_point"
        return others if regularizer.l1 else WITH_L2.get(loss.name, others)
    if not regularizer.l1:
        return "newton"
    return "lbfgs" if isinstance(loss, VectorLoss) else "l1_cd"


@pytest.mark.parametrize("begin", ["zero", "elsewhere"])
@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=lambda r: r.name)
@pytest.mark.parametrize("loss", [Perceptron(), SquaredPerceptron()], ids=lambda loss: loss.name)
def test_a_minimum_of_zero_is_certified(loss, regularizer, intercept, begin):
    o = problem(loss, regularizer, intercept)
    start = None if begin == "zero" else np.random.default_rng(1).normal(size=o.size)
    for name, kind in SOLVERS.items():
        solver = kind(1e-6, 100, 0)
        if solver.certifies and solver.refusal(o) is None:
            result = solver.run(o, start)
            assert (result.status, result.objective, result.gap) == (Status.CONVERGED, 0.0, 0.0), name


@pytest.mark.parametrize("regularizer", REGULARIZERS[:2], ids=lambda r: r.name)
@pytest.mark.parametrize(("loss", "widest"), [(Gamma(), 50.0), (Gamma(), 5.0), (Poisson(), 8.0)], ids=str)
def test_labels_of_all_sizes_under_a_logarithmic_link(loss, widest, regularizer):
    """J where all rates are 1 is astronomic here; it is no measure of what is small."""
    y = np.exp(widest * np.random.default_rng(2).random(50))
    o = problem(loss, regularizer, y=y)
    found = [kind(1e-6, 2000, 0).run(o) for kind in SOLVERS.values() if kind.certifies and not kind().refusal(o)]
    assert len(found) == 3
    for result in found:
        assert result.status is Status.CONVERGED
        assert result.iterations > 1
        assert result.objective == pytest.approx(found[0].objective, rel=2e-6)


def test_an_own_loss_may_be_negative():
    """J = 0 proves nothing about a loss that is not known to stay above it."""

    class Shifted(Gamma):
        trusted = True

        def value_and_grad(self, z, y):
            value, slope = super().value_and_grad(z, y)
            return value - y + np.log(y) + 1, slope  # 0 at a score of 0

        compiled = None

    o = problem(Shifted(), y=np.exp(np.random.default_rng(2).random(50)))
    assert o.at().value == pytest.approx(0, abs=1e-12)
    result = SOLVERS["newton"](1e-6, 100, 0).run(o)
    assert result.objective < -1
