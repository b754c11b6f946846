"""The code in docs/store.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import beeline
from beeline import Block
from beeline.data.store import StoreWriter

DOCUMENT = (Path(__file__).parents[2] / "docs" / "store.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)


@pytest.fixture
def example_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    n = 300
    indices = np.tile(np.array([1, 4, 9], dtype=np.int32), n)
    block = Block(np.arange(3.0 * n), 10, np.arange(0, 3 * n + 1, 3), indices, labels=np.arange(n) % 2 * 1.0)
    with StoreWriter("train.store", chunk_bytes=5000) as writer:
        writer.write(block)
        return writer.finish()


def test_reading_with_pyarrow_alone(example_store, capsys):
    assert "beeline" not in SNIPPETS[0].replace("train.store", "")
    names = {}
    exec(SNIPPETS[0], names)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == example_store.n_chunks > 1
    assert all("labels [0. 1.]" in line for line in lines)
    last = example_store.chunk(example_store.n_chunks - 1)
    for name in ("indptr", "indices", "values", "labels"):
        np.testing.assert_array_equal(names[name], getattr(last, name))


def test_reading_with_beeline(example_store, capsys):
    assert len(SNIPPETS) == 2
    names = {}
    exec(SNIPPETS[1], names)
    assert names["first"].n_rows == 100
    np.testing.assert_array_equal(names["some"].labels, [1, 1, 1])
    assert capsys.readouterr().out.count("\n") == example_store.n_chunks + 1


def test_every_field_of_the_manifest_is_described(example_store):
    described = set(re.findall(r"`(\w+)`", DOCUMENT))
    document = example_store.manifest.to_json()
    fields = {*document, *document["form"], *document["statistics"], *document["parts"][0]}
    fields |= {*document["parts"][0]["chunks"], *document["statistics"]["labels"]}
    assert fields <= described
    assert beeline.Store.__name__ in DOCUMENT
