"""LIBSVM (svmlight) text: streamed as blocks, or read at once into its final arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np

from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset
from beeline.data.core.labels import LabelSets
from beeline.data.files.finding import SourceFile, total_size
from beeline.data.options import ReadOptions
from beeline.data.reader import BadLines, Progress, Reader, RestartReading
from beeline.data.recipe.hashing import hashed
from beeline.data.recipe.recipe import Recipe
from beeline.data.recipe.scaling import Scaling, ScalingLearner
from beeline.data.text.dialect import Problem, as_error, first_dialect, is_question, narrows
from beeline.data.text.feeds import open_feed
from beeline.data.text.prefetch import CHUNK, Prefetch, claim_prefetch, more_room, room_within
from beeline.exceptions import DataError
from beeline.kernels import LIBSVM_MOST_INDEX, LibsvmOutcome, LibsvmParser

__all__ = ["LibsvmReader"]

_STEP = 64 << 20  # what one call parses: between calls Ctrl-C is heard and progress told
_SNIFF = 64 << 10  # enough for a first row, nearly always
_PIECE = 8 << 20  # of a decompressed file
_READ_MEMORY = 256 << 20  # for learning before a read


class LibsvmReader(Reader):
    """LIBSVM text as rows.

    A line is `label[,label…] [qid:N] index:value … [# comment]`; without `targets` its label may be missing. Whether
    features count from 0 or 1, and whether labels are sets, is found out unless it is said; when a guess proves wrong
    after blocks were given away, `blocks` raises `RestartReading`.

    Parameters
    ----------
    files
        Read one after the other, as if they were one.
    options
        How; options for tables are refused.
    progress
        Whom to tell.
    chunk_bytes
        How much text a thread parses at a time. Results do not depend on it.
    """

    def __init__(
        self,
        files: list[SourceFile],
        options: ReadOptions,
        progress: Progress | None = None,
        *,
        chunk_bytes: int = CHUNK,
    ) -> None:
        super().__init__(progress)
        of_tables = {"label", "weight", "query", "ignore", "text", "delimiter", "missing", "extra"}
        options.refuse(of_tables, "LIBSVM text")
        self._files, self._options, self._chunk_bytes = files, options, chunk_bytes
        self._dialect = first_dialect(options)
        self._scaling = options.recipe.scaling if options.recipe is not None else Scaling()
        self._prepared = options.recipe is not None
        self._hash = options.hash if options.recipe is None else options.recipe.hash_bits
        self._n_features = self._first_features()
        self._parsed = 0  # bytes of this walk

    @property
    def recipe(self) -> Recipe:
        """How raw rows become these rows; complete once `blocks` or `read` has ended."""
        if self._options.recipe is not None:
            return self._options.recipe
        base = self._dialect.base
        return Recipe(n_features=self._n_features, index_base=base, scaling=self._scaling, hash_bits=self._hash)

    def prepare(self, memory: int) -> None:
        """Learn the scaling, and the number of features where rows will be dense; a walk only when needed."""
        if self._prepared:
            return
        learner = ScalingLearner(self._options.scale)
        if learner.learns or (self._dense and not self._n_features):
            learner = self._learn(memory)
        self._scaling = learner.finish(self._n_features)
        self._prepared = True

    def blocks(self, memory: int) -> Iterator[Block]:
        """All rows in order; everything held at one time takes about `memory` bytes."""
        given_away = False
        while True:
            try:
                for block in self._raw_blocks(memory // 4 if self._becomes_dense else memory * 3 // 8, "reading"):
                    for made in self._made(block, memory // 4):
                        given_away = True
                        yield made
                return
            except RestartReading:
                if given_away:
                    raise

    def read(self, *, narrow: bool = False) -> ArrayDataset:
        """All rows in memory; sparse rows are parsed straight into their final arrays.

        With `narrow`, and many rows, values become float32 if that keeps every digit that is written (the values
        themselves change by at most 2⁻²⁴ of themselves), and indices get 16 bits if there are no more features.
        """
        if self._dense:
            return super().read()
        self.prepare(_READ_MEMORY)
        if self._becomes_dense:
            return super().read()
        if narrow and narrows(self._options, total_size(self._files)):
            self._dialect = self._dialect.narrowed()
        while True:
            try:
                block = self._read_block()
                break
            except RestartReading:
                continue
        if block.n_rows == 0:
            raise DataError("the source has no rows")
        return ArrayDataset(self._scaling.apply(block, in_place=True), self.recipe)

    @property
    def _dense(self) -> bool:
        return self._options.layout == "dense"

    @property
    def _becomes_dense(self) -> bool:
        return self._dense or self._scaling.shifts

    def _learn(self, memory: int) -> ScalingLearner:
        while True:
            learner = ScalingLearner(self._options.scale, keep_sparse=self._options.layout == "sparse")
            stage = "learning the scaling" if learner.learns else "counting features"
            try:
                for block in self._raw_blocks(memory // 4, stage):
                    # Rows that will be dense are learned as dense ones, whose shift is not left to the intercept.
                    for piece in _dense_pieces(block, memory // 4) if self._dense and learner.learns else [block]:
                        learner.add(piece)
            except RestartReading:
                continue
            if self._hash is None:
                self._dialect = replace(self._dialect, n_features=self._n_features)
            return learner

    def _made(self, block: Block, memory: int) -> Iterator[Block]:
        """Blocks as the user wants them, from one as it was parsed."""
        if self._dense:
            for piece in _dense_pieces(block, memory):
                yield self._scaling.apply(piece, in_place=True)
        elif self._scaling.shifts:
            yield from self._scaling.pieces(block, memory)
        else:
            yield self._scaling.apply(block, in_place=True)

    def _raw_blocks(self, budget: int, stage: str) -> Iterator[Block]:
        parser = self._start(stage)
        room = room_within(parser, budget)
        parser.reserve(*room, budget)
        for outcome in self._outcomes(parser, min(_STEP, max(budget, self._chunk_bytes)), _piece_within(budget)):
            if outcome.full and parser.used[0]:
                yield self._take(parser)
                parser.reserve(*room, budget)
            elif outcome.full:  # not even one chunk fits
                parser.reserve(*(max(pair) for pair in zip(room, outcome.wanted, strict=True)))
        if parser.used[0]:
            yield self._take(parser)

    def _read_block(self) -> Block:
        parser = self._start("reading")
        prefetch = claim_prefetch(self._files, self._dialect, self._options)
        if prefetch:
            parser = prefetch.parser
        else:
            parser.reserve(*room_within(parser, 4 * self._chunk_bytes))
        for outcome in self._outcomes(parser, _STEP, _PIECE, prefetch):
            if outcome.full:
                parser.reserve(*more_room(parser, outcome, total_size(self._files), self._parsed))
        return self._take(parser)

    def _start(self, stage: str) -> LibsvmParser:
        self.bad_lines = BadLines()
        self._n_features = self._first_features()
        self._parsed = 0
        if self._dialect.queries is None:
            self._dialect = replace(self._dialect, queries=self._first_row_has_query())
        self.progress.start(stage, total_size(self._files))
        return LibsvmParser(self._dialect.for_kernel(self._options), self._chunk_bytes)

    def _first_row_has_query(self) -> bool:
        for file in self._files:
            # All in one chunk, so that only what lies before the first problem becomes rows.
            parser = LibsvmParser(self._dialect.for_kernel(self._options), 1 << 30)
            parser.reserve(*room_within(parser, 64 * _SNIFF))
            with closing(open_feed(file, _SNIFF)) as feed:
                while outcome := feed.parse(parser, _SNIFF):
                    if parser.used[0]:
                        queries = parser.take()[5]
                        return queries is not None and int(queries[0]) >= 0
                    self._check(outcome.problem, file, parser)
                    if outcome.full:
                        parser.reserve(*outcome.wanted)
        return False

    def _outcomes(
        self, parser: LibsvmParser, step: int, piece: int, prefetch: Prefetch | None = None
    ) -> Iterator[LibsvmOutcome]:
        """Parse all files step by step; what is left to the caller is to make room.

        With a prefetch, its parser and its file; the first outcome is then what was parsed ahead.
        """
        for file in self._files:
            if prefetch is None:
                parser.line = 0
            with closing(prefetch or open_feed(file, piece)) as feed:
                reported, rows = 0, parser.used[0] if prefetch is None else 0
                while outcome := feed.parse(parser, step):
                    self._note_skipped(outcome, file)
                    self._check(outcome.problem, file, parser)
                    if self._hash is None:
                        self._n_features = max(self._n_features, parser.last_index + 1 - self._dialect.base)
                    self.progress.advance(feed.consumed - reported, parser.used[0] - rows)
                    self._parsed += feed.consumed - reported
                    reported = feed.consumed
                    yield outcome
                    rows = parser.used[0]
        self._settle_labels(parser)

    def _note_skipped(self, outcome: LibsvmOutcome, file: SourceFile) -> None:
        for problem in outcome.skipped:
            self.bad_lines.add(as_error(problem, file.name, self._dialect.n_features))
        self.bad_lines.count += outcome.n_skipped - len(outcome.skipped)

    def _check(self, problem: Problem | None, file: SourceFile, parser: LibsvmParser) -> None:
        if problem is None:
            return
        if is_question(problem):
            self._dialect = self._dialect.corrected(problem, file.name)
            raise RestartReading
        if self._dialect.unlabelled is not None and not parser.several:
            raise self._dialect.unlabelled
        raise as_error(problem, file.name, self._dialect.n_features)

    def _settle_labels(self, parser: LibsvmParser) -> None:
        """Lines without a label are good if any row had several."""
        unlabelled = self._dialect.unlabelled
        if unlabelled is None:
            return
        if parser.several:
            self._dialect = replace(self._dialect, unlabelled=None)
            return
        if not self._options.skip_bad_lines:
            raise unlabelled
        self._dialect = self._dialect.with_single_labels()
        raise RestartReading

    def _take(self, parser: LibsvmParser) -> Block:
        values, indices, indptr, labels, label_indptr, queries = parser.take()
        if self._dialect.narrow and len(values) < 2**31:
            indptr = indptr.astype(np.int32)
        many = self._n_features if self._hash is None else LIBSVM_MOST_INDEX + 1
        block = Block(values, many, indptr, indices)
        if self._options.targets:
            sets = labels if label_indptr is None else LabelSets(label_indptr, labels)
            block = replace(block, labels=sets, queries=queries)
        return block if self._hash is None else hashed(block, self._hash)

    def _first_features(self) -> int:
        """The number of features, as far as it is known before the first row."""
        return self._dialect.n_features or 0 if self._hash is None else 1 << self._hash


def _piece_within(budget: int) -> int:
    """A size of which a few pieces do not count beside the budget."""
    return int(np.clip(budget // 16, _SNIFF, _PIECE))


def _dense_pieces(block: Block, memory: int) -> Iterator[Block]:
    """The rows of a sparse block as dense blocks of at most `memory` bytes."""
    step = max(1, memory // max(1, block.n_features * block.values.itemsize))
    for start in range(0, block.n_rows, step):
        rows = block.rows(start, start + step)
        yield replace(rows, values=rows.to_dense(), indptr=None, indices=None)
