"""What a process can be forked in the middle of."""

from __future__ import annotations

import os
import threading
from importlib import import_module
from types import ModuleType, TracebackType
from weakref import WeakSet

__all__ = ["ForkSafeLock", "import_late"]


class ForkSafeLock:
    """A lock that is free in a forked child, whoever held it in the parent: that thread does not exist there.

    What it guards must therefore be of use at every step of a change. Copies and pickles are locks of their own.
    """

    def __init__(self) -> None:
        self._renew()
        _locks.add(self)

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[ForkSafeLock], tuple[()]]:
        return ForkSafeLock, ()


def import_late(name: str) -> ModuleType:
    """Import a module while other threads may be at work.

    A child that is forked in the middle of an import can never import that module: Python has a lock for each, which
    the child inherits locked. So a fork waits until the import is done.
    """
    with _importing:
        return import_module(name)


def _renew_locks() -> None:
    for lock in list(_locks):
        lock._renew()


_locks: WeakSet[ForkSafeLock] = WeakSet()
_importing = threading.RLock()  # which a thread that forks while it imports holds already
os.register_at_fork(after_in_child=_renew_locks)
os.register_at_fork(before=_importing.acquire, after_in_parent=_importing.release, after_in_child=_importing.release)
