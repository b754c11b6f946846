"""The peers: each takes a problem and a tolerance, and gives a fit.

A peer is (problem) → (tolerance → fit): what the first call does (building the peer's own structures) is not timed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np

from support import sets
from support.liblinear_peer import LiblinearProblem
from support.problems import Fit, Problem, Seconds, Stopwatch

__all__ = ["Peer", "cyanure", "liblinear", "multicore", "sklearn_lbfgs", "snapml"]

MULTICORE = "liblinear-multicore==2.50.0"


@dataclass(frozen=True)
class Peer:
    """A solver of another package.

    Attributes
    ----------
    name, version
        What tables and caches call it.
    tol
        Its default tolerance.
    loss
        The loss that it minimises, by beeline's name.
    prepare
        From a problem to a function from tolerances to fits.
    at_default
        The same at all its defaults, where more than the tolerance differs.
    settings
        Where it has several solvers: it with each that may be its fastest on a problem.
    loosest_rung
        The loosest tolerance that means anything to it.
    """

    name: str
    version: str
    tol: float
    loss: str
    prepare: Callable[[Problem], Callable[[float], Fit]]
    at_default: Callable[[Problem], Callable[[float], Fit]] | None = None
    settings: Callable[[Problem], tuple[Peer, ...]] | None = None
    loosest_rung: int = -4


_LIBLINEAR_LOSSES = {0: "logistic", 1: "squared_hinge", 2: "squared_hinge", 3: "hinge", 4: "hinge", 7: "logistic"}
_LIBLINEAR_TOL = {0: 0.01, 2: 0.01}
_structures: dict[str, tuple[str, object]] = {}


def _kept(kind: str, name: str, make: Callable[[], object]):
    """The structure of the last problem of a kind, which several solvers share."""
    if _structures.get(kind, ("", None))[0] != name:
        _structures.pop(kind, None)
        _structures[kind] = name, make()
    return _structures[kind][1]


def liblinear(solver: int) -> Peer:
    """LIBLINEAR with one of its solvers, on its one thread."""

    def prepare(problem: Problem) -> Callable[[float], Fit]:
        def make() -> LiblinearProblem:
            return LiblinearProblem(problem.matrix, problem.rows.labels)

        structure = _kept("liblinear", f"{problem.set} {bool(problem.multiclass)}", make)

        def fit(tol: float) -> Fit:
            seconds, W, capped = structure.train(f"-s {solver} -c 1 -B -1 -e {tol!r} -q")
            return Fit(Seconds(*seconds), W, np.zeros(W.shape[1]), capped)

        return fit

    version = metadata.version("liblinear-official")
    return Peer(f"LIBLINEAR -s {solver}", version, _LIBLINEAR_TOL.get(solver, 0.1), _LIBLINEAR_LOSSES[solver], prepare)


class _Worker:
    """liblinear-multicore in its own environment, with one set in memory."""

    def __init__(self, problem: Problem, policy: str | None = None) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "rows.npz"
        np.savez(path, **problem.rows.arrays())
        self.process = subprocess.Popen(
            [_multicore_python(), Path(__file__).with_name("liblinear_peer.py"), path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"OMP_WAIT_POLICY": policy or _wait_policy(), "OMP_NUM_THREADS": "2"},
        )

    def train(self, options: str) -> tuple[tuple[float, float], np.ndarray, bool]:
        weights = Path(self.folder.name) / "weights.npy"
        self.process.stdin.write(json.dumps({"options": options, "weights": str(weights)}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("liblinear-multicore ended without an answer")
        said = json.loads(answer)
        return said["seconds"], np.load(weights), said["capped"]

    def __del__(self) -> None:
        self.process.stdin.close()
        self.process.wait()


@cache
def _wait_policy() -> str:
    """How OpenMP's threads wait for each other: whichever is faster now, as spinning is ruinous on a busy machine."""
    problem, seconds = Problem("a9a", "logistic"), {}
    for policy in ("active", "passive"):
        worker = _Worker(problem, policy)
        seconds[policy] = min(worker.train("-s 0 -m 2 -q")[0][0] for _ in range(5))
    best = min(seconds, key=seconds.__getitem__)
    print(f"  OpenMP's threads wait {best}ly ({', '.join(f'{p} {s:.3f} s' for p, s in seconds.items())})", flush=True)
    return best


