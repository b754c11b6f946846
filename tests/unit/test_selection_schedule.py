"""Which C comes next, when a path ends, and what a search does about time and failures."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import scale

from beeline import LinearModel, select_C
from beeline.exceptions import ConvergenceWarning, ParameterError
from beeline.selection import End, PathPoint, Selecting, runners
from beeline.selection import path as search_path
from beeline.selection.runners import _InLockstep
from beeline.selection.schedule import Schedule


def point(C, score, loss=None, training=None, settled=False):
    loss = score if loss is None else loss
    training = loss if training is None else training
    return PathPoint(C, (score, score), (1.0, 1.0), 0.1, 1.0, 0.1, None, settled, 0, loss, training)


NULL = point(0.0, 1.0)


def walk(score_at, greater_is_better=False, null=NULL, training_at=None, **options):
    """(the values of C in the order of the walk, why it ended)."""
    schedule = Schedule(Selecting(**options), 1.0, options.get("C_max", 2.0**40), null, greater_is_better)
    done = []
    while not isinstance(step := schedule.next(done), End):
        assert len(done) < 100
        done.append(point(step, score_at(step), None, training_at(step) if training_at else None))
    return [p.C for p in done], step


def valley(C, best=64.0):
    return 0.2 + 0.1 * math.log2(C / best) ** 2 / 10


def test_a_path_ends_when_scores_have_become_worse():
    tried, end = walk(valley)
    assert end is End.WORSE
    assert tried == [2.0**k for k in range(10)]


def test_a_path_ends_when_scores_are_flat():
    tried, end = walk(lambda C: 0.2 + 1 / C)
    assert end is End.FLAT
    assert len(tried) < 20


def test_a_plateau_is_not_the_end_while_training_rows_have_something_to_tell():
    """Large features without a meaning come first, small ones with one later."""
    stair = {False: 0.9, True: 0.3}
    tried, _ = walk(lambda C: stair[C > 32], training_at=lambda C: 1 / C**0.1)
    assert max(tried) > 64
    tried, _ = walk(lambda C: 1.0 if C < 2000 else 0.5, training_at=lambda C: 1 / C**0.1)
    assert max(tried) > 4000


def test_smaller_values_are_tried_where_the_first_is_the_best():
    tried, _ = walk(lambda C: valley(C, best=1 / 8))
    assert min(tried) == 1 / 16
    tried, _ = walk(lambda C: valley(C, best=1 / 8), C_min=1.0)
    assert min(tried) == 1.0


def test_what_gaps_leave_open_of_losses_is_no_improvement():
    """The score stands still, and the loss falls by less than two trainings of the same C may differ."""
    done = {0.0: [], 1e-2: []}
    for noise, path in done.items():
        schedule = Schedule(Selecting(C_min=1.0), 1.0, 2.0**40, NULL, False, noise=noise)
        while not isinstance(step := schedule.next(path), End):
            path.append(point(step, 0.5, 0.5 - 0.001 * math.log2(step), 0.5))
            assert len(path) < 60
    assert len(done[1e-2]) == 4
    assert len(done[0.0]) > 20


def test_scores_that_are_worse_by_less_than_their_error_do_not_end_a_path_that_learns():
    def at(C):
        scores = (0.2, 0.2) if C == 4.0 else (0.21, 0.21)
        spread = (0.1, -0.1)
        return tuple(score + by for score, by in zip(scores, spread, strict=True))

    schedule, done = Schedule(Selecting(C_min=1.0), 1.0, 2.0**12, NULL, False), []
    while not isinstance(step := schedule.next(done), End):
        done.append(PathPoint(step, at(step), (1.0, 1.0), 0.1, 1.0, 0.1, None, False, 0, 1 / step, 1 / step))
    assert step is End.LIMIT


def test_a_feature_that_is_kept_back_is_no_reason_to_go_on_where_trainings_fail():
    schedule, done = Schedule(Selecting(C_min=1.0), 1.0, 2.0**40, NULL, False, chance_level=0.1), []
    while not isinstance(step := schedule.next(done), End):
        done.append(PathPoint(step, (0.5, 0.5), (1.0, 1.0), 0.1, 1.0, 0.1, None, False, 2, 0.5, 0.5, 0.5))
    assert len(done) < 10


@pytest.mark.parametrize(("left", "goes_on"), [(0.1, True), (0.01, False)])
def test_only_the_score_counts_where_training_rows_cost_next_to_nothing(left, goes_on):
    """The score stands still from the third value on, and the loss falls on and on."""
    schedule, done = Schedule(Selecting(C_min=1.0), 1.0, 2.0**40, point(0.0, 0.2, 1.0), True), []
    while not isinstance(step := schedule.next(done), End):
        loss = 0.9 ** len(done)
        done.append(point(step, min(0.9, 0.3 * (1 + len(done))), loss, left * loss))
    assert len(done) > 20 if goes_on else len(done) == 5


@pytest.mark.parametrize(("rise", "goes_on"), [(0.0, True), (0.1, False)])
def test_a_feature_that_is_kept_back_is_no_reason_to_go_on_where_the_loss_rises(rise, goes_on):
    """Its part of the slopes may be luck; what models have learned beyond the best is noise."""
    schedule, done = Schedule(Selecting(C_min=1.0), 1.0, 2.0**40, NULL, False, chance_level=0.1), []
    while not isinstance(step := schedule.next(done), End):
        loss = 0.5 + rise * max(0, len(done) - 2)
        done.append(PathPoint(step, (loss, loss), (1.0, 1.0), 0.1, 1.0, 0.1, None, False, 0, loss, 0.5, 0.5))
    assert (len(done) > 20) == goes_on


def test_half_steps_around_the_best():
    tried, _ = walk(valley, refine=True)
    assert_allclose(tried[-2:], [64 / math.sqrt(2), 64 * math.sqrt(2)])


def test_a_longer_step_needs_fewer_of_them():
    values = [len(walk(valley, delta=delta)[0]) for delta in (4.0, 2.0, math.sqrt(2))]
    assert values == sorted(values)
    assert values[-1] > 2 * values[0]


def test_without_a_score_the_loss_decides():
    null = PathPoint(0.0, (math.nan,), (1.0,), 0.1, 1.0, 0.1, None, False, 0, 1.0, 1.0)
    schedule = Schedule(Selecting(), 1.0, 2.0**40, null, True)
    done = []
    while not isinstance(step := schedule.next(done), End):
        done.append(point(step, math.nan, valley(step)))
        assert len(done) < 40


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def test_what_is_shown_is_what_exact_models_have(cancer):
    """Within a hundredth, around the best C."""
    found = select_C(*cancer[:1], "logistic", cancer[1])
    near = {"C_min": found.best_C / 8, "C_max": 8 * found.best_C}
    shown, exact = (select_C(cancer[0], "logistic", cancer[1], all_the_way=True, **near, tol=t) for t in (None, 1e-12))
    assert_allclose([p.score for p in shown.curve][:-1], [p.score for p in exact.curve][:-1], rtol=0.015)
    assert found.best_score == pytest.approx(min(p.score for p in exact.curve), rel=0.01)


def test_a_separable_set_goes_on_to_large_values():
    rng = np.random.default_rng(0)
    X = np.eye(12)[rng.integers(0, 12, size=(400,))] + np.eye(12)[rng.integers(0, 12, size=(400,))]
    y = X @ np.linspace(-1, 1, 12) > 0.05
    found = select_C(X, "logistic", y)
    grid = select_C(X, "logistic", y, C_min=found.curve[0].C, C_max=2.0**14, all_the_way=True, tol=1e-8)
    assert found.best_score < 1.2 * grid.best_score + 0.02 * found.null_score


def test_classes_in_lockstep_are_those_one_by_one():
    X, y = load_iris(return_X_y=True)
    options = {"C_min": 0.1, "C_max": 10.0, "all_the_way": True, "tol": 1e-9}
    together, apart = (select_C(X, "softmax", y, solver=s, **options) for s in ("auto", "lbfgs"))
    assert_allclose([p.score for p in together.curve], [p.score for p in apart.curve], rtol=1e-3)


def test_a_time_limit_keeps_the_best_so_far(cancer, monkeypatch):
    clock = iter(np.arange(0.0, 1e4, 0.5))
    monkeypatch.setattr("beeline.selection.path.time.perf_counter", lambda: float(next(clock)))
    with pytest.warns(ConvergenceWarning, match="the time limit was reached; raise time_limit"):
        found = select_C(cancer[0], "squared_hinge", cancer[1], time_limit=20.0)
    assert found.end is End.TIME
    assert 1 <= len(found.curve) < 10


def test_cold_starts_have_what_is_left_of_the_time(cancer, monkeypatch):
    limits, search = [], search_path._Search
    monkeypatch.setattr(search_path, "_Search", lambda *given: limits.append(given[1].time_limit) or search(*given))
    select_C(cancer[0], "squared_hinge", cancer[1], folds=2, time_limit=500.0, compare_cold=True)
    assert limits[0] == 500
    assert 0 < limits[1] < 500


def test_the_folds_of_one_c_share_the_time(monkeypatch):
    """None of them would end by itself, and each may have no more than its part."""
    given = []

    def noted(solvers, objectives, starts, **more):
        given.append(more["time_limit"])
        return side_by_side(solvers, objectives, starts, **more)

    side_by_side = runners.solve_in_parallel
    monkeypatch.setattr(runners, "solve_in_parallel", noted)
    X = np.random.default_rng(0).normal(size=(60, 3))
    select_C(X, "hinge", X[:, 0] > 0, folds=3, C_max=1.0, time_limit=500.0)
    assert given
    assert all(0 < limit <= 500 for limit in given)


def test_a_problem_that_is_helped_keeps_to_the_time(cancer, monkeypatch):
    """Problems that leave the lockstep get a solver of their own, and the time that is left."""
    limits = []

    class Noted:
        def __init__(self, solver):
            self.solver = solver

        def with_time_limit(self, seconds):
            limits.append(seconds)
            return self.solver.with_time_limit(seconds)

        def concern(self, result):
            return self.solver.concern(result)

    choose = runners.choose_solver
    monkeypatch.setattr(runners, "choose_solver", lambda *args, **more: Noted(choose(*args, **more)))
    monkeypatch.setattr(_InLockstep, "_doubtful", lambda self: [0])
    select_C(cancer[0], "squared_hinge", cancer[1], folds=2, C_max=1e-3, time_limit=500.0)
    assert limits
    assert all(0 < limit <= 500 for limit in limits)


def test_a_time_limit_is_positive(cancer):
    with pytest.raises(ParameterError, match="time_limit must be positive"):
        select_C(cancer[0], "hinge", cancer[1], time_limit=0)


def test_a_failure_keeps_what_was_found(cancer, monkeypatch):
    real, calls = _InLockstep.go, []

    def go(self, C):
        calls.append(C)
        if len(calls) == 8:
            raise ZeroDivisionError("float division by zero")
        return real(self, C)

    monkeypatch.setattr(_InLockstep, "go", go)
    with pytest.warns(
        ConvergenceWarning, match=r"the next training failed \(ZeroDivisionError: float division by zero\)"
    ):
        model = LinearModel("logistic", C="auto").fit(*cancer)
    assert model.selection_.end is End.FAILED
    assert len(model.selection_.curve) == 7
    assert model.score(*cancer) > 0.8


@pytest.mark.parametrize("loss", ["quantile", "absolute", "huber", "epsilon_insensitive"])
def test_a_search_is_short(loss):
    """As for prices: a few hundred rows, an offset, and features of all scales."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 6)) * np.logspace(0, 3, 6)
    y = 5000 + X @ rng.normal(size=6) + 300 * rng.standard_t(3, size=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = select_C(X, loss, y, folds=3)
    assert len(found.curve) <= 40
    assert found.best_score < 0.6 * found.null_score


@pytest.mark.parametrize("stop", ["auto", "paper"])
def test_both_rules_stop(cancer, stop):
    found = select_C(cancer[0], "squared_hinge", cancer[1], stop=stop)
    assert found.stop == stop
    assert found.best_score > 0.96
    with pytest.raises(ParameterError, match="stop must be one of auto, paper, not 'never'"):
        select_C(cancer[0], "hinge", cancer[1], stop="never")
