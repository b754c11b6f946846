"""Metric forests: every row is where its pivots say, and leaves come in the order that the paper's queue gives."""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from index_tools import SETTINGS, clusters, indexed, store_of
from numpy.testing import assert_allclose, assert_array_equal

from beeline import open_store
from beeline.exceptions import CorruptStoreError
from beeline.index import IndexSettings, Question, Readings, build_index, open_index
from beeline.index.guides import Flats
from beeline.index.spreading import RandomTrees

X, Y = clusters()
X = sp.vstack([X[:1400], sp.csr_matrix((60, X.shape[1])), X[1400:2940]]).tocsr()  # with rows of zeros
HOW = SETTINGS["forest"]


@pytest.fixture(scope="module", params=["sparse", "dense"])
def index(request, tmp_path_factory):
    rows = X if request.param == "sparse" else X.toarray()
    return indexed(tmp_path_factory.mktemp("forest") / "s", rows, Y, "forest")[1]


@pytest.fixture(scope="module")
def rows(index):
    """All rows in the order of the index."""
    return X.toarray()[index.order()]


def trees(index):
    """(number, the pivots as an array, the nodes' pivots counted in the tree, children, leaves of each pivot)."""
    shapes = index.guide.shapes
    for number in range(shapes.count):
        nodes = slice(*shapes.nodes[number : number + 2])
        first, last = shapes.pivots[number : number + 2]
        cuts = np.cumsum(shapes.widths[nodes])[:-1]
        children = np.where(shapes.children[first:last] < 0, -1, shapes.children[first:last] - nodes.start)
        pivots = index.guide.trees[number].pivots
        yield number, pivots.to_dense(), np.split(np.arange(last - first), cuts), children


def cosines(rows, pivots):
    norms = np.linalg.norm(rows, axis=1)[:, None] * np.linalg.norm(pivots, axis=1)
    return np.square(rows @ pivots.T / np.where(norms > 0, norms, 1))


def leaves_below(index, number, nodes, children, pivot):
    """The leaves of a pivot's part, by way of the nodes below it."""
    if children[pivot] >= 0:
        return np.concatenate([leaves_below(index, number, nodes, children, p) for p in nodes[children[pivot]]])
    return np.flatnonzero(index.guide.shapes.pivot_of_leaf == index.guide.shapes.pivots[number] + pivot)


def rows_below(index, *where):
    return np.concatenate([np.arange(index.starts[k], index.ends[k]) for k in leaves_below(index, *where)])


