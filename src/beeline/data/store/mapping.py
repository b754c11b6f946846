"""A part of a store in memory, as the operating system maps it: pages are read when they are first touched."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from beeline._types import Ints
from beeline.data.core.block import Block
from beeline.data.store.form import Form
from beeline.data.store.manifest import PartInfo
from beeline.exceptions import CorruptStoreError, StoreError

__all__ = ["MappedPart", "check_size"]

_PAGE = mmap.PAGESIZE


class MappedPart:
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
        self._map = self._open()
        self._buffer = pa.py_buffer(self._map)
        self._check_frame()

    def _open(self) -> mmap.mmap:
        try:
            with self.path.open("rb") as file:
                # A page behind the end of a file cannot be read, only died of: the size is checked before mapping.
                check_size(self.path, self.info, os.fstat(file.fileno()).st_size)
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            raise missing(self.path) from None
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror or error}") from error

    def _check_frame(self) -> None:
        digest = xxhash.xxh3_64()
        digest.update(self._buffer.slice(0, self.info.start))
        digest.update(self._buffer.slice(int(self.ends[-1])))
        if digest.intdigest() != self.info.frame:
            raise _altered(self.path, "its header or footer")

    def block(self, chunk: int, n_features: int) -> Block:
        """The rows of a chunk of this part, as views of the mapped file."""
        start, length = int(self.starts[chunk]), int(self.info.chunks.nbytes[chunk])
        piece = self._buffer.slice(start, length)
        if not self._verified[chunk]:
            if xxhash.xxh3_64_intdigest(piece) != self.info.chunks.checksum[chunk]:
                raise _altered(self.path, f"chunk {chunk}, bytes {start:,} to {start + length:,}")
            self._verified[chunk] = True
        block: Block = self._parsed(piece, lambda batch: self.form.from_batch(batch, n_features))
        if (block.n_rows, block.nnz) != (self.info.chunks.rows[chunk], self.info.chunks.nnz[chunk]):
            raise self._unlike_manifest(chunk)
        return block

    def targets(self, chunk: int) -> dict[str, Any]:
        """Labels, weights and queries of a chunk, as views of the mapped file; no byte of the rows is read.

        A checksum is that of a whole chunk: what was altered here is found when the rows are first read.
        """
        piece = self._buffer.slice(int(self.starts[chunk]), int(self.info.chunks.nbytes[chunk]))
        targets: dict[str, Any] = self._parsed(piece, self.form.targets)
        if any(len(column) != self.info.chunks.rows[chunk] for column in targets.values()):
            raise self._unlike_manifest(chunk)
        return targets

    def _parsed(self, piece: pa.Buffer, parse: Callable[[pa.RecordBatch], Any]) -> Any:  # noqa: ANN401
        try:
            return parse(pa.ipc.read_record_batch(piece, self.form.schema))
        except (pa.ArrowException, ValueError, IndexError) as error:
            raise CorruptStoreError(f"{self.path} does not hold what the manifest says: {error}") from None

    def _unlike_manifest(self, chunk: int) -> CorruptStoreError:
        return CorruptStoreError(f"{self.path}: chunk {chunk} does not have the rows that the manifest says")

    def in_random_order(self) -> None:
        """Tell the system that few bytes of each chunk are read, so that it reads no others along with them."""
        self._map.madvise(mmap.MADV_RANDOM)

    def will_need(self, first: int, last: int) -> None:
        """Tell the system that chunks first … last−1 are read next."""
        self._advise(mmap.MADV_WILLNEED, int(self.starts[first]) // _PAGE * _PAGE, int(self.ends[last - 1]))

    def drop(self, chunk: int) -> None:
        """Give back the memory of a chunk; it is read anew when it is touched again."""
        begin, end = int(self.starts[chunk]) // _PAGE * _PAGE, int(self.ends[chunk])
        self._advise(mmap.MADV_DONTNEED, begin, end // _PAGE * _PAGE if chunk + 1 < len(self.ends) else end)

    def _advise(self, advice: int, begin: int, end: int) -> None:
        if end > begin:
            self._map.madvise(advice, begin, end - begin)


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


def _altered(path: Path, where: str) -> CorruptStoreError:
    return CorruptStoreError(f"{path} was altered after it was written ({where}); convert the source again")
