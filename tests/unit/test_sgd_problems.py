"""Stochastic gradient descent over what an objective may be: classes, regressions, L1, hard rows, an exact finish."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

import beeline
from beeline import open_store
from beeline.data.core.arrays import from_arrays
from beeline.data.store.writer import StoreWriter
from beeline.engines import Threads
from beeline.losses import LOSSES, CrammerSinger, Hinge, Logistic, MulticlassPerceptron, OneVsRest, Softmax
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers import SGD, Newton, auto
from beeline.solvers.auto import choose_solver
from beeline.solvers.base import Status
from beeline.solvers.stochastic.rule import STOCHASTIC_LOSSES

RNG = np.random.default_rng(0)
N, D, K = 3000, 12, 5
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.7)
SCORES = X @ RNG.normal(size=(D, K)) + RNG.normal(size=K)
CLASSES = (SCORES + RNG.gumbel(size=(N, K))).argmax(axis=1).astype(float)
COSTS = RNG.uniform(0.5, 1.5, size=N)


def of_classes(loss, omega=None, rows=X, labels=CLASSES, costs=None, *, C=0.1, intercept="free", engine=None):
    costs = np.ones(len(labels)) if costs is None else costs
    data = rows if hasattr(rows, "n_rows") else from_arrays(rows)
    k = int(np.max(labels)) + 1
    return Objective.of(data, labels, C * costs, loss, omega or L2(), 1.0, intercept, n_outputs=k, engine=engine)


def best(o):
    return choose_solver(o, tol=1e-6).run(o).objective


@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
@pytest.mark.parametrize("loss", [Softmax(), CrammerSinger()])
def test_passes_lead_towards_the_optimum_of_all_classes(loss, intercept):
    o = of_classes(loss, costs=COSTS, intercept=intercept)
    optimum = best(o)
    few, many = (SGD(max_passes=p, early_stopping=False).run(o).objective / optimum - 1 for p in (1, 20))
    assert few < 0.1
    assert -1e-6 < many < min(few, 0.01)
    slow = SGD(variant="mcid", batch_size=4, max_passes=10, early_stopping=False)
    if intercept != "free":
        assert slow.run(o).objective < 0.8 * o.null.value


@pytest.mark.parametrize("loss", [Hinge(), Logistic()])
def test_each_class_against_the_rest_on_one_walk(loss):
    """One problem of all classes has the optimum of as many problems as there are classes."""
    o = of_classes(OneVsRest(loss))
    total = 0.0
    for k in range(K):
        labels = np.where(k == CLASSES, 1.0, -1.0)
        total += best(Objective.of(from_arrays(X), labels, np.full(N, 0.1), loss, L2()))
    result = SGD(max_passes=20, early_stopping=False).run(o)
    assert total <= result.objective < 1.01 * total


def test_estimators_learn_classes_on_one_walk():
    model = beeline.LinearSVC(loss="hinge", C=0.1, solver="sgd").fit(X, CLASSES)
    exact = beeline.LinearSVC(loss="hinge", C=0.1).fit(X, CLASSES)
    assert len(model.results_) == 1
    assert model.coef_.shape == (K, D)
    assert model.score(X, CLASSES) > exact.score(X, CLASSES) - 0.01


@pytest.mark.parametrize("name", [k for k, kind in LOSSES.items() if kind.labels == "real" and kind.compiled])
def test_regressions(name):
    loss, random = LOSSES[name](), np.random.default_rng(1)
    z = 0.5 * SCORES[:, 0]
    y = z + 0.5 * random.normal(size=N)
    if loss.link == "exp":
        y = random.poisson(np.exp(np.minimum(z, 2))) + (0.5 if name == "gamma" else 0.0)
    if name == "cross_entropy":
        y = 1 / (1 + np.exp(-z))
    assert isinstance(loss, STOCHASTIC_LOSSES)
    o = Objective.of(from_arrays(X), y, COSTS, loss, L2())
    result = SGD(max_passes=5, early_stopping=False).run(o)
    assert result.objective < 1.03 * best(o)
    assert "progressive_error" not in result.facts


@pytest.mark.parametrize("loss", [Logistic(), Softmax()])
@pytest.mark.parametrize("omega", [L1(), ElasticNet(0.5)])
def test_l1_gives_sparse_models(loss, omega):
    wide = np.hstack([X, RNG.normal(size=(N, 30))])  # features that say nothing
    labels = CLASSES if loss.labels == "classes" else np.where(CLASSES > 1, 1.0, -1.0)
    o = Objective.of(
        from_arrays(wide), labels, np.full(N, 0.05), loss, omega, n_outputs=K if loss.labels == "classes" else 1
    )
    result = SGD(max_passes=10, early_stopping=False).run(o)
    exact = choose_solver(o, tol=1e-6).run(o)
    assert result.objective < 1.02 * exact.objective
    zero, meant = result.theta[: o.n_weights] == 0, exact.theta[: o.n_weights] == 0
    assert meant.any()
    assert np.mean(zero == meant) > 0.85


def test_a_perceptron_keeps_what_it_learned():
    """Zero weights are its optimum (M9): the direction counts, and is kept."""
    o = of_classes(MulticlassPerceptron())
    result = SGD(max_passes=5).run(o)
    w, b = o.split(result.theta)
    assert np.mean((X @ w + b).argmax(axis=1) == CLASSES) > np.mean(SCORES.argmax(axis=1) == CLASSES) - 0.05


def test_a_perceptron_of_two_classes_begins_from_a_tie():
    labels = np.where(X @ np.arange(-5.0, 7.0) > 0, 1.0, -1.0)
    for kind, solver in (("free", SGD(max_passes=3)), ("none", SGD(variant="pegasos", max_passes=3))):
        o = Objective.of(from_arrays(X), labels, np.ones(N), LOSSES["perceptron"](), L2(), 1.0, kind)
        z = o.rows.gather(o.at(solver.run(o).theta).z)
        assert np.mean(z * labels > 0) > 0.85


# Weights.


@pytest.mark.parametrize("loss", [Softmax(), OneVsRest(Hinge())])
def test_costs_count_and_those_of_zero_are_absent(loss):
    costs = np.where(np.arange(N) % 3 == 0, COSTS, 0.0)
    some = costs > 0
    over_all, over_some = of_classes(loss, costs=costs), of_classes(loss, None, X[some], CLASSES[some], costs[some])
    one, other = (SGD(max_passes=20).run(o).objective for o in (over_all, over_some))
    assert one == pytest.approx(other, rel=0.01)
    heavy = SGD(max_passes=10).run(of_classes(loss, costs=np.where(CLASSES == 2, 20.0, 1.0)))
    w, b = over_all.split(heavy.theta)
    found = (X @ w + b).argmax(axis=1)
    assert np.mean(found[CLASSES == 2] == 2) > 0.9


# Ends.


@pytest.mark.parametrize("loss", [Softmax(), CrammerSinger()])
def test_an_exact_finish_is_certified(loss):
    o = of_classes(loss)
    result = SGD(tol=1e-4, finish="exact").run(o)
    assert result.status is Status.CONVERGED
    assert result.gap <= 1e-4
    assert result.solver != "sgd"
    assert result.objective == pytest.approx(best(o), rel=1e-4)


def test_a_finish_saves_steps_of_newtons_method():
    o = of_classes(Softmax(), C=10.0)
    cold = Newton(tol=1e-3).run(o)
    start = SGD(max_passes=2).run(o)
    warm = Newton(tol=1e-3).run(o, start.state)
    assert warm.passes < cold.passes


def test_auto_begins_newtons_method_by_stochastic_passes(monkeypatch):
    """Where there is much to do, and no start."""
    o = of_classes(Softmax())
    assert not isinstance(choose_solver(o), auto.Started)
    monkeypatch.setattr(auto, "_MUCH", 1)
    assert not isinstance(choose_solver(o, warm=True), auto.Started)
    solver = choose_solver(o, tol=1e-5, max_passes=500)
    assert isinstance(solver, auto.Started)
    assert (solver.name, solver.max_passes) == ("newton", 500)
    result = pickle.loads(pickle.dumps(solver)).run(o)
    assert (result.status, result.solver) == (Status.CONVERGED, "newton")
    assert result.objective == pytest.approx(best(o), rel=1e-5)
    again = solver.run(o, result.state)
    assert again.passes < 3


def test_the_trend_is_told():
    result = SGD().run(of_classes(Softmax()))
    assert result.status is Status.UNPROVEN
    assert "rows, before they were learned from, had a mean loss of" in result.sentence
    assert "% wrong" in result.sentence
    assert -0.02 < result.facts["progressive_trend"] < 0.02


# Hard rows: at most one point below the exact solution of the same problem after five passes.


def accuracy(o, theta, rows, labels):
    w, b = o.split(theta)
    return np.mean((rows @ w + b).argmax(axis=1) == labels)


def hard(name, random):
    """Rows to learn from and to predict, with their labels."""
    n = 30_000 if name == "rare" else 6000
    true, offsets = random.normal(size=(D, 3)), np.array([0.0, 0.5, -0.5])
    if name == "rare":
        offsets[2] = -12.0
    rows = random.normal(size=(n, D)) + 1.0
    labels = (rows @ true + offsets + random.gumbel(size=(n, 3))).argmax(axis=1).astype(float)
    if name == "large":
        rows = 1000 * rows
    if name == "wild":
        rows = rows * 10.0 ** random.uniform(-4, 4, size=D)
    half = n // 2
    train, test = labels[:half].copy(), labels[half:]
    if name == "flipped":
        which = random.random(half) < 0.2
        train[which] = random.integers(0, 3, size=int(which.sum()))
    if name == "sorted":
        order = np.argsort(train, kind="stable")
        return rows[:half][order], train[order], rows[half:], test
    return rows[:half], train, rows[half:], test


@pytest.mark.parametrize("loss", [Softmax(), CrammerSinger(), OneVsRest(Hinge())])
@pytest.mark.parametrize("name", ["large", "wild", "flipped", "sorted", "rare"])
def test_hard_rows(name, loss, tmp_path):
    rows, train, unseen, test = hard(name, np.random.default_rng(5))
    C, engine, data = (1e6 if name == "wild" else 1.0), None, rows
    if name == "sorted":
        with StoreWriter(tmp_path / "store", chunk_bytes=16 << 10) as writer:
            writer.write(from_arrays(rows, train).block)
            writer.finish()
        data, engine = open_store(tmp_path / "store"), Threads(memory=400_000)
    o = of_classes(loss, None, data, train, C=C, engine=engine)
    exact_loss = Softmax() if isinstance(loss, Softmax) else CrammerSinger()
    exact = of_classes(exact_loss, None, rows, train, C=C)
    theta = choose_solver(exact, tol=1e-2).run(exact).theta
    found = SGD(max_passes=5).run(o).theta
    assert accuracy(o, found, unseen, test) > accuracy(exact, theta, unseen, test) - 0.01


def test_a_store_gives_the_same_bits_as_itself_and_the_model_of_arrays(tmp_path):
    with StoreWriter(tmp_path / "store", chunk_bytes=16 << 10) as writer:
        writer.write(from_arrays(scipy.sparse.csr_array(X), CLASSES).block)
        writer.finish()
    engine = Threads(memory=300_000)
    o = of_classes(Softmax(), None, open_store(tmp_path / "store"), CLASSES, engine=engine)
    one, other = (SGD(max_passes=3, seed=2).run(o) for _ in range(2))
    assert_array_equal(one.theta, other.theta)
    assert one.objective == pytest.approx(SGD(max_passes=3).run(of_classes(Softmax())).objective, rel=0.01)


def test_threads_and_layouts_do_not_matter(same_bits):
    o = of_classes(Softmax())
    same_bits(lambda: SGD(max_passes=2).run(o).theta, by_kernels=False)
    theta = SGD(max_passes=2).run(o).theta
    sparse = SGD(max_passes=2).run(of_classes(Softmax(), rows=scipy.sparse.csr_array(X))).theta
    assert_allclose(sparse, theta, rtol=1e-2, atol=1e-3)
