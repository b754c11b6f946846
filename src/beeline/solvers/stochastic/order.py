"""Rows in random order, each once in a pass, from memory or from disk."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from beeline._types import Floats, Ints
from beeline.data.core.block import Block
from beeline.objective import Objective
from beeline.solvers.streaming import Run, prefetched_blocks

__all__ = ["Portion", "RandomRows"]

_PORTION = 1 << 22  # entries that are learned from before anybody looks at the clock
_LEAST_ROWS = 4096  # of a portion in memory
_BUFFER = 64 << 20  # bytes of rows on disk that are mixed in memory, where nothing is said about it
_PART = 8  # of the memory: rows that are mixed; as many are read meanwhile
_PIECES = 64  # runs of rows that are mixed at a time: of fewer, sorted ones would too often be of one class
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

    Rows in memory stay where they are, and a pass is a permutation of them. Rows on disk are read in small runs from
    random places, of whole chunks where 64 of these fit an eighth of the memory and else of parts of chunks; that many
    are mixed, while the next ones are read. So rows that lie sorted by their class come mixed all the same. (A window
    that slides over the rows as they lie would show one class after the other.)

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
            return self._from_disk(number, first)
        return islice(self._from_memory(number, *self._here), first, None)

    def _from_memory(self, number: int, block: Block, labels: Floats, costs: Floats) -> Iterator[Portion]:
        n = block.n_rows
        order = np.random.default_rng([self.seed, number]).permutation(n)
        size = max(_LEAST_ROWS, _PORTION * n // max(1, block.nnz))
        size = -(-size // self.multiple) * self.multiple
        for start in range(0, n, size):
            yield Portion(block, order[start : start + size], labels, costs)

    def _from_disk(self, number: int, first: int) -> Iterator[Portion]:
        o, mixtures = self.objective, self._mixtures(np.random.default_rng([self.seed, number]))[first:]
        for k, (numbers, block) in enumerate(prefetched_blocks(o.rows, mixtures), first):
            labels, costs = o.rows.pick(o.labels, numbers), o.rows.pick(o.costs, numbers)
            random = np.random.default_rng([self.seed, number, k])
            yield Portion(block, random.permutation(len(numbers)), labels, costs)

    def _pieces(self, nbytes: int, row_bytes: float) -> list[Run]:
        """All rows in runs of about so many bytes: of whole chunks, or of parts of one."""
        most = max(1, int(nbytes / row_bytes))
        whole = self.objective.rows.runs(max(1, nbytes))
        return [(at, min(at + most, stop)) for start, stop in whole for at in range(start, stop, most)]

    def _mixtures(self, random: np.random.Generator) -> list[list[Run]]:
        """The runs that are mixed with each other: all runs, in random order, as many at a time as fit."""
        rows = self.objective.rows
        room = _BUFFER if rows.memory is None else max(1, rows.memory // _PART)
        row_bytes = _ROW_BYTES + _ENTRY_BYTES * rows.nnz / max(1, rows.n_rows)
        runs = self._pieces(room // _PIECES, row_bytes)
        mixtures: list[list[Run]] = []
        held = 0.0
        for k in random.permutation(len(runs)).tolist():
            size = row_bytes * (runs[k][1] - runs[k][0])
            if not mixtures or held + size > room:
                mixtures.append([])
                held = 0.0
            mixtures[-1].append(runs[k])
            held += size
        return mixtures
