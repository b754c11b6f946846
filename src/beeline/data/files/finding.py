"""Finding, recognising and opening files: local or remote, plain or compressed."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, cast

from beeline._sentences import Argument, Sentence
from beeline.data.files.pipe import Pipe
from beeline.exceptions import DataError, FormatError, ParameterError, SourceError

if TYPE_CHECKING:
    import pyarrow.fs

__all__ = [
    "ByteStream",
    "SourceFile",
    "as_paths",
    "common_format",
    "detect_format",
    "find_files",
    "names_files",
    "open_random",
    "open_stream",
    "reading",
    "standard_input",
    "total_size",
]

Compression = Literal["none", "gzip", "bz2", "zstd"]
FileFormat = Literal["libsvm", "csv", "parquet", "arrow", "npz"]
PathLike = str | os.PathLike[str]

_COMPRESSIONS: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
_MAGIC: dict[bytes, FileFormat] = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "npz"}
_ENDINGS: dict[str, FileFormat] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
}
_COMPRESSED_ENDINGS = {".gz", ".bz2", ".zst", ".zstd"}
_REQUEST = 4 << 20
_URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
# A line may begin with what comes after the label; a time of day at the begin of a table's line is not such an entry.
_LIBSVM_LINE = re.compile(rb"\s*([^\s:,]+(,[^\s:,]+)*|qid:\S+|\d+:[^\s:,;|]+)?(\s+qid:\S+)?(\s+\d+:\S+)*\s*(#.*)?")


def names_files(source: object) -> bool:
    """Whether it is a path or URI, or several of them."""
    several = source if isinstance(source, list | tuple) else [source]
    return bool(several) and all(isinstance(path, str | os.PathLike) for path in several)


def as_paths(source: PathLike | Sequence[PathLike]) -> list[str]:
    """A path or URI, or several of them, as texts in a list."""
    return [os.fspath(path) for path in ([source] if isinstance(source, str | os.PathLike) else source)]


class ByteStream(Protocol):
    """What `open_stream` gives: bytes in order."""

    def read(self, size: int) -> bytes:
        """Up to `size` more bytes; empty at the end."""

    def close(self) -> None:
        """Give back what the stream holds."""


@dataclass(frozen=True)
class SourceFile:
    """One file of a source.

    Attributes
    ----------
    name
        What to call it in messages: as the user wrote it.
    path
        Where its file system finds it.
    size
        Bytes on disk, None where the file system cannot tell.
    compression
        Found by its first bytes, whatever its name says.
    filesystem
        The pyarrow file system that holds it, None for a local file.
    pipe
        Where its bytes come from where they come only once; None: it can be read as often as needed.
    """

    name: str
    path: str
    size: int | None
    compression: Compression
    filesystem: pyarrow.fs.FileSystem | None = None
    pipe: Pipe | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is local and not compressed, so that parts of it can be read by a descriptor."""
        return self.filesystem is None and self.compression == "none" and self.pipe is None

    @property
    def ending(self) -> str:
        """The last part of its name that tells the format, such as `.csv` in `a.csv.gz`."""
        suffixes = [s.lower() for s in Path(self.path).suffixes]
        while suffixes and suffixes[-1] in _COMPRESSED_ENDINGS:
            suffixes.pop()
        return suffixes[-1] if suffixes else ""


def find_files(source: PathLike | Sequence[PathLike]) -> list[SourceFile]:
    """Return every file of a source, in a fixed order.

    Parameters
    ----------
    source
        A path or URI (`s3://`, `gs://`, `hdfs://`, `file://`), or several. A folder stands for the files directly
        or further below it, sorted by name; names that begin with `.` or `_` are passed over.
    """
    one = isinstance(source, (str, os.PathLike)) or not isinstance(source, Iterable)
    several: Sequence[Any] = [source] if one else list(cast("Sequence[PathLike]", source))
    if not all(isinstance(item, (str, os.PathLike)) for item in several):
        raise ParameterError(
            f"a source is a path, several paths, an array, a matrix or a frame, not {type(source).__name__}"
            f"{'; of rows with labels make a data set, by from_arrays(X, y)' if isinstance(source, tuple) else ''}",
            parameter="source",
        )
    if not several:
        raise SourceError("no file was given")
    return [file for item in several for file in _find(os.fspath(item))]


