"""Measures of rankings: against all orders of small queries, by their definitions, and what is odd."""

from __future__ import annotations

from itertools import pairwise, permutations
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beeline.exceptions import DataError, ParameterError
from beeline.query_measures import QUERY_MEASURES, QueryMeasure, RankedQueries, query_measure

SPELLED = [
    *("ndcg", "ndcg@1", "ndcg@3", "ndcg@2:linear", "ndcg@3:letor4", "ndcg:letor4"),
    *("mean_ndcg:letor4", "mean_ndcg", "mean_ndcg:linear"),
    *("map", "map@2", "mrr", "mrr@2", "precision@1", "precision@3", "precision@9", "recall@1", "recall@3"),
]


def of_order(y, text):
    """The measure of documents in this order, by its definition."""
    m, n = query_measure(text), len(y)
    relevant = [grade > 0 for grade in y]
    k = min(n, m.k or n)
    if m.name == "mean_ndcg":
        return float(np.mean([of_order(y, str(QueryMeasure("ndcg", i, m.convention))) for i in range(1, n + 1)]))
    if m.name == "ndcg":
        if m.convention == "letor4" and m.k is not None and n < m.k:
            return 0.0
        found, best = (dcg(grades, k, m.convention) for grades in (y, sorted(y, reverse=True)))
        return found / best if best else 0.0
    if m.name == "map":
        hits = [sum(relevant[: i + 1]) / (i + 1) for i in range(k) if relevant[i]]
        return sum(hits) / sum(relevant) if any(relevant) else 0.0
    if m.name == "mrr":
        return next((1 / (i + 1) for i in range(k) if relevant[i]), 0.0)
    among = m.k if m.name == "precision" else sum(relevant)
    return sum(relevant[:k]) / among if among else 0.0


def dcg(grades, k, convention):
    total = 0.0
    for place, y in enumerate(grades[:k], start=1):
        gain = y if convention == "linear" else 2**y - 1
        discount = log2(place + 1) if convention != "letor4" else 1.0 if place < 3 else log2(place)
        total += gain / discount
    return total


def of_query(y, z, text):
    """The mean over all orders in which no document stands before one with a larger score."""
    orders = [p for p in permutations(range(len(y))) if all(z[a] >= z[b] for a, b in pairwise(p))]
    return float(np.mean([of_order([y[i] for i in p], text) for p in orders]))


documents = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=5)


@settings(max_examples=60)
@given(st.lists(documents, min_size=1, max_size=4))
def test_all_orders_of_small_queries(queries):
    starts = np.append(0, np.cumsum([len(q) for q in queries]))
    y, z = (np.array([d[side] for q in queries for d in q], float) for side in (0, 1))
    ranked = RankedQueries(y, z, starts)
    for text in SPELLED:
        expected = [of_query([d[0] for d in q], [d[1] for d in q], text) for q in queries]
        np.testing.assert_allclose(ranked.by_query(query_measure(text)), expected, atol=1e-12, err_msg=text)


@pytest.mark.parametrize("text", SPELLED)
def test_the_order_of_rows_does_not_matter_and_absent_rows_neither(text):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 40, 200)
    starts = np.append(0, np.cumsum(sizes))
    y, z = rng.integers(0, 4, starts[-1]).astype(float), rng.integers(0, 12, starts[-1]).astype(float)
    found = RankedQueries(y, z, starts).by_query(query_measure(text))
    assert ((found >= 0) & (found <= 1)).all()
    shuffled = np.concatenate([rng.permutation(np.arange(a, b)) for a, b in pairwise(starts)])
    again = RankedQueries(y[shuffled], z[shuffled], starts).by_query(query_measure(text))
    np.testing.assert_allclose(again, found, rtol=1e-12)
    # The same queries with rows of weight 0 among them, and a query of such rows alone.
    q = np.repeat(np.arange(201), np.append(sizes, 7))
    y, z, c = np.append(y, np.ones(7)), np.append(z, np.ones(7)), np.repeat([1.0, 0.0], [starts[-1], 7])
    extra = rng.choice(starts[-1], 50)
    q, y, z, c = (np.append(a, b) for a, b in ((q, q[extra]), (y, y[extra]), (z, z[extra]), (c, np.zeros(50))))
    order = np.argsort(q, kind="stable")
    ranked = RankedQueries(y[order], z[order], np.searchsorted(q[order], np.arange(202)), c[order])
    assert ranked.present.tolist() == list(range(200))
    np.testing.assert_array_equal(ranked.by_query(query_measure(text)), found)


