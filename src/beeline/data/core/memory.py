"""How much memory there is left."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_memory"]

_LEAST = 64 << 20
_SYSTEM = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")  # the limits that a container has


def available_memory() -> int:
    """Bytes of memory that this process may still take, as far as the system tells; never less than 64 MB."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free = _named(_SYSTEM, "MemAvailable:", free >> 10) << 10
    limit, used = _number(_GROUP / "memory.max"), _number(_GROUP / "memory.current")
    if limit is not None and used is not None:
        # Pages of files that nobody needs at the moment count as used there, and are given back on demand.
        free = min(free, limit - used + _named(_GROUP / "memory.stat", "inactive_file", 0))
    return max(free, _LEAST)


def _number(path: Path) -> int | None:
    """The number that is all a file holds; None where it is not there, or says `max`."""
    text = " ".join(_lines(path)).strip()
    return int(text) if text.isdecimal() else None


def _named(path: Path, name: str, otherwise: int) -> int:
    """The number behind a name at the beginning of a line."""
    words = (line.split() for line in _lines(path))
    return next((int(line[1]) for line in words if line[:1] == [name]), otherwise)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except OSError:
        return []
