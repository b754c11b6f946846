"""The sets as text files: LIBSVM's format and that of Vowpal Wabbit, with six digits as LIBSVM's own sets have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from support import sets
from support.sets import Rows

__all__ = ["Texts", "binary_texts", "class_texts"]

GIGABYTE = 10**9


@dataclass(frozen=True)
class Texts:
    """The files of one data set, by their parts and endings: `svm` and `vw`."""

    folder: Path
    name: str

    def path(self, part: str, ending: str) -> Path:
        """One of the files."""
        return self.folder / f"{self.name}-{part}.{ending}"

    @property
    def are_written(self) -> bool:
        """Whether the files are there."""
        return self.path("test", "vw").exists()

    def write(self, part: str, rows: Rows, order: np.ndarray, labels: Callable[[float], tuple[str, str]]) -> None:
        """Write a part, the rows in some order; `labels` says what a label is in each of the formats."""
        distinct, places = np.unique(rows.values, return_inverse=True)
        values = np.array([f":{value:.6g}" for value in distinct], object)[places]
        entries = [f"{j + 1}" for j in range(rows.shape[1])]
        entries = [entries[j] + value for j, value in zip(rows.indices.tolist(), values, strict=True)]
        starts, named = rows.indptr.tolist(), {label: labels(label) for label in np.unique(rows.labels).tolist()}
        y = rows.labels.tolist()
        with self.path(part, "svm").open("w") as svm, self.path(part, "vw").open("w") as vw:
            for i in order.tolist():
                (ours, theirs), line = named[y[i]], " ".join(entries[starts[i] : starts[i + 1]])
                svm.write(f"{ours} {line}\n")
                vw.write(f"{theirs} | {line}\n")

    def repeated(self) -> Path:
        """The training text over and over, 1 GB of it."""
        path = self.path("large", "svm")
        if not path.exists():
            source = self.path("train", "svm").read_bytes()
            with path.open("wb") as file:
                while file.tell() < GIGABYTE:
                    file.write(source[: source.rfind(b"\n", 0, GIGABYTE - file.tell() + 1000) + 1])
        return path


def binary_texts(name: str) -> Texts:
    """A binary set as text, one row in ten kept for the test where it has no test part; written when not there yet."""
    texts = Texts(sets.FOLDER, name)
    if texts.are_written:
        return texts
    train, test = sets.binary(name), sets.binary(name, "test")
    rng = np.random.default_rng(0)
    held_out = rng.random(len(train.labels)) < 0.1 if test is None else np.zeros(len(train.labels), bool)
    # In random order: one pass over sorted rows would be worth little.
    parts = {"train": (train, rng.permutation(np.flatnonzero(~held_out)))}
    parts["test"] = (train, np.flatnonzero(held_out)) if test is None else (test, np.arange(len(test.labels)))
    for part, (rows, order) in parts.items():
        texts.write(part, rows, order, lambda label: ("+1", "+1") if label > 0 else ("-1", "-1"))
    return texts


def class_texts(name: str, train: Rows, test: Rows) -> Texts:
    """A set of several classes as text, in the order of its rows; Vowpal Wabbit counts classes from 1."""
    texts = Texts(sets.FOLDER, f"{name}-classes")
    if not texts.are_written:
        for part, rows in (("train", train), ("test", test)):
            texts.write(part, rows, np.arange(len(rows.labels)), lambda label: (f"{label:g}", f"{label + 1:g}"))
    return texts
