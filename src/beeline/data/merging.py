"""Equal rows become one row with their weights added: KDD99 has three rows for one that differs.

Which rows are equal is told by 128 bits of each, so that two passes and some sixty bytes a row do. That two rows which
differ have the same bits has a chance of 10⁻²⁰ among a billion rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block
from beeline.data.core.dataset import Dataset
from beeline.data.core.labels import LabelSets
from beeline.data.options import size_in_words
from beeline.data.reader import Progress, Reader
from beeline.data.recipe.hashing import mixed
from beeline.data.recipe.recipe import Recipe
from beeline.exceptions import DataError, ParameterError

__all__ = ["MergingReader", "row_keys"]

_ROW_BYTES = 64
_SEEDS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03))


class MergingReader(Reader):
    """Walks a data set, with one row for all that have the same features and label.

    Rows keep the order of their first appearance. A row's weight is the sum of the weights of all that it stands for,
    where they had none their number.
    """

    def __init__(self, data: Dataset, progress: Progress | None = None) -> None:
        super().__init__(progress)
        if data.queries is not None:
            raise DataError(Sentence("rows that belong to queries cannot be merged; leave ", Argument("merge"), " out"))
        if isinstance(data.labels, LabelSets):
            raise DataError(Sentence("rows with sets of labels cannot be merged; leave ", Argument("merge"), " out"))
        self._data = data
        self._first: Ints = np.zeros(0, np.int64)
        self._weights: Floats = np.zeros(0)

    def prepare(self, memory: int) -> None:
        """Find the rows that are equal; one walk."""
        n = self._data.n_rows
        if _ROW_BYTES * n > memory:
            raise ParameterError(
                f"to merge {n:,} rows takes about {size_in_words(_ROW_BYTES * n)} of memory, more than the "
                f"{size_in_words(memory)} that there are for it; give more, or leave ",
                Argument("merge"),
                " out",
                parameter="memory",
            )
        self.progress.start("merging", None)
        keys, row = np.empty((n, 2), np.uint64), 0
        for block in self._data.blocks(memory // 2):
            keys[row : row + block.n_rows] = row_keys(block)
            row += block.n_rows
            self.progress.advance(block.nbytes, block.n_rows)
        self._first, self._weights = _merged(keys, self._data.weights)

    def blocks(self, memory: int) -> Iterator[Block]:
        """The first row of each kind, in order, with the weight of all."""
        self.progress.start("reading", None)
        row = 0
        for block in self._data.blocks(memory):
            here = slice(*np.searchsorted(self._first, [row, row + block.n_rows]))
            row += block.n_rows
            if here.start == here.stop:
                continue
            kept = block.gather(self._first[here] - (row - block.n_rows))
            yield replace(kept, weights=self._weights[here].copy())
            self.progress.advance(kept.nbytes, kept.n_rows)

    @property
    def recipe(self) -> Recipe:
        """That of the data."""
        return self._data.recipe or Recipe(n_features=self._data.n_features)


def row_keys(block: Block) -> AnyArray:
    """128 bits that tell a row's features and label, whatever the order of its entries: of shape (n, 2), unsigned."""
    if block.indptr is None or block.indices is None:
        n, d = block.values.shape
        indices, values = np.tile(np.arange(d), n), block.values.ravel()
        starts = d * np.arange(n + 1)
    else:
        first = int(block.indptr[0])
        entries = slice(first, int(block.indptr[-1]))
        indices, values, starts = block.indices[entries], block.values[entries], block.indptr - first
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # where −0 and 0 are the same
    keys = np.empty((block.n_rows, 2), np.uint64)
    for k, seed in enumerate(_SEEDS):
        numbers = mixed(bits ^ mixed(indices.astype(np.uint64) + seed))
        numbers[bits == 0] = 0  # an entry that is zero is as good as absent
        keys[:, k] = _sums(numbers, starts)
        if block.labels is not None:
            labels = (np.asarray(block.labels, np.float64) + 0.0).view(np.uint64)
            keys[:, k] += mixed(labels + seed)
    return keys


def _sums(entries: AnyArray, starts: AnyArray) -> AnyArray:
    """The sum of each row's entries, modulo 2⁶⁴."""
    sums = np.zeros(len(starts) - 1, np.uint64)
    filled = starts[1:] > starts[:-1]
    if filled.any():
        sums[filled] = np.add.reduceat(entries, starts[:-1][filled])
    return sums


def _merged(keys: AnyArray, weights: Floats | None) -> tuple[Ints, Floats]:
    """(the first row of each kind, in increasing order; the weight of all rows of its kind)."""
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    ordered = keys[order]
    begins = np.flatnonzero(np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1)))
    first = order[begins]  # the sort keeps the order of equal rows
    each = np.ones(len(keys)) if weights is None else weights
    totals = np.add.reduceat(each[order], begins) if len(keys) else np.zeros(0)
    by_place = np.argsort(first)
    return first[by_place], totals[by_place]
