"""Losses within queries go wherever losses go: shards, other processes, stores within a budget, checks of losses."""

from __future__ import annotations

import numpy as np
import pytest
from spawned_engine import Spawned

import beeline
from beeline import LinearRanker
from beeline.engines import Threads
from beeline.losses import LOSSES, QueryLoss, get_loss
from beeline.losses.tied_checking import check_tied_loss, fault_of_tied_loss
from beeline.objective import Objective
from beeline.regularizers import L1, L2
from beeline.solvers.auto import SOLVERS
from beeline.solvers.base import Status

NAMES = sorted(name for name, kind in LOSSES.items() if issubclass(kind, QueryLoss))
RNG = np.random.default_rng(12)
SIZES = RNG.integers(1, 9, 60)
STARTS = np.append(0, np.cumsum(SIZES))
N = int(STARTS[-1])
X = RNG.normal(size=(N, 5))
Y = np.digitize(X @ RNG.normal(size=5) + 0.5 * RNG.normal(size=N), [0.0, 1.5]).astype(float)
QID = np.repeat(np.arange(len(SIZES)), SIZES)


def objective(name, engine=None, omega=None, costs=2.0):
    rows = (engine or Threads()).open(beeline.from_arrays(X), STARTS)
    y, c = rows.scatter(Y), rows.scatter(np.full(N, costs))
    return Objective(rows, y, c, get_loss(name), omega or L2(), 1.0, "none")


def solver_of(name):
    return "lbfgs" if get_loss(name).smooth else "bundle"


def test_there_are_all_of_them():
    assert len(NAMES) == 7


@pytest.fixture(scope="module")
def spawned():
    engine = Spawned(3)
    yield engine
    engine.close()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_wherever_the_shards_lie(name, spawned):
    one, other = (
        SOLVERS[solver_of(name)](tol=1e-3).run(objective(name, engine)) for engine in (Threads(n_shards=3), spawned)
    )
    np.testing.assert_array_equal(one.theta, other.theta)
    assert (one.objective, one.bound) == (other.objective, other.bound)
    whole = SOLVERS[solver_of(name)](tol=1e-3).run(objective(name))
    assert one.objective == pytest.approx(whole.objective, rel=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_l1(name):
    o = objective(name, omega=L1())
    result = SOLVERS["bundle"](tol=1e-4).run(o)
    assert result.status is Status.CONVERGED
    random = np.random.default_rng(1)
    for _ in range(20):
        near = result.theta + 0.1 * random.normal(size=o.size)
        assert o.at(near).value >= result.bound * (1 - 1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_store_within_a_budget(name, tmp_path):
    store = beeline.convert(beeline.from_arrays(X, Y, queries=QID), tmp_path / "store")
    here = LinearRanker(name).fit(X, Y, qid=QID).report_.objective
    assert LinearRanker(name, memory="32M").fit(store).report_.objective == pytest.approx(here, rel=2e-4)


@pytest.mark.parametrize("name", NAMES)
def test_a_look_finds_nothing_wrong(name):
    loss = get_loss(name)
    check_tied_loss(loss, Y, STARTS, 1)
    random = np.random.default_rng(2)
    begin, end = random.normal(size=(2, N))
    assert fault_of_tied_loss(loss.within(STARTS), Y, np.ones(N), begin, end) is None
