"""Indexed block coordinate descent as published: queries, blocks and stops, and the optimum that they lead to."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from index_tools import clusters, indexed, objective_over
from numpy.testing import assert_allclose, assert_array_equal

from beeline import from_arrays
from beeline.data.core.segments import Segments
from beeline.exceptions import DataError, ParameterError
from beeline.index import IndexSettings
from beeline.kernels import set_num_threads
from beeline.losses import get_loss
from beeline.objective import Objective
from beeline.regularizers import L2
from beeline.solvers import SOLVERS, State
from beeline.solvers.base import Status
from beeline.solvers.indexed.block_solvers import DualSolver, NewtonSolver
from beeline.solvers.indexed.ibcd import BlockLearning
from beeline.solvers.indexed.querying import Answer, Patience

KINDS = ["boxes", "chunks", "forest"]
HOW = {
    "boxes": IndexSettings(leaf_rows=8, chunk_bytes=2048),
    "chunks": IndexSettings(leaf_rows=40, samples=5, chunk_bytes=2048),
    "forest": IndexSettings(leaf_rows=8, tree_size=300, width=4, chunk_bytes=2048),
}
X, Y = clusters(1000, 8)
NUMBERS = X.toarray() @ np.linspace(-1, 1, 8) + 0.1 * np.random.default_rng(1).normal(size=1000)
LABELS = {
    "hinge": Y,
    "squared_hinge": Y,
    "epsilon_insensitive": NUMBERS,
    "squared_epsilon_insensitive": NUMBERS,
}


@pytest.fixture(scope="module", params=KINDS)
def index(request, tmp_path_factory):
    return indexed(tmp_path_factory.mktemp("ibcd") / "s", X, Y, request.param, HOW[request.param])[1]


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    return indexed(tmp_path_factory.mktemp("ibcd") / "s", X, Y, "boxes", HOW["boxes"])[1]


def plain(y, loss, intercept="free"):
    return Objective.of(from_arrays(X), y, np.ones(len(y)), loss, L2(), 1.0, intercept)


@cache
def best(name, intercept="free"):
    """The least J, proven."""
    return SOLVERS["dual_cd"](tol=1e-6, max_passes=1e5).run(plain(LABELS[name], get_loss(name), intercept)).objective


def solver(**options):
    return SOLVERS["indexed"](**{"tol": 3e-3, "variant": "ibcd", "query_rows": 100, **options})


def learning(index, loss="hinge", **options):
    """A run that has begun."""
    run = BlockLearning(solver(**options), objective_over(index, LABELS.get(loss, Y), get_loss(loss)))
    run.begin(None)
    return run


PAIRS = [(name, "dual") for name in LABELS] + [("squared_hinge", "newton"), ("squared_epsilon_insensitive", "newton")]


class TestConvex:
    @pytest.mark.parametrize(("name", "block"), PAIRS)
    def test_finds_the_certified_optimum(self, index, name, block):
        result = solver(block=block).run(objective_over(index, LABELS[name], get_loss(name)))
        assert result.status is Status.CONVERGED
        assert result.objective == pytest.approx(plain(LABELS[name], get_loss(name)).at(result.theta).value, rel=1e-9)
        assert result.bound <= best(name) * (1 + 1e-9)
        assert result.objective <= best(name) * (1 + 3.1e-3)

    @pytest.mark.parametrize("intercept", ["regularized", "none"])
    @pytest.mark.parametrize(("name", "block"), [("hinge", "dual"), ("squared_hinge", "newton")])
    def test_with_any_intercept(self, boxes, name, block, intercept):
        result = solver(block=block).run(objective_over(boxes, Y, get_loss(name), intercept=intercept))
        assert result.status is Status.CONVERGED
        assert result.objective == pytest.approx(best(name, intercept), rel=3.1e-3)

    @pytest.mark.parametrize("block", ["dual", "newton"])
    def test_in_small_blocks(self, index, block):
        """B is far smaller than S, so that v of the other rows counts."""
        o = objective_over(index, Y, get_loss("squared_hinge"))
        result = solver(block=block, query_rows=30, block_rows=60).run(o)
        assert result.status is Status.CONVERGED
        assert result.objective == pytest.approx(best("squared_hinge"), rel=3.1e-3)

    def test_of_rows_that_cost_nothing(self, index):
        costs = np.where(np.arange(len(Y)) % 3 == 0, 0.0, 1.5)
        result = solver().run(objective_over(index, Y, get_loss("hinge"), costs))
        whole = Objective.of(from_arrays(X), Y, costs, get_loss("hinge"), L2())
        assert result.objective == pytest.approx(SOLVERS["dual_cd"](tol=1e-6).run(whole).objective, rel=3.1e-3)

    def test_within_a_memory(self, index):
        """S does not fit, and lies on disk in part."""
        o = objective_over(index, Y, get_loss("squared_hinge"), memory=100_000)
        result = solver().run(o)
        assert result.status is Status.CONVERGED
        assert result.objective == pytest.approx(best("squared_hinge"), rel=3.1e-3)

    def test_goes_on_from_a_state(self, boxes):
        o = objective_over(boxes, Y, get_loss("hinge"))
        first = solver(tol=1e-2).run(o)
        second = solver().run(o, State(first.theta))
        assert second.status is Status.CONVERGED
        run = BlockLearning(solver(), o)
        run.begin(State(first.theta))
        assert_array_equal(run.theta, first.theta)  # where the first query asks

    def test_same_bits_for_any_number_of_threads(self, index):
        found = []
        for threads in (1, 2):
            set_num_threads(threads)
            try:
                found.append(solver(seed=5).run(objective_over(index, Y, get_loss("hinge"))))
            finally:
                set_num_threads(2)
        assert_array_equal(found[0].theta, found[1].theta)
        assert found[0].facts["bytes_read"] == found[1].facts["bytes_read"]

    def test_trace_tells_searching_from_solving(self, boxes):
        result = solver().run(objective_over(boxes, Y, get_loss("hinge")))
        wanted = {"active", "new", "looked", "bytes_read", "cache_hits", "search_seconds", "solve_seconds"}
        assert all(wanted <= set(at.facts) for at in result.trace)
        assert result.facts["search_seconds"] > 0 < result.facts["solve_seconds"]

    def test_interrupted_or_out_of_time(self, boxes):
        def stop(step):
            raise KeyboardInterrupt

        o = objective_over(boxes, Y, get_loss("hinge"))
        assert solver().run(o, callback=stop).status is Status.INTERRUPTED
        assert solver(tol=1e-12).with_time_limit(1e-9).run(o).status is Status.TIME


def active_rows(index, run, place, outer=None):
    """Positions of rows that satisfy (10), by all rows."""
    order = index.order()
    rows, y = X.toarray()[order], Y[order]
    matters = y * (rows @ place[0] + place[1]) < 1
    if outer is not None:
        matters &= y * (rows @ outer[0] + outer[1]) >= -1  # L⁻¹(1 + s) of the ramp, s = 1
    return np.setdiff1d(np.flatnonzero(matters), run.active.positions)


class TestQueries:
    PLACE = 3 * np.random.default_rng(3).normal(size=8), 0.1
    OUTER = 3 * np.random.default_rng(4).normal(size=8), -0.2

    @pytest.mark.parametrize("outer", [None, OUTER])
    def test_are_those_of_all_rows(self, index, outer):
        run = learning(index, "ramp")
        answer = run.queries.ask(self.PLACE, outer, 10**6)
        assert answer.complete
        assert_array_equal(np.sort(answer.new.positions), active_rows(index, run, self.PLACE, outer))
        margins = (Y * (X @ self.PLACE[0] + self.PLACE[1]))[index.order()][active_rows(index, run, self.PLACE)]
        assert answer.tally.cost == pytest.approx(np.minimum(1 - margins, 2).sum(), rel=1e-9 if outer is None else 0.15)
        assert_array_equal(answer.new.labels, Y[index.order()][answer.new.positions])
        assert_allclose(answer.new.block.to_dense(), X.toarray()[index.order()][answer.new.positions])

    def test_gives_n_of_them_at_random(self, index):
        run = learning(index)
        wanted = active_rows(index, run, self.PLACE)
        answers = [run.queries.ask(self.PLACE, None, 20) for _ in range(2)]
        for answer in answers:
            assert not answer.complete
            assert answer.n_new == 20
            assert np.isin(answer.new.positions, wanted).all()
            assert answer.looked < len(Y)
        assert set(answers[0].new.positions) != set(answers[1].new.positions)

    def test_not_the_worst_first(self, boxes):
        run = learning(boxes)
        w, b = self.PLACE
        margins = (Y * (X @ w + b))[boxes.order()]
        wanted, all_of_them = active_rows(boxes, run, self.PLACE), run.queries.ask(self.PLACE, None, 10**6)
        run.queries.open_all()
        found = np.concatenate([run.queries._drawn([all_of_them.new], 20).positions for _ in range(20)])
        assert margins[found].mean() == pytest.approx(margins[wanted].mean(), abs=0.25 * margins[wanted].std())

    def test_shrinking_loses_nothing(self, index):
        """Closed leaves are passed over until all are opened; each has no row near to mattering."""
        run = learning(index)
        run.queries.threshold = 0.3
        run._take(run.queries.ask(self.PLACE, None, 10**6))
        margins = (Y * (X @ self.PLACE[0] + self.PLACE[1]))[index.order()]
        leaves = run.search.leaves_of(np.arange(len(Y)))
        others = np.setdiff1d(np.arange(len(Y)), run.active.positions)
        near = others[margins[others] < 1.3]
        assert not run.queries.closed[leaves[near]].any()
        assert run.queries.closed.any()
        place = -0.2 * self.PLACE[0], 0.0
        wanted, shrunk = active_rows(index, run, place), run.queries.ask(place, None, 10**6)
        assert not shrunk.complete
        assert shrunk.looked < len(Y)
        assert shrunk.n_new < len(wanted)
        run.queries.open_all()
        answer = run.queries.ask(place, None, 10**6)
        assert answer.complete
        assert_array_equal(np.sort(answer.new.positions), wanted)

    def test_nothing_is_read_where_all_is_closed(self, index):
        run = learning(index)
        run.queries.closed[:] = True
        assert run.queries.ask(self.PLACE, None, 10) == Answer(None, 0, False)

    def test_a_sample_is_fair(self, index):
        run = learning(index)
        answer = run.queries.sample(self.PLACE, None, 500)
        assert 500 <= answer.looked < len(Y)
        wanted, w = active_rows(index, run, self.PLACE), self.PLACE[0]
        costs = np.maximum(1 - Y * (X @ w + self.PLACE[1]), 0)[index.order()][wanted].sum()
        answers = [run.queries.sample(self.PLACE, None, 300) for _ in range(40)]
        estimates = [answer.tally.times(len(Y) / answer.looked).cost for answer in answers]
        assert np.mean(estimates) == pytest.approx(costs, rel=0.12)
        share = len(active_rows(index, run, self.PLACE)) / len(Y)
        assert answer.n_new / answer.looked == pytest.approx(share, abs=0.15)
        assert run.queries.sample(self.PLACE, None, len(Y)).complete

    def test_gives_up_where_too_little_is_found(self, index):
        run = learning(index)
        run._take(run.queries.ask(self.PLACE, None, 10**6))
        run.queries.open_all()
        answer = run.queries.ask(self.PLACE, None, 50, Patience(200, 0.01))
        assert answer.n_new == 0
        assert not answer.complete or answer.looked < 200


class TestBlocks:
    def solvers(self, index, intercept):
        o, loss = objective_over(index, Y, get_loss("squared_hinge"), intercept=intercept), get_loss("squared_hinge")
        for kind, how in ((DualSolver, {"sweeps": 3000}), (NewtonSolver, {})):
            run = BlockLearning(solver(), o)
            run.begin(None)
            made = kind(o, loss, run.active, **how)
            made.restart(run.place[1])
            yield run, made

    def by_hand(self, run, made):
        """w by (8)."""
        rows = X.toarray()[run.search.index.order()][run.active.positions]
        return run.active.dual @ rows / made.modulus

    @pytest.mark.parametrize("intercept", ["regularized", "none"])
    def test_newton_and_dual_descent_agree(self, boxes, intercept):
        """On a block that is not all of S."""
        found = []
        for run, made in self.solvers(boxes, intercept):
            numbers = np.arange(0, len(run.active), 3)
            others = np.delete(run.active.dual, numbers)
            made.solve(numbers)
            assert_array_equal(np.delete(run.active.dual, numbers), others)
            assert_allclose(made.place[0], self.by_hand(run, made), atol=1e-9)
            found.append((*made.place, run.active.dual[numbers]))
        for ours, theirs in zip(*found, strict=True):
            assert_allclose(ours, theirs, atol=1e-5)

    @pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
    def test_what_is_left_out_is_taken_out_of_w(self, boxes, intercept):
        """I7: (8) holds with the variables that are left."""
        for run, made in self.solvers(boxes, intercept):
            before, rows = made.place[0], np.flatnonzero(run.active.dual)[::2]
            made.leave_out(rows)
            assert not run.active.dual[rows].any()
            assert_allclose(made.place[0], self.by_hand(run, made), atol=1e-9)
            assert np.abs(made.place[0] - before).max() > 1e-3

    def test_outliers_leave_s_with_their_variables(self, index):
        run = learning(index, "ramp")
        outer = 4 * TestQueries.PLACE[0], 0.0
        out = run.active.labels * run.active.scores(*outer) < -1
        assert 0 < out.sum() < len(out)
        kept = np.sort(run.active.positions[~out])
        run.begin_round(outer)
        assert_array_equal(np.sort(run.active.positions), kept)
        rows = X.toarray()[index.order()][run.active.positions]
        assert_allclose(run.blocks.place[0], run.active.dual @ rows, atol=1e-9)

    def test_the_reader_comes_to_every_row_as_often(self, boxes):
        """I11: with r ← r + n_e + 1 it would pass over some for ever."""
        run = learning(boxes, block_rows=7)
        visits, n = np.zeros(len(run.active), int), len(run.active)
        run.blocks.solve = lambda numbers: np.add.at(visits, numbers, 1) or 1.0
        for _ in range(3 * n):
            run._solve(Answer(None, n - 1, False))
        assert visits.min() >= 20
        assert visits.max() - visits.min() <= 1

    def test_a_block_has_new_rows_and_as_many_as_were_looked_at(self, boxes):
        run = learning(boxes, query_rows=10)
        taken = []
        run.blocks.solve = lambda numbers: taken.append(numbers) or 1.0
        answer, old = run.queries.ask(TestQueries.PLACE, None, 10), len(run.active)
        run._solve(answer._replace(looked=40))
        assert len(taken[0]) == 40
        assert np.isin(np.arange(old, old + 10), taken[0]).all()
        assert len(run.active) == old + 10


class TestStops:
    def test_few_by_count(self, boxes):
        run = learning(boxes, epsilon=0.5, query_rows=1000)
        wrong = np.mean(run.pilot.labels * run.pilot.scores(*run.place) <= 0)
        assert run.allowed == pytest.approx(0.5 * wrong * len(Y), rel=0.05)
        found = run.queries.ask(TestQueries.PLACE, None, 50)
        run.allowed = 50.0
        assert not run._are_few(found)
        run.allowed = 51.0
        assert run._are_few(found)
        for epsilon, allowed in ((0.0, 1.0), (1e6, 1000.0)):
            run.epsilon = epsilon
            run._measure()
            assert run.allowed == allowed

    def test_few_by_sample(self, boxes):
        run = learning(boxes, stop="sample")
        found = run.queries.ask(TestQueries.PLACE, None, 50)
        run.allowed = 1.01 * len(Y) * found.n_new / found.looked
        assert run._are_few(found)
        run.allowed *= 0.98
        assert not run._are_few(found)

    def test_a_larger_epsilon_leaves_rows_to_be_found(self, index):
        """J is proven all the same, as far as it is."""
        run = learning(index, epsilon=1.0)
        run.begin_round(None)
        steps = run.go_round(None)
        try:
            while True:
                next(steps)
        except StopIteration as end:
            last = end.value
        assert last.n_new < run.allowed
        assert run.gap <= run.tolerance
        assert run.value == pytest.approx(plain(Y, get_loss("hinge")).at(run.theta).value, rel=1e-9)

    @pytest.mark.parametrize("verify", [True, False])
    def test_by_random_rows(self, tmp_path, verify):
        """Far fewer rows are looked at, and what is said of J is an estimate, or proven by a pass."""
        rows, y = clusters(8000, 8)
        index = indexed(tmp_path / "s", rows, y, "forest", IndexSettings(tree_size=500, chunk_bytes=4096))[1]
        o = objective_over(index, y, get_loss("hinge"), strength=100.0)
        result = solver(tol=0.05, stop="sample", verify=verify, query_rows=400).run(o)
        counted = solver(tol=0.05, query_rows=400).run(o)
        assert counted.status is Status.CONVERGED
        true = o.at(result.theta).value
        if verify:
            assert result.status is Status.CONVERGED
            assert result.objective == pytest.approx(true, rel=1e-9)
        else:
            assert result.status is Status.UNPROVEN
            assert "J is an estimate, since" in result.sentence
            assert result.objective == pytest.approx(true, rel=0.05)
            assert result.facts["looked"] < 0.8 * counted.facts["looked"]


class TestCutOff:
    @pytest.mark.parametrize(("name", "stop"), [("ramp", "count"), ("truncated_squared_hinge", "sample")])
    def test_j_never_rises_and_is_that_of_relaxation(self, index, name, stop):
        told = []
        o = objective_over(index, Y, get_loss(name))
        result = solver(stop=stop, begin="convex").run(
            o, callback=lambda step: told.append((step.objective, step.evaluated))
        )
        known = [value for value, evaluated in told if evaluated]
        assert known
        assert np.all(np.diff(known) <= 1e-12 * known[0])
        assert result.status is Status.UNPROVEN
        assert result.objective == pytest.approx(plain(Y, get_loss(name)).at(result.theta).value, rel=1e-9)
        theirs = SOLVERS["relaxation"](tol=1e-3, begin="convex").run(plain(Y, get_loss(name)))
        assert result.objective <= 1.01 * theirs.objective

    def test_from_a_sample(self, index):
        loss = get_loss("ramp")
        result = solver().run(objective_over(index, Y, loss))
        theirs = SOLVERS["relaxation"](tol=1e-3).run(plain(Y, loss))
        assert result.objective <= 1.05 * theirs.objective
        outside = loss.outside(X @ result.theta[:-1] + result.theta[-1], Y)
        assert_array_equal(result.state.arrays["outside"].astype(bool), outside)
        assert result.facts["outside"] == outside.sum()

    def test_by_newton(self, index):
        loss = get_loss("truncated_squared_hinge")
        result = solver(block="newton", begin="convex").run(objective_over(index, Y, loss))
        theirs = SOLVERS["relaxation"](tol=1e-3, begin="convex").run(plain(Y, loss))
        assert result.objective <= 1.01 * theirs.objective

    @pytest.mark.parametrize("stop", ["count", "sample"])
    def test_without_a_look_at_all_rows(self, index, stop):
        """J and the outliers are those of S, and what the last query says of other rows."""
        loss = get_loss("ramp")
        result = solver(verify=False, stop=stop).run(objective_over(index, Y, loss))
        assert "J is an estimate" in result.sentence
        assert "local optimum" not in result.sentence
        assert result.objective == pytest.approx(plain(Y, loss).at(result.theta).value, rel=0.02)
        outside = loss.outside(X @ result.theta[:-1] + result.theta[-1], Y)
        assert result.facts["outside"] == pytest.approx(outside.sum(), rel=0.1)

    def test_a_class_is_not_given_up(self, tmp_path):
        y = np.where(np.random.default_rng(0).random(len(Y)) < 0.4, 1.0, -1.0)  # nothing to be told
        index = indexed(tmp_path / "s", X, y, "boxes", HOW["boxes"])[1]
        result = solver(tol=1e-2).run(objective_over(index, y, get_loss("ramp", s=0.0), strength=1e-2))
        assert result.facts["outside_positive"] <= 0.5 * (y > 0).sum() or "would give up a class" in result.sentence


class TestOptions:
    def test_newton_needs_a_curvature(self, boxes):
        with pytest.raises(ParameterError, match="needs a squared hinge or a squared ε-insensitive loss for block"):
            solver(block="newton").run(objective_over(boxes, Y, get_loss("hinge")))
        with pytest.raises(ParameterError, match="for block='newton', unlike Ramp"):
            solver(block="newton").run(objective_over(boxes, Y, get_loss("ramp")))

    def test_of_the_other_variant(self):
        with pytest.raises(ParameterError, match="the solver's stop is for variant='ibcd'; leave it out"):
            SOLVERS["indexed"](stop="sample")
        with pytest.raises(ParameterError, match="the solver's inner is for variant='whole'; leave it out"):
            solver(inner="bundle")

    @pytest.mark.parametrize("value", [-1.0, "much", True, np.inf, np.nan])
    def test_numbers_are_checked(self, value):
        with pytest.raises(ParameterError, match="the solver's threshold must be a number from 0 on, not"):
            solver(threshold=value)


def test_segments_give_rows_in_any_order():
    rows = from_arrays(X).rows(0, 100)
    data = Segments(rows.n_features)
    for k in range(0, 100, 20):
        data._segments.append(rows.rows(k, k + 20))
    data.spill(data.nbytes // 2)
    picked = np.random.default_rng(0).permutation(100)[:50]
    for some in (picked, np.sort(picked), picked[:0]):
        assert_array_equal(data.gather(some).to_dense(), X.toarray()[some])
    for wrong in ([100], [-1]):
        with pytest.raises(DataError, match="row numbers must lie"):
            data.gather(np.array(wrong))


@pytest.mark.parametrize("name", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_where_no_row_matters_there_is_nothing_to_solve(index, name):
    """S is empty then: all numbers lie in a tube of that width."""
    block = "newton" if name.startswith("squared") else "dual"
    o = objective_over(index, np.linspace(-1, 1, len(Y)), get_loss(name, epsilon=10.0))
    result = SOLVERS["indexed"](variant="ibcd", block=block).run(o)
    assert result.status is Status.CONVERGED
    assert result.objective == 0
    assert not result.theta[:-1].any()


def test_scores_beyond_all_numbers_raise_no_warning(index):
    """Where features are huge, a block may lead there for a while; J is infinite then, and so is no row's fault."""
    run = BlockLearning(SOLVERS["indexed"](variant="ibcd"), objective_over(index, Y, get_loss("squared_hinge")))
    run.place = np.full(X.shape[1], 1e200), 0.0
    run._measure()
    assert run.estimate == np.inf
    assert run.search.estimated_rest(run.place, run.active) in (0.0, np.inf)  # random rows may be all that there are
    run.active.keep(np.zeros(len(run.active), np.bool_))
    assert run.queries.ask(run.place, None, 10).tally.cost == np.inf


def test_a_limit_is_called_one(tmp_path):
    """S that was gone through as often as it may be could still be solved better."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    index = indexed(tmp_path / "s", X, y, "boxes")[1]
    result = SOLVERS["indexed"](variant="ibcd", max_passes=30).run(
        objective_over(index, y, get_loss("hinge"), strength=1e-3)
    )
    assert result.status is Status.LIMIT
