"""Measures of rankings, query by query: NDCG, average precision, reciprocal rank, precision and recall at k.

Conventions
-----------
- A row is a document, and the rows of a query lie together. Their relevance is a number from 0; a document is relevant
  where it is positive.
- **Ties.** Documents of a query that have the same score come in no order of their own: a measure is its mean over all
  orders of them, by closed forms (McSherry and Najork 2008), not by drawing. No measure depends on the order of rows.
- **Queries without a relevant document** count 0, as they do in LETOR's scripts; `n_without` says how many there are.
- **k larger than the query.** All documents count then; precision still divides by k, as in trec_eval; LETOR's NDCG at
  such a k is 0.
- **Weights.** A row of weight 0 is absent. A query's weight is the mean of those of its other rows, as in losses of
  groups; only means over queries use it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from beeline._types import AnyArray, Floats, Ints
from beeline._words import did_you_mean
from beeline.exceptions import DataError, ParameterError
from beeline.kernels import dot

__all__ = ["QUERY_MEASURES", "QueryMeasure", "RankedQueries", "query_measure"]

_GAINS = ("exponential", "linear", "letor4")
QUERY_MEASURES: dict[str, str] = {
    "ndcg": "discounted gain of the first k documents, as a part of the best that there can be",
    "mean_ndcg": "the mean of NDCG@1, NDCG@2, … to the last document of the query",
    "map": "the mean, over the relevant documents, of the precision where each of them stands",
    "mrr": "1/the place of the first relevant document",
    "precision": "how many of the first k documents are relevant, divided by k",
    "recall": "which part of the relevant documents is among the first k",
}
"""Every measure by its name, in words."""
_NEEDS_K = ("precision", "recall")
_LARGEST_GRADE = 500.0  # 2^y beyond, added up, is no number


@dataclass(frozen=True)
class QueryMeasure:
    """A measure of one query's ranking.

    Attributes
    ----------
    name
        One of `QUERY_MEASURES`.
    k
        How many documents are looked at; None: all.
    convention
        Of NDCG, the gain of a document of relevance y at place r, and its discount: `exponential`
        (2^y − 1)/log₂(r + 1), `linear` y/log₂(r + 1), `letor4` (2^y − 1)/max(1, log₂ r), where a query of fewer than k
        documents counts 0.
    """

    name: str
    k: int | None = None
    convention: str = "exponential"

    def __str__(self) -> str:
        at = "" if self.k is None else f"@{self.k}"
        return f"{self.name}{at}" + ("" if self.convention == "exponential" else f":{self.convention}")


def query_measure(text: str, parameter: str = "metric") -> QueryMeasure | None:
    """The measure that is spelled so: `NAME`, `NAME@K` or `NAME@K:convention`; None where NAME is another one's.

    Parameters
    ----------
    text
        Such as `ndcg@10`, `ndcg@10:letor4`, `map`.
    parameter
        The name of the argument that it was given as, for messages.
    """
    name, at, rest = re.fullmatch(r"([^@:]*)(@?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    if name not in QUERY_MEASURES or (name in _NEEDS_K and not at):
        return None
    number, colon, convention = rest.partition(":")
    if at and not (number.isascii() and number.isdecimal() and int(number) > 0):
        raise ParameterError(
            f"{text!r}: what stands behind @ is how many documents are looked at, a whole number from 1",
            parameter=parameter,
        )
    if name == "mean_ndcg" and at:
        raise ParameterError(f"{text!r}: mean_ndcg is over all documents of a query; leave @ out", parameter=parameter)
    if colon and (name not in ("ndcg", "mean_ndcg") or convention not in _GAINS):
        hint = f"; {close}" if (close := did_you_mean(convention, _GAINS)) else ""
        raise ParameterError(
            f"{text!r}: behind : stands {', '.join(_GAINS[:-1])} or {_GAINS[-1]}, for ndcg and mean_ndcg{hint}",
            parameter=parameter,
        )
    return QueryMeasure(name, int(number) if at else None, convention or "exponential")


class RankedQueries:
    """Documents of queries in the order of their scores.

    Cost: a sort. Memory: some ten numbers a row.

    Parameters
    ----------
    relevance, scores
        One a row.
    starts
        Where the queries begin, and behind the last one where it ends.
    weights
        One a row; None: every row counts once.
    first_row
        The number of the first row, for messages.

    Attributes
    ----------
    present
        The places, in `starts`, of the queries that have a row with a weight. All else has an entry for each of them.
    sizes, n_relevant, weights
        How many documents they have, how many of these are relevant, and their weights.
    """

    def __init__(
        self, relevance: AnyArray, scores: Floats, starts: Ints, weights: Floats | None = None, first_row: int = 0
    ) -> None:
        y, z = np.asarray(relevance, np.float64), np.asarray(scores, np.float64)
        check_relevance(y, first_row)
        sizes = np.diff(starts)
        if weights is not None and not weights.all():
            here = weights > 0
            sizes = np.diff(np.append(0, np.cumsum(here))[starts])
            y, z, weights = y[here], z[here], weights[here]
        self.present: Ints = np.flatnonzero(sizes)
        self.sizes: Ints = sizes[self.present]
        self._starts = np.append(0, np.cumsum(self.sizes))[:-1]
        self._of_row = np.repeat(np.arange(len(self.sizes)), self.sizes)
        self.weights = np.ones(len(self.sizes)) if weights is None else self._sum(weights) / self.sizes
        order = np.lexsort((-z, self._of_row))
        self._y, self._ideal = y[order], y[np.lexsort((-y, self._of_row))]
        self.n_relevant = self._sum(self._y > 0)
        self._place = np.arange(1, len(y) + 1) - np.repeat(self._starts, self.sizes)
        self._tie, self._tie_sizes = self._ties(z[order])
        self._relevant = self._over_ties((self._y > 0).astype(np.float64))

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def n_without(self) -> int:
        """The number of queries without a relevant document."""
        return int(np.count_nonzero(self.n_relevant == 0))

    def by_query(self, measure: QueryMeasure) -> Floats:
        """The measure of each query."""
        if measure.name == "ndcg":
            return self._ndcg(measure)
        if measure.name == "mean_ndcg":
            return self._mean_ndcg(measure)
        first = self._place <= (np.inf if measure.k is None else measure.k)
        if measure.name == "map":
            return _ratios(self._sum(np.where(first, self._precision_at_hits(), 0.0)), self.n_relevant)
        if measure.name == "mrr":
            return self._sum(np.where(first, self._first_hits() / self._place, 0.0))
        hits = self._sum(np.where(first, self._relevant, 0.0))
        assert measure.k is not None
        return hits / measure.k if measure.name == "precision" else _ratios(hits, self.n_relevant)

    def mean(self, values: Floats) -> float:
        """The mean over the queries, by their weights; NaN where there is none."""
        total = float(self.weights.sum())
        return dot(np.ascontiguousarray(values), self.weights) / total if total else float("nan")

    def _sum(self, values: AnyArray) -> Floats:
        """The sum within each query."""
        sums: Floats = np.add.reduceat(values, self._starts, dtype=np.float64) if len(self._starts) else np.zeros(0)
        return sums

    # Ties

    def _ties(self, z: Floats) -> tuple[Ints, Ints]:
        """(the number of each row's run of equal scores within its query, the sizes of these runs)."""
        begins = np.ones(len(z), bool)
        begins[1:] = (z[1:] != z[:-1]) | (self._of_row[1:] != self._of_row[:-1])
        tie = np.cumsum(begins) - 1
        return tie, np.bincount(tie)

    def _over_ties(self, values: Floats) -> Floats:
        """For each place the mean of what may stand there."""
        if len(self._tie_sizes) == len(values):
            return values
        return (np.bincount(self._tie, values) / self._tie_sizes)[self._tie]

    # NDCG

    def _ndcg(self, measure: QueryMeasure) -> Floats:
        found, best = (self._discounted(y, measure) for y in (self._y, self._ideal))
        first = self._place <= (np.inf if measure.k is None else measure.k)
        found = _ratios(*(self._sum(np.where(first, gains, 0.0)) for gains in (found, best)))
        if measure.convention == "letor4" and measure.k is not None:
            found[self.sizes < measure.k] = 0.0
        return found

    def _discounted(self, y: Floats, measure: QueryMeasure) -> Floats:
        """The gain of each place, times its discount; `y` in the order of the scores, or in the best."""
        gains = y if measure.convention == "linear" else np.exp2(y) - 1
        if y is self._y:
            gains = self._over_ties(gains)
        letor = measure.convention == "letor4"
        discounted: Floats = gains / (np.maximum(1.0, np.log2(self._place)) if letor else np.log2(self._place + 1))
        return discounted

    def _mean_ndcg(self, measure: QueryMeasure) -> Floats:
        """The mean of NDCG@1, NDCG@2, … up to all documents."""
        found, best = (self._sums_so_far(self._discounted(y, measure)) for y in (self._y, self._ideal))
        return self._sum(_ratios(found, best)) / self.sizes

    def _sums_so_far(self, values: Floats) -> Floats:
        """At each place the sum over the places of the query up to it."""
        wide = np.cumsum(values, dtype=np.longdouble)  # differences of long sums lose digits
        before = np.append(np.longdouble(0), wide)[self._starts]
        sums: Floats = (wide - np.repeat(before, self.sizes)).astype(np.float64)
        return sums

    # Average precision and the first relevant document

    def _precision_at_hits(self) -> Floats:
        """For each place, how likely a relevant document stands there, times the precision there if one does.

        In a run of n equal scores with r relevant documents, behind R relevant ones, place j has a relevant one with
        probability r/n; then (j − 1)(r − 1)/(n − 1) relevant ones stand before it in the run on average.
        """
        n = self._tie_sizes[self._tie]
        r = self._relevant * n
        first = self._first_of_tie()
        before = np.append(0.0, np.cumsum(self._y > 0))
        hits_before = before[first] - np.repeat(before[self._starts], self.sizes)
        within = (np.arange(len(first)) - first) * np.maximum(r - 1, 0) / np.maximum(n - 1, 1)
        found: Floats = self._relevant * (hits_before + 1 + within) / self._place
        return found

    def _first_of_tie(self) -> Ints:
        """For each row the first row of its run."""
        return (np.cumsum(self._tie_sizes) - self._tie_sizes)[self._tie]

    def _first_hits(self) -> Floats:
        """For each place, how likely the first relevant document of the query stands there."""
        found, hits = np.zeros(len(self._y)), np.flatnonzero(self._y > 0)
        _, first = np.unique(self._of_row[hits], return_index=True)
        runs = self._tie[hits[first]]  # of equal scores: in each query the first that has a relevant document
        begins, sizes = self._first_of_tie()[hits[first]], self._tie_sizes[runs]
        alike, which = np.unique(
            [sizes, np.bincount(self._tie[hits], minlength=len(self._tie_sizes))[runs]], axis=1, return_inverse=True
        )
        for k, (n, r) in enumerate(alike.T.tolist()):
            j = np.arange(n - r + 1)
            none_before = np.cumprod(np.append(1.0, ((n - r - j) / (n - j))[:-1]))
            found[begins[which == k][:, None] + j] = none_before * r / (n - j)
        return found


def check_relevance(y: Floats, first_row: int = 0) -> None:
    """Raise `DataError` with the first row whose label is no relevance."""
    wrong = ~((y >= 0) & (y <= _LARGEST_GRADE))
    if wrong.any():
        row = int(np.argmax(wrong))
        what = "negative" if y[row] < 0 else f"beyond {_LARGEST_GRADE:g}"
        raise DataError(
            f"row {first_row + row} has the relevance {y[row]:g}, which is {what}; measures of rankings need numbers "
            "from 0 (not relevant) up"
        )


def _ratios(parts: Floats, of: Floats) -> Floats:
    """Parts of wholes; 0 where there is nothing to be part of."""
    return np.divide(parts, of, out=np.zeros(len(parts)), where=of > 0)
