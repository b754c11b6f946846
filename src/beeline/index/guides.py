"""What an index says about leaves without reading their rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from beeline._types import AnyArray, Floats, Ints

__all__ = ["Flats", "Guide", "Question", "drawn", "outside_share"]


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

    low: Floats
    high: Floats
    inside_low: Floats
    inside_high: Floats

    def pick(self, rows: AnyArray) -> Flats:
        """Those of some rows."""
        return Flats(*(column[rows] for column in self))


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
    outer: tuple[Floats, float] | None = None


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
    """

    kind: str
    exact: bool = False

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes that are held."""

    @abstractmethod
    def weights(self, question: Question) -> Floats:
        """About which share of the rows of each leaf matters; zero where none does, surely or as far as is known."""

    def walk(self, question: Question, closed: AnyArray, random: np.random.Generator) -> Iterator[Ints]:
        """The leaves in the order in which to read them, some at a time; those that are closed are passed over.

        They are drawn at random, the more likely the more of their rows should matter, and never the worst first: that
        is where outliers are, and rows that lie alike.
        """
        weights = np.where(closed, 0.0, self.weights(question))
        yield drawn(weights, random)


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
