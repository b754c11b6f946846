"""What every solver must do, on every pair of loss and regularizer that it takes."""

import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from objectives import arrays_of, over
from row_orders import unsorted
from solver_reference import optimum

from beeline import convert
from beeline.data.core.arrays import from_arrays
from beeline.engines import Threads
from beeline.exceptions import ConvergenceWarning, ParameterError
from beeline.losses import LOSSES, EpsilonInsensitive, Hinge, Logistic, ScalarLoss, SquaredHinge, VectorLoss
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.regularizers.separable import Separable
from beeline.solvers.auto import SOLVERS, Relay, choose_solver
from beeline.solvers.base import ROUNDING_GAP, Result, Status
from beeline.solvers.bundle.bundle import Bundle
from beeline.solvers.dual import shuffled
from beeline.solvers.dual.class_dual_cd import ClassDualCD
from beeline.solvers.dual.dual_cd import DualCD
from beeline.solvers.newton.newton import Newton, SmoothedNewton

TOL = 1e-6
CLASSES = 4
INTERCEPTS = ("free", "regularized", "none")
NAMES = ("logistic", "hinge", "squared_hinge", "squared", "epsilon_insensitive", "squared_epsilon_insensitive")
NAMES += ("softmax", "crammer_singer")
REGULARIZERS = (L2(), L1(), ElasticNet(0.4))


def problem(loss, regularizer=None, *, n=60, d=7, intercept="free", seed=0, layout="dense", cost=1.0, strength=1.0):
    """Rows with a shift (so that an intercept matters), some of them equal, empty, or of no cost."""
    random = np.random.default_rng(seed)
    X = (random.normal(size=(n, d)) + 0.7) * (random.random((n, d)) < 0.6)
    X[1], X[2] = X[0], 0
    z = X @ random.normal(size=d) - 0.5 + 0.5 * random.normal(size=n)
    y = np.where(z > 0, 1.0, -1.0) if loss.labels == "binary" else z
    if loss.labels == "classes":
        y = (X @ random.normal(size=(d, CLASSES)) + random.gumbel(size=(n, CLASSES))).argmax(axis=1).astype(float)
    c = cost * random.uniform(0.5, 1.5, size=n)
    c[3:5] = 0
    if layout == "float32":
        X = X.astype(np.float32)
    rows = scipy.sparse.csr_array(X) if layout in ("sparse", "unsorted") else X
    rows = unsorted(rows) if layout == "unsorted" else rows
    outputs = CLASSES if loss.labels == "classes" else 1
    return Objective.of(from_arrays(rows, y), y, c, loss, regularizer or L2(), strength, intercept, n_outputs=outputs)


KNOWN = {}


def reference(o):
    """min J; the same problem is solved once for all solvers."""
    parts = arrays_of(o)
    key = (repr(o.loss), repr(o.regularizer), o.strength, o.intercept, *(part.tobytes() for part in parts))
    if key not in KNOWN:
        KNOWN[key] = reference_of(o, *parts)
    return KNOWN[key]


def reference_of(o, X, y, c):
    kind, omega = o.loss, o.regularizer
    return optimum(
        kind.name,
        X,
        y,
        c,
        epsilon=getattr(kind, "epsilon", 0.0),
        strength=o.strength,
        l1=omega.l1,
        l2=omega.l2,
        intercept=o.intercept,
    )


def pairs():
    for solver in SOLVERS.values():
        for name in NAMES:
            for regularizer in REGULARIZERS:
                if solver(TOL, 1, 0).refusal(problem(LOSSES[name](), regularizer)) is None:
                    which = f"{solver.name}-{name}-{regularizer.name}"
                    slow = solver is Bundle and name == "crammer_singer" and regularizer.l1 > 0
                    marks = pytest.mark.slow if slow else ()
                    yield pytest.param(solver, LOSSES[name](), regularizer, id=which, marks=marks)


