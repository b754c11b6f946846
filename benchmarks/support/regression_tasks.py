"""What `benchmarks/regression.py` times, by the public interface alone, so that old builds can run it too.

Run by the Python of the build that is measured: it loads a set when it is first asked for, does a task once for every
line that it reads, and answers with the seconds that the task took.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import beeline
from support import sets

BINARY = ("a9a", "w8a", "ijcnn1", "20newsgroups", "covtype", "kdd99", "mnist")
SEARCHES = ("a9a", "w8a", "ijcnn1", "20newsgroups")


@cache
def rows(name):
    """(a SciPy matrix, a label a row)."""
    if name.startswith("sklearn:"):
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name[8:]}")(return_X_y=True)
        return (X - X.mean(0)) / np.maximum(X.std(0), 1e-12), y
    found = sets.binary(name)
    return found.matrix(), found.labels


def training(name, loss, solver="auto", intercept=False):
    X, y = rows(name)
    return lambda: beeline.LinearModel(loss, solver=solver, fit_intercept=intercept).fit(X, y)


def selection(name, loss):
    X, y = rows(name)
    return lambda: beeline.select_C(X, loss, y)


def bundle(name, loss, intercept):
    X, y = rows(name)
    C = 1e3 / X.shape[0]
    model = beeline.LinearModel(loss, solver="bundle", C=C, fit_intercept=intercept, tol=1e-3)
    return lambda: model.fit(X, y)


def l1(name, loss):
    X, y = rows(name)
    return lambda: beeline.LinearModel(loss, "l1", fit_intercept=False).fit(X, y)


def small(name, estimator):
    X, y = rows(f"sklearn:{name}")
    kind = getattr(beeline, estimator)

    def several():
        for _ in range(20):
            kind().fit(X, y)

    return several


TASKS = {
    **{f"training {s} {loss}": (training, s, loss) for s in BINARY for loss in ("hinge", "squared_hinge", "logistic")},
    **{
        f"training {s} logistic, newton, intercept": (training, s, "logistic", "newton", True)
        for s in ("a9a", "covtype")
    },
    **{
        f"training {s} logistic, lbfgs, intercept": (training, s, "logistic", "lbfgs", True) for s in ("a9a", "covtype")
    },
    **{f"selection {s} {loss}": (selection, s, loss) for s in SEARCHES for loss in ("logistic", "squared_hinge")},
    **{
        f"bundle {s} {loss}{', intercept' if b else ''}": (bundle, s, loss, b)
        for s in ("a9a", "w8a", "covtype", "kdd99")
        for loss in ("hinge", "logistic")
        for b in (False, True)
    },
    **{
        f"l1 {s} {loss}": (l1, s, loss)
        for s in ("a9a", "20newsgroups", "ijcnn1")
        for loss in ("logistic", "squared_hinge")
    },
    "small iris LogisticRegression ×20": (small, "iris", "LogisticRegression"),
    "small iris LinearSVC ×20": (small, "iris", "LinearSVC"),
    "small breast cancer LogisticRegression ×20": (small, "breast_cancer", "LogisticRegression"),
    "small breast cancer LinearSVC ×20": (small, "breast_cancer", "LinearSVC"),
    "small diabetes LinearSVR ×20": (small, "diabetes", "LinearSVR"),
    "small diabetes Lasso ×20": (small, "diabetes", "Lasso"),
}


@cache
def task(name):
    kind, *arguments = TASKS[name]
    return kind(*arguments)


def main():
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        work = task(json.loads(line))
        begin = time.perf_counter()
        work()
        print(json.dumps(time.perf_counter() - begin), flush=True)


if __name__ == "__main__":
    main()
