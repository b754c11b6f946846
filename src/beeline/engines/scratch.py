"""Room on disk for what lies beside the rows, where memory is not to be spent on it."""

from __future__ import annotations

import mmap
import os
import weakref
from collections import deque
from math import prod
from typing import Any

import numpy as np

from beeline._forks import ForkSafeLock
from beeline._types import AnyArray
from beeline.data.files.scratch import DISK_FULL, nameless_file, scratch_folder
from beeline.exceptions import StoreError

__all__ = ["Scratch"]

_PAGE = mmap.PAGESIZE
_SMALLEST = 1 << 20  # bytes of a file
_ARRAYS = 16  # for which a file has room


class Scratch:
    """Arrays in files without names, mapped into memory; room that one gives up goes to the next of its size.

    What was touched stays in memory until that is more than `memory`; then all of it is given back to the system, and
    read again where it is needed again. Disk space is reserved beforehand: where there is none, `StoreError` says so.
    Threads may use it at the same time. A forked child, which shares the files, makes new ones.

    Parameters
    ----------
    memory
        Bytes that may be in memory at one time, about.
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self._lock = ForkSafeLock()
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._files: list[mmap.mmap] = []
        self._left = 0  # bytes of the last file
        self._free: dict[int, list[tuple[mmap.mmap, int]]] = {}
        self._given_up: deque[tuple[int, mmap.mmap, int]] = deque()
        self._arrays: weakref.WeakValueDictionary[int, AnyArray] = weakref.WeakValueDictionary()
        self._bytes = 0

    def __reduce__(self) -> tuple[type[Scratch], tuple[int]]:
        return Scratch, (self.memory,)

    def array(self, shape: tuple[int, ...], dtype: Any) -> AnyArray:  # noqa: ANN401
        """A new array, of any numbers."""
        kind = np.dtype(dtype)
        size = max(_PAGE, -(-prod(shape) * kind.itemsize // _PAGE) * _PAGE)
        with self._lock:
            if os.getpid() != self._process:
                self._begin()
            file, offset = self._place(size)
            made: AnyArray = np.ndarray(shape, kind, buffer=file, offset=offset)
            self._arrays[id(made)] = made
        # It may be collected at any moment, also while the lock is held here: so nothing is locked there.
        weakref.finalize(made, self._given_up.append, (size, file, offset)).atexit = False
        return made

    def holds(self, array: AnyArray) -> bool:
        """Whether this is one of the arrays, or a view of one."""
        base = array if array.base is None or not isinstance(array.base, np.ndarray) else array.base
        return self._arrays.get(id(base)) is base

    def touched(self, nbytes: int) -> None:
        """Take note that so many bytes were read or written; gives all back where that is too much."""
        self._bytes += nbytes
        if self._bytes > self.memory:
            self._bytes = 0
            with self._lock:
                for file in self._files:
                    file.madvise(mmap.MADV_DONTNEED)

    def _place(self, size: int) -> tuple[mmap.mmap, int]:
        while self._given_up:
            freed, file, offset = self._given_up.popleft()
            self._free.setdefault(freed, []).append((file, offset))
        if self._free.get(size):
            return self._free[size].pop()
        if self._left < size:
            self._add_file(max(_SMALLEST, _ARRAYS * size))
        file = self._files[-1]
        offset = len(file) - self._left
        self._left -= size
        return file, offset

    def _add_file(self, size: int) -> None:
        with nameless_file() as file:
            try:
                # A page of a mapped file for which there is no space on the disk ends the process.
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                advice = "free some space, or say by TMPDIR where there is more"
                full = f"the disk is full, and {size:,} bytes are needed for what belongs to rows"
                reason = full if error.errno in DISK_FULL else str(error.strerror)
                raise StoreError(f"{scratch_folder()} cannot be written: {reason}; {advice}") from error
            self._files.append(mmap.mmap(file.fileno(), size))
        self._left = size
