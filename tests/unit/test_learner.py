"""The learner of rows that come one after the other: growing, going on, and what rows and labels may be like."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from beeline.data.core.arrays import from_arrays
from beeline.losses import (
    Absolute,
    CrammerSinger,
    Hinge,
    LeastSquares,
    Logistic,
    MulticlassPerceptron,
    OneVsRest,
    Poisson,
    Softmax,
)
from beeline.objective.parameters import Parameters
from beeline.solvers.stochastic.learner import Learner, Strengths
from beeline.solvers.stochastic.options import SGDOptions

RNG = np.random.default_rng(0)
N, D, K = 1200, 15, 4
X = (RNG.normal(size=(N, D)) + 0.2) * (RNG.random((N, D)) < 0.5)
SCORES = X @ RNG.normal(size=(D, K)) + np.array([0.5, 0.0, -0.5, 0.0])
CLASSES = (SCORES + 0.3 * RNG.gumbel(size=(N, K))).argmax(axis=1).astype(float)
SIGNS = np.where(SCORES[:, 0] > 0.5, 1.0, -1.0)
LOSSES = (Hinge(), Softmax(), CrammerSinger(), OneVsRest(Logistic()))


def labels_of(loss):
    return CLASSES if loss.labels == "classes" else SIGNS


def outputs_of(loss):
    return K if loss.labels == "classes" else 1


def block_of(rows):
    return from_arrays(scipy.sparse.csr_array(rows)).block


def learner_of(loss, intercept="free", l1=0.0, **more):
    return Learner(loss, Parameters(D, outputs_of(loss), intercept), Strengths(1e-4, l1), **more)


def batches(size=100):
    return [slice(start, start + size) for start in range(0, N, size)]


VARIANTS = [
    *((loss, SGDOptions(), l1) for loss in LOSSES for l1 in (0.0, 1e-3)),
    (MulticlassPerceptron(), SGDOptions(variant="mcid", batch_size=5), 0.0),
    (OneVsRest(Hinge()), SGDOptions(variant="pegasos"), 0.0),
    (Hinge(), SGDOptions(variant="pegasos"), 0.0),
]


@pytest.mark.parametrize(("loss", "options", "l1"), VARIANTS)
def test_a_snapshot_goes_on_to_the_same_bits(loss, options, l1):
    kind, y = "free" if options.variant == "averaged" else "regularized", labels_of(loss)
    whole, first = (learner_of(loss, kind, l1, options=options) for _ in range(2))
    for number, part in enumerate(batches()):
        if number in (0, 3, 8):  # before anything is known, while scales are looked at, and later
            first = Learner.restored(loss, first.snapshot())
        sums = [learner.learn(block_of(X[part]), y[part]) for learner in (whole, first)]
        assert sums[0] == sums[1]
    assert_array_equal(whole.theta, first.theta)
    assert whole.rows == first.rows == N


@pytest.mark.parametrize(("loss", "options", "l1"), VARIANTS)
def test_features_and_classes_that_appear_later_begin_at_zero(loss, options, l1):
    """A learner that grows is one that knew all of them, whose weights were zero so far."""
    kind, y = "free" if options.variant == "averaged" else "regularized", labels_of(loss)
    few = Parameters(D - 5, min(3, outputs_of(loss)), kind)
    early = (y < 3) if loss.labels == "classes" else np.ones(N, bool)
    narrow = np.where(np.arange(D) < D - 5, X, 0.0)[early][:300]
    y_early = y[early][:300]
    grown = Learner(loss, few, Strengths(1e-4, l1), options)
    grown.learn(block_of(narrow[:, : D - 5]), y_early)
    before = grown.theta
    grown.grow(D, outputs_of(loss))
    w, b = Parameters(D, outputs_of(loss), kind).split(grown.theta)
    w_before, b_before = few.split(before)
    k = few.n_outputs
    assert_allclose(w.reshape(D, -1)[: D - 5, :k], w_before.reshape(D - 5, -1), rtol=1e-6, atol=1e-9)
    assert_allclose(np.ravel(b)[:k], np.ravel(b_before), rtol=1e-6, atol=1e-9)
    assert not w.reshape(D, -1)[D - 5 :].any()
    sums = grown.learn(block_of(X), y)
    again = grown.learn(block_of(X), y)
    assert again.errors < sums.errors
    assert grown.theta.shape == (Parameters(D, outputs_of(loss), kind).size,)


@pytest.mark.parametrize(("loss", "options", "l1"), VARIANTS)
def test_rows_that_cost_nothing_are_absent(loss, options, l1):
    kind, y = "free" if options.variant == "averaged" else "regularized", labels_of(loss)
    costs = np.where(RNG.random(N) < 0.3, 0.0, RNG.uniform(0.5, 1.5, size=N))
    order, some = RNG.permutation(N), np.flatnonzero(costs > 0)
    thetas = []
    for visits in (order, order[np.isin(order, some)]):
        learner = learner_of(loss, kind, l1, options=options)
        learner.learn(block_of(X), y, costs, visits)
        thetas.append(learner.theta)
    assert_array_equal(*thetas)


@pytest.mark.parametrize("loss", LOSSES)
def test_batches_however_small(loss):
    """Scales are looked at again while few rows are known: batches of 7 rows learn about as much as all at once."""
    y = labels_of(loss)
    at_once, by_sevens = learner_of(loss), learner_of(loss)
    at_once.learn(block_of(X * 1000), y)
    for part in batches(7):
        by_sevens.learn(block_of(X[part] * 1000), y[part])
    errors = [learner.learn(block_of(X * 1000), y).errors / N for learner in (at_once, by_sevens)]
    assert errors[1] < errors[0] + 0.02


def test_columns_of_wild_scales_that_appear_later():
    """Where each column has a scale of its own, that of a new one is taken from its first entries."""
    units = 10.0 ** np.random.default_rng(1).uniform(-4, 4, size=D)
    plain, wild = (Learner(Hinge(), Parameters(D), Strengths(0.0)) for _ in range(2))  # Ω would know units
    for learner, rows in ((plain, X), (wild, X * units)):
        first = rows.copy()
        first[:, 10:] = 0.0
        for _ in range(4):
            learner.learn(block_of(first), SIGNS)
        for _ in range(4):
            sums = learner.learn(block_of(rows), SIGNS)
        learner.errors = sums.errors / N
    assert wild.errors < plain.errors + 0.02


@pytest.mark.parametrize("loss", [LeastSquares(), Absolute(), Poisson()])
def test_a_regression_does_not_know_units(loss):
    """Labels times 1,000 (of logarithms: plus a constant) give the same scores, in that unit."""
    z = SCORES[:, 0]
    y = np.exp(z) if loss.link == "exp" else z
    unit = 1000.0
    learners = [Learner(loss, Parameters(D), Strengths(0.0)) for _ in range(2)]
    for learner, labels in zip(learners, (y, unit * y), strict=True):
        for _ in range(5):
            learner.learn(block_of(X), labels)
    w, other = (learner.theta for learner in learners)
    if loss.link == "exp":
        assert_allclose(other[:-1], w[:-1], rtol=0.05, atol=0.02)
        assert other[-1] - w[-1] == pytest.approx(np.log(unit), abs=0.05)
    else:
        assert_allclose(other, unit * w, rtol=1e-6)
        assert np.corrcoef(X @ w[:-1], y)[0, 1] > 0.99


def test_wrong_calls():
    learner = learner_of(Softmax())
    with pytest.raises(ValueError, match="rows of 16 features, of which 15 are known"):
        learner.learn(block_of(np.ones((1, D + 1))), np.zeros(1))
    for variant in ("averaged", "mcid"):
        other = learner_of(Softmax(), "none", options=SGDOptions(variant=variant))
        with pytest.raises(ValueError, match="a label is no class number"):
            other.learn(block_of(X[:2]), np.array([0.0, K]))
    with pytest.raises(ValueError, match="may be added, not taken away"):
        learner.grow(D, K - 1)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_may_have_fewer_columns_than_there_are(loss):
    """As sparse rows, and as dense ones, which are wide as their batch is."""
    y, narrow = labels_of(loss), np.where(np.arange(D) < 9, X, 0.0)
    thetas = []
    for block in (block_of(narrow), block_of(narrow[:, :9]), from_arrays(np.ascontiguousarray(narrow[:, :9])).block):
        learner = learner_of(loss)
        learner.learn(block, y)
        thetas.append(learner.theta)
    assert_allclose(thetas[1], thetas[0], rtol=1e-9)
    assert_allclose(thetas[2], thetas[0], rtol=1e-2, atol=1e-3)
