"""LIBLINEAR's `-C` (find_parameters) by its own Python package, in a process of its own that can be cut off.

`python liblinear_search.py ROWS.npz` reads requests from standard input, {"solver": 0 or 2, "patience": SECONDS}, and
answers with lines of JSON: one for each C as LIBLINEAR reports it, and a last one. When the patience ends before the
search does, the process says so and ends: nothing in LIBLINEAR can be told to stop.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["FOLDS", "Found", "LiblinearSearch", "their_folds"]

FOLDS = 5
_SEED = 1


class Found(NamedTuple):
    """What LIBLINEAR's search found.

    Attributes
    ----------
    rates
        CV accuracy by C.
    wall, cores
        Seconds.
    whole
        Whether it came to its own end.
    """

    rates: dict[float, float]
    wall: float
    cores: float
    whole: bool

    @property
    def best_C(self) -> float:  # noqa: N802
        """The smallest C with the best accuracy."""
        return max(self.rates, key=self.rates.__getitem__)

    @property
    def best_rate(self) -> float:
        """The best accuracy."""
        return max(self.rates.values())


def their_folds(n_rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rows that LIBLINEAR trains on and holds out: its shuffle by C's rand(), after the same srand()."""
    libc = ctypes.CDLL(None)
    libc.srand(_SEED)
    rows = np.arange(n_rows)
    for i in range(n_rows):
        j = i + libc.rand() % (n_rows - i)
        rows[i], rows[j] = rows[j], rows[i]
    ends = [k * n_rows // FOLDS for k in range(FOLDS + 1)]
    parts = [rows[start:end] for start, end in pairwise(ends)]
    return [(np.setdiff1d(rows, part), part) for part in parts]


@dataclass(eq=False)
class LiblinearSearch:
    """A process with one set in memory, which is started when it is needed.

    Parameters
    ----------
    rows
        What an .npz file keeps of a CSR matrix, and labels −1 and +1: `Rows.arrays`.
    """

    rows: dict[str, np.ndarray]
    process: subprocess.Popen | None = None

    def run(self, solver: int, patience: float) -> Found:
        """Search, for no longer than that."""
        process = self._started()
        process.stdin.write(json.dumps({"solver": solver, "patience": patience}) + "\n")
        process.stdin.flush()
        rates: dict[float, float] = {}
        for line in process.stdout:
            said = json.loads(line)
            if "rate" in said:
                rates[2.0 ** said["log2c"]] = said["rate"] / 100
                continue
            if not said["whole"]:
                self.close()
            return Found(rates, said["wall"], said["cores"], said["whole"])
        raise RuntimeError("LIBLINEAR ended without an answer")

    def _started(self) -> subprocess.Popen:
        if self.process is None:
            self.folder = tempfile.TemporaryDirectory()
            path = Path(self.folder.name) / "rows.npz"
            np.savez(path, **self.rows)
            pipe = subprocess.PIPE
            self.process = subprocess.Popen([sys.executable, __file__, path], stdin=pipe, stdout=pipe, text=True)
        return self.process

    def close(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            self.process = None
            self.folder.cleanup()


class _Answers:
    """What goes to standard output, from LIBLINEAR's thread and from the one that ends its search."""

    def __init__(self) -> None:
        self.lock, self.wall, self.cores, self.text = threading.Lock(), 0.0, 0.0, ""

    def start(self) -> None:
        self.wall, self.cores, self.text = time.perf_counter(), time.process_time(), ""

    def heard(self, text: bytes) -> None:
        """LIBLINEAR prints `log2c= -3.00⇥rate=84.2`, in pieces; other lines are warnings."""
        *lines, self.text = (self.text + text.decode()).split("\n")
        for line in lines:
            if line.startswith("log2c="):
                log2c, rate = (float(part.split("=")[1]) for part in line.split("\t"))
                self.say(log2c=log2c, rate=rate)

    def say(self, **said: float) -> None:
        with self.lock:
            print(json.dumps(said), file=sys.__stdout__, flush=True)

    def end(self, whole: bool) -> None:
        self.say(wall=time.perf_counter() - self.wall, cores=time.process_time() - self.cores, whole=whole)

    def cut_off(self) -> None:
        self.end(False)
        os._exit(0)


def serve(path: str) -> None:
    """Answer requests until there are no more."""
    import scipy.sparse
    from liblinear import liblinear

    with np.load(path) as file:
        X = scipy.sparse.csr_matrix((file["values"], file["indices"], file["indptr"]), tuple(file["shape"].tolist()))
        problem = liblinear.problem(file["labels"], X)
    answers, sys.stdout = _Answers(), sys.stderr  # the package prints warnings
    hears = liblinear.PRINT_STRING_FUN(answers.heard)
    found = [ctypes.c_double() for _ in range(3)]
    unset = ctypes.c_double(-1)
    for line in sys.stdin:
        request = json.loads(line)
        parameter = liblinear.parameter(f"-s {request['solver']} -B -1 -C")
        liblinear.liblinear.set_print_string_function(hears)
        timer = threading.Timer(request["patience"], answers.cut_off)
        ctypes.CDLL(None).srand(_SEED)
        answers.start()
        timer.start()
        liblinear.liblinear.find_parameters(problem, parameter, FOLDS, unset, unset, *map(ctypes.byref, found))
        timer.cancel()
        answers.end(True)


if __name__ == "__main__":
    serve(sys.argv[1])
