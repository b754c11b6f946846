"""Sources within a memory budget: in memory, in a store that goes away, in a cache that stays."""

from __future__ import annotations

import gc
import os
import weakref

import numpy as np
import pytest

import beeline
from beeline.data import bounded
from beeline.exceptions import ParameterError, StoreError

LINES = "".join(f"{1 if k % 3 else -1} 1:{k} 4:{0.5 * k}\n" for k in range(500))


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """A file, and a folder for what is there for a while, in which nothing else is."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr("tempfile.tempdir", None)
    path = tmp_path / "rows.svm"
    path.write_text(LINES)
    return path


def left(tmp_path):
    return [path.name for path in (tmp_path / "scratch").iterdir()]


def test_rows_that_fit_are_held(rows, tmp_path):
    data = beeline.read(rows, memory="1M")
    assert isinstance(data, beeline.ArrayDataset)
    assert left(tmp_path) == []


def test_rows_that_do_not_fit_are_on_disk_for_as_long_as_they_are_needed(rows, tmp_path):
    whole = beeline.read(rows)
    data = beeline.read(rows, memory="2K")
    assert isinstance(data, beeline.Store)
    assert data.memory == 256
    assert len(left(tmp_path)) == 1
    np.testing.assert_array_equal(data.rows(0, 500).to_dense(), whole.X.toarray())
    view = data.within(100)
    del data
    gc.collect()
    np.testing.assert_array_equal(view.labels, whole.labels)
    del view
    gc.collect()
    assert left(tmp_path) == []


@pytest.mark.parametrize("memory", [None, "2K"])
def test_a_cache_is_read_as_long_as_the_source_is_the_same(rows, tmp_path, monkeypatch, memory):
    converted = []
    convert = bounded.convert
    monkeypatch.setattr(bounded, "convert", lambda *args, **more: converted.append(1) or convert(*args, **more))
    cache = tmp_path / "deep" / "cache"
    for _ in range(3):
        data = beeline.read(rows, memory=memory, cache=cache)
        assert isinstance(data, beeline.ArrayDataset if memory is None else beeline.Store)
        assert data.n_rows == 500
    assert (len(converted), len(list(cache.iterdir()))) == (1, 1)
    assert left(tmp_path) == []
    beeline.read(rows, memory=memory, cache=cache, dtype="float32")
    assert len(converted) == 2
    os.utime(rows, ns=(1, 1))
    beeline.read(rows, memory=memory, cache=cache)
    assert len(converted) == 3
    rows.write_text(LINES + "1 1:5\n")
    assert beeline.read(rows, memory=memory, cache=cache).n_rows == 501


def test_a_cache_that_is_damaged_is_made_anew(rows, tmp_path):
    beeline.read(rows, cache=tmp_path / "cache")
    (store,) = (tmp_path / "cache").iterdir()
    (store / "part-00000.arrow").write_bytes(b"")
    assert beeline.read(rows, cache=tmp_path / "cache").n_rows == 500
    beeline.open_store(store).verify()


def test_what_cannot_be_a_cache(rows, tmp_path):
    with pytest.raises(StoreError, match=r"rows\.svm cannot be used as a cache: .*; name another folder"):
        beeline.read(rows, cache=rows)
    store = beeline.convert(rows, tmp_path / "s")
    with pytest.raises(ParameterError, match="cache has no meaning for a store"):
        beeline.read(store.path, cache=tmp_path / "cache")


@pytest.mark.parametrize(("option", "value"), [("memory", "1M"), ("cache", "somewhere")])
def test_what_is_in_memory_already_has_no_budget(option, value):
    with pytest.raises(ParameterError, match=f"^{option} has no meaning for a source that is no file, but ndarray"):
        beeline.read(np.ones((3, 2)), **{option: value})


def test_a_store_that_does_not_fit_is_not_read(rows, tmp_path):
    store = beeline.convert(rows, tmp_path / "s")
    assert isinstance(beeline.read(store.path, memory="1M"), beeline.ArrayDataset)
    data = beeline.read(store.path, memory="2K")
    assert (type(data), data.memory) == (beeline.Store, 256)


def test_a_size_must_be_one(rows):
    with pytest.raises(ParameterError, match="'lots' is not a size; write it as 512M or 4G"):
        beeline.read(rows, memory="lots")


def test_a_forked_child_leaves_the_rows_to_its_parent(rows, tmp_path):
    data = beeline.read(rows, memory="2K")
    child = os.fork()
    if not child:
        del data
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    assert len(left(tmp_path)) == 1
    assert sum(block.n_rows for block in data.blocks()) == 500


def test_a_cache_alone_keeps_nothing_open(rows, tmp_path):
    seen = weakref.ref(beeline.read(rows, cache=tmp_path / "kept"))
    gc.collect()
    assert seen() is None