ALL_PAIRS = list(pairs())
PAIRS = [pair for pair in ALL_PAIRS if pair.values[0].certifies]
QUICK = [pair for pair in PAIRS if pair.id != "bundle-crammer_singer-l2"]
every_pair = pytest.mark.parametrize(("solver", "loss", "regularizer"), PAIRS)
# Without the one that takes a second each time; its shards, layouts and threads are looked at elsewhere in this file.
every_quick_pair = pytest.mark.parametrize(("solver", "loss", "regularizer"), QUICK)
certified_or_not = pytest.mark.parametrize(("solver", "loss", "regularizer"), ALL_PAIRS)
every_intercept = pytest.mark.parametrize("intercept", INTERCEPTS)


def solve(solver, objective, tol=TOL, **kwargs):
    return solver(tol, 20_000, kwargs.pop("seed", 0)).solve(objective, **kwargs)


@every_pair
@pytest.mark.parametrize(
    ("layout", "intercept"),
    [
        *(("dense", intercept) for intercept in INTERCEPTS),
        *((layout, intercept) for layout in ("sparse", "unsorted") for intercept in ("free", "none")),
        ("float32", "free"),
    ],
)
def test_reaches_its_tolerance(solver, loss, regularizer, intercept, layout):
    o = problem(loss, regularizer, intercept=intercept, layout=layout)
    best, result = reference(o), solve(solver, o)
    assert result.status is Status.CONVERGED
    assert result.gap <= TOL
    assert best * (1 - 1e-8) <= result.objective <= best * (1 + TOL + 1e-8)
    assert result.objective * (1 - result.gap) <= best * (1 + 1e-8)  # what is certified is true
    assert result.objective == pytest.approx(o.at(result.theta).value, rel=1e-12)


@every_pair
@pytest.mark.parametrize(("cost", "strength"), [(1e-4, 1.0), (10.0, 1.0), (1 / 60, 1e-2), (2.0, 500.0)])
def test_small_and_large_costs(solver, loss, regularizer, cost, strength):
    o = problem(loss, regularizer, cost=cost, strength=strength, n=40, d=5, seed=3)
    best, result = reference(o), solve(solver, o, tol=1e-4)
    assert result.gap <= 1e-4
    assert best * (1 - 1e-7) <= result.objective <= best * (1 + 1e-4 + 1e-7)
    assert result.objective * (1 - result.gap) <= best * (1 + 1e-7)


@every_pair
def test_every_bound_on_the_way_is_true(solver, loss, regularizer):
    o = problem(loss, regularizer, seed=1)
    best, bounds = reference(o), []
    solve(solver, o, callback=lambda step: bounds.append(step.bound))
    assert max(bounds) <= best * (1 + 1e-8)


@pytest.mark.parametrize("tol", [1e-3, 1e-5])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("intercept", ["free", "none"])
@pytest.mark.parametrize(("solver", "loss", "regularizer"), [p for p in PAIRS if p.values[0] in (DualCD, ClassDualCD)])
def test_bounds_are_true_over_a_rounded_copy_of_the_rows(
    solver, loss, regularizer, intercept, layout, tol, monkeypatch
):
    monkeypatch.setattr(shuffled, "_CACHED_BYTES", 0)
    o = problem(loss, regularizer, intercept=intercept, layout=layout, seed=4)
    rows = shuffled.ShuffledRows.of(o.rows, 0, rough=True)
    assert (rows.copied, rows.exact) == (True, False)
    best, bounds = reference(o), []
    result = solve(solver, o, tol=tol, callback=lambda step: bounds.append(step.bound))
    assert result.gap <= tol
    assert best * (1 - 1e-8) <= result.objective <= best * (1 + tol + 1e-8)
    assert max(bounds) <= best * (1 + 1e-8)


@every_pair
def test_more_features_than_rows(solver, loss, regularizer):
    o = problem(loss, regularizer, n=15, d=40, seed=2)
    # Planes of a loss of several scores with kinks are known to the rounding of these kinks, and no further.
    tol = 1e-4 if solver is Bundle and isinstance(loss, VectorLoss) and not loss.smooth else TOL
    best, result = reference(o), solve(solver, o, tol=tol)
    assert best - 1e-7 * (1 + best) <= result.objective <= best * (1 + tol) + 1e-7


