"""Where a solver is: what a result leaves, what the next run begins from, and its file."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from beeline.data.core.arrays import from_arrays
from beeline.exceptions import ParameterError, SourceError
from beeline.fitting import Settings, fit
from beeline.losses import CrammerSinger, Hinge, Logistic, Ramp
from beeline.objective import Objective
from beeline.regularizers import L1, L2
from beeline.solvers import SOLVERS, DualCD, Newton, Result, State, Status
from beeline.training.run import train
from beeline.training.task import Task

N, D = 80, 5


def problem(loss=None, *, n=N, d=D, regularizer=None, intercept="free", cost=1.0):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d)) + 0.3
    y = np.where(X @ np.arange(1.0, d + 1) + random.normal(size=n) > 0, 1.0, -1.0)
    return Objective.of(from_arrays(X), y, np.full(n, cost), loss or Logistic(), regularizer or L2(), 1.0, intercept)


@pytest.mark.parametrize("name", [name for name, kind in SOLVERS.items() if kind.needs.rows != "index"])
def test_every_result_has_one_and_every_solver_begins_from_it(name):
    kind = SOLVERS[name]
    o = problem(Hinge() if name in ("smoothed_newton", "interior_point") else Logistic())
    o = problem(regularizer=L1()) if name == "l1_cd" else o
    o = problem(Ramp()) if name == "relaxation" else o
    if name == "class_dual_cd":
        y = np.arange(N) % 3.0
        o = Objective.of(from_arrays(o.rows.local().to_dense()), y, np.ones(N), CrammerSinger(), L2(), n_outputs=3)
    cold = kind(1e-6).run(o)
    assert cold.state.theta is cold.theta
    assert cold.state.solver == name
    assert cold.state.counters == {"iterations": cold.iterations, "passes": cold.passes}
    one, again = (kind(1e-6).run(o, cold.state) for _ in range(2))
    assert one.status is (Status.CONVERGED if o.loss.convex and kind.certifies else Status.UNPROVEN)
    np.testing.assert_array_equal(one.theta, again.theta)
    assert one.state.counters["passes"] == cold.passes + one.passes


def test_dual_variables_go_on():
    o = problem(Hinge(), cost=0.3)
    cold = DualCD(1e-8, 1e5).run(o)
    assert cold.state.arrays["dual"].shape == (N,)
    warm = DualCD(1e-8, 1e5).run(o, cold.state)
    by_theta = DualCD(1e-8, 1e5).run(o, State(cold.theta))
    assert warm.passes < by_theta.passes
    assert warm.passes < cold.passes


def test_another_solver_uses_what_it_knows():
    o = problem()
    state = DualCD(1e-4).run(o).state
    warm = Newton(1e-10).run(o, state)
    np.testing.assert_array_equal(warm.theta, Newton(1e-10).run(o, state.theta).theta)


@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
def test_dual_variables_that_are_not_feasible_are_not_used(intercept):
    """Those of larger costs would lift the dual above the optimum, for good: equal rows of both labels cancel in w."""
    o = problem(Hinge(), intercept=intercept, cost=0.01)
    X = np.repeat(o.rows.local().to_dense(), 2, axis=0)
    y = np.tile([1.0, -1.0], N)
    o = Objective.of(from_arrays(X), y, np.full(2 * N, 0.01), Hinge(), L2(), 1.0, intercept)
    result = DualCD(1e-6).run(o, State(np.zeros(o.size), {"dual": 5.0 * y}))
    assert result.status is Status.CONVERGED
    assert result.bound <= result.objective == pytest.approx(0.01 * 2 * N)


def test_shapes_must_fit():
    with pytest.raises(ParameterError, match=r"a start must have 6 coordinates, not shape \(3,\): it belongs to other"):
        Newton().run(problem(), State(np.zeros(3)))
    state = State(np.zeros(D + 1), {"dual": np.zeros(N - 1)})
    with pytest.raises(ParameterError, match=rf"'dual' of a start must have one number a row, {N} in all, not shape"):
        DualCD().run(problem(), state)
    assert Newton().run(problem(), state).status is Status.CONVERGED  # which has no use for them


def test_a_file_of_plain_arrays(tmp_path):
    state = DualCD(1e-5).run(problem(Hinge())).state
    state.save(tmp_path / "state")
    state.save(tmp_path / "again")
    assert (tmp_path / "state").read_bytes() == (tmp_path / "again").read_bytes()
    loaded = State.load(tmp_path / "state")
    np.testing.assert_array_equal(loaded.theta, state.theta)
    np.testing.assert_array_equal(loaded.arrays["dual"], state.arrays["dual"])
    assert (loaded.counters, loaded.solver) == (state.counters, "dual_cd")
    o = problem(Hinge(), cost=1.1)
    one, other = DualCD(1e-6, 1e5).run(o, state), DualCD(1e-6, 1e5).run(o, loaded)
    np.testing.assert_array_equal(one.theta, other.theta)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "state"
    path.write_bytes(b"no tensors")
    with pytest.raises(SourceError, match="is no state of a solver, or was cut short"):
        State.load(path)
    State(np.arange(3.0)).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-8] + np.float64(9).tobytes())
    with pytest.raises(SourceError, match="was altered"):
        State.load(path)
    path.write_bytes(whole[:-8])
    with pytest.raises(SourceError, match="cut short"):
        State.load(path)
    path.write_bytes(whole.replace(b'"version":"1"', b'"version":"2"'))
    with pytest.raises(SourceError, match="newer beeline"):
        State.load(path)
    path.write_bytes(whole.replace(b"beeline-state", b"beeline-other"))
    with pytest.raises(SourceError, match=r"is no state of a solver$"):
        State.load(path)
    with pytest.raises(SourceError, match="cannot be read"):
        State.load(tmp_path / "nothing")


def test_what_a_state_counts_is_json(tmp_path):
    State(np.zeros(1), counters={"passes": np.float64(3.5), "iterations": 2}).save(tmp_path / "s")
    assert State.load(tmp_path / "s").counters == {"passes": 3.5, "iterations": 2.0}
    assert b"pickle" not in (tmp_path / "s").read_bytes()
    json.dumps(dict(State.load(tmp_path / "s").counters))


def test_training_takes_a_state_for_each_problem():
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 4))
    task = Task(from_arrays(X), np.argmax(X[:, :3], axis=1).astype(float), 3, Hinge(), L2())
    first = train(task, "dual_cd", tol=1e-6)
    states = [result.state for result in first.results]
    again = train(task, "dual_cd", tol=1e-6, start=states)
    assert max(r.passes for r in again.results) < max(r.passes for r in first.results)
    with pytest.raises(ParameterError, match="a state for each of 3 problems, not 2"):
        train(task, "dual_cd", start=states[:2])


def test_a_fit_goes_on_from_states():
    X = np.random.default_rng(0).normal(size=(90, 4))
    settings = Settings(loss="hinge", solver="dual_cd", tol=1e-7, max_passes=1e5)
    first = fit(from_arrays(X), settings, np.argmax(X[:, :3], axis=1))
    states = [result.state for result in first.results]
    again = fit(from_arrays(X), settings, np.argmax(X[:, :3], axis=1), start=states)
    assert max(r.passes for r in again.results) < max(r.passes for r in first.results)
    with pytest.raises(ParameterError, match="belongs to other"):
        fit(from_arrays(X[:, :3]), settings, np.argmax(X[:, :3], axis=1), start=states)


def test_a_result_made_by_hand_has_one():
    result = Result(np.zeros(2), 1.0, 0.5, Status.CONVERGED, 3, 4.0, 0.1, "newton")
    assert result.state.theta is result.theta
    assert result.state.counters == {"iterations": 3, "passes": 4.0}
    assert replace(result, passes=5.0).state is result.state
