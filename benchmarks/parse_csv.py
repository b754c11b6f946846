"""Claim: a CSV file becomes a data set in memory at most 30 % slower than pyarrow's own reader makes a table of it.

The file is covtype (581,012 rows of 54 features and a label), unpacked from ../shared/data, or made at random in the
same form where that is missing. Both readers find out the types by themselves and use two threads; runs are
interleaved, and medians are compared.

    python benchmarks/parse_csv.py [--check] [--full]
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

import beeline

MOST = 1.3
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def write_source(path: Path) -> str:
    """The file to read; returns where it comes from."""
    packed = SHARED / "covtype" / "covtype.csv.gz"
    if packed.exists():
        with gzip.open(packed) as source, path.open("wb") as file:
            shutil.copyfileobj(source, file)
        return "covtype"
    rng = np.random.default_rng(0)
    n = 581_012
    columns = {f"x{k}": rng.integers(0, 4000, n) for k in range(10)}
    area, soil = rng.integers(0, 4, n), rng.integers(0, 40, n)
    columns |= {f"area{k}": (area == k).astype(np.int64) for k in range(4)}
    columns |= {f"soil{k}": (soil == k).astype(np.int64) for k in range(40)}
    pyarrow.csv.write_csv(pa.table({**columns, "Cover_Type": rng.integers(1, 8, n)}), path)
    return "random rows in the form of covtype"


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    result = run()
    elapsed = time.perf_counter() - start
    del result
    return elapsed


def compare(path: Path, repeats: int) -> dict[str, float]:
    """Median seconds of each reader."""
    runs: dict[str, Callable[[], object]] = {
        "pyarrow.csv.read_csv": lambda: pyarrow.csv.read_csv(path),
        "beeline.read": lambda: beeline.read(path, label="Cover_Type"),
        "beeline.read, dense": lambda: beeline.read(path, label="Cover_Type", layout="dense"),
        "beeline.read, scaled": lambda: beeline.read(path, label="Cover_Type", scale="maxabs"),
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats + 1):
        for name, run in runs.items():
            times[name].append(seconds(run))
    return {name: statistics.median(taken[1:]) for name, taken in times.items()}  # the first run warms up


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when the claim does not hold")
    parser.add_argument("--full", action="store_true", help="more repeats")
    arguments = parser.parse_args()
    beeline.set_num_threads(2)
    pa.set_cpu_count(2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "covtype.csv"
        name = write_source(path)
        megabytes = path.stat().st_size / 1e6
        print(f"{name}: {megabytes:.0f} MB of CSV, two threads, medians of interleaved runs")
        medians = compare(path, 21 if arguments.full else 9)
    peer = medians["pyarrow.csv.read_csv"]
    for reader, median in medians.items():
        print(f"  {reader:24} {median:6.3f} s  {megabytes / median:5.0f} MB/s  {median / peer:5.2f} x pyarrow")
    ratio = medians["beeline.read"] / peer
    holds = ratio <= MOST
    print(f"{'holds' if holds else 'FAILS'}: {ratio:.2f} x pyarrow's time, at most {MOST} is claimed")
    return 0 if holds or not arguments.check else 1


if __name__ == "__main__":
    sys.exit(main())
