"""Engines by themselves: the tree of sums, shards, row vectors, queues."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from beeline import from_arrays
from beeline.data.core.block import Block
from beeline.data.store import StoreWriter
from beeline.engines import Threads
from beeline.engines.queued import QueuedRows, ShardHolder
from beeline.engines.threads import shards_of
from beeline.engines.tree import fold
from beeline.engines.verbs import columns, products, values
from beeline.exceptions import ParameterError
from beeline.losses import Hinge, Logistic
from beeline.objective import Objective
from beeline.regularizers import L2

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
DATA = from_arrays(X)
Y = np.where(X[:, 0] > 0, 1.0, -1.0)


class TestTree:
    def test_node_by_node(self):
        pairs = fold((f"{k}" for k in range(7)), lambda a, b: f"({a}{b})")
        assert pairs == "(((01)(23))((45)6))"

    @given(st.integers(1, 40), st.integers(0, 5))
    def test_runs_of_shards_make_whole_nodes(self, n, level):
        """Whoever holds all shards of a node can make it, and the rest of the tree is the same."""
        whole = fold((f"{k}," for k in range(n)), lambda a, b: f"({a}{b})")
        size = 2**level
        parts = [range(k, min(k + size, n)) for k in range(0, n, size)]
        nodes = [fold((f"{k}," for k in part), lambda a, b: f"({a}{b})") for part in parts]
        assert fold(nodes, lambda a, b: f"({a}{b})") == whole

    def test_of_nothing(self):
        with pytest.raises(ValueError, match="no shards"):
            fold([], max)


class TestShards:
    @pytest.mark.parametrize("n", [1, 2, 3, 20])
    def test_can_be_asked_for_by_number(self, n):
        rows = Threads(n_shards=n).open(DATA)
        assert rows.n_shards == n
        z = rows.map(products.scores, w=np.ones(3), b=None)
        assert_array_equal(rows.gather(z), np.concatenate([s.block.scores(np.ones(3)) for s in rows.shards]))
        assert_allclose(rows.gather(z), X.sum(axis=1))

    def test_there_must_be_one(self):
        with pytest.raises(ParameterError, match="at least one shard, not 0"):
            Threads(n_shards=0)

    def test_a_column_must_fit_the_rows(self):
        with pytest.raises(ParameterError, match="3 entries do not match 20 rows"):
            Threads().open(DATA).scatter(np.ones(3))


class Counted(QueuedRows):
    """Rows here, behind a queue."""

    def __init__(self, n_shards):
        super().__init__()
        self.n_rows, self.n_features, self.nnz = DATA.n_rows, DATA.n_features, DATA.nnz
        self.holder = ShardHolder(shards_of(DATA, 1 << 20, n_shards))
        self.n_shards = n_shards

    def _send(self, batch):
        return self.holder.answer(batch)

    def _put(self, key, column):
        self.holder.put(key, column)

    def _get(self, key):
        return np.concatenate(self.holder.get(key))

    def read(self, start, stop):
        raise AssertionError

    def local(self, features=None, *, constant=False):
        raise AssertionError


class TestQueue:
    def test_leaves_when_a_value_is_asked_for(self):
        rows = Counted(3)
        z = rows.map(products.scores, w=np.ones(3), b=2.0)
        total, size = rows.sum(columns.total, z), rows.sum(columns.size, z)
        assert rows.trips == 0
        assert total.value[0] == pytest.approx(X.sum() + 40)
        assert size.value[0] == pytest.approx(np.abs(X.sum(axis=1) + 2).sum())
        assert rows.trips == 1

    def test_what_was_said_may_change_afterwards(self):
        rows, w = Counted(2), np.ones(3)
        z = rows.map(products.scores, w=w, b=None)
        w[:] = 7
        assert_allclose(rows.gather(z), X.sum(axis=1))

    def test_what_nobody_needs_is_dropped(self):
        rows = Counted(2)
        for _ in range(5):
            z = rows.map(products.scores, w=np.ones(3), b=None)
            assert rows.sum(columns.total, z).value
        assert len(rows.holder.columns) <= 2
        del z
        assert rows.sum(products.squared_features).value
        assert len(rows.holder.columns) == 0

    def test_an_error_comes_with_the_value_and_all_after_it(self):
        rows = Counted(2)
        bad = rows.map(products.scores, w=np.ones(5), b=None)
        total = rows.sum(columns.total, bad)
        with pytest.raises(Exception, match="5"):
            _ = total.value
        z = rows.map(products.scores, w=np.ones(3), b=None)
        assert rows.sum(columns.total, z).value[0] == pytest.approx(X.sum())


@pytest.mark.parametrize("open_rows", [lambda: Threads(n_shards=2).open(DATA), lambda: Counted(2)])
def test_a_vector_whose_memory_was_given_away_is_not_used(open_rows):
    rows = open_rows()
    z, dz, y, c = (rows.scatter(column.copy()) for column in (X[:, 0], X[:, 1], Y, np.ones(20)))
    small = {"loss": Hinge(), "times": (0.0, 0.5, 1.0)}
    (moved, slopes), sums = rows.call(values.interval_cut, (z, dz, y, c), small, 2, "sum", reuse=(z, dz))
    assert_allclose(rows.gather(moved), X[:, 0] + 0.5 * X[:, 1])
    assert len(sums.value) == 4
    assert rows.gather(slopes).shape == (20,)
    with pytest.raises(RuntimeError, match="given to another one"):
        rows.sum(columns.total, z)


def test_vectors_know_how_they_are_made():
    """Scores that were moved with θ are made from θ, and what hangs on them from those: nothing else must be kept."""
    o = Objective.of(DATA, Y, np.ones(20), Logistic(), L2())
    point = o.at(RNG.normal(size=4)).line(RNG.normal(size=4)).move(0.3).shifted(0.2)

    def again(vector):
        if vector.origin is None:
            return vector
        verb, vectors, small, output = vector.origin
        made = [again(targets) for targets in vectors]
        if output is None:
            return o.rows.map(verb, *made, **small)
        return o.rows.call(verb, made, small, 2, "sum")[0][output]

    for vector in (point.z, point.slopes, point.curvatures):
        assert_allclose(o.rows.gather(again(vector)), o.rows.gather(vector), rtol=1e-12, atol=1e-14)
    depth, origin = 0, point.slopes.origin
    while origin is not None and origin[1]:
        origin, depth = origin[1][0].origin, depth + 1
    assert depth <= 2


@pytest.mark.parametrize("made", [columns.constant, columns.same])
def test_entries_of_rows_from_everywhere(tmp_path, made):
    """Vectors on disk lie in one array, or are one number; those of other engines in a part for each shard."""
    X = np.random.default_rng(1).normal(size=(400, 3))
    with StoreWriter(tmp_path / "rows.store", chunk_bytes=500) as writer:
        writer.write(Block(X, 3))
        store = writer.finish()
    for rows in (Threads(memory=20_000).open(store), Threads(n_shards=7).open(store)):
        assert rows.n_shards > 3
        picked = np.random.default_rng(2).permutation(400)[:100]
        numbers = rows.scatter(np.arange(400.0))
        assert_array_equal(rows.pick(numbers, picked), picked)
        rows.put(numbers, picked, -1.0 - picked)
        expected = np.arange(400.0)
        expected[picked] = -1.0 - picked
        assert_array_equal(rows.gather_local(numbers), expected)
        same = rows.map(made, value=2.5)
        assert_array_equal(rows.pick(same, picked), np.full(100, 2.5))
        assert rows.sum(columns.total, same).value == (1000.0,)
        assert_array_equal(rows.gather_local(rows.map(columns.difference, numbers, same)), expected - 2.5)