@every_pair
@every_intercept
def test_weights_are_repetitions(solver, loss, regularizer, intercept):
    o = problem(loss, regularizer, n=30, intercept=intercept)
    times = np.random.default_rng(5).integers(0, 4, size=30)
    rows = np.repeat(np.arange(30), times)
    X, y, _ = arrays_of(o)
    weighted = over(o, costs=times.astype(float))
    repeated = over(o, from_arrays(X[rows]), labels=y[rows], costs=np.ones(len(rows)))
    one, other = solve(solver, weighted), solve(solver, repeated)
    assert one.objective == pytest.approx(other.objective, rel=2 * TOL)


@every_quick_pair
def test_the_order_of_features_in_a_row_does_not_matter(solver, loss, regularizer):
    dense, in_order, mixed = (problem(loss, regularizer, layout=layout) for layout in ("dense", "sparse", "unsorted"))
    assert not np.array_equal(mixed.rows.local().indices, in_order.rows.local().indices)
    results = [solve(solver, o) for o in (dense, in_order, mixed)]
    for result in results[:2]:
        assert results[2].objective == pytest.approx(result.objective, rel=2 * TOL)
    assert results[2].objective == pytest.approx(dense.at(results[2].theta).value, rel=1e-12)


@certified_or_not
@pytest.mark.parametrize("layout", ["dense", "sparse", pytest.param("unsorted", marks=pytest.mark.slow)])
def test_same_bits_for_any_threads(same_bits, solver, loss, regularizer, layout):
    # Rows for two tasks at least of the kernel that takes the most of them at once.
    o = problem(loss, regularizer, n=20_000, d=20, layout=layout)
    same_bits(lambda: solver(1e-3, 6, 0).run(o).theta, threads=(1, 3))


def test_same_bits_from_several_python_threads():
    objectives = [problem(loss, n=20_000, d=15, seed=seed) for seed in range(3) for loss in (Hinge(), Logistic())]
    alone = [choose_solver(o, seed=7).solve(o).theta for o in objectives]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda o: choose_solver(o, seed=7).solve(o).theta, objectives))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


@every_quick_pair
def test_store_gives_what_arrays_give(solver, loss, regularizer, tmp_path):
    o = problem(loss, regularizer, n=200, layout="sparse")
    store = convert(o.rows.local().to_scipy(), tmp_path / "rows.store")
    assert store.n_rows == 200
    mine, other = (solve(solver, one, tol=1e-4) for one in (o, over(o, store)))
    assert other.gap <= 1e-4
    assert mine.objective == pytest.approx(other.objective, rel=2e-4)
    assert other.objective == pytest.approx(o.at(other.theta).value, rel=1e-12)


@every_pair
@every_intercept
def test_same_answer_for_any_number_of_shards(solver, loss, regularizer, intercept):
    o = problem(loss, regularizer, n=61, intercept=intercept, seed=1)
    one = solve(solver, o, tol=1e-4)
    for count in (2, 4):
        cut = over(o, engine=Threads(n_shards=count))
        assert cut.rows.n_shards == count
        other = solve(solver, cut, tol=1e-4)
        assert other.gap <= 1e-4
        assert other.objective == pytest.approx(one.objective, rel=2e-4)
        assert other.objective == pytest.approx(o.at(other.theta).value, rel=1e-12)
    warm = solve(solver, over(o, engine=Threads(n_shards=3)), tol=1e-4, start=one.theta)
    assert warm.objective == pytest.approx(one.objective, rel=2e-4)


@every_quick_pair
@every_intercept
def test_warm_start_does_not_hurt(solver, loss, regularizer, intercept):
    o = problem(loss, regularizer, n=300, d=10, intercept=intercept)
    cold = solve(solver, o, tol=1e-5)
    warm = solve(solver, o, tol=1e-5, start=cold.theta)
    assert warm.gap <= 1e-5
    assert warm.objective <= cold.objective * (1 + 1e-12)
    assert warm.passes <= 1.5 * cold.passes + 3
    near = solve(solver, over(o, costs=1.1 * arrays_of(o)[2]), tol=1e-5, start=cold.theta)
    assert near.gap <= 1e-5


