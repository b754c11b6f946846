"""Losses within queries: how the documents of a query are ranked by their scores.

Conventions
-----------
- A group is a query, a row one of its documents, its label how relevant that is: a number that is not negative. The
  larger a score, the farther above its document is ranked.
- A query whose documents are all as relevant says nothing of their order, and costs nothing; one without a relevant
  document is such a query.
- Only differences of scores matter, and the order of rows within a query does not.
- Max-margin losses take the worst order of documents: l = max_π s(π) − s(σ) + 1 − measure(π), where σ is an order by
  falling relevance and s(π) = Σ_i c_i f_π(i) grows, the better π fits the scores. So l is convex, at least 1 − measure
  of the order by the scores, and zero where documents of different relevance are far enough apart, whatever the order
  of equally relevant ones. Numbers are in the kernels.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from beeline._sentences import Argument
from beeline._types import AnyArray, Floats, Ints
from beeline.exceptions import LabelError, ParameterError
from beeline.kernels import query_losses
from beeline.losses.groups import GroupLoss
from beeline.losses.settings import above_one, at_least_one

__all__ = [
    "ListNet",
    "MeanAveragePrecision",
    "Ndcg",
    "PairwiseHinge",
    "PairwiseLogistic",
    "QueryLoss",
    "RankUtility",
    "ReciprocalRank",
]

_NO_DISCOUNTS = np.zeros(0)


class QueryLoss(GroupLoss):
    """A loss of the documents of a query, many queries at once.

    Attributes
    ----------
    weighs_rows
        Whether the documents of a query may differ in weight.
    """

    domain = "relevances: numbers that are not negative"
    differences_only = True
    weighs_rows: ClassVar[bool] = False

    @property
    def measure(self) -> str | None:
        """What held-out queries are judged by, as it is spelled; None: by the loss itself."""
        return "ndcg@10"

    def allows(self, y: Floats) -> AnyArray:
        """Numbers from zero on."""
        allowed: AnyArray = np.isfinite(y) & (y >= 0)
        return allowed

    def value_and_grad(self, z: Floats, y: Floats, weights: Floats) -> tuple[float, Floats]:
        """l and a subgradient of one query."""
        values, slopes, _ = self.of_groups(z, y, weights, np.array([0, len(z)]))
        return float(values[0]), slopes

    def of_groups(self, z: Floats, y: Floats, weights: Floats, starts: Ints) -> tuple[Floats, Floats, Floats]:
        """Values and slopes, query after query."""
        if not self.weighs_rows and np.any(weights != 1):
            raise ParameterError(
                Argument("sample_weight"),
                f" must be the same for all rows of a query: the loss {self.name!r} weighs queries, not their rows",
            )
        values, slopes = np.empty(len(starts) - 1), np.empty(len(z))
        z, y, weights = (np.ascontiguousarray(column, dtype=np.float64) for column in (z, y, weights))
        starts = np.ascontiguousarray(starts, np.int64)
        discounts = self._discounts(int(np.diff(starts).max()))
        try:
            query_losses(self.name, z, y, weights, starts, discounts, values, slopes)
        except RuntimeError as error:
            raise LabelError(
                f"{error}, and finding the worst order of so many takes too long; round the relevances to fewer "
                "levels, or take the loss 'pairwise_hinge', 'pairwise_logistic' or 'listnet'"
            ) from None
        return values, slopes, np.empty((len(values), 0))

    def _discounts(self, n: int) -> Floats:
        """What the first places of up to n documents count, for a measure that is a sum over places."""
        return _NO_DISCOUNTS


class Ndcg(QueryLoss):
    """Max-margin for the normalised discounted cumulative gain (B13): gains 2^y − 1, discounts 1/log₂(1 + place).

    max_π Σ_i c_i (f_π(i) − f_σ(i)) + 1 − NDCG@k(π), c_i the gain of σ's document at place i over the sum of all gains.

    π goes over all documents. That is a linear assignment: a sort, O(n log n), with two levels of relevance;
    O(n log n + m·r²) with r levels and m documents above the lowest one; where levels are nearly as many as documents,
    O(k·m²) for k places, O(m³) for all.

    Parameters
    ----------
    k
        How many places count; None: all.
    """

    name = "ndcg"
    formula = "max_π Σ_i c_i (f_π(i) − f_σ(i)) + 1 − NDCG@k(π)"
    summary = "the order of documents within queries, the first places most, by relevance in grades"
    smooth = False
    piecewise_linear = True

    def __init__(self, k: int | None = None) -> None:
        self.k = None if k is None else at_least_one("k", k)

    @property
    def measure(self) -> str:
        """NDCG of as many places."""
        return "ndcg" if self.k is None else f"ndcg@{self.k}"

    def _discounts(self, n: int) -> Floats:
        places: Floats = np.arange(2.0, 2 + (n if self.k is None else min(n, self.k)))
        return 1 / np.log2(places)


class RankUtility(QueryLoss):
    """Max-margin for the expected rank utility (Breese, Heckerman and Kadie 1998): gains y, halved place by place.

    max_π Σ_i c_i (f_π(i) − f_σ(i)) + 1 − U(π)/U(σ), U(π) = Σ_i y_π(i)·2^(−(i − 1)/(half_life − 1)).

    Parameters
    ----------
    half_life
        The place that is looked at with a probability of one half; more than 1.
    """

    name = "rank_utility"
    formula = "max_π Σ_i c_i (f_π(i) − f_σ(i)) + 1 − U(π)/U(σ)"
    summary = (
        "the order of documents within queries for readers who give up, half of them before the half_life-th place"
    )
    smooth = False
    piecewise_linear = True

    def __init__(self, half_life: float = 5.0) -> None:
        self.half_life = above_one("half_life", half_life)

    @property
    def measure(self) -> None:
        """None of those that are known elsewhere."""
        return

    def _discounts(self, n: int) -> Floats:
        discounts: Floats = np.exp2(-np.arange(n) / (self.half_life - 1))
        return discounts


class MeanAveragePrecision(QueryLoss):
    """Max-margin for the average precision; documents of relevance above 0 are relevant.

    max_π the mean over pairs (i relevant, j not) of max(0, f_j − f_i where π has j above i) + 1 − AP(π). Average
    precision is no sum over places; the worst order is found as by Yue, Finley, Radlinski and Joachims (2007), in
    O(n log n) and one look at each pair that is out of order.
    """

    name = "map"
    formula = "max_π mean of (f_j − f_i) over pairs out of order in π + 1 − AP(π)"
    summary = "the average precision of queries whose documents are relevant or not"
    smooth = False
    piecewise_linear = True
    measure = "map"


class ReciprocalRank(QueryLoss):
    """Max-margin for one over the place of the first relevant document; those of relevance above 0 are relevant.

    max_π (Σ_i≤m f_π(i) − Σ_i≤m f_σ(i))/m + 1 − 1/(place of the first relevant document in π), m relevant ones:
    O(n log n).
    """

    name = "mrr"
    formula = "max_π Σ_i≤m (f_π(i) − f_σ(i))/m + 1 − 1/(first relevant place in π)"
    summary = "the place of the first relevant document of queries"
    smooth = False
    piecewise_linear = True
    measure = "mrr"


class PairwiseHinge(QueryLoss):
    """The mean hinge of a query's pairs of which one document is more relevant (RankSVM): O(n log n) by sorting.

    The pair of i and j has the weight w_i·w_j; means are weighted by it.
    """

    name = "pairwise_hinge"
    formula = "mean of max(0, 1 − (f_i − f_j)) over y_i > y_j"
    summary = "pairs of a query's documents in the wrong order, with a margin (RankSVM)"
    smooth = False
    piecewise_linear = True
    weighs_rows = True


class PairwiseLogistic(QueryLoss):
    """The mean logistic loss of a query's pairs of which one document is more relevant (RankNet): O(n²).

    The pair of i and j has the weight w_i·w_j; means are weighted by it.
    """

    name = "pairwise_logistic"
    formula = "mean of log(1 + exp(−(f_i − f_j))) over y_i > y_j"
    summary = "pairs of a query's documents in the wrong order, smooth (RankNet)"
    weighs_rows = True


class ListNet(QueryLoss):
    """The cross-entropy between softmaxes of relevances and of scores, less the least it can be (Cao et al. 2007).

    p ∝ w·exp(y) and q ∝ w·exp(f) are probabilities to be first. O(n).
    """

    name = "listnet"
    formula = "Σ_i p_i log(p_i/q_i), p = softmax(y), q = softmax(f)"
    summary = "probabilities of a query's documents to be the first, smooth"
    weighs_rows = True
