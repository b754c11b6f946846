"""The end of stochastic steps: a sample tells the best multiple of the weights where it is like all rows."""

from __future__ import annotations

import numpy as np
import pytest

from beeline.data.core.arrays import from_arrays
from beeline.data.core.block import Block
from beeline.losses import CrammerSinger, Softmax
from beeline.objective import Objective
from beeline.objective.points import centred
from beeline.regularizers import L2
from beeline.solvers.stochastic import ending, tables

N, D, K = 20_000, 6, 3


def an_end(loss, multiple, large=1.0):
    """A point whose weights are a multiple of good ones; one of the wrong class may be large."""
    random = np.random.default_rng(0)
    X, W = random.standard_normal((N, D)), random.standard_normal((D, K))
    y = np.argmax(X @ W + 0.5 * random.standard_normal((N, K)), axis=1)
    X[8] *= -large  # which is not in the sample
    o = Objective.of(from_arrays(X), y.astype(float), np.ones(N), loss, L2(), 1e-2 * N, "free", n_outputs=K)
    theta = np.zeros(o.size)
    theta[: D * K] = multiple * W.ravel()
    return o.at(theta)


@pytest.mark.parametrize("loss", [Softmax(), CrammerSinger()])
@pytest.mark.parametrize("multiple", [0.9, 3.0])
def test_a_sample_finds_the_multiple(loss, multiple):
    point = an_end(loss, multiple)
    found = ending._by_sample(point.objective, point.theta)
    assert found is not None
    exact = point.objective.at_null().towards(ending._with_intercepts(point, 1e-6), 1e-6)
    assert found.value <= point.value
    assert found.value <= exact.value * 1.01
    again = point.objective.at(found.theta)
    np.testing.assert_allclose(again.value, found.value, rtol=1e-12)  # J is that of its weights


def test_a_sample_that_misses_large_rows_is_not_asked():
    point = an_end(Softmax(), 1.0, large=1e5)
    assert ending._by_sample(point.objective, point.theta) is None
    assert ending.best_multiple(point.objective, point.theta, 1e-6).value <= point.objective.at_null().value


def test_intercepts_of_rare_classes_stay():
    """By a sample that has none of their rows they would go far down."""
    o = an_end(Softmax(), 1.0).objective
    z, y, c = np.zeros((100, K)), np.repeat([0.0, 1.0], 50), np.ones(100)
    np.testing.assert_array_equal(ending._shift_of(o, z, y, c), np.zeros(K))


@pytest.mark.parametrize("loss", [Softmax(), CrammerSinger()])
def test_all_rows_are_scored_once_in_the_end(loss, monkeypatch):
    """And J of the weights that are given back is evaluated, not carried over."""
    o, theta = (point := an_end(loss, 3.0)).objective, point.theta
    scored = []
    scores = Block.scores

    def counted(block, w, **more):
        scored.append(block.n_rows)
        return scores(block, w, **more)

    monkeypatch.setattr(Block, "scores", counted)
    found = ending.best_multiple(o, theta, 1e-6)
    assert sum(scored) == N + ending._SAMPLE
    assert centred(o, found.theta) is found.theta
    assert found.value == pytest.approx(o.at(found.theta).value, rel=1e-12)


def test_few_rows_are_their_own_sample():
    random = np.random.default_rng(0)
    X, W = random.standard_normal((300, D)), random.standard_normal((D, K))
    y = np.argmax(X @ W, axis=1).astype(float)
    o = Objective.of(from_arrays(X), y, np.ones(300), CrammerSinger(), L2(), 1.0, "free", n_outputs=K)
    theta = np.append(3 * W.ravel(), np.zeros(K))
    found = ending._by_sample(o, theta)
    assert found is not None
    exact = o.at_null().towards(ending._with_intercepts(o.at(theta), 1e-6), 1e-6)
    assert found.value <= exact.value * 1.001


@pytest.mark.parametrize("counts", [[5, 4, 3], [9, 2, 1], [6, 3, 3]])
def test_the_best_intercepts_of_crammer_and_singer(counts):
    """No scores of all rows alike have a smaller loss."""
    loss, labels, costs = CrammerSinger(), np.arange(3.0), np.array(counts, dtype=float)
    best = loss.best_constant(labels, costs)

    def value(b):
        return loss.sum(np.tile(b, (3, 1)), labels, costs)

    assert value(best) == pytest.approx(min(sum(counts), 2 * (sum(counts) - max(counts))))
    others = best + np.random.default_rng(0).standard_normal((200, 3)) * np.logspace(-3, 1, 200)[:, None]
    assert min(map(value, others)) >= value(best)


def test_large_tables_begin_where_a_cache_line_does():
    table = tables._aligned_zeros((tables._LARGE // 64, 2, 16))
    assert table.ctypes.data % 64 == 0
    assert table.flags.writeable
    assert not table.any()
