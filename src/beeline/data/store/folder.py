"""The folder in which a store is made: hidden until it is whole, then put in place by one rename."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from beeline._sentences import Argument, Sentence
from beeline.data.files.atomic import sync_folder
from beeline.data.store.manifest import FORMAT, MANIFEST
from beeline.exceptions import BeelineError, StoreError

__all__ = ["PartialFolder", "sync_file", "writing"]

_ADVICE = {
    errno.ENOSPC: "free some space or choose another folder",
    errno.EDQUOT: "free some space or choose another folder",
    errno.EACCES: "choose a folder you may write to",
    errno.EPERM: "choose a folder you may write to",
    errno.EROFS: "choose a folder you may write to",
    errno.ENAMETOOLONG: "choose a shorter name",
}
_MOMENT = 60.0  # seconds, more than enough from making a folder to locking it
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


class PartialFolder:
    """A hidden folder beside the target that becomes the target when it is committed.

    Its name holds the process and a random number: `.NAME.partial-PID-RANDOM`. It is locked while it is in use, so
    that folders left by a process that was killed can be told from those at work, also from other containers.

    Parameters
    ----------
    target
        Where the store shall be.
    overwrite
        Whether a store that is there already may be replaced.
    owned
        Whether a folder of that name is beeline's own, so that it may be replaced however damaged it is.
    """

    def __init__(self, target: Path, *, overwrite: bool, owned: bool = False) -> None:
        self.target = Path(os.path.abspath(target))  # noqa: PTH100 - Path.absolute() keeps "..", which has no name
        if self.target.is_symlink():
            self.target = self.target.resolve()
        self.overwrite, self.owned = overwrite, owned
        self.path: Path | None = None
        self._lock: int | None = None
        with writing(self.target):
            self._clear_stale()
        self._check_target()

    def _check_target(self) -> None:
        target = self.target
        if not target.parent.is_dir():
            raise StoreError(f"{target}: the folder {target.parent} does not exist; create it first")
        if not target.exists():
            return
        if not self.overwrite:
            raise StoreError(
                Sentence(
                    f"{target} exists already; choose another name, or say ",
                    Argument("overwrite", True),
                    " to replace it",
                )
            )
        if not (_looks_like_store(target) or (self.owned and target.is_dir())):
            raise StoreError(f"{target} is not a beeline store, so it is not overwritten; choose another name")

    def create(self) -> Path:
        """Make the folder."""
        with writing(self.target):
            path = _hidden_name(self.target, "partial")
            path.mkdir()
            self.path = path
            self._lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):  # a file system without locks: the process id has to do
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return path

    def commit(self) -> Path:
        """Put the folder in place of the target; a store that was there is removed only afterwards."""
        if self.path is None:
            raise StoreError(f"{self.target}: there is nothing to put in place")
        with writing(self.target):
            sync_folder(self.path)
            self._check_target()
            if self.target.exists():
                _exchange(self.path, self.target)
            else:
                self._rename()
                self.path = None
            sync_folder(self.target.parent)
        self.discard()
        return self.target

    def _rename(self) -> None:
        assert self.path is not None
        try:
            self.path.rename(self.target)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise StoreError(f"{self.target} was made by someone else meanwhile; choose another name") from None
            raise

    def discard(self) -> None:
        """Remove the folder, or what stands in its place after an exchange."""
        if self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            self.path = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _clear_stale(self) -> None:
        """Clear away what processes left that were killed on the way to the same target."""
        pattern = re.compile(re.escape(f".{self.target.name}.") + r"(partial|replaced)-(\d+)-[0-9a-f]+")
        if not self.target.parent.is_dir():
            return
        with os.scandir(self.target.parent) as entries:
            found = [(entry.path, pattern.fullmatch(entry.name)) for entry in entries]
        for path, match in found:
            if not match or _in_use(path, int(match[2])):
                continue
            if match[1] == "replaced" and not self.target.exists():
                Path(path).rename(self.target)
            else:
                shutil.rmtree(path, ignore_errors=True)


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn what the operating system says while the store is written into one sentence."""
    try:
        yield
    except BeelineError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        advice = _ADVICE.get(error.errno or 0, "see that its folder can be written")
        raise StoreError(f"{target} cannot be written: {reason}; {advice}") from error


def sync_file(path: Path, content: bytes) -> None:
    """Write a file and bring it to the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _exchange(new: Path, old: Path) -> None:
    """Swap two folders in one step, so that at every moment one of them is in place."""
    libc = ctypes.CDLL(None, use_errno=True)
    rename = getattr(libc, "renameat2", None)
    if rename is not None:
        if rename(_AT_FDCWD, os.fsencode(new), _AT_FDCWD, os.fsencode(old), _RENAME_EXCHANGE) == 0:
            return
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS, errno.EPERM):
            raise OSError(number, os.strerror(number), str(old))
    # Without the exchange there is a moment with no store at the name; the old one then lies beside it, whole.
    aside = _hidden_name(old, "replaced")
    old.rename(aside)
    try:
        new.rename(old)
    except BaseException:
        aside.rename(old)
        raise
    aside.rename(new)


def _hidden_name(target: Path, kind: str) -> Path:
    return target.with_name(f".{target.name}.{kind}-{os.getpid()}-{secrets.token_hex(4)}")


def _looks_like_store(folder: Path) -> bool:
    try:
        with (folder / MANIFEST).open("rb") as file:
            return FORMAT.encode() in file.read(256)
    except OSError:
        return False


def _in_use(path: str, pid: int) -> bool:
    """Whether someone works in a folder; a file system that cannot tell counts as yes."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # No one holds the lock. Its owner may be about to take it, but not for long. The process alone proves nothing:
        # in a new container, or after a restart, another one may have the same number.
        return _is_alive(pid) and time.time() - os.fstat(descriptor).st_mtime < _MOMENT
    except OSError:
        return True
    finally:
        os.close(descriptor)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
