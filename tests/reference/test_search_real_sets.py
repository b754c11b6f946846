"""C="auto" on real sets of all kinds: never far from the best that a dense grid of C reaches."""

from __future__ import annotations

import warnings

import pytest
from real_sets import BUNDLED, SHARED

from beeline import select_C
from beeline.exceptions import ConvergenceWarning

ENOUGH = 0.9  # of what the best C of the grid gains over no model


def gained(score: float, null: float, greater_is_better: bool) -> float:
    return score - null if greater_is_better else null - score


def check(load, loss, folder):
    X, y = load(folder)
    found = select_C(X, loss, y, folds=3)
    assert len(found.curve) <= 40  # and not on and on, to where nothing changes any more
    low, high = found.curve[0].C / 64, 64 * found.curve[-1].C
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # at values of C that nobody would take
        grid = select_C(X, loss, y, folds=3, C_min=low, C_max=high, all_the_way=True, tol=1e-6, max_passes=3000)
    exact = min(grid.curve, key=lambda point: abs(point.C / found.best_C - 1))
    assert pytest.approx(found.best_C) == exact.C
    ours, best = (gained(score, grid.null_score, grid.greater_is_better) for score in (exact.score, grid.best_score))
    assert best > 0
    assert ours >= ENOUGH * best
    # What the search shows is the score of the exact model, within a hundredth.
    assert found.best_score == pytest.approx(exact.score, rel=0.01)


@pytest.mark.parametrize("name", BUNDLED)
def test_the_search_is_near_the_best_of_a_grid(name):
    check(*BUNDLED[name], None)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_the_search_is_near_the_best_of_a_grid_on_shared_sets(name, shared_data):
    check(*SHARED[name], shared_data)
