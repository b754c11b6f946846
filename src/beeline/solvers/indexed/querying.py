"""queryIndex of algorithm 1 (I8), with what is shrunk of the index (I22)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.index import Place, Question
from beeline.losses import ScalarLoss, Truncated
from beeline.solvers.indexed.active_set import ActiveSet
from beeline.solvers.indexed.searching import Found, Search

__all__ = ["Answer", "Patience", "Queries", "Tally"]


class Tally(NamedTuple):
    """What rows outside of S come to, among those that a query has looked at, as the loss is cut off, or not.

    Attributes
    ----------
    cost
        What they cost together.
    out_negative, out_positive
        How many with a negative and a positive label are OUT at the place that was asked about.
    """

    cost: float = 0.0
    out_negative: float = 0.0
    out_positive: float = 0.0

    def __add__(self, other: object) -> Tally:
        return Tally(*map(sum, zip(self, other, strict=True)))  # type: ignore[call-overload]

    def times(self, factor: float) -> Tally:
        """Of so many times as many rows."""
        return Tally(*(factor * one for one in self))


class Answer(NamedTuple):
    """What a query has found.

    Attributes
    ----------
    new
        N: rows that matter, are IN and were not in S; None where there are none.
    looked
        n_e: how many rows were looked at.
    complete
        Whether it knows all such rows of the index: every leaf was looked at, or surely has none.
    tally
        What the rows that were looked at and not in S come to, those of N too.
    """

    new: Found | None
    looked: int
    complete: bool
    tally: Tally = Tally()

    @property
    def n_new(self) -> int:
        """|N|."""
        return 0 if self.new is None else len(self.new.positions)


class Patience(NamedTuple):
    """When a search for n rows gives up: too small a share of at least so many rows was found.

    Attributes
    ----------
    rows, share
        So many rows are looked at before; the share that is enough to go on.
    """

    rows: float = np.inf
    share: float = 0.0

    def is_over(self, found: int, looked: int) -> bool:
        """Whether to give up."""
        return looked >= self.rows and found < self.share * looked


class Queries:
    """Searches the index for rows outside of S with yᵢwᵗᵀxᵢ ≥ L⁻¹(1+s) and yᵢw^(t,k)ᵀxᵢ < 1 (10).

    Both conditions are those of intervals of scores here (`Flats`), so that ε-insensitive losses have them too. Leaves
    come in the order of `Guide.walk`, some n rows at a time, until n rows are found; where more were found in what was
    read, n of them are drawn at random. Worst-first would bring rows that lie alike, and outliers.

    What is read is a chunk, with the leaves that lie beside those that were asked for; all rows of it are looked at.

    Shrinking: a leaf is closed when none of its rows that are not in S can soon be found: each has (i) yᵢw^(t,k)ᵀxᵢ >
    1 + T, or (ii) is OUT at wᵗ. A closed leaf is passed over, and so is a tree all of whose leaves are closed, until
    `open_all`. Single rows of an open leaf are not shrunk: it is read as a whole.

    Parameters
    ----------
    search, active
        What is known of the index, and S.
    threshold
        T, in scores.
    random
        Where orders and draws come from.

    Attributes
    ----------
    closed
        Which leaves are closed.
    """

    def __init__(self, search: Search, active: ActiveSet, threshold: float, random: np.random.Generator) -> None:
        self.search, self.active, self.threshold, self.random = search, active, threshold, random
        self.closed: AnyArray = np.zeros(search.index.n_leaves, np.bool_)
        self._chunk_rows = np.diff(search.index.rows.chunk_ends, prepend=0)

    def open_all(self) -> None:
        """Unshrink."""
        self.closed[:] = False

    def ask(self, place: Place, outer: Place | None, n: int, patience: Patience | None = None) -> Answer:
        """Up to n rows that matter at a place, and are IN at the outer one."""
        question = Question(*place, self.search.flats, outer)
        walk = self.search.guide.walk(question, self.closed.copy(), self.random)
        known, give_up = not self.closed.any(), patience or Patience()
        found, looked, count, tally = list[Found](), 0, 0, Tally()
        for chunks in self._pieces(walk, n):
            part, rows, its = self._scan(chunks, place, outer)
            looked, count, tally = looked + rows, count + len(part.positions), tally + its
            found.append(part)
            if count >= n or give_up.is_over(count, looked):
                known = False
                break
        return Answer(self._drawn(found, n), looked, known, tally)

    def sample(self, place: Place, outer: Place | None, n_rows: int) -> Answer:
        """All such rows among n_rows or more that do not depend on what is asked (I12): a fair share.

        A part of a tree would not be one, so that what the guide gives together is looked at together.
        """
        found, looked, tally = list[Found](), 0, Tally()
        seen = np.zeros(len(self._chunk_rows), np.bool_)
        for leaves in self.search.guide.sample(self.search.index.n_leaves, self.random):
            for chunks in self._pieces([leaves], n_rows, seen):
                part, rows, its = self._scan(chunks, place, outer)
                looked, tally = looked + rows, tally + its
                found.append(part)
            if looked >= n_rows:
                break
        every = looked >= self.search.objective.rows.n_rows
        return Answer(self._drawn(found, looked), looked, every, tally)

    def _pieces(self, walk: Iterable[Ints], n: int, seen: AnyArray | None = None) -> Iterator[list[int]]:
        """The chunks of leaves in their order, about n rows at a time, none twice, nor any that was seen."""
        seen = np.zeros(len(self._chunk_rows), np.bool_) if seen is None else seen
        for leaves in walk:
            chunks = self.search.index.chunk_of_leaf[leaves]
            chunks = chunks[np.sort(np.unique(chunks, return_index=True)[1])]
            chunks = chunks[~seen[chunks]]
            if not len(chunks):
                continue
            seen[chunks] = True
            rows = self._chunk_rows[chunks]
            numbers = (np.cumsum(rows) - rows) // n
            yield from (part.tolist() for part in np.split(chunks, np.flatnonzero(np.diff(numbers)) + 1))

    def _scan(self, chunks: list[int], place: Place, outer: Place | None) -> tuple[Found, int, Tally]:
        """(rows of chunks that satisfy (10) and are not in S, how many were looked at, a tally); closes leaves."""
        found = self.search.scan(chunks)
        z = found.block.scores(place[0]) + place[1]
        others = (self.active.places(found.positions) < 0) & (found.costs > 0)
        tally = self.tally(found, z, np.flatnonzero(others & found.matter(z)))
        if outer is not None:
            at = found.block.scores(outer[0]) + outer[1]
            others &= (at >= found.flats.inside_low) & (at <= found.flats.inside_high)
        matters = others & found.matter(z)
        self._close(found.positions, others & ~matters & found.matter(z, self.threshold))
        return found.pick(matters), len(found.positions), tally

    def tally(self, found: Found, z: Floats, rows: Ints) -> Tally:
        """Of some rows: all others that are not in S cost nothing."""
        loss, z, y = self.search.objective.loss, z[rows], found.labels[rows]
        assert isinstance(loss, ScalarLoss)
        out = loss.outside(z, y) if isinstance(loss, Truncated) else np.zeros(len(y), np.bool_)
        cost = loss.sum(z, y, found.costs[rows])
        return Tally(cost, float(np.count_nonzero(out & (y <= 0))), float(np.count_nonzero(out & (y > 0))))

    def _close(self, positions: Ints, near: AnyArray) -> None:
        """Close the leaves without a row that is near; those that were found are taken into S, or open theirs again."""
        leaves = self.search.leaves_of(positions)
        self.closed[leaves] = True
        self.closed[leaves[near]] = False

    def _drawn(self, found: list[Found], n: int) -> Found | None:
        """At most n of the rows, at random; the leaves of the others are open."""
        found = [part for part in found if len(part.positions)]
        if not found:
            return None
        every = Found.joined(found)
        order = self.random.permutation(len(every.positions))
        self.closed[self.search.leaves_of(every.positions[order[n:]])] = False
        return every.take(np.sort(order[:n]))
