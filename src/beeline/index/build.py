"""Building an index: rows are brought into an order in which neighbours are alike, in bounded memory.

Where rows do not fit the memory, those near each other are brought together first, in files (`spreading`), and each
file is then put in order by itself: a row is read and written twice, and once where all rows fit.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np

from beeline._types import Floats, Ints
from beeline.data.core.block import Block
from beeline.data.options import parse_size
from beeline.data.reader import NoProgress, Progress
from beeline.data.store import Store
from beeline.data.store.folder import PartialFolder, writing
from beeline.index.index import StoreIndex, folder_of
from beeline.index.info import IndexInfo
from beeline.index.settings import IndexSettings
from beeline.index.spreading import spread_rows
from beeline.index.writing import IndexWriter
from beeline.kernels import order_rows

__all__ = ["build_index"]

_PART, _PIECE = 4, 8  # of the memory: for rows that are put in order together, and for rows on their way


def build_index(
    store: Store,
    kind: str,
    *,
    memory: int | str = "512M",
    settings: IndexSettings | None = None,
    progress: Progress | None = None,
) -> StoreIndex:
    """Build an index of a store, beside its rows; one of the same kind that is there is replaced.

    Until it is whole and on the disk, nothing is changed.

    Parameters
    ----------
    store
        The store.
    kind
        `boxes` or `chunks`.
    memory
        Bytes that may be held.
    settings
        How to build it.
    progress
        Is told how far it is.
    """
    folder, budget = folder_of(store, kind), parse_size(memory)
    place = PartialFolder(folder, overwrite=True)
    how = (settings or IndexSettings()).of(kind)
    try:
        with writing(folder):
            info = _build(
                store.within(max(1, budget // _PIECE)), kind, how, place.create(), budget, progress or NoProgress()
            )
            place.commit()
    finally:
        place.discard()
    return StoreIndex(folder, info, store.memory)


def _build(
    store: Store, kind: str, settings: IndexSettings, folder: Path, memory: int, progress: Progress
) -> IndexInfo:
    clock = time.perf_counter()
    assert settings.leaf_rows is not None
    writer = IndexWriter(folder, store, kind, settings)
    try:
        for block, numbers in spread_rows(store, folder / "spread", max(1, memory // _PART), settings.seed, progress):
            labels = block.labels if isinstance(block.labels, np.ndarray) and store.label_counts else None
            bare = Block(block.values, block.n_features, block.indptr, block.indices)
            order, groups = _by_class(block.n_rows, labels if kind == "boxes" else None)
            ends = np.asarray(order_rows(bare.arrays, order, groups, settings.leaf_rows, settings.seed), np.int64)
            ordered = bare.gather(order)
            del block, bare
            for piece in writer.write(ordered, ends, numbers[order], None if labels is None else labels[order]):
                progress.advance(piece.nbytes, piece.n_rows)
        return writer.finish(time.perf_counter() - clock)
    except BaseException:
        writer.abandon()
        shutil.rmtree(folder / "spread", ignore_errors=True)
        raise


def _by_class(n: int, labels: Floats | None) -> tuple[Ints, list[int]]:
    """Row numbers, those of each class together, and where the classes end: a leaf of one class says more."""
    if labels is None:
        return np.arange(n), [n]
    order = np.argsort(labels, kind="stable").astype(np.int64)
    return order, [*(np.flatnonzero(np.diff(labels[order])) + 1).tolist(), n]
