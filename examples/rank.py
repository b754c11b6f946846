"""Ranks the documents of queries: `python examples/rank.py`, which makes 300 queries to learn from, and 100 more."""

import numpy as np

import beeline


def searches(seed: int, queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of documents, their relevance (0 to 3), and how many documents each query has."""
    random = np.random.default_rng(seed)
    sizes = random.integers(5, 30, queries)
    X = random.normal(size=(sizes.sum(), 10)) + np.repeat(random.normal(size=(queries, 10)), sizes, axis=0)
    taste = np.linspace(1, -1, 10)
    hidden = X @ taste + 3 * random.normal(size=len(X)) + np.repeat(random.normal(size=queries), sizes)
    return X, np.digitize(hidden, [1.0, 4.0, 7.0]).astype(float), sizes


def main() -> None:
    """Compare losses that know of queries with a regression that does not."""
    X, y, sizes = searches(0, 300)
    X_new, y_new, sizes_new = searches(1, 100)
    for loss in ("ndcg@10", "map", "pairwise_logistic", "listnet"):
        ranker = beeline.LinearRanker(loss, C="auto", cv=3, tol=1e-3).fit(X, y, group=sizes)
        score = ranker.score(X_new, y_new, group=sizes_new)
        print(f"{loss:18} C = {ranker.C_:<8.3g} {ranker.report_.sentence}")
        print(f"{'':18} {'MAP' if loss == 'map' else 'NDCG@10'} of new queries {score:.3f}")
    best = np.argsort(-ranker.predict(X_new[: sizes_new[0]]))
    print(f"relevance of the first new query, as it is ranked: {y_new[best].astype(int).tolist()}")


if __name__ == "__main__":
    main()