class TestTrees:
    def test_every_row_is_in_one_leaf_of_one_tree(self, index):
        found = []
        for number, _, nodes, children in trees(index):
            parts = [rows_below(index, number, nodes, children, p) for p in nodes[0]]
            first, last = index.guide.shapes.leaves[number : number + 2]
            zeros = np.arange(index.starts[first], index.starts[first + index.guide.shapes.zero_leaves[number]])
            of_tree = np.concatenate([zeros, *parts])
            assert_array_equal(np.sort(of_tree), np.arange(index.starts[first], index.ends[last - 1]))
            found.append(of_tree)
        assert_array_equal(np.sort(np.concatenate(found)), np.arange(X.shape[0]))

    def test_each_row_is_nearest_to_its_pivot_at_every_node(self, index, rows):
        for number, pivots, nodes, children in trees(index):
            for node in nodes:
                for pivot in node:
                    below = rows[rows_below(index, number, nodes, children, pivot)]
                    near = cosines(below, pivots[node])
                    assert np.all(near[:, pivot - node[0]] >= near.max(axis=1) - 1e-12)

    def test_pivots_are_rows_of_their_part_and_differ(self, index, rows):
        for number, pivots, nodes, children in trees(index):
            for node in nodes:
                assert len(node) <= HOW.width
                near = cosines(pivots[node], pivots[node])
                assert np.all(near[~np.eye(len(node), dtype=bool)] < 1 - 1e-13)
                for pivot in node:
                    below = rows[rows_below(index, number, nodes, children, pivot)]
                    assert np.any(np.all(below == pivots[pivot], axis=1))

    def test_zeros_have_leaves_of_their_own(self, index, rows):
        is_zero = ~rows.any(axis=1)
        assert is_zero.sum() == (~X.toarray().any(axis=1)).sum() >= 60
        all_zero = np.logical_and.reduceat(is_zero, index.starts)
        assert_array_equal(np.logical_or.reduceat(is_zero, index.starts), all_zero)
        assert_array_equal(index.guide.shapes.pivot_of_leaf < 0, all_zero)

    def test_are_of_random_rows_whatever_their_order(self, tmp_path):
        """Also of a store whose rows are sorted by their classes, and in any memory."""
        order = np.argsort(Y, kind="stable")
        of_tree = []
        for memory in ("512M", 1_350_000):
            index = indexed(tmp_path / str(memory), X[order], Y[order], "forest", memory=memory)[1]
            first = index.guide.shapes.leaves
            bounds = [int(index.starts[k]) for k in first[:-1]] + [X.shape[0]]
            parts = [index.order()[a:b] for a, b in pairwise(bounds)]
            assert len(parts) == 6
            for part in parts:
                assert len(part) == pytest.approx(HOW.tree_size, abs=80)
                assert (Y[order][part] > 0).mean() == pytest.approx((Y > 0).mean(), abs=0.08)
            of_tree.append({tuple(np.sort(part)) for part in parts})
        assert of_tree[0] == of_tree[1]

    def test_fit_the_memory(self, tmp_path):
        """A tree that does not is made smaller."""
        index = indexed(tmp_path / "s", X, Y, "forest", IndexSettings(tree_size=10**6), memory=100_000)[1]
        assert index.guide.shapes.count > 5
        assert index.info.settings["tree_size"] < X.shape[0] // 5

    @pytest.mark.parametrize(
        "rows",
        [
            np.ones((300, 3)),
            np.outer(np.random.default_rng(0).normal(size=300), [1.0, 2.0]),
            np.vstack([np.ones((299, 3)), [[1.0, 2.0, 3.0]]]),
            np.vstack([np.ones((290, 3)), np.random.default_rng(0).normal(size=(10, 3))]),
            np.zeros((100, 3)),
        ],
    )
    def test_of_rows_in_one_direction(self, rows, tmp_path):
        """They cannot be told apart, and lie in leaves along it."""
        index = indexed(tmp_path / "s", rows, np.ones(len(rows)), "forest", IndexSettings(leaf_rows=20))[1]
        assert (index.ends - index.starts).max() <= 20
        assert index.n_leaves <= len(rows) // 20 + 12
        ordered = rows[index.order()]
        if np.linalg.matrix_rank(rows) == 1:
            assert np.all(np.diff(ordered @ ordered[-1]) >= -1e-12)
        scores = index.guide.scores([(np.arange(1.0, rows.shape[1] + 1), 0.5)])[:, 0]
        z = np.add.reduceat(ordered @ np.arange(1.0, rows.shape[1] + 1) + 0.5, index.starts)
        if np.linalg.matrix_rank(rows) <= 1:
            assert_allclose(scores, z / (index.ends - index.starts), rtol=1e-5)

    def test_one_row(self, tmp_path):
        index = indexed(tmp_path / "s", np.ones((1, 2)), np.ones(1), "forest")[1]
        assert index.n_leaves == 1

    def test_measures_of_leaves(self, index, rows):
        for number, pivots, *_ in trees(index):
            for leaf in range(*index.guide.shapes.leaves[number : number + 2]):
                pivot = index.guide.shapes.pivot_of_leaf[leaf] - index.guide.shapes.pivots[number]
                if pivot < 0:
                    continue
                own, p = rows[index.starts[leaf] : index.ends[leaf]], pivots[pivot]
                scale = (own @ p).mean() / (p @ p)
                spread = np.sqrt(np.square(own - scale * p).sum(axis=1).mean())
                assert index.guide.scales[leaf] == pytest.approx(scale, rel=1e-5, abs=1e-6)
                assert index.guide.spreads[leaf] == pytest.approx(spread, rel=1e-4, abs=1e-5)

    def test_what_is_said_of_sizes(self, tmp_path):
        for name, least in (("width", 2), ("tree_size", 1)):
            with pytest.raises(ValueError, match=f"{name} must be at least {least}"):
                IndexSettings(**{name: least - 1})
        random = np.random.default_rng(1)
        rows = random.normal(size=(20_000, 20)).astype(np.float32)
        store, index = indexed(tmp_path / "s", rows, np.ones(20_000), "forest", IndexSettings())
        assert index.nbytes < 1.3 * store.nbytes
        assert index.guide.shapes.count == 2
        assert RandomTrees(3, 0).of(np.arange(10**5)).max() == 2

    def test_progress_is_told(self, tmp_path):
        told = []

        class Teller:
            def start(self, stage, total):
                told.append([stage, 0])

            def advance(self, n_bytes, n_rows=0):
                told[-1][1] += n_rows

        store = store_of(tmp_path / "s", X, Y)
        build_index(store, "forest", memory=200_000, settings=HOW, progress=Teller())
        assert told == [["spreading", X.shape[0]], ["ordering", X.shape[0]]]


