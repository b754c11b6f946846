"""queryIndex of algorithm 1 (I8), with what is shrunk of the index (I22)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from beeline._types import AnyArray, Ints
from beeline.index import Place, Question
from beeline.solvers.indexed.active_set import ActiveSet
from beeline.solvers.indexed.searching import Found, Search

__all__ = ["Answer", "Patience", "Queries"]


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
    """

    new: Found | None
    looked: int
    complete: bool

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
        found, looked, count = list[Found](), 0, 0
        for chunks in self._pieces(walk, n):
            part, rows = self._look(chunks, place, outer)
            looked, count = looked + rows, count + len(part.positions)
            found.append(part)
            if count >= n or give_up.is_over(count, looked):
                known = False
                break
        return Answer(self._drawn(found, n), looked, known)

    def sample(self, place: Place, outer: Place | None, n_rows: int) -> Answer:
        """All such rows among about n_rows that do not depend on what is asked (I12): a fair share."""
        found, looked, leaves = list[Found](), 0, self.search.index.n_leaves
        for chunks in self._pieces(self.search.guide.sample(leaves, self.random), n_rows):
            part, rows = self._look(chunks, place, outer)
            looked += rows
            found.append(part)
            if looked >= n_rows:
                break
        return Answer(self._drawn(found, n_rows), looked, looked >= self.search.objective.rows.n_rows)

    def _pieces(self, walk: Iterable[Ints], n: int) -> Iterator[list[int]]:
        """The chunks of leaves in their order, about n rows at a time, none twice."""
        seen = np.zeros(len(self._chunk_rows), np.bool_)
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

    def _look(self, chunks: list[int], place: Place, outer: Place | None) -> tuple[Found, int]:
        """(rows of chunks that satisfy (10) and are not in S, how many were looked at); closes leaves."""
        found = self.search.look(chunks)
        z = found.block.scores(place[0]) + place[1]
        others = (self.active.places(found.positions) < 0) & (found.costs > 0)
        if outer is not None:
            at = found.block.scores(outer[0]) + outer[1]
            others &= (at >= found.flats.inside_low) & (at <= found.flats.inside_high)
        matters = others & found.matter(z)
        self._close(found.positions, others & ~matters & found.matter(z, self.threshold))
        return found.pick(matters), len(found.positions)

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
