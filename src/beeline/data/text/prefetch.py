"""Prefetch: LIBSVM text is parsed while the program is still loading.

Loading Python's packages takes a fraction of a second on one core. A command that is going to read a file can say so
first, by `start_prefetch`; a thread then parses it, without NumPy, until `LibsvmReader` takes over what is done by
`claim_prefetch`. It does so only where it would have parsed the same file in the same way, so that nothing but time
depends on the prefetch. Otherwise what was parsed is dropped.
"""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path

from beeline.data.files.finding import SourceFile, reading
from beeline.data.options import ReadOptions
from beeline.data.text.dialect import Dialect, kernel_settings
from beeline.kernels import LibsvmOutcome, LibsvmParser, num_threads

__all__ = ["CHUNK", "Prefetch", "claim_prefetch", "drop_prefetch", "more_room", "room_within", "start_prefetch"]

CHUNK = 256 << 10  # what a thread parses at a time: fits the second-level cache with what is made of it
_STEP = 8 << 20  # between steps the thread asks whether it is to hand over: some hundredths of a second
_MOST = 512 << 20  # of text; loading does not take longer

_started: Prefetch | None = None


class Prefetch:
    """One file that is parsed by a thread of its own; a feed once it is claimed.

    Parameters
    ----------
    file
        A plain file.
    dialect, options
        How it is to be read, as far as can be told now.
    """

    def __init__(self, file: SourceFile, dialect: Dialect, options: ReadOptions) -> None:
        assert file.size is not None
        self.consumed = 0
        self.settings = kernel_settings(dialect, options)
        self.parser = LibsvmParser(dialect.for_kernel(options), CHUNK)
        self._name, self._size = file.name, file.size
        self._descriptor = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
        self.identity = _identity(os.fstat(self._descriptor))
        self._outcome: LibsvmOutcome | None = None
        self._hand_over, self._failed = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="beeline prefetch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # Loading needs one core itself.
        threads = max(1, num_threads() - 1)
        try:
            self.parser.reserve(*room_within(self.parser, 4 * CHUNK))
            while self.consumed < min(self._size, _MOST) and not self._hand_over.is_set():
                end = min(self._size, self.consumed + _STEP)
                self._outcome = self.parser.parse_file(self._descriptor, self.consumed, end, self._size, threads)
                self.consumed = self._outcome.end
                if self._outcome.problem is not None or self._outcome.n_skipped:
                    return
                if self._outcome.full:
                    self.parser.reserve(*more_room(self.parser, self._outcome, self._size, self.consumed))
        except (OSError, MemoryError):
            self._failed = True

    def stop(self) -> bool:
        """End the thread; whether all went well so far."""
        self._hand_over.set()
        self._thread.join()
        return not self._failed and self._outcome is not None and not self._outcome.n_skipped

    def parse(self, parser: LibsvmParser, most: int) -> LibsvmOutcome | None:
        """First what the thread found, then about `most` more bytes; None at the end of the file."""
        outcome, self._outcome = self._outcome, None
        if outcome is None and self.consumed < self._size:
            end = min(self._size, self.consumed + most)
            with reading(self._name):
                outcome = parser.parse_file(self._descriptor, self.consumed, end, self._size)
            self.consumed = outcome.end
        return outcome

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def start_prefetch(file: SourceFile, dialect: Dialect, options: ReadOptions) -> None:
    """Begin to parse a plain file that will be read in this way, presumably."""
    global _started  # noqa: PLW0603 — one process, one command, one prefetch
    if _started is None and file.is_plain and file.size:
        _started = Prefetch(file, dialect, options)
        atexit.register(drop_prefetch)  # a command that ends early must not leave a thread behind


def claim_prefetch(files: list[SourceFile], dialect: Dialect, options: ReadOptions) -> Prefetch | None:
    """The prefetch if it is for just this file, read in just this way; it is given away once, or dropped."""
    global _started
    prefetch, _started = _started, None
    if prefetch is None:
        return None
    good = prefetch.stop() and prefetch.settings == kernel_settings(dialect, options)
    if good and len(files) == 1 and files[0].is_plain and prefetch.identity == _identity(Path(files[0].path).stat()):
        return prefetch
    prefetch.close()
    return None


def drop_prefetch() -> None:
    """Forget a prefetch that nobody will claim."""
    global _started  # noqa: PLW0603
    if _started is not None:
        _started.stop()
        _started.close()
        _started = None


def room_within(parser: LibsvmParser, budget: int) -> tuple[int, int, int]:
    """Rows, entries and labels that a budget allows, each if there were nothing else."""
    return budget // parser.cost(1, 0, 1), budget // parser.cost(0, 1, 0), budget // parser.cost(0, 0, 1)


def more_room(parser: LibsvmParser, outcome: LibsvmOutcome, total: int | None, parsed: int) -> tuple[int, int, int]:
    """Room for all rows, if the rest is like what was parsed; only what is used of it takes memory."""
    growth = 1.25 * total / parsed if total and parsed else 2.0
    rows, entries, labels = (max(int(u * growth), 2 * w) for u, w in zip(parser.used, outcome.wanted, strict=True))
    return rows, entries, labels


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
