"""Rows that are read some runs at a time, the next while the last are worked on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace

import numpy as np

from beeline._thread_pool import DaemonThreadPool
from beeline._types import Ints
from beeline.data.core.block import Block, concatenate
from beeline.engines import Rows

__all__ = ["Run", "read_ahead"]

Run = tuple[int, int]
"""Rows from the first number up to the second."""


def read_ahead(rows: Rows, blocks: Sequence[Sequence[Run]]) -> Iterator[tuple[Ints, Block]]:
    """(the numbers, the rows) of blocks, each of several runs; the next is read while one is worked on."""
    if rows.in_memory or len(blocks) < 2:
        yield from (_read(rows, runs) for runs in blocks)
        return
    with DaemonThreadPool(1) as pool:
        following: Future[tuple[Ints, Block]] = pool.submit(_read, rows, blocks[0])
        for runs in (*blocks[1:], None):
            found = following.result()
            if runs is not None:
                following = pool.submit(_read, rows, runs)
            yield found


def _read(rows: Rows, runs: Sequence[Run]) -> tuple[Ints, Block]:
    """(the numbers, the rows) of several runs of rows."""
    pieces = [replace(rows.read(*run), labels=None, weights=None, queries=None) for run in runs]
    return np.concatenate([np.arange(*run) for run in runs]), concatenate(pieces)