@certified_or_not
def test_callback_can_stop(solver, loss, regularizer):
    seen = []

    def stop_at_two(step):
        seen.append(step)
        return len(seen) == 2

    o = problem(loss, regularizer, n=200)
    result = solve(solver, o, tol=1e-14, callback=stop_at_two)
    assert len(seen) == 2
    assert result.status is Status.CALLBACK or result.gap <= 1e-14
    assert result.objective == pytest.approx(o.at(result.theta).value, rel=1e-14)
    assert result.objective <= min(step.objective for step in seen) * (1 + 1e-12)


@certified_or_not
def test_interrupt_returns_the_best_so_far(solver, loss, regularizer):
    seen = []

    def interrupt(step):
        seen.append(step)
        if len(seen) == 2:
            raise KeyboardInterrupt

    o = problem(loss, regularizer, n=200)
    result = solve(solver, o, tol=1e-14, callback=interrupt)
    if len(seen) == 2:
        assert result.status is Status.INTERRUPTED
        assert "was interrupted" in result.sentence
    assert result.objective == pytest.approx(o.at(result.theta).value, rel=1e-14)
    assert result.objective <= min(step.objective for step in seen) * (1 + 1e-12)


def test_a_real_signal_interrupts():
    o = problem(EpsilonInsensitive(0.0), n=20_000, d=60, cost=50.0)
    timers = []

    def begin(step):  # before the first step there is nothing to return, and Ctrl-C ends the program
        if not timers:
            timers.append(threading.Timer(0.1, lambda: signal.raise_signal(signal.SIGINT)))
            timers[0].start()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore Ctrl-C
    try:
        result = SOLVERS["dual_cd"](1e-12, 10**9).solve(o, callback=begin)
        timers[0].join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.status is Status.INTERRUPTED
    assert np.isfinite(result.objective)


@certified_or_not
def test_pass_limit_warns_with_words(solver, loss, regularizer):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = solver(1e-15, 2, 0).solve(problem(loss, regularizer, n=500, d=30))
    if result.gap <= ROUNDING_GAP:  # as exact as it can be
        assert not caught
    elif result.status is Status.LIMIT:
        (warning,) = caught
        assert warning.category is ConvergenceWarning
        assert warning.filename == __file__
        for words in (solver.name, "reached its pass limit after", "above the optimum", "raise max_passes (now 2)"):
            assert words in str(warning.message)
    else:  # exact within two passes
        assert result.status in (Status.CONVERGED, Status.STALLED)


@certified_or_not
def test_never_worse_than_no_model(solver, loss, regularizer):
    for cost in (1.0, 1e6):
        o = problem(loss, regularizer, cost=cost, strength=1e-3)
        result = solver(1e-15, 1e-9, 0).run(o)
        assert result.iterations == 1
        assert result.objective <= o.at().value
        assert result.objective == pytest.approx(o.at(result.theta).value, rel=1e-12)


@certified_or_not
def test_degenerate_data(solver, loss, regularizer):
    y = np.ones(4)
    for X in (np.zeros((4, 3)), np.ones((4, 1)), np.ones((4, 3)) * 1e-8):
        for intercept in INTERCEPTS:
            o = problem(loss, regularizer, intercept=intercept)
            o = over(o, from_arrays(X), labels=y, costs=np.ones(4))
            # Four equal rows of several classes: directions by conjugate gradients go back and forth between them.
            result = solve(solver, o, tol=1e-3 if solver is SmoothedNewton and o.n_outputs > 1 else TOL)
            assert np.isfinite(result.theta).all()
            assert result.objective <= o.at().value + 1e-12
    o = problem(loss, regularizer, intercept="none")
    o = over(o, from_arrays(np.eye(3)), labels=np.ones(3), costs=np.zeros(3))
    assert solve(solver, o).objective == pytest.approx(0, abs=1e-12)


class Nothing(Separable):
    """Ω = 0, with which no optimum can be certified."""

    name = "nothing"

    def __init__(self):
        super().__init__(0.0, 0.0, nonnegative=False)


