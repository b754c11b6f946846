"""Indexed learning finds what other solvers find, and proves no more than is true."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from index_tools import clusters, indexed, objective_over
from numpy.testing import assert_array_equal

from beeline import from_arrays
from beeline.engines.verbs.leaves import flats_of_leaves, flats_of_rows
from beeline.exceptions import ParameterError
from beeline.index import IndexSettings
from beeline.index.guides import Flats
from beeline.kernels import set_num_threads
from beeline.losses import get_loss
from beeline.objective import Objective
from beeline.regularizers import L1, L2
from beeline.solvers import SOLVERS, State
from beeline.solvers.base import Status
from beeline.solvers.indexed import learning

KINDS = ["boxes", "chunks", "forest"]
X, Y = clusters()
NUMBERS = X.toarray() @ np.linspace(-1, 1, X.shape[1]) + 0.1 * np.random.default_rng(1).normal(size=X.shape[0])
CONVEX = {
    "hinge": Y,
    "squared_hinge": Y,
    "epsilon_insensitive": NUMBERS,
    "squared_epsilon_insensitive": NUMBERS,
}


@pytest.fixture(scope="module", params=KINDS)
def index(request, tmp_path_factory):
    return indexed(tmp_path_factory.mktemp("indexed") / "s", X, Y, request.param)[1]


def plain(y, loss, costs=None, **how):
    c = np.ones(len(y)) if costs is None else costs
    return Objective.of(from_arrays(X), y, c, loss, L2(), how.get("strength", 1.0), how.get("intercept", "free"))


@cache
def best_at(strength):
    """The least J of the hinge; once for all kinds of index."""
    return SOLVERS["interior_point"](tol=1e-5).run(plain(Y, get_loss("hinge"), strength=strength)).objective


def solver(**options):
    return SOLVERS["indexed"](**{"tol": 1e-4, **options})


@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
@pytest.mark.parametrize("name", CONVEX)
def test_finds_the_certified_optimum(index, name, intercept):
    loss, y = get_loss(name), CONVEX[name]
    result = solver().run(objective_over(index, y, loss, intercept=intercept))
    whole = plain(y, loss, intercept=intercept)
    best = SOLVERS["dual_cd"](tol=1e-7, max_passes=1e5).run(whole)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(whole.at(result.theta).value, rel=1e-9)
    assert result.bound <= best.objective * (1 + 1e-9)
    assert best.bound * (1 - 1e-9) <= result.objective <= best.objective * (1 + 1.1e-4)


@pytest.mark.parametrize("strength", [1e-3, 1.0, 100.0])
def test_at_any_strength(index, strength):
    result = solver().run(objective_over(index, Y, get_loss("hinge"), strength=strength))
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(best_at(strength), rel=1.1e-4)


def test_rows_that_cost_nothing_are_absent(index):
    """As folds have them."""
    costs = np.where(np.arange(len(Y)) % 3 == 0, 0.0, np.random.default_rng(2).uniform(0.5, 2.0, len(Y)))
    result = solver().run(objective_over(index, Y, get_loss("hinge"), costs))
    best = SOLVERS["dual_cd"](tol=1e-6).run(plain(Y, get_loss("hinge"), costs))
    assert result.objective == pytest.approx(best.objective, rel=1.1e-4)


def test_reads_only_what_matters(tmp_path):
    """Where most rows lie far from where classes meet, few, and that nothing else matters is proven."""
    random = np.random.default_rng(4)
    centres = random.normal(size=(300, 6))
    which = random.integers(300, size=40_000)
    X = centres[which] + 0.01 * random.normal(size=(40_000, 6))
    y = np.where(centres[which] @ np.ones(6) > 0, 1.0, -1.0)
    _, index = indexed(tmp_path / "s", X, y, "boxes", IndexSettings(leaf_rows=16, chunk_bytes=2048))
    result = solver(tol=1e-3).run(objective_over(index, y, get_loss("hinge")))
    best = SOLVERS["dual_cd"](tol=1e-5).run(
        Objective.of(from_arrays(X), y, np.ones(len(y)), get_loss("hinge"), L2(), 1.0, "free")
    )
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(best.objective, rel=1.1e-3)
    assert result.passes < 0.5
    assert result.passes == pytest.approx(result.facts["bytes_read"] / index.rows.nbytes)
    assert result.facts["looked"] < 0.5 * len(y)


class TestWithoutVerification:
    def test_an_estimate_is_called_one(self, tmp_path):
        index = indexed(tmp_path / "s", X, Y, "chunks")[1]
        result = solver(verify=False, tol=1e-2).run(objective_over(index, Y, get_loss("hinge")))
        assert result.status is Status.UNPROVEN
        assert "J is an estimate, since" in result.sentence
        assert result.objective == pytest.approx(plain(Y, get_loss("hinge")).at(result.theta).value, rel=0.1)
        assert result.bound in (0.0, -np.inf)  # that of a loss which is never negative, or none

    def test_boxes_need_none(self, tmp_path):
        index = indexed(tmp_path / "s", X, Y, "boxes")[1]
        result = solver(verify=False).run(objective_over(index, Y, get_loss("hinge")))
        assert result.status is Status.CONVERGED


class TestCutOff:
    @pytest.mark.parametrize("name", ["ramp", "truncated_squared_hinge"])
    def test_ends_in_a_local_optimum(self, index, name):
        loss = get_loss(name)
        result = solver(tol=1e-3).run(objective_over(index, Y, loss))
        whole = plain(Y, loss)
        point = whole.at(result.theta)
        assert result.status is Status.UNPROVEN
        assert "local optimum" in result.sentence or "lowers J by less" in result.sentence
        assert result.objective == pytest.approx(point.value, rel=1e-9)
        # No better than what it says: the convex problem of the rows that are IN is solved.
        outside = loss.outside(whole.rows.gather(point.z), Y)
        inside = plain(Y, loss.loss, np.where(outside, 0.0, 1.0))
        best = SOLVERS["dual_cd"](tol=1e-6).run(inside)
        assert inside.at(result.theta).value <= best.objective * (1 + 2e-3)
        assert_array_equal(result.state.arrays["outside"].astype(bool), outside)
        assert result.facts["outside"] == outside.sum()

    def test_is_as_good_as_the_relaxation_over_all_rows(self, index):
        loss = get_loss("ramp")
        ours = solver(tol=1e-3).run(objective_over(index, Y, loss))
        theirs = SOLVERS["relaxation"](tol=1e-3, begin="convex").run(plain(Y, loss))
        assert ours.objective <= 1.05 * theirs.objective

    def test_a_class_is_not_given_up(self, tmp_path):
        X, y = clusters(4000, noise=0.0)
        y = np.where(np.random.default_rng(0).random(4000) < 0.4, 1.0, -1.0)  # nothing to be told
        index = indexed(tmp_path / "s", X, y, "boxes")[1]
        result = solver(tol=1e-2).run(objective_over(index, y, get_loss("ramp", s=0.0), strength=1e-3))
        assert result.facts["outside_positive"] <= 0.5 * (y > 0).sum() or "would give up a class" in result.sentence


def test_goes_on_from_a_state(index):
    o = objective_over(index, Y, get_loss("hinge"))
    first = solver(tol=1e-2).run(o)
    second = solver(tol=1e-4).run(o, State(first.theta))
    assert second.status is Status.CONVERGED
    assert second.objective == pytest.approx(solver().run(o).objective, rel=2e-4)


def test_same_bits_for_any_number_of_threads(index):
    results = []
    for threads in (1, 3):
        set_num_threads(threads)
        try:
            results.append(solver(tol=1e-3).run(objective_over(index, Y, get_loss("hinge"))))
        finally:
            set_num_threads(2)
    assert_array_equal(results[0].theta, results[1].theta)
    assert results[0].facts["bytes_read"] == results[1].facts["bytes_read"]


def test_trace_tells_searching_from_solving(index):
    result = solver(tol=1e-3).run(objective_over(index, Y, get_loss("hinge")))
    for at in result.trace:
        assert {"search_seconds", "solve_seconds", "bytes_read", "cache_hits", "active", "new"} <= set(at.facts)


def test_ctrl_c_returns_the_best_so_far(index):
    def stop(step):
        raise KeyboardInterrupt

    result = solver().run(objective_over(index, Y, get_loss("hinge")), callback=stop)
    assert result.status is Status.INTERRUPTED
    assert np.abs(result.theta).max() > 0


def test_a_time_limit_ends_it(index):
    o = objective_over(index, Y, get_loss("hinge"))
    result = solver(tol=1e-12).with_time_limit(1e-9).run(o)
    assert result.status is Status.TIME
    assert result.iterations == 1


class TestRefusals:
    def test_rows_without_an_index(self):
        with pytest.raises(ParameterError, match="needs an index of the rows, which `beeline index` builds"):
            solver().run(plain(Y, get_loss("hinge")))

    def test_a_loss_to_which_all_rows_matter(self, index):
        with pytest.raises(ParameterError, match="needs a hinge or an ε-insensitive loss"):
            solver().run(objective_over(index, Y, get_loss("logistic")))

    def test_another_regularizer(self, index):
        o = Objective.of(
            objective_over(index, Y, get_loss("hinge")).rows.data, Y, np.ones(len(Y)), get_loss("hinge"), L1()
        )
        with pytest.raises(ParameterError, match="needs L2"):
            solver().run(o)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    random = np.random.default_rng(0)
    centres, truth = random.normal(size=(100, 10)), random.normal(size=10)
    which = random.integers(100, size=60_000)
    X = (centres[which] + 0.02 * random.normal(size=(60_000, 10))).astype(np.float32)
    y = np.where(centres[which] @ truth > 0, 1.0, -1.0)
    y[random.random(60_000) < 0.02] *= -1
    _, index = indexed(tmp_path_factory.mktemp("many") / "s", X, y, "boxes", IndexSettings())
    return index, y


class TestMoreThanFits:
    """An active set that is larger than the memory."""

    @pytest.fixture(autouse=True)
    def little(self, monkeypatch):
        """So that rows are dropped too, which no memory of a usual size asks for here."""
        monkeypatch.setattr(learning, "_SMALL", 1 << 19)

    @pytest.mark.parametrize("memory", [200_000, 1_000_000])
    def test_ends_all_the_same(self, many, memory):
        """With rows that were dropped and came again, weights ran in circles."""
        index, y = many
        result = SOLVERS["indexed"](1e-4, 30).run(objective_over(index, y, get_loss("hinge"), memory=memory))
        best = SOLVERS["indexed"](1e-4).run(objective_over(index, y, get_loss("hinge")))
        assert result.status is Status.CONVERGED
        assert result.objective == pytest.approx(best.objective, rel=1e-4)

    def test_streams_where_too_many_rows_matter(self, many, monkeypatch):
        """What is kept beside the rows of S took as much as it took."""
        index, y = many
        monkeypatch.setattr(learning, "_LEAST", 1 << 17)
        result = SOLVERS["indexed"](1e-4).run(objective_over(index, y, get_loss("hinge"), memory=400_000))
        best = SOLVERS["indexed"](1e-4).run(objective_over(index, y, get_loss("hinge")))
        assert result.solver == "smoothed_newton"
        assert max(point.facts.get("active", 0.0) for point in result.trace) <= 400_000 / 3 / 64
        assert result.objective == pytest.approx(best.objective, rel=1e-3)

    def test_cuts_off_the_same_rows(self, many):
        """Relaxations over rows that are not all there went on to where a class was given up."""
        index, y = many
        scarce, plenty = (
            SOLVERS["indexed"](1e-4).run(objective_over(index, y, get_loss("ramp"), memory=memory))
            for memory in (300_000, None)
        )
        assert not scarce.facts["crowded"]
        assert scarce.objective == pytest.approx(plenty.objective, rel=1e-3)


def test_what_leaves_take_is_no_memory_for_rows(index):
    """Of fifty million rows leaves alone took three quarters of a tenth of the memory."""
    o = objective_over(index, Y, get_loss("hinge"), memory=10_000_000)
    run = learning.Learning(SOLVERS["indexed"](1e-4), o)
    assert run.search.nbytes >= run.search.guide.nbytes + 64 * index.n_leaves
    assert run.memory <= 10_000_000 - 64 * index.n_leaves - len(Y)
    if index.info.kind == "boxes":  # which has all that it knows in memory
        assert run.memory == 10_000_000 - run.search.nbytes - len(Y)
    assert run.search.reader.room == run.memory // 8
    small = learning.Learning(SOLVERS["indexed"](1e-4), objective_over(index, Y, get_loss("hinge"), memory=1000))
    assert small.memory == 250
    assert learning.Learning(SOLVERS["indexed"](1e-4), objective_over(index, Y, get_loss("hinge"))).memory is None


@pytest.mark.parametrize("flat", [1.0, np.inf, 0.1])
def test_flats_are_narrow_where_no_digit_is_lost(flat):
    flats = Flats(*np.full((4, 3), flat)).narrowed()
    assert {column.dtype for column in flats} == {np.dtype(np.float64 if flat == 0.1 else np.float32)}
    assert_array_equal(flats.low, np.full(3, flat))


def test_tells_the_model_of_the_random_rows_first(index):
    steps = solver().steps(objective_over(index, Y, get_loss("ramp")), None)
    first = next(steps)
    assert first.passes == 0
    assert first.facts["active"] == len(index.pilot().positions)
    assert np.mean(np.sign(X @ first.theta[:-1] + first.theta[-1]) == Y) > 0.8
    assert next(steps).passes > 0


@pytest.mark.parametrize("cap", [None, 2.0])
def test_flats_of_leaves_are_those_of_their_rows(index, cap):
    costs = np.where(np.random.default_rng(3).random(len(Y)) < 0.9, 1.0, 0.0)
    costs[index.order(0, int(index.ends[1]))] = 0.0  # leaves whose rows cost nothing
    o = objective_over(index, Y, get_loss("hinge"), costs)
    found = o.rows.concat(flats_of_leaves, o.labels, o.costs, loss=o.loss, cap=cap).value
    rows = flats_of_rows(o.loss, Y[index.order()], costs[index.order()], cap)
    ways = (np.maximum, np.minimum, np.minimum, np.maximum)
    for ours, way, column in zip(found, ways, rows, strict=True):
        assert_array_equal(ours, way.reduceat(column, index.starts))


class TestLimits:
    def test_j_of_rows_that_were_not_read_is_called_an_estimate(self, index):
        """Where a limit ends it, too."""
        o = objective_over(index, Y, get_loss("hinge"))
        result = solver(max_passes=0.01).run(o)
        assert result.status is Status.LIMIT
        assert result.sentence.endswith("% of the rows were read")
        assert "an unknown distance above the optimum; J is an estimate, since" in result.sentence

    @pytest.mark.parametrize("variant", ["whole", "ibcd"])
    def test_outliers_are_known_of_the_rows_that_were_read(self, index, variant):
        loss = get_loss("ramp")
        result = solver(variant=variant, max_passes=0.01).run(objective_over(index, Y, loss))
        outside = loss.outside(X @ result.theta[:-1] + result.theta[-1], Y)
        assert result.status is Status.LIMIT
        assert not np.any(result.state.arrays["outside"].astype(bool) & ~outside)


def test_an_inner_solver_that_proves_nothing_is_named(index):
    result = solver(inner="sgd", tol=1e-2).run(objective_over(index, Y, get_loss("hinge")))
    assert result.status is Status.UNPROVEN
    assert "inner='sgd' proves nothing" in result.sentence
