"""The store: its files, its manifest, and how rows come back."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beeline import ArrayDataset, Block
from beeline.data.core.block import concatenate
from beeline.data.core.labels import LabelSets
from beeline.data.recipe.recipe import Recipe
from beeline.data.recipe.scaling import Scaling
from beeline.data.store import StoreWriter, open_store
from beeline.data.store.form import Form
from beeline.data.store.parts import PartWriter
from beeline.exceptions import CorruptStoreError, DataError, ParameterError, StoreError


def sparse_block(n, d, seed=0, per_row=6, value="float64", index="int32", **targets):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, min(per_row * 2, d) + 1, n)
    rows = [np.sort(rng.choice(d, count, replace=False)) for count in counts]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.concatenate([*rows, []]).astype(index)
    return Block(rng.normal(size=len(indices)).astype(value), d, indptr, indices, **targets)


def write(path, blocks, *, finish=(None, None), **settings):
    with StoreWriter(path, **settings) as writer:
        for block in blocks:
            writer.write(block)
        return writer.finish(*finish)


def assert_same(ours, theirs):
    np.testing.assert_array_equal(ours.to_dense(), theirs.to_dense())
    for name in ("weights", "queries"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    if isinstance(theirs.labels, LabelSets):
        assert [list(row) for row in ours.labels] == [list(row) for row in theirs.labels]
    else:
        np.testing.assert_array_equal(ours.labels, theirs.labels)


def test_any_arrow_tool_reads_a_part(tmp_path):
    block = sparse_block(50, 20, labels=np.arange(50.0), weights=np.full(50, 0.5), queries=np.arange(50) // 7)
    store = write(tmp_path / "s", [block], chunk_bytes=600)
    table = pa.ipc.open_file(store.path / "part-00000.arrow").read_all()
    assert str(table.schema.field("row").type) == (
        "list<entry: struct<index: int32 not null, value: double not null> not null>"
    )
    assert table.schema.names == ["row", "label", "weight", "query"]
    for row, entries in enumerate(table["row"].to_pylist()):
        one = block.rows(row, row + 1)
        start, stop = one.indptr
        assert [e["index"] for e in entries] == one.indices[start:stop].tolist()
        assert [e["value"] for e in entries] == one.values[start:stop].tolist()
    assert table["query"].to_pylist() == block.queries.tolist()
    table.validate(full=True)


def test_dense_rows_and_label_sets_are_arrow_lists(tmp_path):
    sets = LabelSets(np.array([0, 2, 2, 3]), np.array([1.0, 4.0, 2.0]))
    store = write(tmp_path / "s", [Block(np.arange(6, dtype="float32").reshape(3, 2), 2, labels=sets)])
    table = pa.ipc.open_file(store.path / "part-00000.arrow").read_all()
    assert table["row"].to_pylist() == [[0, 1], [2, 3], [4, 5]]
    assert table["labels"].to_pylist() == [[1, 4], [], [2]]
    table.validate(full=True)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_a_chunk_is_a_view_of_the_mapped_file(tmp_path, layout):
    block = sparse_block(300, 40, labels=np.arange(300.0), weights=np.ones(300), queries=np.arange(300))
    if layout == "dense":
        block = replace(block, values=block.to_dense(), indptr=None, indices=None)
    store = write(tmp_path / "s", [block], chunk_bytes=4000)
    part, _ = store._locate(0)
    mapped = np.frombuffer(part._map, np.uint8)
    for view in (store.chunk(1), store.rows(1, 3), next(store.blocks())):
        names = ("values", "labels", "weights", "queries") + (("indptr", "indices") if layout == "sparse" else ())
        for name in names:
            array = getattr(view, name)
            assert np.shares_memory(array, mapped), name
            assert not array.flags.writeable
    for copy in (store.rows(0, 300), next(store.blocks(5000)), store.within(5000).chunk(1)):
        assert not np.shares_memory(copy.values, mapped)


def test_a_block_outlives_its_store(tmp_path):
    block = sparse_block(300, 40, labels=np.arange(300.0))
    store = write(tmp_path / "s", [block], chunk_bytes=4000)
    views = list(store.blocks())
    for file in store.path.iterdir():
        file.unlink()
    del store
    assert_same(concatenate(views), block)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(1, 3000), st.integers(0, 5))
def test_cuts_depend_on_the_rows_alone(tmp_path_factory, sizes, chunk_bytes, seed):
    n = sum(sizes) + 1
    block = sparse_block(n, 30, seed, labels=np.arange(float(n)))
    edges = np.cumsum([0, *sizes, 1])
    infos = []
    for pieces in ([block], [block.rows(a, b) for a, b in pairwise(edges)]):
        folder = tmp_path_factory.mktemp("parts")
        writer = PartWriter(folder, Form.of(block), chunk_bytes, part_bytes=4000)
        for piece in pieces:
            writer.write(piece)
        infos.append([info.to_json() for info in writer.close()])
        statistics = writer.statistics.to_json()
    assert infos[0] == infos[1]
    assert sum(info["rows"] for info in infos[0]) == n
    ends = Form.of(block).row_ends(block)
    for info in infos[0]:
        for rows in info["chunks"]["rows"]:
            size, ends = ends[rows - 1], ends[rows:] - ends[rows - 1]
            assert size <= chunk_bytes or rows == 1
    assert statistics["labels"]["count"] == n


def test_default_chunks_lie_between_64_kb_and_1_mb(tmp_path):
    block = sparse_block(40_000, 1000, per_row=20, labels=np.zeros(40_000))
    store = write(tmp_path / "s", [block])
    sizes = store.manifest.parts[0].chunks.nbytes
    assert len(sizes) > 4
    assert sizes.max() <= 1 << 20
    assert sizes[:-1].min() >= 64 << 10


def test_a_row_larger_than_a_chunk_stands_alone(tmp_path):
    wide = Block(np.ones(5000), 5000, np.array([0, 5000]), np.arange(5000, dtype=np.int32), labels=np.ones(1))
    small = sparse_block(10, 20, labels=np.zeros(10))
    store = write(tmp_path / "s", [small, wide, small], chunk_bytes=2000)
    counts = [block.n_rows for block in store.blocks() if block.nnz >= 5000]
    assert counts == [1]
    assert store.n_features == 5000
    assert_same(store.rows(10, 11), wide)


def test_types_widen_and_features_grow(tmp_path):
    first = sparse_block(20, 10, 1, value="float32", index="int32", labels=np.arange(20.0))
    second = sparse_block(20, 30, 2, value="float64", index="int64", labels=np.arange(20.0))
    third = sparse_block(20, 20, 3, value="float32", index="int32", labels=np.arange(20.0))
    together = concatenate(
        [replace(b, n_features=40, values=b.values.astype("float64")) for b in (first, second, third)]
    )
    for name, shuffle in (("plain", None), ("shuffled", 4)):
        store = write(tmp_path / name, [first, second, third], chunk_bytes=300, shuffle=shuffle, finish=(None, 40))
        assert {(b.values.dtype, b.indices.dtype) for b in store.blocks()} == {(np.dtype("f8"), np.dtype("i8"))}
        assert store.shape == (60, 40)
        rows = store.rows(0, 60)
        key = lambda X: X[np.lexsort(X.T)]  # noqa: E731
        np.testing.assert_array_equal(key(rows.to_dense()), key(together.to_dense()))
        if shuffle is None:
            assert_same(rows, together)
        schemas = {str(pa.ipc.open_file(p).schema) for p in store.path.glob("*.arrow")}
        assert len(schemas) == 1
        assert sorted(p.name for p in store.path.iterdir()) == sorted(
            ["manifest.json", *(part.name for part in store.manifest.parts)]
        )
        store.verify()


@pytest.mark.parametrize(("shuffle", "memory"), [(None, 1000), (3, 1000), (3, 100)])
def test_dense_rows_grow(tmp_path, shuffle, memory):
    rng = np.random.default_rng(0)
    blocks = [Block(rng.random((5, 3)), 3, labels=np.zeros(5)), Block(rng.random((5, 4)), 4, labels=np.ones(5))]
    store = write(tmp_path / "s", blocks, finish=(None, 6), shuffle=shuffle, memory=memory)
    X = store.rows(0, 10).values[np.argsort(store.labels, kind="stable")]
    assert X.shape == (10, 6)
    assert np.all(X[:5, 3:] == 0)
    assert np.all(X[5:, :4] > 0)
    assert np.all(X[:, 4:] == 0)
    store.verify()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"labels": None}, "labels"),
        ({"labels": LabelSets(np.arange(6), np.zeros(5))}, "labels"),
        ({"weights": np.ones(5)}, "weights"),
        ({"queries": np.ones(5, int)}, "queries"),
        ({"values": np.ones((5, 8)), "indptr": None, "indices": None}, "layout"),
    ],
)
def test_blocks_must_agree(tmp_path, change, word):
    block = sparse_block(5, 8, labels=np.zeros(5))
    with StoreWriter(tmp_path / "s") as writer:
        writer.write(block)
        with pytest.raises(DataError, match=f"agree in {word}"):
            writer.write(replace(block, **change))
    assert not list(tmp_path.iterdir())


def test_features_that_do_not_fit_are_refused(tmp_path):
    with StoreWriter(tmp_path / "s") as writer:
        writer.write(sparse_block(5, 8))
        with pytest.raises(ParameterError, match="8 features do not fit into a store of 7"):
            writer.finish(None, 7)


def test_no_rows_are_refused(tmp_path):
    with pytest.raises(DataError, match="no rows"):
        write(tmp_path / "s", [sparse_block(0, 8)])
    assert not list(tmp_path.iterdir())


def test_restart_throws_away_what_was_written(tmp_path):
    block = sparse_block(30, 8, labels=np.zeros(30))
    sets = LabelSets(np.arange(31), np.arange(30.0))
    for name, shuffle in (("plain", None), ("shuffled", 0)):
        with StoreWriter(tmp_path / name, chunk_bytes=100, shuffle=shuffle) as writer:
            writer.write(block)
            writer.restart()
            writer.write(replace(block, labels=sets))
            store = writer.finish()
        assert store.n_rows == 30
        assert sorted(store.labels.stored()) == list(range(30))
        assert store.label_statistics["kind"] == "sets"


def test_a_writer_is_used_once_and_in_a_with_statement(tmp_path):
    writer = StoreWriter(tmp_path / "s")
    with pytest.raises(StoreError, match="with statement"):
        writer.write(sparse_block(5, 8))
    with writer:
        writer.write(sparse_block(5, 8))
        writer.finish()
        with pytest.raises(StoreError, match="with statement"):
            writer.write(sparse_block(5, 8))
    assert open_store(tmp_path / "s").n_rows == 5


@pytest.mark.parametrize("setting", ["memory", "chunk_bytes", "part_bytes"])
def test_sizes_must_be_positive(tmp_path, setting):
    with pytest.raises(ParameterError, match=setting):
        StoreWriter(tmp_path / "s", **{setting: 0})


def test_manifest_is_plain_json_with_counts(tmp_path):
    block = sparse_block(50, 20, labels=np.arange(50.0) % 3, weights=np.full(50, 0.5), queries=np.arange(50) // 7)
    recipe = Recipe(20, index_base=1, scaling=Scaling())
    store = write(tmp_path / "s", [block], chunk_bytes=600, part_bytes=2000, finish=(recipe, 20))
    document = json.loads((tmp_path / "s" / "manifest.json").read_text())
    assert (document["format"], document["version"]) == ("beeline-store", 1)
    assert (document["rows"], document["features"], document["nnz"]) == (50, 20, block.nnz)
    assert document["row_order"] == {"kind": "source"}
    assert document["side_files"] == {}
    assert Recipe.from_json(document["recipe"]) == recipe == store.recipe == open_store(store.path).recipe
    assert len(document["parts"]) > 1
    for part in document["parts"]:
        assert (store.path / part["name"]).stat().st_size == part["bytes"]
        assert sum(part["chunks"]["rows"]) == part["rows"]
        table = pa.ipc.open_file(store.path / part["name"])
        assert table.num_record_batches == len(part["chunks"]["rows"])


def test_statistics(tmp_path):
    rng = np.random.default_rng(1)
    y, weights = rng.integers(0, 3, 200) * 1.0, rng.random(200)
    block = sparse_block(200, 20, labels=y, weights=weights, queries=np.repeat(np.arange(20), 10))
    store = write(tmp_path / "s", [block.rows(0, 77), block.rows(77, 200)], chunk_bytes=700)
    statistics = store.manifest.statistics
    labels = store.label_statistics
    assert labels["distinct"] == {"values": [0, 1, 2], "counts": np.bincount(y.astype(int)).tolist()}
    np.testing.assert_allclose(
        [labels["count"], labels["min"], labels["max"], labels["mean"], labels["std"]], [200, 0, 2, y.mean(), y.std()]
    )
    np.testing.assert_allclose(
        [statistics["weights"]["mean"], statistics["weights"]["std"]], [weights.mean(), weights.std()]
    )
    assert statistics["values"] == {"min": block.values.min(), "max": block.values.max()}
    lengths = np.diff(block.indptr)
    assert statistics["row_entries"] == {"min": lengths.min(), "max": lengths.max()}
    assert statistics["query_runs"] == 20


def test_statistics_of_many_labels_and_of_none(tmp_path):
    y = np.random.default_rng(0).normal(size=3000)
    labels = write(tmp_path / "many", [Block(np.zeros((3000, 1)), 1, labels=y)]).label_statistics
    assert labels["distinct"] is None
    np.testing.assert_allclose([labels["mean"], labels["std"]], [y.mean(), y.std()])
    assert write(tmp_path / "none", [sparse_block(5, 8)]).label_statistics is None


def test_statistics_of_label_sets_and_of_numbers_that_are_not_finite(tmp_path):
    sets = LabelSets(np.array([0, 3, 3, 4]), np.array([1.0, 2, 5, 2]))
    labels = write(tmp_path / "sets", [Block(np.zeros((3, 1)), 1, labels=sets)]).label_statistics
    assert labels["distinct"] == {"values": [1, 2, 5], "counts": [1, 2, 1]}
    assert labels["per_row"] == {"min": 0, "max": 3}
    y = np.array([np.nan, np.inf, 1.0])
    store = write(tmp_path / "odd", [Block(np.array([[np.nan], [-np.inf], [2]]), 1, labels=y)])
    assert store.label_statistics["distinct"] == {"values": [1, "inf", "nan"], "counts": [1, 1, 1]}
    assert store.manifest.statistics["values"] == {"min": "-inf", "max": 2}
    json.loads((store.path / "manifest.json").read_text(), parse_constant=pytest.fail)
    np.testing.assert_array_equal(open_store(store.path).labels, y)


def test_positions_beyond_32_bits(tmp_path):
    """Rows near the end of a block of more than 2³¹ entries, in files that are holes but for their ends."""
    end = 2**31 + 100
    values = np.memmap(tmp_path / "values", np.float32, "w+", shape=end)
    indices = np.memmap(tmp_path / "indices", np.int32, "w+", shape=end)
    values[-9:], indices[-9:] = 2.5, 3
    block = Block(values, 5, np.array([end - 3, end - 2, end - 2, end - 1]), indices)
    for name, shuffle in (("plain", None), ("shuffled", 1)):
        with StoreWriter(tmp_path / name, shuffle=shuffle) as writer:
            writer.write(block)
            store = writer.finish()
        assert sorted(store.rows(0, 3).to_dense()[:, 3]) == [0, 2.5, 2.5]


def test_more_entries_than_32_bits_can_count(tmp_path, monkeypatch):
    monkeypatch.setattr("beeline.data.store.form._MOST_ENTRIES", 7)
    short, long = sparse_block(40, 10, per_row=3), sparse_block(1, 40, 3, per_row=20)
    store = write(tmp_path / "s", [short], chunk_bytes=60)
    assert store.rows(0, 40).indptr.dtype == np.int64
    assert_same(store.rows(0, 40), short)
    assert long.nnz > 7
    with pytest.raises(DataError, match="longer than the 7 a store can hold"):
        write(tmp_path / "t", [long])


def test_a_budget_may_be_a_text(tmp_path):
    path = write(tmp_path / "s", [sparse_block(30, 8)]).path
    assert open_store(path, memory="64M").memory == 64 << 20
    with pytest.raises(ParameterError, match="at least 1 byte"):
        next(open_store(path).blocks(0))


def test_a_store_travels_to_another_process(tmp_path):
    block = sparse_block(30, 8, labels=np.zeros(30))
    store = open_store(write(tmp_path / "s", [block]).path, memory=1000)
    twin = pickle.loads(pickle.dumps(store))
    assert twin.memory == 1000
    assert_same(twin.rows(0, 30), block)


def test_threads_share_a_store(tmp_path, monkeypatch):
    monkeypatch.setattr("beeline.data.store.store._MOST_MAPPED", 2)
    block = sparse_block(2000, 30, labels=np.arange(2000.0))
    data = ArrayDataset(block)
    store = open_store(write(tmp_path / "s", [block], chunk_bytes=1000, part_bytes=10_000).path)
    assert len(store.manifest.parts) > 8
    flaws = []

    def read(seed):
        try:
            rng = np.random.default_rng(seed)
            for _ in range(15):
                picked = rng.integers(0, 2000, 50)
                assert_same(store.gather(picked), data.gather(picked))
                assert_same(concatenate(list(store.blocks(20_000))), block)
        except BaseException as error:
            flaws.append(error)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not flaws


def test_passed_chunks_are_given_back(tmp_path):
    store = write(tmp_path / "s", [Block(np.ones((4000, 1000)), 1000)])
    most = 0
    for block in store.blocks(4 << 20):
        assert block.values.sum() == block.values.size
        most = max(most, resident(store))
    assert store.nbytes > 30 << 20
    assert most < 8 << 20


def resident(store):
    """Bytes of the store's files that are in this process's memory."""
    total, inside = 0, False
    with open("/proc/self/smaps") as file:  # noqa: PTH123
        for line in file:
            if "-" in line.split(" ", 1)[0]:
                inside = str(store.path) in line
            elif inside and line.startswith("Rss:"):
                total += int(line.split()[1]) << 10
    return total


def test_rows_are_asked_for_before_they_are_read(tmp_path, monkeypatch):
    """Of the chunks that they lie in, and only where chunks are read and not mapped."""
    store = write(tmp_path / "a", [sparse_block(4000, 30)], chunk_bytes=5000)
    asked = []
    monkeypatch.setattr("beeline.data.store.reading._OpenPart.will_need", lambda _, *chunks: asked.append(chunks))
    store.will_need(0, 4000)
    assert not asked
    ends = store.chunk_ends
    small = store.within(20_000)
    small.will_need(int(ends[1]), int(ends[3]))
    small.will_need(int(ends[1]), int(ends[3]) + 1)
    small.will_need(7, 7)
    assert asked == [(2, 4), (2, 5)]


def test_a_walk_asks_for_one_stretch_more_than_it_reads(tmp_path, monkeypatch):
    """All chunks are asked for once, in their order, and the disk has something to do whenever rows are looked at."""
    store = write(tmp_path / "a", [sparse_block(4000, 30)], chunk_bytes=5000)
    asked = []
    monkeypatch.setattr("beeline.data.store.store._READ_AHEAD", 20_000)
    monkeypatch.setattr("beeline.data.store.reading._OpenPart.will_need", lambda _, *chunks: asked.append(chunks))
    stretch = store._last_within(0, 20_000)
    assert 2 <= stretch < store.n_chunks // 4
    walk = store.within(20_000)._walk(larger=True)
    for number, _ in enumerate(walk):
        assert asked[-1][1] >= min(store.n_chunks, number + stretch)
    assert [first for first, _ in asked] == [0, *(last for _, last in asked[:-1])]
    assert asked[-1][1] == store.n_chunks


def test_what_lies_beside_rows_is_read_without_them(tmp_path):
    """Rows that were altered, all of them, do not matter to labels, weights and queries; a look at a row finds it."""
    targets = {"labels": np.arange(900.0), "weights": np.linspace(0, 1, 900), "queries": np.arange(900) // 7}
    store = write(tmp_path / "s", [Block(np.full((900, 40), 7.5), 40, **targets)], chunk_bytes=50_000)
    path = store.path / "part-00000.arrow"
    bytes_of_rows = np.float64(7.5).tobytes()
    altered = path.read_bytes().replace(bytes_of_rows, np.float64(7.25).tobytes())
    assert altered.count(np.float64(7.25).tobytes()) >= 900 * 40
    path.write_bytes(altered)
    store = open_store(tmp_path / "s")
    for name, column in targets.items():
        np.testing.assert_array_equal(getattr(store, name), column)
    with pytest.raises(CorruptStoreError, match="chunk 0"):
        store.rows(0, 900)


def test_sets_of_labels_are_read_without_rows(tmp_path):
    sets = LabelSets(np.array([0, 2, 2, 3]), np.array([1.0, 4.0, 2.0]))
    store = write(tmp_path / "s", [Block(np.full((3, 4), 7.5), 4, labels=sets)])
    path = store.path / "part-00000.arrow"
    path.write_bytes(path.read_bytes().replace(np.float64(7.5).tobytes(), np.float64(7.25).tobytes()))
    assert [list(row) for row in open_store(tmp_path / "s").labels] == [[1, 4], [], [2]]


@pytest.mark.parametrize("budget", [1, 2 << 20])
def test_a_store_with_a_budget_maps_no_more_than_that(tmp_path, budget):
    whole = write(tmp_path / "s", [Block(np.arange(4e6).reshape(4000, 1000), 1000)])
    store = whole.within(budget)
    most = 0
    for start in range(0, 4000, 300):
        np.testing.assert_array_equal(store.rows(start, start + 300).values, whole.rows(start, start + 300).values)
    assert resident(whole) > 30 << 20
    del whole, store
    store = open_store(tmp_path / "s").within(budget)
    for start in range(0, 4000, 300):
        store.rows(start, start + 300)
        most = max(most, resident(store))
    assert most < budget + (2 << 20)


def test_writing_and_reading_do_not_load_pandas(tmp_path):
    """It would take 45 MB that the memory budget knows nothing of."""
    code = """
import sys, numpy as np
from beeline import Block
from beeline.data.store import StoreWriter
for shuffle in (None, 1):
    with StoreWriter(sys.argv[1] + str(shuffle), shuffle=shuffle) as writer:
        writer.write(Block(np.ones((9, 2)), 2, labels=np.ones(9)))
        store = writer.finish()
    assert store.gather(np.array([3, 1])).n_rows == 2
    assert len(list(store.blocks(1000))) == 1
print([name for name in ("pandas", "scipy", "sklearn") if name in sys.modules])
"""
    command = [sys.executable, "-c", code, str(tmp_path / "s")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"
