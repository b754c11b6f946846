"""Locks and imports that a process can be forked in the middle of, and threads that do not keep it alive."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import sys
import threading
from concurrent.futures import wait

import numpy as np
import pytest

from beeline import convert
from beeline._forks import ForkSafeLock, import_late
from beeline._thread_pool import DaemonThreadPool

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # Python 3.12 warns of threads


def child_does(work) -> bool:
    """Whether a forked child does it, and in time."""
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def take(lock):
    with lock:
        pass


def test_a_lock_is_free_in_a_child():
    lock = ForkSafeLock()
    with lock:
        assert child_does(lambda: take(lock))
        assert lock._lock.locked()  # in the parent it is as it was
    take(lock)


def test_a_lock_locks():
    lock, order, held, found = ForkSafeLock(), [], threading.Event(), []

    def second():
        held.wait()
        with lock:
            order.append(2)

    thread = threading.Thread(target=second)
    thread.start()
    with lock:
        held.set()
        thread.join(0.05)
        found.append(thread.is_alive())
        order.append(1)
    thread.join()
    assert order == [1, 2]
    assert found == [True]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda lock: pickle.loads(pickle.dumps(lock))])
def test_a_copy_is_a_lock_of_its_own(again):
    lock = ForkSafeLock()
    with lock:
        take(again(lock))


def test_a_child_reads_a_store_whose_lock_another_thread_holds(tmp_path):
    store = convert(np.eye(5), tmp_path / "rows.store")
    with store._lock:
        assert child_does(lambda: store.rows(0, 5).to_dense().tobytes() == np.eye(5).tobytes() or sys.exit(1))


def test_a_fork_waits_for_an_import(tmp_path, monkeypatch):
    (tmp_path / "a_slow_module.py").write_text("import time\ntime.sleep(0.3)\nvalue = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    thread = threading.Thread(target=import_late, args=("a_slow_module",))
    thread.start()
    while "a_slow_module" not in sys.modules:
        pass
    assert child_does(lambda: import_late("a_slow_module").value == 7 or sys.exit(1))
    thread.join()


def test_a_pool_makes_calls_in_order_on_daemon_threads():
    seen, threads = [], set()

    def call(k, *, plus):
        seen.append(k)
        threads.add(threading.current_thread())
        return k + plus

    with DaemonThreadPool(1) as pool:
        futures = [pool.submit(call, k, plus=10) for k in range(5)]
    assert [future.result() for future in futures] == [10, 11, 12, 13, 14]
    assert seen == [0, 1, 2, 3, 4]
    (thread,) = threads
    assert thread.daemon
    assert not thread.is_alive()


def test_a_pool_runs_calls_at_the_same_time():
    together = threading.Barrier(3)
    with DaemonThreadPool(3) as pool:
        futures = [pool.submit(together.wait, 20) for _ in range(3)]
    assert sorted(future.result() for future in futures) == [0, 1, 2]


def test_a_pool_hands_over_errors_and_drops_what_was_cancelled():
    gate, seen = threading.Event(), []

    def fails():
        gate.wait(20)
        raise ValueError("no")

    with DaemonThreadPool(1) as pool:
        first, second, third = pool.submit(fails), pool.submit(seen.append, 2), pool.submit(seen.append, 3)
        assert second.cancel()
        gate.set()
        wait([first, third])
    assert isinstance(first.exception(), ValueError)
    assert seen == [3]


def test_a_pool_does_with_the_threads_that_the_system_gives(monkeypatch):
    start, started = threading.Thread.start, []

    def start_one(thread):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    with DaemonThreadPool(3) as pool:
        futures = [pool.submit(int, k) for k in range(4)]
    assert [future.result() for future in futures] == [0, 1, 2, 3]
    with DaemonThreadPool(3) as pool:  # of none at all: who calls does it
        assert pool.submit(threading.get_ident).result() == threading.get_ident()
