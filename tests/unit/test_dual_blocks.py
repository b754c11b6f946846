"""Dual coordinate descent over some rows at a time."""

import numpy as np
import pytest
import scipy.sparse

from beeline.data.core.arrays import from_arrays
from beeline.kernels import balance
from beeline.losses import EpsilonInsensitive, Hinge, LeastSquares, Logistic, SquaredHinge
from beeline.objective import Objective, conjugate_bound
from beeline.regularizers import L2
from beeline.solvers.base import Status
from beeline.solvers.dual.blocks import DualBlocks, Geometry, SparseDual
from beeline.solvers.dual.dual_cd import DualCD
from beeline.solvers.dual.shuffled import ShuffledRows

N, D = 240, 6
INTERCEPTS = ("free", "regularized", "none")


def problem(loss, intercept, *, sparse=False):
    """Rows with a shift; some of no cost."""
    random = np.random.default_rng(1)
    X = (random.normal(size=(N, D)) + 0.7) * (random.random((N, D)) < 0.7)
    z = X @ random.normal(size=D) - 0.5 + 0.5 * random.normal(size=N)
    y = np.where(z > 0, 1.0, -1.0) if loss.labels == "binary" else z
    c = 0.02 * random.uniform(0.5, 1.5, size=N)
    c[3:5] = 0
    rows = from_arrays(scipy.sparse.csr_array(X) if sparse else X)
    return Objective.of(rows, y, c, loss, L2(), 1.0, intercept)


def blocks_for(o, seed=0):
    rows = ShuffledRows.of(o.rows, 0)
    return DualBlocks(o.loss, Geometry.of(o, rows.centred), np.zeros(D), seed)


def take(blocks, o, numbers):
    y, c = o.rows.gather(o.labels), o.rows.gather(o.costs)
    blocks.take(numbers, o.rows.local().gather(numbers), y[numbers], c[numbers])


def certified(o, blocks):
    """(J at the blocks' point, a bound by their variables)."""
    point = o.at(o.join(*blocks.point)).with_best_intercept(1e-9)
    a = blocks.variables.dense(N)
    if o.intercept == "free":
        balance(a)
    slopes = o.rows.scatter(-a)
    return point.value, conjugate_bound(point, slopes, o.weighted(slopes))


def cycle(o, blocks, sets, cycles, tol=1e-6):
    """Go from block to block until the gap is certified."""
    for _ in range(cycles):
        for numbers in sets:
            take(blocks, o, numbers)
            blocks.sweep(3)
        blocks.leave()
        if o.intercept == "free":
            blocks.recentre()
        value, bound = certified(o, blocks)
        if value - bound <= tol * value:
            break
    return value, bound


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic(), EpsilonInsensitive(), LeastSquares()], ids=repr)
def test_cycling_over_blocks_reaches_the_optimum(loss, intercept):
    o = problem(loss, intercept, sparse=intercept == "none")
    sets = np.array_split(np.random.default_rng(2).permutation(N), 7)
    value, bound = cycle(o, blocks_for(o), sets, 600)
    best = DualCD(1e-9, 1e5).run(o)
    assert best.status is Status.CONVERGED
    assert value - bound <= 1e-6 * value
    assert bound <= best.objective * (1 + 1e-9)
    assert value <= best.objective * (1 + 2e-6)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_sets_that_overlap_and_change(intercept):
    o, random = problem(Hinge(), intercept), np.random.default_rng(3)
    blocks = blocks_for(o)
    for _ in range(300):
        everyone = random.permutation(N)
        value, bound = cycle(o, blocks, [everyone[:90], everyone[60:170], everyone[150:]], 1)
        if value - bound <= 1e-5 * value:
            break
    assert value - bound <= 1e-5 * value


