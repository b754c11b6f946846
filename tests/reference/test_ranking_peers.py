"""Measures of rankings against those of scikit-learn, trec_eval (through ir-measures) and ranx."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

from beeline.query_measures import RankedQueries, query_measure

RNG = np.random.default_rng(7)
SIZES = RNG.integers(1, 30, 40)
STARTS = np.append(0, np.cumsum(SIZES))
QUERIES = np.repeat(np.arange(40), SIZES)
Y = RNG.integers(0, 5, STARTS[-1]) * (RNG.random(STARTS[-1]) < 0.4)
Z = RNG.permutation(STARTS[-1]).astype(float)

# The means of ir-measures 0.4 (trec_eval 9) and ranx 0.3 over these queries; two of them have no relevant document.
RECORDED = {
    "ndcg@10": 0.3862763060636462,  # ranx's ndcg_burges
    "ndcg@10:linear": 0.4159417748118551,
    "ndcg:linear": 0.5531742873466728,
    "map": 0.422884600136623,
    "map@5": 0.19098708004958004,
    "mrr": 0.5400595238095238,
    "mrr@3": 0.4958333333333333,
    "precision@5": 0.3,
    "recall@5": 0.3149209124209124,
}


def ranked(z=Z):
    return RankedQueries(Y, z, STARTS)


def each_query(z):
    return [(Y[a:b], z[a:b]) for a, b in pairwise(STARTS)]


@pytest.mark.parametrize("z", [Z, np.floor(Z / 60), np.zeros(len(Z))], ids=["distinct", "some ties", "all tied"])
@pytest.mark.parametrize("k", [1, 5, 10, None])
def test_ndcg_is_that_of_scikit_learn_with_ties_too(z, k):
    at = "" if k is None else f"@{k}"
    for text, gain in ((f"ndcg{at}:linear", lambda y: y), (f"ndcg{at}", lambda y: 2.0**y - 1)):
        found = ranked(z).by_query(query_measure(text))
        for value, (y, scores) in zip(found, each_query(z), strict=True):
            if len(y) > 1:  # of a single document scikit-learn's is undefined
                assert value == pytest.approx(ndcg_score([gain(y)], [scores], k=k), abs=1e-12)


def test_average_precision_is_that_of_scikit_learn():
    found = ranked().by_query(query_measure("map"))
    for value, (y, scores) in zip(found, each_query(Z), strict=True):
        if y.any():
            assert value == pytest.approx(average_precision_score(y > 0, scores), abs=1e-12)


@pytest.mark.parametrize("text", RECORDED)
def test_means_that_other_tools_gave(text):
    queries = ranked()
    assert queries.n_without == 2
    assert queries.mean(queries.by_query(query_measure(text))) == pytest.approx(RECORDED[text], abs=1e-12)


@pytest.mark.parametrize("text", [name for name in RECORDED if name != "ndcg@10"])
def test_every_query_against_trec_eval(text):
    theirs = pytest.importorskip("ir_measures", reason="ir-measures, which runs trec_eval, is not installed")
    measure = query_measure(text)
    kind = {"ndcg": "nDCG", "map": "AP", "mrr": "RR", "precision": "P", "recall": "R"}[measure.name]
    metric = theirs.parse_measure(kind + ("" if measure.k is None else f"@{measure.k}"))
    rows = [(str(q), str(i)) for i, q in enumerate(QUERIES)]
    judged = [theirs.Qrel(*row, int(y)) for row, y in zip(rows, Y, strict=True)]
    run = [theirs.ScoredDoc(*row, float(z)) for row, z in zip(rows, Z, strict=True)]
    expected = {found.query_id: found.value for found in theirs.iter_calc([metric], judged, run)}
    found = ranked().by_query(measure)
    assert {str(q): value for q, value in enumerate(found)} == pytest.approx(expected, abs=1e-12)
