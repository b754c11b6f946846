"""Stochastic gradient descent: what it finds, orders of rows, and ends; `test_sgd_steps.py` has its kernels."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from beeline import LinearSVC, open_store
from beeline.data.core.arrays import from_arrays
from beeline.data.store.writer import StoreWriter
from beeline.engines import Threads
from beeline.exceptions import ConvergenceWarning, ParameterError
from beeline.kernels import PegasosSteps
from beeline.losses import LOSSES, Hinge, WestonWatkins
from beeline.objective import Objective
from beeline.regularizers import L1, L2
from beeline.solvers import SGD, DualCD, Newton
from beeline.solvers.auto import choose_solver
from beeline.solvers.base import Status
from beeline.solvers.stochastic import learning, order
from beeline.solvers.stochastic.order import RandomRows

NAMES = ("hinge", "squared_hinge", "logistic")
RNG = np.random.default_rng(0)
N, D = 3000, 12
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.7)
LABELS = np.where(X @ RNG.normal(size=D) + 0.4 + RNG.normal(size=N) > 0, 1.0, -1.0)
COSTS = RNG.uniform(0.5, 1.5, size=N)
COSTS[5:9] = 0.0


def problem(name="hinge", intercept="free", rows=X, labels=LABELS, costs=COSTS, C=0.1, engine=None):
    return Objective.of(from_arrays(rows), labels, C * costs, LOSSES[name](), L2(), 1.0, intercept, engine=engine)


def layouts(rows=X):
    """The same rows in every form that kernels take."""
    sparse = scipy.sparse.csr_array(rows)
    wide = sparse.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return {"dense": rows, "sparse": sparse, "wide": wide}


# What it finds.


@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
@pytest.mark.parametrize("name", NAMES)
def test_passes_lead_towards_the_optimum(name, intercept):
    o = problem(name, intercept)
    best = DualCD(1e-8, 10_000).run(o).objective
    values = [SGD(max_passes=passes, early_stopping=False).run(o).objective / best - 1 for passes in (1, 8, 64)]
    assert values[0] > values[1] > values[2] > -1e-8
    assert values[0] < 0.1
    assert values[2] < 4e-3


@pytest.mark.parametrize("batch", [1, 20])
@pytest.mark.parametrize("name", NAMES)
def test_pegasos_leads_towards_the_optimum(name, batch):
    o = problem(name, "regularized", C=0.01)
    best = DualCD(1e-8, 10_000).run(o).objective
    few, many = (
        SGD(variant="pegasos", batch_size=batch, max_passes=passes, early_stopping=False).run(o).objective / best - 1
        for passes in (2, 100)
    )
    assert many < min(few, 0.02)
    assert SGD(variant="pegasos", max_passes=3).run(o).theta.shape == (D + 1,)


@pytest.mark.parametrize("C", [1e-4, 10.0])
def test_weak_and_strong_regularization(C):
    o = problem("logistic", C=C)
    best = Newton(1e-8).run(o).objective
    assert SGD(max_passes=20).run(o).objective <= 1.01 * best


@pytest.mark.parametrize("name", NAMES)
def test_units_of_features_do_not_matter(name):
    """Next to no regularization, so that the optimum's scores are the same."""
    units = 10.0 ** RNG.uniform(-4, 4, size=D)
    dense = RNG.normal(size=(N, D)) + 1.0
    labels = np.where(dense @ RNG.normal(size=D) + RNG.normal(size=N) > 0, 1.0, -1.0)
    errors = []
    for rows in (dense, 1000 * dense, dense * units):
        o = problem(name, rows=rows, labels=labels, C=1e9)
        z = o.rows.gather(o.at(SGD(max_passes=5).run(o).theta).z)
        errors.append(np.mean(z * labels <= 0))
    exact = problem(name, rows=dense, labels=labels, C=1.0)
    z = exact.rows.gather(exact.at(choose_solver(exact).run(exact).theta).z)
    assert max(errors) <= np.mean(z * labels <= 0) + 0.01


