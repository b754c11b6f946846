"""The trees of a forest: their shape, in memory, and their pivots, which are read tree by tree."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from beeline._forks import ForkSafeLock
from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block
from beeline.data.files.sealed import checksum_text
from beeline.index.arrays import ArrayPieces

__all__ = ["Tree", "TreeShapes", "Trees"]


class TreeShapes:
    """How the trees of a forest are made up; numbers of leaves, nodes and pivots count over all trees.

    Nodes of a tree come level by level, with the pivots of each side by side; leaves in the order of their rows, those
    of rows of zeros first.

    Attributes
    ----------
    leaves, nodes, pivots, entries, distances
        For each tree the number of the first of these that it has, and behind the last tree how many there are.
    zero_leaves
        How many leaves of each tree have rows of zeros.
    widths
        How many pivots each node has.
    lengths
        How many entries each pivot has.
    children
        The node that shares out the rows nearest to each pivot, or −1 where they are in leaves.
    pivot_of_leaf
        The pivot that the rows of each leaf are nearest to, or −1 of rows of zeros.
    """

    def __init__(self, read: Callable[[str], AnyArray]) -> None:
        counts, own = read("tree_nodes"), read("node_widths").astype(np.int64)
        self.leaves, self.nodes, self.widths = _bounds(read("tree_leaves")), _bounds(counts), own
        self.zero_leaves: Ints = read("tree_zero_leaves").astype(np.int64)
        self.pivots = _bounds(own)[self.nodes]
        self.distances = _bounds(own * (own - 1) // 2)[self.nodes]
        self.lengths: Ints = read("pivot_lengths").astype(np.int64)
        self.entries = _bounds(self.lengths)[self.pivots]
        children, sizes = read("pivot_children"), np.diff(self.pivots)
        self.children: Ints = np.where(children < 0, -1, children + np.repeat(self.nodes[:-1], sizes))
        ends = children < 0
        first = (read("pivot_first_leaves") + np.repeat(self.leaves[:-1], sizes))[ends]
        self.pivot_of_leaf = _spread_out(int(self.leaves[-1]), first, read("pivot_leaves")[ends], np.flatnonzero(ends))

    @property
    def count(self) -> int:
        """How many trees there are."""
        return len(self.zero_leaves)

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return sum(array.nbytes for array in vars(self).values())


class Tree(NamedTuple):
    """What is read of one tree.

    Attributes
    ----------
    pivots
        The pivots, node by node.
    norms
        The length ‖p‖ of each.
    distances
        √(2 − 2(p̂_kᵀp̂_q)²) of the pivots of each node, q < k, line by line.
    """

    pivots: Block
    norms: Floats
    distances: Floats

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return self.pivots.nbytes + self.norms.nbytes + self.distances.nbytes


class Trees:
    """Reads trees by their numbers; those that were asked for last are kept, as far as there is room (I21).

    Parameters
    ----------
    folder, records
        The folder of the index, and what its writer said of its arrays.
    shapes, n_features
        What is known of all trees.
    room
        Bytes for trees that are kept; None: all.

    Attributes
    ----------
    bytes_read, hits, misses
        Bytes that were read so far, how many trees were still there, and how many were read.
    """

    def __init__(
        self, folder: Path, records: dict[str, dict[str, Any]], shapes: TreeShapes, n_features: int, room: int | None
    ) -> None:
        self._shapes, self._n_features, self.room = shapes, n_features, room
        names = ("node_distances", "pivot_values", "pivot_indices")
        self._files = {name: ArrayPieces(folder, records[name]) for name in names if name in records}
        own = ArrayPieces(folder, records["tree_checksums"])
        sums = own.read(0, own.length, str(records["tree_checksums"]["checksum"]))
        self._checksums = sums.reshape(shapes.count, len(self._files))
        self.bytes_read = self.hits = self.misses = 0
        self._kept: OrderedDict[int, Tree] = OrderedDict()
        self._held = 0
        self._lock = ForkSafeLock()

    @property
    def nbytes(self) -> int:
        """Bytes that are held at most, about."""
        entry = 12 if "pivot_indices" in self._files else 8
        everything = len(self._shapes.lengths) * 16 + int(self._shapes.entries[-1]) * entry
        everything += self._files["node_distances"].length * 8
        return everything if self.room is None else min(everything, self.room)

    @property
    def kept(self) -> list[int]:
        """The numbers of the trees that are kept, the one that was asked for last as the last."""
        with self._lock:
            return list(self._kept)

    def __getitem__(self, number: int) -> Tree:
        """A tree, read where it was not kept."""
        with self._lock:
            if (tree := self._kept.get(number)) is not None:
                self._kept.move_to_end(number)
                self.hits += 1
                return tree
            tree = self._kept[number] = self._read(number)
            self.misses += 1
            self._held += tree.nbytes
            while self.room is not None and self._held > self.room and len(self._kept) > 1:
                self._held -= self._kept.popitem(last=False)[1].nbytes
            return tree

    def _read(self, number: int) -> Tree:
        bounds = {"node_distances": self._shapes.distances}
        pieces: dict[str, AnyArray] = {}
        for (name, file), checksum in zip(self._files.items(), self._checksums[number], strict=True):
            start, stop = bounds.get(name, self._shapes.entries)[number : number + 2].tolist()
            pieces[name] = file.read(start, stop, checksum_text(int(checksum)))
            self.bytes_read += pieces[name].nbytes
        first, last = self._shapes.pivots[number : number + 2].tolist()
        values, d = pieces["pivot_values"], self._n_features
        if "pivot_indices" in pieces:
            indptr = _bounds(self._shapes.lengths[first:last])
            pivots = Block(values, d, indptr, pieces["pivot_indices"].astype(np.int32))
        else:
            pivots = Block(values.reshape(last - first, d), d)
        return Tree(pivots, np.sqrt(pivots.squared_norms()), pieces["node_distances"].astype(np.float64))


def _bounds(counts: AnyArray) -> Ints:
    """0, and where each of some groups of so many ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def _spread_out(n: int, first: Ints, counts: AnyArray, values: Ints) -> Ints:
    """An array of n numbers with each value so many times from its first place on, and −1 elsewhere."""
    out = np.full(n, -1, np.int64)
    before = np.cumsum(counts) - counts
    out[np.repeat(first - before, counts) + np.arange(int(counts.sum()))] = np.repeat(values, counts)
    return out
