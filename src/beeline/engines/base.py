"""The seam between the objective and the machines that hold the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from beeline.data.block import Block
from beeline.data.dataset import Dataset

__all__ = ["Engine", "Shard"]

Result = TypeVar("Result")


@dataclass(frozen=True)
class Shard:
    """A run of rows of a data set that stays where it is."""

    data: Dataset
    start: int
    stop: int

    @property
    def block(self) -> Block:
        """The rows, as a view where they are in memory, read anew where they are on disk."""
        return self.data.rows(self.start, self.stop)

    @property
    def rows(self) -> slice:
        """Their place among all rows."""
        return slice(self.start, self.stop)


class Engine(ABC):
    """Runs a function on every shard; the shards never move."""

    @abstractmethod
    def shards(self, data: Dataset) -> list[Shard]:
        """The runs of rows that tasks are called with."""

    @abstractmethod
    def map(self, task: Callable[..., Result], shards: Sequence[Shard], *beside: Sequence[Any]) -> list[Result]:
        """task(shard, …) for every shard, with what `beside` holds for it; results in the order of the shards."""

    def sum(self, task: Callable[..., tuple[Any, ...]], shards: Sequence[Shard], *beside: Sequence[Any]) -> list[Any]:
        """The sums of each part of task(shard, …), added in the order of the shards: the same bits every time."""
        results = self.map(task, shards, *beside)
        totals = list(results[0])
        for result in results[1:]:
            totals = [total + part for total, part in zip(totals, result, strict=True)]
        return totals
