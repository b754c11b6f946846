"""Rows for a model: from any source or store, by the model's recipe where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from beeline._sentences import Argument
from beeline._words import count
from beeline.data.convert import by_recipe, is_store, open_reader, open_store
from beeline.data.core.block import Block
from beeline.data.files.finding import detect_format, find_files
from beeline.data.options import ReadOptions
from beeline.data.reader import RestartReading
from beeline.data.recipe.recipe import Recipe
from beeline.exceptions import ParameterError

if TYPE_CHECKING:
    from beeline.data.reader import Progress, Reader
    from beeline.model import Model

__all__ = ["Walk"]

_TABLES = ("csv", "parquet", "arrow")


def _one_store(paths: list[str]) -> bool:
    return len(paths) == 1 and is_store(paths[0])


class Walk:
    """One walk over the rows of a source or store, as a model takes them.

    Raw files are read by the model's recipe. Features of LIBSVM text that the model has never seen are passed over
    and counted in `strange_entries`: they have no weight.

    Parameters
    ----------
    model
        Whose rows they are to be.
    paths, reading
        A store, or a source and the options to read it by.
    progress
        Is told how far the reading is.
    targets
        Whether labels, weights and query ids are wanted; if not, tables and LIBSVM text need no labels, and those that
        they have need not make sense.
    """

    def __init__(
        self,
        model: Model,
        paths: list[str],
        reading: dict[str, Any],
        progress: Progress | None = None,
        *,
        targets: bool = True,
    ) -> None:
        self.model, self.strange_entries = model, 0
        self._given = (paths, reading, progress)
        self._targets = targets
        self._store, self._reader = None, None
        options = ReadOptions(**reading)
        if _one_store(paths):
            options.refuse(reading, "a store, which is read as it is")
            self._store = open_store(paths[0])
            model.check_recipe(self._store.recipe)
        else:
            self._reader = open_reader(paths, _for_model(options, model, paths, targets), progress)

    def again(self, model: Model) -> Walk:
        """Another walk over the same rows, as another model takes them."""
        if "-" in self._given[0]:
            raise ParameterError(
                "standard input can be read only once, and not for each of two models; give a file", parameter="against"
            )
        return Walk(model, *self._given, targets=self._targets)

    @property
    def recipe(self) -> Recipe | None:
        """How the labels of the rows are to be understood."""
        return self._store.recipe if self._reader is None and self._store is not None else self._source.recipe

    @property
    def reader(self) -> Reader | None:
        """The reader of a source, None for a store."""
        return self._reader

    @property
    def query_names(self) -> list[str]:
        """The texts that query ids stand for, those of the rows read so far; empty where they are numbers."""
        return [] if self._reader is None else self._reader.query_names

    @property
    def _source(self) -> Reader:
        assert self._reader is not None
        return self._reader

    def blocks(self, memory: int) -> Iterator[Block]:
        """All rows in order, in about `memory` bytes at a time.

        A guess about a source may prove wrong after rows were given away; then `ParameterError` says what to say.
        """
        if self._store is not None:
            yield from self._store.blocks(memory)
            return
        self._source.prepare(memory)
        given_away = False
        while True:
            try:
                for block in self._source.blocks(memory):
                    given_away = True
                    yield self._known(block)
                return
            except RestartReading:
                if given_away:
                    raise ParameterError(
                        "the first rows gave a wrong idea of this file; say ",
                        Argument("zero_based"),
                        " or ",
                        Argument("multilabel"),
                        " as it is",
                    ) from None

    def passed_over(self) -> list[str]:
        """What had no effect on predictions, a sentence each."""
        told = [] if self._reader is None else self._reader.passed_over()
        if not self.strange_entries:
            return told
        entries = count(self.strange_entries, "entry", "entries")
        return [f"{entries} of features that the model has never seen: passed over", *told]

    def _known(self, block: Block) -> Block:
        """The block without features beyond the model's.

        A model without a recipe takes the columns of a table by their places, which cannot be right where their
        number is not the model's.
        """
        table = self._source.recipe is not None and self._source.recipe.columns is not None
        if self.model.recipe is None and table and block.n_features != self.model.n_features:
            raise ParameterError(
                f"the table has {count(block.n_features, 'feature')} and the model {self.model.n_features:,}, taken by "
                "their places; name a column of labels by ",
                Argument("label"),
                ", and leave out columns that are no features",
            )
        if block.indptr is None or block.indices is None or block.n_features <= self.model.n_features:
            return block
        start, stop = int(block.indptr[0]), int(block.indptr[-1])
        known = block.indices[start:stop] < self.model.n_features
        self.strange_entries += int(len(known) - np.count_nonzero(known))
        before = np.zeros(stop - start + 1, np.int64)
        np.cumsum(known, out=before[1:])
        return replace(
            block,
            n_features=self.model.n_features,
            indptr=before[block.indptr - start],
            indices=block.indices[start:stop][known],
            values=block.values[start:stop][known],
        )


def _for_model(options: ReadOptions, model: Model, paths: list[str], targets: bool) -> ReadOptions:
    """The options with the model's recipe, or with the columns of a table that its features are named after."""
    kind = options.format if options.format != "auto" else detect_format(find_files(paths)[0])
    recipe = model.table_recipe if kind in _TABLES else model.recipe
    # An npz archive has labels or has none; nothing needs to be said.
    return by_recipe(replace(options, targets=targets or kind == "npz"), recipe, kind)
