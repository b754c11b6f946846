"""The chunks of one part of a store: where they lie, and how bytes become rows again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from beeline._types import Ints
from beeline.data.core.block import Block
from beeline.data.core.labels import LabelSets
from beeline.data.store.arrow import pa
from beeline.data.store.form import Form
from beeline.data.store.manifest import PartInfo
from beeline.exceptions import CorruptStoreError

__all__ = ["PartChunks", "altered", "check_size", "missing", "targets_checksum"]


class PartChunks:
    """The chunks of one part, checked when they are first read.

    Threads may share it: a chunk that two of them read first at the same time is checked twice, and that is all.

    Parameters
    ----------
    path, info, form
        The file, what the manifest says about it, and the form of its rows.
    verified
        Remembers which chunks were checked.
    """

    def __init__(self, path: Path, info: PartInfo, form: Form, verified: NDArray[np.bool_] | None = None) -> None:
        self.path, self.info, self.form = path, info, form
        self.ends: Ints = info.start + np.cumsum(info.chunks.nbytes)
        self.starts: Ints = self.ends - info.chunks.nbytes
        self._verified = np.zeros(len(self.ends), np.bool_) if verified is None else verified

    def rows_of(self, chunk: int, piece: pa.Buffer, n_features: int) -> Block:
        """The rows of a chunk, as views of its bytes."""
        self._check(chunk, piece)
        block: Block = self.parsed(piece, lambda batch: self.form.from_batch(batch, n_features))
        if (block.n_rows, block.nnz) != (self.info.chunks.rows[chunk], self.info.chunks.nnz[chunk]):
            raise self.unlike_manifest(chunk)
        return block

    def targets_of(self, chunk: int, piece: pa.Buffer) -> dict[str, Any]:
        """Labels, weights and queries of a chunk, as views of its bytes; no byte of the rows is read.

        They have a checksum of their own. In a store without it, that of the whole chunk must do.
        """
        known = self.info.chunks.target_checksum
        if known is None:
            self._check(chunk, piece)
        targets: dict[str, Any] = self.parsed(piece, self.form.targets)
        if any(len(column) != self.info.chunks.rows[chunk] for column in targets.values()):
            raise self.unlike_manifest(chunk)
        if known is not None and targets_checksum(targets) != known[chunk]:
            raise altered(self.path, f"the labels, weights or query ids of chunk {chunk}")
        return targets

    def _check(self, chunk: int, piece: pa.Buffer) -> None:
        """Compare a chunk with its checksum, once."""
        if self._verified[chunk]:
            return
        if xxhash.xxh3_64_intdigest(piece) != self.info.chunks.checksum[chunk]:
            where = f"chunk {chunk}, bytes {self.starts[chunk]:,} to {self.ends[chunk]:,}"
            raise altered(self.path, where)
        self._verified[chunk] = True

    def parsed(self, piece: pa.Buffer, parse: Callable[[pa.RecordBatch], Any]) -> Any:  # noqa: ANN401
        """What a function makes of the record batch in these bytes."""
        try:
            return parse(pa.ipc.read_record_batch(piece, self.form.schema))
        except (pa.ArrowException, OSError, ValueError, IndexError) as error:  # Arrow's own errors are OSErrors too
            raise CorruptStoreError(f"{self.path} does not hold what the manifest says: {error}") from None

    def unlike_manifest(self, chunk: int) -> CorruptStoreError:
        """The error for a chunk that has other rows."""
        return CorruptStoreError(f"{self.path}: chunk {chunk} does not have the rows that the manifest says")


def targets_checksum(targets: dict[str, Any]) -> int:
    """XXH3-64 of labels, weights and queries; of label sets, first where each row's begin."""
    digest = xxhash.xxh3_64()
    for column in targets.values():
        arrays = (column.indptr, column.stored()) if isinstance(column, LabelSets) else (column,)
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
    return digest.intdigest()


def check_size(path: Path, info: PartInfo, size: int) -> None:
    """Raise if a part's file does not have the size it was written with."""
    if size != info.nbytes:
        what = "truncated" if size < info.nbytes else "altered"
        raise CorruptStoreError(
            f"{path} was {what}: it has {size:,} bytes instead of {info.nbytes:,}; convert the source again"
        )


def missing(path: Path) -> CorruptStoreError:
    """The error for a part that is not there."""
    return CorruptStoreError(f"{path} is missing from the store; convert the source again")


def altered(path: Path, where: str) -> CorruptStoreError:
    """The error for bytes that are not those that were written."""
    return CorruptStoreError(f"{path} was altered after it was written ({where}); convert the source again")
