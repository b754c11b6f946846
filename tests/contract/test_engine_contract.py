"""What every engine promises: the same shards give the same bits, and what belongs to rows stays with them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from loss_rows import learned_labels
from spawned_engine import Spawned

from beeline import from_arrays
from beeline.engines import Threads
from beeline.losses import LOSSES, VectorLoss
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers.auto import SOLVERS
from beeline.solvers.bundle import line_search
from beeline.solvers.newton import preconditioning

N, D, SHARDS = 3000, 5, 3
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, D)) * [1, 3, 1, 0.3, 1]
DATA = from_arrays(X)
COSTS = RNG.uniform(0.5, 1.5, size=N) / N * 10
BY_VERBS = ("newton", "rounded_newton", "lbfgs", "bundle")
OMEGAS = {"l2": L2(), "l1": L1(), "elastic_net": ElasticNet(0.3)}


@pytest.fixture(autouse=True)
def _few_kinks(monkeypatch):
    """So that counting them in finer and finer buckets is tried too."""
    monkeypatch.setattr(line_search, "_MANY", 50)
    monkeypatch.setattr(preconditioning, "_SAMPLE", 300)


@pytest.fixture(scope="module")
def spawned():
    engine = Spawned(SHARDS)
    yield engine
    engine.close()


def objective(loss, omega, intercept, engine):
    y = learned_labels(loss, X)
    n_outputs = 1
    if isinstance(loss, VectorLoss):
        n_outputs = y.shape[1] if np.ndim(y) > 1 else int(y.max()) + 1
    return Objective.of(DATA, y.astype(float), COSTS, loss, omega, 0.1, intercept, engine=engine, n_outputs=n_outputs)


def pairs():
    for name, kind in LOSSES.items():
        for solver in BY_VERBS:
            for omega, regularizer in OMEGAS.items():
                for intercept in ("free", "regularized"):
                    if intercept == "free" and kind().labels == "none":
                        continue
                    o = objective(kind(), regularizer, intercept, Threads())
                    if SOLVERS[solver]().refusal(o) is None:
                        yield pytest.param(name, solver, omega, intercept, id=f"{name}-{solver}-{omega}-{intercept}")


@pytest.mark.parametrize(("name", "solver", "omega", "intercept"), list(pairs()))
def test_the_same_bits_wherever_the_shards_lie(name, solver, omega, intercept, spawned):
    """And no array as long as a shard crosses, once labels and costs are where the rows are."""
    here, there = (
        objective(LOSSES[name](), OMEGAS[omega], intercept, engine) for engine in (Threads(n_shards=SHARDS), spawned)
    )
    spawned.crossed.clear()
    spawned.moved.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = (SOLVERS[solver](tol=1e-3, max_passes=60).run(o) for o in (here, there))
    np.testing.assert_array_equal(one.theta, other.theta)
    assert (one.objective, one.bound, one.status, one.iterations) == (
        other.objective,
        other.bound,
        other.status,
        other.iterations,
    )
    assert max((shape[0] for shape in spawned.crossed if shape), default=0) < N // SHARDS // 2
    assert not spawned.moved
