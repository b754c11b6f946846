"""A writer that dies leaves either a whole store or none, and the next one clears up behind it."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from beeline import Block
from beeline.data.store import StoreWriter, open_store
from beeline.exceptions import StoreError

# For each line of orders a new process writes a store whose labels all are `label`, and kills itself just before the
# call number `fatal` that changes something on the disk.
WRITER = """
import os, signal, sys
import numpy as np
from beeline import Block
from beeline.data.store import StoreWriter, folder

def dying(function, fatal, calls=[0]):
    def call(*arguments, **settings):
        calls[0] += 1
        if calls[0] == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **settings)
    return call

def write(target, label, fatal, shuffle):
    for name in ("mkdir", "fsync", "rename", "unlink", "rmdir"):
        setattr(os, name, dying(getattr(os, name), fatal))
    folder._exchange = dying(folder._exchange, fatal)
    settings = {"chunk_bytes": 1000, "part_bytes": 15_000, "shuffle": shuffle, "memory": 10_000}
    with StoreWriter(target, overwrite=True, **settings) as writer:
        for _ in range(10):
            writer.write(Block(np.ones((50, 4)), 4, labels=np.full(50, label)))
        writer.finish()

for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            write(*eval(line))
        finally:
            os._exit(1 if sys.exc_info()[0] else 0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def run_writer():
    """Write a store in another process; returns its exit code."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", WRITER], text=True, **pipes) as server:

        def run(target, label, fatal, shuffle=None):
            server.stdin.write(f"{(str(target), label, fatal, shuffle)!r}\n")
            server.stdin.flush()
            return int(server.stdout.readline())

        yield run


def label_in(target):
    """The label of all rows of the store; fails unless the store is whole."""
    store = open_store(target)
    store.verify()
    assert store.n_rows == 500
    (label,) = set(store.labels)
    return label


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def rows(label, n=500):
    return Block(np.ones((n, 4)), 4, labels=np.full(n, label))


def write(target, label, **settings):
    with StoreWriter(target, **settings) as writer:
        writer.write(rows(label))
        return writer.finish()


def test_killed_before_every_change_of_the_disk(tmp_path, run_writer):
    target = tmp_path / "s"
    outcomes = []
    for fatal in range(1, 100):
        code = run_writer(target, 1.0, fatal)
        assert code in (0, -signal.SIGKILL)
        outcomes.append(target.exists())
        if target.exists():
            assert label_in(target) == 1
        if code == 0:
            break
    assert fatal > 8
    assert not outcomes[0]
    assert outcomes[-1]
    assert names(tmp_path) == ["s"]  # the last run cleared up behind all others


def test_killed_while_overwriting(tmp_path, run_writer):
    target = tmp_path / "s"
    write(target, 0.0)
    survivors = []
    for fatal in range(1, 100):
        code = run_writer(target, float(fatal), fatal)
        assert code in (0, -signal.SIGKILL)
        survivors.append(label_in(target) == fatal)
        if code == 0:
            break
    assert not survivors[0]
    assert sum(survivors) > 1  # also some that died after the exchange, before the old store was removed
    assert names(tmp_path) == ["s"]


def test_killed_while_shuffling(tmp_path, run_writer):
    target = tmp_path / "s"
    for fatal in (2, 4, 9, 25):
        assert run_writer(target, 1.0, fatal, shuffle=3) == -signal.SIGKILL
        assert not target.exists()
        assert all(name.startswith(".s.partial-") for name in names(tmp_path))
    assert run_writer(target, 1.0, 0, shuffle=3) == 0
    assert names(tmp_path) == ["s"]


ENDLESS = """
import sys
import numpy as np
from beeline import Block
from beeline.data.store import StoreWriter

with StoreWriter(sys.argv[1], shuffle=eval(sys.argv[2])) as writer:
    while True:
        writer.write(Block(np.ones((5000, 20)), 20, labels=np.zeros(5000)))
        print("wrote", flush=True)
"""


@pytest.mark.parametrize("shuffle", [None, 1])
@pytest.mark.parametrize(("number", "blocks"), [(signal.SIGKILL, 1), (signal.SIGINT, 1), (signal.SIGINT, 30)])
def test_stopped_at_work(tmp_path, number, blocks, shuffle):
    target = tmp_path / "s"
    command = [sys.executable, "-c", ENDLESS, str(target), str(shuffle)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        for _ in range(blocks):
            assert child.stdout.readline() == "wrote\n"
        (partial,) = tmp_path.iterdir()
        with pytest.raises(StoreError, match="unfinished conversion"):
            open_store(partial)
        write(target, 5.0).path.rename(tmp_path / "other")  # a conversion beside it lets the living one alone
        assert partial.exists()
        child.send_signal(number)
        child.communicate(timeout=30)
    assert child.returncode == -number
    assert not target.exists()
    assert partial.exists() == (number == signal.SIGKILL)
    write(target, 1.0)
    assert names(tmp_path) == ["other", "s"]


def test_an_error_on_the_way_leaves_nothing(tmp_path):
    def convert():
        with StoreWriter(tmp_path / "s") as writer:
            writer.write(rows(1.0))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        convert()
    assert not names(tmp_path)


def test_what_exists_is_not_replaced_unasked(tmp_path):
    target = tmp_path / "s"
    write(target, 1.0)
    with pytest.raises(StoreError, match=r"/s exists already"):
        StoreWriter(target)
    assert label_in(target) == 1
    write(target, 2.0, overwrite=True)
    assert label_in(target) == 2
    assert names(tmp_path) == ["s"]


@pytest.mark.parametrize("content", [{}, {"notes.txt": "mine"}, {"manifest.json": '{"format": "another"}'}])
def test_what_is_not_a_store_is_never_replaced(tmp_path, content):
    target = tmp_path / "s"
    target.mkdir()
    for name, text in content.items():
        (target / name).write_text(text)
    with pytest.raises(StoreError, match="is not a beeline store, so it is not overwritten"):
        StoreWriter(target, overwrite=True)
    assert {file.name: file.read_text() for file in target.iterdir()} == content


def test_a_file_is_never_replaced(tmp_path):
    target = tmp_path / "s"
    target.write_text("mine")
    with pytest.raises(StoreError, match="not overwritten"):
        StoreWriter(target, overwrite=True)
    assert target.read_text() == "mine"


def test_who_comes_second_is_told(tmp_path):
    target = tmp_path / "s"
    with StoreWriter(target) as slow:
        slow.write(rows(1.0))
        write(target, 2.0)
        with pytest.raises(StoreError, match="exists already"):
            slow.finish()
    assert label_in(target) == 2
    assert names(tmp_path) == ["s"]


def test_overwriting_through_a_link_replaces_the_store_behind_it(tmp_path):
    (tmp_path / "disk").mkdir()
    write(tmp_path / "disk" / "s", 1.0)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "s")
    write(tmp_path / "link", 2.0, overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert label_in(tmp_path / "disk" / "s") == label_in(tmp_path / "link") == 2


def test_without_the_exchange_of_folders(tmp_path, monkeypatch):
    """Some file systems cannot swap two folders in one step."""
    monkeypatch.setattr("beeline.data.store.folder.ctypes.CDLL", lambda *_, **__: object())
    target = tmp_path / "s"
    write(target, 1.0)
    write(target, 2.0, overwrite=True)
    assert label_in(target) == 2
    assert names(tmp_path) == ["s"]
    # Killed between the two renames: the old store comes back with the next conversion.
    target.rename(tmp_path / f".s.replaced-{dead_process()}-00ff")
    with pytest.raises(StoreError, match="exists already"):
        StoreWriter(target)
    assert label_in(target) == 2


def test_a_process_number_used_again_does_not_protect_what_was_left(tmp_path):
    fresh, old = (tmp_path / f".s.partial-{os.getpid()}-0{i}" for i in range(2))
    for folder in (fresh, old):
        folder.mkdir()
    os.utime(old, (1e9, 1e9))
    write(tmp_path / "s", 1.0)
    assert names(tmp_path) == [fresh.name, "s"]


def dead_process():
    with subprocess.Popen(["true"]) as child:
        child.wait()
    return child.pid


def test_missing_folder(tmp_path):
    with pytest.raises(StoreError, match=r"nowhere does not exist; create it first"):
        StoreWriter(tmp_path / "nowhere" / "s")


def test_unwritable_folder(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "mkdir", refuse)  # a real one does not stop the superuser
    with pytest.raises(StoreError, match=r"/s cannot be written: Permission denied; choose a folder you may"):
        StoreWriter(tmp_path / "s").__enter__()


@pytest.mark.parametrize("shuffle", [None, 1])
def test_full_disk(tmp_path, shuffle):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")

    def convert():
        with StoreWriter(disk / "s", shuffle=shuffle) as writer:
            for _ in range(100):
                writer.write(Block(np.ones((1000, 20)), 20, labels=np.zeros(1000)))
            writer.finish()

    try:
        with pytest.raises(StoreError, match=r"/s cannot be written: No space left on device; free some space"):
            convert()
        assert not names(disk)
        write(disk / "s", 1.0)
        assert label_in(disk / "s") == 1
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)
