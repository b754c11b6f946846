"""Building an index that dies leaves the store as it was; what is damaged afterwards is named, and ends no process."""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import beeline
from beeline.data.store import StoreWriter, open_store
from beeline.exceptions import StoreError
from beeline.index import IndexSettings, build_index, indexes_of, open_index

KINDS = ["boxes", "chunks", "forest"]
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(150, 5))
Y = np.where(X[:, 0] + 0.3 * RANDOM.normal(size=150) > 0, 1.0, -1.0)

# For each line of orders a new process builds an index, and kills itself just before the call number `fatal` that
# changes something on the disk. With `least` bytes of memory rows go through files in between.
BUILDER = """
import os, signal, sys
from beeline.data.store import folder, open_store
from beeline.data.store.parts import _HashingFile
from beeline.index import IndexSettings, arrays, build_index

def dying(function, fatal, calls=[0]):
    def call(*arguments, **settings):
        calls[0] += 1
        if calls[0] == fatal:
            os._exit(77)
        return function(*arguments, **settings)
    return call

def build(target, kind, leaf_rows, fatal, memory):
    for name in ("mkdir", "fsync", "rename", "unlink", "rmdir"):
        setattr(os, name, dying(getattr(os, name), fatal))
    folder._exchange = dying(folder._exchange, fatal)
    for writer in (_HashingFile, arrays.ArrayWriter):
        writer.write = dying(writer.write, fatal)
    build_index(open_store(target), kind, memory=memory, settings=IndexSettings(leaf_rows=leaf_rows))

for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            build(*eval(line))
        finally:
            os._exit(1 if sys.exc_info()[0] else 0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def run_builder():
    """Build an index in another process; returns its exit code, 77 where it died on the way."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", BUILDER], text=True, **pipes) as server:

        def run(target, kind, leaf_rows, fatal, memory="512M"):
            server.stdin.write(f"{(str(target), kind, leaf_rows, fatal, memory)!r}\n")
            server.stdin.flush()
            return int(server.stdout.readline())

        yield run


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A store of several parts and chunks."""
    path = tmp_path_factory.mktemp("plain") / "s"
    with StoreWriter(path, chunk_bytes=2000, part_bytes=5000) as writer:
        writer.write(beeline.from_arrays(X, Y).block)
        writer.finish()
    return path


@pytest.fixture
def target(plain, tmp_path):
    return Path(shutil.copytree(plain, tmp_path / "s"))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def is_usable(target):
    """The store, whole."""
    store = open_store(target)
    store.verify()
    np.testing.assert_array_equal(store.labels, Y)
    return store


def leaf_rows_in(store, kind):
    """How an index was built; fails unless it is whole."""
    index = open_index(store, kind)
    index.verify()
    return index.info.settings["leaf_rows"]


@pytest.mark.parametrize(
    ("kind", "memory"),
    [
        ("boxes", 20_000),
        *(pytest.param(kind, "512M", marks=pytest.mark.slow) for kind in KINDS),
    ],
)
def test_killed_before_every_change_of_the_disk(target, run_builder, kind, memory):
    there = []
    before = names(target)
    for fatal in range(1, 500):
        code = run_builder(target, kind, 7, fatal, memory)
        assert code in (0, 77)
        store = is_usable(target)
        there.append(indexes_of(store) == [kind])
        if there[-1]:
            assert leaf_rows_in(store, kind) == 7
        if code == 0:
            break
        if there[-1]:  # it died after the index was in place
            shutil.rmtree(target / f"index-{kind}")
    assert len(there) > 20
    assert not any(there[:15])
    assert there[-1]
    assert names(target) == sorted([*before, f"index-{kind}"])  # the last run cleared up behind all others


def test_killed_while_replacing_another(target, run_builder):
    assert run_builder(target, "boxes", 5, 0) == 0
    survivors = []
    for fatal in range(1, 500):
        code = run_builder(target, "boxes", 1000 + fatal, fatal)
        assert code in (0, 77)
        survivors.append(leaf_rows_in(is_usable(target), "boxes") == 1000 + fatal)
        if code == 0:
            break
    assert not survivors[0]
    assert sum(survivors) > 1  # also some that died after the exchange, before the old index was removed
    assert not [name for name in names(target) if name.startswith(".")]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_on_the_way_leaves_nothing(target, kind):
    class Stop:
        def start(self, stage, total_bytes):
            pass

        def advance(self, n_bytes, n_rows=0):
            raise KeyboardInterrupt

    before = names(target)
    for memory in ("512M", 20_000):
        with pytest.raises(KeyboardInterrupt):
            build_index(open_store(target), kind, memory=memory, progress=Stop())
        assert names(target) == before


@pytest.mark.parametrize("memory", ["512M", 20_000])
@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_that_is_full(target, kind, memory):
    """Files may be so large and no larger: the system says so as it does of a full disk, by an error of a write."""
    before, store = names(target), open_store(target)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))
    try:
        with pytest.raises(StoreError) as caught:
            build_index(store, kind, memory=memory)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert str(caught.value).startswith(f"{target}/index-{kind} cannot be written: File too large")
    assert names(target) == before
    build_index(is_usable(target), kind, memory=memory).verify()
    assert names(target) == sorted([*before, f"index-{kind}"])


def outcome(target):
    """(the weights that training through the index finds, or None; the error)."""
    try:
        return beeline.LinearSVC(loss="hinge", solver="indexed", tol=1e-2).fit(open_store(target)).coef_, ""
    except StoreError as error:
        return None, str(error)


def looked_at(store, kind):
    open_index(store, kind).verify()


@pytest.mark.parametrize("kind", KINDS)
def test_any_altered_or_shortened_file_is_named(target, kind):
    """Wherever the damage is, and whoever meets it first: training never goes by wrong bytes."""
    build_index(open_store(target), kind, settings=IndexSettings(leaf_rows=9))
    known = outcome(target)[0]
    for file in sorted((target / f"index-{kind}").iterdir()):
        content = file.read_bytes()
        places = sorted({0, len(content) // 2, len(content) - 1})
        flipped = [content[:k] + bytes([content[k] ^ 4]) + content[k + 1 :] for k in places]
        for damaged in [*flipped, content[: len(content) // 2], content[:-1], b"", content + b"\0"]:
            file.unlink()
            file.write_bytes(damaged)
            with pytest.raises(StoreError, match=file.name.replace(".", r"\.")):
                looked_at(open_store(target), kind)
            if damaged in (flipped[1], content[: len(content) // 2]):
                found, error = outcome(target)
                assert (found is None and file.name in error) or np.array_equal(found, known)
        file.write_bytes(content)
    looked_at(open_store(target), kind)


# For each line of orders a new process trains on a store, one file of which is cut off after the first iteration.
TRAINER = """
import os, sys, warnings
import beeline
from beeline.exceptions import BeelineError
from beeline.solvers import SOLVERS

