"""Large sets made of small real ones, a batch at a time, in any size.

| set | how |
|---|---|
| mnist | digits with random deformations and changes of thickness, as mnist8m was made (Loosli, Canu & Bottou 2007) |
| kdd99 | rows drawn with replacement, whose numbers are multiplied by 1 + noise of 5 %, and stay within [0, 1] |

Test rows are made in the same way, of rows that no training row is made of: the published test digits, and a third of
the connections (the published test set of those holds attacks that the other does not know). Labels are class numbers.
"""

from __future__ import annotations

import gzip
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice

import numpy as np
import scipy.sparse as sp
from scipy.ndimage import gaussian_filter

from support import sets

__all__ = ["batches"]

SIDE = 28
FIELDS, SMOOTH, WIGGLE, THICKNESS = 500, 4.0, 10.0, 1.0  # of deformations: how many, how smooth, how large
LEAST = 0.1  # grey, below which a pixel is white
NOISE, TESTS = 0.05, 1 / 3
BATCH = 10_000


def batches(name: str, n_rows: int, part: str = "train", seed: int = 0) -> Iterator[tuple[sp.csr_matrix, np.ndarray]]:
    """Rows and their labels, in random order; the same for the same seed. Batches are made by threads, some ahead."""
    make = {"mnist": _digits, "kdd99": _connections}[name]

    def batch(number: int) -> tuple[sp.csr_matrix, np.ndarray]:
        size = min(BATCH, n_rows - number * BATCH)
        return make(part, size, np.random.default_rng([seed, part == "test", number]))

    yield batch(0)  # by which what all batches share is made
    threads = os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        coming = (pool.submit(batch, number) for number in range(1, -(-n_rows // BATCH)))
        waiting: deque[Future] = deque(islice(coming, 2 * threads))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(islice(coming, 1))


@cache
def _images(part: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(pixels / 255, their changes down and to the right, labels)."""
    name = "train" if part == "train" else "t10k"
    with gzip.open(sets.SHARED / "mnist" / f"{name}-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, SIDE, SIDE) / np.float32(255)
    with gzip.open(sets.SHARED / "mnist" / f"{name}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    smooth = gaussian_filter(images, (0, 0.7, 0.7))
    down, right = (np.gradient(smooth, axis=axis).reshape(len(images), -1) for axis in (1, 2))
    return images.reshape(len(images), -1), down, right, labels


@cache
def _fields() -> np.ndarray:
    """Smooth random fields of unit size."""
    noise = np.random.default_rng(12).normal(size=(FIELDS, SIDE, SIDE))
    fields = gaussian_filter(noise, (0, SMOOTH, SMOOTH)).reshape(FIELDS, -1)
    return (fields / fields.std(axis=1, keepdims=True)).astype(np.float32)


def _digits(part: str, n: int, random: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    images, down, right, labels = _images(part)
    picked, fields = random.integers(len(images), size=n), _fields()
    far = WIGGLE * random.uniform(-0.5, 0.5, size=(2, n, 1)).astype(np.float32)
    x, ways = images[picked], (down[picked], right[picked])
    for way, step in zip(ways, far, strict=True):
        change = fields[random.integers(FIELDS, size=n)]
        change *= step
        change *= way
        x += change
    thicker = THICKNESS * random.uniform(-1, 1, size=(n, 1)).astype(np.float32)
    x += thicker * np.sqrt(np.square(ways[0]) + np.square(ways[1]))
    # Three decimals, as in a text; what is hardly grey is white, as in the originals.
    x[x < LEAST] = 0
    x = np.rint(np.minimum(x, 1) * np.float32(1000)) / np.float32(1000)
    return sp.csr_matrix(x), labels[picked].astype(np.float64)


@cache
def _connection_rows(part: str) -> tuple[sp.csr_matrix, np.ndarray]:
    rows = sets.binary("kdd99")
    tests = np.random.default_rng(7).random(len(rows.labels)) < TESTS
    some = tests if part == "test" else ~tests
    return rows.matrix().astype(np.float32)[some], rows.labels[some]


def _connections(part: str, n: int, random: np.random.Generator) -> tuple[sp.csr_matrix, np.ndarray]:
    rows, labels = _connection_rows(part)
    picked = random.integers(rows.shape[0], size=n)
    X = rows[picked]
    numbers = np.flatnonzero(X.data != 1)
    noisy = X.data[numbers] * (1 + NOISE * random.standard_normal(len(numbers), np.float32))
    X.data[numbers] = np.round(np.clip(noisy, 0, 1), 6)
    X.eliminate_zeros()
    return X, labels[picked]
