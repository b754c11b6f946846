"""Leaves with some of their rows in memory, by which they are ranked for any weights and any labels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block
from beeline.data.store.form import Form
from beeline.index.arrays import ArrayWriter
from beeline.index.guides import Flats, Guide, GuideWriter, Question, Readings
from beeline.index.settings import IndexSettings
from beeline.kernels import order_rows

__all__ = ["RowsWriter", "SampleWriter", "Samples", "load_rows"]

_PRIOR = 0.1  # rows that matter, in a leaf of whose samples none does


class Samples(Guide):
    """The first rows of each leaf, which are a fair sample of it.

    Parameters
    ----------
    block
        The sampled rows, leaf by leaf.
    ends
        Where the samples of each leaf end.
    flats
        Of the sampled rows, where there are labels; None: nothing can be asked yet.
    """

    kind = "chunks"

    def __init__(self, block: Block, ends: Ints, flats: Flats | None = None) -> None:
        self.block, self.ends, self.flats = block, ends, flats
        self.counts = np.diff(np.concatenate([[0], ends]))
        self.known = np.zeros(block.n_rows, np.bool_)

    def with_flats(self, flats: Flats) -> Samples:
        """The same samples for rows with these labels."""
        return Samples(self.block, self.ends, flats)

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return self.block.nbytes + self.ends.nbytes

    def positions(self, leaf_starts: Ints) -> Ints:
        """Where the sampled rows lie among all rows."""
        return np.repeat(leaf_starts - (self.ends - self.counts), self.counts) + np.arange(self.block.n_rows)

    def matter(self, question: Question) -> AnyArray:
        """Which of the sampled rows matter."""
        assert self.flats is not None
        z = self.block.scores(question.w) + question.b
        matters: AnyArray = (z < self.flats.low) | (z > self.flats.high)
        if question.outer is not None:
            w, b = question.outer
            there = self.block.scores(w) + b
            matters &= (there >= self.flats.inside_low) & (there <= self.flats.inside_high)
        return matters

    def weights(self, question: Question) -> Floats:
        """By which share of the samples matters; a leaf of whose samples none does has a chance too."""
        return (self._counts(self.matter(question)) + _PRIOR) / (self.counts + 1.0)

    def left(self, question: Question, readings: Readings) -> Floats:
        """Of leaves that were read: by samples that are not known."""
        left, read = self.weights(question), readings.when >= 0
        left[read] = self.share_unknown(question)[read]
        return left

    def share_unknown(self, question: Question) -> Floats:
        """Which share of the samples of each leaf matters and is not known."""
        return self._counts(self.matter(question) & ~self.known) / self.counts

    def _counts(self, rows: AnyArray) -> Floats:
        counts: Floats = np.add.reduceat(rows.astype(np.float64), self.ends - self.counts)
        return counts


class SampleWriter(GuideWriter):
    """Keeps the first rows of each leaf."""

    def __init__(self, folder: Path, form: Form, n_features: int, settings: IndexSettings) -> None:
        self._settings = settings
        self._rows, self._most = RowsWriter(folder, "sample", form, n_features), settings.samples
        self._counts = ArrayWriter(folder / "sample_counts.npy", np.int32)
        self.arrays = {"sample_counts": self._counts, **self._rows.arrays}

    def arrange(self, block: Block, numbers: Ints, labels: Floats | None) -> tuple[Ints, Ints]:
        """Near rows together, whatever their labels."""
        order, how = np.arange(block.n_rows), self._settings
        assert how.leaf_rows is not None
        ends = order_rows(block.arrays, order, [block.n_rows], how.leaf_rows, how.seed)
        return order, np.asarray(ends, np.int64)

    def write(self, block: Block, ends: Ints) -> None:
        """Take leaves that end at these rows of a block."""
        starts = np.concatenate([[0], ends[:-1]])
        counts = np.minimum(ends - starts, self._most)
        before = np.cumsum(counts) - counts
        self._rows.write(block.gather(np.repeat(starts - before, counts) + np.arange(counts.sum())))
        self._counts.write(counts)


class RowsWriter:
    """Writes some rows as arrays."""

    def __init__(self, folder: Path, name: str, form: Form, n_features: int) -> None:
        self._name = name
        kinds: dict[str, Any] = {"lengths": np.int32, "values": form.value_type}
        if form.index_type is not None:
            kinds["indices"] = np.uint16 if n_features <= 2**16 else form.index_type
        names = {f"{name}_{what}": dtype for what, dtype in kinds.items()}
        self.arrays = {what: ArrayWriter(folder / f"{what}.npy", dtype) for what, dtype in names.items()}

    def write(self, block: Block) -> None:
        """Add rows, whose entries begin at the first place."""
        lengths = np.full(block.n_rows, block.n_features) if block.indptr is None else np.diff(block.indptr)
        self.arrays[f"{self._name}_lengths"].write(lengths)
        self.arrays[f"{self._name}_values"].write(block.values.ravel())
        if block.indices is not None:
            self.arrays[f"{self._name}_indices"].write(block.indices)


def load_rows(read: Callable[[str], AnyArray], name: str, n_features: int, *, sparse: bool) -> Block:
    """The rows that a `RowsWriter` wrote."""
    values, lengths = read(f"{name}_values"), read(f"{name}_lengths")
    if not sparse:
        return Block(values.reshape(len(lengths), n_features), n_features)
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return Block(values, n_features, indptr, read(f"{name}_indices"))