def train(target, file, loss, solver, index, memory):
    def cut(step):
        os.truncate(os.path.join(target, file), 4000)
    how = {} if index is None else {"index": index}
    store = beeline.open_store(target)
    chosen = SOLVERS[solver](**how)
    beeline.LinearModel(loss, solver=chosen, memory=memory, tol=1e-12, callback=cut).fit(store)

warnings.simplefilter("ignore")
for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            train(*eval(line))
        except BeelineError as error:
            print(error, flush=True)
        finally:
            os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print("ended with", code, flush=True)
"""


@pytest.fixture(scope="module")
def run_trainer():
    """Train in another process; returns what it says, the last line of which is how it has ended."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", TRAINER], text=True, **pipes) as server:

        def run(*arguments):
            server.stdin.write(f"{arguments!r}\n")
            server.stdin.flush()
            said = [server.stdout.readline()]
            while not said[-1].startswith("ended with"):
                said.append(server.stdout.readline())
            return said

        yield run


@pytest.fixture(scope="module")
def larger(tmp_path_factory):
    """A store with more rows than one query reads."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(3000, 8))
    labels = np.where(rows[:, 0] + random.normal(size=3000) > 0, 1.0, -1.0)
    path = tmp_path_factory.mktemp("larger") / "s"
    with StoreWriter(path, chunk_bytes=8000) as writer:
        writer.write(beeline.from_arrays(rows, labels).block)
        store = writer.finish()
    for kind in KINDS:
        build_index(store, kind, settings=IndexSettings(leaf_rows=20, chunk_bytes=2000))
    return path


@pytest.mark.parametrize("memory", [pytest.param(None, marks=pytest.mark.slow), "300K"])
@pytest.mark.parametrize(
    ("loss", "solver", "kind"),
    [
        ("hinge", "indexed", "boxes"),
        ("logistic", "lbfgs", None),
        ("squared_hinge", "block_cd", None),
        *(pytest.param("hinge", "indexed", kind, marks=pytest.mark.slow) for kind in ("chunks", "forest")),
        pytest.param("logistic", "newton", None, marks=pytest.mark.slow),
        pytest.param("hinge", "bundle", None, marks=pytest.mark.slow),
    ],
)
def test_a_file_that_shrinks_is_named_and_ends_no_process(larger, tmp_path, run_trainer, loss, solver, kind, memory):
    target = shutil.copytree(larger, tmp_path / "s")
    file = "part-00000.arrow" if kind is None else f"index-{kind}/part-00000.arrow"
    error, end = run_trainer(str(target), file, loss, solver, kind, memory)
    assert f"s/{file} was truncated" in error
    assert end == "ended with 0\n"
