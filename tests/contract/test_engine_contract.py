"""What every engine promises: the same shards give the same bits, and what belongs to rows stays with them."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from loss_rows import learned_labels
from spawned_engine import Spawned

import beeline
from beeline import from_arrays
from beeline.engines import Threads
from beeline.losses import LOSSES, Precision, Recall, VectorLoss
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers.auto import SOLVERS
from beeline.solvers.base import Status
from beeline.solvers.bundle import line_search
from beeline.solvers.newton import preconditioning

EXAMPLES = Path(__file__).parents[2] / "examples" / "data"
N, D, SHARDS = 3000, 5, 3
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, D)) * [1, 3, 1, 0.3, 1]
DATA = from_arrays(X)
COSTS = RNG.uniform(0.5, 1.5, size=N) / N * 10
# The convex problems of the relaxation are for other solvers.
BY_VERBS = tuple(name for name, kind in SOLVERS.items() if kind.needs.rows == "passes" and name != "relaxation")
TELLING = ("hinge", "logistic", "crammer_singer", "novelty")  # with every regularizer and intercept
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
    costs = np.full(N, COSTS.mean()) if isinstance(loss, Precision | Recall) else COSTS  # which count rows
    return Objective.of(DATA, y.astype(float), costs, loss, omega, 0.1, intercept, engine=engine, n_outputs=n_outputs)


def pairs():
    for name, kind in LOSSES.items():
        if kind.scope == "group":
            continue  # in test_tied_loss_contract.py and test_ranker.py
        for solver in BY_VERBS:
            for omega, regularizer in OMEGAS.items():
                for intercept in ("none",) if kind.differences_only else ("free", "regularized"):
                    if intercept == "free" and kind().labels == "none":
                        continue
                    if SOLVERS[solver]().refusal(objective(kind(), regularizer, intercept, Threads())) is None:
                        few = (omega, intercept) in (("l2", "free"), ("l2", "none")) or name in TELLING
                        marks = () if few else pytest.mark.slow
                        yield pytest.param(name, solver, omega, intercept, marks=marks)


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
        one, other = (SOLVERS[solver](tol=1e-3, max_passes=8).run(o) for o in (here, there))
    np.testing.assert_array_equal(one.theta, other.theta)
    assert (one.objective, one.bound, one.status, one.iterations) == (
        other.objective,
        other.bound,
        other.status,
        other.iterations,
    )
    assert max((shape[0] for shape in spawned.crossed if shape), default=0) < N // SHARDS // 2
    assert not spawned.moved


# An iteration: with a free and with a regularized intercept.
TRIPS = {
    ("lbfgs", "logistic"): (3.8, 2.2),
    ("newton", "logistic"): (5.0, 4.0),
    ("bundle", "hinge"): (6.0, 4.5),
    ("bundle", "logistic"): (6.0, 4.0),
}


@pytest.mark.parametrize(("solver", "loss"), TRIPS)
@pytest.mark.parametrize("intercept", ["free", "regularized"])
def test_trips_are_few(solver, loss, intercept, spawned, monkeypatch):
    monkeypatch.setattr(line_search, "_MANY", 1 << 16)
    data = beeline.read(EXAMPLES / "covtype-train.csv.gz", label="Cover_Type", scale="minmax")
    numbers = np.asarray(data.labels)
    y = np.where(numbers == np.unique(numbers)[1], 1.0, -1.0)
    o = Objective.of(data, y, np.ones(len(y)), LOSSES[loss](), L2(), 1.0, intercept, engine=spawned)
    settings = {"newton": {"linear_solver": "cholesky", "tol": 1e-6}, "bundle": {"tol": 1e-3}}.get(solver, {})
    result = SOLVERS[solver](**settings).run(o)
    assert result.status is Status.CONVERGED
    assert o.rows.trips / result.iterations <= TRIPS[solver, loss][intercept == "regularized"]
