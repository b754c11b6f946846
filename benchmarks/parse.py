"""Claim: LIBSVM text becomes a data set in memory in at most twice the time of a plain read of the file.

And at least 20 times as fast as scikit-learn's `load_svmlight_file`, and 5 times as fast as XGBoost's reader. All with
two threads, from the page cache, on a file of 300 MB that repeats the rows of covtype (or MNIST) of ../shared/data, or
random rows of the same form where these are missing. Runs are interleaved, and medians are compared. The result
is exact float64; XGBoost keeps float32.

    python benchmarks/parse.py [--check] [--full] [--data covtype|mnist] [--folder DIR]
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import beeline

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
SIZE = 300_000_000


@dataclass(frozen=True)
class Claim:
    """The peer's time must be at least so many times ours; below 1 it may be shorter."""

    peer: str
    at_least: float


CLAIMS = [Claim("plain read()", 0.5), Claim("scikit-learn", 20), Claim("XGBoost", 5)]


def covtype() -> tuple[np.ndarray, np.ndarray]:
    packed = SHARED / "covtype" / "covtype.csv.gz"
    if packed.exists():
        import pyarrow.csv

        table = pyarrow.csv.read_csv(packed)
        columns = np.column_stack([column.to_numpy() for column in table.columns])
        return columns[:, :-1], columns[:, -1]
    rng = np.random.default_rng(0)
    n = 200_000
    indicators = [np.eye(k, dtype=np.int64)[rng.integers(0, k, n)] for k in (4, 40)]
    return np.hstack([rng.integers(-50, 4000, (n, 10)), *indicators]), rng.integers(1, 8, n)


def mnist() -> tuple[np.ndarray, np.ndarray]:
    packed = SHARED / "mnist" / "train-images-idx3-ubyte.gz"
    if packed.exists():
        pixels = np.frombuffer(gzip.decompress(packed.read_bytes()), np.uint8, offset=16).reshape(-1, 784)
        labels = gzip.decompress(packed.with_name("train-labels-idx1-ubyte.gz").read_bytes())
        return pixels, np.frombuffer(labels, np.uint8, offset=8)
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (20_000, 784)) * (rng.random((20_000, 784)) < 0.19), rng.integers(0, 10, 20_000)


DATA: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {"covtype": covtype, "mnist": mnist}


def write_source(folder: Path, name: str) -> Path:
    """The file to read; made once."""
    path = folder / f"{name}-{SIZE // 10**6}.svm"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for x, y in zip(*DATA[name](), strict=True):
        stored = np.flatnonzero(x)
        entries = zip((stored + 1).tolist(), x[stored].tolist(), strict=True)
        lines.append(f"{y} {' '.join(f'{j}:{v}' for j, v in entries)}\n")
    text = "".join(lines).encode()
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("wb") as file:
        while file.tell() < SIZE:
            file.write(text)
    unfinished.rename(path)
    return path


def read_plainly(path: Path) -> bytes:
    with path.open("rb", buffering=0) as file:
        return file.read()


def readers(path: Path) -> dict[str, Callable[[], object]]:
    """Everything that is compared; peers only where they are installed."""
    runs: dict[str, Callable[[], object]] = {
        "plain read()": lambda: read_plainly(path),
        "beeline": lambda: beeline.read(path, format="libsvm"),
    }
    try:
        from sklearn.datasets import load_svmlight_file

        runs["scikit-learn"] = lambda: load_svmlight_file(str(path))
    except ImportError:
        print("scikit-learn is not installed")
    try:
        import xgboost

        runs["XGBoost"] = lambda: xgboost.DMatrix(f"{path}?format=libsvm", nthread=2)
    except ImportError:
        print("XGBoost is not installed")
    return runs


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    result = run()
    elapsed = time.perf_counter() - start
    del result
    return elapsed


def compare(path: Path, rounds: int, slow_rounds: int) -> dict[str, list[float]]:
    """Seconds of every run; slow peers take part in the first few rounds only."""
    runs = readers(path)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for name in ("plain read()", "beeline"):
        runs[name]()  # warms up the page cache and the thread pool
    for i in range(rounds):
        for name, run in runs.items():
            if name in ("plain read()", "beeline") or i < slow_rounds:
                times[name].append(seconds(run))
    return times


def report(times: dict[str, list[float]], megabytes: float) -> bool:
    """Print everything; whether all claims hold."""
    ours = statistics.median(times["beeline"])
    for name, taken in times.items():
        median = statistics.median(taken)
        speed = f"{median:7.3f} s  {megabytes / median:6.0f} MB/s"
        print(f"  {name:14} {speed}  {median / ours:6.2f} x our time   ({len(taken)} runs)")
    holds = True
    for claim in CLAIMS:
        if claim.peer not in times:
            continue
        ratio = statistics.median(times[claim.peer]) / ours
        holds &= ratio >= claim.at_least
        verdict = "holds" if ratio >= claim.at_least else "FAILS"
        print(f"{verdict}: {claim.peer} takes {ratio:.2f} x our time, at least {claim.at_least:g} is claimed")
    return holds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when a claim does not hold")
    parser.add_argument("--full", action="store_true", help="more repeats")
    parser.add_argument("--data", choices=DATA, default="covtype", help="the rows to repeat")
    parser.add_argument("--threads", type=int, default=2, help="for beeline; the claims are for two")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench", help="where the file is kept")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*Text file input has been deprecated.*")
    beeline.set_num_threads(arguments.threads)
    path = write_source(arguments.folder, arguments.data)
    megabytes = path.stat().st_size / 1e6
    print(
        f"{arguments.data}: {megabytes:.0f} MB of LIBSVM text, {arguments.threads} threads, medians of interleaved runs"
    )
    times = compare(path, 21 if arguments.full else 9, 3 if arguments.full else 1)
    return 0 if report(times, megabytes) or not arguments.check else 1


if __name__ == "__main__":
    sys.exit(main())
