"""Rows that come in batches from a program: generators, XGBoost's data iterators, Arrow streams."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from beeline._words import count
from beeline.data.core.arrays import from_arrays, is_array
from beeline.data.core.block import Block
from beeline.data.core.dataset import Dataset
from beeline.data.files.scratch import folder_for_a_while, scratch_folder
from beeline.data.options import ReadOptions
from beeline.data.reader import Progress, Reader
from beeline.data.recipe.recipe import Recipe
from beeline.exceptions import BeelineError, DataError

__all__ = ["BatchReader", "batches_of", "gives_batches", "is_arrow_stream", "spooled"]


def gives_batches(source: object) -> bool:
    """Whether it is an iterator, and of no kind that has a name of its own, or calls back as XGBoost's `DataIter`."""
    if isinstance(source, str | bytes | os.PathLike | Dataset) or is_array(source):
        return False
    return isinstance(source, Iterator) or _calls_back(source)


def _calls_back(source: object) -> bool:
    return callable(getattr(source, "next", None)) and callable(getattr(source, "reset", None))


def is_arrow_stream(source: object) -> bool:
    """Whether it gives Arrow record batches one after the other (the PyCapsule interface), and is no whole table."""
    streams = hasattr(source, "__arrow_c_stream__")
    whole = hasattr(source, "shape") or hasattr(source, "columns")  # of tables and frames, which lie in memory
    return streams and not whole


@contextmanager
def spooled(source: Any) -> Iterator[Path]:  # noqa: ANN401
    """A file with the record batches of a stream, for as long as it is needed: columns are walked more than once."""
    import pyarrow as pa

    folder = scratch_folder() / f"beeline-stream-{os.getpid()}-{secrets.token_hex(4)}"
    with folder_for_a_while(folder):
        folder.mkdir()
        reader = pa.RecordBatchReader.from_stream(source)
        with pa.ipc.new_file(folder / "rows.arrow", reader.schema) as file:
            for batch in reader:
                file.write_batch(batch)
        yield folder / "rows.arrow"


class BatchReader(Reader):
    """Walks batches once: X, (X, y), (X, y, weights), or data sets; X is an array or a matrix of SciPy's.

    Each batch is one that `from_arrays` takes, and all have the same number of features. An object with `next` and
    `reset`, as XGBoost has them, is asked to call back with `data`, `label` and `weight`.
    """

    def __init__(self, source: Any, options: ReadOptions, progress: Progress | None = None) -> None:  # noqa: ANN401
        super().__init__(progress)
        refused = (f.name for f in fields(options) if f.name not in ("allow_nonfinite", "scale"))
        options.refuse(refused, "batches of arrays")
        options.refuse(["scale"], "batches that are walked once; convert the store anew with it")
        self._source, self._lenient = source, options.allow_nonfinite
        self._n_features: int | None = None

    def prepare(self, memory: int) -> None:
        """There is nothing to learn."""

    def blocks(self, memory: int) -> Iterator[Block]:
        """All rows of each batch in turn."""
        self.progress.start("reading", None)
        for number, batch in enumerate(batches_of(self._source)):
            try:
                data = self._as_data(batch)
            except BeelineError as error:
                raise DataError(f"batch {number}: {error}") from error
            for block in data.blocks(memory):
                yield block
                self.progress.advance(block.nbytes, block.n_rows)

    def _as_data(self, batch: Any) -> Dataset:  # noqa: ANN401
        parts = batch if isinstance(batch, tuple | list) else (batch,)
        if not 1 <= len(parts) <= 3:
            raise DataError(f"a batch is X, (X, y) or (X, y, weights), not {len(parts)} things")
        X, y, weights = (*parts, None, None)[:3]
        if isinstance(X, Dataset) and not (y is None and weights is None):
            raise DataError("a data set has its own labels and weights; give it alone, or its rows as an array")
        data = X if isinstance(X, Dataset) else from_arrays(X, y, weights=weights, allow_nonfinite=self._lenient)
        if self._n_features not in (None, data.n_features):
            raise DataError(f"it has {count(data.n_features, 'feature')}, and those before have {self._n_features:,}")
        self._n_features = data.n_features
        return data

    @property
    def recipe(self) -> Recipe:
        """Plain features."""
        return Recipe(n_features=self._n_features or 0)


def batches_of(source: Any) -> Iterator[Any]:  # noqa: ANN401
    """The batches of an iterator, or of an object that calls back."""
    return _called_back(source) if _calls_back(source) else source


def _called_back(source: Any) -> Iterator[tuple[Any, Any, Any]]:  # noqa: ANN401
    """The batches of an object that hands each of them to a function, until it says that there are no more."""
    source.reset()
    while True:
        found: list[tuple[Any, Any, Any]] = []
        more = source.next(_taking(found))
        if len(found) != bool(more):
            raise DataError(
                f"next must hand over one batch and return 1, or none and return 0; it handed over {len(found)} and "
                f"returned {more!r}"
            )
        if not more:
            return
        yield found[0]


def _taking(found: list[tuple[Any, Any, Any]]) -> Callable[..., None]:
    def take(data: Any, label: Any = None, weight: Any = None, **others: Any) -> None:  # noqa: ANN401
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise DataError(f"{given[0]!r} cannot be kept; give data, label and weight")
        found.append((data, label, weight))

    return take
