"""Stores with an index, for tests."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import beeline
from beeline.engines import Threads
from beeline.index import IndexedRows, IndexSettings, build_index
from beeline.objective import Objective
from beeline.regularizers import L2

SETTINGS = {
    "boxes": IndexSettings(leaf_rows=8),
    "chunks": IndexSettings(leaf_rows=40, samples=5),
    "forest": IndexSettings(leaf_rows=8, tree_size=500, width=4),
}


def clusters(n=3000, d=20, seed=0, *, dense=False, noise=0.02):
    """Rows in a few clusters, most of them far from where two classes meet."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(12, d)) * (random.random((12, d)) < 0.4)
    which = random.integers(12, size=n)
    X = (centres[which] + 0.1 * random.normal(size=(n, d))) * (random.random((n, d)) < 0.6)
    y = np.where(which % 2 == 0, 1.0, -1.0)
    y[random.random(n) < noise] *= -1
    return (X if dense else sp.csr_matrix(X)), y


def store_of(path, X, y, **how):
    """A store in a new folder."""
    return beeline.convert(iter([(X, y)]), path, **how)


def indexed(path, X, y, kind, settings=None, memory="512M"):
    """A store, and its index."""
    store = store_of(path, X, y)
    return store, build_index(store, kind, memory=memory, settings=settings or SETTINGS[kind])


def objective_over(index, y, loss, costs=None, *, strength=1.0, intercept="free", memory=None):
    """J over the rows of an index; labels and costs in the order of the store."""
    c = np.ones(len(y)) if costs is None else costs
    return Objective.of(IndexedRows(index), y, c, loss, L2(), strength, intercept, engine=Threads(memory))
