"""What an index says about leaves without reading their rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block
from beeline.index.arrays import ArrayWriter

__all__ = ["Flats", "Guide", "GuideWriter", "Place", "Question", "Readings", "drawn", "outside_share"]

Place = tuple[Floats, float]
"""(w, b)."""

_SOME = 16  # leaves of a random order that are given at a time


class Flats(NamedTuple):
    """Between which scores rows, or all rows of leaves, do not matter to a loss; it says nothing of labels.

    Attributes
    ----------
    low, high
        Between these scores the loss of a row is zero; of a leaf, that of all its rows. Nothing lies between them where
        rows of a leaf contradict each other.
    inside_low, inside_high
        Between these scores, at the weights by which outliers are told, a row is none; of a leaf, some row may be none.
    """

    low: AnyArray
    high: AnyArray
    inside_low: AnyArray
    inside_high: AnyArray

    def pick(self, rows: AnyArray | slice) -> Flats:
        """Those of some rows."""
        return Flats(*(column[rows] for column in self))

    def narrowed(self) -> Flats:
        """The same in float32 where that has all of their digits, as it has those of ±1 and ∞."""
        narrow = [column.astype(np.float32) for column in self]
        return Flats(*(b if np.array_equal(a, b, equal_nan=True) else a for a, b in zip(self, narrow, strict=True)))


@dataclass(frozen=True, eq=False)
class Question:
    """Which leaves have rows that matter at given weights (I8).

    Attributes
    ----------
    w, b
        w^(t,k): the weights and the intercept now.
    flats
        Of every leaf.
    outer
        wᵗ and its intercept, by which outliers are told; None: no row is an outlier.
    """

    w: Floats
    b: float
    flats: Flats
    outer: Place | None = None


class Readings:
    """Which leaves were read at which weights, and how far the rows that were not taken were from mattering there.

    Attributes
    ----------
    places
        The weights and intercepts at which leaves were read.
    when
        For each leaf the number of its place, or −1.
    below, above
        For each leaf the least that a score of the rows not taken had to fall, or to rise, for its row to matter.
    """

    def __init__(self, n_leaves: int) -> None:
        self.places: list[Place] = []
        self.when = np.full(n_leaves, -1, np.int32)
        self.below, self.above = np.full(n_leaves, np.inf), np.full(n_leaves, np.inf)

    def numbers(self, leaves: AnyArray | None = None) -> list[int]:
        """The numbers of the places at which some of these leaves, or of all, were read last."""
        numbers: list[int] = np.unique(self.when if leaves is None else self.when[leaves]).tolist()
        return [number for number in numbers if number >= 0]


class Guide(ABC):
    """Knows something of the rows of each leaf.

    Attributes
    ----------
    kind
        The kind of index that it makes.
    exact
        Whether a leaf of weight zero surely has no row that matters.
    nbytes
        What it takes of memory.
    bytes_read, hits
        Bytes that it has read since it was opened, and how often something was still there; zero, both, of one that is
        in memory.
    known
        Which of the rows that it has in memory need not be found any more.
    """

    kind: str
    known: AnyArray
    exact: bool = False
    bytes_read: int = 0
    hits: int = 0

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes that are held."""

    @abstractmethod
    def weights(self, question: Question) -> Floats:
        """About which share of the rows of each leaf matters; zero where none does, surely or as far as is known."""

    @abstractmethod
    def left(self, question: Question, readings: Readings) -> Floats:
        """The same, of rows that were not taken when their leaf was read."""

    def changes(self, w: Floats, b: float, leaves: Ints) -> tuple[Floats, Floats]:
        """(the least, the most) by which scores of rows of these leaves change with the weights; none, if not known."""
        none = np.zeros(len(leaves))
        return none, none

    def walk(self, question: Question, closed: AnyArray, random: np.random.Generator) -> Iterator[Ints]:
        """The leaves in the order in which to read them, some at a time; those that are closed are passed over.

        They are drawn at random, the more likely the more of their rows should matter, and never the worst first: that
        is where outliers are, and rows that lie alike.
        """
        weights = np.where(closed, 0.0, self.weights(question))
        yield drawn(weights, random)

    def sample(self, n_leaves: int, random: np.random.Generator) -> Iterator[Ints]:
        """All leaves in an order that does not depend on their rows, some at a time, each of which is a fair sample."""
        order = random.permutation(n_leaves)
        yield from (order[k : k + _SOME] for k in range(0, n_leaves, _SOME))

    @property
    def kept(self) -> list[int]:
        """The numbers of what it has read and still has, the last ones last; none of one that is in memory."""
        return []

    def read_again(self, kept: Sequence[int]) -> None:
        """Have what another one had kept."""
        assert not kept

    # Rows that it has in memory, if it has any.

    def positions(self, leaf_starts: Ints) -> Ints:
        """Where rows that it has lie among all rows, for leaves that begin there."""
        return np.zeros(0, np.int64)

    def with_flats(self, flats: Flats) -> Guide:
        """The same guide, for these flats of the rows that it has."""
        return self

    def know(self, known: AnyArray) -> None:
        """Take note which of the rows that it has need not be found any more."""
        self.known = known


class GuideWriter(ABC):
    """Puts rows in leaves of one kind, and writes what its guide knows of them.

    Attributes
    ----------
    arrays
        What it writes, by name.
    """

    arrays: dict[str, ArrayWriter]

    @abstractmethod
    def arrange(self, block: Block, numbers: Ints, labels: Floats | None) -> tuple[Ints, Ints]:
        """(the order in which to put the rows, where leaves of them end then).

        Parameters
        ----------
        block
            The rows, without labels.
        numbers, labels
            The number of each row in the store; its label, where the store has classes.
        """

    @abstractmethod
    def write(self, block: Block, ends: Ints) -> None:
        """Take rows that were arranged, in their order, in leaves that end there; groups come as they were arranged."""


def drawn(weights: Floats, random: np.random.Generator) -> Ints:
    """The places of the weights that are not zero, in random order, each as likely to come next as it weighs.

    By the keys of Efraimidis and Spirakis (2006).
    """
    places = np.flatnonzero(weights > 0)
    keys = random.exponential(size=len(places)) / weights[places]
    return places[np.argsort(keys, kind="stable")]


def outside_share(low: Floats, high: Floats, flats: Flats) -> Floats:
    """Which part of the interval low … high lies outside of where a loss is zero; zero only if none of it does."""
    with np.errstate(invalid="ignore", divide="ignore"):
        below, above = np.maximum(flats.low - low, 0.0), np.maximum(high - flats.high, 0.0)
        share = (below + above) / (high - low)
    matters = (low < flats.low) | (high > flats.high)
    return np.where(matters, np.clip(np.where(np.isfinite(share), share, 1.0), 1e-3, 1.0), 0.0)
