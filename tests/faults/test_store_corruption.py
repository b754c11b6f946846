"""Truncated, altered, missing, foreign and newer files are named, wherever the damage is."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beeline import Block, LinearModel, build_index, convert, from_arrays
from beeline.data.core.labels import LabelSets
from beeline.data.store import StoreWriter, open_store
from beeline.data.store.manifest import Manifest
from beeline.exceptions import CorruptStoreError, StoreError, StoreVersionError


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A small store of three parts and about ten chunks, and the bytes of its files."""
    rng = np.random.default_rng(0)
    indices = np.tile(np.arange(0, 40, 4), 200).astype(np.int32)
    block = Block(rng.normal(size=2000), 40, np.arange(0, 2001, 10), indices, labels=rng.integers(0, 2, 200) * 1.0)
    with StoreWriter(tmp_path_factory.mktemp("whole") / "s", chunk_bytes=2500, part_bytes=9000) as writer:
        writer.write(block)
        store = writer.finish()
    assert len(store.manifest.parts) == 3
    return store.path, {file.name: file.read_bytes() for file in sorted(store.path.iterdir())}


@pytest.fixture(scope="module")
def copy(whole, tmp_path_factory):
    """A copy to be damaged again and again."""
    folder = tmp_path_factory.mktemp("damaged") / "s"
    shutil.copytree(whole[0], folder)
    return folder


class Damage:
    """One file of a store with other bytes, as long as the with statement lasts."""

    def __init__(self, folder, name, content):
        self.file, self.content = folder / name, content

    def __enter__(self):
        self.before = self.file.read_bytes()
        self.file.unlink()  # a new file: the mapping of an earlier example must not see it change
        if self.content is not None:
            self.file.write_bytes(self.content)

    def __exit__(self, *_):
        self.file.unlink(missing_ok=True)
        self.file.write_bytes(self.before)


def walk(folder):
    for block in open_store(folder).blocks():
        block.scores(np.ones(block.n_features))


def gather(folder):
    store = open_store(folder)
    store.gather(np.arange(store.n_rows)[::-1])


def verify(folder):
    open_store(folder).verify()


READERS = [walk, gather, verify]


@st.composite
def places(draw, contents):
    name = draw(st.sampled_from(sorted(contents)))
    return name, draw(st.integers(0, len(contents[name]) - 1))


@settings(deadline=None, max_examples=150)
@given(data=st.data(), read=st.sampled_from(READERS), flip=st.integers(1, 255))
def test_an_altered_byte_is_found_wherever_it_is(whole, copy, data, read, flip):
    _, contents = whole
    name, position = data.draw(places(contents))
    altered = bytearray(contents[name])
    altered[position] ^= flip
    with Damage(copy, name, bytes(altered)), pytest.raises(StoreError) as caught:
        read(copy)
    assert str(copy) in str(caught.value)
    if name != "manifest.json":
        assert isinstance(caught.value, CorruptStoreError)
        assert name in str(caught.value)
    read(copy)


def test_every_byte_of_the_manifest_counts(whole, copy):
    content = whole[1]["manifest.json"]
    for position in range(len(content)):
        altered = bytearray(content)
        altered[position] ^= 1
        with Damage(copy, "manifest.json", bytes(altered)), pytest.raises(StoreError, match="/s"):
            open_store(copy)


@settings(deadline=None, max_examples=80)
@given(data=st.data(), read=st.sampled_from(READERS), longer=st.booleans())
def test_another_length_is_found(whole, copy, data, read, longer):
    _, contents = whole
    name, length = data.draw(places(contents))
    content = contents[name] + b"\0" * (length + 1) if longer else contents[name][:length]
    with Damage(copy, name, content), pytest.raises(StoreError) as caught:
        read(copy)
    assert str(copy) in str(caught.value)
    if name != "manifest.json":
        assert f"{name} was {'altered' if longer else 'truncated'}: it has {len(content):,} bytes" in str(caught.value)


def test_a_part_truncated_after_opening_is_named(whole, copy):
    store = open_store(copy)
    with Damage(copy, "part-00001.arrow", whole[1]["part-00001.arrow"][:5000]):
        with pytest.raises(CorruptStoreError, match=r"part-00001.arrow was truncated"):
            list(store.blocks())
        with pytest.raises(CorruptStoreError, match=r"part-00001.arrow was truncated"):
            store.verify()


