"""Threads for calls that are parts of one job."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import ParamSpec, TypeVar, cast

__all__ = ["DaemonThreadPool", "prefetched"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Item = TypeVar("Item")


class DaemonThreadPool:
    """Makes calls on threads of its own, which do not keep the process alive; leaving it waits for all calls.

    `ThreadPoolExecutor` has the interpreter wait for its threads, so that a process could not end before all is solved
    that a daemon thread of its trains; and it takes no calls once the main thread has ended, by which another thread
    that still trains would fail.

    Parameters
    ----------
    most
        How many threads there may be; they are started as calls come.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads: list[threading.Thread] = []
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def submit(
        self, call: Callable[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Result]:
        """Have a thread make the call; calls are begun in the order in which they come."""
        future: Future[Result] = Future()
        self._calls.put(partial(_fulfil, future, partial(call, *args, **kwargs)))
        if len(self._threads) < self._most:
            self._start_thread()
        return future

    def _start_thread(self) -> None:
        thread = threading.Thread(target=_serve, args=(self._calls,), name="beeline", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # The system gives no more, or Python none, when it shuts down: those that are there have to do.
            if not self._threads and (call := self._calls.get()) is not None:
                call()
        else:
            self._threads.append(thread)

    def __enter__(self) -> DaemonThreadPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()


def _serve(calls: SimpleQueue[Callable[[], None] | None]) -> None:
    while (call := calls.get()) is not None:
        call()
        del call  # or it would be kept, with its arguments, until the next one comes


def _fulfil(future: Future[Result], call: Callable[[], Result]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(call())
    except BaseException as error:
        future.set_exception(error)
        del future, call  # the error holds this frame, and would keep all that it can reach alive in a circle


def prefetched(items: Iterable[Item]) -> Iterator[Item]:
    """The items; each is made on another thread while the one before it is used."""
    iterator, end = iter(items), object()
    with DaemonThreadPool(1) as pool:
        following: Future[Item | object] = pool.submit(next, iterator, end)
        while (held := [following.result()])[0] is not end:
            following = pool.submit(next, iterator, end)
            yield cast("Item", held.pop())  # which nobody holds then but who asked for it
