"""How a forest is grown and written: random blocks of the rows, a tree of pivots over each."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
import xxhash

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block
from beeline.data.store.form import Form
from beeline.index.arrays import ArrayWriter
from beeline.index.guides import GuideWriter
from beeline.index.samples import RowsWriter
from beeline.index.settings import IndexSettings
from beeline.index.spreading import RandomTrees
from beeline.kernels import grow_pivot_trees

__all__ = ["ForestWriter", "trees_of"]

_SHAPE = (
    "tree_leaves",
    "tree_zero_leaves",
    "tree_nodes",
    "node_widths",
    "pivot_children",
    "pivot_first_leaves",
    "pivot_leaves",
)
_MEASURES = ("leaf_scales", "leaf_spreads", "node_distances")


def trees_of(n_rows: int, settings: IndexSettings) -> RandomTrees:
    """R random blocks of about so many rows as a tree should have (I19)."""
    return RandomTrees(-(-n_rows // settings.tree_size), settings.seed)


class ForestWriter(GuideWriter):
    """Grows the trees of a forest; see `kernels/pivot_trees.cpp`.

    Parameters
    ----------
    folder, form
        Where the files go, and the form of the rows.
    shape
        Rows and features of the store.
    settings
        How large and how wide trees are, and how many rows a leaf has at most.
    """

    def __init__(self, folder: Path, form: Form, shape: tuple[int, int], settings: IndexSettings) -> None:
        self._settings, self._trees = settings, trees_of(shape[0], settings)
        self._rows = RowsWriter(folder, "pivot", form, shape[1])
        kinds = {**dict.fromkeys(_SHAPE, np.int32), **dict.fromkeys(_MEASURES, np.float32)}
        own = {name: ArrayWriter(folder / f"{name}.npy", dtype) for name, dtype in kinds.items()}
        self._checksums = ArrayWriter(folder / "tree_checksums.npy", np.uint64)
        self.arrays = {**own, **self._rows.arrays, "tree_checksums": self._checksums}
        self._grown: deque[tuple[dict[str, AnyArray], Block]] = deque()  # those arranged, and not yet written

    def arrange(self, block: Block, numbers: Ints, labels: Floats | None) -> tuple[Ints, Ints]:
        """Tree by tree, leaf by leaf, whatever the labels."""
        which = self._trees.of(numbers)
        order = np.argsort(which, kind="stable").astype(np.int64)
        ends = np.append(np.flatnonzero(np.diff(which[order])) + 1, len(order))
        how = self._settings
        assert how.leaf_rows is not None
        trees = which[order[ends - 1]].tolist()
        found = grow_pivot_trees(block.arrays, order, ends.tolist(), trees, how.width, how.leaf_rows, how.seed)
        self._grown.append((found, block.gather(found["pivot_rows"])))
        return order, found["leaf_ends"]

    def write(self, block: Block, ends: Ints) -> None:
        """Take the trees that were grown first of those not yet taken."""
        found, pivots = self._grown.popleft()
        for name in (*_SHAPE, *_MEASURES):
            self.arrays[name].write(found[name])
        self._rows.write(pivots)
        self._checksums.write(_checksums(found, pivots, self._rows.arrays))


def _checksums(found: dict[str, AnyArray], pivots: Block, arrays: dict[str, ArrayWriter]) -> AnyArray:
    """For each tree those of its distances, and of its pivots' values and indices, as they are written."""
    nodes, widths = np.cumsum(found["tree_nodes"]), found["node_widths"].astype(np.int64)
    ends = [_ends(widths * (widths - 1) // 2, nodes)]
    columns: list[AnyArray] = [found["node_distances"]]
    lengths = np.full(pivots.n_rows, pivots.n_features) if pivots.indptr is None else np.diff(pivots.indptr)
    entries = _ends(lengths, _ends(widths, nodes))
    for name, column in (("pivot_values", pivots.values.ravel()), ("pivot_indices", pivots.indices)):
        if column is not None:
            columns.append(np.ascontiguousarray(column, dtype=arrays[name].dtype))
            ends.append(entries)
    sums = [
        [xxhash.xxh3_64_intdigest(part.data) for part in np.split(column, end[:-1])]
        for column, end in zip(columns, ends, strict=True)
    ]
    return np.array(sums, dtype=np.uint64).T.ravel()


def _ends(counts: AnyArray, ends: AnyArray) -> Ints:
    """Where the things of groups end, for groups that end there and so many things of each member."""
    sums: Ints = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])[ends]
    return sums
