"""An index of a store, open: rows in leaves, what is known of each without reading it, and how to read it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import xxhash

from beeline._lazy import cached_property
from beeline._types import AnyArray, Floats, Ints
from beeline._words import count, offer
from beeline.data.core.block import Block, Labels
from beeline.data.core.dataset import Dataset
from beeline.data.files.sealed import checksum_text
from beeline.data.store import Store, open_store
from beeline.data.store.form import merged
from beeline.data.store.reading import ChunkReader
from beeline.exceptions import CorruptStoreError, ParameterError, StoreError
from beeline.index.arrays import ArrayPieces, read_array
from beeline.index.boxes import Boxes
from beeline.index.forest import Forest
from beeline.index.guides import Guide
from beeline.index.info import FILE, IndexInfo, fingerprint
from beeline.index.samples import Samples, load_rows
from beeline.index.trees import Trees, TreeShapes

__all__ = ["KINDS", "IndexedRows", "Pilot", "StoreIndex", "indexes_of", "open_index"]

KINDS = ("boxes", "chunks", "forest")
_FOLDER = "index-"
_PART = 8  # of the memory, for the trees of a forest


class Pilot:
    """Random rows of a store, from which training begins: as many of them as rare classes need.

    Attributes
    ----------
    positions
        Where they lie among all rows, in the order of the index.
    block
        The rows.
    weights
        For how many rows each of them stands.
    """

    def __init__(self, positions: Ints, block: Block, weights: Floats) -> None:
        self.positions, self.block, self.weights = positions, block, weights


class StoreIndex:
    """The index of a store.

    Rows lie in the order of the leaves; a leaf lies in one chunk, and what is read is a chunk.

    Parameters
    ----------
    path, info
        The folder, and what it says.
    memory
        Bytes that rows may take which were read, as a budget of `rows`; None: nothing was said.

    Attributes
    ----------
    rows
        The rows in the order of the leaves, as a store without labels.
    starts, ends
        The first row of each leaf, and the row behind its last one.
    """

    def __init__(self, path: Path, info: IndexInfo, memory: int | None = None) -> None:
        self.path, self.info, self.memory, self._order_is_checked = path, info, memory, False
        self.rows: Store = open_store(path, memory)
        bounds = np.zeros(1 + len(counts := self._array("leaf_rows")), np.int64)
        np.cumsum(counts, out=bounds[1:])
        self.starts, self.ends = bounds[:-1], bounds[1:]
        if not len(self.ends) or self.ends[-1] != self.rows.n_rows or self.rows.n_rows != info.n_rows:
            raise CorruptStoreError(f"{path} does not hold the rows that its {FILE} says; build the index again")

    def __repr__(self) -> str:
        leaves = count(self.n_leaves, "leaf", "leaves")
        return f"StoreIndex({self.info.kind!r}, {leaves} of {count(self.rows.n_rows, 'row')})"

    def _array(self, name: str) -> AnyArray:
        return read_array(self.path, self.info.arrays[name])

    @property
    def fingerprint(self) -> str:
        """What tells this index from all others, also from one of the same kind and rows that was built otherwise."""
        own = json.dumps([self.info.kind, self.info.settings, self.info.arrays], sort_keys=True)
        return checksum_text(xxhash.xxh3_64_intdigest((own + fingerprint(self.rows)).encode()))

    @property
    def n_leaves(self) -> int:
        """How many leaves there are."""
        return len(self.ends)

    @property
    def nbytes(self) -> int:
        """Bytes on disk."""
        beside = sum(int(np.dtype(a["dtype"]).itemsize) * int(a["length"]) for a in self.info.arrays.values())
        return self.rows.nbytes + beside

    def order(self, start: int = 0, stop: int | None = None) -> Ints:
        """The numbers of rows start … stop−1 in the store."""
        if not self._order_is_checked:
            self._array("order")  # which compares it with its checksum
            self._order_is_checked = True
        last = self.rows.n_rows if stop is None else stop
        return ArrayPieces(self.path, self.info.arrays["order"]).read(start, last).astype(np.int64)

    @cached_property
    def chunk_of_leaf(self) -> Ints:
        """The chunk in which each leaf lies."""
        found: Ints = np.searchsorted(self.rows.chunk_ends, self.starts, side="right").astype(np.int64)
        return found

    @cached_property
    def first_leaves(self) -> Ints:
        """The first leaf of each chunk, and behind the last chunk the number of leaves."""
        found: Ints = np.searchsorted(self.chunk_of_leaf, np.arange(self.rows.n_chunks + 1)).astype(np.int64)
        return found

    @cached_property
    def guide(self) -> Guide:
        """What is known of the leaves; loaded when it is first asked for."""
        if self.info.kind == "boxes":
            return Boxes.load(self._array)
        if self.info.kind == "forest":
            shapes, room = TreeShapes(self._array), None if self.memory is None else self.memory // _PART
            trees = Trees(self.path, self.info.arrays, shapes, self.rows.n_features, room)
            return Forest(shapes, trees, self._array("leaf_scales"), self._array("leaf_spreads"))
        block = load_rows(self._array, "sample", self.rows.n_features, sparse=self._is_sparse)
        return Samples(block, np.cumsum(self._array("sample_counts"), dtype=np.int64))

    def pilot(self) -> Pilot:
        """Random rows, loaded: whoever trains goes on with them, and nobody else keeps them."""
        block = load_rows(self._array, "pilot", self.rows.n_features, sparse=self._is_sparse)
        return Pilot(self._array("pilot_positions").astype(np.int64), block, self._array("pilot_weights"))

    @cached_property
    def moments(self) -> tuple[Floats, Floats, float]:
        """Σ x_ij and Σ x_ij² of every feature, and the length of the longest row."""
        return self._array("feature_sums"), self._array("feature_squares"), float(self._array("longest_row")[0])

    def verify(self) -> None:
        """Read everything and compare it with its checksums; raises `CorruptStoreError` with the first flaw."""
        for name in self.info.arrays:
            self._array(name)
        self.rows.verify()

    @property
    def _is_sparse(self) -> bool:
        return self.rows.manifest.form.layout == "sparse"

    def reader(self, room: int = 0) -> ChunkReader:
        """Who reads chunks, and keeps as many as there is room for."""
        return ChunkReader(self.rows, room)

    def as_rows(self) -> IndexedRows:
        """The rows as a data set."""
        return IndexedRows(self)

    def rows_of(self, reader: ChunkReader, chunks: Sequence[int]) -> tuple[Ints, Block]:
        """(where the rows of some chunks lie, the rows)."""
        blocks = reader.read(chunks)
        ends, sizes = self.rows.chunk_ends[list(chunks)], [block.n_rows for block in blocks]
        positions = np.concatenate([np.arange(e - n, e) for e, n in zip(ends.tolist(), sizes, strict=True)])
        return positions, blocks[0] if len(blocks) == 1 else merged(blocks, self.rows.manifest.form)


class IndexedRows(Dataset):
    """The rows of an index as a data set: those of its store, in another order, without labels.

    Attributes
    ----------
    index
        The index.
    """

    ordered = True

    def __init__(self, index: StoreIndex) -> None:
        self.index, store = index, index.rows
        self.n_rows, self.n_features, self.nnz = store.n_rows, store.n_features, store.nnz
        self.recipe, self.memory = None, store.memory

    def __repr__(self) -> str:
        return repr(self.index)

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (self.index.path, self.memory)

    def order(self, start: int = 0, stop: int | None = None) -> Ints:
        """The numbers of rows start … stop−1 in the store."""
        return self.index.order(start, stop)

    def blocks(self, memory: int | None = None) -> Iterator[Block]:
        """All rows in the order of the leaves."""
        return self.index.rows.blocks(memory)

    def cuts(self, memory: int) -> list[int]:
        """Row numbers between chunks, so that no leaf is cut."""
        return self.index.rows.cuts(memory)

    def rows(self, start: int, stop: int) -> Block:
        """Rows start … stop−1, in the order of the leaves."""
        return self.index.rows.rows(start, stop)

    def will_need(self, start: int, stop: int) -> None:
        """Say that rows start … stop−1 are read soon."""
        self.index.rows.will_need(start, stop)

    def gather(self, picked: AnyArray, *, threads: int = 0) -> Block:
        """The picked rows, in the order of the leaves."""
        return self.index.rows.gather(picked, threads=threads)

    def within(self, memory: int) -> IndexedRows:
        """The same rows, of which about so many bytes are held at one time."""
        return self if memory == self.memory else _reopened(self.index.path, memory)

    @property
    def labels(self) -> Labels | None:
        """None: an index serves any labels."""
        return None

    @property
    def weights(self) -> Floats | None:
        """None: an index serves any weights."""
        return None

    @property
    def queries(self) -> Ints | None:
        """None."""
        return None

    @property
    def value_range(self) -> tuple[float, float] | None:
        """The smallest and the largest stored value."""
        return self.index.rows.value_range


def _reopened(path: Path, memory: int | None) -> IndexedRows:
    return IndexedRows(StoreIndex(path, IndexInfo.load(path), memory))


def indexes_of(store: Store) -> list[str]:
    """The kinds of index that a store has, whether they are still its own or not."""
    return [kind for kind in KINDS if (store.path / f"{_FOLDER}{kind}" / FILE).exists()]


def folder_of(store: Store, kind: str) -> Path:
    """Where the index of that kind is, or would be."""
    if kind not in KINDS:
        raise ParameterError(f"there is no kind of index {kind!r}; {offer(kind, KINDS)}", parameter="kind")
    return store.path / f"{_FOLDER}{kind}"


def open_index(store: Store, kind: str) -> StoreIndex:
    """The index of a store; one that was built for other rows is refused."""
    folder = folder_of(store, kind)
    if not folder.exists():
        there = indexes_of(store)
        offer = f"there is {' and '.join(there)}" if there else "it has none"
        raise StoreError(f"{store.path} has no index of the kind {kind}; {offer}; build one by `beeline index`")
    info = IndexInfo.load(folder)
    if info.store != fingerprint(store) or info.kind != kind:
        raise StoreError(
            f"{folder} is the index of other rows than {store.path} holds now; build it again by `beeline index`"
        )
    return StoreIndex(folder, info, store.memory)
