"""Ways to read LIBSVM text in tests."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from libsvm_reference import Rules

from beeline.data.core.block import concatenate
from beeline.data.core.dataset import ArrayDataset
from beeline.data.files.finding import find_files
from beeline.data.options import ReadOptions
from beeline.data.reader import RestartReading
from beeline.data.text.libsvm import LibsvmReader
from beeline.kernels import _kernels, num_threads, set_num_threads

# What each kind of bad line must be told as.
SENTENCES = {
    "bad label": r"the label .* is not a number",
    "missing label": r"has no label; pass multilabel=True",
    "several labels": r"several labels.*pass multilabel=True",
    "nonfinite label": r"the label .* is not finite.*allow_nonfinite=True",
    "bad query": r"is not a query id",
    "missing query": r"has no query id although",
    "unexpected query": r"has the query id .* although",
    "no colon": r"is not of the form index:value",
    "bad index": r"the feature index .* is not a whole number",
    "zero index": r"a feature index 0 .*pass zero_based=True",
    "repeated index": r"the feature index .* is repeated",
    "unsorted index": r"is smaller than the one before it",
    "index beyond": r"lies beyond the \d+ features",
    "huge index": r"is larger than 999999999999999999",
    "bad value": r"the value .* is not a number",
    "nonfinite value": r"the value .* is not finite.*allow_nonfinite=True",
}


def reader(paths, chunk_bytes: int = 1 << 18, **options) -> LibsvmReader:
    return LibsvmReader(find_files(paths), ReadOptions(**options), chunk_bytes=chunk_bytes)


def read(paths, chunk_bytes: int = 1 << 18, **options) -> ArrayDataset:
    return reader(paths, chunk_bytes, **options).read()


def read_streamed(paths, memory: int, chunk_bytes: int = 1 << 18, **options) -> ArrayDataset:
    source = reader(paths, chunk_bytes, **options)
    source.prepare(memory)
    while True:
        try:
            blocks = list(source.blocks(memory))
        except RestartReading:
            continue
        return ArrayDataset(concatenate(blocks), source.recipe)


def save(folder: Path, text: bytes, name: str = "a.svm") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)
    return path


def options_of(rules: Rules) -> dict[str, object]:
    """Return the reader's options for what the rules say."""
    return {
        "zero_based": None if rules.base_guessed else rules.base == 0,
        "multilabel": None if rules.sets_guessed else rules.sets,
        "n_features": rules.n_features,
        "dtype": "float32" if rules.float32 else "float64",
        "allow_nonfinite": rules.allow_nonfinite,
        "skip_bad_lines": rules.skip,
        "targets": rules.targets,
    }


@contextmanager
def threads(n: int) -> Iterator[None]:
    before = num_threads()
    set_num_threads(n)
    try:
        yield
    finally:
        set_num_threads(before)


@contextmanager
def instructions(most: int) -> Iterator[None]:
    """Let the kernel use fewer instruction sets: 0 those of any processor, 1 AVX2, 2 AVX-512."""
    _kernels.limit_libsvm_instructions(most)
    try:
        yield
    finally:
        _kernels.limit_libsvm_instructions(2)
