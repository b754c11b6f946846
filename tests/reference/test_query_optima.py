"""Certificates of losses within queries against optima by CVXPY, from all orders of small queries and from all pairs.

The max-margin losses are written down as what they are: the largest of as many planes as there are orders.
"""

from __future__ import annotations

from itertools import permutations

import cvxpy as cp
import numpy as np
import pytest
from query_twins import average_precision, best_order, ndcg, reciprocal_rank, utility

import beeline
from beeline.engines import Threads
from beeline.losses import get_loss
from beeline.objective import Objective
from beeline.regularizers import L1, L2
from beeline.solvers.auto import SOLVERS
from beeline.solvers.base import Status

CASES = [("ndcg", {}), ("ndcg", {"k": 2}), ("rank_utility", {"half_life": 2.0}), ("map", {}), ("mrr", {})]
CASES += [(name, {}) for name in ("pairwise_hinge", "pairwise_logistic", "listnet")]
SIZES = [4, 1, 3, 4, 2, 4, 4, 3, 1, 4]
STARTS = np.append(0, np.cumsum(SIZES))
RANDOM = np.random.default_rng(21)
X = np.round(RANDOM.normal(size=(STARTS[-1], 3)), 1)  # some rows are the same in a feature
Y = RANDOM.choice([0.0, 0.0, 0.5, 1.0, 2.0], STARTS[-1])
COSTS = RANDOM.choice([0.0, 0.7, 2.0], len(SIZES), p=[0.1, 0.4, 0.5])


def by_places(y, gains, measure):
    """(the slopes, the constant) of every order: gains of the best order times scores at places."""
    weights, best = gains[best_order(y)] / gains.sum(), best_order(y)
    for order in map(np.array, permutations(range(len(y)))):
        slopes = np.zeros(len(y))
        slopes[order] += weights
        slopes[best] -= weights
        yield slopes, 1 - measure(y, order)


def by_pairs_out_of_order(y):
    relevant = y > 0
    pairs = [(i, j) for i in np.flatnonzero(relevant) for j in np.flatnonzero(~relevant)]
    for order in map(np.array, permutations(range(len(y)))):
        place, slopes = np.argsort(order), np.zeros(len(y))
        for i, j in pairs:
            if place[j] < place[i]:
                slopes[j] += 1 / len(pairs)
                slopes[i] -= 1 / len(pairs)
        yield slopes, 1 - average_precision(y, order)


def by_first_places(y):
    relevant = y > 0
    m = int(relevant.sum())
    for order in map(np.array, permutations(range(len(y)))):
        slopes = np.where(relevant, -1 / m, 0.0)
        slopes[order[:m]] += 1 / m
        yield slopes, 1 - reciprocal_rank(y, order)


def planes(name, setting, y):
    if name == "ndcg":
        return by_places(y, 2.0**y - 1, lambda y, order: ndcg(y, order, **setting))
    if name == "rank_utility":
        return by_places(y, y, lambda y, order: utility(y, order, **setting))
    return {"map": by_pairs_out_of_order, "mrr": by_first_places}[name](y)


def of_query(name, setting, y, z):
    """The loss of a query as CVXPY has it; z are its scores."""
    relevant = y > 0
    if len(set(y)) < 2 or (name in ("map", "mrr") and (relevant.all() or not relevant.any())):
        return 0
    if name == "listnet":
        p = np.exp(y) / np.exp(y).sum()
        return cp.log_sum_exp(z) - p @ z + float(p @ np.log(p))
    if name.startswith("pairwise"):
        i, j = np.nonzero(y[:, None] > y)
        d = z[i] - z[j]
        return cp.sum(cp.pos(1 - d) if name.endswith("hinge") else cp.logistic(-d)) / len(i)
    slopes, constants = zip(*planes(name, setting, y), strict=True)
    return cp.max(np.array(slopes) @ z + np.array(constants))


def optimum(name, setting, omega, costs):
    w = cp.Variable(X.shape[1])
    terms = [
        cost * of_query(name, setting, Y[begin:end], X[begin:end] @ w)
        for cost, begin, end in zip(costs, STARTS[:-1], STARTS[1:], strict=True)
    ]
    penalty = cp.sum_squares(w) / 2 if isinstance(omega, L2) else cp.norm1(w)
    problem = cp.Problem(cp.Minimize(penalty + sum(terms)))
    return problem.solve("CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)


@pytest.mark.parametrize("omega", [L2(), L1()], ids=["l2", "l1"])
@pytest.mark.parametrize(("name", "setting"), CASES)
def test_certificates_bound_the_optimum(name, setting, omega):
    costs = (1.0 if isinstance(omega, L2) else 10.0) * COSTS
    best = optimum(name, setting, omega, costs)
    rows = Threads(n_shards=2).open(beeline.from_arrays(X), STARTS)
    loss = get_loss(name, **setting)
    c = np.repeat(costs, SIZES)
    o = Objective(rows, rows.scatter(Y), rows.scatter(c), loss, omega, 1.0, "none")
    for solver in ("lbfgs", "bundle") if loss.smooth else ("bundle",):
        for tol in (1e-1, 1e-5):
            result = SOLVERS[solver](tol=tol).run(o)
            assert result.status is Status.CONVERGED
            assert result.bound <= best * (1 + 1e-7)
            assert best * (1 - 1e-7) <= result.objective <= best * (1 + tol + 1e-7)
    assert best < 0.97 * o.at(np.zeros(o.size)).value  # there was something to learn
