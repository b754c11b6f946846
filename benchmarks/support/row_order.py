"""beeline on rows as scikit-learn's vectorizer gives them, beside the same rows with their indices sorted before."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from beeline import Lasso, LinearSVC, LogisticRegression
from support import sets
from support.contest import Repeats

__all__ = ["compare_orders"]

MOST = 1.2
_SET = "20newsgroups-text"
_FREQUENT = 300  # words of the narrow problem, for which a matrix of features by features is made


def compare_orders(repeats: Repeats) -> tuple[bool, list[str], str]:
    """Measure all; whether every ratio is at most 1.2, a sentence, and a table.

    The two differ by little, so that it takes more runs than usual to tell how much.
    """
    repeats = replace(repeats, seconds=2 * repeats.seconds, least=2 * repeats.least)
    print("rows as the vectorizer gives them, and sorted before", flush=True)
    lines = ["| | unsorted, s | sorted before, s | ratio |", "|---|---|---|---|"]
    ratios = {}
    for name, (run, pair) in _tasks().items():
        taken = _alternating(run, pair, repeats)
        ratios[name] = taken[0] / taken[1]
        print(f"  {name:44}{taken[0]:8.4f} s{taken[1]:8.4f} s  ratio {ratios[name]:6.3f}", flush=True)
        lines.append(f"| {name} | {taken[0]:.3g} | {taken[1]:.3g} | {ratios[name]:.2f} |")
    worst = max(ratios, key=ratios.__getitem__)
    fine = ratios[worst] <= MOST
    said = f"{'PASS' if fine else 'FAIL'}  unsorted rows: worst {ratios[worst]:.3f} ({worst}); claimed at most {MOST}"
    return fine, [said], "\n".join(["### Unsorted rows", "", *lines, ""])


def _tasks() -> dict[str, tuple[Callable, tuple]]:
    """By name: what is done with a matrix, and the matrix in both orders."""
    text, groups = sets.binary(_SET), sets.multiclass(_SET).labels
    X, y = text.matrix(), text.labels
    pair = X, _in_order(X)
    frequent = np.sort(np.argsort(-np.bincount(X.indices, minlength=X.shape[1]))[:_FREQUENT])
    narrow = _with_words(X, frequent)
    model = LogisticRegression().fit(X, y)
    classifiers = {
        "logistic": LogisticRegression(),
        "logistic, no intercept": LogisticRegression(fit_intercept=False),
        "logistic, L1": LogisticRegression(l1_ratio=1.0),
        "squared hinge": LinearSVC(),
        "hinge": LinearSVC(loss="hinge"),
    }
    tasks = {name: (lambda A, e=e: e.fit(A, y), pair) for name, e in classifiers.items()}
    tasks["Lasso"] = lambda A: Lasso(alpha=1e-4).fit(A, y), pair
    tasks["softmax, 20 classes"] = lambda A: LogisticRegression().fit(A, groups), pair
    tasks["squared hinge, 20 classes"] = lambda A: LinearSVC().fit(A, groups), pair
    tasks[f"logistic, {_FREQUENT} words"] = lambda A: LogisticRegression().fit(A, y), (narrow, _in_order(narrow))
    tasks["predict"] = model.predict, pair
    return tasks


def _in_order(X):
    fresh = type(X)((X.data.copy(), X.indices.copy(), X.indptr.copy()), X.shape)
    fresh.sort_indices()
    return fresh


def _with_words(X, words: np.ndarray):
    """Only these words, in the order of each row."""
    place = np.full(X.shape[1], -1, X.indices.dtype)
    place[words] = np.arange(len(words))
    kept = place[X.indices] >= 0
    indptr = np.concatenate([[0], np.cumsum(kept)])[X.indptr].astype(X.indptr.dtype)
    return type(X)((X.data[kept], place[X.indices][kept], indptr), (X.shape[0], len(words)))


def _alternating(run: Callable, pair: tuple, repeats: Repeats) -> tuple[float, float]:
    """Median seconds of both, taken in turn."""
    taken: tuple[list[float], list[float]] = ([], [])
    done, number = 0, 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(pair[0])
        while done < number:
            for matrix, seconds in zip(pair, taken, strict=True):
                time.sleep(0.005)  # threads that wait for work by spinning come to rest
                start = time.perf_counter()
                run(matrix)
                seconds.append(time.perf_counter() - start)
            done += 1
            number = repeats.number(taken[0][0] + taken[1][0])
    return statistics.median(taken[0]), statistics.median(taken[1])