def _find(name: str) -> list[SourceFile]:
    if _URI.match(name):
        return list(_find_remote(name))
    path = Path(name)
    if (path / "manifest.json").is_file():
        raise SourceError(f"{name}: is a store, and stores are read one at a time; convert their sources together")
    if path.is_dir():
        paths = sorted(p for p in path.rglob("*") if p.is_file() and not _hidden(p.relative_to(path).parts))
        if not paths:
            raise SourceError(f"{name}: the folder holds no file")
    elif path.is_file():
        paths = [path]
    elif path.exists():
        raise SourceError(f"{name}: is not a regular file, and a source is read more than once; save it first")
    else:
        raise SourceError(f"{name}: no such file or folder")
    return [_local(p) for p in paths]


def standard_input(file: BinaryIO | None = None) -> SourceFile:
    """What comes through a pipe, plain or compressed, as a file that is read once.

    Parameters
    ----------
    file
        Where it comes from; None: standard input.
    """
    pipe = Pipe(_own_reader() if file is None else file, "standard input")
    with reading(pipe.name):
        head = pipe.open().read(8)
    if not head:
        raise SourceError(f"{pipe.name} is empty")
    return SourceFile(pipe.name, "-", None, _compression(head), pipe=pipe)


def _own_reader() -> BinaryIO:
    """Standard input past Python's reader, whose end at exit aborts where a thread still waits for bytes."""
    if sys.stdin is not sys.__stdin__:
        return sys.stdin.buffer
    return io.BufferedReader(io.FileIO(0, closefd=False))


def total_size(files: Sequence[SourceFile]) -> int | None:
    """Bytes on disk of all files, None where those of one are not known."""
    sizes = [file.size for file in files if file.size is not None]
    return sum(sizes) if len(sizes) == len(files) else None


def _hidden(parts: Sequence[str]) -> bool:
    return any(part.startswith((".", "_")) for part in parts)


def _local(path: Path) -> SourceFile:
    with reading(str(path)), path.open("rb", buffering=0) as file:
        head = file.read(8) if path.is_file() else b""
        size = path.stat().st_size if path.is_file() else None
    return SourceFile(str(path), str(path), size, _compression(head))


def _find_remote(uri: str) -> Iterator[SourceFile]:
    from pyarrow import fs

    scheme = uri.split("://", maxsplit=1)[0]
    # A URI may carry a password and settings of the connection; messages show neither.
    shown = f"{scheme}://{uri.split('://', maxsplit=1)[1].split('?', maxsplit=1)[0].rsplit('@', maxsplit=1)[-1]}"
    with reading(shown):
        filesystem, path = fs.FileSystem.from_uri(uri)
        found = filesystem.get_file_info(path)
        if found.type == fs.FileType.NotFound:
            raise SourceError(f"{shown}: no such file or folder")
        infos = [found]
        if found.type == fs.FileType.Directory:
            below = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
            kept = [i for i in below if i.type == fs.FileType.File and not _hidden(Path(i.path[len(path) :]).parts[1:])]
            infos = sorted(kept, key=lambda info: str(info.path))
            if not infos:
                raise SourceError(f"{shown}: the folder holds no file")
        if isinstance(filesystem, fs.LocalFileSystem):
            yield from (_local(Path(info.path)) for info in infos)
            return
        for info in infos:
            with filesystem.open_input_stream(info.path, compression=None) as stream:
                head = stream.read(8)
            yield SourceFile(f"{scheme}://{info.path}", info.path, info.size, _compression(head), filesystem)