W, B = np.random.default_rng(1).normal(size=X.shape[1]), 0.3


def keys_of(pivots, w, b):
    """The key (I20) of each pivot of a node, by its formula."""
    lengths = np.linalg.norm(pivots, axis=1)
    s = (pivots @ w + b) / (np.linalg.norm(w) * lengths)
    units = pivots / lengths[:, None]
    q = np.argmin(np.abs(s))
    keys = np.zeros(len(pivots))
    for k in range(len(pivots)):
        if k != q:
            keys[k] = (s[k] ** 2 - s[q] ** 2) / np.sqrt(2 - 2 * (units[k] @ units[q]) ** 2)
    return keys


def best_first(index, number, pivots, nodes, children, w, b):
    """(key, leaf) as a queue of parts gives them, the greatest key along the path before each."""
    queue, found = [(0.0, 0, 0)], []  # key, which came first, node
    count = 0
    while queue:
        key, _, node = heapq.heappop(queue)
        if node < 0:
            found += [(key, leaf) for leaf in leaves_below(index, number, nodes, children, -1 - node)]
            continue
        for pivot, own in zip(nodes[node], keys_of(pivots[nodes[node]], w, b), strict=True):
            count += 1
            below = children[pivot] if children[pivot] >= 0 else -1 - pivot
            heapq.heappush(queue, (max(key, own), count, below))
    return found


