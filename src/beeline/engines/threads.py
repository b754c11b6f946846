"""The default engine: this process, with threads inside the kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from beeline.data.core.dataset import Dataset
from beeline.engines.base import Engine, Shard

__all__ = ["Threads"]

Result = TypeVar("Result")


class Threads(Engine):
    """One shard after the other; each kernel uses all threads of the pool.

    Parameters
    ----------
    memory
        How many bytes of rows of a data set on disk are held at one time.
    """

    def __init__(self, memory: int = 256 << 20) -> None:
        self.memory = memory

    def shards(self, data: Dataset) -> list[Shard]:
        """One shard in memory; on disk, runs of whole chunks that fit the memory."""
        return [Shard(data, start, stop) for start, stop in pairwise(data.cuts(self.memory))]

    def map(self, task: Callable[..., Result], shards: Sequence[Shard], *beside: Sequence[Any]) -> list[Result]:
        """task(shard, …) for every shard in order."""
        return [task(*arguments) for arguments in zip(shards, *beside, strict=True)]
