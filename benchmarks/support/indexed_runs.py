"""Trainings on large stores, each in a process whose memory is limited, and what they reached when."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

import beeline
from support import enlarged, sets
from support.watching import watch

__all__ = ["ALLOWANCE", "FOLDER", "Curve", "Large", "Run", "forget", "run", "support_vectors"]

FOLDER = sets.FOLDER / "indexed"
CHILD = Path(__file__).with_name("indexed_child.py")
ALLOWANCE = 150 << 20  # beside the budget: Python, and libraries


@dataclass(frozen=True)
class Large:
    """A binary set in a store, with test rows in another.

    Attributes
    ----------
    name, n_rows, positive
        Of which real set it is made, how many rows it has, and the class against the rest.
    """

    name: str
    n_rows: int
    positive: float
    n_tests: int = 100_000

    @property
    def store(self) -> Path:
        """The training rows; made when they are not there."""
        return self._made("train", self.n_rows)

    @property
    def tests(self) -> Path:
        """The test rows."""
        return self._made("test", self.n_tests)

    def _made(self, part: str, n: int) -> Path:
        path = FOLDER / f"{self.name}-{part}-{n}.store"
        if not path.exists():
            FOLDER.mkdir(parents=True, exist_ok=True)
            rows = enlarged.batches(self.name, n, part)
            beeline.convert(((X, np.where(y == self.positive, 1.0, -1.0)) for X, y in rows), path)
        return path

    @property
    def nbytes(self) -> int:
        """Bytes of the training rows."""
        return beeline.open_store(self.store).nbytes

    @cache  # noqa: B019 — two of them, for the whole run
    def test_rows(self):
        """(the test rows, their labels)."""
        store = beeline.open_store(self.tests)
        return store.rows(0, store.n_rows), np.asarray(store.labels)

    def error(self, theta: np.ndarray) -> float:
        """Test error of weights and intercept, in percent."""
        rows, labels = self.test_rows()
        return 100 * float(np.mean((rows.scores(theta[:-1]) + theta[-1] > 0) != (labels > 0)))


@dataclass(frozen=True)
class Run:
    """A training.

    Attributes
    ----------
    solver, options
        Who solves it, and with which options.
    loss, loss_settings, C
        What it minimises.
    index
        The kind of index that is used; None: none.
    tenth
        Whether a tenth of the data's size is all the memory; otherwise there is no limit.
    tol, max_passes, most_seconds
        When it ends.
    """

    solver: str
    loss: str = "ramp"
    index: str | None = None
    tenth: bool = False
    C: float = 1.0
    options: dict = field(default_factory=dict)
    loss_settings: dict = field(default_factory=dict)
    tol: float = 1e-3
    max_passes: float = 200
    most_seconds: float = 300


@dataclass(frozen=True, eq=False)
class Curve:
    """What was seen: the trace, and the test error at each of its points.

    Attributes
    ----------
    points, errors, theta
        The trace, test errors in percent, and the last weights.
    resident, counted
        The peak of resident memory, and of all that is counted, page cache included; None where there was no limit.
    limit
        Bytes that were allowed; None: any number.
    """

    points: list[dict]
    errors: list[float]
    theta: np.ndarray
    resident: int
    counted: int | None
    limit: int | None

    def seconds_to(self, error: float) -> float:
        """When the test error was reached; ∞ if never."""
        return next((p["seconds"] for p, e in zip(self.points, self.errors, strict=True) if e <= error), np.inf)

    def at(self, error: float) -> dict:
        """The point where the test error was reached, or the last one."""
        return next((p for p, e in zip(self.points, self.errors, strict=True) if e <= error), self.points[-1])

    @property
    def last(self) -> dict:
        """The last point."""
        return self.points[-1]


def forget(*paths: Path) -> None:
    """Take files, or those in folders, out of the page cache."""
    for path in paths:
        for file in path.rglob("*") if path.is_dir() else [path]:
            if file.is_file():
                descriptor = os.open(file, os.O_RDONLY)
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)


def run(large: Large, how: Run, *, cold: bool = True) -> Curve:
    """Train, with nothing of the store in the page cache to begin with."""
    folder = FOLDER / f"run-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    memory = large.nbytes // 10 if how.tenth else None
    limit = None if memory is None else memory + ALLOWANCE
    if cold:
        forget(large.store)
    settings = asdict(how) | {"store": str(large.store), "memory": memory, "started": time.time()}
    outcome = watch([sys.executable, str(CHILD), str(folder)], limit, given=json.dumps(settings))
    if outcome.code:
        raise SystemExit(f"{how} on {large.name} ended with the code {outcome.code}")
    points = [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()]
    thetas = np.fromfile(folder / "thetas.f64").reshape(len(points), -1)
    errors = [large.error(theta) for theta in thetas]
    return Curve(points, errors, thetas[-1], outcome.resident, outcome.counted, limit)


def support_vectors(large: Large, theta: np.ndarray, s: float | None) -> int:
    """Rows of the training set whose loss is neither zero nor cut off."""
    store, count = beeline.open_store(large.store), 0
    for block in store.blocks(64 << 20):
        margins = np.asarray(block.labels) * (block.scores(theta[:-1]) + theta[-1])
        count += int(np.count_nonzero((margins < 1) & (margins >= (-np.inf if s is None else -s))))
    return count
