"""What every reader offers: a source walked as blocks, in bounded memory or all at once."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from beeline._warnings import calls_inside
from beeline.data.core.block import Block, concatenate
from beeline.data.core.dataset import ArrayDataset
from beeline.data.recipe.recipe import Recipe
from beeline.exceptions import DataError, DataWarning, FormatError

__all__ = ["BadLines", "NoProgress", "PassesOver", "Progress", "Reader", "RestartReading", "warn_of_passed_over"]


class Progress(Protocol):
    """Whom a reader tells how far it is."""

    def start(self, stage: str, total_bytes: int | None) -> None:
        """A new walk over the source begins; `total_bytes` counts what lies on disk, where that is known."""

    def advance(self, n_bytes: int, n_rows: int = 0) -> None:
        """So many more bytes were read from disk and so many more rows were made."""


class NoProgress:
    """Tells nobody."""

    def start(self, stage: str, total_bytes: int | None) -> None:
        """Do nothing."""

    def advance(self, n_bytes: int, n_rows: int = 0) -> None:
        """Do nothing."""


class PassesOver(Protocol):
    """What may have to pass over some of what it reads."""

    def passed_over(self) -> list[str]:
        """What was passed over, a sentence each."""


@dataclass
class BadLines:
    """Lines that were skipped because the user asked for it."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, error: FormatError) -> None:
        """Count one bad line; the first ten are kept word for word."""
        self.count += 1
        if len(self.examples) < 10:
            self.examples.append(str(error))


class RestartReading(Exception):  # noqa: N818
    """A guess made from the first rows proved wrong; the reader has corrected it and must be walked anew."""


class Reader(ABC):
    """A source that can be walked as blocks, as often as needed.

    First `prepare`, which learns what must be known before the first row is made (categories, scaling); then
    `blocks`; then `recipe` is complete. `blocks` may raise `RestartReading` before its last block.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress: Progress = progress or NoProgress()
        self.bad_lines = BadLines()

    @abstractmethod
    def prepare(self, memory: int) -> None:
        """Learn what must be known before the first row, in about `memory` bytes."""

    @abstractmethod
    def blocks(self, memory: int) -> Iterator[Block]:
        """All rows in order; everything held at one time takes about `memory` bytes.

        A block's `n_features` is what is known so far; the last one's is final.
        """

    def blocks_once(self, memory: int) -> Iterator[Block]:
        """All rows in order, in one walk: where there is something to learn first, the first rows have to tell it."""
        self.prepare(memory)
        yield from self.blocks(memory)

    def passed_over(self) -> list[str]:
        """What the last walk passed over, a sentence each."""
        bad = self.bad_lines
        if not bad.count:
            return []
        return [f"{bad.count:,} bad line{'s' * (bad.count != 1)} skipped; the first: {bad.examples[0]}"]

    @property
    def query_names(self) -> list[str]:
        """The texts that query ids stand for, those of the rows read so far; empty where the source has numbers."""
        return []

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """How raw rows become these rows; complete once `blocks` has ended."""

    def read(self, *, narrow: bool = False) -> ArrayDataset:
        """All rows in memory; `narrow` allows smaller types where they keep every digit that is written."""
        self.prepare(_PIECE)
        while True:
            try:
                blocks = list(self.blocks(_PIECE))
                break
            except RestartReading:
                continue
        if not blocks:
            raise DataError("the source has no rows")
        return ArrayDataset(concatenate(blocks), self.recipe)


def warn_of_passed_over(walk: PassesOver) -> None:
    """Warn of what was passed over, where beeline was called."""
    for sentence in walk.passed_over():
        warnings.warn(sentence, DataWarning, stacklevel=calls_inside() + 1)


_PIECE = 64 << 20
