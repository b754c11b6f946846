"""Files that are needed for a while: where they may lie, and how they go away, however the process ends."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from beeline.exceptions import StoreError

__all__ = ["DISK_FULL", "folder_for_a_while", "nameless_file", "scratch_folder"]

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_ON_DISK = Path("/var/tmp")  # of the two usual places the one that is not kept in memory
# Waits for the end of its input, which comes with the end of the process, and needs next to no memory for it.
_REMOVE = 'while read -r line; do :; done; rm -rf -- "$0"'


def scratch_folder() -> Path:
    """Where files go that are needed for a while: TMPDIR, or /var/tmp, which lies on a disk where /tmp may not."""
    if "TMPDIR" not in os.environ and os.access(_ON_DISK, os.W_OK):
        return _ON_DISK
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise StoreError("no folder for temporary files can be written; say where one is by TMPDIR") from error


def nameless_file() -> IO[bytes]:
    """A file in the scratch folder without a name: its bytes are given back with its descriptor."""
    folder = scratch_folder()
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror}; say where else by TMPDIR") from error


@contextmanager
def folder_for_a_while(path: Path) -> Iterator[Path]:
    """A name for a folder that is removed in the end, also where this process is killed before.

    A process can do nothing about its own end. So a shell waits for it, on a pipe that the system closes then.
    """
    try:
        watch = subprocess.Popen(
            ["/bin/sh", "-c", _REMOVE, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C, and the end of a terminal, are for this process to deal with
        )
    except OSError:  # no shell, or no process to be had: a regular end still removes it
        watch = None
    owner = os.getpid()
    try:
        yield path
    finally:
        is_owner = os.getpid() == owner  # and no forked child, whose end is not that of the rows
        if is_owner:
            shutil.rmtree(path, ignore_errors=True)
        if watch is not None and watch.stdin is not None:
            with suppress(OSError):
                watch.stdin.close()
            if is_owner:
                watch.wait()
