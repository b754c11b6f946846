"""Every solver that says so goes on from the snapshot of any of its steps, to the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import beeline
from beeline import Block
from beeline.data.core.arrays import from_arrays
from beeline.data.store import StoreWriter
from beeline.engines import Threads
from beeline.index import IndexedRows, IndexSettings, build_index, open_index
from beeline.losses import CrammerSinger, Hinge, Logistic, Ramp, Softmax, SquaredHinge
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers import SOLVERS
from beeline.solvers.checkpoint import RunCheckpoint

N, D = 300, 8
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) * RNG.uniform(0.2, 2, size=D) + 0.3
SCORES = X @ RNG.normal(size=D) + RNG.normal(size=N)
TWO, THREE = np.where(SCORES > 0, 1.0, -1.0), np.digitize(SCORES, [-1.0, 1.5]).astype(np.float64)
KINDS = {"boxes": IndexSettings(leaf_rows=8), "chunks": IndexSettings(leaf_rows=20, samples=5)}
KINDS["forest"] = IndexSettings(leaf_rows=8, tree_size=300, width=4)

PROBLEMS = {
    "lbfgs": [(Logistic(), L2()), (Logistic(), L1()), (Softmax(), L2())],
    "newton": [(Logistic(), L2(), {"tol": 1e-10}), (Softmax(), L2(), {"linear_solver": "cg", "tol": 1e-10})],
    "smoothed_newton": [(Hinge(), L2())],
    "bundle": [
        (Hinge(), L2()),
        (Logistic(), L2()),
        (Hinge(), ElasticNet()),
        (CrammerSinger(), L2(), {"tol": 1e-3}),
        (Hinge(), L2(), {"variant": "bmrm", "tol": 1e-3}),
        (Hinge(), L2(), {"variant": "line", "tol": 1e-2}),
    ],
    "dual_cd": [(Hinge(), L2()), (SquaredHinge(), L2()), (Logistic(), L2())],
    "block_cd": [(Hinge(), L2(), {"tol": 1e-3}), (CrammerSinger(), L2(), {"tol": 1e-2})],
    "l1_cd": [(Logistic(), L1(), {"tol": 1e-8})],
    "interior_point": [(Hinge(), L1()), (Hinge(), L2())],
    "sgd": [(Hinge(), L2()), (Hinge(), ElasticNet()), (Softmax(), L2()), (CrammerSinger(), L1())],
    "relaxation": [(Ramp(), L2()), (Ramp(), L2(), {"continuation": 3}), (Ramp(), L2(), {"method": "cccp"})],
}
NOT_RESUMED = {"class_dual_cd": (CrammerSinger(), L2()), "bundle": (Hinge(), L1())}
CASES = [(name, *case) for name, cases in PROBLEMS.items() for case in cases]


class EndedError(Exception):
    """Stands for the end of the process."""


class Ending(RunCheckpoint):
    """One after whose writing so often the process ends."""

    left = 0

    def offer(self, run, steps):
        assert steps is not None
        super().offer(run, steps)
        self.left -= 1
        if not self.left:
            raise EndedError


def objective(loss, omega, intercept="free", n_shards=1):
    n_outputs = 3 if isinstance(loss, CrammerSinger | Softmax) else 1
    y, engine = THREE if n_outputs == 3 else TWO, Threads(n_shards=n_shards)
    return Objective.of(from_arrays(X), y, np.ones(N), loss, omega, 1.0, intercept, engine=engine, n_outputs=n_outputs)


def plain(facts):
    return {name: value for name, value in facts.items() if "seconds" not in name}


def assert_same(one, other):
    np.testing.assert_array_equal(one.theta, other.theta)
    for name in ("objective", "bound", "status", "iterations", "passes", "null", "scale", "ending", "solver"):
        assert getattr(one, name) == getattr(other, name), name
    assert [at[:1] + at[2:4] for at in one.trace] == [at[:1] + at[2:4] for at in other.trace]
    assert [plain(at.facts) for at in one.trace] == [plain(at.facts) for at in other.trace]
    assert one.state.arrays.keys() == other.state.arrays.keys()
    for name, array in one.state.arrays.items():
        np.testing.assert_array_equal(array, other.state.arrays[name])


def check(folder, make_solver, make_objective, start=None, most=3):
    """End the run after some of its steps, and let another process's objective go on from there."""

    def minimise(checkpoint=None):
        return make_solver().minimise(make_objective(), start, watched=True, checkpoint=checkpoint)

    whole = minimise()
    n = len(whole.trace)
    assert n > 1
    for after in sorted({1, n // 2, n - 1})[:most]:
        file = folder / f"after-{after}"
        ending = Ending(file, 0.0, "mark")
        ending.left = max(1, after)
        with pytest.raises(EndedError):
            minimise(ending)
        assert_same(minimise(RunCheckpoint(file, 0.0, "mark")), whole)
        assert_same(minimise(RunCheckpoint(file, 0.0, "mark")), whole)  # what was found


def test_every_solver_is_here():
    assert {*PROBLEMS, *NOT_RESUMED, "indexed"} == set(SOLVERS)
    for name, case in NOT_RESUMED.items():
        assert not SOLVERS[name]().resumes(objective(*case))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1].name}-{case[2].name}")
