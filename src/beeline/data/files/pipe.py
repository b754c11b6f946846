"""Bytes that come once, such as those of standard input."""

from __future__ import annotations

from typing import BinaryIO

from beeline.exceptions import SourceError

__all__ = ["Pipe", "PipeReader"]


class Pipe:
    """Bytes that can be opened several times until `release`, which lets go of their beginning.

    Formats and columns are told by a look at the first bytes, and a guess about them may prove wrong, so that the text
    is read again from its beginning. What was read is kept until then.

    Parameters
    ----------
    file
        Where the bytes come from; `read(n)` of it gives n bytes, fewer only at the end.
    name
        What to call it in messages.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self.name = file, name
        self._kept = bytearray()
        self._released = False

    def open(self) -> PipeReader:
        """Read from the beginning."""
        if self._released:
            raise SourceError(f"{self.name} can be read only once; save it to a file first")
        return PipeReader(self)

    def release(self) -> None:
        """The beginning is not needed any more; who reads now goes on to the end."""
        self._released = True

    def read_at(self, position: int, size: int) -> bytes:
        """Up to so many bytes from a position: what is kept, and what follows it."""
        kept = bytes(self._kept[position : position + size])
        if self._released and position + size >= len(self._kept):
            self._kept.clear()
        if len(kept) < size:
            new = self._file.read(size - len(kept))
            if not self._released:
                self._kept += new
            kept += new
        return kept


class PipeReader:
    """A walk over the bytes of a pipe, with the face of a binary file."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe, self._at = pipe, 0
        self.closed = False

    def read(self, size: int) -> bytes:
        """So many more bytes; fewer only at the end."""
        piece = self._pipe.read_at(self._at, size)
        self._at += len(piece)
        return piece

    def tell(self) -> int:
        """How many bytes were read."""
        return self._at

    def close(self) -> None:
        """Read no more; the pipe itself stays open."""
        self.closed = True