def test_queries_have_the_mean_weight_of_their_rows():
    ranked = RankedQueries([1, 0, 0, 1], np.array([2.0, 1, 2, 1]), np.array([0, 2, 4]), np.array([1.0, 3, 5, 7]))
    assert ranked.weights.tolist() == [2, 6]
    values = ranked.by_query(query_measure("mrr"))
    assert values.tolist() == [1, 0.5]
    assert ranked.mean(values) == (2 * 1 + 6 * 0.5) / 8


def test_a_query_twice_is_a_query_of_twice_the_weight():
    rng = np.random.default_rng(1)
    y, z = rng.integers(0, 3, 12).astype(float), rng.standard_normal(12)
    weighted = RankedQueries(y, z, np.array([0, 5, 12]), np.repeat([2.0, 1.0], [5, 7]))
    rows = np.concatenate([np.arange(5), np.arange(5), np.arange(5, 12)])
    repeated = RankedQueries(y[rows], z[rows], np.array([0, 5, 10, 17]))
    for text in SPELLED:
        m = query_measure(text)
        assert weighted.mean(weighted.by_query(m)) == pytest.approx(repeated.mean(repeated.by_query(m)), rel=1e-14)


def test_queries_without_relevant_documents_count_zero_and_are_counted():
    ranked = RankedQueries([0, 0, 1, 0], np.array([2.0, 1, 2, 1]), np.array([0, 2, 4]))
    assert (ranked.n_without, len(ranked)) == (1, 2)
    for text in SPELLED:
        assert ranked.by_query(query_measure(text))[0] == 0


def test_no_queries():
    ranked = RankedQueries([], np.zeros(0), np.array([0]))
    assert len(ranked) == 0
    for text in SPELLED:
        values = ranked.by_query(query_measure(text))
        assert len(values) == 0
        assert np.isnan(ranked.mean(values))


def test_letor_has_its_own_places_and_short_queries():
    ranked = RankedQueries([0, 2, 1], np.array([3.0, 2, 1]), np.array([0, 3]))
    (found,) = ranked.by_query(query_measure("ndcg@3:letor4"))
    assert found == pytest.approx((0 + 3 + 1 / log2(3)) / (3 + 1 + 0))
    assert ranked.by_query(query_measure("ndcg@4:letor4")).tolist() == [0]
    assert ranked.by_query(query_measure("ndcg@4"))[0] > 0


@pytest.mark.parametrize("text", SPELLED)
def test_spelling_goes_there_and_back(text):
    assert str(query_measure(text)) == text


def test_the_usual_gain_needs_no_name():
    assert query_measure("ndcg@10:exponential") == query_measure("ndcg@10") == QueryMeasure("ndcg", 10)


@pytest.mark.parametrize("text", ["precision", "recall", "accuracy", "f1", "precision_macro", "", "@3"])
def test_names_of_other_measures(text):
    assert query_measure(text) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndcg@0", "'ndcg@0': what stands behind @ is how many documents are looked at, a whole number from 1"),
        ("ndcg@", "a whole number from 1"),
        ("precision@-1", "a whole number from 1"),
        ("map@2.5", "a whole number from 1"),
        ("ndcg@²", "a whole number from 1"),
        ("mean_ndcg@3", "over all documents of a query; leave @ out"),
        ("ndcg@3:leto4", "stands exponential, linear or letor4, for ndcg and mean_ndcg; did you mean 'letor4'"),
        ("ndcg:", "stands exponential"),
        ("map:linear", "for ndcg and mean_ndcg"),
    ],
)
def test_what_is_misspelt(text, message):
    with pytest.raises(ParameterError, match=message) as caught:
        query_measure(text, "measures")
    assert caught.value.parameter == "measures"


@pytest.mark.parametrize(("grade", "what"), [(-1.0, "-1, which is negative"), (1e4, "10000, which is beyond 500")])
def test_relevance(grade, what):
    with pytest.raises(DataError, match=f"row 12 has the relevance {what}; measures of rankings need numbers from 0"):
        RankedQueries([0, 1, grade], np.zeros(3), np.array([0, 3]), first_row=10)


def test_every_measure_is_tested():
    assert {query_measure(text).name for text in SPELLED} == set(QUERY_MEASURES)