def test_layouts_are_one():
    results = [SGD(max_passes=3).run(problem(rows=rows)) for rows in layouts().values()]
    for result in results[1:]:
        assert_allclose(result.theta, results[0].theta, rtol=1e-8, atol=1e-10)
    narrow = SGD(max_passes=3).run(problem(rows=X.astype(np.float32)))
    assert_allclose(narrow.theta, results[0].theta, rtol=1e-3, atol=1e-4)
    cut = SGD(max_passes=3).run(problem(engine=Threads(n_shards=4)))
    assert_allclose(cut.theta, results[0].theta, rtol=1e-10)  # the last look sums over shards


def test_rows_that_cost_nothing_are_absent():
    costs = np.where(np.arange(N) % 3 == 0, COSTS, 0.0)
    some = costs > 0
    with_them, without = problem(costs=costs), problem(rows=X[some], labels=LABELS[some], costs=costs[some])
    one, other = (SGD(max_passes=20).run(o).objective for o in (with_them, without))
    assert one == pytest.approx(other, rel=0.01)
    nothing = SGD().run(problem(costs=np.zeros(N), intercept="none"))
    assert nothing.objective == 0.0


def test_same_seed_same_bits(same_bits):
    o = problem()
    same_bits(lambda: SGD(max_passes=3, seed=4).run(o).theta, by_kernels=False)
    assert not np.array_equal(SGD(max_passes=3, seed=5).run(o).theta, SGD(max_passes=3, seed=4).run(o).theta)


def test_a_start_is_gone_on_from():
    o = problem()
    first = SGD(max_passes=2, early_stopping=False).run(o)
    more = SGD(max_passes=2, early_stopping=False).run(o, first.state)
    assert more.objective < first.objective
    assert more.state.counters["passes"] == 4
    for variant, kind in (("averaged", "free"), ("pegasos", "regularized")):
        o = problem(intercept=kind)
        best = DualCD(1e-6, 10_000).run(o)
        cold, warm = (SGD(variant=variant, max_passes=1).run(o, theta) for theta in (None, best.theta))
        assert warm.objective - best.objective < 0.8 * (cold.objective - best.objective)


