"""The kernels of stochastic gradient descent against plain loops, and the scales of columns."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from beeline.data.core.arrays import from_arrays
from beeline.kernels import AveragedSteps, PegasosSteps
from beeline.losses import LOSSES
from beeline.solvers.stochastic.scales import ColumnSums, Scales

NAMES = ("hinge", "squared_hinge", "logistic")
RNG = np.random.default_rng(0)
N, D = 3000, 12
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.7)
LABELS = np.where(X @ RNG.normal(size=D) + 0.4 + RNG.normal(size=N) > 0, 1.0, -1.0)
COSTS = RNG.uniform(0.5, 1.5, size=N)
COSTS[5:9] = 0.0


def derivatives(name, z, y):
    value, slope = LOSSES[name]().value_and_grad(np.array([z]), np.array([y]))
    return float(value[0]), float(slope[0])


def layouts(rows=X):
    """The same rows in every form that kernels take."""
    sparse = scipy.sparse.csr_array(rows)
    wide = sparse.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return {"dense": rows, "sparse": sparse, "wide": wide}


# Kernels.


def plain_pegasos(name, rows, y, c, *, strength, batch, projects):
    """w ← (1 − 1/t)w − (1/(λtr)) Σ c ∂l, with every weight changed at every step."""
    w, losses, errors = np.zeros(rows.shape[1]), 0.0, 0.0
    kept = np.flatnonzero(c > 0)
    for t, start in enumerate(range(0, len(kept), batch), 1):
        some = kept[start : start + batch]
        gradient = np.zeros(len(w))
        for i in some:
            z = rows[i] @ w
            value, slope = derivatives(name, z, y[i])
            losses, errors = losses + c[i] * value, errors + c[i] * (0.5 if z == 0 else float(z * y[i] < 0))
            gradient += c[i] * slope * rows[i]
        w = (1 - 1 / t) * w - gradient / (strength * t * len(some))
        if projects and strength * (w @ w) > 1:
            w /= math.sqrt(strength * (w @ w))
    return w, losses, errors


@pytest.mark.parametrize("layout", ["dense", "sparse", "wide"])
@pytest.mark.parametrize(("batch", "projects"), [(1, True), (1, False), (7, True), (7, False)])
@pytest.mark.parametrize("name", NAMES)
def test_pegasos_is_as_published(name, batch, projects, layout):
    """U = λ·t·w, with the ball's factor beside it, is the plain form, to rounding."""
    n, strength = 203, 0.5
    c = COSTS[:n].copy()
    block = from_arrays(layouts(X[:n])[layout]).block
    visits = np.random.default_rng(1).permutation(n)
    steps = PegasosSteps(np.zeros(D + 1), True, name, (0.0, 0.0), strength, batch, projects, 0.0)
    found = steps.learn(block.arrays, visits, LABELS[:n], c)
    w = np.empty(D + 1)
    steps.copy_weights(w)
    rows = np.column_stack([X[:n], np.ones(n)])[visits]
    plain, *sums = plain_pegasos(
        name, rows, LABELS[:n][visits], c[visits], strength=strength, batch=batch, projects=projects
    )
    assert_allclose(w, plain, rtol=1e-9, atol=1e-12)
    assert_allclose(found, (*sums, c.sum()), rtol=1e-9)
    assert steps.steps == -(-(n - 4) // batch)


def plain_averaged(name, rows, y, c, *, sizes, n_shrunk, schedule, skip):
    """The steps and averages with every weight changed at every row."""
    strength, rate, decay, power = schedule
    w, mean, losses = np.zeros(rows.shape[1]), np.zeros(rows.shape[1]), 0.0
    eta = rate
    for t, i in enumerate(np.flatnonzero(c > 0), 1):
        losses += c[i] * derivatives(name, rows[i] @ mean, y[i])[0]
        value, slope = derivatives(name, rows[i] @ w, y[i])
        if slope:
            g, q = c[i] * slope, sizes @ rows[i] ** 2
            w = w - min(eta, c[i] * value / (g * g * q)) * g * sizes * rows[i]
        if t % skip == 0:
            w[:n_shrunk] /= 1 + skip * eta * strength * sizes[:n_shrunk]
        if t % 64 == 0:
            eta = rate / (1 + decay * t) ** power
        mean = mean + 4 / (t + 3) * (w - mean)
    return mean, losses


@pytest.mark.parametrize("layout", ["dense", "sparse", "wide"])
@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
@pytest.mark.parametrize("name", NAMES)
def test_averages_in_factors_are_plain_averages(name, intercept, layout):
    """w̄ = A·F + B·w, rows centred in effect, is the plain form, to rounding; A is scaled back on the way."""
    n, has = 1500, intercept != "none"
    means = np.where(np.arange(D) % 3 == 0, 0.3, 0.0) if intercept == "free" else np.zeros(D)
    sizes = RNG.uniform(0.05, 0.2, size=D + has)
    schedule = 1e-3, 1.5, 1e-3, 0.75
    settings = 1e-3, 0.0, 1.5, 1e-3, 0.75
    block = from_arrays(layouts(X[:n])[layout]).block
    w, f = np.zeros(D + has), np.zeros(D + has)
    steps = AveragedSteps(w, f, np.zeros(0), sizes, means, intercept, name, (0.0, 0.0), settings, 8)
    first, last = steps.learn(block.arrays, np.arange(700), LABELS[:n], COSTS[:n]), None
    last = steps.learn(block.arrays, np.arange(700, n), LABELS[:n], COSTS[:n])
    w = np.empty(D + has)
    steps.copy_weights(w)
    rows = np.column_stack([X[:n] - means, np.ones(n)]) if has else X[:n]
    plain, losses = plain_averaged(
        name,
        rows,
        LABELS[:n],
        COSTS[:n],
        sizes=sizes,
        n_shrunk=D + (intercept == "regularized"),
        schedule=schedule,
        skip=8,
    )
    if has:
        plain[-1] -= means @ plain[:D]
    assert_allclose(w, plain, rtol=1e-7, atol=1e-10)
    assert first[0] + last[0] == pytest.approx(losses, rel=1e-9)


def test_a_step_ends_where_the_tangent_is_zero():
    block = from_arrays(np.array([[3.0, 0.0]])).block
    settings = 0.0, 0.0, 1.0, 0.0, 0.0
    arrays = np.zeros(2), np.zeros(2), np.zeros(0), np.ones(2), np.zeros(0)
    steps = AveragedSteps(*arrays, "none", "hinge", (0.0, 0.0), settings, 8)
    steps.learn(block.arrays, np.zeros(1, np.int64), np.ones(1), np.ones(1))
    w = np.empty(2)
    steps.copy_weights(w)
    assert_allclose(w, [1 / 3, 0.0])


# Scales.


def test_scales_do_not_depend_on_units():
    """Rows of standardised columns have a median of 1, whatever units the columns came in."""
    units = 10.0 ** np.arange(-6, 6)
    dense = RNG.normal(size=(500, D)) + 3.0
    for rows in (dense, dense * units, 1000 * dense):
        scales = Scales.of(from_arrays(rows).block, intercept=True, centres=True)
        norms = (((rows - scales.means) ** 2) / scales.squares).sum(axis=1) + 1 / scales.intercept
        assert np.median(norms) == pytest.approx(1.0)
        assert_allclose(scales.squares / scales.squares[0], (rows.std(axis=0) / rows[:, 0].std()) ** 2, rtol=1e-6)
        assert_allclose(scales.means, rows.mean(axis=0))
    assert not Scales.of(from_arrays(dense).block, intercept=True, centres=False).means.any()


def test_scales_do_not_depend_on_offsets():
    """Nor on how rows come: the spread around a mean of a million is not the difference of two sums of squares."""
    rows = RNG.normal(size=(600, 3))
    known = Scales.of(from_arrays(rows).block, intercept=True, centres=True)
    for layout in (np.asarray, scipy.sparse.csr_array):
        sums = ColumnSums.of_nothing(3)
        for part in np.split(rows + 1e6, 3):
            sums.add(from_arrays(layout(part)).block)
        found = sums.scales(None, intercept=True, centres=True)
        assert_allclose(found.squares / found.intercept, known.squares / known.intercept, rtol=0.05)
        assert not sums.drowned(found)


def test_columns_are_drowned_that_differ_in_their_last_digits():
    rows = np.column_stack([RNG.normal(size=500) + 1e9, RNG.normal(size=500), np.full(500, 0.1)])
    sums = ColumnSums.of_nothing(3)
    sums.add(from_arrays(rows).block)
    assert sums.drowned(sums.scales(None, intercept=True, centres=True)) == 1


def test_sparse_columns_share_a_scale_unless_they_differ_much():
    rows = np.where(RNG.random((400, 30)) < 0.1, RNG.uniform(0.5, 2.0, size=(400, 30)), 0.0)
    rows[:, 7] = 0.0
    alike = Scales.of(from_arrays(scipy.sparse.csr_array(rows)).block, intercept=False, centres=True)
    assert len(set(alike.squares)) == 1
    rows *= 10.0 ** np.linspace(-3, 3, 30)
    apart = Scales.of(from_arrays(scipy.sparse.csr_array(rows)).block, intercept=False, centres=True)
    assert apart.squares[29] / apart.squares[0] == pytest.approx(1e12, rel=0.9)


def test_columns_that_appear_later_have_the_scale_of_their_first_entries():
    rows = np.hstack([RNG.normal(size=(200, 3)), 100 * RNG.normal(size=(200, 2)) * (RNG.random((200, 2)) < 0.1)])
    known = Scales.of(from_arrays(scipy.sparse.csr_array(rows[:, :3])).block, intercept=True, centres=False).grown(6)
    unseen = np.array([False, False, True, True, True, True])  # of which the last never appears
    scales, left = known.with_first(unseen, from_arrays(scipy.sparse.csr_array(rows)).block)
    usual = [np.mean(column[column != 0] ** 2) for column in rows.T[2:]]
    assert_allclose(scales.squares[2:5], known.intercept * np.array(usual))
    assert_allclose(np.delete(scales.squares, [2, 3, 4]), np.delete(known.squares, [2, 3, 4]))
    assert left.tolist() == [False] * 5 + [True]
    none, _ = known.with_first(unseen, from_arrays(np.ones((4, 2))).block)  # rows that end before these columns
    assert_allclose(none.squares, known.squares)
