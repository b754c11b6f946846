"""The files of an index: rows in the order of their leaves, and what is beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from beeline import __version__
from beeline._types import Floats, Ints
from beeline.data.core.block import Block
from beeline.data.store import Store
from beeline.data.store.folder import sync_file
from beeline.data.store.manifest import MANIFEST, Manifest
from beeline.data.store.parts import PartWriter
from beeline.data.store.shuffle import keys_of
from beeline.index.arrays import ArrayWriter
from beeline.index.boxes import BoxWriter
from beeline.index.forest_writing import ForestWriter
from beeline.index.guides import GuideWriter
from beeline.index.info import FILE, IndexInfo, fingerprint
from beeline.index.samples import RowsWriter, SampleWriter
from beeline.index.settings import IndexSettings

__all__ = ["IndexWriter"]

# Random rows: how many, of how many at most, and of each class at least.
_PILOT, _PILOT_SHARE, _OF_CLASS = 20_000, 0.01, 200
_FEWEST = 1000
_PART_BYTES = 512 << 20


class IndexWriter:
    """Takes rows in the order of their leaves, and writes all files of an index.

    Parameters
    ----------
    folder
        Where the files go.
    store, kind, settings
        Of which rows, and what for an index.
    """

    def __init__(self, folder: Path, store: Store, kind: str, settings: IndexSettings) -> None:
        self.folder, self.store, self.kind, self.settings = folder, store, kind, settings
        self.form = replace(store.manifest.form, labels=None, weights=False, queries=False)
        assert settings.chunk_bytes is not None
        self.chunk_bytes = settings.chunk_bytes
        self.parts = PartWriter(folder, self.form, self.chunk_bytes, _PART_BYTES)
        self.arrays: dict[str, ArrayWriter] = {}
        self.n_written = 0
        self.shares = _pilot_shares(store)
        n_features = store.n_features
        self.guide: GuideWriter
        if kind == "boxes":
            self.guide = BoxWriter(folder, n_features, settings)
        elif kind == "chunks":
            self.guide = SampleWriter(folder, self.form, n_features, settings)
        else:
            self.guide = ForestWriter(folder, self.form, store.shape, settings)
        self.pilot = RowsWriter(folder, "pilot", self.form, n_features)
        self.sums, self.squares, self.longest = np.zeros(n_features), np.zeros(n_features), 0.0

    def write(self, block: Block, ends: Ints, numbers: Ints, labels: Floats | None) -> Iterator[Block]:
        """Write rows, in leaves that end there; gives them back chunk by chunk as they are written.

        Parameters
        ----------
        block
            The rows in the order of their leaves, without labels.
        numbers, labels
            The number of each row in the store; its label, where the store has classes.
        """
        for start, stop in self._chunks(block, ends):
            piece = block.rows(start, stop)
            self.parts.write_chunk(piece)
            yield piece
        self._array("order", np.uint32 if self.store.n_rows < 2**32 else np.int64).write(numbers)
        self._array("leaf_rows", np.int32).write(np.diff(np.concatenate([[0], ends])))
        self.guide.write(block, ends)
        self._write_pilot(block, numbers, labels)
        ones = np.ones(block.n_rows)
        self.sums += block.transposed(ones)
        self.squares += block.gram_diagonal(ones)
        self.longest = max(self.longest, block.arrays.longest_row())
        self.n_written += block.n_rows

    def finish(self, seconds: float) -> IndexInfo:
        """Bring everything to the disk."""
        parts = self.parts.close()
        self._array("feature_sums", np.float64).write(self.sums)
        self._array("feature_squares", np.float64).write(self.squares)
        self._array("longest_row", np.float64).write(np.array([self.longest]))
        manifest = Manifest(
            n_rows=self.store.n_rows,
            n_features=self.store.n_features,
            nnz=sum(int(part.chunks.nnz.sum()) for part in parts),
            form=self.form,
            parts=tuple(parts),
            row_order={"kind": "index"},
            statistics=self.parts.statistics.to_json(),
            made_by=f"beeline {__version__}",
        )
        info = IndexInfo(
            kind=self.kind,
            settings=asdict(self.settings),
            store=fingerprint(self.store),
            n_rows=self.store.n_rows,
            n_leaves=self.arrays["leaf_rows"].length,
            seconds=seconds,
            arrays={name: array.close() for name, array in self._all_arrays().items()},
            made_by=f"beeline {__version__}",
        )
        sync_file(self.folder / MANIFEST, manifest.to_bytes())
        sync_file(self.folder / FILE, info.to_bytes())
        return info

    def abandon(self) -> None:
        """Close all files without finishing them."""
        self.parts.abandon()
        for array in self._all_arrays().values():
            array.abandon()

    def _array(self, name: str, dtype: Any) -> ArrayWriter:  # noqa: ANN401
        if name not in self.arrays:
            self.arrays[name] = ArrayWriter(self.folder / f"{name}.npy", dtype)
        return self.arrays[name]

    def _all_arrays(self) -> dict[str, ArrayWriter]:
        return {**self.arrays, **self.guide.arrays, **self.pilot.arrays}

    def _chunks(self, block: Block, ends: Ints) -> Iterator[tuple[int, int]]:
        """Runs of whole leaves that are read together."""
        bytes_at = self.form.row_ends(block)[ends - 1]
        first = start = 0
        while first < len(ends):
            before = int(bytes_at[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(bytes_at, before + self.chunk_bytes, side="right")))
            yield start, int(ends[last - 1])
            first, start = last, int(ends[last - 1])

    def _write_pilot(self, block: Block, numbers: Ints, labels: Floats | None) -> None:
        """Rows whose random key lies below the share of their class."""
        share = np.full(block.n_rows, self.shares[None])
        if labels is not None:
            for label, part in self.shares.items():
                if label is not None:
                    share[labels == label] = part
        keys = keys_of(numbers, self.settings.seed) >> np.uint64(11)  # 53 bits, as a double has them
        picked = np.flatnonzero(keys < share * 2.0**53)
        self.pilot.write(block.gather(picked))
        self._array("pilot_positions", np.int64).write(self.n_written + picked)
        self._array("pilot_weights", np.float64).write(1 / share[picked])


def _pilot_shares(store: Store) -> dict[float | None, float]:
    """Which share of the rows of each class is drawn, by label; None: of all rows that have no class."""
    wanted = min(_PILOT, max(_FEWEST, _PILOT_SHARE * store.n_rows))
    shares: dict[float | None, float] = {None: min(1.0, wanted / store.n_rows)}
    for label, count in (store.label_counts or {}).items():
        shares[label] = min(1.0, max(wanted / store.n_rows, _OF_CLASS / count))
    return shares
