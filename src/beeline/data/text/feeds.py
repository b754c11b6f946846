"""Text on its way to the parser: plain files by descriptor, others as pieces that a thread reads ahead."""

from __future__ import annotations

import os
import queue
import threading
from typing import Protocol

from beeline.data.files.finding import SourceFile, open_stream, reading
from beeline.data.text.dialect import LONG_LINE, as_error
from beeline.exceptions import SourceError
from beeline.kernels import LibsvmOutcome, LibsvmParser

__all__ = ["Feed", "open_feed"]

_LONGEST_LINE = 1 << 30


class Feed(Protocol):
    """One file that is parsed step by step."""

    consumed: int
    """Bytes on disk that were read so far."""

    def parse(self, parser: LibsvmParser, most: int) -> LibsvmOutcome | None:
        """Parse about `most` more bytes, or as many as there is room for; None at the end of the file."""

    def close(self) -> None:
        """Give back what the feed holds."""


def open_feed(file: SourceFile, piece: int) -> Feed:
    """Open a file; one that is not plain is read in pieces of so many bytes."""
    if not file.is_plain:
        return _StreamFeed(file, piece)
    if file.size is None:
        raise SourceError(f"{file.name}: is not a regular file, and LIBSVM text is read more than once; save it first")
    return _PlainFeed(file, file.size)


class _PlainFeed:
    def __init__(self, file: SourceFile, size: int) -> None:
        self.consumed = 0
        self._name, self._size = file.name, size
        with reading(file.name):
            self._descriptor = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)

    def parse(self, parser: LibsvmParser, most: int) -> LibsvmOutcome | None:
        if self.consumed >= self._size:
            return None
        end = min(self._size, self.consumed + most)
        with reading(self._name):
            outcome = parser.parse_file(self._descriptor, self.consumed, end, self._size)
        self.consumed = outcome.end
        return outcome

    def close(self) -> None:
        os.close(self._descriptor)


class _StreamFeed:
    def __init__(self, file: SourceFile, piece: int) -> None:
        self.consumed = 0
        self._name = file.name
        self._ahead = _ReadAhead(file, piece)
        self._text, self._at, self._end = b"", 0, 0

    def parse(self, parser: LibsvmParser, most: int) -> LibsvmOutcome | None:
        if self._at >= self._end and not self._next_text(parser.line):
            return None
        outcome = parser.parse_bytes(self._text, self._at, self._end)
        self._at = outcome.end
        return outcome

    def _next_text(self, lines_before: int) -> bool:
        """Gather pieces until there is at least one whole line; what follows the last one is kept for later."""
        pieces = [self._text[self._end :]]
        size = len(pieces[0])
        while True:
            piece, on_disk = self._ahead.next()
            self.consumed += on_disk
            pieces.append(piece)
            size += len(piece)
            end_of_line = piece.rfind(b"\n") + 1
            if end_of_line or not piece:
                break
            if size > _LONGEST_LINE:
                raise as_error((LONG_LINE, lines_before + 1, 1, b""), self._name, None)
        self._text, self._at = b"".join(pieces), 0
        self._end = len(self._text) - (len(piece) - end_of_line)
        return self._end > 0

    def close(self) -> None:
        self._ahead.close()


class _ReadAhead:
    """Pieces of a decompressed file, read by a thread so that decompression and parsing overlap."""

    def __init__(self, file: SourceFile, piece: int) -> None:
        self._file, self._piece = file, piece
        self._queue: queue.Queue[tuple[bytes, int] | BaseException] = queue.Queue(maxsize=2)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="beeline-read-ahead", daemon=True)
        self._thread.start()

    def next(self) -> tuple[bytes, int]:
        """The next piece and how many bytes on disk it took; an empty piece at the end."""
        item = self._queue.get()
        if isinstance(item, BaseException):
            raise item
        if not item[0]:
            self._put(item)  # the end stays the end
        return item

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        on_disk: list[int] = []
        try:
            stream = open_stream(self._file, on_disk.append)
            try:
                piece = b"-"
                while piece and not self._stopped.is_set():
                    piece = stream.read(self._piece)
                    self._put((piece, sum(on_disk)))
                    on_disk.clear()
            finally:
                stream.close()
        except BaseException as error:  # handed to the thread that waits for it
            self._put(error)

    def _put(self, item: tuple[bytes, int] | BaseException) -> None:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.1)
                return
            except queue.Full:
                continue
