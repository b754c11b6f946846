"""Block minimisation: the same optimum as with all rows in memory, from rows that are read run by run."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy.sparse

from beeline import LinearSVC, convert
from beeline.data.core.arrays import from_arrays
from beeline.data.core.block import Block
from beeline.data.store import StoreWriter
from beeline.data.store.reading import ChunkReader
from beeline.engines import Threads
from beeline.exceptions import ParameterError
from beeline.losses import LOSSES as LOSSES_BY_NAME
from beeline.losses import EpsilonInsensitive, Hinge, LeastSquares, Logistic, SquaredEpsilonInsensitive, SquaredHinge
from beeline.objective import Objective
from beeline.regularizers import L1, L2
from beeline.solvers import BlockCD, ClassDualCD, DualCD, State, Status

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 8)) * RNG.uniform(0.2, 2, size=8) + 0.7
SIGNS = np.where(X @ RNG.normal(size=8) + RNG.normal(size=700) > 0, 1.0, -1.0)
NUMBERS = X @ RNG.normal(size=8) + RNG.normal(size=700) + 3
LOSSES = [Hinge(), SquaredHinge(), Logistic(), LeastSquares(), EpsilonInsensitive(0.3), SquaredEpsilonInsensitive(0.3)]


def problem(loss=None, intercept="free", n_shards=5, C=0.1, rows=X):
    loss = loss or Hinge()
    y = SIGNS if loss.labels == "binary" else NUMBERS
    costs = C * np.random.default_rng(1).uniform(0, 2, size=len(y))
    return Objective.of(from_arrays(rows), y, costs, loss, L2(), 1.0, intercept, engine=Threads(n_shards=n_shards))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
def test_the_optimum_is_that_of_all_rows_together(loss, intercept):
    o = problem(loss, intercept)
    found, known = BlockCD(1e-5).run(o), DualCD(1e-6).run(problem(loss, intercept, n_shards=1))
    assert found.status is Status.CONVERGED
    assert found.gap <= 1e-5
    assert found.bound <= known.objective * (1 + 1e-9)
    assert found.objective == pytest.approx(known.objective, rel=2e-5)
    np.testing.assert_allclose(found.theta, known.theta, atol=0.02 * np.abs(known.theta).max())


@pytest.mark.parametrize("n_shards", [1, 2, 50])
@pytest.mark.parametrize("sweeps", [1, 10])
def test_however_rows_are_cut(n_shards, sweeps):
    known = DualCD(1e-6).run(problem(n_shards=1))
    for rows in (X, scipy.sparse.csr_array(X)):
        found = BlockCD(1e-4, sweeps=sweeps).run(problem(n_shards=n_shards, rows=rows))
        assert found.status is Status.CONVERGED
        assert found.objective == pytest.approx(known.objective, rel=2e-4)


def test_the_same_seed_gives_the_same_bits(same_bits):
    o = problem()
    same_bits(lambda: BlockCD(1e-4, seed=3).run(o).theta, by_kernels=False)


def test_a_run_goes_on_from_its_state(tmp_path):
    o = problem()
    first = BlockCD(1e-12, 6).run(o)
    assert first.status is Status.LIMIT
    first.state.save(tmp_path / "state")
    again, cold = BlockCD(1e-5).run(o, State.load(tmp_path / "state")), BlockCD(1e-5).run(o)
    assert again.status is Status.CONVERGED
    assert again.passes < cold.passes
    assert again.objective == pytest.approx(cold.objective, rel=2e-5)


def test_a_store_that_does_not_fit_is_read_in_blocks(tmp_path):
    rows = np.tile(X, (20, 1)) + 0.1 * RNG.normal(size=(14_000, 8))
    labels = np.tile(SIGNS, 20)
    store = convert(from_arrays(rows, labels), tmp_path / "rows.store", memory="1M")
    here = LinearSVC(loss="hinge", solver="dual_cd", C=0.01).fit(rows, labels)
    there = LinearSVC(loss="hinge", solver="block_cd", C=0.01, memory="1M").fit(store)
    assert there.report_.converged
    assert there.report_.objective == pytest.approx(here.report_.objective, rel=2e-4)
    little = LinearSVC(loss="hinge", solver="block_cd", C=0.01, memory="100K").fit(store)
    assert little.report_.objective == pytest.approx(here.report_.objective, rel=2e-4)


def test_a_pass_reads_every_chunk_once(tmp_path, monkeypatch):
    rows, labels, memory = np.tile(X, (20, 1)), np.tile(SIGNS, 20), 300_000
    with StoreWriter(tmp_path / "rows.store", chunk_bytes=2500) as writer:
        writer.write(Block(rows, 8, labels=labels))
        store = writer.finish()
    counts, read = Counter(), ChunkReader.chunk

    def counted(reader, number):
        counts[number] += 1
        return read(reader, number)

    monkeypatch.setattr(ChunkReader, "chunk", counted)
    engine = Threads(memory=memory)
    o = Objective.of(store, labels, np.ones(len(labels)), Hinge(), L2(), 1.0, "none", engine=engine)
    steps = BlockCD(1e-9).steps(o, None)
    first = next(steps)  # which also looks for the longest row
    counts.clear()
    second = next(steps)
    assert store.n_chunks > 8 * store.nbytes // engine.shard_bytes(memory)
    assert set(counts) == set(range(store.n_chunks))
    assert set(counts.values()) == {second.passes - first.passes}


CLASSES = np.digitize(X @ np.random.default_rng(5).normal(size=8) + RNG.normal(size=700), [-1.0, 1.0, 2.0])


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("name", ["crammer_singer", "weston_watkins", "multiclass_margin", "scaled_multiclass_margin"])
@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
def test_hinges_over_all_classes(name, intercept, cache):
    costs = 0.1 * np.random.default_rng(1).uniform(0, 2, size=700)

    def over(n_shards):
        loss, labels, engine = LOSSES_BY_NAME[name](), CLASSES.astype(float), Threads(n_shards=n_shards)
        return Objective.of(from_arrays(X), labels, costs, loss, L2(), 1.0, intercept, n_outputs=4, engine=engine)

    found, known = BlockCD(1e-3, cache=cache).run(over(5)), ClassDualCD(1e-4).run(over(1))
    assert found.status is Status.CONVERGED
    assert found.bound <= known.objective * (1 + 1e-9)
    assert found.objective == pytest.approx(known.objective, rel=2e-3)


def test_rows_that_still_move_are_kept():
    """Which is what saves passes."""
    o = problem(n_shards=20, C=1.0)
    kept, fixed = (BlockCD(1e-4, cache=cache).run(o) for cache in (True, False))
    assert kept.passes < 0.7 * fixed.passes
    assert kept.objective == pytest.approx(fixed.objective, rel=2e-4)


def test_what_it_cannot_take():
    o = Objective.of(from_arrays(X), SIGNS, np.ones(700), Hinge(), L1())
    with pytest.raises(ParameterError, match="'block_cd' needs L2 regularization"):
        BlockCD().run(o)
