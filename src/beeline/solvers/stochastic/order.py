"""Rows in random order, each once in a pass, from memory or from disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from beeline._thread_pool import prefetched
from beeline._types import Floats, Ints
from beeline.data.core.block import Block, gather_from
from beeline.objective import Objective
from beeline.solvers.streaming import Run

__all__ = ["Portion", "RandomRows"]

_PORTION = 1 << 22  # entries that are learned from before anybody looks at the clock
_LEAST_ROWS = 4096  # of a portion in memory
_POOL = 64 << 20  # bytes of rows on disk that are mixed in memory, where nothing is said about it
_PART = 4  # of the memory: rows that are mixed
_MOST_RUNS, _LEAST_RUNS = 64, 16  # of rows that are mixed: of fewer, sorted ones would too often be of one class
_STAYS = 8  # portions that have some rows of a batch
_ASKED = 4  # batches that the system is asked for before they are read
_ENTRY_BYTES, _ROW_BYTES = 12, 48  # of rows, and of what is held of each beside it


class Portion(NamedTuple):
    """Some rows of a pass.

    Attributes
    ----------
    block, order
        Rows, and the places there of those that are to be learned from, in their order.
    labels, costs
        One for each row of the block.
    """

    block: Block
    order: Ints
    labels: Floats
    costs: Floats


class RandomRows:
    """All rows in random order, pass by pass; a pass has every row once, and the same seed has the same order.

    Rows in memory stay where they are, and a pass is a permutation of them. Rows on disk are read in runs from random
    places into a pool, a quarter of the memory, batch by batch; a portion takes an eighth of the rows of each of the
    eight batches that are there, and then the oldest makes room for the next one. So each byte is read once a pass, and
    rows that lie sorted by their class come mixed all the same. (A window that slides over the rows as they lie would
    show one class after the other.) A portion is mixed while the one before is learned from, and the batch behind it is
    read meanwhile, on a thread of its own.

    A run is a chunk, or several where more than 64 of these fit the pool. Where not even 16 do, runs are parts of
    chunks, which are read several times.

    Parameters
    ----------
    objective
        The rows, with their labels and costs.
    seed
        The order.
    multiple
        The number of rows of a portion in memory is a multiple of this.
    """

    def __init__(self, objective: Objective, seed: int, multiple: int = 1) -> None:
        self.objective, self.seed, self.multiple = objective, seed, multiple
        rows = objective.rows
        self._here: tuple[Block, Floats, Floats] | None = None
        if rows.in_memory:
            labels, costs = rows.gather_local(objective.labels), rows.gather_local(objective.costs)
            self._here = rows.local(), labels, costs

    def of_pass(self, number: int, first: int = 0) -> Iterator[Portion]:
        """The portions of a pass, from one of them on."""
        if self._here is None:
            return prefetched(self._from_disk(number, first))
        return islice(self._from_memory(number, *self._here), first, None)

    def _from_memory(self, number: int, block: Block, labels: Floats, costs: Floats) -> Iterator[Portion]:
        n = block.n_rows
        order = np.random.default_rng([self.seed, number]).permutation(n)
        size = max(_LEAST_ROWS, _PORTION * n // max(1, block.nnz))
        size = -(-size // self.multiple) * self.multiple
        for start in range(0, n, size):
            yield Portion(block, order[start : start + size], labels, costs)

    def _from_disk(self, number: int, first: int) -> Iterator[Portion]:
        batches = self._batches(np.random.default_rng([self.seed, number]))
        n_portions = max(1, len(batches) - _STAYS + 1)
        read = prefetched(self._read_batches(number, batches, first, n_portions))
        pool: deque[_Rows] = deque()
        following = first
        for k in range(first, n_portions):
            while following < min(len(batches), k + _STAYS):
                pool.extend(next(read))
                following += 1
            block, labels, costs = _mixed([rows.part(k) for rows in pool])
            while pool and pool[0].stays[-1] == k:
                pool.popleft()
            random = np.random.default_rng([self.seed, number, k])
            yield Portion(block, random.permutation(len(labels)), labels, costs)

    def _read_batches(
        self, number: int, batches: list[list[Run]], first: int, n_portions: int
    ) -> Iterator[list[_Rows]]:
        """The rows of each batch from one on; the system fetches those of some more meanwhile."""
        asked = first
        for k in range(first, len(batches)):
            asked = self._ask_for(batches, asked, k + _ASKED)
            stays = range(max(0, k - _STAYS + 1), min(k, n_portions - 1) + 1)
            random = np.random.default_rng([self.seed, number, k, 1])
            yield [self._read(run, random, stays) for run in batches[k]]

    def _ask_for(self, batches: list[list[Run]], first: int, last: int) -> int:
        """Have the system fetch batches that are read soon; returns the one behind them."""
        last = min(last, len(batches))
        for batch in batches[first:last]:
            for run in batch:
                self.objective.rows.will_need(*run)
        return max(first, last)

    def _read(self, run: Run, random: np.random.Generator, stays: Sequence[int]) -> _Rows:
        o, numbers = self.objective, np.arange(*run)
        labels, costs = o.rows.pick(o.labels, numbers), o.rows.pick(o.costs, numbers)
        block, order = o.rows.read(*run), random.permutation(len(numbers))
        if block.is_view:  # of a chunk, all of which it would keep
            block, labels, costs, order = block.gather(order), labels[order], costs[order], np.arange(len(order))
        return _Rows(block, labels, costs, order, stays)

    def _batches(self, random: np.random.Generator) -> list[list[Run]]:
        """All runs in random order, as many at a time as fit an eighth of the pool."""
        rows = self.objective.rows
        room = (_POOL if rows.memory is None else max(1, rows.memory // _PART)) // _STAYS
        row_bytes = _ROW_BYTES + _ENTRY_BYTES * rows.nnz / max(1, rows.n_rows)
        runs = self._runs(room * _STAYS, row_bytes)
        batches: list[list[Run]] = []
        held = 0.0
        for k in random.permutation(len(runs)).tolist():
            size = row_bytes * (runs[k][1] - runs[k][0])
            if not batches or held + size > room:
                batches.append([])
                held = 0.0
            batches[-1].append(runs[k])
            held += size
        return batches

    def _runs(self, pool: int, row_bytes: float) -> list[Run]:
        """All rows in runs of whole chunks, or of parts of one."""
        most = max(1, int(pool / _LEAST_RUNS / row_bytes))
        whole = self.objective.rows.runs(max(1, pool // _MOST_RUNS))
        return [(at, min(at + most, stop)) for start, stop in whole for at in range(start, stop, most)]


class _Rows(NamedTuple):
    """A run of rows in the pool, in random order, and the portions they go to."""

    block: Block
    labels: Floats
    costs: Floats
    order: Ints
    stays: Sequence[int]

    def part(self, portion: int) -> tuple[_Rows, Ints]:
        """The rows that go to one of the portions."""
        n, place = len(self.order), self.stays.index(portion)
        return self, self.order[n * place // len(self.stays) : n * (place + 1) // len(self.stays)]


def _mixed(parts: list[tuple[_Rows, Ints]]) -> tuple[Block, Floats, Floats]:
    """Some rows of several runs, with their labels and costs."""
    return (
        gather_from([(rows.block, some) for rows, some in parts]),
        np.concatenate([rows.labels[some] for rows, some in parts]),
        np.concatenate([rows.costs[some] for rows, some in parts]),
    )
