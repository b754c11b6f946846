"""What a computation may use of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from beeline.data.core.dataset import Dataset
from beeline.data.core.memory import available_memory
from beeline.data.options import parse_size
from beeline.engines.base import Engine
from beeline.engines.threads import Threads
from beeline.kernels import num_threads, set_num_threads

__all__ = ["Resources"]


@dataclass(frozen=True)
class Resources:
    """What a computation may use; goes from what the user said down to where rows are opened.

    Parameters
    ----------
    memory
        Bytes for data, or a text such as `400M`: rows, what lies beside them, and copies of them. None: rows in memory
        may take half of what is free, and there is no other limit.
    threads
        How many threads kernels use; None: as they are set.
    engine
        Who opens the rows; None: threads of this process.
    """

    memory: int | str | None = None
    threads: int | None = None
    engine: Engine | None = None

    def __post_init__(self) -> None:
        if self.memory is not None:
            object.__setattr__(self, "memory", parse_size(self.memory))

    @property
    def budget(self) -> int | None:
        """The bytes for data, where they were said."""
        assert not isinstance(self.memory, str)
        return self.memory

    @property
    def rows_in_memory(self) -> int:
        """How many bytes rows may take to be held in memory: the other half is for what is made of them."""
        return (available_memory() if self.budget is None else self.budget) // 2

    def opener(self) -> Engine:
        """Who opens rows."""
        if self.engine is not None:
            return self.engine
        return _THREADS if self.memory is None else Threads(self.budget)

    def holding(self, data: Dataset) -> Dataset:
        """The data set, of which no more is held at one time than there is room for."""
        return data if self.budget is None else data.within(Threads.shard_bytes(self.budget))

    def in_use(self) -> AbstractContextManager[None]:
        """Kernels use as many threads as were said, meanwhile."""
        return _UNCHANGED if self.threads is None else _with_threads(self.threads)


_THREADS, _UNCHANGED = Threads(), nullcontext()


@contextmanager
def _with_threads(n: int) -> Iterator[None]:
    before = num_threads()
    set_num_threads(n)
    try:
        yield
    finally:
        set_num_threads(before)
