"""More data than memory: rows come in batches, an index finds those that matter, and the model is certified for all.

Readings of ten sensors, in clusters, one in two hundred with the wrong label; the budget is a fifth of their size.
"""

import sys
from collections.abc import Iterator

import numpy as np

import beeline

BATCH, BUDGET = 10_000, "2M"


def readings(n_batches: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of rows with their labels."""
    centres = np.random.default_rng(0).normal(size=(100, 10))
    truth, random = np.random.default_rng(1).normal(size=10), np.random.default_rng(seed)
    for _ in range(n_batches):
        which = random.integers(100, size=BATCH)
        X = centres[which] + 0.02 * random.normal(size=(BATCH, 10))
        y = np.where(centres[which] @ truth > 0, 1.0, -1.0)
        y[random.random(BATCH) < 0.005] *= -1
        yield X.astype(np.float32), y


def main(path: str) -> None:
    store = beeline.convert(readings(20, seed=2), path, memory=BUDGET, overwrite=True)
    index = beeline.build_index(store, memory=BUDGET)
    print(f"{store.n_rows:,} rows of {store.nbytes / 1e6:.1f} MB, an index of {index.info.kind}; budget {BUDGET}")
    X_test, y_test = next(readings(1, seed=3))
    for loss in ("hinge", "ramp"):
        model = beeline.LinearSVC(loss=loss, solver="indexed", memory=BUDGET).fit(store)
        read = model.results_[0].facts["bytes_read"] / store.nbytes
        right = model.score(X_test, y_test)
        print(f"{loss:6} {right:.1%} right, {read:.0%} of the bytes read; {model.report_.sentence}")
    print(f"{len(model.outliers_):,} rows lie beyond the cap of the ramp: look at their labels")


if __name__ == "__main__":
    main(sys.argv[1])
