"""How held-out rows are judged: beeline's own metrics, and any scorer of scikit-learn's kind."""

from __future__ import annotations

import hashlib
import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np

from beeline import metrics
from beeline._sentences import Argument
from beeline._types import AnyArray, Floats, Ints
from beeline._words import offer, quoted
from beeline.data.core.targets import group_starts
from beeline.exceptions import ParameterError
from beeline.links import Link, class_numbers, probabilities, values
from beeline.losses import (
    GroupLoss,
    LevelLoss,
    Loss,
    QueryLoss,
    RowLoss,
    ScalarLoss,
    ThresholdLoss,
    TwoClassLoss,
    VectorLoss,
)
from beeline.losses.groups import Evaluated
from beeline.losses.trees import TreeLoss
from beeline.query_measures import QUERY_MEASURES, QueryMeasure, RankedQueries, query_measure

__all__ = ["METRICS", "HeldOut", "Metric", "get_metric", "named_metric"]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out rows and what a model says of them.

    Attributes
    ----------
    labels
        Class numbers, or real targets; for sets of labels and for vectors a row of a matrix.
    z
        The scores, of shape (n_rows, n_outputs).
    weights
        A weight a row, or None.
    names
        The classes; None where labels are no classes.
    link
        How scores become probabilities, or the values of a regression.
    loss
        The loss of all scores of a row together, or of each by itself; or of the rows of a group, or of all rows.
    groups
        The number of each row's group, the rows of a group lying together; None where rows are by themselves.
    queries
        The query of each row, by any name, for measures of rankings; None where there are none.
    """

    labels: AnyArray
    z: Floats
    weights: Floats | None
    names: AnyArray | None
    link: Link
    loss: Loss | None = None
    groups: Ints | None = None
    queries: AnyArray | None = None

    @property
    def predicted(self) -> AnyArray:
        """The predicted class numbers or values; for sets of labels 0 and 1."""
        if self.names is not None:
            return class_numbers(self.z)
        if self.multilabel:
            return (self.z > 0).astype(np.int64)
        found = values(self.z, self.link)
        return found[:, 0] if found.shape[1] == 1 else found

    @property
    def multilabel(self) -> bool:
        """Whether the labels are sets."""
        return self.names is None and self.loss is not None and self.loss.labels in ("binary", "sets")

    @property
    def mean_loss(self) -> float:
        """The mean loss of the rows, or of their groups, by their weights."""
        if isinstance(self.loss, GroupLoss):
            found = self._by_group(self.loss)
            return float(np.average(found.values, weights=found.costs)) if len(found.values) else math.nan
        losses = self.losses
        return float(np.average(losses, weights=self.weights)) if len(losses) else math.nan

    @property
    def measured(self) -> float:
        """What the loss of all rows bounds, itself."""
        assert isinstance(self.loss, TwoClassLoss)
        weights = np.ones(len(self.z)) if self.weights is None else self.weights
        here = weights > 0
        signs: Floats = 2.0 * self.numbers[here].astype(np.float64) - 1.0
        return self.loss.measured(self.z[here, 0], signs, weights[here])

    def _by_group(self, loss: GroupLoss) -> Evaluated:
        single = isinstance(loss, LevelLoss) or self.z.shape[1] == 1
        z, y = (self._scores if single else self.z), np.asarray(self.labels, np.float64)
        starts = None if self.groups is None else group_starts(self.groups)
        labels = 2.0 * y - 1.0 if loss.labels == "binary" else y
        weights = np.ones(len(y)) if self.weights is None else self.weights
        return loss.within(starts).evaluated(np.ascontiguousarray(z), labels, weights)

    @property
    def losses(self) -> Floats:
        """The loss of each row: of all its scores together, or the sum over them."""
        z, y = self.z, np.asarray(self.labels, np.float64)
        if isinstance(self.loss, ThresholdLoss):
            return self.loss.value_and_grad(self._scores + self.loss.thresholds[0], y)[0]
        if isinstance(self.loss, VectorLoss):  # of two scores there is the difference
            return self.loss.class_loss.value_and_grad(z if z.shape[1] > 1 else np.hstack([-0.5 * z, 0.5 * z]), y)[0]
        assert isinstance(self.loss, RowLoss)
        if self.names is not None:
            y = np.where(self.numbers[:, None] == (np.arange(z.shape[1]) if z.shape[1] > 1 else 1), 1.0, -1.0)
        columns = zip(z.T, y.reshape(z.shape).T, strict=True)
        each = [self.loss.value_and_grad(np.ascontiguousarray(a), np.ascontiguousarray(b))[0] for a, b in columns]
        total: Floats = np.sum(each, axis=0)
        return total

    @property
    def _scores(self) -> Floats:
        """The single score of each row; of levels up to a shift."""
        return self.z[:, 0] if self.z.shape[1] == 1 else self.z[:, 1] - self.z[:, 0]

    @property
    def probabilities(self) -> Floats:
        """The probability of each class."""
        return probabilities(self.z, self.link)

    @property
    def table(self) -> Floats:
        """How much weight of which class was predicted as which."""
        assert self.names is not None
        return metrics.confusion(self.numbers, self.predicted, len(self.names), self.weights)

    @property
    def numbers(self) -> Ints:
        """The class number of each row."""
        return np.asarray(self.labels).astype(np.int64)


@dataclass(frozen=True)
class Metric:
    """A measure of held-out rows.

    Attributes
    ----------
    name
        What it is called.
    greater_is_better
        Its direction.
    measure
        From held-out rows to a number.
    needs
        What the task must have: `classes`, `two classes`, `probabilities`, `values`, `queries`, `two classes, or
        queries`, or a tree; empty: nothing.
    identity
        What tells it from others of the same name.
    """

    name: str
    greater_is_better: bool
    measure: Callable[[HeldOut], float] = field(repr=False)
    needs: str = ""
    identity: str = ""


def _f_beta(rows: HeldOut, beta: float) -> float:
    return metrics.f_beta(rows.table, beta, "binary" if len(rows.table) == 2 else "macro")


_TREE = "a loss over a tree of labels"


def _tree_loss(rows: HeldOut) -> float:
    assert rows.names is not None
    assert isinstance(rows.loss, TreeLoss)
    assert rows.loss.tree is not None
    return metrics.mean_cost(rows.table, rows.loss.tree.distances(rows.names.tolist()))


def _of_queries(measure: QueryMeasure) -> Metric:
    """A measure of rankings as a metric: its mean over the queries; precision and recall also without queries."""
    both = measure.name in ("precision", "recall")
    needs = _EITHER if both else "queries"
    return Metric(str(measure), True, lambda r: _at_k(r, measure) if r.queries is None else _ranked(r, measure), needs)


def _ranked(rows: HeldOut, measure: QueryMeasure) -> float:
    """The mean over the queries, wherever their rows lie."""
    assert rows.queries is not None
    order = np.argsort(rows.queries, kind="stable")
    weights = None if rows.weights is None else rows.weights[order]
    starts = group_starts(rows.queries[order])
    ranked = RankedQueries(np.asarray(rows.labels)[order], rows.z[order, 0], starts, weights)
    return ranked.mean(ranked.by_query(measure))


def _at_k(rows: HeldOut, measure: QueryMeasure) -> float:
    """Precision or recall at k over all rows of two classes."""
    assert measure.k is not None
    hits, of = metrics.hits_at(rows.numbers == 1, rows.z[:, 0], measure.k, rows.weights)
    if measure.name == "precision":
        return hits / measure.k
    return hits / of if of else math.nan


_EITHER = "two classes, or queries"
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", True, lambda r: metrics.accuracy(r.numbers, r.predicted, r.weights), "classes"),
        Metric("f1", True, lambda r: _f_beta(r, 1.0), "classes"),
        Metric("auc", True, lambda r: metrics.auc(r.numbers == 1, r.z[:, 0], r.weights), "two classes"),
        Metric("log_loss", False, lambda r: metrics.log_loss(r.numbers, r.probabilities, r.weights), "probabilities"),
        Metric("rmse", False, lambda r: metrics.rmse(r.labels, r.predicted, r.weights), "values"),
        Metric("mae", False, lambda r: metrics.mae(r.labels, r.predicted, r.weights), "values"),
        Metric("r2", True, lambda r: metrics.r2(r.labels, r.predicted, r.weights), "values"),
        Metric("loss", False, lambda r: r.mean_loss),
        Metric("tree_loss", False, _tree_loss, _TREE),
        Metric("balanced_error", False, lambda r: metrics.balanced_error(r.table), "classes"),
        Metric("level_mae", False, lambda r: metrics.level_mae(r.table), "classes"),
        Metric("quadratic_kappa", True, lambda r: metrics.quadratic_kappa(r.table), "classes"),
        *(
            _of_queries(QueryMeasure(name, k))
            for name, k in (("ndcg", None), ("ndcg", 10), ("map", None), ("mrr", None))
        ),
    )
}
_SPELLED = (*METRICS, "f2", "f0.5", *(name for name in QUERY_MEASURES if name not in METRICS))


def get_metric(
    metric: str | Callable[..., float] | None,
    n_classes: int | None,
    link: Link,
    loss: Loss | None = None,
    *,
    queries: bool = False,
) -> Metric:
    """The metric of that name, a scorer of scikit-learn's, or for None the usual one.

    That is accuracy as in the paper, the log loss where scores become probabilities, and for a regression the root of
    the mean squared error; but the loss itself where it asks for something else than the middle of the labels, as that
    of quantiles and of counts does, where mistakes have costs, and where a row has several labels or none; of a loss of
    two classes over all rows, and of one of queries, the measure that it bounds; of levels how many lie between.
    `queries` says whether rows belong to queries, without which rankings cannot be judged.
    """
    numbers = loss is None or loss.labels == "real"
    if isinstance(loss, TwoClassLoss):
        if metric is None:
            return METRICS.get(loss.measure) or Metric(loss.measure, True, lambda rows: rows.measured, "two classes")
        if loss.differences_only and metric in ("accuracy", "f1"):
            raise ParameterError(
                f"the metric {metric!r} goes by a threshold, which the loss {loss.name!r} leaves open while C is "
                "searched for; take auc, loss or the measure of the loss itself, which is meant where nothing is said",
                parameter="metric",
            )
    if metric is None and isinstance(loss, QueryLoss) and queries:
        metric = loss.measure
    if metric is None and isinstance(loss, LevelLoss):
        return METRICS["level_mae"]
    if metric is None:
        if n_classes is None:
            return METRICS["rmse" if loss is None or (numbers and _asks_for_the_middle(loss, link)) else "loss"]
        if link == "none" and _has_tree(loss):
            return METRICS["tree_loss"]
        mistakes_differ = getattr(loss, "costs", None) is not None
        return METRICS["loss" if mistakes_differ else "accuracy" if link == "none" else "log_loss"]
    found = named_metric(metric)
    _check_needs(found, n_classes, link, numbers, queries=queries, tree=_has_tree(loss))
    return found


def named_metric(metric: str | Callable[..., float]) -> Metric:
    """The metric of that name, or a scorer of scikit-learn's kind, for whatever task.

    `f2`, `f0.5` and other numbers are F_β; `NAME@K[:convention]` is as in `beeline.query_measures`.
    """
    if isinstance(metric, str):
        if metric in METRICS:
            return METRICS[metric]
        if (beta := re.fullmatch(r"f(\d+(?:\.\d+)?)", metric, re.ASCII)) and 0 < float(beta[1]) < math.inf:
            return Metric(metric, True, lambda rows: _f_beta(rows, float(beta[1])), "classes")
        if (of_queries := query_measure(metric)) is not None:
            return _of_queries(of_queries)
    return _scorer(metric)


def _asks_for_the_middle(loss: Loss, link: Link) -> bool:
    """Whether scores are values, and one that is too large costs what one does that is too small by as much."""
    if link != "none" or not isinstance(loss, ScalarLoss) or loss.n_extra(1):
        return False
    r = np.array([0.01, 0.3, 1.0, 5.0])
    above, below = (loss.value_and_grad(sign * r, np.zeros(len(r)))[0] for sign in (1, -1))
    return bool(np.allclose(above, below, rtol=1e-9))


def _has_tree(loss: Loss | None) -> bool:
    return isinstance(loss, TreeLoss) and loss.tree is not None


def _check_needs(
    metric: Metric, n_classes: int | None, link: Link, numbers: bool, *, queries: bool, tree: bool
) -> None:
    have = {""} | ({"classes"} if n_classes is not None else {"values"} if numbers else set())
    have |= {"two classes", _EITHER} if n_classes == 2 else set()
    have |= {"probabilities"} if n_classes is not None and link != "none" else set()
    have |= {_TREE} if tree else set()
    ranks = n_classes == 2 or (n_classes is None and numbers)
    have |= {"queries", _EITHER} if queries and ranks else set()
    if metric.needs in have:
        return
    if metric.needs == "queries" and ranks:
        raise ParameterError(
            f"the metric {metric.name!r} needs queries; give ",
            Argument("groups"),
            ", one a row, or data with query ids (qid:)",
            parameter="metric",
        )
    usable = [m.name for m in METRICS.values() if m.needs in have]
    raise ParameterError(
        f"the metric {metric.name!r} needs {metric.needs}, which this task does not have; take {', '.join(usable)} "
        "or a scorer of scikit-learn",
        parameter="metric",
    )


def _scorer(metric: str | Callable[..., float]) -> Metric:
    """A scorer of scikit-learn's kind: a name it knows, or a function of an estimator, rows and labels."""
    if isinstance(metric, str):
        from sklearn.metrics import get_scorer

        try:
            scorer, name = get_scorer(metric), metric
        except ValueError:
            raise ParameterError(
                f"there is no metric {quoted(metric)}; {offer(metric, _SPELLED, ' and the scorers of scikit-learn')}",
                parameter="metric",
            ) from None
        return Metric(name, True, lambda rows: _scored_by_name(name, scorer, rows))
    if not callable(metric):
        raise ParameterError(Argument("metric"), f" must be a name or a scorer, not {metric!r}")
    name = getattr(metric, "__name__", None) or repr(metric)
    return Metric(name, True, lambda rows: _scored(metric, rows), identity=_identity(metric))


