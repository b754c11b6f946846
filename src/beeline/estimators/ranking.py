"""Learning to rank: the documents of each query in order."""

from __future__ import annotations

import warnings
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples

from beeline._sentences import Argument
from beeline._types import AnyArray, Floats, Ints
from beeline._warnings import calls_inside
from beeline._words import count
from beeline.data.core.dataset import Dataset
from beeline.data.core.labels import refuse_missing
from beeline.data.core.targets import Targets, as_groups
from beeline.data.files.finding import names_files
from beeline.data.options import Extra
from beeline.estimators.base import LinearEstimator, mixture
from beeline.estimators.docs import documented
from beeline.estimators.given import own_labels, refuse_files
from beeline.exceptions import DataError, LabelError, ModelWarning, ParameterError
from beeline.fitting.settings import Auto
from beeline.losses import Loss, get_loss
from beeline.query_measures import QueryMeasure, RankedQueries, query_measure
from beeline.solvers.base import Callback
from beeline.solvers.registry import SolverLike

__all__ = ["LinearRanker"]

_FIRST_TEN = QueryMeasure("ndcg", 10)


@documented
class LinearRanker(LinearEstimator):
    """Ranks the documents of queries by linear scores, the best first.

    Minimises Ω(w) + C·Σ_g weight_g·l_g over the queries g, z = Xw. There is no intercept: only differences of scores
    within a query matter. Labels are relevances, numbers that are not negative; a query whose documents are all as
    relevant costs nothing.

    <fit>

    Parameters
    ----------
    loss : str or Loss, default="ndcg@10"
        A loss of groups. "ndcg@10" (or any number of places), "map", "mrr" and "rank_utility" are at least one minus
        their measure, "pairwise_hinge", "pairwise_logistic" and "listnet" count pairs and first places.
    <C>
    <l1_ratio>
    cv : int, float, splitter or iterable, default=5
        For a search: so many folds, which keep queries whole; a part of them to hold out once, such as 0.2; a splitter
        of scikit-learn's; or pairs of train and test rows.
    scoring : str or callable, default=None
        For a search: what is best on held-out queries: "ndcg@10" and other numbers of places, "map", "mrr",
        "precision@5", "recall@5", "loss" (the mean of the loss itself), or a scorer of scikit-learn's. None: the
        measure of the loss, NDCG@10 for those that have none of their own.
    <solving>

    Attributes
    ----------
    <attributes>

    Examples
    --------
    >>> from beeline import LinearRanker
    >>> documents, relevance = [[3.0], [1.0], [2.0], [5.0], [4.0]], [2, 0, 1, 1, 0]
    >>> ranker = LinearRanker().fit(documents, relevance, qid=[1, 1, 1, 2, 2])
    >>> bool(ranker.predict([[2.0]]) > ranker.predict([[1.0]]))
    True
    """

    def __init__(  # noqa: PLR0913 — scikit-learn takes every parameter by its name
        self,
        loss: str | Loss = "ndcg@10",
        *,
        C: float | Auto = 1.0,
        l1_ratio: float = 0.0,
        cv: Any = 5,  # noqa: ANN401
        scoring: Any = None,  # noqa: ANN401
        solver: SolverLike = "auto",
        tol: float = 1e-4,
        max_passes: float = 1000,
        time_limit: float | None = None,
        memory: str | int | None = None,
        checkpoint: str | PathLike[str] | None = None,
        warm_start: bool = False,
        random_state: Any = None,  # noqa: ANN401
        callback: Callback | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.C = C
        self.l1_ratio = l1_ratio
        self.cv = cv
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.memory = memory
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.positive_only = True
        return tags

    @property
    def _classifies(self) -> bool:
        return False

    def _intercept(self) -> Any:  # noqa: ANN401
        return "none"

    def _settings(self) -> dict[str, Any]:
        loss = get_loss(self.loss)
        if loss.scope != "group":
            raise ParameterError(
                f"the loss {loss.name!r} does not look at queries; take one of queries, such as 'ndcg@10', "
                "'pairwise_logistic' or 'map'",
                parameter="loss",
            )
        return {"loss": loss, "C": self.C, "regularizer": mixture(self.l1_ratio)}

    def fit(  # type: ignore[override]
        self,
        X: Any,  # noqa: ANN401
        y: Any = None,  # noqa: ANN401
        *,
        qid: Any = None,  # noqa: ANN401
        group: Any = None,  # noqa: ANN401
        groups: Any = None,  # noqa: ANN401
        query_weight: Any = None,  # noqa: ANN401
    ) -> Self:
        """Train the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset or Store
            The documents, those of a query together. A data set that was read with query ids needs neither `y` nor
            `qid`.
        y : array-like, default=None
            How relevant each document is: a number that is not negative.
        qid : array-like, default=None
            The query of each document, a number or a name. Without it and `group`, rows of arrays are one query.
        group : array-like, default=None
            Instead of `qid`, how many documents each query has, in their order.
        groups : array-like, default=None
            The same as `qid`, as scikit-learn's splitters call it.
        query_weight : array-like, default=None
            A weight a query: a weight of 2 means the same as having the query twice.

        Returns
        -------
        self
        """
        refuse_files(X)
        queries = self._queries(X, qid, group, groups)
        starts = self._starts(X, queries)
        weights = None if query_weight is None else _of_rows(query_weight, starts)
        return super().fit(X, y, weights, queries)

    def score(  # type: ignore[override]
        self,
        X: Any,  # noqa: ANN401
        y: Any = None,  # noqa: ANN401
        *,
        qid: Any = None,  # noqa: ANN401
        group: Any = None,  # noqa: ANN401
        groups: Any = None,  # noqa: ANN401
        extra: Extra = "error",
    ) -> float:
        """The mean over the queries of the loss's measure, NDCG@10 for losses that have none of their own.

        Documents with the same score count by the mean over their orders; a query without a relevant one counts 0.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset, Store or path
            The documents. Files, and frames where the model has a recipe, are read by the recipe, with their labels and
            query ids.
        y, qid, group, groups
            As for `fit`.
        extra : {"error", "ignore"}
            As for `predict`.
        """
        from_files, told = names_files(X), any(said is not None for said in (qid, group, groups))
        rows = self._rows(X, targets=y is None or (from_files and not told), extra=extra)
        relevance = own_labels(rows) if y is None else _relevance(y, rows.n_rows)
        has_queries = from_files or isinstance(X, Dataset) or rows.queries is not None
        starts = self._starts(rows, self._queries(rows if has_queries else X, qid, group, groups))
        ranked = RankedQueries(relevance, self._fitted_model().predict(rows), starts, rows.weights)
        measure = query_measure(getattr(get_loss(self.loss), "measure", None) or "") or _FIRST_TEN
        return ranked.mean(ranked.by_query(measure))

    def decision_function(self, X: Any, *, extra: Extra = "error") -> Floats:  # noqa: ANN401
        """The scores, as `predict` gives them.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset, Store or path
            The documents.
        extra : {"error", "ignore"}
            What is done with columns of files and frames that the model does not know.
        """
        return self.predict(X, extra=extra)

    def predict(self, X: Any, *, extra: Extra = "error") -> Floats:  # noqa: ANN401
        """The score of each document: of two documents of a query, the one with the higher score is ranked first.

        Scores mean nothing by themselves, and those of different queries cannot be compared.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, Dataset, Store or path
            The documents. Files, and frames where the model has a recipe, are read by the recipe.
        extra : {"error", "ignore"}
            What is done with columns of files and frames that the model does not know.
        """
        return super().predict(X, extra=extra)

    def _queries(self, X: Any, qid: Any, group: Any, groups: Any) -> AnyArray | None:  # noqa: ANN401
        """The query of each row; None: those inside the data set."""
        given = {"qid": qid, "group": group, "groups": groups}
        said = [name for name, value in given.items() if value is not None]
        if len(said) > 1:
            raise ParameterError(
                Argument(said[0]), " and ", Argument(said[1]), " both say the queries; leave one of them out"
            )
        if group is not None:
            sizes = _sizes(group, _rows_of(X))
            return np.repeat(np.arange(len(sizes)), sizes)
        if said:
            return as_groups(given[said[0]], _rows_of(X), said[0])
        if isinstance(X, Dataset):
            return None
        warnings.warn(
            "the rows have no queries, so that all of them are one; give qid=, one a row, or group=, the sizes of the "
            "queries",
            ModelWarning,
            stacklevel=calls_inside() + 1,
        )
        return np.zeros(_rows_of(X), np.int64)

    @staticmethod
    def _starts(X: Any, queries: AnyArray | None) -> Ints:  # noqa: ANN401
        """Where queries begin."""
        if queries is None:
            queries = X.queries
        return Targets(None, None, queries, "query").starts


def _rows_of(X: Any) -> int:  # noqa: ANN401
    return X.n_rows if isinstance(X, Dataset) else int(_num_samples(X))


def _relevance(y: Any, n_rows: int) -> Floats:  # noqa: ANN401
    """The relevance of each document."""
    given = np.asarray(y)
    if given.shape != (n_rows,):
        raise LabelError(f"y must have one relevance a row, {n_rows} in all, not shape {given.shape}")
    refuse_missing(given)
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise LabelError("y must have numbers for relevances, from 0 (not relevant) up") from None


def _sizes(group: Any, n_rows: int) -> Ints:  # noqa: ANN401
    """How many documents each query has."""
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or np.any(sizes < 1):
        raise ParameterError(Argument("group"), " must be how many documents each query has: whole numbers from 1")
    if int(sizes.sum()) != n_rows:
        raise DataError(f"the queries have {count(int(sizes.sum()), 'row')} by group, but there are {n_rows:,}")
    return sizes


def _of_rows(query_weight: Any, starts: Ints) -> Floats:  # noqa: ANN401
    """A weight a row from one a query."""
    weights = check_array(
        query_weight, ensure_2d=False, dtype=np.float64, input_name="query_weight", ensure_non_negative=True
    )
    if weights.shape != (len(starts) - 1,):
        raise ParameterError(
            Argument("query_weight"), f" must have one weight a query, {len(starts) - 1} in all, not {weights.shape}"
        )
    repeated: Floats = np.repeat(weights, np.diff(starts))
    return repeated
