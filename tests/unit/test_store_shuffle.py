"""Shuffled stores: a random permutation that is the same for any budget."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beeline import Block
from beeline.data.core.labels import LabelSets
from beeline.data.store import StoreWriter, open_store
from beeline.data.store.form import Form
from beeline.data.store.shuffle import Shuffler, keys_of


def numbered(n, seed=0, **targets):
    """Sparse rows whose label is their number."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 9, n)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.concatenate([*(np.sort(rng.choice(50, c, replace=False)) for c in counts), []]).astype(np.int32)
    return Block(rng.normal(size=len(indices)), 50, indptr, indices, labels=np.arange(float(n)), **targets)


def shuffled(folder, block, *, seed=1, memory=1 << 20, step=1000):
    shuffler = Shuffler(folder / "buckets", seed, memory)
    for start in range(0, block.n_rows, step):
        shuffler.write(block.rows(start, start + step))
    blocks = list(shuffler.sorted_blocks(Form.of(block)))
    assert not list(folder.iterdir())
    return blocks


def order_of(blocks):
    return np.concatenate([b.labels for b in blocks]).astype(int)


@pytest.mark.parametrize("memory", [300, 5000, 1 << 20])
def test_the_order_is_a_permutation_that_any_budget_gives(tmp_path, memory):
    block = numbered(1200)
    reference = np.argsort(keys_of(np.arange(1200), 1), kind="stable")
    blocks = shuffled(tmp_path, block, memory=memory, step=int(memory % 997) + 100)
    np.testing.assert_array_equal(order_of(blocks), reference)
    X = block.to_dense()
    for piece in blocks:
        np.testing.assert_array_equal(piece.to_dense(), X[piece.labels.astype(int)])


def test_every_permutation_is_as_likely(tmp_path):
    seeds = 6000
    found = Counter(tuple(np.argsort(keys_of(np.arange(4), seed))) for seed in range(seeds))
    expected = seeds / 24
    assert set(found) == set(permutations(range(4)))
    assert sum((count - expected) ** 2 / expected for count in found.values()) < 50  # χ² with 23 degrees: p < 0.001


def test_neighbours_part_and_no_place_is_favoured():
    n = 20_000
    order = np.argsort(keys_of(np.arange(n), 12))
    assert abs(np.corrcoef(order, np.arange(n))[0, 1]) < 0.03
    assert np.count_nonzero(np.abs(np.diff(order)) == 1) < 12  # two are expected
    assert len(np.unique(keys_of(np.arange(-n, n), 5))) == 2 * n


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 120), st.integers(0, 2**63 - 1), st.sampled_from([200, 2000, 1 << 20]))
def test_queries_stay_together_and_in_order(tmp_path_factory, n, seed, memory):
    rng = np.random.default_rng(seed)
    queries = rng.integers(-3, 12, n) * 10**15  # not even contiguous
    block = numbered(n, queries=queries)
    order = order_of(shuffled(tmp_path_factory.mktemp("q"), block, seed=seed, memory=memory, step=17))
    assert sorted(order) == list(range(n))
    runs = queries[order]
    assert np.count_nonzero(np.diff(runs)) + 1 == len(np.unique(queries))
    for query in np.unique(queries):
        assert np.all(np.diff(order[runs == query]) > 0)


def test_a_query_larger_than_the_budget_passes_through(tmp_path):
    block = numbered(1500, queries=np.where(np.arange(1500) % 10 < 8, 7, np.arange(1500)))
    order = order_of(shuffled(tmp_path, block, memory=4000))
    inside = np.flatnonzero(block.queries[order] == 7)
    assert len(inside) == 1200
    assert np.all(np.diff(inside) == 1)
    assert np.all(np.diff(order[inside]) > 0)


def test_same_seed_same_bytes(tmp_path):
    block = numbered(1500, weights=np.arange(1500.0))
    sets = LabelSets(np.arange(1501) * 2, np.arange(3000.0))
    contents = []
    for memory, step in ((2000, 333), (30_000, 1500), (1 << 25, 100)):
        with StoreWriter(tmp_path / "s", overwrite=True, memory=memory, shuffle=5, chunk_bytes=5000) as writer:
            for start in range(0, 1500, step):
                writer.write(replace(block, labels=sets).rows(start, start + step))
            store = writer.finish()
        contents.append({file.name: file.read_bytes() for file in store.path.iterdir()})
    assert contents[0] == contents[1] == contents[2]
    assert open_store(tmp_path / "s").manifest.row_order == {"kind": "shuffled", "seed": 5}
    firsts = [labels[0] / 2 for labels in store.labels]
    np.testing.assert_array_equal(firsts, store.weights)
    assert sorted(firsts) == list(range(1500))


def test_another_seed_another_order(tmp_path):
    block = numbered(500)
    assert not np.array_equal(order_of(shuffled(tmp_path, block, seed=1)), order_of(shuffled(tmp_path, block, seed=2)))
