"""Claim: `fit` on small data takes at most as long as that of scikit-learn's estimator of the same name.

iris, breast cancer and digits by `LogisticRegression` and `LinearSVC`, diabetes by `LinearSVR` and `Lasso`; features
are scaled, and all settings are the defaults. So the two do not do quite the same: beeline certifies a relative gap of
1e-4, and leaves the intercept of a support vector machine free.

Both run in this process, on as many threads, one after the other; a few runs of each warm up, and medians are compared.
What is timed is `fit` of a new estimator, from the arrays to the model. That of all cores is shown beside it, for a
machine that others use too.

    python benchmarks/small.py [--check] [--repeat N] [--only iris,digits] [--threads N]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.datasets
import sklearn.linear_model
import sklearn.svm
from sklearn.preprocessing import StandardScaler
from support.problems import Seconds, Stopwatch
from threadpoolctl import threadpool_limits

import beeline
from beeline.kernels import set_num_threads

MOST = 1.0
WARMING = 3
BUDGET = 6.0  # seconds for all runs of a pair

CLASSIFIERS = ("LogisticRegression", "LinearSVC")
REGRESSIONS = ("LinearSVR", "Lasso")
SETS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "iris": (sklearn.datasets.load_iris, CLASSIFIERS),
    "breast cancer": (sklearn.datasets.load_breast_cancer, CLASSIFIERS),
    "digits": (sklearn.datasets.load_digits, CLASSIFIERS),
    "diabetes": (sklearn.datasets.load_diabetes, REGRESSIONS),
}


def theirs(name: str) -> type:
    """scikit-learn's estimator of that name."""
    return getattr(sklearn.linear_model, name, None) or getattr(sklearn.svm, name)


def timed(kind: type, X: np.ndarray, y: np.ndarray) -> Seconds:
    """The seconds of a fit by a new estimator."""
    estimator = kind()
    with Stopwatch() as watch:
        estimator.fit(X, y)
    return watch.seconds


def medians(kinds: tuple[type, type], X: np.ndarray, y: np.ndarray, repeat: int | None) -> list[Seconds]:
    """The medians of both, in turn."""
    for _ in range(WARMING):
        once = sum(timed(kind, X, y).wall for kind in kinds)
    repeat = repeat or max(7, min(301, int(BUDGET / once)))
    taken: list[list[Seconds]] = [[], []]
    for k in range(repeat):
        for side in (0, 1) if k % 2 else (1, 0):
            taken[side].append(timed(kinds[side], X, y))
    return [Seconds(*(statistics.median(part) for part in zip(*side, strict=True))) for side in taken]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when the claim does not hold")
    parser.add_argument("--repeat", type=int, help="so many runs of each, however long they take")
    parser.add_argument("--only", help=f"some of {', '.join(SETS)}")
    parser.add_argument("--threads", type=int, default=2, help="of both sides")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    chosen = options.only.split(",") if options.only else list(SETS)
    warnings.simplefilter("ignore")  # iteration limits
    set_num_threads(options.threads)
    broken = 0
    head = f"ms of a fit          beeline, {options.threads} threads  scikit-learn, {options.threads} threads"
    print(f"{head}  ratio  (of cores)")
    with threadpool_limits(options.threads):
        for name in chosen:
            load, estimators = SETS[name]
            X, y = load(return_X_y=True)
            X = StandardScaler().fit_transform(X)
            for estimator in estimators:
                ours, peers = medians((getattr(beeline, estimator), theirs(estimator)), X, y, options.repeat)
                ratio = ours.wall / peers.wall
                broken += ratio > MOST
                print(
                    f"{name:13} {estimator:18} {1e3 * ours.wall:8.2f} {1e3 * peers.wall:24.2f} {ratio:15.2f}"
                    f"  ({ours.cores / peers.cores:.2f}){'  BROKEN' if ratio > MOST else ''}",
                    flush=True,
                )
    print(f"{'FAIL' if broken else 'PASS'}  fit on small data takes at most {MOST} of scikit-learn's time each")
    return int(options.check and broken > 0)


if __name__ == "__main__":
    sys.exit(main())
