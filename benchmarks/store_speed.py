"""Claim: walking a store for the first time, checksums included, takes at most 3 times a plain read of its files.

All from the page cache, sparse rows like text (75 of 47,236 features). Also shown, without a claim, since they measure
the disk: writing, and writing in shuffled order, against a plain write of as many bytes.

    python benchmarks/store_speed.py [--check] [--full] [--folder DIR]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from beeline import Block, Store, open_store
from beeline.data.store import StoreWriter

CLAIM = 3.0


def rows(n: int = 20_000, per_row: int = 75, n_features: int = 47_236) -> Block:
    rng = np.random.default_rng(0)
    step = n_features // per_row
    indices = rng.integers(0, step, (n, per_row), dtype=np.int32) + np.arange(per_row, dtype=np.int32) * np.int32(step)
    indptr = np.arange(0, n * per_row + 1, per_row)
    return Block(rng.random(n * per_row), n_features, indptr, indices.ravel(), labels=rng.integers(0, 2, n) * 2.0 - 1)


def write(path: Path, block: Block, repeats: int, shuffle: int | None) -> Store:
    with StoreWriter(path, overwrite=True, memory=64 << 20, shuffle=shuffle) as writer:
        for _ in range(repeats):
            writer.write(block)
        return writer.finish()


def plain_write(path: Path, size: int) -> None:
    piece = bytes(512 << 10)
    with path.open("wb", buffering=0) as file:
        for _ in range(size // len(piece)):
            file.write(piece)
        os.fsync(file.fileno())
    path.unlink()


def plain_read(store: Store) -> None:
    buffer = bytearray(512 << 10)
    for part in store.manifest.parts:
        with (store.path / part.name).open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def walk(store: Store, memory: int | None = None) -> None:
    for block in store.blocks(memory):
        block.values.max()  # every value is touched


def timed(function: Callable[..., object], *arguments: object) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def reading(store: Store, repeats: int) -> float:
    """Print the rates of reading; returns the ratio of the claim."""
    known = open_store(store.path)
    plain_read(store)
    walk(known)
    ways: dict[str, Callable[[], float]] = {
        "plain read": lambda: timed(plain_read, store),
        "first walk, with checksums": lambda: timed(walk, open_store(store.path)),
        "later walk": lambda: timed(walk, known),
        "walk in blocks of 16 MB": lambda: timed(walk, known, 16 << 20),
        "verify": lambda: timed(known.verify),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            times[name].append(way())
    plain = statistics.median(times["plain read"])
    for name, taken in times.items():
        middle = statistics.median(taken)
        print(f"   {name:<28} {store.nbytes / middle / 1e9:6.2f} GB/s   {middle / plain:5.2f} × plain read")
    return statistics.median(times["first walk, with checksums"]) / plain


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with code 1 when the claim does not hold")
    parser.add_argument("--full", action="store_true", help="a store of 3.6 GB instead of 0.5 GB")
    parser.add_argument("--folder", type=Path, default=None, help="where the store goes; a temporary folder otherwise")
    arguments = parser.parse_args()
    block, pieces = rows(), 200 if arguments.full else 25
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        store = write(Path(folder) / "store", block, pieces, None)
        print(f"{store.n_rows:,} rows, {store.nbytes / 1e6:,.0f} MB")
        ways = {
            "plain write": lambda: plain_write(Path(folder) / "plain", store.nbytes),
            "write a store": lambda: write(Path(folder) / "again", block, pieces, None),
            "write it shuffled": lambda: write(Path(folder) / "again", block, pieces, 1),
        }
        for name, way in ways.items():
            print(f"   {name:<28} {store.nbytes / timed(way) / 1e6:6.0f} MB/s")
        ratio = reading(store, 7)
    print(f"first walk: {ratio:.2f} × plain read, claim ≤ {CLAIM}: {'holds' if ratio <= CLAIM else 'BROKEN'}")
    return int(arguments.check and ratio > CLAIM)


if __name__ == "__main__":
    sys.exit(main())
