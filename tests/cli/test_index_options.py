"""`beeline index` builds forests, and says in a sentence what cannot be built."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

import beeline
from beeline.exceptions import ParameterError
from beeline.fitting.indexing import build_index
from beeline.index import open_index


@pytest.fixture
def store(tmp_path):
    """A store of 900 rows in the folder where commands run."""
    random = np.random.default_rng(0)
    X = random.normal(size=(900, 6)) * (random.random((900, 6)) < 0.6)
    y = np.where(X @ np.ones(6) + 0.3 * random.normal(size=900) > 0, 1.0, -1.0)
    return beeline.convert(iter([(sp.csr_matrix(X), y)]), tmp_path / "rows.store")


def test_a_forest_as_it_was_asked_for(quickly, store):
    arguments = ["--kind", "forest", "--tree-size", "300", "--width", "4", "--leaf-rows", "20", "--seed", "7", "--json"]
    done = quickly("index", "rows.store", *arguments)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    settings = {name: facts["settings"][name] for name in ("tree_size", "width", "leaf_rows", "seed")}
    assert settings == {"tree_size": 300, "width": 4, "leaf_rows": 20, "seed": 7}
    index = open_index(store, "forest")
    assert index.guide.shapes.count == 3
    assert index.guide.shapes.widths.max() <= 4
    assert (index.ends - index.starts).max() <= 20
    assert facts["leaves"] == index.n_leaves
    assert facts["bytes"] == index.nbytes


def test_info_shows_it(quickly, store):
    quickly("index", "rows.store", "--kind", "forest")
    shown = quickly("info", "rows.store").stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("index")]
    index = open_index(store, "forest")
    assert line.split()[1:4] == ["forest:", f"{index.n_leaves}", "leaves,"]
    assert "of the rows), built in" in line
    (facts,) = json.loads(quickly("info", "rows.store", "--json").stdout)["indexes"]
    assert {"kind", "bytes", "leaves", "seconds"} <= set(facts)


def test_training_through_it(quickly, store):
    quickly("index", "rows.store", "--kind", "forest", "--tree-size", "300", "--width", "4")
    how = [
        "--loss",
        "hinge",
        "--solver",
        "indexed",
        "--solver-setting",
        "variant=ibcd",
        "--solver-setting",
        "stop=sample",
    ]
    done = quickly("train", "rows.store", "-o", "model.json", *how)
    assert done.returncode == 0, done.stderr
    assert "indexed" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--kind", "forest", "--width", "1"], "--width"),
        (["--kind", "forest", "--tree-size", "0"], "--tree-size"),
        (["--kind", "forest", "--samples", "3"], "--samples is for the kind chunks, not forest; leave it out"),
        (["--kind", "boxes", "--tree-size", "300"], "--tree-size is for the kind forest, not boxes; leave it out"),
        (["--kind", "trees"], "--kind"),
    ],
)
def test_what_cannot_be_built(quickly, store, arguments, sentence):
    done = quickly("index", "rows.store", *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (store.path / "index-forest").exists()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"width": 1}, "width must be at least 2, not 1"),
        ({"tree_size": 2.5}, "tree_size must be a whole number, not 2.5"),
        ({"leaf_rows": "many"}, "leaf_rows must be a whole number, not 'many'"),
        ({"samples": 4}, "samples is for the kind chunks, not forest"),
        ({"height": 4}, "an index has no setting 'height'; there are leaf_rows"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_the_same_in_python(store, settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        build_index(store, "forest", **settings)