class TestBestBinFirst:
    @pytest.mark.parametrize("b", [0.0, B])
    def test_keys_are_those_of_the_formula(self, index, b):
        for number, pivots, nodes, _ in trees(index):
            wanted = np.concatenate([keys_of(pivots[node], W, b) for node in nodes])
            assert_allclose(index.guide.keys(number, (W, b)), wanted, rtol=1e-4, atol=1e-12)

    @pytest.mark.parametrize("b", [0.0, B])
    def test_leaves_come_as_from_a_queue(self, index, b):
        for number, pivots, nodes, children in trees(index):
            wanted = best_first(index, number, pivots, nodes, children, W, b)
            key_of = {leaf: key for key, leaf in wanted}
            found = [leaf for leaf in index.guide.best_bins(number, (W, b)) if leaf in key_of]
            assert sorted(found) == sorted(key_of)
            assert_allclose([key_of[leaf] for leaf in found], [key for key, _ in wanted], rtol=1e-4, atol=1e-12)

    def test_walk_gives_every_open_leaf_once(self, index):
        random = np.random.default_rng(2)
        closed = random.random(index.n_leaves) < 0.5
        nothing = np.full(index.n_leaves, np.inf), np.full(index.n_leaves, -np.inf)  # every score matters
        question = Question(W, B, Flats(*nothing, *nothing[::-1]))
        walked = list(index.guide.walk(question, closed, random))
        assert_array_equal(np.sort(np.concatenate(walked)), np.flatnonzero(~closed))
        tree_of = np.searchsorted(index.guide.shapes.leaves, np.arange(index.n_leaves), side="right") - 1
        order = [int(tree_of[some[0]]) for some in walked]
        assert all(len(set(tree_of[some])) == 1 for some in walked)
        n = index.guide.shapes.count
        assert sorted(order[:n]) == list(range(n))  # a part of each tree first
        for number in range(n):
            mine = np.concatenate([some for some, tree in zip(walked, order, strict=True) if tree == number])
            best = index.guide.best_bins(number, (W, B))
            assert_array_equal(mine, best[~closed[best]])

    def test_trees_come_in_random_order(self, index):
        question = Question(W, 0.0, all_matter(index))
        firsts = {int(next(index.guide.walk(question, none(index), np.random.default_rng(k)))[0]) for k in range(40)}
        assert len(firsts) == index.guide.shapes.count

    def test_zeros_are_passed_over_where_they_do_not_matter(self, index):
        zeros = index.guide.shapes.pivot_of_leaf < 0
        low, high = np.full(index.n_leaves, -1.0), np.full(index.n_leaves, 1.0)
        for b, matter in ((0.5, False), (1.5, True)):
            question = Question(W, b, Flats(low, high, -low, -high))
            walked = np.concatenate(list(index.guide.walk(question, none(index), np.random.default_rng(0))))
            assert np.isin(np.flatnonzero(zeros), walked).all() == matter
            assert len(walked) == index.n_leaves - (0 if matter else zeros.sum())
        outside = Question(W, 1.5, Flats(low, high, low, high), (W, 2.0))
        walked = np.concatenate(list(index.guide.walk(outside, none(index), np.random.default_rng(0))))
        assert not np.isin(np.flatnonzero(zeros), walked).any()

    def test_without_weights(self, index):
        walked = list(index.guide.walk(Question(0 * W, 0.0, all_matter(index)), none(index), np.random.default_rng(0)))
        assert len(np.concatenate(walked)) == index.n_leaves


def none(index):
    return np.zeros(index.n_leaves, bool)


def all_matter(index):
    nothing = np.full(index.n_leaves, np.inf), np.full(index.n_leaves, -np.inf)
    return Flats(*nothing, *nothing[::-1])


