"""Metric forests, as published (Yen, Chang, Lin, Lin & Lin 2013, section 4.1; I16–I21).

Rows are spread over trees at random. A node of a tree has up to K pivots, rows of its own, and each of its rows goes to
the pivot with the largest (x̂ᵀp̂)². That is the nearest one in the metric arccos((x̂₁ᵀx̂₂)²) of the degree-2 expansion
V, in which the rows near to a hyperplane of normal ŵ are those near to −V(ŵ) (I16, I17). Labels are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.index.guides import Guide, Place, Question, Readings
from beeline.index.trees import Trees, TreeShapes

__all__ = ["Forest"]

_FIRST = 1 / 16  # of the leaves of a tree that are given before those of the next tree; then twice as many, and so on
_SIDEWAYS = 0.1  # of a leaf's spread, that its scores spread along w: rows differ in several directions
_LEAST = 1e-3  # the weight of a leaf that should have no row that matters
_UNLIKELY = 0.05  # a chance that a leaf which was read matters again, below which it is not looked at
_FARTHEST = 1e150  # of a score by the lengths of row and weights, whose square is a number; an intercept may be larger


class Forest(Guide):
    """Trees of pivots; see `kernels/pivot_trees.cpp`.

    `walk` is the paper's search: best bin first, by the key (I20), in trees that come in random order. The paper has no
    intercept; here ŵᵀp̂ is (wᵀp + b)/(‖w‖‖p‖), the distance from the hyperplane in lengths of the pivot. Rows of zeros,
    which have no direction (I18), all score b, so that of their leaves it is known whether they matter.

    `weights` ranks the leaves of all trees for training that draws them at random. Beside its pivot it is known of a
    leaf what multiple of it the rows are on average, and how far they are from there, which is not in the paper. A
    measurement found a leaf's score a better guide than the key.

    Parameters
    ----------
    shapes, trees
        The shape of all trees, and who reads their pivots.
    scales, spreads
        The rows of a leaf are about its scale times its pivot, and as far from there as its spread says.
    """

    kind = "forest"

    def __init__(self, shapes: TreeShapes, trees: Trees, scales: AnyArray, spreads: AnyArray) -> None:
        self.shapes, self.trees, self.scales, self.spreads = shapes, trees, scales, spreads

    @property
    def nbytes(self) -> int:
        """Bytes that are held at most."""
        return self.shapes.nbytes + self.trees.nbytes + self.scales.nbytes + self.spreads.nbytes

    @property
    def bytes_read(self) -> int:  # type: ignore[override]
        """Bytes of trees that were read."""
        return self.trees.bytes_read

    @property
    def hits(self) -> int:  # type: ignore[override]
        """How many trees were still there."""
        return self.trees.hits

    @property
    def kept(self) -> list[int]:
        """The trees that it still has."""
        return self.trees.kept

    def read_again(self, kept: Sequence[int]) -> None:
        """Have these trees."""
        for number in kept:
            self.trees[number]

    # About what rows score.

    def scores(self, places: list[Place]) -> Floats:
        """About what the rows of each leaf score, one column a place: the scores of scale · p."""
        w = np.column_stack([w for w, _ in places])
        found = np.zeros((len(self.scales), len(places)))
        for number in range(self.shapes.count):
            leaves, pivots = self._part(number)
            if (pivots >= 0).any():
                z = self.trees[number].pivots.scores(w)
                found[leaves] = np.where(pivots >= 0, self.scales[leaves], 0.0)[:, None] * z[pivots]
        found += np.array([b for _, b in places])
        return found

    def _part(self, number: int) -> tuple[slice, Ints]:
        """(the leaves of a tree, the pivot of each, counted from the tree's first)."""
        first, last = self.shapes.leaves[number : number + 2].tolist()
        pivots = self.shapes.pivot_of_leaf[first:last]
        return slice(first, last), np.where(pivots >= 0, pivots - self.shapes.pivots[number], -1)

    def weights(self, question: Question) -> Floats:
        """By the chance that a score near that of the leaf lies where a loss is not zero; never zero."""
        places = [(question.w, question.b)] + ([] if question.outer is None else [question.outer])
        z, flats = self.scores(places), question.flats
        share = self._outside(z[:, 0], question.w, flats.low, flats.high)
        if question.outer is not None:
            share *= 1 - self._outside(z[:, 1], question.outer[0], flats.inside_low, flats.inside_high)
        return np.maximum(share, _LEAST)

    def left(self, question: Question, readings: Readings) -> Floats:
        """Of leaves that were read: by the chance that a score has changed enough since."""
        left, numbers = self.weights(question), readings.numbers()
        if not numbers:
            return left
        changes = [(question.w - readings.places[k][0], question.b - readings.places[k][1]) for k in numbers]
        for k, dz, (dw, _) in zip(numbers, self.scores(changes).T, changes, strict=True):
            leaves = readings.when == k
            chance = self._outside(dz, dw, -readings.below, readings.above)[leaves]
            left[leaves] = np.where(chance < _UNLIKELY, 0.0, chance)
        return left

    def _outside(self, z: Floats, w: Floats, low: Floats, high: Floats) -> Floats:
        """The chance that a score about z of each leaf lies outside of low … high, by a logistic distribution."""
        width = np.maximum(_SIDEWAYS * _length(w) * self.spreads, np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):
            inside = 0.5 * (np.tanh(0.5 * (high - z) / width) - np.tanh(0.5 * (low - z) / width))
        return np.clip(1 - inside, 0.0, 1.0)

    # Best bin first (I20).

    def walk(self, question: Question, closed: AnyArray, random: np.random.Generator) -> Iterator[Ints]:
        """The leaves of trees in random order, those of a tree best bin first; some of each tree at a time.

        The paper does not say how much of a tree is searched before the next one. Here it is a part of each, in turn,
        and then twice as much, until all are given. A tree whose leaves are all closed is not read; inside of a tree
        nothing below a node comes up whose leaves are all closed.
        """
        closed, shapes = self._passed_over(question, closed), self.shapes
        is_open = np.add.reduceat((~closed).astype(np.int64), shapes.leaves[:-1])
        order, found, share, begin = random.permutation(np.flatnonzero(is_open)).tolist(), {}, _FIRST, 0.0
        while begin < 1:
            for number in order:
                if number not in found:
                    leaves = self.best_bins(number, (question.w, question.b))
                    found[number] = leaves[~closed[leaves]]
                bounds = (int(np.ceil(part * len(found[number]))) for part in (begin, share))
                if len(some := found[number][slice(*bounds)]):
                    yield some
            begin, share = share, min(1.0, 2 * share)

    def _passed_over(self, question: Question, closed: AnyArray) -> AnyArray:
        """The leaves that are closed, and those of rows of zeros that surely do not matter."""
        flats, b = question.flats, question.b
        known = (flats.low <= b) & (b <= flats.high)
        if question.outer is not None:
            known |= (question.outer[1] < flats.inside_low) | (question.outer[1] > flats.inside_high)
        passed: AnyArray = closed | (known & (self.shapes.pivot_of_leaf < 0))
        return passed

    def best_bins(self, number: int, place: Place) -> Ints:
        """The leaves of a tree, best bin first.

        A queue that gives out the part with the least key, the greatest along its path, gives leaves in the order of
        these keys. Leaves of zeros come first.
        """
        leaves, pivots = self._part(number)
        keys = np.where(pivots >= 0, self._path_keys(number, place)[pivots] if (pivots >= 0).any() else 0.0, -1.0)
        found: Ints = leaves.start + np.argsort(keys, kind="stable")
        return found

    def keys(self, number: int, place: Place) -> Floats:
        """How far from the query the boundary of each pivot's part is, among those of its node (I20).

        [(ŵᵀp̂_k)² − (ŵᵀp̂_q)²]/√(2 − 2(p̂_kᵀp̂_q)²) with q the pivot nearest to the hyperplane; zero for that one itself.
        """
        (w, b), tree = place, self.trees[number]
        cosines = (tree.pivots.scores(w) + b) / (tree.norms * (_length(w) or 1.0))
        squares = np.square(np.clip(cosines, -_FARTHEST, _FARTHEST))
        widths = self.shapes.widths[slice(*self.shapes.nodes[number : number + 2])]
        node, first = np.repeat(np.arange(len(widths)), widths), np.cumsum(widths) - widths
        nearest = np.lexsort((squares, node))[first]
        k, q = np.arange(len(node)) - first[node], (nearest - first)[node]
        triangles = widths * (widths - 1) // 2
        high, low = np.maximum(k, q), np.minimum(k, q)
        at = (np.cumsum(triangles) - triangles)[node] + high * (high - 1) // 2 + low
        others = k != q
        keys = np.zeros(len(node))
        keys[others] = (squares - squares[nearest][node])[others] / tree.distances[at[others]]
        return keys

    def _path_keys(self, number: int, place: Place) -> Floats:
        """The greatest key along the path to each pivot's part."""
        keys, begin = self.keys(number, place), 0
        children = self.shapes.children[slice(*self.shapes.pivots[number : number + 2])]
        ends = np.cumsum(self.shapes.widths[slice(*self.shapes.nodes[number : number + 2])])
        inner, node = np.flatnonzero(children >= 0), 1
        while begin < len(keys):  # level by level: the nodes below are those that the inner pivots have, in their order
            end = int(ends[node - 1])
            some = inner[(inner >= begin) & (inner < end)]
            below = np.repeat(keys[some], np.diff(ends[node - 1 : node + len(some)]))
            keys[end : end + len(below)] = np.maximum(keys[end : end + len(below)], below)
            begin, node = end, node + len(some)
        return keys

    def sample(self, n_leaves: int, random: np.random.Generator) -> Iterator[Ints]:
        """The leaves of whole trees in random order: each tree is a fair sample of the rows (I12)."""
        for number in random.permutation(self.shapes.count).tolist():
            yield np.arange(*self.shapes.leaves[number : number + 2].tolist())


def _length(w: Floats) -> float:
    """‖w‖, also where the squares are beyond all numbers."""
    scale = float(np.max(np.abs(w), initial=0.0))
    return scale * float(np.linalg.norm(w / scale)) if 0 < scale < np.inf else scale