def test_verify_reads_again_what_was_read_before(copy, whole):
    store = open_store(copy)
    list(store.blocks())
    altered = bytearray(whole[1]["part-00002.arrow"])
    altered[3000] ^= 4
    with Damage(copy, "part-00002.arrow", bytes(altered)), pytest.raises(CorruptStoreError, match=r"part-00002.arrow"):
        store.verify()
    store.verify()


@pytest.mark.parametrize("name", ["part-00000.arrow", "part-00002.arrow"])
def test_a_missing_part_is_named(copy, name):
    store = open_store(copy)
    with Damage(copy, name, None):
        for read in READERS:
            with pytest.raises(CorruptStoreError, match=f"{name} is missing"):
                read(copy)
        with pytest.raises(CorruptStoreError, match=f"{name} is missing"):
            list(store.blocks())


def test_parts_that_changed_places_are_found(copy, whole):
    with Damage(copy, "part-00000.arrow", whole[1]["part-00001.arrow"]), pytest.raises(CorruptStoreError):
        verify(copy)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "it has no manifest.json"), ("hello", "another program"), ("[1]", "another program"), ("{}", "another")],
)
def test_a_foreign_folder_is_refused(tmp_path, content, reason):
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(StoreError, match=f"{tmp_path.name} is not a beeline store: .*{reason}"):
        open_store(tmp_path)


def test_a_file_and_nothing_are_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="file is not a beeline store: it is a file"):
        open_store(tmp_path / "file")
    with pytest.raises(StoreError, match="nowhere does not exist"):
        open_store(tmp_path / "nowhere")


def test_a_newer_version_is_refused_with_a_sentence(copy, whole):
    document = json.loads(whole[1]["manifest.json"])
    document["version"] = 2
    document["something_new"] = True
    with (
        Damage(copy, "manifest.json", json.dumps(document).encode()),
        pytest.raises(StoreVersionError, match="store of version 2, and this beeline reads versions up to 1; install"),
    ):
        open_store(copy)


def test_later_additions_to_version_1_are_left_alone(copy, whole):
    manifest = replace(Manifest.load(copy), side_files={"forest": {"file": "forest.bin", "leaves": 9}})
    with Damage(copy, "manifest.json", manifest.to_bytes()):
        assert open_store(copy).manifest.side_files["forest"]["leaves"] == 9
        walk(copy)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.pop("parts"), "parts"),
        (lambda d: d.update(rows=7), "add up"),
        (lambda d: d["parts"][0].update(name="../else"), "name of a file"),
        (lambda d: d["parts"][0]["chunks"]["rows"].append(0), "length"),
        (lambda d: d.update(form={"layout": "sparse"}), "form|argument"),
    ],
)
def test_a_manifest_that_describes_no_store_is_refused(copy, whole, monkeypatch, change, reason):
    document = json.loads(whole[1]["manifest.json"])
    del document["checksum"]
    change(document)
    monkeypatch.setattr(Manifest, "to_json", lambda self: document)
    content = Manifest.load(copy).to_bytes()  # with a checksum that fits
    with Damage(copy, "manifest.json", content), pytest.raises(CorruptStoreError, match=reason):
        open_store(copy)


def test_rows_that_break_the_rules_are_found_by_verify(tmp_path, monkeypatch):
    """Checksums cannot see what was wrong from the start."""
    monkeypatch.setattr(Block, "canonical", lambda self: self)  # a writer that does not care
    block = Block(np.ones(4), 9, np.array([0, 2, 4]), np.array([1, 3, 5, 2], dtype=np.int32))
    with StoreWriter(tmp_path / "s") as writer:
        writer.write(block)
        store = writer.finish()
    with pytest.raises(CorruptStoreError, match=r"part-00000.arrow, chunk 0: row 1 .* strictly increasing"):
        store.verify()


def negate(file, column, row):
    """Change one number of a column, wherever it lies in a part."""
    content = bytearray(file.read_bytes())
    begin = content.find(column.tobytes())
    assert begin >= 0
    content[begin + 8 * row : begin + 8 * (row + 1)] = np.float64(-column[row]).tobytes()
    file.write_bytes(content)