def _compression(head: bytes) -> Compression:
    return next((kind for magic, kind in _COMPRESSIONS.items() if head.startswith(magic)), "none")


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn an operating system's or pyarrow's error into a `SourceError` that names the file."""
    try:
        yield
    except SourceError:
        raise
    except OSError as error:
        reason = error.strerror or str(error).splitlines()[0]
        raise SourceError(f"{name}: cannot be read: {reason}") from error
    except ValueError as error:
        if type(error).__module__.startswith("pyarrow"):
            raise SourceError(f"{name}: cannot be read: {str(error).splitlines()[0]}") from error
        raise


class _Stream:
    """Decompressed bytes of a file, that tells how many bytes it has consumed on disk."""

    def __init__(self, file: SourceFile, on_read: Callable[[int], None] | None) -> None:
        self._name = file.name
        self._on_read = on_read
        self._reported = 0
        with reading(file.name):
            self._raw, self._stream = _open(file)

    def read(self, size: int) -> bytes:
        with reading(self._name):
            piece: bytes = self._stream.read(size)
            consumed = int(self._raw.tell()) if self._on_read else 0
        if self._on_read and consumed > self._reported:
            self._on_read(consumed - self._reported)
            self._reported = consumed
        return piece

    def close(self) -> None:
        self._stream.close()
        self._raw.close()


def _open(file: SourceFile) -> tuple[Any, Any]:
    """(bytes as they lie on disk, bytes as they are meant): the same object when nothing is compressed."""
    if file.is_plain:
        raw: Any = Path(file.path).open("rb", buffering=0)  # noqa: SIM115
        return raw, raw
    import pyarrow

    if file.pipe is not None:
        raw = file.pipe.open()
        if file.compression == "none":
            return raw, raw
        stream = pyarrow.PythonFile(raw, mode="r")
    elif file.filesystem is None:
        raw = stream = pyarrow.OSFile(file.path)
    else:
        # Every read of a remote file is a request: ask for few large ones.
        raw = file.filesystem.open_input_file(file.path)
        stream = pyarrow.BufferedInputStream(raw, _REQUEST)
    return raw, stream if file.compression == "none" else pyarrow.CompressedInputStream(stream, file.compression)


def open_stream(file: SourceFile, on_read: Callable[[int], None] | None = None) -> ByteStream:
    """Open a file for reading from start to end, decompressed.

    Parameters
    ----------
    on_read
        Is called with the number of bytes consumed on disk after each read.
    """
    return _Stream(file, on_read)


def open_random(file: SourceFile) -> Any:  # noqa: ANN401 — pyarrow is not typed
    """Open a file for reading anywhere, as formats with a footer need; a pyarrow `NativeFile`."""
    if file.pipe is not None:
        raise DataError(
            f"{file.name}: the format is read from its end, which a pipe cannot do; save it to a file first"
        )
    if file.compression != "none":
        raise DataError(f"{file.name}: {file.compression} over a format that needs random access; decompress it first")
    import pyarrow

    with reading(file.name):
        return pyarrow.OSFile(file.path) if file.filesystem is None else file.filesystem.open_input_file(file.path)


def detect_format(file: SourceFile) -> FileFormat:
    """Tell a file's format by its first bytes, then by its name, then by the look of its first lines."""
    stream = open_stream(file)
    try:
        head = stream.read(1 << 16)
    finally:
        stream.close()
    for magic, known in _MAGIC.items():
        if head.startswith(magic):
            return known
    if file.ending in _ENDINGS:
        return _ENDINGS[file.ending]
    if head.startswith(b"\xff\xff\xff\xff"):  # the continuation mark of an Arrow IPC stream
        return "arrow"
    return _guess_text(file, head)


def common_format(files: Sequence[SourceFile]) -> FileFormat:
    """The format that all files have; raises `DataError` when they differ."""
    first = detect_format(files[0])
    for file in files[1:]:
        if (other := detect_format(file)) != first:
            raise DataError(f"{files[0].name} is {first} but {file.name} is {other}; read several formats one by one")
    return first


def _guess_text(file: SourceFile, head: bytes) -> FileFormat:
    # The last line may be cut off by the end of the look.
    lines = head.splitlines()[: -1 if len(head) == 1 << 16 else None][:100]
    lines = [line for line in lines if line.strip() and not line.lstrip().startswith(b"#")]
    if not lines or b"\0" in head:
        raise _unknown_format(file)
    if any(re.search(rb"\s\d+:", b" " + line) for line in lines) and all(map(_LIBSVM_LINE.fullmatch, lines)):
        return "libsvm"
    if re.search(rb"[,;\t|]", lines[0]):
        return "csv"
    raise _unknown_format(file)


def _unknown_format(file: SourceFile) -> FormatError:
    known = "LIBSVM text, CSV, Parquet, Arrow or npz"
    return FormatError(
        Sentence(
            f"the format cannot be told from the content; if it is {known}, say it with ",
            Argument("format"),
            ", or else convert it",
        ),
        file=file.name,
    )
