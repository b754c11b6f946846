"""From a model and rows with labels to measures, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from beeline import metrics
from beeline._numbers import as_seed
from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray, Floats
from beeline._words import shortened
from beeline.data.core.arrays import weights_of
from beeline.data.core.block import Block
from beeline.data.core.labels import LabelSets
from beeline.data.files.finding import names_files
from beeline.data.options import parse_size
from beeline.data.recipe.recipe import Recipe, no_labels
from beeline.evaluation.classes import ClassAnswers
from beeline.evaluation.evaluation import Evaluation
from beeline.evaluation.given import given_groups, given_labels, given_model, given_rows, part_of_column
from beeline.evaluation.label_sets import SetAnswers
from beeline.evaluation.label_trees import node_errors, tree_measures
from beeline.evaluation.paired import Comparison, RowPairs, compared
from beeline.evaluation.queries import QueryAnswers, measures_named, notes_about, ranks_queries
from beeline.evaluation.values import ValueAnswers
from beeline.exceptions import DataError, LabelError, ParameterError
from beeline.losses import LabelTree
from beeline.model.label_trees import label_tree_of
from beeline.model.levels import levels_of
from beeline.model.model import Model
from beeline.model.walk import Walk
from beeline.query_measures import QueryMeasure

__all__ = ["evaluate"]

_MEMORY = 64 << 20  # of rows at a time, where nothing is said
_SCORES = 256 << 20  # of scores of several classes, where nothing is said


def evaluate(  # noqa: PLR0913 — everything is given by its name
    model: Any,  # noqa: ANN401
    data: Any,  # noqa: ANN401
    y: Any = None,  # noqa: ANN401
    *,
    sample_weight: Any = None,  # noqa: ANN401
    groups: Any = None,  # noqa: ANN401
    positive: Any = None,  # noqa: ANN401
    measures: Sequence[str] | None = None,
    against: Any = None,  # noqa: ANN401
    seed: int = 0,
    memory: str | int | None = None,
    **options: Any,  # noqa: ANN401
) -> Evaluation:
    """Compare a model's predictions with labels.

    Two classes get accuracy, precision, recall, F1, the area under the ROC curve and average precision; several
    classes get the means of these over the classes, each against the rest, and each by itself in `per_class`; both
    get log loss where there are probabilities. Two classes also get the measure of all rows that the model was trained
    for; classes of a tree the mean length of the way to the predicted class, and precision, recall and F1 of classes
    with the nodes above them; levels in an order the mean number of levels to the predicted one, and quadratic kappa.
    Regressions get RMSE, MAE and R², quantile models pinball loss and coverage too, models of rates (Poisson, gamma,
    Tweedie, shares) deviance and D². Sets of labels get whole sets, and precision, recall and F1 of the labels. All of
    them count rows by their weights; those that scikit-learn has are the same there.

    Rows that belong to queries get measures of rankings too, each the mean over the queries: how the rows of a query
    are ordered by their scores, where their labels say how relevant they are (of two classes, the positive one is
    relevant). A model whose loss ranks gets these alone. `beeline.query_measures` says what becomes of ties, of queries
    without relevant rows and of weights.

    Several classes are ranked by their probabilities where the model has them, otherwise by their scores. Means over
    the classes leave out what is not defined: the ROC area of a class without rows.

    Parameters
    ----------
    model : Model, fitted estimator or path
        The model; also the name of its file.
    data : Dataset, path, list of paths, array, SciPy matrix, data frame or Arrow table
        The rows. Files and tables go through the model's recipe.
    y : array-like, default=None
        The labels, where the rows do not have them: of the same kind as the model's classes, or numbers; for sets of
        labels a matrix of 0 and 1.
    sample_weight : array-like, default=None
        The weights of the rows, where the rows do not have them.
    groups : array-like, default=None
        The queries of the rows, where the rows do not have them; those of a query lie together.
    positive : label, default=None
        Of two classes, the one that precision, recall, F1 and average precision are about. None: the larger, or the
        last in the alphabet.
    measures : list of str, default=None
        Measures of rankings, `NAME@K` or `NAME@K:convention`: `ndcg`, `mean_ndcg`, `map`, `mrr`, `precision`, `recall`.
        None: `ndcg@1`, `ndcg@5`, `ndcg@10`, `map` and `mrr`.
    against : Model, fitted estimator or path, default=None
        Another model, to say whether the difference between the two may be chance: query by query where there are
        queries; row by row elsewhere, for a single class or number a row. The rows are walked a second time.
    seed : int, default=0
        Of the tests with `against`.
    memory : int or str, default=None
        How much memory rows may take, and scores of several classes, half each; such as `400M`. None: 64 MB and 256 MB.
        Scores of several classes that do not fit are given up, and with them ROC areas and average precisions; `notes`
        says so. Scores of two classes take 8 bytes a row in any case.
    **options
        For files, the fields of `ReadOptions`, such as `label` and `weight`. `extra="ignore"` leaves out columns that
        the model does not know, also of frames and tables.

    Returns
    -------
    Evaluation
        The measures, and what they were taken from.

    Examples
    --------
    >>> import numpy as np
    >>> import beeline
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> model = beeline.LogisticRegression().fit(X[:100], X[:100, 0] > 0)
    >>> found = beeline.evaluate(model, X[100:], X[100:, 0] > 0)
    >>> found.measures["recall"] > 0.9
    True
    """
    trained = given_model(model)
    asked = _Asked(positive, measures_named(measures), measures is not None, as_seed(seed), against is not None)
    columns = given_labels(y), None if sample_weight is None else weights_of(sample_weight), given_groups(groups)
    other = None if against is None else given_model(against, "against")
    again = data.again(other) if isinstance(data, Walk) and other is not None else data
    answers = _walked(trained, data, columns, asked, memory, options)
    found = answers.evaluation()
    if other is None:
        return found
    theirs = _walked(other, again, columns, _same_positive(asked, trained, other), memory, options)
    return replace(found, against=_compared(found, answers, theirs, seed))


@dataclass(frozen=True)
class _Asked:
    """What is to be measured: by which positive class, how rankings, whether these are a must, and whether in pairs."""

    positive: object
    measures: tuple[QueryMeasure, ...]
    must_rank: bool
    seed: int
    pairs: bool


def _same_positive(asked: _Asked, model: Model, other: Model) -> _Asked:
    """What is asked of the other model: of two classes in another order, the same one is the positive."""
    if asked.positive is not None or not model.kind == other.kind == "binary":
        return asked
    positive = model.class_names[1]
    return replace(asked, positive=positive) if positive in other.class_names else asked


def _walked(
    model: Model,
    data: Any,  # noqa: ANN401
    columns: tuple[Any, Floats | None, Any],
    asked: _Asked,
    memory: str | int | None,
    options: dict[str, Any],
) -> _Answers:
    """All that a walk over the rows gathers."""
    rows, scores = (_MEMORY, _SCORES) if memory is None else (max(1, parse_size(memory) // 2),) * 2
    blocks, recipe, names = given_rows(model, data, options, rows)
    answers = _Answers(model, asked, scores)
    for block in blocks:
        answers.add(block, recipe(), *(part_of_column(column, answers.n_rows, block.n_rows) for column in columns))
    for name, column in zip(("y", "sample_weight", "groups"), columns, strict=True):
        if column is not None and len(column) != answers.n_rows:
            raise DataError(f"{name} has {len(column):,} entries, and there are {answers.n_rows:,} rows")
    if asked.must_rank and not answers.can_rank:
        raise ParameterError(
            f"measures of rankings need one score a row, and the model gives {model.n_outputs}; leave ",
            Argument("measures"),
            " out",
        )
    if (asked.must_rank or ranks_queries(model)) and answers.queries is None:
        from_files = isinstance(data, Walk) or names_files(data)
        where = (
            ("name the column that holds them by ", Argument("query")) if from_files else ("give ", Argument("groups"))
        )
        raise DataError(Sentence("the rows have no query ids, which measures of rankings need; ", *where))
    answers.query_names = names() if columns[2] is None else []
    return answers


def _compared(found: Evaluation, ours: _Answers, theirs: _Answers, seed: int) -> Comparison:
    """What a test says of two models on the same rows."""
    other = theirs.evaluation()
    if ours.n_rows != theirs.n_rows:
        raise DataError(
            f"the model takes {ours.n_rows:,} rows of the data and the other one {theirs.n_rows:,}, as their recipes "
            "treat missing values; give data without these"
        )
    if found.by_query is not None and other.by_query is not None:
        measures = other.by_query.measures
        return compared("query", dict(found.by_query.measures), dict(measures), found.by_query.weight, seed)
    one, two = ours.pairs, theirs.pairs
    if one is None or two is None or set(ours.model.class_names) != set(theirs.model.class_names):
        raise ParameterError(
            "the two models cannot be compared on these rows: both have to predict one of the same classes, or one "
            "number, or to rank the rows of queries",
            parameter="against",
        )
    both = [name for name in one.values if name in two.values]
    ours_by_row, theirs_by_row = ({name: np.concatenate(side.values[name]) for name in both} for side in (one, two))
    weights = np.concatenate(one.weights) if one.weights else None
    return compared("row", ours_by_row, theirs_by_row, weights, seed)


class _Answers:
    """Gathers labels and predictions block by block, in what the kind of the model needs."""

    def __init__(self, model: Model, asked: _Asked, memory: int) -> None:
        self.model, self.asked, self.n_rows = model, asked, 0
        self.queries: QueryAnswers | None = None
        self.query_names: list[str] = []
        self._ranks = ranks_queries(model)
        in_pairs = asked.pairs and not (
            self._ranks or model.multilabel or (model.classes is None and model.n_outputs > 1)
        )
        self.pairs = RowPairs(model) if in_pairs else None
        self._not_ranked: str | None = None
        self._weight: float | None = None
        number = self._positive = _positive_number(model, asked.positive)
        self._sets = SetAnswers(model) if model.multilabel else None
        self._classes = ClassAnswers(model, number, memory) if model.kind in ("binary", "multiclass") else None
        self._values = ValueAnswers(model) if model.classes is None and not self._ranks else None

    def add(
        self,
        block: Block,
        recipe: Recipe | None,
        y: Any,  # noqa: ANN401
        weights: Floats | None,
        queries: AnyArray | None,
    ) -> None:
        """Take a block into account; labels, weights and queries that are not given are the block's own."""
        labels: Any = block.labels if y is None else y
        texts = recipe if y is None else None
        weights = block.weights if weights is None else weights
        queries = block.queries if queries is None else queries
        z = self.model.scores(block)
        if self._sets is not None:
            self._sets.add(labels, z, weights, texts)
        else:
            self._check(labels, texts)
            if self._classes is not None:
                labels = self.model.label_numbers(labels, texts, self.n_rows)
                self._classes.add(labels, z, weights)
            else:
                labels = np.asarray(labels, np.float64)
            if self._values is not None:
                self._values.add(labels, z, weights)
            self._add_to_rankings(queries, labels, z, weights)
            if self.pairs is not None:
                self.pairs.add(labels, z, weights)
        self.n_rows += block.n_rows
        if weights is not None:
            self._weight = (self._weight or 0.0) + float(weights.sum())

    @property
    def can_rank(self) -> bool:
        """Whether a row has one score, the larger the better."""
        return self.model.kind in ("binary", "regression") and self.model.n_outputs == 1

    def _add_to_rankings(self, queries: AnyArray | None, labels: AnyArray, z: Floats, weights: Floats | None) -> None:
        """Take the rows of queries into account, where labels say how relevant they are."""
        if queries is None or self._not_ranked is not None or not self.can_rank:
            return
        sign = 1.0
        if self._classes is not None:
            labels, sign = (labels == self._positive).astype(np.float64), 1.0 if self._positive else -1.0
        self.queries = self.queries or QueryAnswers(self.asked.measures)
        try:
            self.queries.add(queries, labels, sign * z[:, 0], weights)
        except DataError as error:
            if self._ranks or self.asked.must_rank:
                raise
            self._not_ranked, self.queries = f"measures of rankings are left out: {error}", None

    def evaluation(self) -> Evaluation:
        """Everything that can be said now."""
        if not self.n_rows:
            raise DataError("the data have no rows")
        if self._weight is not None and not self._weight > 0:
            raise DataError("all weights are zero: there is nothing to measure")
        common: dict[str, Any] = {"kind": self.model.kind, "rows": self.n_rows, "weight": self._weight}
        common["classes"] = tuple(self.model.class_names)
        found = self._kind(common)
        notes = [] if self._not_ranked is None else [self._not_ranked]
        if self.queries is None:
            return replace(found, notes=(*found.notes, *notes))
        table = self.queries.table()
        if self.query_names:
            table = table._replace(query=np.array(self.query_names, object)[table.query])
        measures = found.measures | table.means()
        return replace(found, measures=measures, by_query=table, notes=(*found.notes, *notes_about(table)))

    def _kind(self, common: dict[str, Any]) -> Evaluation:
        """What is said of rows one by one."""
        if self._ranks:
            return Evaluation(**common, measures={})
        if self._sets is not None:
            per_label = self._sets.per_label()
            return Evaluation(**common, measures=self._sets.measures(per_label), per_class=per_label)
        if self._values is not None:
            values = self._values
            common |= {"measures": values.measures(), "residuals": values.residuals()}
            return Evaluation(**common, tau=values.tau, notes=tuple(values.notes()))
        assert self._classes is not None
        return Evaluation(**common, **self._of_classes(self._classes))

    def _of_classes(self, answers: ClassAnswers) -> dict[str, Any]:
        trained_for = answers.trained_for()
        ranking = answers.ranking()
        per_class, curves = ((), {}) if ranking is not None else answers.per_class()
        positive = self.model.class_names[answers.positive] if answers.is_binary else None
        if ranking is not None and positive is not None:
            curves = {positive: ranking.curve()}
        measures, tree, names = answers.measures(per_class, ranking), label_tree_of(self.model), self.model.class_names
        measures |= {name: value for name, value in trained_for.items() if name not in measures}
        return {
            "measures": measures | self._more_measures(answers.table, tree, names),
            "tree": () if tree is None else node_errors(answers.table, tree, names),
            "positive": positive,
            "confusion": answers.table,
            "per_class": per_class,
            "curves": curves,
            "calibration": answers.calibration(),
            "notes": tuple(answers.notes(self.n_rows)),
        }

    def _more_measures(self, table: Floats, tree: LabelTree | None, names: list[str]) -> dict[str, float]:
        """What is measured of mistakes that are near or far: of classes in a tree, and of levels."""
        if tree is not None:
            return tree_measures(table, tree, names)
        if levels_of(self.model) is None:
            return {}
        return {"level_mae": metrics.level_mae(table), "quadratic_kappa": metrics.quadratic_kappa(table)}

    def _check(self, labels: object, recipe: Recipe | None) -> None:
        """Raise where the labels are not of the kind that the model predicts."""
        if labels is None:
            raise no_labels(recipe, " to compare with")
        if isinstance(labels, LabelSets) or np.ndim(labels) > 1:  # type: ignore[arg-type]
            raise LabelError("the rows have sets of labels, and the model predicts a single one")
        if self.model.classes is not None:
            return
        if (recipe is not None and recipe.label_categories is not None) or np.asarray(labels).dtype.kind in "OU":
            raise LabelError("the labels are texts, and the model predicts numbers")
        if self.model.n_outputs > 1:
            raise LabelError(f"the rows have one label, and the model predicts {self.model.n_outputs} numbers a row")


def _positive_number(model: Model, positive: object) -> int:
    """The number of the class that the user names, by itself or as people write it."""
    if positive is None:
        return 1
    if model.kind != "binary":
        what = {"regression": "a regression", "multilabel": "sets of labels"}.get(model.kind, "more than two classes")
        each = "; each class is measured against the rest anyway" if model.kind == "multiclass" else ""
        raise ParameterError(Argument("positive"), f" has no meaning for {what}; leave it out{each}")
    assert model.classes is not None
    for number, (label, name) in enumerate(zip(model.classes.tolist(), model.class_names, strict=True)):
        if positive in (label, name):
            return number
    raise ParameterError(Argument("positive"), f" must be one of {shortened(model.class_names)}, not {positive!r}")
