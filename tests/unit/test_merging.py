"""Equal rows as one, with their weights added."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import beeline
from beeline.data.core.block import Block
from beeline.data.core.labels import LabelSets
from beeline.data.merging import row_keys
from beeline.exceptions import DataError, ParameterError

RNG = np.random.default_rng(0)
KINDS = RNG.integers(-1, 2, size=(12, 5)).astype(float)
PICKED = RNG.integers(0, 12, size=400)
X, Y = KINDS[PICKED], RNG.integers(0, 2, size=400).astype(float)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_as_brute_force_has_it(tmp_path, sparse, weighted):
    rows = scipy.sparse.csr_array(X) if sparse else X
    weights = RNG.uniform(0.5, 2, size=400) if weighted else None
    store = beeline.convert(beeline.from_arrays(rows, Y, weights=weights), tmp_path / "s", merge=True)
    known: dict[tuple[float, ...], float] = {}
    for i in range(400):
        key = (*X[i], Y[i])
        known[key] = known.get(key, 0.0) + (1.0 if weights is None else weights[i])
    dense = np.vstack([block.to_dense() for block in store.blocks()])
    assert [(*row, label) for row, label in zip(dense, store.labels, strict=True)] == list(known)
    np.testing.assert_allclose(store.weights, list(known.values()))
    assert [p.name for p in tmp_path.iterdir()] == ["s"]
    model = beeline.LogisticRegression(tol=1e-10)
    assert model.fit(store).report_.objective == pytest.approx(model.fit(X, Y, weights).report_.objective, rel=1e-9)


def test_keys_do_not_depend_on_the_order_of_entries_or_on_zeros():
    indptr = np.array([0, 2, 4, 7, 7])
    block = Block(np.array([1.0, 2.0, 2.0, 1.0, 1.0, 2.0, -0.0]), 9, indptr, np.array([3, 5, 5, 3, 3, 5, 8]))
    keys = row_keys(block)
    assert (keys[0] == keys[1]).all()
    assert (keys[0] == keys[2]).all()
    assert (keys[0] != keys[3]).all()
    swapped = Block(np.array([2.0, 1.0]), 9, np.array([0, 2]), np.array([3, 5]))
    assert (row_keys(swapped)[0] != keys[0]).all()


def test_many_rows_that_differ_have_keys_that_differ():
    rows = np.arange(200_000.0).reshape(-1, 2)
    assert len(np.unique(row_keys(Block(rows, 2)), axis=0)) == 100_000
    assert len(np.unique(row_keys(Block(rows, 2))[:, 0])) == 100_000


def test_what_cannot_be_merged(tmp_path):
    queries = beeline.from_arrays(X, Y, queries=np.sort(PICKED))
    with pytest.raises(DataError, match="belong to queries cannot be merged"):
        beeline.convert(queries, tmp_path / "s", merge=True)
    with pytest.raises(ParameterError, match=r"to merge 400 rows takes about .* of memory, more than the"):
        beeline.convert(beeline.from_arrays(X, Y), tmp_path / "s", merge=True, memory="10K")
    sets = beeline.from_arrays(X, LabelSets(np.arange(401), np.zeros(400)))
    with pytest.raises(DataError, match="rows with sets of labels cannot be merged; leave merge out"):
        beeline.convert(sets, tmp_path / "s", merge=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("how", [{"memory": "60K"}, {"shuffle": 3}])
def test_in_blocks_or_shuffled_the_same_rows(tmp_path, how):
    """Rows that are equal meet across blocks, and a merged store merged again is the same."""
    known = beeline.convert(beeline.from_arrays(X, Y), tmp_path / "known", merge=True)
    store = beeline.convert(iter([(X[:150], Y[:150]), (X[150:], Y[150:])]), tmp_path / "s", merge=True, **how)
    again = beeline.convert(store, tmp_path / "again", merge=True)
    rows = [
        sorted((*row, label, weight) for row, label, weight in zip(dense, s.labels, s.weights, strict=True))
        for s in (known, store, again)
        for dense in [np.vstack([block.to_dense() for block in s.blocks()])]
    ]
    assert rows[0] == rows[1] == rows[2]
    assert known.weights.sum() == 400


def test_text_becomes_weighted_rows(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1 2:2\n-1 1:1\n1 1:1 2:2 3:0\n2 1:1 2:2\n")
    store = beeline.convert(tmp_path / "rows.svm", tmp_path / "s", merge=True)
    np.testing.assert_array_equal(store.labels, [1, -1, 2])
    np.testing.assert_array_equal(store.weights, [2, 1, 1])
