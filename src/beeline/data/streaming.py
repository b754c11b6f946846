"""Sources whose rows are walked once, as they come: standard input, batches of a program, Arrow streams, files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray
from beeline._words import count
from beeline.data.batches import batches_of, gives_batches, is_arrow_stream
from beeline.data.convert import by_recipe, is_store, open_files, open_reader
from beeline.data.core.arrays import from_arrays, is_array
from beeline.data.core.block import Block, concatenate
from beeline.data.core.dataset import Dataset
from beeline.data.core.labels import LabelSets
from beeline.data.files.finding import SourceFile, common_format, find_files, standard_input
from beeline.data.options import ReadOptions
from beeline.data.reader import Progress, Reader, RestartReading
from beeline.data.recipe.recipe import Recipe
from beeline.data.recipe.scaling import ScalingLearner
from beeline.exceptions import BeelineError, DataError, LabelError, ParameterError

__all__ = ["LabelledRows", "RowStream", "open_row_stream"]

STANDARD_INPUT = "-"


class LabelledRows(NamedTuple):
    """Some rows of a stream.

    Attributes
    ----------
    block
        The rows, with their weights if they have any.
    labels
        A label a row, of any type.
    texts
        Where labels are numbers of texts, those texts; None: they are what they are.
    """

    block: Block
    labels: AnyArray
    texts: tuple[str, ...] | None = None


class RowStream:
    """Rows that are walked once.

    Attributes
    ----------
    reader
        Who reads them, and counts what it passes over; None where they are batches of a program.
    known_recipe
        How raw rows become these rows, as far as it is known after the rows so far; None of batches.
    """

    def __init__(
        self, reader: Reader | None, batches: Iterator[Any] | None = None, file: SourceFile | None = None
    ) -> None:
        self.reader, self._batches, self._file = reader, batches, file
        self._width: int | None = None

    known_recipe: Recipe | None = None

    @property
    def from_program(self) -> bool:
        """Whether they are batches that a program gives."""
        return self.reader is None

    def rows(self, memory: int) -> Iterator[LabelledRows]:
        """All rows in order; everything held at one time takes about `memory` bytes, or as much as a batch."""
        if self.reader is None:
            yield from self._of_program()
            return
        given_away = False
        try:
            for block in self.reader.blocks_once(memory):
                if not given_away and self._file is not None and self._file.pipe is not None:
                    self._file.pipe.release()
                given_away = True
                self.known_recipe = self.reader.recipe
                yield LabelledRows(block, _single(block.labels), self.known_recipe.label_categories)
            self.known_recipe = self.reader.recipe
        except RestartReading:
            raise ParameterError(
                "the first rows gave a wrong idea of this source; say ",
                Argument("zero_based"),
                " or ",
                Argument("multilabel"),
                " as it is",
            ) from None

    def _of_program(self) -> Iterator[LabelledRows]:
        assert self._batches is not None
        for number, batch in enumerate(self._batches):
            try:
                found = self._batch(batch)
            except BeelineError as error:
                raise DataError(f"batch {number}: {error}") from error
            yield found

    def _batch(self, batch: Any) -> LabelledRows:  # noqa: ANN401
        parts = batch if isinstance(batch, tuple | list) else (batch,)
        if not 1 <= len(parts) <= 3:
            raise DataError(f"a batch is (X, y) or (X, y, weights), not {len(parts)} things")
        X, y, weights = (*parts, None, None)[:3]
        if isinstance(X, Dataset):
            if weights is not None:
                raise DataError("a data set has its own weights; leave them out, or give its rows as an array")
            block = concatenate(list(X.blocks()))
            return LabelledRows(block, _single(block.labels if y is None else y))
        block = replace(X, weights=weights) if isinstance(X, Block) else from_arrays(_rows(X), weights=weights).block
        if y is None or len(np.asarray(y)) != block.n_rows:
            raise LabelError("there must be a label for each row; give (X, y)")
        if not block.is_sparse and self._width not in (None, block.n_features):
            raise DataError(f"it has {count(block.n_features, 'feature')}, and those before have {self._width:,}")
        self._width = block.n_features
        return LabelledRows(block, np.asarray(y))


def open_row_stream(
    source: Any,  # noqa: ANN401
    options: ReadOptions,
    progress: Progress | None = None,
    recipe: Recipe | None = None,
) -> RowStream:
    """The rows of a source, to be walked once.

    Parameters
    ----------
    source
        `-`, which is standard input; a path, URI, folder or store; an iterator of batches, each (X, y) or
        (X, y, weights); an object with XGBoost's `next` and `reset`; a stream of Arrow record batches.
    options
        How it is read. A scaling that is learned is refused.
    recipe
        That of the rows before these, whose features they share.
    """
    if ScalingLearner(options.scale).learns:
        raise ParameterError(
            Argument("scale", options.scale),
            " has to see all rows before the first is learned from, and these are walked once; leave it out",
        )
    if is_arrow_stream(source):
        return RowStream(_arrow_reader(source, by_recipe(options, recipe, "arrow"), progress))
    if gives_batches(source):
        options.refuse((f.name for f in fields(options)), "batches of arrays")
        return RowStream(None, batches_of(source))
    if not isinstance(source, str | os.PathLike):
        raise ParameterError(
            f"a stream is a path, '-', an iterator of batches or an Arrow stream, not {type(source).__name__}",
            parameter="source",
        )
    if is_store(source):
        options.refuse((f.name for f in fields(options)), "a store, which is read as it is")
        return RowStream(open_reader(source, options, progress))
    files = [standard_input()] if source == STANDARD_INPUT else find_files(source)
    kind = options.format if options.format != "auto" else common_format(files)
    options = by_recipe(options, recipe, kind)
    if kind == "libsvm" and options.layout == "dense" and options.n_features is None and options.recipe is None:
        raise ParameterError(
            Argument("layout", "dense"), " has to know how many features there are; say ", Argument("n_features")
        )
    return RowStream(open_files(files, options, progress), file=files[0])


def _rows(X: Any) -> Any:  # noqa: ANN401
    return X if is_array(X) else np.asarray(X)


def _arrow_reader(source: Any, options: ReadOptions, progress: Progress | None) -> Reader:  # noqa: ANN401
    import pyarrow as pa

    from beeline.data.tables.columnar import MemorySource
    from beeline.data.tables.reader import TableReader

    options.refuse(("format", "delimiter", "header", "skip_bad_lines"), "Arrow record batches")
    stream = pa.RecordBatchReader.from_stream(source)
    return TableReader(MemorySource(stream.schema, stream, "the stream"), options, progress)


def _single(labels: AnyArray | LabelSets | None) -> AnyArray:
    if labels is None:
        raise LabelError(
            Sentence("the rows have no labels; name the column that holds them by ", Argument("label", "NAME"))
        )
    if isinstance(labels, LabelSets):
        raise LabelError("the rows have sets of labels; a stream trains a model of one label a row")
    return labels