# Stores.


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Rows in random order, and sorted by their class; an eighth of the memory holds one chunk, and a half."""
    folder = tmp_path_factory.mktemp("stores")
    found = {}
    for name, which in (("mixed", np.arange(N)), ("sorted", np.argsort(LABELS, kind="stable"))):
        with StoreWriter(folder / name, chunk_bytes=16 << 10) as writer:
            writer.write(from_arrays(scipy.sparse.csr_array(X[which]), LABELS[which]).block)
            writer.finish()
        found[name] = open_store(folder / name)
    return found


def over_store(store, memory=None):
    costs = np.full(store.n_rows, 0.02)
    return Objective.of(store, store.labels, costs, Hinge(), L2(), 1.0, "free", engine=Threads(memory=memory))


@pytest.mark.parametrize("memory", [None, 200_000])
def test_a_store_gives_what_arrays_give(stores, memory):
    here = over_store(from_arrays(stores["mixed"].rows(0, N).to_scipy(), stores["mixed"].labels))
    best = DualCD(1e-6, 10_000).run(here).objective
    result = SGD().run(over_store(stores["mixed"], memory))
    assert result.objective < 1.02 * best
    assert result.objective == pytest.approx(SGD().run(here).objective, rel=0.01)
    assert result.objective == pytest.approx(here.at(result.theta).value, rel=1e-10)


@pytest.mark.parametrize("variant", ["averaged", "pegasos"])
def test_rows_sorted_by_class_come_mixed(stores, variant):
    """An eighth of the memory holds one chunk and a half, and so does what is mixed."""
    memory = 200_000
    errors = {}
    for name, store in stores.items():
        costs, kind = np.full(store.n_rows, 0.02), "free" if variant == "averaged" else "regularized"
        engine = Threads(memory=memory)
        o = Objective.of(store, store.labels, costs, Hinge(), L2(), 1.0, kind, engine=engine)
        result = SGD(variant=variant, max_passes=2).run(o)
        z = o.rows.gather(o.at(result.theta).z)
        errors[name] = np.mean(z * store.labels <= 0)
    assert errors["sorted"] <= errors["mixed"] + 0.01


def test_a_pass_reads_every_row_once_within_the_memory(stores):
    store, memory = stores["sorted"], 200_000
    o = over_store(store, memory)
    rows = RandomRows(o, 0)
    portions = list(rows.of_pass(0))
    assert len(portions) > 8
    read = np.concatenate([portion.block.scores(np.arange(1.0, D + 1))[portion.order] for portion in portions])
    whole = store.rows(0, store.n_rows).scores(np.arange(1.0, D + 1))
    assert_array_equal(np.sort(read), np.sort(whole))
    labels = np.concatenate([portion.labels[portion.order] for portion in portions])
    assert labels.sum() == store.labels.sum()
    for portion in portions:
        held = portion.block.nbytes + 32 * portion.block.n_rows
        assert held <= memory // 8
        assert -0.9 < portion.labels.mean() < 0.9  # of either class
    other = next(rows.of_pass(1))
    assert not np.array_equal(other.block.values, portions[0].block.values)


def test_the_same_bits_from_a_store(stores):
    one, other = (SGD(max_passes=2, seed=3).run(over_store(stores["sorted"], 200_000)).theta for _ in range(2))
    assert_array_equal(one, other)


# Ends.


def test_pegasos_ends_as_published():
    """At the last weights, whatever another multiple of them would cost."""
    o, w = problem(intercept="none"), np.empty(D)
    result = SGD(variant="pegasos", max_passes=2, seed=6, early_stopping=False).run(o)
    costs = COSTS * (N - 4) / COSTS.sum()
    steps = PegasosSteps(np.zeros(D), False, "hinge", (0.0, 0.0), 1 / (0.1 * COSTS.sum()), 1, True, 0.0)
    for number in range(2):
        (portion,) = RandomRows(o, 6).of_pass(number)
        steps.learn(portion.block.arrays, portion.order, LABELS, costs)
    steps.copy_weights(w)
    assert_allclose(result.theta, w, rtol=1e-9)


def test_portions_of_rows_that_cost_nothing(monkeypatch):
    monkeypatch.setattr(order, "_PORTION", 1)
    monkeypatch.setattr(order, "_LEAST_ROWS", 10)
    monkeypatch.setattr(learning, "_TOLD", 1)
    costs = np.where(np.arange(N) < 50, 1.0, 0.0)
    result = SGD(max_passes=2).run(problem(costs=costs))
    assert len(result.trace) > 500
    assert result.objective < result.null


def test_the_end_is_no_certificate():
    result = SGD().run(problem())
    assert result.status is Status.UNPROVEN
    assert result.gap == 1.0  # no loss is negative: all that is known of the optimum
    assert result.sentence.startswith("ended without a certificate after")
    assert "a pass lowers J, by progressive validation, by less than 1 %" in result.sentence
    assert SGD().concern(result) is None
    model = LinearSVC(loss="hinge", solver="sgd").fit(X, LABELS)
    assert not model.report_.converged
    assert model.score(X, LABELS) > 0.75


def test_progressive_validation_is_in_the_trace():
    o = problem(costs=np.ones(N))
    result = SGD(max_passes=4, early_stopping=False).run(o)
    assert len(result.trace) == 4
    losses = [entry.facts["progressive_loss"] for entry in result.trace]
    assert losses[0] > losses[1] > losses[3]
    z = o.rows.gather(o.at(result.theta).z)
    assert result.facts["progressive_error"] == pytest.approx(np.mean(z * LABELS <= 0), abs=0.02)
    assert losses[-1] == pytest.approx(np.mean(np.maximum(0, 1 - z * LABELS)), rel=0.05)
    # Every J but the last is an estimate, above that of the weights in the end.
    assert result.trace[0].objective == pytest.approx(result.objective, rel=0.2)


def test_the_first_pass_is_a_forecast():
    """Labels that have nothing to do with many features: J falls by heart, and the progressive error does not."""
    random = np.random.default_rng(3)
    rows, labels = random.normal(size=(400, 800)), random.choice([-1.0, 1.0], size=400)
    o = problem(rows=rows, labels=labels, costs=np.ones(400), C=1.0)
    result = SGD(max_passes=30).run(o)
    assert result.trace[0].facts["progressive_error"] == pytest.approx(0.5, abs=0.1)
    assert result.trace[-1].facts["progressive_error"] < 0.05


def test_limits(monkeypatch):
    monkeypatch.setattr(order, "_PORTION", 1)
    monkeypatch.setattr(order, "_LEAST_ROWS", 100)
    o = problem()
    with pytest.warns(
        ConvergenceWarning, match=r"sgd reached its pass limit after 2 passes.*raise max_passes \(now 2\)"
    ):
        assert SGD(max_passes=2).solve(o).passes == pytest.approx(2)
    assert SGD(max_passes=0.5).run(o).passes == pytest.approx(0.5, abs=0.05)
    late = SGD().with_time_limit(1e-9).run(o)
    assert (late.status, late.iterations) == (Status.TIME, 1)
    assert late.passes < 0.1
    assert late.objective == pytest.approx(o.at(late.theta).value, rel=1e-12)
    clock = time.perf_counter()
    SGD(early_stopping=False, max_passes=10**9).with_time_limit(0.3).run(o)
    assert time.perf_counter() - clock < 2


def test_ctrl_c_returns_what_was_learned():
    o = problem()

    def interrupt(step):
        if step.passes >= 3:
            raise KeyboardInterrupt

    result = SGD(early_stopping=False).run(o, callback=interrupt)
    assert result.status is Status.INTERRUPTED
    assert result.objective == pytest.approx(o.at(result.theta).value, rel=1e-12)
    assert result.objective < 0.8 * result.null


def test_weights_beyond_all_numbers_are_said():
    """The slope of the squared hinge has no bound, and 1/(λt) is large at first."""
    o = problem("squared_hinge", "none", C=1e5)
    result = SGD(variant="pegasos", projection=False).run(o)
    assert "beyond all numbers; take projection=True" in result.sentence
    assert result.objective == result.null
    kept = SGD(variant="pegasos", max_passes=5, early_stopping=False).run(o)
    assert kept.status is Status.LIMIT
    assert np.isfinite(kept.facts["progressive_loss"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"variant": "adam"}, "variant must be one of averaged, pegasos, mcid, not 'adam'"),
        ({"batch_size": 0, "variant": "pegasos"}, "batch_size must be at least 1, not 0"),
        (
            {"batch_size": 4},
            "batch_size is for variant='pegasos' or variant='mcid'; leave it out, or take that variant",
        ),
        ({"projection": False}, "projection is for variant='pegasos'"),
        ({"early_stopping": 3}, "early_stopping must be True or False, not 3"),
        ({"eta0": 3}, "has no option 'eta0'; there are variant, batch_size, projection, early_stopping, finish"),
    ],
)
def test_wrong_options(options, sentence):
    with pytest.raises(ParameterError, match=sentence):
        SGD(**options)


def test_what_it_cannot_take():
    classes = (X[:, 0] > 0).astype(float) + (X[:, 1] > 0)
    several = Objective.of(from_arrays(X), classes, COSTS, WestonWatkins(), L2(), n_outputs=3)
    lasso = Objective.of(from_arrays(X), LABELS, COSTS, Hinge(), L1(), 1.0, "none")
    for solver, o, sentence in (
        (SGD(), several, r"is for losses of single rows that are compiled, not WestonWatkins\(\)"),
        (SGD(variant="pegasos"), lasso, r"needs L2 regularization, not L1\(\)"),
    ):
        with pytest.raises(ParameterError, match=f"the solver 'sgd' {sentence}"):
            solver.run(o)
    with pytest.raises(ParameterError, match="cannot have a free intercept; it takes regularized or none"):
        SGD(variant="pegasos").run(problem())
