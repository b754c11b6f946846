"""Rows that are read some runs at a time, the next while the last are worked on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from beeline._thread_pool import prefetched
from beeline._types import Ints
from beeline.data.core.block import Block, concatenate
from beeline.engines import Rows

__all__ = ["Run", "prefetched_blocks", "read_some"]

_NEAR = 64  # rows between two that are read, that are read along with them

Run = tuple[int, int]
"""Rows from the first number up to the second."""


def prefetched_blocks(rows: Rows, blocks: Sequence[Sequence[Run]]) -> Iterator[tuple[Ints, Block]]:
    """(the numbers, the rows) of blocks, each of several runs; the next is read while one is worked on."""
    found = (_read(rows, runs) for runs in blocks)
    yield from found if rows.in_memory or len(blocks) < 2 else prefetched(found)


def _read(rows: Rows, runs: Sequence[Run]) -> tuple[Ints, Block]:
    """(the numbers, the rows) of several runs of rows."""
    for run in runs:
        rows.will_need(*run)
    pieces = [replace(rows.read(*run), labels=None, weights=None, queries=None) for run in runs]
    return np.concatenate([np.arange(*run) for run in runs]), concatenate(pieces)


def read_some(rows: Rows, numbers: Ints, longest: int) -> Block:
    """Rows by their numbers, in this order; they are read in runs of up to so many rows."""
    order, most = np.argsort(numbers, kind="stable"), max(_NEAR, longest)
    ordered, pieces, first = numbers[order], list[Block](), 0
    while first < len(ordered):
        last, start = first + 1, int(ordered[first])
        while last < len(ordered) and ordered[last] < min(ordered[last - 1] + _NEAR, start + most):
            last += 1
        block = _read(rows, [(start, int(ordered[last - 1]) + 1)])[1]
        pieces.append(block.gather(ordered[first:last] - start))
        first = last
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return concatenate(pieces).gather(back)