def test_rows_never_given_stay_absent():
    o, blocks = problem(Hinge(), "none"), None
    blocks = blocks_for(o)
    numbers = np.arange(10, 60)[::-1]
    take(blocks, o, numbers)
    blocks.sweep(5)
    assert len(blocks.variables) == 0  # of the blocks before
    take(blocks, o, np.array([200, 50, 7]))
    assert sorted(blocks.variables.numbers) == sorted(numbers)
    blocks.sweep(2)
    blocks.leave()
    assert set(blocks.variables.numbers) == {7, 200, *numbers}
    a = blocks.variables.dense(N)
    assert not a[100:200].any()
    assert a[10:60].any()
    np.testing.assert_allclose(blocks.w, o.rows.local().transposed(a), rtol=1e-12, atol=1e-14)
    assert blocks.sums[0] == pytest.approx(a.sum(), abs=1e-14)


def test_weights_and_sums_may_come_from_elsewhere():
    """Two holders of different rows, each with the other's w and sums: as if one had both."""
    o = problem(Logistic(), "free")
    one, two = blocks_for(o), blocks_for(o)
    halves = np.arange(N // 2), np.arange(N // 2, N)
    for _ in range(300):
        for mine, other, numbers in ((one, two, halves[0]), (two, one, halves[1])):
            mine.w[:], mine.sums, mine.centre = other.w, other.sums, other.centre
            take(mine, o, numbers)
            mine.sweep(2)
            mine.leave()
        two.recentre()
    a = one.variables.dense(N) + two.variables.dense(N)
    np.testing.assert_allclose(two.w, o.rows.local().transposed(a), rtol=1e-10, atol=1e-13)
    value = o.at(o.join(*two.point)).value
    assert value == pytest.approx(DualCD(1e-9, 1e5).run(o).objective, rel=1e-6)


def test_the_same_blocks_give_the_same_bits():
    o, sets = problem(Hinge(), "free"), np.array_split(np.arange(N), 5)

    def run(seed):
        blocks = blocks_for(o, seed)
        cycle(o, blocks, sets, 3, tol=0.0)
        return blocks

    one, again, other = run(4), run(4), run(5)
    np.testing.assert_array_equal(one.w, again.w)
    np.testing.assert_array_equal(one.variables.values, again.variables.values)
    assert one.sums == again.sums
    assert not np.array_equal(one.w, other.w)


def test_a_row_is_in_a_block_once():
    o = problem(Hinge(), "none")
    with pytest.raises(ValueError, match="twice"):
        take(blocks_for(o), o, np.array([3, 8, 3]))


def test_sparse_variables():
    a = SparseDual()
    a.put(np.array([7, 2]), np.array([0.7, 0.2]))
    a.put(np.array([9, 2, 0]), np.array([0.9, 0.25, 0.0]))
    assert a.numbers.tolist() == [0, 2, 7, 9]
    assert a.values.tolist() == [0.0, 0.25, 0.7, 0.9]
    assert a.of(np.array([9, 3, 2])).tolist() == [0.9, 0.0, 0.25]
    assert a.dense(10)[[2, 3, 7]].tolist() == [0.25, 0.0, 0.7]


def test_rows_far_from_zero_and_near_their_mean():
    """What is left of ‖x − μ‖² is rounding only; steps must not become too long by it."""
    random = np.random.default_rng(0)
    X = 1e8 + 1e-3 * random.normal(size=(50, 3))
    y = np.where(random.random(50) > 0.5, 1.0, -1.0)
    o = Objective.of(from_arrays(X), y, np.full(50, 0.1), Hinge(), L2(), 1.0, "free")
    rows = ShuffledRows.of(o.rows, 0)
    blocks = DualBlocks(o.loss, Geometry.of(o, rows.centred), np.zeros(3))
    for numbers in np.array_split(np.arange(50), 3) * 20:
        blocks.take(numbers, o.rows.local().gather(numbers), y[numbers], np.full(len(numbers), 0.1))
        assert blocks.sweep(2) >= 0  # what a step that is too long would not bring
    blocks.leave()
    a = blocks.variables.values * y
    np.testing.assert_allclose(blocks.w, X.T @ blocks.variables.values, rtol=1e-9, atol=1e-3)
    assert a.min() >= 0
    assert a.max() <= 0.1