def test_impossible_pairs_name_what_works():
    with pytest.raises(ParameterError, match=r"needs a loss with a curvature.*take smoothed_newton or dual_cd"):
        choose_solver(problem(Hinge()), "newton")
    with pytest.raises(ParameterError, match=r"'dual_cd' needs L2.*take l1_cd"):
        choose_solver(problem(Logistic(), L1()), "dual_cd")
    with pytest.raises(ParameterError, match=r"no solver can take Hinge.* with Nothing"):
        choose_solver(problem(Hinge(), Nothing()))
    with pytest.raises(ParameterError, match="no solver 'simplex'; there are auto, newton"):
        choose_solver(problem(Hinge()), "simplex")
    with pytest.raises(ParameterError, match="'smoothed_newton' needs a loss whose kinks"):
        SOLVERS["smoothed_newton"]().solve(problem(Logistic()))


def test_settings_are_checked():
    for settings, words in (({"tol": 0}, "tol must be positive"), ({"max_passes": 0}, "max_passes must be positive")):
        for kind in SOLVERS.values():
            with pytest.raises(ParameterError, match=words):
                kind(**settings)
    with pytest.raises(ParameterError, match="seed must not be negative"):
        SOLVERS["dual_cd"](seed=-1)
    with pytest.raises(ParameterError, match="linear_solver must be one of"):
        Newton(linear_solver="qr")
    with pytest.raises(ParameterError, match="a start must have 8 coordinates"):
        solve(Newton, problem(Logistic()), start=np.zeros(3))


def test_another_seed_another_order():
    o = problem(Hinge(), n=500)
    one, same, other = (solve(SOLVERS["dual_cd"], o, tol=1e-3, seed=seed).theta for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_loss_of_ones_own_goes_to_newton():
    class Quartic(ScalarLoss):
        name, labels = "quartic", "real"

        def value_and_grad(self, z, y):
            return (z - y) ** 4, 4 * (z - y) ** 3

        def curvature(self, z, y):
            return 12 * (z - y) ** 2

    o = problem(Quartic())
    solver = choose_solver(o)
    assert solver.name == "newton"
    result = solver.solve(o)
    assert result.gap <= 1e-4
    assert np.abs(o.at(result.theta).gradient).max() < 0.1


class TestAuto:
    def test_few_features(self):
        assert choose_solver(problem(Logistic(), n=2000)).name == "newton"
        assert isinstance(choose_solver(problem(Hinge(), n=2000)), Relay)

    def test_many_features(self):
        for loss in (Hinge(), SquaredHinge(), Logistic()):
            o = problem(loss, n=50, d=6000, layout="sparse", cost=1e-3)
            assert choose_solver(o).name == "dual_cd"
        assert choose_solver(problem(Logistic(), n=50, d=6000, layout="sparse", cost=1e4)).name == "newton"

    def test_l1(self):
        assert choose_solver(problem(Logistic(), ElasticNet(0.5))).name == "l1_cd"

    def test_relay_hands_over(self):
        o = problem(Hinge(), n=400, d=20, cost=1e3)
        relay = choose_solver(o, tol=1e-6)
        relay.passes = 3.0
        seen = []
        result = relay.solve(o, callback=lambda step: seen.append(step.solver))
        assert result.gap <= 1e-6
        assert result.solver == "interior_point"
        assert seen[0] == "dual_cd"
        assert seen[-1] == "interior_point"

    def test_relay_warns_in_the_name_of_who_reached_the_limit(self):
        relay = choose_solver(problem(Hinge(), n=400, d=20, cost=1e3), tol=1e-12, max_passes=12)
        relay.passes = 3.0
        with pytest.warns(ConvergenceWarning, match="interior_point reached its pass limit after"):
            relay.solve(problem(Hinge(), n=400, d=20, cost=1e3))


def test_one_pass_is_a_singular():
    result = Result(np.zeros(1), 1.0, 0.9998, Status.CONVERGED, 1, 1.2, 0.1, "newton")
    assert result.sentence == "stopped after 1 pass, at most 0.021 % above the optimum"
    assert replace(result, passes=14).sentence == "stopped after 14 passes, at most 0.021 % above the optimum"
