"""Stochastic steps over several classes against plain loops: averaged ones, MCID and K-Pegasos."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from beeline.data.core.arrays import from_arrays
from beeline.kernels import ClassSteps, McidSteps
from beeline.losses import CrammerSinger, Hinge, Logistic, MulticlassPerceptron, OneVsRest, Softmax, SquaredHinge
from beeline.solvers.stochastic.rule import form_of

RNG = np.random.default_rng(0)
N, D, K = 400, 9, 11
X = (RNG.normal(size=(N, D)) + 0.3) * (RNG.random((N, D)) < 0.7)
Y = (X @ RNG.normal(size=(D, K)) + 0.5 * RNG.gumbel(size=(N, K))).argmax(axis=1).astype(float)
COSTS = RNG.uniform(0.5, 1.5, size=N)
COSTS[5:9] = 0.0
LOSSES = {
    "softmax": Softmax(),
    "hinge": CrammerSinger(),
    "perceptron": MulticlassPerceptron(),
    "ovr_hinge": OneVsRest(Hinge()),
    "ovr_squared_hinge": OneVsRest(SquaredHinge()),
    "ovr_logistic": OneVsRest(Logistic()),
}


def derivatives(loss, z, y):
    values, slopes = loss.value_and_grad(z[None], np.array([y]))
    return float(values[0]), slopes[0]


def lengths(loss, z, y, eta, q):
    """How long the step of each class is: no longer than the loss's tangent, or that of each class, allows."""
    value, g = derivatives(loss, z, y)
    if isinstance(loss, OneVsRest):
        signs = np.where(np.arange(K) == y, 1.0, -1.0)
        values, _ = loss.loss.value_and_grad(z, signs)
        return np.where(g != 0, np.minimum(eta, values / np.where(g != 0, g * g * q, 1.0)), 0.0), g
    if not g.any():
        return 0.0, g
    if isinstance(loss, MulticlassPerceptron) and value == 0:
        return min(eta, 1 / (g @ g * q)), g
    return min(eta, value / (g @ g * q)), g


def plain_averaged(loss, rows, sizes, n_shrunk, settings, skip):
    """All weights changed at every row; they decay where the kernel has them decay, and rows by the rest before."""
    l2, _, rate, fading, power = settings
    w, mean, losses = np.zeros((rows.shape[1], K)), np.zeros((rows.shape[1], K)), 0.0
    eta, gone, swept, shrunk = rate, 0.0, 0.0, np.arange(len(sizes)) < n_shrunk
    for t, i in enumerate(np.flatnonzero(COSTS > 0), 1):
        row = rows[i] * np.exp(-l2 * sizes * shrunk * (gone - swept))
        losses += COSTS[i] * derivatives(loss, row @ mean, Y[i])[0]
        length, g = lengths(loss, row @ w, Y[i], eta * COSTS[i], sizes @ row**2)
        w = w - np.outer(sizes * row, length * g)
        gone += eta
        if t % skip == 0 and l2 * sizes[:n_shrunk].max() * (gone - swept) >= 0.1:
            w *= np.exp(-l2 * sizes * shrunk * (gone - swept))[:, None]
            swept = gone
        if t % 64 == 0:
            eta = rate / (1 + fading * t) ** power
        mean = mean + 4 / (t + 3) * (w - mean)
    return mean * np.exp(-l2 * sizes * shrunk * (gone - swept))[:, None], losses