def _multicore_python() -> Path:
    """The interpreter of the environment with liblinear-multicore in it; made when it is not there."""
    folder = sets.FOLDER / "multicore"
    ready = folder / "ready"
    if not ready.exists() or ready.read_text() != MULTICORE:
        print("making an environment for liblinear-multicore …", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([folder / "bin" / "python", "-m", "pip", "-qq", "install", "numpy", MULTICORE], check=True)
        ready.write_text(MULTICORE)
    return folder / "bin" / "python"


def multicore(solver: int) -> Peer:
    """liblinear-multicore with two threads (-s 7 has no parallel form and takes one)."""
    threads = "" if solver == 7 else "-m 2"

    def prepare(problem: Problem) -> Callable[[float], Fit]:
        worker = _kept("multicore", problem.set, lambda: _Worker(problem))

        def fit(tol: float) -> Fit:
            seconds, W, capped = worker.train(f"-s {solver} {threads} -c 1 -B -1 -e {tol!r} -q")
            return Fit(Seconds(*seconds), W, np.zeros(W.shape[1]), capped)

        return fit

    name = f"multicore -s {solver} -m 2"
    return Peer(name, MULTICORE, _LIBLINEAR_TOL.get(solver, 0.1), _LIBLINEAR_LOSSES[solver], prepare)


def _fitted(model, X, y) -> tuple[Seconds, object]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # iteration limits
        with Stopwatch() as watch:
            model.fit(X, y)
    return watch.seconds, model


def sklearn_lbfgs() -> Peer:
    """scikit-learn's LogisticRegression with its default solver, and a free intercept."""

    def prepared(max_iter: int):
        def prepare(problem: Problem) -> Callable[[float], Fit]:
            def fit(tol: float) -> Fit:
                from sklearn.linear_model import LogisticRegression

                fresh = LogisticRegression(C=1.0, tol=tol, max_iter=max_iter)
                seconds, model = _fitted(fresh, problem.matrix, problem.rows.labels)
                return Fit(seconds, model.coef_.T, model.intercept_)

            return fit

        return prepare

    version = metadata.version("scikit-learn")
    return Peer("scikit-learn lbfgs", version, 1e-4, "logistic", prepared(100_000), prepared(100))


def snapml(loss: str) -> Peer:
    """Snap ML on two threads: stochastic dual coordinate ascent, no intercept."""

    def prepare(problem: Problem) -> Callable[[float], Fit]:
        def fit(tol: float) -> Fit:
            import snapml as package

            shared = {"regularizer": 1.0, "n_jobs": 2, "tol": tol, "max_iter": 1000, "random_state": 1}
            fresh = (
                package.LogisticRegression(dual=True, **shared)
                if loss == "logistic"
                else package.SupportVectorMachine(loss=loss, **shared)
            )
            seconds, model = _fitted(fresh, problem.matrix, problem.rows.labels)
            W = np.asarray(model.coef_, dtype=np.float64).reshape(-1, 1)
            return Fit(seconds, W, np.zeros(1))

        return fit

    return Peer(f"Snap ML {loss}", metadata.version("snapml"), 1e-3, loss, prepare)


# (solver, passes between looks at the gap, threads, layout): what was among the fastest to one of the distances when
# its solvers were tried with 1, 2, 3, 5 and 10 passes, on one thread and on two. Its `auto` is MISO or its accelerated
# form with 5. Dense rows take it less time than sparse ones on covtype.
_CYANURE: dict[tuple[str, str], list[tuple[str, int, int, str]]] = {
    ("20newsgroups-text", "logistic"): [("miso", k, t, "csr") for k, t in ((3, 1), (3, 2), (5, 1), (5, 2), (10, 1))],
    ("20newsgroups-text", "squared_hinge"): [
        *(("miso", k, 1, "csr") for k in (2, 5, 10)),
        *(("catalyst-miso", k, t, "csr") for k, t in ((2, 1), (5, 1), (5, 2), (10, 1))),
    ],
    ("a9a", "logistic"): [
        *(("catalyst-miso", k, t, "csr") for k, t in ((2, 1), (3, 1), (5, 1), (5, 2), (10, 1))),
        ("catalyst-svrg", 1, 1, "csr"),
    ],
    ("a9a", "squared_hinge"): [
        *(("catalyst-miso", k, t, "csr") for k, t in ((2, 1), (5, 1), (5, 2), (10, 1))),
        *(("qning-miso", k, 1, "csr") for k in (2, 5)),
    ],
    ("covtype", "logistic"): [
        ("acc-svrg", 1, 1, "dense"),
        ("qning-svrg", 1, 1, "dense"),
        ("catalyst-miso", 2, 1, "dense"),
    ],
    ("covtype", "squared_hinge"): [("qning-svrg", 2, 1, "dense"), ("catalyst-miso", 2, 2, "dense")],
}


def cyanure(loss: str) -> Peer:
    """Cyanure with the fastest of its solvers, on at most two threads: no intercept, its checks of the input left out.

    Cyanure takes the mean of the losses and λ/2·‖w‖², and half of the squared hinge: with C = 1, λ is 1/n, or 1/(2n).
    """
    version = metadata.version("cyanure")

    def prepared(solver: str, interval: int, threads: int, layout: str):
        def prepare(problem: Problem) -> Callable[[float], Fit]:
            n = len(problem.rows.labels)
            make = problem.matrix.toarray if layout == "dense" else lambda: problem.matrix
            X = _kept("cyanure", f"{problem.set} {layout}", make)

            def fit(tol: float) -> Fit:
                from cyanure.estimators import Classifier

                fresh = Classifier(
                    loss="logistic" if loss == "logistic" else "sqhinge",
                    penalty="l2",
                    lambda_1=1 / n if loss == "logistic" else 1 / (2 * n),
                    fit_intercept=False,
                    solver=solver,
                    duality_gap_interval=interval,
                    n_threads=threads,
                    tol=tol,
                    max_iter=1000,
                    verbose=False,
                    safe=False,
                )
                with _muted():
                    seconds, model = _fitted(fresh, X, problem.rows.labels)
                return Fit(seconds, np.asarray(model.coef_, dtype=np.float64).reshape(-1, 1), np.zeros(1))

            return fit

        return prepare

    def with_settings(solver: str, interval: int, threads: int, layout: str) -> Peer:
        name = f"Cyanure {loss} {solver}, a look every {interval}, {threads} threads, {layout}"
        return Peer(name, version, 1e-3, loss, prepared(solver, interval, threads, layout), loosest_rung=0)

    def settings(problem: Problem) -> tuple[Peer, ...]:
        return tuple(with_settings(*chosen) for chosen in _CYANURE[problem.set, loss])

    return Peer(
        f"Cyanure {loss}", version, 1e-3, loss, prepared("auto", 5, 2, "csr"), settings=settings, loosest_rung=0
    )


@contextmanager
def _muted() -> Iterator[None]:
    """What a library writes to standard error by itself goes nowhere."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 — a descriptor is wanted
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
