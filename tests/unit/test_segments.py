"""Rows in segments: what is cut into shards, and what comes back of it."""

import itertools

import numpy as np
import pytest

from beeline.data.core.block import Block
from beeline.data.core.segments import Segments


def segments_of(sizes, spilled):
    """Segments with so many rows each, all in the file, or all in memory."""
    data = Segments(4)
    for k, size in enumerate(sizes):
        data.add(Block(np.full((size, 4), float(k)), 4))
        if spilled:
            data.spill(0)
    return data


@pytest.mark.parametrize("sizes", [[10] * 12, [100, 1, 1, 100, 1], [1]])
@pytest.mark.parametrize("spilled", [True, False])
def test_neighbouring_segments_are_a_shard_together_where_they_fit(sizes, spilled):
    data = segments_of(sizes, spilled)
    row = 4 * 8
    for rows in (1, 20, 64, 1000):
        cuts = data.cuts(rows * row)
        assert cuts[0] == 0
        assert cuts[-1] == data.n_rows
        assert np.all(np.diff(cuts) > 0)
        ends = np.cumsum([segment.n_rows for segment in data._segments])
        assert set(cuts[1:]) <= set(ends.tolist()), "a cut inside a segment would read it twice"
        for begin, middle, end in zip(cuts, cuts[1:], cuts[2:], strict=False):
            assert end - begin > rows or middle - begin > rows, "two neighbours would have fitted"
        for begin, end in itertools.pairwise(cuts):
            inside = [e for e in ends.tolist() if begin < e <= end]
            assert end - begin <= rows or len(inside) == 1, "only a segment by itself may be larger"
    whole = np.concatenate([data.rows(a, b).values for a, b in itertools.pairwise(cuts)])
    np.testing.assert_array_equal(whole[:, 0], np.repeat(np.arange(len(sizes)), sizes))


def test_no_rows_are_one_run():
    assert Segments(3).cuts(1) == [0, 0]
