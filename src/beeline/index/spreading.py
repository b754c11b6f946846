"""Rows of a store in groups that fit the memory, near ones together.

Rows that do not fit are spread over files, by the nearest of some centres that a sample of the rows has. A file that is
still too large is spread again, by centres of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from beeline._types import AnyArray, Ints
from beeline.data.core.block import Block
from beeline.data.reader import Progress
from beeline.data.store import Store
from beeline.data.store.buckets import Bucket, Buckets, Keys
from beeline.kernels import order_rows

__all__ = ["spread_rows"]

_MOST_FILES = 64
_SAMPLE = 4096  # rows by which files are told apart
_ALIKE = 0.9  # of the rows in one file: they cannot be told apart
_PIECE = 8  # of the memory, for rows on their way


def spread_rows(store: Store, folder: Path, room: int, seed: int, progress: Progress) -> Iterator[tuple[Block, Ints]]:
    """(rows, their numbers in the store), group by group, each of at most `room` bytes.

    Parameters
    ----------
    folder
        For the files in between: is made where it is needed, and left empty.
    """
    if store.nbytes <= room:
        progress.start("ordering", store.nbytes)
        yield store.rows(0, store.n_rows), np.arange(store.n_rows)
        return
    progress.start("spreading", store.nbytes)
    spread = _Spread(store, room, seed)
    sample = store.gather(_some(store.n_rows, seed))
    buckets = spread.over_files(folder, _numbered(store, room, progress), store.nbytes, sample)
    progress.start("ordering", store.nbytes)
    yield from spread.groups(buckets, store.nbytes)
    folder.rmdir()


def _numbered(store: Store, room: int, progress: Progress) -> Iterator[tuple[Block, Keys]]:
    row = 0
    for block in store.blocks(max(1, room // 2)):
        yield block, np.arange(row, row + block.n_rows, dtype=np.uint64)
        row += block.n_rows
        progress.advance(block.nbytes, block.n_rows)


class _Spread:
    """Files of rows, and of files that are too large."""

    def __init__(self, store: Store, room: int, seed: int) -> None:
        self.form, self.room, self.seed = store.manifest.form, room, seed

    def over_files(self, folder: Path, records: Iterable[tuple[Block, Keys]], nbytes: int, sample: Block) -> Buckets:
        """Spread rows over as many files as are needed, twice over."""
        centres = _Centres(sample, min(_MOST_FILES, 2 * -(-nbytes // self.room)), self.seed)
        buckets = Buckets(folder, centres.count)
        try:
            for block, keys in records:
                buckets.write(block, keys, centres.nearest(block))
            buckets.close()
        except BaseException:
            buckets.abandon()
            raise
        return buckets

    def groups(self, buckets: Buckets, nbytes: int) -> Iterator[tuple[Block, Ints]]:
        """The rows of all files; these are removed on the way."""
        for bucket in buckets.buckets:
            if bucket is not None:
                yield from self._rows_of(bucket, nbytes)
                bucket.path.unlink()

    def _rows_of(self, bucket: Bucket, nbytes: int) -> Iterator[tuple[Block, Ints]]:
        size = bucket.size_in(self.form)
        if size <= self.room or bucket.n_rows == 1:
            block, keys = bucket.loaded(self.form)
            yield block, keys.astype(np.int64)
        elif size > _ALIKE * nbytes:  # any cut will do
            yield from ((block, keys.astype(np.int64)) for block, keys in bucket.records())
        else:
            first, _ = next(iter(bucket.records()))
            folder, sample = bucket.path.with_suffix(""), first.gather(_some(first.n_rows, self.seed))
            yield from self.groups(self.over_files(folder, bucket.records(), size, sample), size)
            folder.rmdir()


class _Centres:
    """Means of groups of rows that are near each other, in a sample."""

    def __init__(self, sample: Block, count: int, seed: int) -> None:
        bare = Block(sample.values, sample.n_features, sample.indptr, sample.indices)
        order = np.arange(bare.n_rows)
        ends = order_rows(bare.arrays, order, [bare.n_rows], -(-bare.n_rows // count), seed)
        starts = [0, *ends[:-1]]
        self.count = len(ends)
        self._centres = np.empty((bare.n_features, self.count))
        for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
            part = np.zeros(bare.n_rows)
            part[order[start:end]] = 1 / (end - start)
            self._centres[:, k] = bare.transposed(part)
        self._halves = 0.5 * np.square(self._centres).sum(axis=0)

    def nearest(self, block: Block) -> AnyArray:
        """The number of the nearest centre of each row, by ‖x − c‖² = ‖x‖² − 2(xᵀc − ½‖c‖²)."""
        if self.count == 1:
            return np.zeros(block.n_rows, np.int64)
        nearest: AnyArray = (block.scores(self._centres) - self._halves).argmax(axis=1)
        return nearest


def _some(n: int, seed: int) -> Ints:
    """The numbers of some rows, drawn at random, in increasing order."""
    return np.sort(np.random.default_rng(seed).permutation(n)[:_SAMPLE]) if n > _SAMPLE else np.arange(n)