def steps_over(loss, sizes, means, intercept, settings, skip):
    weights = np.zeros((D + (intercept != "none"), 2, 16), dtype=np.float32)
    columns = np.stack([np.sqrt(sizes), np.zeros(len(sizes))], axis=1)
    kinds = intercept, form_of(loss), loss.parameters
    return ClassSteps(weights, columns, means, K, *kinds, settings, 1, skip)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_averaged_steps_are_plain_ones(name, intercept, layout):
    """Scaled and centred in effect, float32, averages in factors: as a plain loop, to the rounding of float32."""
    loss, has = LOSSES[name], intercept != "none"
    means = np.where(np.arange(D) % 3 == 0, 0.3, 0.0) if intercept == "free" else np.zeros(D)
    sizes = np.random.default_rng(1).uniform(0.05, 0.2, size=D + has)
    settings = 1e-2, 0.0, 1.5, 1e-3, 0.75
    steps = steps_over(loss, sizes, means, intercept, settings, 4)
    block = from_arrays(scipy.sparse.csr_array(X) if layout == "sparse" else X).block
    sums = np.zeros(3)
    for part in (np.arange(150), np.arange(150, N)):
        sums += steps.learn(block.arrays, part, Y, COSTS)
    found = np.empty(((D + has), K))
    steps.copy_weights(found.reshape(-1))
    rows = np.column_stack([X - means, np.ones(N)]) if has else X
    mean, losses = plain_averaged(loss, rows, sizes, D + (intercept == "regularized"), settings, 4)
    if has:
        mean[-1] -= means @ mean[:D]
    assert_allclose(found, mean, rtol=2e-3, atol=2e-4)
    assert sums[0] == pytest.approx(losses, rel=1e-3)
    assert sums[2] == pytest.approx(COSTS.sum())
    assert steps.steps == N - 4


