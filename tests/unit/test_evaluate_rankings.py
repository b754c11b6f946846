"""`beeline.evaluate` on rows of queries, and two models against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

import beeline
from beeline import Block, LinearModel, LogisticRegression, evaluate
from beeline.data.core.dataset import ArrayDataset
from beeline.evaluation.paired import compared
from beeline.evaluation.queries import QueryAnswers, measures_named
from beeline.exceptions import DataError, ParameterError
from beeline.query_measures import RankedQueries, query_measure

RNG = np.random.default_rng(0)
SIZES = RNG.integers(1, 12, 40)
STARTS = np.append(0, np.cumsum(SIZES))
QUERIES = np.repeat(RNG.permutation(1000)[:40], SIZES)
N = len(QUERIES)
X = RNG.standard_normal((N, 4))
Y = np.clip(np.round(X[:, 0] + RNG.standard_normal(N)), 0, 3)
WEIGHTS = np.repeat(RNG.integers(0, 3, 40) * 0.5, SIZES)
MODEL = LinearModel("squared").fit(X, Y)
OTHER = LinearModel("squared").fit(X[:, :1] * [1, 0, 0, 0] + X * 0.01, -Y)
NAMES = ["ndcg@3", "ndcg@5:letor4", "mean_ndcg:letor4", "map", "mrr", "precision@2", "recall@2"]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("memory", [None, 2, 700], ids=["whole", "row by row", "in blocks"])
def test_means_over_the_queries(weights, memory):
    data = ArrayDataset(Block(X, 4, labels=Y, weights=weights, queries=QUERIES))
    found = evaluate(MODEL, data, measures=NAMES, memory=memory)
    ranked = RankedQueries(Y, MODEL.predict(X), STARTS, weights)
    assert list(found.measures) == ["rmse", "mae", "r2", *NAMES]
    assert found.by_query.query.tolist() == [
        q for q, c in zip(QUERIES[STARTS[:-1]], ranked_weights(weights), strict=True) if c
    ]
    assert found.by_query.rows.tolist() == ranked.sizes.tolist()
    for name in NAMES:
        values = ranked.by_query(query_measure(name))
        np.testing.assert_array_equal(found.by_query.measures[name], values)
        assert found.measures[name] == pytest.approx(ranked.mean(values), rel=1e-14)
    assert found.to_json()["queries"] == {"count": len(ranked), "without_relevant": ranked.n_without}
    said = f"{ranked.n_without} queries have no relevant row, and count 0 in every mean"
    assert [note for note in found.notes if "no relevant row" in note] == [said]


def ranked_weights(weights):
    return np.ones(40) if weights is None else weights[STARTS[:-1]]


def test_queries_given_beside_the_rows():
    inside = evaluate(MODEL, ArrayDataset(Block(X, 4, labels=Y, queries=QUERIES)))
    beside = evaluate(MODEL, X, Y, groups=QUERIES.astype(str))
    assert inside.measures == beside.measures
    assert beside.by_query.query[0] == str(QUERIES[0])
    assert list(inside.measures)[3:] == ["ndcg@1", "ndcg@5", "ndcg@10", "map", "mrr"]
    assert "queries" not in evaluate(MODEL, X, Y).measures
    assert evaluate(MODEL, X, Y).by_query is None


@pytest.mark.parametrize("positive", [True, False])
def test_of_two_classes_the_positive_one_is_relevant(positive):
    y = Y > 1
    model = LogisticRegression().fit(X, y)
    found = evaluate(model, X, y, groups=QUERIES, positive=positive)
    z = model.decision_function(X) * (1 if positive else -1)
    ranked = RankedQueries(y == positive, z, STARTS)
    assert found.measures["map"] == pytest.approx(ranked.mean(ranked.by_query(query_measure("map"))))


def test_labels_that_are_no_relevance():
    found = evaluate(MODEL, X, Y - 1, groups=QUERIES)
    row = int(np.argmax(Y == 0))
    assert found.by_query is None
    assert f"measures of rankings are left out: row {row} has the relevance -1, which is negative" in found.notes[0]
    with pytest.raises(DataError, match=f"row {row} has the relevance -1, which is negative"):
        evaluate(MODEL, X, Y - 1, groups=QUERIES, measures=["map"])


def test_a_query_in_two_places():
    queries = QUERIES.copy()
    queries[-1] = queries[0]
    with pytest.raises(DataError, match=f"row {N - 1} goes on with the query {queries[0]}, which had ended before"):
        evaluate(MODEL, X, Y, groups=queries, measures=["map"])


def test_rankings_without_queries():
    with pytest.raises(DataError, match="the rows have no query ids, which measures of rankings need; give groups"):
        evaluate(MODEL, X, Y, measures=["ndcg@3"])


@pytest.mark.parametrize("measures", [["ndgc@3"], ["accuracy"], "precision"])
def test_measures_that_there_are_not(measures):
    with pytest.raises(ParameterError, match=r"there is no measure of rankings '.*'; there are ndcg@K, mean_ndcg, map"):
        evaluate(MODEL, X, Y, groups=QUERIES, measures=measures)


def test_several_scores_a_row_are_no_ranking():
    three = LogisticRegression().fit(X, np.minimum(Y, 2))
    assert evaluate(three, X, np.minimum(Y, 2), groups=QUERIES).by_query is None
    with pytest.raises(ParameterError, match="need one score a row, and the model gives 3; leave measures out"):
        evaluate(three, X, np.minimum(Y, 2), groups=QUERIES, measures=["map"])


def test_groups_of_another_length():
    with pytest.raises(DataError, match="there are 5 labels or weights, and more rows"):
        evaluate(MODEL, X, Y, groups=QUERIES[:5])


@pytest.mark.parametrize("seed", range(5))
def test_however_rows_come(seed):
    """Blocks of any sizes, among them empty ones: the same queries, and the same row in errors."""
    random = np.random.default_rng(seed)
    cuts = np.sort(random.integers(0, N + 1, 30))

    def table_of(y):
        answers = QueryAnswers(measures_named(["map"]))
        for rows in np.split(np.arange(N), cuts):
            answers.add(QUERIES[rows], y[rows], X[rows, 0], None)
        return answers.table()

    expected = RankedQueries(Y, X[:, 0], STARTS).by_query(query_measure("map"))
    np.testing.assert_array_equal(table_of(Y).measures["map"], expected)
    with pytest.raises(DataError, match="row 37 has the relevance -2"):
        table_of(np.where(np.arange(N) == 37, -2.0, Y))


def test_no_query_has_a_weight():
    answers = QueryAnswers(measures_named(None))
    assert all(math.isnan(mean) for mean in answers.table().means().values())


# Two models


def test_the_same_model_is_no_better():
    found = evaluate(MODEL, X, Y, groups=QUERIES, against=MODEL)
    for one in found.against.differences:
        assert (one.difference, one.low, one.high, one.p) == (0, 0, 0, 1)


def test_queries_are_compared_where_there_are_any_and_rows_elsewhere():
    by_query = evaluate(MODEL, X, Y, groups=QUERIES, against=OTHER)
    assert (by_query.against.unit, by_query.against.pairs) == ("query", 40)
    for one in by_query.against.differences:
        assert one.model == pytest.approx(by_query.measures[one.measure])
        assert one.other == pytest.approx(evaluate(OTHER, X, Y, groups=QUERIES).measures[one.measure])
        assert one.low < one.difference < one.high
        assert one.low > 0
        assert one.p < 0.01
    by_row = evaluate(MODEL, X, Y, against=OTHER).against
    assert (by_row.unit, by_row.pairs) == ("row", N)
    assert [one.measure for one in by_row.differences] == ["mse", "mae"]
    assert by_row.differences[0].model == pytest.approx(np.mean((Y - MODEL.predict(X)) ** 2))
    assert "randomisation test that swaps the models within each row; 10,000 times each, seed 0" in by_row.method


def test_classifiers_are_compared_by_their_hits_and_probabilities():
    y = np.array(["no", "yes"])[(Y > 1).astype(int)]
    model, other = (LogisticRegression(C=C).fit(X, y) for C in (1.0, 0.05))
    found = evaluate(model, X, y, against=other, sample_weight=WEIGHTS).against
    weighted = evaluate(model, X, y, sample_weight=WEIGHTS).measures
    assert [one.measure for one in found.differences] == ["accuracy", "log_loss"]
    assert [one.model for one in found.differences] == pytest.approx([weighted["accuracy"], weighted["log_loss"]])
    assert found.pairs == np.count_nonzero(WEIGHTS)


def test_models_that_cannot_be_compared():
    y = Y > 1
    with pytest.raises(ParameterError, match="both have to predict one of the same classes, or one number"):
        evaluate(LogisticRegression().fit(X, y), X, y, against=LogisticRegression().fit(X, Y))


def test_what_is_drawn_follows_from_the_seed():
    one, two, other = (evaluate(MODEL, X, Y, groups=QUERIES, against=OTHER, seed=seed).against for seed in (1, 1, 2))
    assert one == two
    assert one.differences[0].low != other.differences[0].low
    with pytest.raises(ParameterError, match="seed must not be negative"):
        evaluate(MODEL, X, Y, against=OTHER, seed=-1)


def test_p_is_that_of_all_changes_of_signs():
    d = np.array([0.3, 0.1, -0.2, 0.5, 0.25, 0.4, -0.05, 0.15])
    signs = 1 - 2 * np.array(np.meshgrid(*[[0, 1]] * 8)).reshape(8, -1)
    exact = np.mean(np.abs(d @ signs) >= d.sum() - 1e-12)
    (found,) = compared("query", {"map": d}, {"map": np.zeros(8)}, None, 0).differences
    assert found.p == pytest.approx(exact, abs=4 * np.sqrt(exact / 10_000))


def test_p_of_equal_models_is_uniform():
    random = np.random.default_rng(5)
    p = [
        compared("query", {"map": random.standard_normal(30)}, {"map": random.standard_normal(30)}, None, k)
        .differences[0]
        .p
        for k in range(40)
    ]
    assert 0.3 < np.mean(p) < 0.7
    assert np.mean(np.array(p) < 0.05) < 0.2


def test_intervals_are_those_of_the_mean():
    random = np.random.default_rng(6)
    d = 0.2 + random.standard_normal(2000)
    weights = random.integers(0, 3, 2000).astype(float)
    (found,) = compared("row", {"mse": d}, {"mse": np.zeros(2000)}, weights, 0).differences
    kept, c = d[weights > 0], weights[weights > 0]
    mean = np.average(kept, weights=c)
    error = np.sqrt(np.sum(c**2 * (kept - mean) ** 2)) / c.sum()
    assert found.difference == pytest.approx(mean)
    assert [found.low, found.high] == pytest.approx([mean - 1.96 * error, mean + 1.96 * error], abs=0.1 * error)
    assert found.p == pytest.approx(2 * norm.sf(mean / error), abs=2e-3)


def test_many_pairs_go_by_the_normal_distribution():
    random = np.random.default_rng(7)
    d = 0.01 + random.standard_normal(20_000)
    found = compared("row", {"mse": d}, {"mse": np.zeros(20_000)}, None, 0)
    (one,) = found.differences
    error = d.std() / np.sqrt(20_000)
    assert [one.low, one.high] == pytest.approx([d.mean() - 1.96 * error, d.mean() + 1.96 * error], rel=1e-3)
    assert one.p == pytest.approx(2 * norm.sf(abs(d.mean()) / error), rel=1e-6)
    assert found.method == (
        "95 % intervals and two-sided p by the normal distribution of the mean difference over the 20,000 rows, paired"
    )


def test_measures_in_words():
    from beeline.evaluation import measure_in_words

    told = [measure_in_words(name) for name in ("ndcg@10", "ndcg@10:letor4", "mean_ndcg:linear", "map", "auc_macro")]
    assert told == ["NDCG@10", "NDCG@10 (LETOR 4.0)", "mean NDCG (linear gain)", "MAP", "ROC area macro"]
    assert measure_in_words("average_precision_macro") == "average precision macro"
    assert [measure_in_words(name) for name in ("f1", "f1_macro", "f0.5")] == ["F1", "F1 macro", "F0.5"]


def test_a_loss_that_ranks_is_measured_by_rankings_alone(monkeypatch):
    from beeline.losses import LOSSES, GroupLoss

    class Pairs(GroupLoss):
        name = "pairs_of_a_query"

        def value_and_grad(self, z, y, weights):
            apart = y[:, None] - y
            p = np.where(apart > 0, np.exp(-np.logaddexp(0, z[:, None] - z)), 0.0)
            values = np.where(apart > 0, np.logaddexp(0, z - z[:, None]), 0.0)
            return float(values.sum()), p.sum(axis=0) - p.sum(axis=1)

    model = LinearModel(Pairs(), fit_intercept=False).fit(X, Y, groups=QUERIES)
    monkeypatch.setitem(LOSSES, Pairs.name, Pairs)
    found = beeline.evaluate(model, X, Y, groups=QUERIES)
    assert list(found.measures) == ["ndcg@1", "ndcg@5", "ndcg@10", "map", "mrr"]
    assert found.residuals is None
    with pytest.raises(DataError, match="the rows have no query ids"):
        evaluate(model, X, Y)
    against = evaluate(model, X, Y, groups=QUERIES, against=MODEL)
    assert against.against.unit == "query"


def test_queries_shorter_than_k_are_told_where_that_matters():
    y, z = np.array([1.0, 0, 0, 1, 0, 1]), np.arange(6.0)[:, None]
    model = LinearModel("squared").fit(z, y).model_
    data = ArrayDataset(Block(z, 1, labels=y, queries=np.array([1, 1, 2, 2, 2, 3])))
    notes = evaluate(model, data, measures=["ndcg@3", "ndcg@3:letor4", "precision@2"]).notes
    assert notes[-2:] == (
        "2 queries have relevant rows but fewer than 3 in all, and ndcg@3:letor4 is 0 there, as LETOR has it",
        "1 query has relevant rows but fewer than 2 in all, and precision@2 is divided by that all the same",
    )
