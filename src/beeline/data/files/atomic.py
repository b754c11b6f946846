"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from beeline.exceptions import SourceError

__all__ = ["replacing", "sync_folder"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name beside `path` to write to; renamed to `path` at the end, removed after an error.

    The content is on the disk before the rename, so that a crash leaves the old file or the new one, never a part. A
    link stays a link to the new file. A device or a pipe is no file to replace: it is written to as it is.
    """
    target = Path(path)
    if target.is_symlink():
        target = target.resolve()
    if target.exists() and not (target.is_file() or target.is_dir()):
        yield target
        return
    temporary = target.parent / f".{target.name}.partial-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        # What is read meanwhile may fail too; such errors name another file.
        if isinstance(error, SourceError) or error.filename not in (None, str(temporary), str(target.parent)):
            raise
        raise SourceError(f"{target} cannot be written: {(error.strerror or str(error)).lower()}") from error
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Bring to the disk which files a folder has."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems cannot sync a folder
            raise
    finally:
        os.close(descriptor)
