"""The arrays of a `.npz` archive as NumPy opens it, taken in step from their beginnings; nothing is unpickled."""

from __future__ import annotations

import lzma
import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import numpy as np
from numpy.lib import format
from numpy.lib.npyio import NpzFile

from beeline._types import AnyArray
from beeline._words import count
from beeline.data.core.arrays import from_arrays
from beeline.data.core.block import Block
from beeline.exceptions import DataError, FormatError, LabelError

__all__ = ["Archive"]

_CSR, _OPTIONAL = {"data", "indices", "indptr", "shape"}, {"format", "_is_array"}
_TARGETS = {"y": "labels", "labels": "labels", "weights": "weights", "queries": "queries"}
_HEADERS = {(1, 0): format.read_array_header_1_0, (2, 0): format.read_array_header_2_0}
# What zipfile, its decompressors and NumPy raise for bytes that are not what they should be.
_DAMAGED = (ValueError, KeyError, EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
_SMALL = 1 << 10  # bytes that a shape or the name of a format may take


class _Member:
    """One array of an archive, taken from its beginning in runs of items or rows.

    NumPy reads a member as a whole or not at all; opening it and the array's header are NumPy's.
    """

    def __init__(self, archive: NpzFile, name: str, file: str) -> None:
        self.name, self._archive, self._file = name, archive, file
        with self._reading():
            assert archive.zip is not None
            self._stream = archive.zip.open(f"{name}.npy")
            version = format.read_magic(self._stream)
            if version not in _HEADERS:
                raise FormatError(f"array {name!r} has the unknown format version {version}", file=file)
            self.shape, by_columns, self.dtype = _HEADERS[version](self._stream)
            if min(self.shape, default=0) < 0:
                raise ValueError(f"its shape is {self.shape}")
        if self.dtype.hasobject:
            raise FormatError(f"array {name!r} holds Python objects, which are never loaded; save numbers", file=file)
        self.by_columns = by_columns and len(self.shape) == 2 and min(self.shape) > 1
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize

    def take(self, count: int) -> AnyArray:
        """The next `count` items of a vector, or rows of a matrix."""
        if self.by_columns:
            raise FormatError(
                f"array {self.name!r} lies column by column and is too large for the memory; save "
                f"numpy.ascontiguousarray({self.name})",
                file=self._file,
            )
        shape = (count, *self.shape[1:])
        size = math.prod(shape) * self.dtype.itemsize
        with self._reading():
            data = self._stream.read(size)
        if len(data) != size:
            raise FormatError(f"array {self.name!r} ends too early; the file is cut off", file=self._file)
        return np.frombuffer(data, self.dtype).reshape(shape)

    def all(self, most: int) -> AnyArray:
        """The whole array, which must not have more than so many bytes, as NumPy reads it."""
        if self.nbytes > most:
            raise FormatError(f"array {self.name!r} has the impossible shape {self.shape}", file=self._file)
        with self._reading():
            whole: AnyArray = self._archive[self.name]
        return whole

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGED as error:
            raise FormatError(f"array {self.name!r} cannot be read: {error}", file=self._file) from error

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


class Archive:
    """The arrays of one file, as rows with what goes beside them."""

    def __init__(self, name: str, handle: Any) -> None:  # noqa: ANN401
        self._name = name
        with ExitStack() as stack:
            try:
                archive = stack.enter_context(NpzFile(handle, allow_pickle=False))
            except (zipfile.BadZipFile, NotImplementedError) as error:
                raise FormatError(f"this is no valid .npz file: {error}", file=name) from error
            assert archive.zip is not None
            if not any(member.endswith(".npy") for member in archive.zip.namelist()):
                raise FormatError("the zip archive holds no NumPy array, so it is no .npz file; unpack it", file=name)
            names = archive.files
            self._check_names(names)
            self._members = {n: stack.enter_context(closing(_Member(archive, n, name))) for n in names}
            self.is_sparse = "X" not in names
            self.n_rows, self.n_features = self._sparse_shape() if self.is_sparse else self._dense_shape()
            self._check_targets()
            self._stack = stack.pop_all()

    def _check_targets(self) -> None:
        for name, role in _TARGETS.items():
            if name in self._members and self._members[name].shape != (self.n_rows,):
                kind = LabelError if role == "labels" else DataError
                raise kind(
                    f"{self._name}: array {name!r} has shape {self._members[name].shape}, not one number for each of "
                    f"{self.n_rows} rows"
                )

    def close(self) -> None:
        """Close the file."""
        self._stack.close()

    def _check_names(self, names: list[str]) -> None:
        rows = _CSR if "X" not in names else {"X"}
        shown = ", ".join(sorted(names)) or "none"
        if absent := sorted(rows - set(names)):
            raise FormatError(
                f"the arrays must be X, or a matrix saved by scipy.sparse.save_npz, with y, weights and queries beside "
                f"it; {absent[0]!r} is not among {shown}",
                file=self._name,
            )
        if strange := sorted(set(names) - rows - _OPTIONAL - set(_TARGETS)):
            raise FormatError(f"array {strange[0]!r} is not known; expected X, y, weights, queries", file=self._name)
        if {"y", "labels"} <= set(names):
            raise FormatError("there are labels twice, as y and as labels", file=self._name)

    def _dense_shape(self) -> tuple[int, int]:
        shape = self._members["X"].shape
        if len(shape) != 2:
            raise FormatError(f"X must have rows and columns, not shape {shape}", file=self._name)
        return shape

    def _sparse_shape(self) -> tuple[int, int]:
        stored = bytes(self._members["format"].all(_SMALL)) if "format" in self._members else b"csr"
        kind = stored.replace(b"\0", b"").decode("ascii", "replace")
        if kind != "csr":
            raise FormatError(f"the matrix is {kind!r}, not CSR; save X.tocsr()", file=self._name)
        shape = self._members["shape"].all(_SMALL)
        if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
            raise FormatError(f"the shape of a matrix must be two whole numbers, not {shape}", file=self._name)
        n_rows, n_features = (int(n) for n in shape)
        if self._members["indptr"].shape != (n_rows + 1,):
            raise FormatError(f"indptr must have {count(n_rows + 1, 'entry', 'entries')}", file=self._name)
        if self._members["indices"].shape != self._members["data"].shape:
            raise FormatError("indices and data must have the same length", file=self._name)
        return n_rows, n_features

    def blocks(self, memory: int, dtype: str, *, allow_nonfinite: bool) -> Iterator[Block]:
        """All rows in order, in blocks of at most about `memory` bytes."""
        rows = self._sparse_rows(memory) if self.is_sparse else self._dense_rows(memory)
        sides = {role: self._members[name] for name, role in _TARGETS.items() if name in self._members}
        row = 1
        for X in rows:
            taken = {role: member.take(X.shape[0]) for role, member in sides.items()}
            try:
                with np.errstate(over="ignore"):  # what is too large for float32 is found by the check for infinity
                    X = X.astype(dtype, copy=False)  # noqa: PLW2901
                yield from_arrays(
                    X,
                    taken.get("labels"),
                    weights=taken.get("weights"),
                    queries=taken.get("queries"),
                    allow_nonfinite=allow_nonfinite,
                ).block
            except DataError as error:
                raise type(error)(f"{self._name}, rows from {row} on: {error}") from error
            row += X.shape[0]

    def _dense_rows(self, memory: int) -> Iterator[AnyArray]:
        member = self._members["X"]
        if member.dtype.kind not in "biuf":
            raise FormatError(f"X holds {member.dtype}, not numbers", file=self._name)
        if member.by_columns and member.nbytes <= 4 * memory:
            yield np.ascontiguousarray(member.all(4 * memory))
            return
        step = max(1, memory // max(1, self.n_features * 8))
        for start in range(0, self.n_rows, step):
            yield member.take(min(step, self.n_rows - start))

    def _sparse_rows(self, memory: int) -> Iterator[Any]:
        import scipy.sparse

        data, indices, indptr = (self._members[name] for name in ("data", "indices", "indptr"))
        last, row, waiting = 0, 0, np.zeros(0, np.int64)
        if int(indptr.take(1)[0]) != 0:
            raise FormatError("row positions (indptr) must begin with 0", file=self._name)
        while row < self.n_rows:
            if not len(waiting):
                waiting = indptr.take(min(1 << 16, self.n_rows - row)).astype(np.int64)
            # As many rows as fit, at least one.
            n = max(1, int(np.searchsorted(waiting - last, max(1, memory // 16), side="right")))
            positions = np.concatenate([[0], waiting[:n] - last])
            if (np.diff(positions) < 0).any():
                raise FormatError("row positions (indptr) decrease", file=self._name)
            count = int(positions[-1])
            try:
                parts = (data.take(count), indices.take(count), positions)
                yield scipy.sparse.csr_array(parts, shape=(n, self.n_features))
            except ValueError as error:
                raise FormatError(f"this is no valid CSR matrix: {error}", file=self._name) from error
            last, row, waiting = int(waiting[n - 1]), row + n, waiting[n:]
        if data.shape != (last,):
            raise FormatError("row positions (indptr) do not end with the last entry", file=self._name)
