"""A training that is killed at any moment goes on from its last checkpoint, and ends with the same bits."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import beeline
from beeline.data.core.arrays import from_arrays
from beeline.exceptions import ParameterError, SourceError
from beeline.fitting import Settings, fit
from beeline.index import IndexSettings, build_index
from beeline.model import Model

RNG = np.random.default_rng(0)
N, D = 1500, 8
X = RNG.normal(size=(N, D)) + 0.2
SCORES = X @ RNG.normal(size=D) + 0.7 * RNG.normal(size=N)
TWO, THREE = np.where(SCORES > 0, 1.0, -1.0), np.digitize(SCORES, [-1.0, 1.5]).astype(np.float64)

# For each line of orders a new process trains, and kills itself just before the call number `fatal` that changes
# something on the disk. What it found is written with all digits, and without seconds.
TRAINER = """
import json, os, signal, sys, warnings
from beeline import open_store
from beeline.fitting import Settings, fit

def dying(function, fatal, calls=[0]):
    def call(*arguments, **settings):
        calls[0] += 1
        if calls[0] == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **settings)
    return call

def die_at(names, fatal):
    for name in names:
        setattr(os, name, dying(getattr(os, name), fatal))

def plain(facts):
    return {name: value for name, value in facts.items() if "seconds" not in name}

def train(store, output, settings, names, fatal):
    warnings.simplefilter("ignore")
    if fatal > 0:
        die_at(names, fatal)
    memory = settings.pop("memory", None)
    if memory is not None:
        from beeline.engines import Resources
        settings["resources"] = Resources(memory)
    fitted = fit(open_store(store), Settings(checkpoint_interval=0.0, **settings))
    model = fitted.model
    found = [model.weights.tolist(), model.intercepts.tolist(), None if model.platt is None else model.platt.tolist()]
    for result in fitted.results:
        trace = [[at.passes, at.objective, at.gap, plain(at.facts)] for at in result.trace]
        found.append([result.objective, result.bound, result.status.name, result.passes, result.iterations, trace])
    with open(output, "w") as file:
        json.dump(found, file)
    if fatal < 0:  # of the changes that are made from here on
        die_at(names, -fatal)
    fitted.remove_checkpoint()

for line in sys.stdin:
    child = os.fork()
    if not child:
        code = 1
        try:
            train(*eval(line))
            code = 0
        except BaseException as error:
            print(error, file=sys.stderr)
        finally:
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

WRITES = ("fsync", "replace")
TRAININGS = {
    "indexed": ("indexed", {"loss": "ramp", "solver": "indexed", "C": 0.1}),
    "block_cd": ("three", {"loss": "hinge", "solver": "block_cd", "C": 0.01, "memory": 100_000, "tol": 1e-2}),
    "dual_cd": ("three", {"loss": "squared_hinge", "solver": "dual_cd", "tol": 1e-6}),
    "bundle": ("two", {"loss": "hinge", "solver": "bundle", "intercept": "none"}),
    "lbfgs": ("three", {"loss": "logistic", "solver": "lbfgs", "multiclass": "softmax"}),
    "newton": ("three", {"loss": "logistic", "solver": "newton", "multiclass": "ovr", "tol": 1e-10}),
    "relaxation": ("two", {"loss": "ramp", "solver": "relaxation"}),
    "probabilities": ("two", {"loss": "squared_hinge", "solver": "newton", "probability": True}),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Two classes, three of them, and two with an index."""
    folder = tmp_path_factory.mktemp("stores")
    for name, y in (("two", TWO), ("three", THREE), ("indexed", TWO)):
        beeline.convert(iter([(X, y)]), folder / name)
    build_index(beeline.open_store(folder / "indexed"), "chunks", settings=IndexSettings(leaf_rows=40, samples=5))
    return folder


@pytest.fixture(scope="module")
def run_trainer():
    """Train in another process; returns its exit code."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", TRAINER], text=True, **pipes) as server:

        def run(*order):
            server.stdin.write(f"{order!r}\n")
            server.stdin.flush()
            return int(server.stdout.readline())

        yield run


