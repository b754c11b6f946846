"""Rows of a store in groups that fit the memory: near ones together, or those of random trees.

Rows that do not fit are spread over files: by the nearest of some centres that a sample of the rows has, or by trees,
whatever the order of the rows in the store. A file that is still too large is spread again, by centres of its own or by
fewer trees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from beeline._types import AnyArray, Ints
from beeline.data.core.block import Block
from beeline.data.reader import Progress
from beeline.data.store import Store
from beeline.data.store.buckets import Bucket, Buckets, Keys
from beeline.data.store.shuffle import keys_of
from beeline.kernels import order_rows

__all__ = ["RandomTrees", "scatter_rows", "spread_rows"]

_MOST_FILES = 64
_SAMPLE = 4096  # rows by which files are told apart
_ALIKE = 0.9  # of the rows in one file: they cannot be told apart


def spread_rows(store: Store, folder: Path, room: int, seed: int, progress: Progress) -> Iterator[tuple[Block, Ints]]:
    """(rows, their numbers in the store), group by group, each of at most `room` bytes, near rows together.

    Parameters
    ----------
    folder
        For the files in between: is made where it is needed, and left empty.
    """

    def places() -> _Places:
        return _Centres(store.gather(_some(store.n_rows, seed)), store.nbytes, room, seed)

    return _Spread(store, room).rows(folder, places, progress)


def scatter_rows(
    store: Store, folder: Path, room: int, trees: RandomTrees, progress: Progress
) -> Iterator[tuple[Block, Ints]]:
    """(rows, their numbers in the store), group by group, each of at most `room` bytes, or of one tree; whole trees."""
    return _Spread(store, room).rows(folder, lambda: _Trees(trees, 0, trees.count, store.nbytes, room), progress)


class RandomTrees:
    """Which tree of a forest a row belongs to: R random blocks of the rows (I19).

    Parameters
    ----------
    count
        R.
    seed
        Of the draw; rows that an index draws by the same seed for another purpose are others.
    """

    def __init__(self, count: int, seed: int) -> None:
        self.count, self._seed = count, (seed << 8) | 1

    def of(self, numbers: AnyArray) -> Ints:
        """The tree of each row, by its number in the store: from 0 to R − 1, each as likely as any other."""
        keys = keys_of(numbers, self._seed) >> np.uint64(32)
        return ((keys * np.uint64(self.count)) >> np.uint64(32)).astype(np.int64)


class _Places(ABC):
    """Which of several files a row goes to.

    Attributes
    ----------
    count
        How many files there are.
    divisible
        Whether a file that is too large, and cannot be spread again, may be cut anywhere.
    """

    count: int
    divisible: bool

    @abstractmethod
    def of(self, block: Block, keys: Keys) -> AnyArray:
        """The file of each row, by the row and its number in the store."""

    @abstractmethod
    def finer(self, file: int, bucket: Bucket, size: int) -> _Places | None:
        """How to spread a file of so many bytes again; None: it cannot be."""


class _Spread:
    """Files of rows, and of files that are too large."""

    def __init__(self, store: Store, room: int) -> None:
        self.store, self.form, self.room = store, store.manifest.form, room

    def rows(self, folder: Path, places: Callable[[], _Places], progress: Progress) -> Iterator[tuple[Block, Ints]]:
        """All rows, group by group."""
        store = self.store
        if store.nbytes <= self.room:
            progress.start("ordering", store.nbytes)
            yield store.rows(0, store.n_rows), np.arange(store.n_rows)
            return
        progress.start("spreading", store.nbytes)
        first = places()
        buckets = self._over_files(folder, self._numbered(progress), first)
        progress.start("ordering", store.nbytes)
        for block, keys in self._groups(buckets, first):
            yield block, keys.astype(np.int64)
        folder.rmdir()

    def _numbered(self, progress: Progress) -> Iterator[tuple[Block, Keys]]:
        row = 0
        for block in self.store.blocks(max(1, self.room // 2)):
            yield block, np.arange(row, row + block.n_rows, dtype=np.uint64)
            row += block.n_rows
            progress.advance(block.nbytes, block.n_rows)

    def _over_files(self, folder: Path, records: Iterable[tuple[Block, Keys]], places: _Places) -> Buckets:
        buckets = Buckets(folder, places.count)
        try:
            for block, keys in records:
                buckets.write(block, keys, places.of(block, keys))
            buckets.close()
        except BaseException:
            buckets.abandon()
            raise
        return buckets

    def _groups(self, buckets: Buckets, places: _Places) -> Iterator[tuple[Block, Keys]]:
        """The rows of all files; these are removed on the way."""
        for number, bucket in enumerate(buckets.buckets):
            if bucket is not None:
                yield from self._rows_of(number, bucket, places)
                bucket.path.unlink()

    def _rows_of(self, number: int, bucket: Bucket, places: _Places) -> Iterator[tuple[Block, Keys]]:
        size = bucket.size_in(self.form)
        finer = places.finer(number, bucket, size) if size > self.room and bucket.n_rows > 1 else None
        if size > self.room and finer is None and places.divisible:
            yield from bucket.records()
        elif finer is None:
            yield bucket.loaded(self.form)
        else:
            folder = bucket.path.with_suffix("")
            yield from self._groups(self._over_files(folder, bucket.records(), finer), finer)
            folder.rmdir()


class _Centres(_Places):
    """By the nearest of the means of groups of rows that are near each other, in a sample."""

    divisible = True

    def __init__(self, sample: Block, nbytes: int, room: int, seed: int) -> None:
        self._nbytes, self._room, self._seed = nbytes, room, seed
        bare = Block(sample.values, sample.n_features, sample.indptr, sample.indices)
        order, count = np.arange(bare.n_rows), _files(nbytes, room)
        ends = order_rows(bare.arrays, order, [bare.n_rows], -(-bare.n_rows // count), seed)
        starts = [0, *ends[:-1]]
        self.count = len(ends)
        self._centres = np.empty((bare.n_features, self.count))
        for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
            part = np.zeros(bare.n_rows)
            part[order[start:end]] = 1 / (end - start)
            self._centres[:, k] = bare.transposed(part)
        self._halves = 0.5 * np.square(self._centres).sum(axis=0)

    def of(self, block: Block, keys: Keys) -> AnyArray:
        """The number of the nearest centre of each row, by ‖x − c‖² = ‖x‖² − 2(xᵀc − ½‖c‖²)."""
        if self.count == 1:
            return np.zeros(block.n_rows, np.int64)
        nearest: AnyArray = (block.scores(self._centres) - self._halves).argmax(axis=1)
        return nearest

    def finer(self, file: int, bucket: Bucket, size: int) -> _Places | None:
        """Centres of a sample of its own, unless nearly all rows went there."""
        if size > _ALIKE * self._nbytes:
            return None
        first, _ = next(iter(bucket.records()))
        return _Centres(first.gather(_some(first.n_rows, self._seed)), size, self._room, self._seed)


class _Trees(_Places):
    """By runs of trees, first … last − 1."""

    divisible = False

    def __init__(self, trees: RandomTrees, first: int, last: int, nbytes: int, room: int) -> None:
        self._trees, self._first, self._last, self._room = trees, first, last, room
        self.count = min(last - first, _files(nbytes, room))

    def of(self, block: Block, keys: Keys) -> AnyArray:
        """The number of the run in which the tree of each row is."""
        return (self._trees.of(keys) - self._first) * self.count // (self._last - self._first)

    def finer(self, file: int, bucket: Bucket, size: int) -> _Places | None:
        """Fewer trees to a file."""
        n = self._last - self._first
        first, last = (self._first - (-k * n // self.count) for k in (file, file + 1))
        return _Trees(self._trees, first, last, size, self._room) if last > first + 1 else None


def _files(nbytes: int, room: int) -> int:
    """As many files as are needed, twice over."""
    return min(_MOST_FILES, 2 * -(-nbytes // room))


def _some(n: int, seed: int) -> Ints:
    """The numbers of some rows, drawn at random, in increasing order."""
    return np.sort(np.random.default_rng(seed).permutation(n)[:_SAMPLE]) if n > _SAMPLE else np.arange(n)
