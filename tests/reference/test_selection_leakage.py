"""One vector for all folds tells a fold about the rows that it holds out; K vectors do not (Table 3 of the paper)."""

import numpy as np
import pytest

from beeline.data.core.arrays import from_arrays
from beeline.losses import get_loss
from beeline.regularizers import L2
from beeline.selection import Selecting, select
from beeline.selection.folds import make_folds
from beeline.solvers.newton.newton import Newton
from beeline.training.task import Task

LOOSE = 1e-2
DELTA = 4.0
PATH = [DELTA**k for k in range(-1, 6)]


def noisy_task(loss, n=300, d=200, seed=0):
    """Few features tell a little, many tell nothing; so many that the rows of a fold can be separated."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, :5].sum(axis=1) + 2 * rng.normal(size=n) > 0).astype(float)
    return Task(from_arrays(X), y, 2, get_loss(loss), L2(), intercept="none")


def by_hand(task, folds, tol, *, shared):
    """CV accuracy by C, fold after fold: warm starts from one vector that all folds share, or none at all.

    Only steps that are not exact stay near where they began: conjugate gradients, as in the paper.
    """
    (whole,), rows = task.objectives(), task.rows
    solver = Newton(1e-15, 1e5, linear_solver="cg" if shared else "cholesky")
    rates, w = [], None
    for C in PATH:
        right = 0
        for fold in folds:
            o = whole.with_costs(rows.scatter(np.where(fold.train, task.costs, 0.0))).with_strength(1 / C)
            limit = tol * np.linalg.norm(o.at().gradient)
            stop = lambda step, o=o, limit=limit: np.linalg.norm(o.at(step.theta).gradient) <= limit  # noqa: E731
            w = solver.run(o, w if shared else None, stop).theta
            z = rows.gather(whole.scores(w))
            right += np.sum((z > 0)[fold.test] == (task.labels > 0)[fold.test])
        rates.append(right / len(task.labels))
    return np.array(rates)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_only_a_shared_vector_leaks(loss):
    task = noisy_task(loss)
    folds = make_folds(5, task.labels, classes=True)
    truth = by_hand(task, folds, 1e-7, shared=False)
    shared = by_hand(task, folds, LOOSE, shared=True)
    pairs = [(fold.train, fold.test) for fold in folds]
    path = {"C_min": PATH[0], "C_max": PATH[-1], "delta": DELTA, "all_the_way": True, "tol": LOOSE}
    ours = np.array([point.score for point in select(task, Selecting(folds=pairs, metric="accuracy", **path)).curve])
    noise = np.sqrt(truth.max() * (1 - truth.max()) / len(task.labels))  # of one CV accuracy
    assert len(ours) == len(PATH)
    assert shared[-1] > truth.max() + 4 * noise
    assert np.abs(ours - truth).max() < noise
