"""Many problems in lockstep find what each would find by itself."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from objectives import over

from beeline import convert, from_arrays
from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset
from beeline.engines import Threads
from beeline.exceptions import DataError, ParameterError
from beeline.losses import get_loss
from beeline.objective import Objective
from beeline.regularizers import L2
from beeline.solvers.newton.lockstep import Affine, ByPredictedDecrease, Lockstep, LockstepNewton
from beeline.solvers.newton.newton import Newton


def rows(n=120, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    y = np.where(X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y


def blocks(X):
    S = scipy.sparse.csr_matrix(X)
    return [Block(X, X.shape[1]), Block(S.data, X.shape[1], S.indptr, S.indices)]


def problems(data, y, loss="logistic", intercept="free", n=3, engine=None):
    costs = np.random.default_rng(1).integers(0, 3, size=(n, len(y))).astype(float)
    first = Objective.of(data, y, costs[0], get_loss(loss), L2(), 1.0, intercept, engine=engine)
    return [first, *(first.with_costs(first.rows.scatter(c)) for c in costs[1:])]


@pytest.mark.parametrize("layout", [0, 1])
def test_batched_products_are_those_of_numpy(layout):
    X, _ = rows(300, 9)
    block = blocks(X)[layout]
    rng = np.random.default_rng(2)
    w, shift = rng.normal(size=(9, 5)), rng.normal(size=5)
    h = list(rng.random((5, 300)) * (rng.random((5, 300)) < 0.5))
    z = block.batched_matvec(w, shift)
    assert_allclose(z, (X @ w + shift).T, rtol=1e-12, atol=1e-12)
    ones = np.column_stack([X, np.ones(300)])
    assert_allclose(block.batched_rmatvec(h), ones.T @ np.column_stack(h), rtol=1e-12, atol=1e-12)
    expected = ones.T @ (np.column_stack(h) * (X @ w + shift))
    assert_allclose(block.batched_gram_matvec(h, w, shift), expected, rtol=1e-12, atol=1e-12)


def test_batched_products_check_their_shapes():
    block = blocks(rows()[0])[0]
    with pytest.raises(DataError, match="u must have 120 rows"):
        block.batched_rmatvec([np.zeros(3)])
    with pytest.raises(DataError, match="problems of h"):
        block.batched_gram_matvec([np.zeros(120)], np.zeros((7, 2)), np.zeros(1))


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
@pytest.mark.parametrize("strength", [10.0, 0.01])
def test_each_problem_reaches_its_own_optimum(loss, intercept, strength):
    X, y = rows()
    for block in blocks(X):
        every = problems(ArrayDataset(block), y, loss, intercept)
        newton = LockstepNewton(every, [0] * 3, ByPredictedDecrease(1e-13))
        newton.set_strength(strength)
        newton.solve()
        assert newton.unsolved == []
        for o, point in zip(every, newton.points, strict=True):
            alone = Newton(tol=1e-13).run(o.with_strength(strength))
            assert_allclose(point.theta, alone.theta, rtol=1e-5, atol=1e-6)


def test_a_problem_alone_is_solved_too():
    X, y = rows()
    (o,) = problems(from_arrays(X), y, "squared_hinge", n=1)
    newton = LockstepNewton([o], [0], ByPredictedDecrease(1e-13))
    newton.hessians.steps = 8
    for strength in (10.0, 0.01):
        newton.set_strength(strength)
        newton.solve()
    assert newton.unsolved == []
    assert_allclose(newton.points[0].theta, Newton(tol=1e-13).run(o.with_strength(0.01)).theta, rtol=1e-5, atol=1e-6)


def test_a_path_of_strengths_ends_where_a_cold_start_does():
    X, y = rows()
    every = problems(from_arrays(X), y)
    warm = LockstepNewton(every, [0] * 3, ByPredictedDecrease(1e-13))
    for strength in (100.0, 10.0, 1.0, 0.1):
        warm.set_strength(strength)
        warm.solve()
    cold = LockstepNewton(every, [0] * 3, ByPredictedDecrease(1e-13))
    cold.set_strength(0.1)
    cold.solve()
    for a, b in zip(warm.points, cold.points, strict=True):
        assert_allclose(a.theta, b.theta, rtol=1e-5, atol=1e-6)


def test_many_features_go_by_conjugate_gradients():
    rng = np.random.default_rng(3)
    S = scipy.sparse.random(60, 6000, 0.02, "csr", random_state=rng)
    S = S.multiply(np.where(rng.random(6000) < 0.1, 30.0, 1.0)).tocsr()  # so that a diagonal helps
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    every = problems(from_arrays(S), y)
    newton = LockstepNewton(every, [0] * 3, ByPredictedDecrease(1e-11))
    for strength in (1.0, 0.1):
        newton.set_strength(strength)
        newton.solve()
    assert newton.hessians.diagonals, "the diagonal was never needed"
    for o, point in zip(every, newton.points, strict=True):
        alone = Newton(tol=1e-10, max_passes=1e5).run(o.with_strength(0.1))
        assert_allclose(point.theta, alone.theta, rtol=1e-3, atol=1e-4)


def test_a_change_of_strength_costs_no_pass():
    X, y = rows()
    newton = LockstepNewton(problems(from_arrays(X), y), [0] * 3)
    newton.set_strength(1.0)
    newton.solve()
    before = newton.passes
    ratios = newton.set_strength(0.5)
    assert newton.passes == before
    every = problems(from_arrays(X), y)
    gradients = [o.with_strength(0.5).at(p.theta).gradient for o, p in zip(every, newton.points, strict=True)]
    zero = [o.at_null().gradient for o in every]
    expected = [np.linalg.norm(g) / np.linalg.norm(z) for g, z in zip(gradients, zero, strict=True)]
    assert_allclose(ratios, expected, rtol=1e-10)


def test_several_shards_and_a_store_give_the_same(tmp_path):
    X, y = rows(400)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    store = convert(tmp_path / "rows.npz", tmp_path / "rows.store", layout="dense")
    thetas = []
    for data, engine in ((from_arrays(X), None), (store, Threads(memory=4000))):
        newton = LockstepNewton(problems(data, y, engine=engine), [0] * 3, ByPredictedDecrease(1e-13))
        newton.set_strength(0.3)
        newton.solve()
        thetas.append(np.array([point.theta for point in newton.points]))
    assert_allclose(thetas[1], thetas[0], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("layout", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "sparse"])
def test_the_number_of_threads_does_not_show(same_bits, layout):
    X, y = rows(20_000, 11)

    def solved():
        newton = LockstepNewton(problems(from_arrays(layout(X)), y), [0] * 3)
        newton.set_strength(0.1)
        newton.solve()
        return [point.theta for point in newton.points]

    same_bits(solved)


@pytest.mark.parametrize("intercept", ["free", "none"])
def test_seeing_features_through_a_scaling_is_scaling_them(intercept):
    X, y = rows()
    rng = np.random.default_rng(4)
    factor, shift = rng.uniform(0.5, 2, size=(7, 2)), rng.normal(size=(7, 2))
    plain = problems(from_arrays(X), y, intercept=intercept, n=2)
    seen = LockstepNewton(plain, [0, 0], ByPredictedDecrease(1e-13), Affine(factor, shift))
    seen.set_strength(0.2)
    seen.solve()
    for k, point in enumerate(seen.points):
        scaled = over(plain[k], from_arrays(X * factor[:, k] + shift[:, k])).with_strength(0.2)
        alone = Newton(tol=1e-14).run(scaled)
        assert_allclose(point.theta, alone.theta, rtol=1e-5, atol=1e-6)
        z, expected = plain[k].rows.gather(point.z), scaled.rows.gather(scaled.scores(point.theta))
        assert_allclose(z, expected, rtol=1e-9, atol=1e-9)


def test_more_problems_than_fit_at_once_are_taken_in_groups(monkeypatch):
    X, y = rows()
    together = LockstepNewton(problems(from_arrays(X), y, n=5), [0] * 5, ByPredictedDecrease(1e-13))
    together.set_strength(0.1)
    together.solve()
    monkeypatch.setattr("beeline.solvers.newton.lockstep._MOST_NUMBERS", 16)
    apart = LockstepNewton(problems(from_arrays(X), y, n=5), [0] * 5, ByPredictedDecrease(1e-13))
    apart.set_strength(0.1)
    apart.solve()
    for a, b in zip(together.points, apart.points, strict=True):
        assert_allclose(a.theta, b.theta, rtol=1e-5, atol=1e-6)


def test_groups_hold_whole_kinds(monkeypatch):
    X, y = rows()
    monkeypatch.setattr("beeline.solvers.newton.lockstep._MOST_NUMBERS", 5 * 8)
    newton = LockstepNewton(problems(from_arrays(X), y, n=8), [0, 1, 2, 0, 1, 2, 0, 1])
    assert newton._groups(list(range(8))) == [[0, 3, 6], [1, 4, 7, 2, 5]]
    assert newton._groups([1, 2, 7]) == [[1, 7, 2]]
    monkeypatch.setattr("beeline.solvers.newton.lockstep._MOST_NUMBERS", 2 * 8)
    assert newton._groups([0, 3, 6]) == [[0, 3], [6]]


def test_rows_without_a_curvature_are_left_out():
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(300, 400, 0.02, "csr", random_state=rng)
    every = problems(from_arrays(X), np.where(rng.random(300) < 0.5, 1.0, -1.0), "squared_hinge", "free", 4)
    points = [o.at(rng.normal(size=401) * (20 if k < 3 else 0)) for k, o in enumerate(every)]
    lockstep, vectors = Lockstep(every), rng.normal(size=(401, 4))
    expected = lockstep.curvature(points, [0, 1, 2, 3], often=False).times(vectors)
    assert_allclose(lockstep.curvature(points, [0, 1, 2, 3], often=True).times(vectors), expected, rtol=1e-12)
    some = lockstep.curvature(points[:1], [0], often=True)
    picked, _ = every[0].rows.gather(*some.curvatures)  # of the only shard
    assert picked.n_rows < 0.7 * 300
    assert_allclose(some.times(vectors[:, :1]), expected[:, :1], rtol=1e-12, atol=1e-12)


def test_problems_over_different_rows_are_refused():
    X, y = rows()
    one, other = problems(from_arrays(X), y, n=1), problems(from_arrays(X), y, n=1)
    with pytest.raises(ParameterError, match="share their rows"):
        Lockstep([*one, *other])


@pytest.mark.parametrize(("weight", "length"), [(1.0, 1.0), (1e3, 1.0), (1.0, 1e3)])
def test_a_row_that_outweighs_all_others_misleads_nobody(weight, length):
    """It is in the Hessian that the folds share, and in the loss of all folds but one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8))
    y = X @ rng.normal(size=8) / 3 + 0.5 * rng.normal(size=200)
    X[7] *= length
    costs = np.ones(200)
    costs[7] = weight
    train = [np.arange(200) % 5 != k for k in range(5)]
    o = Objective.of(from_arrays(X), y, costs, get_loss("squared"), L2())
    every = [o.with_costs(o.rows.scatter(np.where(rows, costs, 0.0))) for rows in train]
    newton = LockstepNewton(every, [0] * 5)
    for strength in 2.0 ** np.arange(10, -6, -1):
        newton.set_strength(strength)
        newton.solve()
        for o, point in zip(every, newton.points, strict=True):
            best = Newton(tol=1e-10).run(o.with_strength(strength)).objective
            assert point.value <= 1.02 * best