@pytest.mark.parametrize("name", TRAININGS)
def test_killed_again_and_again(tmp_path, stores, run_trainer, name):
    """Before a file is on the disk, before it is renamed, and before the folder is on the disk."""
    source, settings = TRAININGS[name]
    store, whole, output = (str(path) for path in (stores / source, tmp_path / "whole", tmp_path / "found"))
    assert run_trainer(store, whole, settings, WRITES, 0) == 0
    folder, deaths, numbers = tmp_path / "folder", 0, random.Random(name)
    settings = settings | {"checkpoint": str(folder)}
    # By its fifth change one of three threads has renamed a file, so that each process gets somewhere.
    while (code := run_trainer(store, output, settings, WRITES, numbers.randrange(5, 40 if deaths else 7))) != 0:
        assert code == -signal.SIGKILL
        assert (folder / "training.json").exists() or not deaths
        deaths += 1
        assert deaths < 100
    assert deaths
    assert not folder.exists()
    assert (tmp_path / "found").read_text() == (tmp_path / "whole").read_text()


def test_killed_in_a_search_and_after_it(tmp_path, stores, run_trainer):
    """A search finds the same C to its tolerance; the training with it goes on to the same bits."""
    store, folder = str(stores / "two"), tmp_path / "folder"
    settings = {"loss": "logistic", "C": "auto", "solver": "lbfgs", "tol": 1e-8}
    assert run_trainer(store, str(tmp_path / "whole"), settings, WRITES, 0) == 0
    settings["checkpoint"] = str(folder)
    assert run_trainer(store, str(tmp_path / "late"), settings, WRITES, 70) == -signal.SIGKILL
    assert sorted(path.name for path in folder.iterdir())[-3:] == ["problem-000000", "search.path", "training.json"]
    assert run_trainer(store, str(tmp_path / "late"), settings, WRITES, 0) == 0
    assert (tmp_path / "late").read_text() == (tmp_path / "whole").read_text()
    assert not folder.exists()
    assert run_trainer(store, str(tmp_path / "early"), settings, WRITES, 20) == -signal.SIGKILL
    assert [path.name for path in folder.iterdir() if path.name[0] != "."] == ["search.path"]
    assert run_trainer(store, str(tmp_path / "early"), settings, WRITES, 0) == 0
    early, whole = (json.loads((tmp_path / name).read_text()) for name in ("early", "whole"))
    np.testing.assert_allclose(early[0], whole[0], rtol=1e-4)


def test_killed_while_checkpoints_are_removed(tmp_path, stores, run_trainer):
    """The model was written before; the same training again finds it again, and removes them."""
    source, settings = TRAININGS["newton"]
    store, output, folder = str(stores / source), str(tmp_path / "found"), tmp_path / "folder"
    settings = settings | {"checkpoint": str(folder)}
    answers, left = set(), []
    for fatal in range(1, 20):
        code = run_trainer(store, output, settings, ("unlink", "rmdir"), -fatal)
        answers.add((tmp_path / "found").read_text())
        if code == 0:
            break
        left.append(sorted(path.name for path in folder.iterdir()))
        assert run_trainer(store, output, settings, WRITES, 0) == 0
        assert not folder.exists()
    assert ["problem-000000", "problem-000001", "problem-000002", "training.json"] in left
    assert [] in left
    assert len(answers) == 1


def test_an_index_that_was_built_again(tmp_path, run_trainer):
    """A snapshot knows where rows lie in the order of the index; in another one its answers would be false."""
    store = beeline.convert(iter([(X, TWO)]), tmp_path / "store")
    build_index(store, "chunks", settings=IndexSettings(leaf_rows=40, samples=5))
    _, settings = TRAININGS["indexed"]
    settings = settings | {"checkpoint": str(tmp_path / "folder")}
    order = str(store.path), str(tmp_path / "found"), settings, WRITES
    assert run_trainer(*order, 9) == -signal.SIGKILL
    build_index(store, "chunks", settings=IndexSettings(leaf_rows=40, samples=5, seed=1))
    with pytest.raises(ParameterError, match="another training, which differs in its index"):
        fit(store, Settings(**settings))


