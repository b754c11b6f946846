"""A seeded random permutation of rows that do not fit into memory.

Every row gets a 64-bit key by a seeded one-to-one mixing of its number, and the rows are put in the order of their
keys. That order is fixed by the seed and the number of rows: it does not depend on how much memory there is, on the
blocks in which the rows came, or on the number of threads. Rows with query ids get the key of their query, so that a
query stays together and in order.

Rows that do not fit into a quarter of the memory are scattered to files by ranges of keys; each file is then loaded,
sorted and passed on. A file that is too large is scattered again, by narrower ranges. So a row is written and read
once where the data are at most `_BUCKETS / 2` times the memory, twice up to `_BUCKETS² / 2` times, and so on.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from beeline._types import AnyArray
from beeline.data.core.block import Block
from beeline.data.store.buckets import Buckets, Keys, loaded
from beeline.data.store.form import Form, merged

__all__ = ["Shuffler", "keys_of"]

_BUCKETS = 64
_PIECE = 1 << 20
_LAST_KEY = 2**64 - 1


def keys_of(units: AnyArray, seed: int) -> Keys:
    """A 64-bit key for each unit (row number or query id); different units get different keys."""
    key: Keys = units.astype(np.int64).view(np.uint64).copy()
    # Each round adds a constant drawn from the seed, then mixes every bit into every other, reversibly.
    for constant in np.random.SeedSequence(seed).generate_state(2, np.uint64):
        key += constant
        key ^= key >> np.uint64(30)
        key *= np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(27)
        key *= np.uint64(0x94D049BB133111EB)
        key ^= key >> np.uint64(31)
    return key


class Shuffler:
    """Takes rows in any number of blocks and gives them back in random order.

    Parameters
    ----------
    folder
        A folder for the files in between; made when needed, removed in the end.
    seed
        Picks the permutation.
    memory
        Bytes that may be held beyond the block at hand.
    """

    def __init__(self, folder: Path, seed: int, memory: int) -> None:
        self.seed, self.memory = seed, memory
        self._folder = folder
        self._n_rows = 0
        self._held: list[tuple[Block, Keys]] = []
        self._scatter: _Scatter | None = None

    def write(self, block: Block) -> None:
        """Take the rows of a block; nothing of it is kept but copies, as far as the memory allows."""
        for piece in block.pieces(max(1, self.memory // 4)):  # scattering copies the rows
            keys = self._keys(piece)
            if self._scatter is not None:
                self._scatter.scatter(piece, keys)
                continue
            self._held.append((merged([piece], Form.of(piece)), keys))
            if sum(b.nbytes + k.nbytes for b, k in self._held) > self.memory // 4:
                self._spill()

    def _keys(self, block: Block) -> Keys:
        first, self._n_rows = self._n_rows, self._n_rows + block.n_rows
        units = block.queries if block.queries is not None else np.arange(first, self._n_rows, dtype=np.int64)
        return keys_of(units, self.seed)

    def _spill(self) -> None:
        self._scatter = _Scatter(self._folder, 0, _LAST_KEY, _BUCKETS)
        while self._held:
            self._scatter.scatter(*self._held.pop(0))

    def sorted_blocks(self, form: Form) -> Iterator[Block]:
        """All rows in the order of their keys, brought into one form; can be walked once."""
        if self._scatter is not None:
            yield from self._sorted(self._scatter, form)
        else:
            nnz = sum(block.nnz for block, _ in self._held)
            yield from _in_order(self._held, form, self._n_rows, nnz)
        self.discard()

    def discard(self) -> None:
        """Remove all files."""
        self._held.clear()
        if self._scatter is not None:
            self._scatter.abandon()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _sorted(self, scatter: _Scatter, form: Form) -> Iterator[Block]:
        scatter.close()
        for bucket in scatter.buckets:
            if bucket is None:
                continue
            size = bucket.size_in(form)
            if size <= self.memory // 2:
                yield from _in_order(bucket.records(), form, bucket.n_rows, bucket.nnz)
            elif bucket.first_key == bucket.last_key:  # one row, or one query: in order as it lies
                yield from (block for block, _ in bucket.records())
            else:
                wanted = min(_BUCKETS, 1 << (4 * size // self.memory).bit_length())
                finer = _Scatter(bucket.path.with_suffix(""), bucket.first_key, bucket.last_key, wanted)
                try:
                    for block, keys in bucket.records():
                        finer.scatter(block, keys)
                except BaseException:
                    finer.abandon()
                    raise
                bucket.path.unlink()
                yield from self._sorted(finer, form)
                continue
            bucket.path.unlink()


class _Scatter(Buckets):
    """Rows spread over files by ranges of keys between the first and the last key."""

    def __init__(self, folder: Path, first: int, last: int, wanted: int) -> None:
        self._first = np.uint64(first)
        bits = (last - first).bit_length()
        self._shift = np.uint64(max(0, bits - (wanted.bit_length() - 1)))
        super().__init__(folder, ((last - first) >> int(self._shift)) + 1)

    def scatter(self, block: Block, keys: Keys) -> None:
        """Add rows to the files of their keys."""
        self.write(block, keys, (keys - self._first) >> self._shift)


def _in_order(records: Iterable[tuple[Block, Keys]], form: Form, n_rows: int, nnz: int) -> Iterator[Block]:
    """All rows in the order of their keys, a part at a time: they are in memory once, and one part twice."""
    rows, keys = loaded(records, form, n_rows, nnz)
    order = np.argsort(keys, kind="stable")  # rows of one query share a key and keep their order
    parts = min(16, rows.nbytes // _PIECE + 1)
    step = -(-n_rows // parts)
    for start in range(0, n_rows, step):
        yield rows.gather(order[start : start + step])
