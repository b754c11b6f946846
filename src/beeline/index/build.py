"""Building an index: rows are brought into an order in which neighbours are alike, in bounded memory.

Where rows do not fit the memory, those near each other, or those of a tree, are brought together first, in files
(`spreading`), and each file is then put in order by itself: a row is read and written twice, and once where all rows
fit.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from beeline._thread_pool import prefetched
from beeline._types import Floats, Ints
from beeline.data.core.block import Block
from beeline.data.options import parse_size
from beeline.data.reader import NoProgress, Progress
from beeline.data.store import Store
from beeline.data.store.folder import PartialFolder, writing
from beeline.index.forest_writing import trees_of
from beeline.index.guides import GuideWriter
from beeline.index.index import StoreIndex, folder_of
from beeline.index.info import IndexInfo
from beeline.index.settings import IndexSettings
from beeline.index.spreading import scatter_rows, spread_rows
from beeline.index.writing import IndexWriter

__all__ = ["build_index"]

_PART, _PIECE = 6, 8  # of the memory: for rows that are put in order together, and for rows on their way


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
        `boxes`, `chunks` or `forest`.
    memory
        Bytes that may be held.
    settings
        How to build it.
    progress
        Is told how far it is.
    """
    folder, budget = folder_of(store, kind), parse_size(memory)
    place = PartialFolder(folder, overwrite=True, owned=True)
    how = _fitting((settings or IndexSettings()).of(kind), store, max(1, budget // _PART))
    try:
        with writing(folder):
            info = _build(
                store.within(max(1, budget // _PIECE)), kind, how, place.create(), budget, progress or NoProgress()
            )
            place.commit()
    finally:
        place.discard()
    return StoreIndex(folder, info, store.memory)


def _fitting(settings: IndexSettings, store: Store, room: int) -> IndexSettings:
    """With trees no larger than half of the room, which the rows of a tree have to fit."""
    rows = max(1, store.n_rows * room // max(1, 2 * store.nbytes))
    return replace(settings, tree_size=min(settings.tree_size, rows))


def _build(
    store: Store, kind: str, settings: IndexSettings, folder: Path, memory: int, progress: Progress
) -> IndexInfo:
    clock, room, spread = time.perf_counter(), max(1, memory // _PART), folder / "spread"
    writer = IndexWriter(folder, store, kind, settings)
    if kind == "forest":
        groups = scatter_rows(store, spread, room, trees_of(store.n_rows, settings), progress)
    else:
        groups = spread_rows(store, spread, room, settings.seed, progress)
    try:
        for arranged in prefetched(_arranged(groups, writer.guide, labelled=bool(store.label_counts))):
            for piece in writer.write(*arranged):
                progress.advance(piece.nbytes, piece.n_rows)
            del arranged
        return writer.finish(time.perf_counter() - clock)
    except BaseException:
        writer.abandon()
        shutil.rmtree(spread, ignore_errors=True)
        raise


def _arranged(
    groups: Iterator[tuple[Block, Ints]], guide: GuideWriter, *, labelled: bool
) -> Iterator[tuple[Block, Ints, Ints, Floats | None]]:
    """Of each group: rows in the order of leaves, where leaves end, their numbers, and labels if these are classes."""
    for block, numbers in groups:
        labels = block.labels if labelled and isinstance(block.labels, np.ndarray) else None
        bare = Block(block.values, block.n_features, block.indptr, block.indices)
        order, ends = guide.arrange(bare, numbers, labels)
        yield bare.gather(order), ends, numbers[order], None if labels is None else labels[order]
