"""Losses of two classes over all rows: optima by CVXPY, from all labels and all pairs written down anew."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest

from beeline.data.core.arrays import from_arrays
from beeline.losses import BalancedError, BreakEven, FBeta, Precision, Recall, RocArea
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers.auto import SOLVERS

LOSSES = [
    RocArea(),
    RocArea(0.5),
    FBeta(),
    FBeta(0.5),
    BalancedError(),
    Precision(2),
    Recall(1),
    Recall(4),
    BreakEven(),
]
M = 8


def lack(loss, up, called):
    """What labels lack of the measure."""
    right, wrong, n = np.sum(called & up), np.sum(called & ~up), np.sum(up)
    if isinstance(loss, FBeta):
        return 1 - (1 + loss.beta**2) * right / (loss.beta**2 * n + right + wrong)
    if isinstance(loss, BalancedError):
        return 0.5 * ((n - right) / n + wrong / np.sum(~up))
    return 1 - right / (loss.k if isinstance(loss, Precision) else n)


def planes(loss, up):
    """(constants, coefficients of the scores): the loss is the largest of all these."""
    constants, rows = [], []
    for bits in itertools.product((False, True), repeat=len(up)):
        called, row = np.array(bits), np.zeros(len(up))
        wrong, missed = called & ~up, up & ~called
        if isinstance(loss, FBeta):
            row += (called.astype(float) - up) / len(up)
        elif isinstance(loss, BalancedError):
            row += 0.5 * (called.astype(float) - up) / np.where(up, up.sum(), len(up) - up.sum())
        elif called.sum() != (up.sum() if isinstance(loss, BreakEven) else loss.k):
            continue
        elif mistakes := min(called.sum(), up.sum()) - np.sum(called & up):
            row[wrong], row[missed] = mistakes / wrong.sum(), -mistakes / missed.sum()
            row /= len(up)
        constants.append(lack(loss, up, called))
        rows.append(row)
    return np.array(constants), np.array(rows)


def of_pairs(loss, z, up):
    """The hinge of pairs, of the negative rows that cost most."""
    down = np.flatnonzero(~up)
    costs = cp.hstack([cp.sum(cp.pos(1 - z[np.flatnonzero(up)] + z[int(j)])) for j in down])
    number = round(loss.max_fpr * len(down))
    return cp.sum_largest(costs, number) / (number * up.sum())


def optimum(loss, X, up, C, omega):
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    z = X @ w + (0 if loss.differences_only else b)
    penalty = omega.l1 * cp.norm1(w) + 0.5 * omega.l2 * cp.sum_squares(w)
    if isinstance(loss, RocArea):
        value = of_pairs(loss, z, up)
    else:
        constants, rows = planes(loss, up)
        value = cp.maximum(0, cp.max(constants + rows @ z))
    problem = cp.Problem(cp.Minimize(penalty + C * value))
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@pytest.mark.parametrize("omega", [L2(), L1(), ElasticNet(0.5)], ids=["l2", "l1", "elastic_net"])
@pytest.mark.parametrize("loss", LOSSES, ids=[repr(loss) for loss in LOSSES])
def test_the_optimum_lies_between(loss, omega):
    for seed, C in ((0, 0.5), (1, 5.0), (2, 200.0)):
        random = np.random.default_rng(seed)
        X = random.normal(size=(M, 3))
        up = np.arange(M) % 8 < 4 if isinstance(loss, RocArea) else np.arange(M) % 8 < 3
        X[up, 0] += 0.7
        best = optimum(loss, X, up, C, omega)
        intercept = "none" if loss.differences_only else "free"
        o = Objective.of(from_arrays(X), np.where(up, 1.0, -1.0), np.full(M, C), loss, omega, 1.0, intercept)
        result = SOLVERS["bundle"](tol=1e-6).run(o)
        assert result.objective == pytest.approx(best, rel=3e-6, abs=1e-7)
        assert result.bound <= best * (1 + 1e-6) + 1e-8
