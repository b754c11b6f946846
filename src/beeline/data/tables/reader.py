"""Tables as data sets: CSV, Parquet, Arrow, and frames in memory.

What becomes of a table
-----------------------
- Numbers stay numbers; booleans are 0 and 1; a list of fixed length is that many features.
- Text becomes indicator features, one a category, sorted by name within the column.
- A missing value (empty, null or NaN) raises, or is filled by zero or by the mean of its column; a missing text sets
  no indicator. Or rows with missing values are left out, and counted in `left_out`.
- By a recipe learned before, columns are matched by name; a category that the recipe does not know sets no indicator
  and is counted in `unknown_categories`.
- Rows are dense when that takes no more memory than CSR would, judged by the first rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray
from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset
from beeline.data.files.finding import SourceFile, common_format
from beeline.data.options import ReadOptions
from beeline.data.reader import Progress, Reader
from beeline.data.recipe.recipe import Recipe
from beeline.data.recipe.scaling import dense_fits
from beeline.data.tables.assembly import RowAssembler, RowsBuilder
from beeline.data.tables.batches import Kind, Piece, TableSource, has_decimals, kind_of, sliced
from beeline.data.tables.columnar import ArrowSource, ParquetSource, values_in
from beeline.data.tables.csv_text import CsvSource
from beeline.data.tables.learner import TableLearner
from beeline.data.tables.missing import LeftOut, complete_pieces, labelled_pieces
from beeline.data.tables.roles import assign_roles
from beeline.data.tables.targets import TargetColumns
from beeline.exceptions import DataError, ParameterError

__all__ = ["TableReader"]

# So many first rows tell whether dense or sparse rows are smaller.
_SAMPLE_ROWS = 4096
_AT_ONCE = 384 << 20
# More categories than the first, and than the second times the rows, are names of rows.
_FEW_CATEGORIES, _MOST_OF_ROWS = 50, 0.9


class TableReader(Reader):
    """Reads a table as blocks of rows.

    Attributes
    ----------
    unknown_categories
        For each column, how many values of the last walk were none of the recipe's categories.
    left_out
        The rows of the last walk that were left out because a value is missing.
    doubts
        A sentence for each column that tells rows apart and not kinds of them, of those that were learned from.

    Parameters
    ----------
    source
        CSV, Parquet or Arrow files of the same columns, or a table in memory.
    """

    def __init__(
        self, source: list[SourceFile] | TableSource, options: ReadOptions, progress: Progress | None = None
    ) -> None:
        super().__init__(progress)
        if not isinstance(source, TableSource):
            source = _open(source, options)
        options.refuse(("zero_based", "n_features", "hash", "multilabel"), "tables")
        self.unknown_categories: dict[str, int] = {}
        self.left_out = LeftOut()
        self._source, self._options = source, options
        self._roles = assign_roles(list(source.types), options, f"{source.name}: ", source.index)
        self._kinds = self._find_kinds()
        # Told now: a walk may turn whole numbers of CSV into others because of another column.
        self._label_decimals = self._has_decimals(self._roles.label)
        self._recipe = options.recipe
        self._targets: TargetColumns | None = None
        self._n_learned: int | None = None
        self._is_sparse: bool | None = None
        self.doubts: list[str] = []

    @property
    def recipe(self) -> Recipe:
        """How raw rows become these rows."""
        if self._recipe is None:
            raise DataError("the recipe is not known before `prepare`")
        return self._recipe

    def prepare(self, memory: int) -> None:
        """Learn categories, fill values and scaling, in one walk where there is anything to learn."""
        if self._recipe is None:
            learner = self._learner()
            if learner.needed:
                for piece in self._walk("learning", memory):
                    learner.add(piece)
            self._learned(learner)

    def blocks(self, memory: int) -> Iterator[Block]:
        """All rows in order."""
        yield from self._blocks_of(self._walk("reading", memory), memory)

    def blocks_once(self, memory: int) -> Iterator[Block]:
        """All rows in order, in one walk.

        Categories, fill values and scaling are those of the first rows, up to a quarter of the memory; a category that
        comes later sets no indicator and is counted in `unknown_categories`. Text labels that come later are added to
        the recipe's.
        """
        pieces = self._walk("reading", memory, once=True)
        if self._recipe is None:
            learner = self._learner()
            if learner.needed:
                first = list(_first_bytes(pieces, memory // 4))
                for piece in first:
                    learner.add(piece)
                pieces = chain(_used_up(first), pieces)
            self._learned(learner)
        yield from self._blocks_of(pieces, memory, grows=True)

    def _blocks_of(self, pieces: Iterator[Piece], memory: int, *, grows: bool = False) -> Iterator[Block]:
        assembler = self._assembler()
        targets = self._targets = TargetColumns(self._roles, self.recipe.label_categories, grows=grows)
        for piece in self._decided(pieces):
            for part in _parts(piece, max(1, memory // 4 // self._row_bytes())):
                builder = RowsBuilder(assembler, is_sparse=bool(self._is_sparse))
                builder.add(part)
                sides = targets.read([part])
                if grows:
                    self._recipe = replace(self.recipe, label_categories=targets.label_categories)
                    self._report(assembler)
                self.progress.advance(0, part.n_rows)
                yield self._finished(builder, sides)
        self._report(assembler)

    def read(self, *, narrow: bool = False) -> ArrayDataset:
        """All rows in memory, with the types that were asked for; the source is read once.

        When something has to be learned first, the columns are held until it is, and given back as rows are made.
        """
        pieces: Iterator[Piece] = self._walk("reading", _AT_ONCE)
        if self._recipe is None:
            learner = self._learner()
            if learner.needed:
                pieces = self._learn_and_keep(learner, pieces)
            self._learned(learner)
        assembler, targets = self._tools()
        builder, sides = None, []
        for piece in self._decided(pieces):
            builder = builder or RowsBuilder(assembler, is_sparse=bool(self._is_sparse))
            builder.add(piece, piece.share)
            sides.append(targets.read([piece]))
            self.progress.advance(0, piece.n_rows)
        if builder is None:
            raise DataError("; ".join([f"{self._source.name}: there are no rows", *self.left_out.sentences()]))
        self._report(assembler)
        joined = {name: _joined([side[name] for side in sides]) for name in sides[0]}
        return ArrayDataset(self._finished(builder, joined), self.recipe)

    @property
    def query_names(self) -> list[str]:
        """The texts that query ids stand for, those of the rows read so far; empty where the source has numbers."""
        return [] if self._targets is None else self._targets.query_names

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that become features."""
        return self._roles.features

    def read_over(self, rows: AnyArray) -> ArrayDataset:
        """A data set over dense rows that are in memory already, with labels, weights and query ids from the source."""
        self._learned(self._learner())
        _, targets = self._tools()
        pieces = list(self._walk("reading", _AT_ONCE))
        sides = targets.read(pieces) if pieces else {}
        block = replace(Block(rows, self.recipe.n_features), **sides)
        return ArrayDataset(block.checked(finite=not self._options.allow_nonfinite), self.recipe)

    def _learn_and_keep(self, learner: TableLearner, pieces: Iterator[Piece]) -> Iterator[Piece]:
        kept: deque[Piece] = deque()
        for piece in pieces:
            learner.add(piece)
            kept.append(piece)
        n, done = max(1, learner.n_rows), 0

        def used_up() -> Iterator[Piece]:
            nonlocal done
            while kept:
                piece = kept.popleft()
                done += piece.n_rows
                yield replace(piece, share=done / n)

        return used_up()

    def _learned(self, learner: TableLearner) -> None:
        self._recipe = replace(learner.finish(), label_decimals=self._label_decimals)
        self._n_learned = learner.n_rows or None
        self.doubts = [
            Sentence(
                f"text column {column.name!r} has {len(column.categories):,} different values in {learner.n_rows:,} "
                "rows, and each became a feature, which says nothing of new rows; leave the column out with ",
                Argument("ignore", [column.name]),
            )
            for column in self._recipe.columns or ()
            if _names_rows(len(column.categories), learner.n_rows)
        ]

    def _find_kinds(self) -> dict[str, Kind]:
        source, recipe = self._source, self._options.recipe
        source.settle(self._roles.wanted)
        texts = set(self._options.text)
        numbers: set[str] = set()
        if recipe is not None:
            texts |= {column.name for column in recipe.columns or () if column.kind == "categories"}
            numbers |= {column.name for column in recipe.columns or () if column.kind == "numeric"}
            if self._roles.label is not None and recipe.label_categories is not None:
                texts.add(self._roles.label)
        kinds: dict[str, Kind] = {}
        for name in self._roles.wanted:
            if name in texts or name in numbers:
                kinds[name] = "text" if name in texts else "numeric"
            else:
                kinds[name] = kind_of(name, source.types[name], f"{source.name}: ")
        return kinds

    def _has_decimals(self, name: str | None) -> bool:
        """Whether a column, if there is one, has numbers that are written with decimals."""
        return name is not None and self._kinds[name] == "numeric" and has_decimals(self._source.types[name])

    def _learner(self) -> TableLearner:
        widths = {name: values_in(kind) for name, kind in self._source.types.items()}
        return TableLearner(self._roles, self._kinds, widths, self._options)

    def _walk(self, stage: str, memory: int, *, once: bool = False) -> Iterator[Piece]:
        """The pieces of the source; `once`: rows are used as they come, so that none may be looked at ahead."""
        self.progress.start(stage, self._source.total_bytes)
        self.bad_lines.count = 0
        self.bad_lines.examples.clear()
        self.left_out = LeftOut(self._roles.targets_in_words)
        pieces = self._source.walk(self._kinds, memory, self.progress, self.bad_lines)
        if self._options.missing == "drop":
            return complete_pieces(pieces, self._roles, self.left_out)
        return pieces if once or self._roles.label is None else labelled_pieces(pieces, self._roles.label)

    def _tools(self) -> tuple[RowAssembler, TargetColumns]:
        recipe = self.recipe
        return self._assembler(), TargetColumns(self._roles, recipe.label_categories)

    def _assembler(self) -> RowAssembler:
        columns = self.recipe.columns or ()
        finite, learned = not self._options.allow_nonfinite, self._options.recipe is not None
        return RowAssembler(columns, self._options.value_type, finite=finite, learned=learned)

    def _finished(self, builder: RowsBuilder, sides: dict[str, Any]) -> Block:
        return self.recipe.scaling.apply(replace(builder.finish(), **sides), in_place=True)

    def passed_over(self) -> list[str]:
        """What the last walk passed over: bad lines, rows with missing values, unknown categories; and the doubts."""
        unknown = [
            f"column {name!r} has {n:,} value{'s' * (n != 1)} that the recipe does not know"
            for name, n in self.unknown_categories.items()
        ]
        return [*super().passed_over(), *self.left_out.sentences(), *unknown, *self.doubts]

    def _report(self, assembler: RowAssembler) -> None:
        self.unknown_categories = {name: n for name, n in assembler.unknown.items() if n}

    def _decided(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """The same pieces, after the first rows have told whether rows are sparse."""
        first, n = [], 0
        if self._is_sparse is None:
            for piece in pieces:
                first.append(piece)
                n += piece.n_rows
                if n >= _SAMPLE_ROWS:
                    break
            if first:
                self._is_sparse = self._decide(first)
        while first:
            yield first.pop(0)
        yield from pieces

    def _decide(self, pieces: list[Piece]) -> bool:
        """Whether rows are sparse, judged by the first rows."""
        layout, scaling, d = self._options.layout, self.recipe.scaling, self.recipe.n_features
        if layout == "sparse":
            self._keep_sparse()
        if layout != "auto":
            return layout == "sparse"
        sample = _first_rows(pieces, _SAMPLE_ROWS)
        n, itemsize = sum(part.n_rows for part in sample), np.dtype(self._options.value_type).itemsize
        sparse_bytes = n * 8 + self._assembler().entries(sample) * (itemsize + 4)
        if scaling.shifts:
            total = self._n_learned or n
            if dense_fits(total, sparse_bytes * total // n, d, itemsize):
                return False
            self._keep_sparse()
        return n * d * itemsize > sparse_bytes

    def _keep_sparse(self) -> None:
        """Leave shifts to the intercept, where it is not too late for that."""
        scaling = self.recipe.scaling
        if scaling.shifts and self._options.recipe is not None:
            raise ParameterError(
                f"the recipe's {scaling.kind} scaling turns zeros into other numbers, so rows cannot be sparse; take ",
                Argument("layout", "dense"),
            )
        self._recipe = replace(self.recipe, scaling=scaling.without_shift())

    def _row_bytes(self) -> int:
        itemsize = np.dtype(self._options.value_type).itemsize
        if not self._is_sparse:
            return max(1, self.recipe.n_features * itemsize)
        return 8 + sum(column.width for column in self.recipe.columns or ()) * (itemsize + 4)


def _open(files: list[SourceFile], options: ReadOptions) -> TableSource:
    found = options.format if options.format != "auto" else common_format(files)
    if found == "csv":
        return CsvSource(files, options)
    options.refuse(("delimiter", "header", "skip_bad_lines"), f"{found} files")
    if found not in ("parquet", "arrow"):
        raise DataError(f"{files[0].name}: {found} files are no tables")
    return ParquetSource(files) if found == "parquet" else ArrowSource(files)


def _joined(parts: list[AnyArray | None]) -> AnyArray | None:
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if present else None


def _first_bytes(pieces: Iterator[Piece], most: int) -> Iterator[Piece]:
    """The first pieces, up to so many bytes of columns; those that follow are left."""
    size = 0
    for piece in pieces:
        yield piece
        size += sum(batch.nbytes for batch in piece.batches)
        if size >= most:
            return


def _used_up(pieces: list[Piece]) -> Iterator[Piece]:
    """The pieces, each given back as it is taken."""
    while pieces:
        yield pieces.pop(0)


def _first_rows(pieces: list[Piece], rows: int) -> list[Piece]:
    """So many first rows of the pieces, or all when there are fewer."""
    found = []
    for piece in pieces:
        for batch in piece.batches:
            part = batch.slice(0, rows)
            if part.num_rows:
                found.append(Piece([part], piece.file, piece.first))
                rows -= part.num_rows
    return found


def _parts(piece: Piece, rows: int) -> Iterator[Piece]:
    """The piece in runs of at most so many rows."""
    held: list[Any] = []
    start, n = 0, 0
    for batch in piece.batches:
        for part in sliced(batch, rows):
            if held and n + part.num_rows > rows:
                yield piece.part(held, start)
                start, held, n = start + n, [], 0
            held.append(part)
            n += part.num_rows
    if held:
        yield piece.part(held, start)


def _names_rows(n_categories: int, n_rows: int) -> bool:
    """Whether nearly every row has a category of its own, as names and numbers of orders do."""
    return n_categories > _FEW_CATEGORIES and n_categories > _MOST_OF_ROWS * n_rows