@pytest.mark.parametrize(
    ("intercept", "n_shards"), [("free", 1), pytest.param("regularized", 3, marks=pytest.mark.slow)]
)
def test_in_memory(tmp_path, case, intercept, n_shards):
    name, loss, omega, *more = case
    options = {"tol": 1e-6, "max_passes": 1e4} | (more[0] if more else {})
    if (intercept, loss.name, name) == ("free", "crammer_singer", "block_cd"):
        n_shards = 2
    check(tmp_path, lambda: SOLVERS[name](**options), lambda: objective(loss, omega, intercept, n_shards))


@pytest.mark.parametrize("name", ["newton", "dual_cd", "bundle"])
def test_from_a_start(tmp_path, name):
    check(tmp_path, lambda: SOLVERS[name](1e-7), lambda: objective(Logistic(), L2()), np.ones(D + 1))


@pytest.mark.parametrize(("name", "loss"), [("block_cd", Hinge()), ("lbfgs", Logistic()), ("bundle", Hinge())])
def test_rows_on_disk(tmp_path, name, loss):
    X = RNG.normal(size=(2000, D))
    y = np.where(X @ np.arange(D) + 5 * RNG.normal(size=2000) > 0, 1.0, -1.0)
    with StoreWriter(tmp_path / "store", chunk_bytes=2000) as writer:
        writer.write(Block(X, D, labels=y))
        writer.finish()

    def over_store():
        store, engine = beeline.open_store(tmp_path / "store"), Threads(200_000)
        return Objective.of(store, y, np.full(2000, 0.1), loss, L2(), engine=engine)

    assert over_store().rows.n_shards > 1
    check(tmp_path, lambda: SOLVERS[name](1e-5), over_store)


@pytest.mark.parametrize("memory", [None, 1_000_000])
@pytest.mark.parametrize("loss", [Hinge(), Ramp()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("kind", KINDS)
def test_by_an_index(tmp_path, kind, loss, memory):
    X = RNG.normal(size=(2500, D)) + 2 * RNG.integers(-1, 2, size=(2500, 1))
    y = np.where(X.sum(axis=1) + RNG.normal(size=2500) > 0, 1.0, -1.0)
    build_index(beeline.convert(iter([(X, y)]), tmp_path / "store"), kind, settings=KINDS[kind])

    def over_index():
        index = open_index(beeline.open_store(tmp_path / "store"), kind)
        return Objective.of(IndexedRows(index), y, np.full(2500, 0.1), loss, L2(), engine=Threads(memory))

    check(tmp_path, lambda: SOLVERS["indexed"](1e-4, 4.0), over_index, most=2)