def one_against_the_rest(y, n_classes, loss="hinge", stride=1):
    """Weights and sums of averaged steps with that many classes."""
    sizes, settings = np.random.default_rng(1).uniform(0.05, 0.2, size=D + 1), (1e-2, 0.0, 1.5, 1e-3, 0.75)
    weights = np.zeros((D + 1, 2, -(-n_classes // 8) * 8), dtype=np.float32)
    columns = np.stack([np.sqrt(sizes), np.zeros(D + 1)], axis=1)
    kinds = "free", f"ovr:{loss}", (1.0, 0.0)
    steps = ClassSteps(weights, columns, np.zeros(D), n_classes, *kinds, settings, stride, 4)
    sums = steps.learn(from_arrays(scipy.sparse.csr_array(X)).block.arrays, np.arange(N), y, COSTS)
    found = np.empty((D + 1, n_classes))
    steps.copy_weights(found.reshape(-1))
    return found, np.array(sums)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_classes_against_the_rest_are_learned_in_parts(loss, same_bits):
    """Each class as it would be with seven others, the same bits on any number of threads, sums over all of them."""
    y = (np.arange(N) % 37).astype(float)
    few, _ = one_against_the_rest(np.minimum(y, 7.0), 8, loss)
    many, sums = same_bits(lambda: one_against_the_rest(y, 37, loss, stride=3))
    assert_allclose(many[:, :7], few[:, :7], rtol=1e-5, atol=1e-6)
    assert sums[2] == pytest.approx(COSTS[::3].sum())
    _, first = one_against_the_rest(y, 37, loss, stride=10_000)  # of the first row alone, by zero weights
    assert first[0] == pytest.approx(COSTS[0] * derivatives(LOSSES[f"ovr_{loss}"], np.zeros(37), 0.0)[0], rel=1e-6)


def test_l1_that_waits_is_l1_at_every_row():
    """Weights that decay when their feature is seen are those that decay at every row: zeros are the same."""
    loss, settings, sizes = Softmax(), (1e-3, 2e-2, 1.0, 0.0, 0.5), np.full(D, 0.1)
    sparse = X * (np.random.default_rng(2).random(X.shape) < 0.3)
    columns = np.stack([np.sqrt(sizes), np.zeros(D)], axis=1)
    weights = np.zeros((D, 2, 16), dtype=np.float32)
    steps = ClassSteps(weights, columns, np.zeros(0), K, "none", "softmax", (0.0, 0.0), settings, 1, 10_000)
    steps.learn(from_arrays(scipy.sparse.csr_array(sparse)).block.arrays, np.arange(N), Y, COSTS)
    w, (l2, l1, eta, *_) = np.zeros((D, K)), settings
    for i in np.flatnonzero(COSTS > 0):
        length, g = lengths(loss, sparse[i] @ w, Y[i], eta * COSTS[i], sizes @ sparse[i] ** 2 or 1.0)
        w = w - np.outer(sizes * sparse[i], length * g)
        keep = np.exp(-l2 * sizes * eta)[:, None]
        w = np.sign(w) * np.maximum(0, np.abs(w) * keep - l1 / l2 * (1 - keep))
    found = weights[:, 0, :K] * columns[:, :1]
    assert_allclose(found, w, rtol=1e-3, atol=1e-5)
    assert_array_equal(found == 0, w == 0)
    assert 0.1 < np.mean(w == 0) < 0.9


# As published.


def plain_mcid(loss, rows, strength, batch):
    """M3: w ← ((t − 1)/t)·w − (1/(λtr)) Σ c ∂l(w^(t−1)), every weight changed at every step."""
    w, losses, kept = np.zeros((rows.shape[1], K)), 0.0, np.flatnonzero(COSTS > 0)
    for t, start in enumerate(range(0, len(kept), batch), 1):
        some, gradient = kept[start : start + batch], np.zeros_like(w)
        for i in some:
            value, g = derivatives(loss, rows[i] @ w, Y[i])
            losses += COSTS[i] * value
            gradient += COSTS[i] * np.outer(rows[i], g)
        w = (t - 1) / t * w - gradient / (strength * t * len(some))
    return w, losses


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("name", LOSSES)
def test_mcid_in_the_form_u_is_algorithm_1(name, batch):
    """M5 equals M3, to rounding."""
    loss, strength = LOSSES[name], 2.0
    v, balls = np.zeros((D + 1, K)), np.stack([np.ones(K), np.zeros(K)])
    steps = McidSteps(v, balls, True, form_of(loss), loss.parameters, strength, batch, False, 0.0)
    sums = steps.learn(from_arrays(scipy.sparse.csr_array(X)).block.arrays, np.arange(N), Y, COSTS)
    found = np.empty((D + 1, K))
    steps.copy_weights(found.reshape(-1))
    w, losses = plain_mcid(loss, np.column_stack([X, np.ones(N)]), strength, batch)
    assert_allclose(found, w, rtol=1e-9, atol=1e-12)
    assert sums[0] == pytest.approx(losses, rel=1e-9)
    assert found.any()
    assert steps.steps == math.ceil((N - 4) / batch)


def test_k_pegasos_keeps_each_class_in_its_ball():
    loss, strength, rows = OneVsRest(Hinge()), 0.02, X[:60]
    v, balls = np.zeros((D, K)), np.stack([np.ones(K), np.zeros(K)])
    steps = McidSteps(v, balls, False, form_of(loss), loss.parameters, strength, 1, True, 0.0)
    steps.learn(from_arrays(rows).block.arrays, np.arange(60), Y[:60], np.ones(60))
    found = np.empty((D, K))
    steps.copy_weights(found.reshape(-1))
    w = np.zeros((D, K))
    for t, (x, y) in enumerate(zip(rows, Y[:60], strict=True), 1):
        w = (t - 1) / t * w - np.outer(x, derivatives(loss, x @ w, y)[1]) / (strength * t)
        w /= np.maximum(1.0, np.sqrt(strength) * np.linalg.norm(w, axis=0))
    assert_allclose(found, w, rtol=1e-9, atol=1e-12)
    assert np.any(balls[0] < 1)


def test_a_perceptron_begins_from_a_tie():
    """M9: at zero weights all classes tie, and the right one does not win."""
    steps = steps_over(MulticlassPerceptron(), np.ones(D), np.zeros(0), "none", (0.0, 0.0, 1.0, 0.0, 0.5), 100)
    losses, errors, weight = steps.learn(from_arrays(X).block.arrays, np.arange(1), Y, np.ones(N))
    assert (losses, weight) == (0.0, 1.0)
    assert errors == pytest.approx(1 - 1 / K)
    found = np.empty((D, K))
    steps.copy_weights(found.reshape(-1))
    assert found.any()


def test_threads_do_not_matter(same_bits):
    """Decay, and copies of averages, are cut into tasks by features."""
    random = np.random.default_rng(3)
    wide = scipy.sparse.random_array((200, 4000), density=0.01, rng=random, format="csr")
    labels, block = random.integers(0, K, size=200).astype(float), from_arrays(wide).block

    def learned():
        weights = np.zeros((4000, 2, 16), dtype=np.float32)
        columns = np.stack([np.ones(4000), np.zeros(4000)], axis=1)
        settings = 1e-2, 0.0, 1.0, 0.0, 0.5
        steps = ClassSteps(weights, columns, np.zeros(0), K, "none", "softmax", (0.0, 0.0), settings, 1, 10)
        steps.learn(block.arrays, np.arange(200), labels, np.ones(200))
        out = np.empty(4000 * K)
        steps.copy_weights(out)
        return out

    same_bits(learned)
