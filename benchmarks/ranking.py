"""Claims: ranking by NDCG is at least as good as by built pairs, in half the time; pairs cost as little as sorting.

1. MQ2008 (LETOR 4.0), fold 1: `LinearRanker("ndcg")` for some values of C, of which the validation file takes one. The
   peer is RankSVM as it is done with LIBLINEAR: the squared hinge of the differences of all pairs of documents of a
   query of which one is more relevant, for as many values of C, of which the validation file takes one too. The mean
   NDCG of the test file must not be below the peer's, and all of it, training, choosing and building pairs, may take
   half of its time. NDCG is LETOR 4.0's: places 1 and 2 have the discount 1, and the mean is over k = 1 … the number of
   the query's documents, and then over all queries.
2. The pairwise logistic loss of 1,000,000 rows in 10,000 queries, one value with all slopes, takes at most three times
   as long as `np.sort` of as many numbers. Beside it the same rows in queries ten times as long, and the other losses.

    python benchmarks/ranking.py [--check] [--repeat N]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import warnings

import numpy as np
import scipy.sparse
from support.alike import share_alike
from support.liblinear_peer import LiblinearProblem
from support.problems import Stopwatch
from support.sets import SHARED

import beeline
from beeline.losses import get_loss
from beeline.query_measures import QueryMeasure, RankedQueries

MOST_TIME = 0.5
MOST_SORTS = 3.0
C_OURS = 10.0 ** np.arange(-3.0, 0.6, 0.5)
C_PEER = 10.0 ** np.arange(-5.0, -1.4, 0.5)
ROWS, LONG = 1_000_000, 100


MEASURE = QueryMeasure("mean_ndcg", convention="letor4")


class Part:
    """One of the three files."""

    def __init__(self, name: str) -> None:
        self.data = beeline.read(SHARED / "mq2008" / f"{name}.txt.gz")
        self.X, self.y = self.data.block.to_dense(), self.data.labels
        queries = self.data.queries
        self.starts = np.concatenate([[0], np.flatnonzero(np.diff(queries)) + 1, [len(queries)]])

    def ndcg(self, w: np.ndarray) -> float:
        """Of scores by these weights."""
        ranked = RankedQueries(self.y, self.X @ w, self.starts)
        return ranked.mean(ranked.by_query(MEASURE))

    def pairs(self) -> np.ndarray:
        """Differences of documents, the more relevant less the other."""
        found = []
        for begin, end in zip(self.starts[:-1], self.starts[1:], strict=True):
            i, j = np.nonzero(self.y[begin:end, None] > self.y[None, begin:end])
            found.append(self.X[begin + i] - self.X[begin + j])
        return np.vstack(found)


def ours(train: Part, valid: Part) -> tuple[float, np.ndarray]:
    """The best C, and its weights."""
    ranker = beeline.LinearRanker("ndcg", tol=1e-2, warm_start=True)
    found = []
    for C in C_OURS:
        w = ranker.set_params(C=C).fit(train.data).coef_
        found.append((valid.ndcg(w), float(C), w))
    return max(found, key=lambda one: one[0])[1:]


def by_pairs(train: Part, valid: Part) -> tuple[float, np.ndarray]:
    """The same of RankSVM by LIBLINEAR's Newton method, the faster of its two on these rows."""
    rows = train.pairs()
    signs = np.where(np.arange(len(rows)) % 2, 1.0, -1.0)  # LIBLINEAR wants two classes
    problem = LiblinearProblem(scipy.sparse.csr_matrix(rows * signs[:, None]), signs)
    found = []
    for C in C_PEER:
        w = problem.train(f"-s 2 -c {C} -B -1")[1][:, 0]
        found.append((valid.ndcg(w), float(C), w))
    return max(found, key=lambda one: one[0])[1:]


def mq2008(repeat: int) -> bool:
    """The first claim."""
    train, valid, test = (Part(name) for name in ("train", "vali", "test"))
    seconds: tuple[list[float], list[float]] = ([], [])
    scores, chosen = [0.0, 0.0], [0.0, 0.0]
    for _ in range(repeat):
        for side, learn in enumerate((ours, by_pairs)):
            with Stopwatch() as watch:
                chosen[side], w = learn(train, valid)
            seconds[side].append(watch.seconds.wall)
            scores[side] = test.ndcg(w)
    own, peer = (statistics.median(side) for side in seconds)
    print(f"{f'MQ2008 fold 1, {len(C_OURS)} values of C':32}seconds  best C    mean NDCG of the test file")
    for name, seconds_of, C, score in zip(
        ('LinearRanker("ndcg")', "built pairs, LIBLINEAR"), (own, peer), chosen, scores, strict=True
    ):
        print(f"  {name:28}{seconds_of:9.2f}  {C:8.2g}  {score:.4f}")
    good = scores[0] >= scores[1] and own <= MOST_TIME * peer
    print(f"{'PASS' if good else 'FAIL'}  not below, in {own / peer:.2f} of the time (at most {MOST_TIME})\n")
    return good


def rows_and_sorts(repeat: int) -> bool:
    """The second claim."""
    random = np.random.default_rng(0)
    z, weights = random.normal(size=ROWS), np.ones(ROWS)
    y = random.integers(0, 5, ROWS).astype(float)
    names = ("pairwise_logistic", "pairwise_hinge", "listnet", "map", "mrr", "ndcg@10")
    cases = [(name, LONG) for name in names] + [("pairwise_logistic", 10 * LONG), ("ndcg@10", 10 * LONG)]
    taken: dict[tuple[str, int], list[float]] = {case: [] for case in [("np.sort", 0), *cases]}
    for _ in range(repeat):
        with Stopwatch() as watch:
            np.sort(z)
        taken["np.sort", 0].append(watch.seconds.wall)
        for name, long in cases:
            starts = np.arange(0, ROWS + 1, long)
            with Stopwatch() as watch:
                get_loss(name).of_groups(z, y, weights, starts)
            taken[name, long].append(watch.seconds.wall)
    times = {case: statistics.median(seconds) for case, seconds in taken.items()}
    sort = times["np.sort", 0]
    print(f"{ROWS:,} rows of 5 levels          seconds  times np.sort")
    for (name, long), seconds in times.items():
        where = f", queries of {long:,}" if long else ""
        print(f"  {name + where:34}{seconds:7.3f}  {seconds / sort:6.2f}")
    ratio = times["pairwise_logistic", LONG] / sort
    good = ratio <= MOST_SORTS
    print(f"{'PASS' if good else 'FAIL'}  the pairwise logistic loss takes {ratio:.2f} sorts (at most {MOST_SORTS:g})")
    return good


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when a claim does not hold")
    parser.add_argument("--repeat", type=int, default=5, help="so many runs of each")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    warnings.simplefilter("ignore")
    share_alike()
    good = [claim(options.repeat) for claim in (mq2008, rows_and_sorts)]
    return int(options.check and not all(good))


if __name__ == "__main__":
    sys.exit(main())
