"""Indexes: what they hold, what they say of rows that are not read, and what happens to damaged ones."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_tools import SETTINGS, clusters, indexed, store_of
from numpy.testing import assert_allclose, assert_array_equal

import beeline
from beeline import Block, open_store
from beeline.data.files.scratch import scratch_folder
from beeline.data.store.reading import ChunkReader
from beeline.exceptions import CorruptStoreError, ParameterError, StoreError, StoreVersionError
from beeline.index import IndexedRows, IndexSettings, Question, build_index, indexes_of, open_index
from beeline.index.boxes import Boxes, BoxWriter
from beeline.index.guides import Flats, drawn
from beeline.index.samples import Samples
from beeline.kernels import order_rows

KINDS = ["boxes", "chunks", "forest"]
X, Y = clusters()


@pytest.fixture(scope="module", params=KINDS)
def made(request, tmp_path_factory):
    return indexed(tmp_path_factory.mktemp("index") / "s", X, Y, request.param)


def dense(block):
    return block.values if not block.is_sparse else block.to_scipy().toarray()


class TestRows:
    def test_are_those_of_the_store_in_another_order(self, made):
        store, index = made
        order = index.order()
        assert_array_equal(np.sort(order), np.arange(store.n_rows))
        rows = IndexedRows(index)
        assert_array_equal(rows.order(), order)
        assert_array_equal(dense(rows.rows(0, store.n_rows)), dense(store.gather(order)))
        assert rows.labels is None
        assert rows.shape == store.shape

    def test_lie_in_leaves_that_no_chunk_cuts(self, made):
        _, index = made
        sizes = index.ends - index.starts
        assert sizes.min() >= 1
        assert sizes.max() <= SETTINGS[index.info.kind].leaf_rows
        assert set(index.rows.chunk_ends) <= set(index.ends)
        assert_array_equal(index.chunk_of_leaf[index.first_leaves[:-1]], np.arange(index.rows.n_chunks))

    def test_of_a_leaf_of_boxes_have_one_label(self, made):
        store, index = made
        if index.info.kind == "boxes":
            labels = np.asarray(store.labels)[index.order()]
            assert all(len(set(labels[a:b])) == 1 for a, b in zip(index.starts, index.ends, strict=True))

    def test_are_near_each_other(self, made):
        """A leaf is much smaller than as many random rows."""
        store, index = made
        rows = dense(index.rows.rows(0, store.n_rows))
        spread = [rows[a:b].std(axis=0).sum() for a, b in zip(index.starts, index.ends, strict=True) if b > a + 1]
        random = np.random.default_rng(0).permutation(rows)
        other = [random[a:b].std(axis=0).sum() for a, b in zip(index.starts, index.ends, strict=True) if b > a + 1]
        assert np.mean(spread) < 0.7 * np.mean(other)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("memory", [1 << 20, 20_000, 8_000])
    def test_are_all_there_whatever_the_memory(self, kind, memory, tmp_path):
        store, index = indexed(tmp_path / "s", X[:1000], Y[:1000], kind, memory=memory)
        assert_array_equal(np.sort(index.order()), np.arange(store.n_rows))
        assert_array_equal(dense(index.rows.rows(0, store.n_rows)), dense(store.gather(index.order())))
        assert sorted(p.name for p in index.path.iterdir() if p.is_dir()) == []

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("X", [X.toarray(), X.astype(np.float32), np.ones((50, 3)), np.zeros((5, 2))])
    def test_of_any_form(self, kind, X, tmp_path):
        y = np.resize([1.0, -1.0], X.shape[0])
        store, index = indexed(tmp_path / "s", X, y, kind)
        assert_array_equal(dense(index.rows.rows(0, store.n_rows)), dense(store.gather(index.order())))
        w = np.random.default_rng(0).normal(size=X.shape[1])
        assert index.pilot().block.scores(w).shape == index.pilot().positions.shape

    def test_without_labels_or_with_many(self, tmp_path):
        numbers = np.random.default_rng(0).normal(size=X.shape[0])
        store, index = indexed(tmp_path / "s", X, numbers, "boxes")
        assert_array_equal(np.sort(index.order()), np.arange(store.n_rows))

    def test_same_seed_same_bytes(self, tmp_path):
        for kind in KINDS:
            first, second = (indexed(tmp_path / f"{kind}{k}", X, Y, kind)[1] for k in range(2))
            for file in sorted(first.path.iterdir()):
                if file.name != "index.json":
                    assert file.read_bytes() == (second.path / file.name).read_bytes()
            assert first.info.arrays == second.info.arrays


class TestFacts:
    def test_are_sums_over_all_rows(self, made):
        store, index = made
        sums, squares, longest = index.moments
        rows = dense(store.rows(0, store.n_rows))
        assert_allclose(sums, rows.sum(axis=0), atol=1e-9)
        assert_allclose(squares, (rows**2).sum(axis=0), atol=1e-9)
        assert longest == pytest.approx(np.linalg.norm(rows, axis=1).max())

    def test_size(self, made):
        store, index = made
        assert index.nbytes < 1.8 * store.nbytes  # of a small store; what is beside the rows weighs more there
        assert index.n_leaves == index.info.n_leaves

    def test_random_rows_are_fair(self, tmp_path):
        n = 30_000
        random = np.random.default_rng(3)
        X = random.normal(size=(n, 2))
        y = np.where(random.random(n) < 0.002, 2.0, np.where(random.random(n) < 0.5, 1.0, 0.0))
        index = indexed(tmp_path / "s", X, y, "boxes", IndexSettings())[1]
        pilot = index.pilot()
        labels = y[index.order()[pilot.positions]]
        assert_array_equal(dense(pilot.block), X[index.order()[pilot.positions]])
        assert len(labels) == pytest.approx(1000, abs=250)
        assert (labels == 2).sum() == (y == 2).sum()  # few enough to be there all
        for label in range(3):
            assert pilot.weights[labels == label].sum() == pytest.approx((y == label).sum(), rel=0.2)

    def test_reads_back(self, made):
        store, index = made
        again = open_index(open_store(store.path), index.info.kind)
        assert again.info == index.info
        assert indexes_of(store) == [index.info.kind]
        assert index.info.kind in repr(again)


class TestBoxes:
    @settings(deadline=None, max_examples=60)
    @given(st.integers(0, 2**32 - 1), st.sampled_from([1e-30, 1e-3, 1.0, 1e6, 1e30]), st.booleans(), st.booleans())
    def test_hold_all_scores(self, tmp_path_factory, seed, scale, sparse, single):
        """Of any rows, at any scale, also where bounds of single weights are infinite."""
        random = np.random.default_rng(seed)
        n, d = random.integers(1, 60), random.integers(1, 12)
        rows = random.normal(size=(n, d)) * scale * (random.random((n, d)) < 0.6) * 10 ** random.uniform(-4, 4, d)
        rows = rows.astype(np.float32 if single else np.float64)
        block = Block(rows, int(d))
        if sparse:
            import scipy.sparse as sp

            m = sp.csr_matrix(rows)
            block = Block(m.data, int(d), m.indptr, m.indices)
        order = np.arange(n)
        ends = np.asarray(order_rows(block.arrays, order, [int(n)], 5, seed % 1000))
        ordered = block.gather(order)
        folder = tmp_path_factory.mktemp("boxes")
        writer = BoxWriter(folder, int(d))
        writer.write(ordered, ends)
        records = {name: array.close() for name, array in writer.arrays.items()}
        boxes = Boxes.load(lambda name: np.load(folder / records[name]["file"]))
        w = random.normal(size=d) * 10 ** random.uniform(-3, 3, d) * (random.random(d) < 0.8)
        low, high = boxes.bounds(w, 0.5)
        z = ordered.scores(w) + 0.5
        starts = np.concatenate([[0], ends[:-1]])
        assert np.all(np.minimum.reduceat(z, starts) >= low)
        assert np.all(np.maximum.reduceat(z, starts) <= high)
        some = np.arange(0, len(ends), 2)
        assert_array_equal(boxes.bounds(w, 0.5, some), (low[some], high[some]))

    def test_of_one_row_are_tight(self, tmp_path):
        rows = np.random.default_rng(0).normal(size=(4, 3))
        _, index = indexed(tmp_path / "s", rows, np.ones(4), "boxes", IndexSettings(leaf_rows=1))
        w = np.array([1.0, -2.0, 0.5])
        low, high = index.guide.bounds(w)
        z = rows[index.order()] @ w
        assert_allclose(low, z, atol=0.05)
        assert_allclose(high, z, atol=0.05)

    def test_weights_are_zero_where_no_row_matters(self, tmp_path, monkeypatch):
        _, index = indexed(tmp_path / "s", X, Y, "boxes")
        labels = Y[index.order()]
        w = np.random.default_rng(1).normal(size=X.shape[1])
        low, high = (np.where(labels > 0, a, b) for a, b in ((1.0, -np.inf), (np.inf, -1.0)))
        leaves = (np.maximum.reduceat(low, index.starts), np.minimum.reduceat(high, index.starts))
        none = np.full(index.n_leaves, -np.inf), np.full(index.n_leaves, np.inf)
        weights = index.guide.weights(Question(w, 0.1, Flats(*leaves, *none)))
        with monkeypatch.context() as patch:
            patch.setattr("beeline.index.boxes._TOGETHER", 7)
            np.testing.assert_array_equal(index.guide.weights(Question(w, 0.1, Flats(*leaves, *none))), weights)
        z = (X @ w)[index.order()] + 0.1
        matters = np.add.reduceat((labels * z < 1).astype(int), index.starts)
        assert np.all(matters[weights == 0] == 0)
        assert 0 < np.count_nonzero(weights == 0) < index.n_leaves
        # With outliers: leaves of which all rows are OUT do not matter either.
        far = np.where(labels > 0, -0.2, -np.inf), np.where(labels > 0, np.inf, 0.2)
        inside = np.minimum.reduceat(far[0], index.starts), np.maximum.reduceat(far[1], index.starts)
        fewer = index.guide.weights(Question(w, 0.1, Flats(*leaves, *inside), (w, 0.1)))
        counts = np.add.reduceat(((labels * z < 1) & (labels * z >= -0.2)).astype(int), index.starts)
        assert np.all(counts[fewer == 0] == 0)
        assert np.count_nonzero(fewer) < np.count_nonzero(weights)


class TestSamples:
    def test_are_the_first_rows_of_their_leaves(self, tmp_path):
        _, index = indexed(tmp_path / "s", X, Y, "chunks")
        guide = index.guide
        assert isinstance(guide, Samples)
        positions = guide.positions(index.starts)
        assert_array_equal(dense(guide.block), X.toarray()[index.order()[positions]])
        assert np.all(np.isin(index.starts, positions))

    def test_weights_follow_the_share_that_matters(self, tmp_path):
        _, index = indexed(tmp_path / "s", X, Y, "chunks", IndexSettings(leaf_rows=40, samples=40))
        labels, w = Y[index.order()], np.random.default_rng(1).normal(size=X.shape[1])
        low, high = (np.where(labels > 0, a, b) for a, b in ((1.0, -np.inf), (np.inf, -1.0)))
        none = np.full(len(labels), -np.inf), np.full(len(labels), np.inf)
        assert isinstance(index.guide, Samples)
        positions = index.guide.positions(index.starts)
        guide = index.guide.with_flats(Flats(low, high, *none).pick(positions))
        weights = guide.weights(Question(w, 0.0, Flats(*(np.zeros(index.n_leaves),) * 4)))
        share = np.add.reduceat((labels * (X @ w)[index.order()] < 1).astype(float), index.starts)
        assert_allclose(weights, (share + 0.1) / (index.ends - index.starts + 1.0))
        assert weights.min() > 0


def test_drawing_follows_the_weights():
    weights = np.array([0.0, 1.0, 3.0, 0.0, 0.5])
    firsts = np.zeros(5)
    for seed in range(2000):
        places = drawn(weights, np.random.default_rng(seed))
        assert sorted(places) == [1, 2, 4]
        firsts[places[0]] += 1
    assert_allclose(firsts / 2000, weights / weights.sum(), atol=0.05)


class TestReading:
    def test_chunks_are_those_of_the_store(self, made):
        _, index = made
        reader, store = ChunkReader(index.rows), index.rows
        picked = [store.n_chunks - 1, 0, min(2, store.n_chunks - 1)]
        for number, block in zip(picked, reader.read(picked), strict=True):
            assert_array_equal(dense(block), dense(store.chunk(number)))
        assert reader.bytes_read > 0
        assert reader.misses == len(set(picked))

    def test_what_was_read_last_is_kept(self, made):
        _, index = made
        reader = ChunkReader(index.rows, room=1 << 30)
        reader.read(range(index.rows.n_chunks))
        before = reader.bytes_read
        reader.read([0])
        assert (reader.hits, reader.bytes_read) == (1, before)
        reader.room = 0
        reader.read([0])
        assert reader.bytes_read > before

    def test_a_file_that_shrinks_is_an_error_with_its_name(self, tmp_path):
        store = store_of(tmp_path / "s", X, Y)
        reader = ChunkReader(store)
        reader.read([0])
        part = store.path / "part-00000.arrow"
        with part.open("r+b") as file:
            file.truncate(1000)
        with pytest.raises(CorruptStoreError, match=r"part-00000\.arrow was truncated while it was read"):
            reader.read([store.n_chunks - 1])


class TestDamage:
    @pytest.fixture(params=KINDS)
    def built(self, request, tmp_path):
        return indexed(tmp_path / "s", X, Y, request.param)

    def test_another_store_makes_it_stale(self, built, tmp_path):
        store, index = built
        kind = index.info.kind
        other = store_of(tmp_path / "t", X[:100], Y[:100])
        index.path.rename(other.path / f"index-{kind}")
        with pytest.raises(StoreError, match="is the index of other rows"):
            open_index(other, kind)
        with pytest.raises(
            StoreError, match=rf"has no index of the kind {kind}; it has none; build one by `beeline index`"
        ):
            open_index(store, kind)

    @pytest.mark.parametrize("change", ["truncate", "flip", "remove", "longer"])
    def test_of_any_file_is_found(self, built, change):
        store, index = built
        for file in sorted(index.path.iterdir()):
            content = file.read_bytes()
            if change == "remove":
                file.unlink()
            else:
                flipped = bytes([*content[:-1], content[-1] ^ 1])
                file.write_bytes({"truncate": content[:-1], "flip": flipped, "longer": content + b"x"}[change])
            with pytest.raises(StoreError, match=file.name.replace(".", r"\.")):
                touch(store, index.info.kind)
            file.write_bytes(content)
        touch(store, index.info.kind)

    def test_a_newer_version(self, built):
        store, index = built
        file = index.path / "index.json"
        document = json.loads(file.read_bytes())
        file.write_bytes(json.dumps(document | {"version": 99}).encode())
        with pytest.raises(StoreVersionError, match="index of version 99"):
            open_index(store, index.info.kind)

    def test_of_a_kind_that_there_is_not(self, built):
        with pytest.raises(ParameterError, match="no kind of index 'trees'; there are"):
            build_index(built[0], "trees")
        with pytest.raises(ParameterError, match="leaf_rows must be at least 1, not 0"):
            IndexSettings(leaf_rows=0)

    def test_building_again_replaces_it(self, built):
        store, index = built
        again = build_index(store, index.info.kind, settings=IndexSettings(leaf_rows=3))
        assert again.n_leaves > index.n_leaves
        assert open_index(store, index.info.kind).n_leaves == again.n_leaves
        assert sorted(p.name for p in store.path.iterdir() if p.name.startswith(".")) == []


def touch(store, kind):
    index = open_index(store, kind)
    _ = index.guide, index.pilot(), index.moments, index.order()
    index.verify()


class TestArguments:
    def test_a_seed_beyond_what_kernels_count_to(self):
        with pytest.raises(ParameterError, match=r"seed must be less than 2\*\*63"):
            IndexSettings(seed=2**70)

    @pytest.mark.parametrize("store", [None, 3, np.zeros((2, 2)), b"x"])
    def test_what_is_no_store(self, store):
        with pytest.raises(ParameterError, match="store must be a store or its folder, not"):
            beeline.build_index(store)


def test_no_folder_for_temporary_files(monkeypatch):
    def nowhere():
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    with pytest.raises(StoreError, match="no folder for temporary files can be written; say where one is by TMPDIR"):
        scratch_folder()
