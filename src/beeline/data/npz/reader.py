"""NumPy `.npz` archives: a SciPy CSR matrix, or arrays `X` and `y`, read member by member in step.

The members of an archive, all read without unpickling anything:

- rows: `X` (dense, from `numpy.savez`), or `data`, `indices`, `indptr`, `shape` and `format` (CSR, from
  `scipy.sparse.save_npz`);
- beside them, where there are any: labels as `y` or `labels`, weights as `weights`, query ids as `queries`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from beeline._words import count
from beeline.data.core.block import Block
from beeline.data.files.finding import SourceFile, open_random, reading, total_size
from beeline.data.npz.archive import Archive
from beeline.data.options import ReadOptions
from beeline.data.reader import Progress, Reader
from beeline.data.recipe.recipe import Recipe
from beeline.data.recipe.scaling import Scaling, ScalingLearner
from beeline.exceptions import DataError

__all__ = ["NpzReader"]


class NpzReader(Reader):
    """Reads `.npz` archives as blocks of rows."""

    def __init__(self, files: list[SourceFile], options: ReadOptions, progress: Progress | None = None) -> None:
        super().__init__(progress)
        columns = ("label", "weight", "query", "ignore", "text", "delimiter", "header", "missing", "max_categories")
        options.refuse((*columns, "extra", "targets"), ".npz files")
        options.refuse(("zero_based", "n_features", "hash", "multilabel", "skip_bad_lines"), ".npz files")
        self._files, self._options = files, options
        widths = []
        for file in files:
            with _opened(file) as archive:
                widths.append(archive.n_features)
        self._n_features = widths[0]
        for file, width in zip(files, widths, strict=True):
            if width != self._n_features:
                raise DataError(
                    f"{file.name}: {count(width, 'feature')} do not match the {self._n_features} of {files[0].name}"
                )
        self._recipe = self._given_recipe()

    @property
    def recipe(self) -> Recipe:
        """The scaling; features have only numbers."""
        if self._recipe is None:
            raise DataError("the recipe is not known before `prepare`")
        return self._recipe

    def prepare(self, memory: int) -> None:
        """Learn the scaling, in one walk where there is anything to learn."""
        if self._recipe is None:
            learner = ScalingLearner(self._options.scale, keep_sparse=self._options.layout == "sparse")
            if learner.learns:
                for block in self._raw_blocks("learning", memory):
                    learner.add(block)
            scaling = learner.finish(self._n_features)
            self._recipe = Recipe(self._n_features, index_base=0, scaling=scaling)

    def blocks(self, memory: int) -> Iterator[Block]:
        """All rows in order."""
        scaling: Scaling = self.recipe.scaling
        for block in self._raw_blocks("reading", memory):
            for piece in scaling.pieces(block, max(1, memory // 2)):
                self.progress.advance(0, piece.n_rows)
                yield piece

    def _given_recipe(self) -> Recipe | None:
        recipe = self._options.recipe
        if recipe is None:
            return None
        self._options.refuse(("scale",), "an archive read by a recipe learned before")
        if recipe.columns is not None:
            raise DataError("the recipe is for a table with named columns, not for numbered features")
        if recipe.n_features != self._n_features:
            raise DataError(
                f"{self._files[0].name}: {count(self._n_features, 'feature')} do not match the {recipe.n_features} of "
                "the recipe"
            )
        return recipe

    def _raw_blocks(self, stage: str, memory: int) -> Iterator[Block]:
        self.progress.start(stage, total_size(self._files))
        allow = self._options.allow_nonfinite
        for file in self._files:
            with _opened(file) as archive:
                reported, row = 0, 0
                for block in archive.blocks(max(1, memory // 4), self._options.value_type, allow_nonfinite=allow):
                    row += block.n_rows
                    stop = (file.size or 0) * row // archive.n_rows
                    self.progress.advance(stop - reported)
                    reported = stop
                    yield self._laid_out(block)

    def _laid_out(self, block: Block) -> Block:
        if self._options.layout == "dense" and block.is_sparse:
            return Block(block.to_dense(), block.n_features, None, None, block.labels, block.weights, block.queries)
        if self._options.layout == "sparse" and not block.is_sparse:
            csr = block.to_scipy()
            sides = (block.labels, block.weights, block.queries)
            return Block(csr.data, block.n_features, csr.indptr, csr.indices, *sides)
        return block


@contextmanager
def _opened(file: SourceFile) -> Iterator[Archive]:
    with reading(file.name), closing(open_random(file)) as handle, closing(Archive(file.name, handle)) as archive:
        yield archive
