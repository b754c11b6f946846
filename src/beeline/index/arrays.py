"""Arrays of an index in NumPy's own files, written piece by piece, with a checksum."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import xxhash

from beeline._types import AnyArray
from beeline.data.files.sealed import checksum_text
from beeline.exceptions import CorruptStoreError, StoreError

__all__ = ["ArrayPieces", "ArrayWriter", "read_array"]

_HEADER = 128  # bytes: what NumPy needs for an array of one or two dimensions


class ArrayWriter:
    """Writes an array whose length is known in the end only.

    Parameters
    ----------
    path
        The file, which any NumPy can load.
    dtype
        Of the numbers.
    """

    def __init__(self, path: Path, dtype: Any) -> None:  # noqa: ANN401
        self.path, self.dtype, self.length = path, np.dtype(dtype), 0
        self._checksum = xxhash.xxh3_64()
        self._file: BinaryIO = path.open("wb")
        self._file.write(_header(self.dtype, 0))

    def write(self, piece: AnyArray) -> None:
        """Add numbers."""
        piece = np.ascontiguousarray(piece, dtype=self.dtype)
        self._checksum.update(piece.data)
        self._file.write(piece.data)
        self.length += len(piece)

    def close(self) -> dict[str, Any]:
        """Bring the file to the disk; what `read_array` needs to know of it."""
        self._file.seek(0)
        self._file.write(_header(self.dtype, self.length))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        digest = checksum_text(self._checksum.intdigest())
        return {"file": self.path.name, "dtype": self.dtype.str, "length": self.length, "checksum": digest}

    def abandon(self) -> None:
        """Close the file without finishing it."""
        self._file.close()


def read_array(folder: Path, record: dict[str, Any]) -> AnyArray:
    """An array, compared with its checksum."""
    pieces = ArrayPieces(folder, record)
    return pieces.read(0, pieces.length, str(record["checksum"]))


class ArrayPieces:
    """An array of which pieces are read.

    Parameters
    ----------
    folder, record
        Where its file is, and what the writer said of it: its size and header are compared with that.

    Attributes
    ----------
    length, itemsize
        How many numbers it has, and bytes of each.
    """

    def __init__(self, folder: Path, record: dict[str, Any]) -> None:
        self.path = folder / str(record["file"])
        self._dtype, self.length = np.dtype(record["dtype"]), int(record["length"])
        self.itemsize = self._dtype.itemsize
        wanted = _HEADER + self.length * self.itemsize
        try:
            size = self.path.stat().st_size
            if size != wanted:
                what = "truncated" if size < wanted else "altered"
                raise CorruptStoreError(
                    f"{self.path} was {what}: it has {size:,} bytes instead of {wanted:,}; build the index again"
                )
            with self.path.open("rb") as file:
                intact = file.read(_HEADER) == _header(self._dtype, self.length)
        except FileNotFoundError:
            raise CorruptStoreError(f"{self.path} is missing from the index; build the index again") from None
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from error
        if not intact:
            raise self._altered()

    def read(self, start: int, stop: int, checksum: str | None = None) -> AnyArray:
        """Numbers start … stop−1, compared with their checksum where it is known."""
        try:
            array = np.fromfile(self.path, self._dtype, stop - start, offset=_HEADER + start * self.itemsize)
        except FileNotFoundError:
            raise CorruptStoreError(f"{self.path} is missing from the index; build the index again") from None
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from error
        found = checksum and checksum_text(xxhash.xxh3_64_intdigest(array.data))
        if len(array) != stop - start or found != checksum:
            raise self._altered()
        return array

    def _altered(self) -> CorruptStoreError:
        return CorruptStoreError(f"{self.path} was altered after it was written; build the index again")


def _header(dtype: np.dtype[Any], length: int) -> bytes:
    """As NumPy writes it, version 1.0."""
    text = repr({"descr": dtype.str, "fortran_order": False, "shape": (length,)})
    return b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little") + text.ljust(_HEADER - 11).encode() + b"\n"
