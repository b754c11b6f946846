"""A part of a store in memory, as the operating system maps it: pages are read when they are first touched."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from beeline.data.core.block import Block
from beeline.data.store.arrow import pa
from beeline.data.store.chunks import PartChunks, altered, check_size, missing
from beeline.data.store.form import Form
from beeline.data.store.manifest import PartInfo
from beeline.exceptions import StoreError

__all__ = ["MappedPart"]

_PAGE = mmap.PAGESIZE


class MappedPart(PartChunks):
    """The chunks of one part, mapped into memory; see `PartChunks`."""

    def __init__(self, path: Path, info: PartInfo, form: Form, verified: NDArray[np.bool_] | None = None) -> None:
        super().__init__(path, info, form, verified)
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
            raise altered(self.path, "its header or footer")

    def block(self, chunk: int, n_features: int) -> Block:
        """The rows of a chunk of this part, as views of the mapped file."""
        return self.rows_of(chunk, self._piece(chunk), n_features)

    def targets(self, chunk: int) -> dict[str, Any]:
        """Labels, weights and queries of a chunk, as views of the mapped file."""
        return self.targets_of(chunk, self._piece(chunk))

    def _piece(self, chunk: int) -> pa.Buffer:
        """The bytes of a chunk; a file that has shrunk since it was mapped is told before a page of it is touched."""
        check_size(self.path, self.info, self._map.size())
        return self._buffer.slice(int(self.starts[chunk]), int(self.info.chunks.nbytes[chunk]))

    def in_random_order(self) -> None:
        """Tell the system that few bytes of each chunk are read, so that it reads no others along with them."""
        self._map.madvise(mmap.MADV_RANDOM)

    def will_need(self, first: int, last: int) -> None:
        """Tell the system that chunks first … last−1 are read next."""
        self._advise(mmap.MADV_WILLNEED, int(self.starts[first]) // _PAGE * _PAGE, int(self.ends[last - 1]))

    def will_need_targets(self, chunk: int) -> None:
        """Tell the system that a chunk's labels, weights and queries are read soon: what is first in it, and last."""
        begin, end = int(self.starts[chunk]), int(self.ends[chunk])
        columns = (self.form.labels is not None) + self.form.weights + self.form.queries
        last = max(begin, end - _PAGE - 8 * columns * int(self.info.chunks.rows[chunk]))
        self._advise(mmap.MADV_WILLNEED, begin // _PAGE * _PAGE, begin + 1)
        self._advise(mmap.MADV_WILLNEED, last // _PAGE * _PAGE, end)

    def drop(self, chunk: int) -> None:
        """Give back the memory of a chunk; it is read anew when it is touched again."""
        begin, end = int(self.starts[chunk]) // _PAGE * _PAGE, int(self.ends[chunk])
        self._advise(mmap.MADV_DONTNEED, begin, end // _PAGE * _PAGE if chunk + 1 < len(self.ends) else end)

    def _advise(self, advice: int, begin: int, end: int) -> None:
        if end > begin:
            self._map.madvise(advice, begin, end - begin)