class TestCache:
    def test_trees_are_read_when_they_are_asked_for(self, tmp_path):
        store, _ = indexed(tmp_path / "s", X, Y, "forest")
        guide = open_index(open_store(store.path), "forest").guide
        shapes, question = guide.shapes, Question(W, 0.0, all_matter(open_index(store, "forest")))
        assert (guide.bytes_read, guide.hits) == (0, 0)
        closed = np.ones(shapes.leaves[-1], bool)
        assert list(guide.walk(question, closed, np.random.default_rng(0))) == []
        assert guide.bytes_read == 0  # of no tree whose leaves are all closed
        closed[shapes.leaves[2]] = False
        (leaf,) = guide.walk(question, closed, np.random.default_rng(0))
        assert_array_equal(leaf, [shapes.leaves[2]])
        assert (guide.trees.misses, guide.trees.hits) == (1, 0)
        assert guide.trees[2] is guide.trees[2]
        assert guide.hits == 2

    def test_only_what_fits_is_kept(self, tmp_path):
        store, whole = indexed(tmp_path / "s", X, Y, "forest")
        most = max(whole.guide.trees[k].nbytes for k in range(whole.guide.shapes.count))
        small = open_index(open_store(store.path, 8 * 2 * most), "forest").guide
        question = Question(W, B, all_matter(whole))
        assert_array_equal(small.weights(question), whole.guide.weights(question))
        misses = small.trees.misses
        assert misses == small.shapes.count
        small.trees[0]
        assert small.trees.misses == misses + 1  # which the others have displaced
        small.trees[0]
        assert small.trees.misses == misses + 1
        assert sum(tree.nbytes for tree in small.trees._kept.values()) <= 2 * most
        assert small.nbytes < whole.guide.nbytes

    @pytest.mark.parametrize("name", ["pivot_values", "pivot_indices", "node_distances"])
    def test_a_damaged_tree_is_found_when_it_is_read(self, name, tmp_path):
        store, whole = indexed(tmp_path / "s", X, Y, "forest")
        file = whole.path / f"{name}.npy"
        content = file.read_bytes()
        file.write_bytes(bytes([*content[:-1], content[-1] ^ 1]))
        guide = open_index(open_store(store.path), "forest").guide
        guide.trees[0]
        with pytest.raises(CorruptStoreError, match=rf"{name}\.npy was altered"):
            guide.trees[guide.shapes.count - 1]
        file.unlink()
        with pytest.raises(CorruptStoreError, match=rf"{name}\.npy is missing"):
            guide.trees[1]


class TestWeights:
    def flats(self, index):
        labels = Y[index.order()]
        low, high = (np.where(labels > 0, a, b) for a, b in ((1.0, -np.inf), (np.inf, -1.0)))
        inside = np.where(labels > 0, -0.2, -np.inf), np.where(labels > 0, np.inf, 0.2)
        columns = (np.maximum, low), (np.minimum, high), (np.minimum, inside[0]), (np.maximum, inside[1])
        return labels, Flats(*(take.reduceat(column, index.starts) for take, column in columns))

    def test_rank_leaves_by_the_share_that_matters(self, index, rows):
        labels, flats = self.flats(index)
        w = 4 * W
        share = np.add.reduceat((labels * (rows @ w + B) < 1).astype(float), index.starts) / (index.ends - index.starts)
        weights = index.guide.weights(Question(w, B, flats))
        assert 0 < weights.min() < 0.1 < weights.max() <= 1
        assert share[weights > 0.5].mean() > 0.5
        assert share[weights < 0.05].mean() < 0.1
        outer = index.guide.weights(Question(w, B, flats, (w, B)))
        assert np.all(outer <= weights)
        out = np.logical_and.reduceat(labels * (rows @ w + B) < -0.2, index.starts)
        assert outer[out].mean() < 0.5 * weights[out].mean()

    def test_what_was_read_is_left_where_scores_have_changed(self, index, rows):
        labels, flats = self.flats(index)
        readings = Readings(index.n_leaves)
        z = rows @ W + B
        low, high = (np.where(labels > 0, a, b) for a, b in ((1.0, -np.inf), (np.inf, -1.0)))
        rest = labels * z >= 1
        readings.places.append((W, B))
        readings.when[::2] = 0
        readings.below[:] = np.minimum.reduceat(np.where(rest, z - low, np.inf), index.starts)
        readings.above[:] = np.minimum.reduceat(np.where(rest, high - z, np.inf), index.starts)
        at_once = index.guide.left(Question(W, B, flats), readings)
        assert np.all(at_once[1::2] > 0)
        assert at_once[::2].max() <= 0.5  # of rows that were as near as could be
        assert np.count_nonzero(at_once[::2]) < 0.1 * len(at_once[::2])
        far = index.guide.left(Question(-W, -B, flats), readings)
        anew = np.add.reduceat((rest & (labels * -z < 1)).astype(int), index.starts)[::2]
        assert far[::2][anew == 0].mean() < 0.2 * far[::2][anew > 0].mean()
        assert np.mean(far[::2][anew > 0] > 0) > 0.95