@pytest.fixture
def weighted(tmp_path):
    """A store with labels and weights, and these."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    y, weights = np.where(X[:, 0] + rng.normal(size=500) > 0, 1.0, -1.0), rng.uniform(1, 2, 500)
    return convert(from_arrays(X, y, weights=weights), tmp_path / "s"), {"labels": y, "weights": weights}


@pytest.mark.parametrize("name", ["labels", "weights"])
@pytest.mark.parametrize("kind", ["boxes", "chunks", "forest"])
def test_an_index_does_not_hide_altered_labels_and_weights(weighted, kind, name):
    store, columns = weighted
    build_index(store, kind=kind)
    negate(store.path / "part-00000.arrow", columns[name], 7)
    with pytest.raises(CorruptStoreError, match=r"labels, weights or query ids of chunk 0"):
        LinearModel("hinge", solver="indexed").fit(open_store(store.path))


@pytest.mark.parametrize("name", ["labels", "weights"])
def test_columns_without_a_checksum_are_compared_with_that_of_their_chunks(weighted, name):
    """Stores of an earlier beeline do not have it; their manifests stay as they were, byte by byte."""
    store, columns = weighted
    parts = [replace(part, chunks=replace(part.chunks, target_checksum=None)) for part in store.manifest.parts]
    older = replace(store.manifest, parts=tuple(parts)).to_bytes()
    (store.path / "manifest.json").write_bytes(older)
    assert b"target_checksum" not in older
    assert Manifest.load(store.path).to_bytes() == older
    np.testing.assert_array_equal(getattr(open_store(store.path), name), columns[name])
    negate(store.path / "part-00000.arrow", columns[name], 7)
    with pytest.raises(CorruptStoreError, match="chunk 0"):
        getattr(open_store(store.path), name)


def labels_and_rows(folder):
    store = open_store(folder)
    assert len(store.labels) == store.n_rows
    store.chunk(0)


def test_what_arrow_cannot_read_is_an_altered_store(whole, copy):
    """Labels are read from a chunk before it is compared with its checksum as a whole."""
    name, start = "part-00000.arrow", open_store(copy).manifest.parts[0].start
    content = whole[1][name]
    for bit in range(8 * start, 8 * (start + 48)):
        altered = bytearray(content)
        altered[bit // 8] ^= 1 << bit % 8
        with Damage(copy, name, bytes(altered)), pytest.raises(CorruptStoreError, match=name):
            labels_and_rows(copy)


def test_altered_label_sets_and_queries_are_found_without_the_rows(tmp_path):
    sets = LabelSets(np.array([0, 2, 2, 3]), np.array([1.5, 2.5, 3.5]))
    block = Block(np.ones((3, 2)), 2, labels=sets, queries=np.array([71, 71, 73]))
    with StoreWriter(tmp_path / "s") as writer:
        writer.write(block)
        store = writer.finish()
    np.testing.assert_array_equal(store.labels.indptr, sets.indptr)
    file = store.path / "part-00000.arrow"
    whole = file.read_bytes()
    for old, new in ((np.array([0, 2, 2, 3], np.int32), np.array([0, 1, 2, 3], np.int32)), (np.array([73]), [72])):
        assert whole.count(old.tobytes()) == 1
        file.write_bytes(whole.replace(old.tobytes(), np.array(new, old.dtype).tobytes()))
        for name in ("labels", "queries"):
            with pytest.raises(CorruptStoreError, match=r"labels, weights or query ids of chunk 0"):
                getattr(open_store(store.path), name)


def test_the_index_of_a_store_that_was_written_anew_is_refused(weighted):
    """Even where nothing but a label differs."""
    store, columns = weighted
    build_index(store, kind="boxes")
    index = store.path / "index-boxes"
    X = np.vstack([block.values for block in store.blocks()])
    labels = np.where(np.arange(500) == 7, -columns["labels"], columns["labels"])
    other = convert(from_arrays(X, labels, weights=columns["weights"]), store.path.with_name("other"))
    shutil.copytree(index, other.path / "index-boxes")
    with pytest.raises(StoreError, match="index of other rows"):
        LinearModel("hinge", solver="indexed").fit(open_store(other.path))