def _identity(metric: Callable[..., float]) -> str:
    """What tells one function from another of the same name: what it does, as far as it can be seen."""
    code = getattr(metric, "__code__", None)
    if code is None:
        return repr(metric)
    held = [cell.cell_contents for cell in getattr(metric, "__closure__", None) or ()]
    seen = f"{_code_in_words(code)} {getattr(metric, '__defaults__', None)} {held}"
    return f"{metric.__module__}.{metric.__qualname__} {hashlib.sha256(seen.encode()).hexdigest()}"


def _code_in_words(code: CodeType) -> str:
    """What a function does; the same in every process, where neither addresses nor the order of a set are."""
    constants = [
        _code_in_words(const)
        if isinstance(const, CodeType)
        else repr(sorted(map(repr, const)) if isinstance(const, frozenset) else const)
        for const in code.co_consts
    ]
    return repr((code.co_code, code.co_names, constants))


def _scored_by_name(name: str, scorer: Callable[..., float], rows: HeldOut) -> float:
    """What a scorer of scikit-learn's own says; what it cannot judge is the wrong name for this task."""
    try:
        return _scored(scorer, rows)
    except (AttributeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ParameterError(f"the metric {name!r} does not fit this task: {reason}", parameter="metric") from None


def _scored(scorer: Callable[..., float], rows: HeldOut) -> float:
    """What the scorer says; the rows it sees are numbers of held-out rows, which the estimator has answers for."""
    from sklearn.metrics import make_scorer

    from beeline.selection.answers import estimator_of

    labels = rows.labels if rows.names is None else rows.names[rows.numbers]
    labels = (labels > 0).astype(np.int64) if rows.multilabel else labels
    places = np.arange(len(labels)).reshape(-1, 1)
    weights = {} if rows.weights is None else {"sample_weight": rows.weights}
    known = isinstance(scorer, type(make_scorer(max)).__mro__[1])
    more: dict[str, Any] = weights if known else {}
    if not known and rows.groups is not None and "groups" in inspect.signature(scorer).parameters:
        more = {"groups": rows.groups}
    score: Any = scorer(estimator_of(rows), places, labels, **more)
    score = float(score)
    return score if math.isfinite(score) else math.nan
