"""Rows that are read some runs at a time, the next while the last are worked on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from beeline._thread_pool import prefetched
from beeline._types import Ints
from beeline.data.core.block import Block, concatenate
from beeline.engines import Rows

__all__ = ["Picks", "Reading", "Run", "prefetched_blocks", "read_some"]

_NEAR = 64  # rows between two that are read, that are read along with them

Run = tuple[int, int]
"""Rows from the first number up to the second."""

Picks = list[tuple[Block, Ints]]
"""Rows by their places in blocks that were read, without labels, weights and queries."""


class Reading(NamedTuple):
    """Runs of rows that are read together, and how many blocks are made of them: of each a part of every run."""

    runs: Sequence[Run]
    n_blocks: int = 1


def prefetched_blocks(rows: Rows, readings: Sequence[Reading]) -> Iterator[tuple[Ints, Picks]]:
    """(the numbers, the rows) of blocks; what is read next is read while blocks are worked on.

    Rows are not copied: whoever takes a block does so, once, and gives up the picks before asking for the next block.
    """
    found = ((reading, _read(rows, reading.runs)) for reading in readings)
    for reading, pieces in found if rows.in_memory or len(readings) < 2 else prefetched(found):
        for part in range(reading.n_blocks):
            own = [np.arange(*_part(run, part, reading.n_blocks)) for run in reading.runs]
            places = [numbers - start for numbers, (start, _) in zip(own, reading.runs, strict=True)]
            yield np.concatenate(own), list(zip(pieces, places, strict=True))
        pieces.clear()  # before the next reading begins


def _part(run: Run, part: int, n_parts: int) -> Run:
    """One of so many parts of a run."""
    first, last = run
    return first + (last - first) * part // n_parts, first + (last - first) * (part + 1) // n_parts


def _read(rows: Rows, runs: Sequence[Run]) -> list[Block]:
    """The rows of several runs, a block each."""
    for run in runs:
        rows.will_need(*run)
    return [_held(rows, run) for run in runs]


def _held(rows: Rows, run: Run) -> Block:
    """The rows of a run, that keep no others in memory."""
    block = _bare(rows, run)
    return block if rows.in_memory or not block.is_view else block.gather(np.arange(block.n_rows))


def _bare(rows: Rows, run: Run) -> Block:
    """The rows of a run, without what goes with them."""
    return replace(rows.read(*run), labels=None, weights=None, queries=None)


def read_some(rows: Rows, numbers: Ints, longest: int) -> Block:
    """Rows by their numbers, in this order; they are read in runs of up to so many rows."""
    order, most = np.argsort(numbers, kind="stable"), max(_NEAR, longest)
    ordered, pieces, first = numbers[order], list[Block](), 0
    while first < len(ordered):
        last, start = first + 1, int(ordered[first])
        while last < len(ordered) and ordered[last] < min(ordered[last - 1] + _NEAR, start + most):
            last += 1
        block = _bare(rows, (start, int(ordered[last - 1]) + 1))
        pieces.append(block.gather(ordered[first:last] - start))
        first = last
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return concatenate(pieces).gather(back)
