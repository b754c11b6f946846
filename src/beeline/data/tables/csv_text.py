"""CSV and TSV files as a source of record batches, piece by piece.

pyarrow's streaming CSV reader works on one thread. So the text is cut into pieces at the ends of records, and several
threads parse a piece each, while another one reads (and decompresses) what follows. Pieces are small enough for their
columns to be still in the processor's cache when rows are made of them.

What a column holds is told by the first megabyte of the first file, whatever the memory: a source gives the same rows
however it is cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from beeline._thread_pool import DaemonThreadPool
from beeline.data.files.finding import SourceFile, open_stream, total_size
from beeline.data.options import ReadOptions
from beeline.data.reader import BadLines, NoProgress, Progress
from beeline.data.tables.batches import Kind, Piece, TableSource, prefetched
from beeline.data.tables.csv_header import Header, read_header
from beeline.data.tables.csv_parse import MISSING_MARKS, CsvParser, Parsed, TextPiece, as_stream
from beeline.data.tables.roles import check_same_names
from beeline.exceptions import BeelineError, FormatError
from beeline.kernels import last_record_end, num_threads

__all__ = ["CsvSource"]

HEAD = 1 << 20
_SMALLEST_PIECE, _LARGEST_PIECE = 1 << 12, 4 << 20
_MOST_PIECES = 18  # that are held at one time: in the hands of 16 threads, ahead of them, and in use
# A quoted field longer than this is taken as a quote that somebody forgot to close.
_LONGEST_RECORD = 64 << 20
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"


class CsvSource(TableSource):
    """One or several CSV files with the same columns."""

    def __init__(self, files: list[SourceFile], options: ReadOptions) -> None:
        self._files, self._options = files, options
        self.name = files[0].name
        self.total_bytes = total_size(files)
        self.types: dict[str, Any] = self._sniff(files[0])

    def settle(self, names: Iterable[str]) -> None:
        """Look further for the types of columns that have no value in the first rows."""
        unsettled = [name for name in names if pa.types.is_null(self.types[name])]
        further = unsettled and all(file.pipe is None for file in self._files)
        walk = self._walk_text(_LARGEST_PIECE, NoProgress()) if further else iter(())
        for _, header, piece in walk:
            found = _infer(piece.text[: piece.stop], header, piece.quoted_newlines, unsettled)
            self.types.update({name: type_ for name, type_ in found.items() if not pa.types.is_null(type_)})
            unsettled = [name for name in unsettled if pa.types.is_null(self.types[name])]
            if not unsettled:
                break
        self.types.update(dict.fromkeys(unsettled, pa.float64()))

    def walk(self, wanted: dict[str, Kind], memory: int, progress: Progress, bad_lines: BadLines) -> Iterator[Piece]:
        """All rows in order, only the wanted columns."""
        for name, kind in wanted.items():
            # The parser then finds the line of what is no number.
            if kind == "numeric" and not _is_plain(self.types[name]):
                self.types[name] = pa.float64()
        # Of each piece in work the text, its columns and the rows made of them are held: about twelve times the text.
        # The number of threads has no part in where the text is cut: means are learned piece by piece.
        size = min(max(memory // (12 * _MOST_PIECES), _SMALLEST_PIECE), _LARGEST_PIECE)
        most = max(1, min(num_threads() + 1, memory // (12 * size) - 1))
        file, row = None, 1
        with closing(prefetched(self._walk_text(size, progress))) as pieces, DaemonThreadPool(num_threads()) as pool:
            work = self._parsing(pool, pieces, wanted, most)
            for source, share, parsed in work:
                row = row if source is file else 1
                file = source
                self.types.update(parsed.types)
                for flaw in parsed.flaws:
                    bad_lines.add(flaw)
                made = Piece(parsed.batches, file.name, row, share, parsed.line)
                row += made.n_rows
                if made.n_rows:
                    yield made

    def _parsing(
        self,
        pool: DaemonThreadPool,
        pieces: Iterator[tuple[SourceFile, Header, TextPiece]],
        wanted: dict[str, Kind],
        most: int,
    ) -> Iterator[tuple[SourceFile, float, Parsed]]:
        """Parse pieces by the threads of a pool, at most so many at a time, and give the results in order."""
        waiting: deque[tuple[SourceFile, float, Future[Parsed]]] = deque()
        late: BeelineError | None = None
        try:
            while True:
                try:
                    file, header, piece = next(pieces)
                except StopIteration:
                    break
                except BeelineError as error:
                    late = error  # what was read before it comes first
                    break
                parser = self._parser(file, header, wanted)
                waiting.append((file, piece.share, pool.submit(parser.parse, piece)))
                if len(waiting) == most:
                    done, share, future = waiting.popleft()
                    yield done, share, future.result()
            while waiting:
                done, share, future = waiting.popleft()
                yield done, share, future.result()
            if late is not None:
                raise late
        finally:
            for _, _, future in waiting:
                future.cancel()

    def _parser(self, file: SourceFile, header: Header, wanted: dict[str, Kind]) -> CsvParser:
        options = self._options
        query = options.query or (options.recipe.query if options.recipe else None)
        return CsvParser(
            file.name,
            header,
            dict(self.types),
            wanted,
            exact=frozenset(name for name in wanted if name == query),
            skip_bad=options.skip_bad_lines,
            text_helps=options.recipe is None,
        )

    def _sniff(self, file: SourceFile) -> dict[str, Any]:
        stream = open_stream(file)
        try:
            head = stream.read(HEAD)
        finally:
            stream.close()
        header = read_header(head, self._options, file.name)
        text = head[header.start :]
        stop, newlines, _ = last_record_end(text, header.delimiter)
        if len(head) < HEAD:
            stop = len(text)
        return _infer(text[:stop], header, newlines, header.names)

    def _walk_text(self, size: int, progress: Progress) -> Generator[tuple[SourceFile, Header, TextPiece], None, None]:
        consumed = _Consumed(self.total_bytes, progress)
        for file in self._files:
            stream = open_stream(file, consumed.advance)
            try:
                head = stream.read(HEAD)
                header = read_header(head, self._options, file.name)
                check_same_names(self.types, header.names, f"{file.name}: ", self.name)
                begun = BytesIO(head[header.start :])
                read = lambda n, begun=begun, stream=stream: begun.read(n) or stream.read(n)  # noqa: E731
                for piece in _cut(read, header, size, file.name):
                    yield file, header, replace(piece, share=consumed.share)
            finally:
                stream.close()


class _Consumed:
    """How much of the files has been read; passes it on to the progress."""

    def __init__(self, total: int | None, progress: Progress) -> None:
        self._total, self._progress, self._read = total, progress, 0

    def advance(self, n_bytes: int) -> None:
        self._read += n_bytes
        self._progress.advance(n_bytes)

    @property
    def share(self) -> float:
        return min(1.0, self._read / self._total) if self._total else 0.0


def _cut(read: Callable[[int], bytes], header: Header, size: int, file: str) -> Iterator[TextPiece]:
    """The text in pieces of about `size` bytes that end where a record ends."""
    line, rest = header.line, b""
    # A record that does not fit makes the next read larger, so that no byte is looked at more than a few times.
    while new := read(max(size, len(rest))):
        rest += new
        stop, newlines, opened = last_record_end(rest, header.delimiter)
        if stop:
            yield TextPiece(rest, stop, line, newlines)
            line += rest.count(b"\n", 0, stop)
            rest = rest[stop:]
        elif len(rest) > _LONGEST_RECORD:
            raise _endless(file, line, opened)
    if rest:
        _, newlines, opened = last_record_end(rest, header.delimiter)
        if opened >= 0:
            raise _endless(file, line + rest.count(b"\n", 0, opened), opened)
        yield TextPiece(rest, len(rest), line, newlines)


def _is_plain(arrow_type: Any) -> bool:  # noqa: ANN401
    return any(check(arrow_type) for check in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean))


def _endless(file: str, line: int, opened: int) -> FormatError:
    if opened >= 0:
        return FormatError('a field begins with a quote (") that is never closed', file=file, line=line)
    return FormatError(f"the line is longer than {_LONGEST_RECORD >> 20} MB", file=file, line=line)


def _infer(text: bytes, header: Header, newlines: bool, names: Iterable[str]) -> dict[str, Any]:
    """The Arrow types of some columns of a text.

    A column of which at least half of the values are numbers is taken as numbers: one slip of the pen does not turn it
    into thousands of categories, but is reported when it is read.
    """
    if not text.strip():
        return dict.fromkeys(names, pa.null())
    table = _read_loosely(text, header, newlines, list(names))
    types = {name: table.schema.field(name).type for name in names}
    for name, found in types.items():
        if pa.types.is_string(found):
            values = table.column(name).drop_null()
            if 2 * pc.sum(pc.match_substring_regex(values, _NUMBER)).as_py() >= len(values):
                types[name] = pa.float64()
    return types


def _read_loosely(text: bytes, header: Header, newlines: bool, names: list[str]) -> Any:  # noqa: ANN401
    """A look at the columns; bad records are passed over here and reported when they are read.

    Without Arrow's threads: one that had to let go of `skip` while Python shuts down would be ended, and Arrow would
    wait for it for ever.
    """

    def skip(_: object) -> str:
        return "skip"

    for block in (1 << 20, len(text) + 1):
        try:
            return pyarrow.csv.read_csv(
                as_stream(text, 0, len(text)),
                pyarrow.csv.ReadOptions(column_names=list(header.names), block_size=block, use_threads=False),
                pyarrow.csv.ParseOptions(
                    delimiter=header.delimiter, newlines_in_values=newlines, invalid_row_handler=skip
                ),
                pyarrow.csv.ConvertOptions(
                    include_columns=names, null_values=MISSING_MARKS, strings_can_be_null=True, check_utf8=False
                ),
            )
        except pa.ArrowInvalid as error:
            reason = str(error).splitlines()[0]
    raise FormatError(f"the columns cannot be read: {reason}")