def train_command(rows, model, *more):
    command = [sys.executable, "-m", "beeline", "train", str(rows), "-o", str(model), "--json", "--loss", "hinge"]
    return [*command, "--solver", "dual_cd", "--tol", "1e-7", "--checkpoint-interval", "0", *more]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Rows as text, and the model that a training without a checkpoint finds."""
    folder = tmp_path_factory.mktemp("text")
    lines = (f"{y:g} {' '.join(f'{j}:{v:.3f}' for j, v in enumerate(x, 1))}" for x, y in zip(X, TWO, strict=True))
    (folder / "rows.svm").write_text("\n".join([*lines] * 4) + "\n")
    subprocess.run(train_command(folder / "rows.svm", folder / "model"), check=True, stdout=subprocess.DEVNULL)
    return folder / "rows.svm", Model.load(folder / "model")


def test_killed_at_random_moments(tmp_path, text):
    rows, whole = text
    command = train_command(rows, tmp_path / "model", "--checkpoint", str(tmp_path / "folder"))
    moments, seen = random.Random(1), False
    for _ in range(2):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            end = time.monotonic() + 30
            while child.poll() is None and not (tmp_path / "folder" / "problem-000000").exists():
                assert time.monotonic() < end
                time.sleep(0.002)
            time.sleep(0.1 * moments.random())
            child.kill()
        seen |= (tmp_path / "folder").exists()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert seen
    model = Model.load(tmp_path / "model")
    np.testing.assert_array_equal(model.weights, whole.weights)
    np.testing.assert_array_equal(model.intercepts, whole.intercepts)
    assert json.loads(done.stdout)["report"]["passes"] == whole.report.passes
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_a_disk_that_is_full(tmp_path, text):
    """A limit on the size of files stands for it: nothing half-made is left, and training goes on."""
    rows, whole = text
    command = train_command(rows, tmp_path / "model", "--checkpoint", str(tmp_path / "folder"))
    few = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # noqa: E731
    full = subprocess.run(command, preexec_fn=few, capture_output=True, text=True, check=False)
    assert full.returncode == 1
    (line,) = full.stderr.splitlines()
    assert f"problem-000000 cannot be written: {os.strerror(errno.EFBIG).lower()}" in line
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["training.json"]
    subprocess.run(command, check=True, capture_output=True)
    np.testing.assert_array_equal(Model.load(tmp_path / "model").weights, whole.weights)


# What is wrong with a folder.

SETTINGS = {"loss": "hinge", "solver": "dual_cd", "checkpoint_interval": 0.0, "tol": 1e-6, "max_passes": 1e4}


def train(folder, stop_after=None, data=None, **more):
    """Train; stop after so many steps, which leaves a checkpoint."""
    seen = []
    stop = None if stop_after is None else lambda step: seen.append(step) or len(seen) >= stop_after
    settings = Settings(checkpoint=folder, **(SETTINGS | more))
    fitted = fit(from_arrays(X) if data is None else data, settings, TWO, callback=stop or (lambda _: None))
    fitted.remove_checkpoint()
    return fitted


def test_one_that_was_interrupted_goes_on(tmp_path):
    whole, folder = train(None), tmp_path / "folder"
    first = train(folder, stop_after=4)
    assert first.results[0].iterations == 4
    assert sorted(path.name for path in folder.iterdir()) == ["problem-000000", "training.json"]
    told = []
    settings = Settings(checkpoint=folder, **SETTINGS)
    again = fit(from_arrays(X), settings, TWO, callback=lambda _: None, tell=told.append)
    assert told == [f"training goes on from the checkpoint in {folder}"]
    np.testing.assert_array_equal(again.model.weights, whole.model.weights)
    assert again.results[0].iterations == whole.results[0].iterations
    once_more = fit(from_arrays(X), settings, TWO, callback=lambda _: pytest.fail("it was solved"))
    np.testing.assert_array_equal(once_more.model.weights, whole.model.weights)
    again.remove_checkpoint()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"C": 2.0}, r"C \(1.0 there, 2.0 here\)"),
        ({"loss": "squared_hinge"}, "loss"),
        ({"regularizer": "elastic_net", "solver": "bundle"}, "regularizer"),
        ({"solver": "bundle"}, r"solver \(dual_cd there, bundle here\)"),
        ({"intercept": "none"}, "intercept"),
        ({"tol": 1e-5}, "tol"),
        ({"seed": 1}, r"seed \(0 there, 1 here\)"),
        ({"data": from_arrays(X[:, :4])}, "number of features"),
        ({"data": from_arrays(-X)}, "rows;"),
        ({"class_weight": {1.0: 2.0}}, "labels or weights;"),
    ],
)
def test_the_checkpoint_of_another_training(tmp_path, change, words):
    folder = tmp_path / "folder"
    train(folder, stop_after=3)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ParameterError, match=f"another training, which differs in its {words}"):
        train(folder, **change)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["problem-000000", "training.json"])
def test_damaged_files(tmp_path, name):
    folder = tmp_path / "folder"
    train(folder, stop_after=3)
    file = folder / name
    raw = file.read_bytes()
    places = random.Random(0).sample(range(len(raw)), 60)
    for damaged in [*(raw[:k] + bytes([raw[k] ^ 1]) + raw[k + 1 :] for k in places), raw[:-1], raw[:100], b""]:
        file.write_bytes(damaged)
        with pytest.raises(SourceError, match=rf"{re.escape(str(file))} .*(remove|update|finish)") as caught:
            train(folder)
        assert "\n" not in str(caught.value)
    file.write_bytes(raw)
    np.testing.assert_array_equal(train(folder).model.weights, train(None).model.weights)


def test_a_problem_of_another_training(tmp_path):
    train(tmp_path / "one", stop_after=3)
    train(tmp_path / "other", stop_after=3, C=2.0)
    (tmp_path / "other" / "problem-000000").replace(tmp_path / "one" / "problem-000000")
    with pytest.raises(SourceError, match="belongs to another training than the rest of its folder"):
        train(tmp_path / "one")


def test_folders_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="is a file"):
        train(tmp_path / "file")
    with pytest.raises(SourceError, match="no such file"):
        train(tmp_path / "nowhere" / "folder")
    (tmp_path / "folder").mkdir()
    descriptor = os.open(tmp_path / "folder", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(ParameterError, match="another training works in"):
        train(tmp_path / "folder")
    os.close(descriptor)
    (tmp_path / "folder" / "mine").write_text("")
    with pytest.raises(ParameterError, match="has other files than checkpoints, such as mine"):
        train(tmp_path / "folder")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["mine"]
    with pytest.raises(ParameterError, match="checkpoint_interval must be finite"):
        Settings(checkpoint_interval=-1.0)
    with pytest.raises(ParameterError, match="checkpoint must be a folder"):
        Settings(checkpoint=3)


def test_a_solver_that_keeps_nothing_says_so(tmp_path):
    told = []
    more = {"loss": "hinge", "regularizer": "l1", "solver": "bundle", "checkpoint_interval": 0.0}
    settings = Settings(checkpoint=tmp_path / "folder", **more)
    fit(from_arrays(X), settings, TWO, tell=told.append)
    assert told == [
        "bundle keeps nothing on the way to this optimum: where training is ended, problems that are solved stay so, "
        "and others begin anew"
    ]


def test_an_estimator_goes_on(tmp_path):
    folder, seen = tmp_path / "folder", []

    def stop(step):
        seen.append(step)
        return len(seen) >= 5

    how = {"solver": "bundle", "checkpoint": folder}
    whole = beeline.LinearSVC(solver="bundle", callback=lambda _: None).fit(X, TWO)
    beeline.LinearSVC(callback=stop, **how).fit(X, TWO)
    assert folder.is_dir()
    again = beeline.LinearSVC(callback=lambda _: None, **how).fit(X, TWO)
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert not folder.exists()
