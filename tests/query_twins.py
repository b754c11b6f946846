"""Losses within queries as they are defined: by all orders of a query's documents, or by all pairs."""

from __future__ import annotations

from itertools import permutations

import numpy as np

__all__ = ["TWINS", "average_precision", "best_order", "ndcg", "reciprocal_rank", "utility"]


def ndcg(y, order, k=None):
    """NDCG@k of documents in this order."""
    discounts = 1 / np.log2(np.arange(2, len(y) + 2)) * (np.arange(len(y)) < (k or len(y)))
    gains = 2.0**y - 1
    return float(discounts @ gains[order] / (discounts @ np.sort(gains)[::-1]))


def utility(y, order, half_life=5.0):
    """The expected rank utility over its largest value."""
    discounts = 2.0 ** (-np.arange(len(y)) / (half_life - 1))
    return float(discounts @ y[order] / (discounts @ np.sort(y)[::-1]))


def average_precision(y, order):
    """AP of documents in this order."""
    hits = y[order] > 0
    return float(np.mean((np.cumsum(hits) / np.arange(1, len(y) + 1))[hits]))


def reciprocal_rank(y, order):
    """One over the place of the first relevant document."""
    return 1.0 / (1 + int(np.argmax(y[order] > 0)))


def best_order(y):
    """An order by falling relevance."""
    return np.argsort(-y, kind="stable")


def _worst(z, y, score, measure):
    """max_π score(π) − score(σ) + 1 − measure(π) over all orders, where σ is the best one."""
    if len(set(y)) < 2:
        return 0.0
    least = score(best_order(y))
    return max(score(np.array(p)) - least + 1 - measure(np.array(p)) for p in permutations(range(len(y))))


def _by_places(z, y, weights, measure):
    """Scores at places, times what belongs there."""
    ideal = weights[best_order(y)] / max(weights.sum(), 1e-300)
    return _worst(z, y, lambda order: float(ideal @ z[order]), measure)


def _map(z, y):
    relevant = y > 0
    if relevant.all() or not relevant.any():
        return 0.0

    def score(order):
        place = np.argsort(order)
        i, j = np.nonzero(relevant[:, None] & ~relevant)
        return float(np.mean(np.where(place[j] < place[i], z[j] - z[i], 0.0)))

    return _worst(z, relevant.astype(float), score, lambda order: average_precision(y, order))


def _mrr(z, y):
    relevant = y > 0
    if relevant.all() or not relevant.any():
        return 0.0
    m = relevant.sum()
    return _worst(
        z, relevant.astype(float), lambda order: float(z[order[:m]].mean()), lambda order: reciprocal_rank(y, order)
    )


def _pairs(z, y, w, loss):
    i, j = np.nonzero(y[:, None] > y)
    return float(np.average(loss(z[i] - z[j]), weights=w[i] * w[j])) if len(i) else 0.0


def _listnet(z, y, w):
    if len(set(y)) < 2:
        return 0.0
    p, q = (w * np.exp(s - s.max()) for s in (y, z))
    p, q = p / p.sum(), np.log(w) + z - z.max() - np.log(q.sum())
    return float(p @ (np.log(p) - q))


TWINS = {
    "ndcg": lambda z, y, w, k=None: _by_places(z, y, 2.0**y - 1, lambda order: ndcg(y, order, k)),
    "rank_utility": lambda z, y, w, half_life=5.0: _by_places(z, y, y, lambda order: utility(y, order, half_life)),
    "map": lambda z, y, w: _map(z, y),
    "mrr": lambda z, y, w: _mrr(z, y),
    "pairwise_hinge": lambda z, y, w: _pairs(z, y, w, lambda d: np.maximum(0, 1 - d)),
    "pairwise_logistic": lambda z, y, w: _pairs(z, y, w, lambda d: np.logaddexp(0, -d)),
    "listnet": _listnet,
}
