"""Learns a recipe from a table, in one pass over its pieces."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from beeline._sentences import Argument, Sentence
from beeline.data.core.statistics import FeatureStatistics
from beeline.data.options import ReadOptions
from beeline.data.recipe.recipe import Column, Recipe
from beeline.data.recipe.scaling import Scaling, ScalingLearner, learned_scaling
from beeline.data.tables.assembly import RowAssembler, RowsBuilder, as_text
from beeline.data.tables.batches import Kind, Piece
from beeline.data.tables.roles import Roles
from beeline.exceptions import DataError

__all__ = ["TableLearner"]


class TableLearner:
    """Gathers categories, means and scaling statistics, and makes a recipe of them.

    All of it comes from one pass: statistics are those of the values that are present, and missing values are counted;
    once the fill values are known they are taken in as so many equal values.

    Attributes
    ----------
    n_rows
        How many rows were seen.

    Parameters
    ----------
    roles, kinds, widths
        What each column does and holds, and how many numbers a row it has.
    options
        How to treat missing values and scaling.
    """

    def __init__(self, roles: Roles, kinds: dict[str, Kind], widths: dict[str, int], options: ReadOptions) -> None:
        self._roles, self._options = roles, options
        self._texts = [name for name in roles.features if kinds[name] == "text"]
        self._numbers = [name for name in roles.features if kinds[name] == "numeric"]
        self._categories: dict[str, set[str]] = {name: set() for name in self._texts}
        self._label_is_text = roles.label is not None and kinds[roles.label] == "text"
        self._label_categories: set[str] = set()
        self.n_rows = 0
        self._statistics = FeatureStatistics()
        columns, at = [], 0
        for name in self._numbers:
            fill = 0.0 if options.fills_missing else None
            columns.append(Column(name, "numeric", at, fill=fill, width=widths[name]))
            at += widths[name]
        self._assembler = RowAssembler(columns, options.value_type, finite=not options.allow_nonfinite)

    @property
    def needed(self) -> bool:
        """Whether anything has to be learned from the rows."""
        return bool(self._texts) or self._label_is_text or self._needs_statistics

    @property
    def _needs_statistics(self) -> bool:
        return self._options.missing == "mean" or ScalingLearner(self._options.scale).learns

    def add(self, piece: Piece) -> None:
        """Take in some rows."""
        self.n_rows += piece.n_rows
        for name in self._texts:
            self._gather(name, piece, self._categories[name])
        if self._label_is_text and self._roles.label is not None:
            self._gather(self._roles.label, piece, self._label_categories)
        if self._needs_statistics and self._numbers:
            builder = RowsBuilder(self._assembler, is_sparse=True)
            builder.add(piece)
            self._statistics.add(builder.finish())

    def _gather(self, name: str, piece: Piece, into: set[str]) -> None:
        for batch in piece.batches:
            array = as_text(batch.column(name), name)
            # A dictionary may hold texts that no row uses.
            into.update(array.dictionary.take(pc.unique(array.indices).drop_null()).drop_null().to_pylist())
        if len(into) > self._options.max_categories:
            raise DataError(
                Sentence(
                    f"{piece.file + ': ' if piece.file else ''}text column {name!r} has more than "
                    f"{self._options.max_categories:,} different values, each of which would be a feature; leave it "
                    "out with ",
                    Argument("ignore", [name]),
                    ", or allow more with ",
                    Argument("max_categories"),
                )
            )

    def finish(self) -> Recipe:
        """The recipe of all rows seen."""
        assembler, statistics = self._assembler, self._statistics
        zeros = self.n_rows - assembler.missing
        if self._needs_statistics:
            statistics.grow(assembler.n_features)
            statistics.add_repeated(zeros - statistics.count, 0.0)
        fills = {column.name: self._fill(column) for column in assembler.columns}
        columns, at = [], 0
        widths = {column.name: column.width for column in assembler.columns}
        for name in self._roles.features:
            if name in widths:
                column = Column(name, "numeric", at, fill=fills[name], width=widths[name])
            else:
                fill = 0.0 if self._options.fills_missing else None
                column = Column(name, "categories", at, tuple(sorted(self._categories[name])), fill)
            columns.append(column)
            at += column.n_features
        roles = self._roles
        return Recipe(
            n_features=at,
            columns=tuple(columns),
            label=roles.label,
            weight=roles.weight,
            query=roles.query,
            label_categories=tuple(sorted(self._label_categories)) if self._label_is_text else None,
            ignored=roles.ignored,
            scaling=self._scaling(columns, at),
        )

    def _fill(self, column: Column) -> float | None:
        if self._options.missing != "mean":
            return column.fill
        places = slice(column.first, column.first + column.width)
        if column.width > 1:
            if self._assembler.missing[places].any():
                raise DataError(
                    Sentence(
                        f"column {column.name!r} holds lists, and missing values in lists cannot be filled by the "
                        "mean; take ",
                        Argument("missing", "zero"),
                    )
                )
            return 0.0
        if self.n_rows and not self._statistics.count[column.first]:
            raise DataError(
                Sentence(
                    f"column {column.name!r} has no value at all, so there is no mean; leave it out with ",
                    Argument("ignore", [column.name]),
                )
            )
        return float(self._statistics.mean[column.first])

    def _scaling(self, columns: list[Column], n_features: int) -> Scaling:
        kind = self._options.scale
        if not ScalingLearner(kind).learns:
            return Scaling(kind)
        numeric = [column for column in columns if column.kind == "numeric"]
        features = [np.arange(column.first, column.first + column.width) for column in numeric]
        fills = [np.full(column.width, column.fill or 0.0) for column in numeric]
        if numeric:
            self._statistics.add_repeated(self._assembler.missing, np.concatenate(fills))
        places = np.concatenate([np.zeros(0, np.intp), *features])
        indicators = np.ones(n_features, bool)
        indicators[places] = False
        return learned_scaling(kind, self._statistics.placed(places, n_features), indicators)
