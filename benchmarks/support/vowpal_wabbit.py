"""Vowpal Wabbit on the rows of a store: its cache, which is made once and not counted, and trainings from it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import beeline
from beeline._thread_pool import prefetched
from support.indexed_runs import FOLDER, Large, forget

__all__ = ["Setting", "best_setting", "train"]

CODE = (
    "import sys; from vowpalwabbit import Workspace; w = Workspace(arg_list=sys.argv[1:]); w.run_parser(); w.finish()"
)


@dataclass(frozen=True)
class Setting:
    """How it learns."""

    loss: str
    rate: float
    passes: int

    @property
    def arguments(self) -> list[str]:
        """As they are written on its command line."""
        return ["--loss_function", self.loss, "-l", str(self.rate), "--passes", str(self.passes)]


# Rates around the one that it has by itself, for both losses of two classes.
_LOSSES, _RATES = ("hinge", "logistic"), (0.1, 0.5, 2.0)
SETTINGS = [Setting(loss, rate, passes) for passes in (1, 2, 4) for loss in _LOSSES for rate in _RATES]


def _call(*arguments: object) -> None:
    subprocess.run([sys.executable, "-c", CODE, "--quiet", *map(str, arguments)], check=True)


def train(large: Large, setting: Setting) -> tuple[float, float]:
    """(seconds, test error in percent) of a training from the cache, which is not in the page cache to begin with."""
    cache, model, answers = cached(large.store), FOLDER / "vw.model", FOLDER / "vw.answers"
    forget(cache)
    start = time.perf_counter()
    _call("--cache_file", cache, "-b", 18, "-f", model, *setting.arguments)
    seconds = time.perf_counter() - start
    _call("-t", "-i", model, "-d", text_of(large.tests), "-p", answers)
    _, labels = large.test_rows()
    return seconds, 100 * float(np.mean((np.loadtxt(answers) > 0) != (labels > 0)))


def best_setting(large: Large, error: float, most: float) -> tuple[float, float, Setting]:
    """(seconds, test error, setting) of the fastest training that reaches a test error; if none does, of the best.

    Once some setting reaches it, none is tried with more passes: these take longer. Nor are they where all with fewer
    take more than `most` seconds.
    """
    found: list[tuple[float, float, Setting]] = []
    for _, settings in groupby(SETTINGS, lambda setting: setting.passes):
        found += [(*train(large, setting), setting) for setting in settings]
        if reached := [one for one in found if one[1] <= error]:
            return min(reached, key=lambda one: one[0])
        if min(one[0] for one in found[-len(_LOSSES) * len(_RATES) :]) > most:
            break
    return min(found, key=lambda one: one[1])


def cached(store: Path) -> Path:
    """The rows as it keeps them itself; the text that it makes them of goes through a pipe."""
    cache, pipe = store.with_suffix(".vwcache"), store.with_suffix(".pipe")
    if not cache.exists():
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        with ThreadPoolExecutor(1) as writer:
            written = writer.submit(_write, store, pipe)
            _call("-d", pipe, "--cache_file", cache.with_suffix(".unfinished"), "-b", 18)
            written.result()
        pipe.unlink()
        cache.with_suffix(".unfinished").rename(cache)
    return cache


def text_of(store: Path) -> Path:
    """The rows as text."""
    path = store.with_suffix(".vw")
    if not path.exists():
        _write(store, path.with_suffix(".unfinished"))
        path.with_suffix(".unfinished").rename(path)
    return path


def _write(store: Path, path: Path) -> None:
    with path.open("wb") as file:
        for lines in prefetched(_lines(block) for block in beeline.open_store(store).blocks(16 << 20)):
            file.write(lines)


def _lines(block) -> bytes:
    first, last = block.indptr[0], block.indptr[-1]
    features = pc.cast(pa.array(block.indices[first:last] + 1), pa.string())
    words = pc.binary_join_element_wise(features, pc.cast(pa.array(block.values[first:last]), pa.string()), ":")
    lists = pa.ListArray.from_arrays(pa.array((block.indptr - first).astype(np.int32)), words)
    signs = pa.array(np.where(np.asarray(block.labels) > 0, "1 | ", "-1 | "))
    lines = pc.binary_join_element_wise(signs, pc.binary_join(lists, " "), "\n", "")
    return "".join(lines.to_pylist()).encode()
