"""Rankings of the documents of queries: measured as soon as a query is whole, so that only queries are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline._words import count
from beeline.data.core.targets import group_starts
from beeline.evaluation.evaluation import QueryTable
from beeline.exceptions import DataError, ParameterError
from beeline.losses import LOSSES
from beeline.query_measures import QUERY_MEASURES, QueryMeasure, RankedQueries, query_measure

if TYPE_CHECKING:
    from beeline.model import Model

__all__ = [
    "USUAL_MEASURES",
    "QueryAnswers",
    "Whole",
    "WholeQueries",
    "measures_named",
    "notes_about",
    "ranks_queries",
]

USUAL_MEASURES = ("ndcg@1", "ndcg@5", "ndcg@10", "map", "mrr")


def measures_named(names: Sequence[str] | None) -> tuple[QueryMeasure, ...]:
    """The measures of these names; for None the usual ones."""
    names = [names] if isinstance(names, str) else names
    found = [(name, query_measure(name, "measures")) for name in (USUAL_MEASURES if names is None else names)]
    for name, measure in found:
        if measure is None:
            said = ", ".join(
                name + ("@K" if name in ("ndcg", "precision", "recall") else "") for name in QUERY_MEASURES
            )
            raise ParameterError(f"there is no measure of rankings {name!r}; there are {said}", parameter="measures")
    return tuple(dict.fromkeys(measure for _, measure in found if measure is not None))


def ranks_queries(model: Model) -> bool:
    """Whether the model was trained to rank the rows of a query, so that its scores are no values."""
    kind = LOSSES.get(model.loss)
    return kind is not None and kind.scope == "group" and kind.labels == "real" and model.n_outputs == 1


class Whole(NamedTuple):
    """Rows of queries that are whole: the number of the first one, where queries begin, their ids, other columns."""

    first_row: int
    starts: Ints
    queries: AnyArray
    columns: list[Any]


class WholeQueries:
    """Rows that come in pieces, given back as soon as their query has ended."""

    def __init__(self) -> None:
        self._pending: list[tuple[Any, ...]] = []
        self._row = self._pending_row = 0
        self._names: list[AnyArray] = []
        self._starts: list[Ints] = []

    def add(self, queries: AnyArray, *columns: Any) -> Whole | None:  # noqa: ANN401
        """Take rows, a query id and an entry of every column for each; columns may be None. What has ended, if any."""
        if not len(queries):
            return None
        changes = np.flatnonzero(queries[1:] != queries[:-1]) + 1
        if self._pending and queries[0] != self._pending[0][0][0]:
            changes = np.append(0, changes)
        cut, found = int(changes[-1]) if len(changes) else 0, None
        if len(changes):
            self._keep(queries, columns, slice(None, cut))
            found = self._whole()
            self._pending_row = self._row + cut
        self._keep(queries, columns, slice(cut, None))
        self._row += len(queries)
        return found

    def end(self) -> Whole | None:
        """The last query; raises where one went on after others."""
        found = self._whole()
        if self._starts:
            names = np.concatenate(self._names)
            _, first = np.unique(names, return_index=True)
            if len(first) < len(names):
                again = int(np.setdiff1d(np.arange(len(names)), first)[0])
                raise DataError(
                    f"row {int(np.concatenate(self._starts)[again])} goes on with the query {names[again]}, which had "
                    "ended before; sort the rows by query"
                )
        return found

    def _keep(self, queries: AnyArray, columns: tuple[Any, ...], rows: slice) -> None:
        if len(queries[rows]):
            self._pending.append(tuple(None if one is None else one[rows].copy() for one in (queries, *columns)))

    def _whole(self) -> Whole | None:
        if not self._pending:
            return None
        queries, *columns = (
            None if parts[0] is None else np.concatenate(parts) for parts in zip(*self._pending, strict=True)
        )
        self._pending = []
        assert queries is not None
        starts = group_starts(queries)
        self._names.append(queries[starts[:-1]])
        self._starts.append(starts[:-1] + self._pending_row)
        return Whole(self._pending_row, starts, self._names[-1], columns)


class QueryAnswers:
    """Gathers measures of rankings: rows are kept until their query ends, and of a query there remain its measures.

    Parameters
    ----------
    measures
        Which.
    """

    def __init__(self, measures: Sequence[QueryMeasure]) -> None:
        self.measures = measures
        self._rows = WholeQueries()
        self._found: list[QueryTable] = []

    def add(self, queries: AnyArray, relevance: Floats, z: Floats, weights: Floats | None) -> None:
        """Take rows into account."""
        self._measure(self._rows.add(queries, relevance, z, weights))

    def table(self) -> QueryTable:
        """All queries, once there are no more rows."""
        self._measure(self._rows.end())
        found = self._found
        if not found:
            nothing = np.zeros(0)
            return QueryTable(nothing, nothing, nothing, nothing, {str(one): nothing for one in self.measures})
        query, rows, relevant, weight = (
            np.concatenate([getattr(part, name) for part in found]) for name in QueryTable._fields[:4]
        )
        measures = {name: np.concatenate([part.measures[name] for part in found]) for name in found[0].measures}
        return QueryTable(query, rows, relevant, weight, measures)

    def _measure(self, rows: Whole | None) -> None:
        if rows is None:
            return
        y, z, c = rows.columns
        ranked = RankedQueries(y, z, rows.starts, c, rows.first_row)
        measures = {str(one): ranked.by_query(one) for one in self.measures}
        names = rows.queries[ranked.present]
        self._found.append(QueryTable(names, ranked.sizes, ranked.n_relevant, ranked.weights, measures))


def notes_about(table: QueryTable) -> list[str]:
    """What must be known to understand the means over the queries."""
    said = []
    if without := int(np.count_nonzero(table.relevant == 0)):
        said.append(f"{_which(without)} no relevant row, and {'counts' if without == 1 else 'count'} 0 in every mean")
    for name in table.measures:
        measure = query_measure(name)
        if measure is None or measure.k is None or not (measure.name == "precision" or measure.convention == "letor4"):
            continue
        if short := int(np.count_nonzero((table.rows < measure.k) & (table.relevant > 0))):
            what = "is divided by that all the same" if measure.name == "precision" else "is 0 there, as LETOR has it"
            said.append(f"{_which(short)} relevant rows but fewer than {measure.k} in all, and {name} {what}")
    return said


def _which(n: int) -> str:
    return f"{count(n, 'query', 'queries')} {'has' if n == 1 else 'have'}"
