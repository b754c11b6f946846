"""Losses of levels in an order: against all pairs and all thresholds, and how thresholds stay in order."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beeline import from_arrays
from beeline.engines import Threads
from beeline.exceptions import LabelError, ParameterError
from beeline.kernels import level_pairs
from beeline.losses import AllThreshold, AllThresholdHinge, ImmediateThreshold, ImmediateThresholdHinge, LevelPairs
from beeline.objective import Objective
from beeline.regularizers import L2
from beeline.solvers.auto import SOLVERS
from beeline.solvers.base import Status

THRESHOLDS = [AllThreshold, AllThresholdHinge, ImmediateThreshold, ImmediateThresholdHinge]
K = 5
COSTS = np.array([[0, 1, 1, 5, 2], [3, 0, 0.5, 1, 1], [0, 2, 0, 0, 4], [1, 1, 1, 0, 0.1], [2, 0, 3, 1, 0]])
PAIRS = [LevelPairs(), LevelPairs("unit"), LevelPairs("squared"), LevelPairs(COSTS)]


def bound(loss, n_levels=K):
    return loss.with_classes(range(n_levels))


def margin(loss, a):
    return np.logaddexp(0.0, -a) if loss.margin == "logistic" else np.maximum(0.0, 1.0 - a)


def by_definition(loss, z, level, thresholds):
    """One row's loss, as it is written down."""
    below, above = thresholds[:level], thresholds[level:]
    if loss.all_thresholds:
        return sum(margin(loss, z - t) for t in below) + sum(margin(loss, t - z) for t in above)
    return sum(margin(loss, z - t) for t in below[-1:]) + sum(margin(loss, t - z) for t in above[:1])


def all_pairs(loss, z, y, c):
    """The mean over the pairs, and its slopes."""
    costs, value, slopes, pairs = loss.cost_matrix(K), 0.0, np.zeros(len(z)), 0.0
    for i, j in itertools.permutations(range(len(z)), 2):
        if y[i] < y[j]:
            weight, gap = c[i] * c[j], 1 + z[i] - z[j]
            pairs += weight
            if gap > 0:
                part = weight * costs[int(y[i]), int(y[j])]
                value += part * gap
                slopes[i] += part
                slopes[j] -= part
    return (value / pairs, slopes / pairs) if pairs else (0.0, slopes)


def rows(random, n, *, spread=2.0, ties=False):
    z = spread * random.normal(size=n)
    return (np.round(z) if ties else z), random.integers(0, K, n).astype(float)


# Pairs


@pytest.mark.parametrize("loss", PAIRS, ids=repr)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), ties=st.booleans())
def test_pairs_by_all_pairs(loss, seed, n, ties):
    random = np.random.default_rng(seed)
    z, y = rows(random, n, spread=10.0 ** random.integers(-3, 4), ties=ties)
    z = z + random.choice([0.0, 1e3])
    weights = random.choice([np.ones(n), random.uniform(0.1, 3.0, n), random.integers(1, 4, n).astype(float)])
    weights = weights / weights.mean()
    value, slopes = bound(loss).value_and_grad(z, y, weights)
    wanted, wanted_slopes = all_pairs(loss, z, y, weights)
    assert value == pytest.approx(wanted, rel=1e-10, abs=1e-14)
    if not ties:  # where other subgradients are as good
        np.testing.assert_allclose(slopes, wanted_slopes, atol=1e-10)


@pytest.mark.parametrize("loss", PAIRS, ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_pairs_are_convex_with_these_subgradients(loss, seed):
    random = np.random.default_rng(seed)
    z, y = rows(random, 40, ties=seed == 0)
    value, slopes = bound(loss).value_and_grad(z, y, np.ones(40))
    assert abs(slopes.sum()) < 1e-12
    for spread in (1e-6, 1e-2, 1.0, 100.0):
        other = z + spread * random.normal(size=40)
        there = bound(loss).value_and_grad(other, y, np.ones(40))[0]
        assert there >= value + float(slopes @ (other - z)) - 1e-11 * (1 + spread)
    assert bound(loss).value_and_grad(z + 3.0, y, np.ones(40))[0] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_weights_of_pairs_are_repetition(seed):
    random = np.random.default_rng(seed)
    z, y = rows(random, 25, ties=seed % 2 == 0)
    times = random.integers(0, 4, 25)
    loss, each = bound(PAIRS[seed % 4]), np.repeat(np.arange(25), times)
    found = loss.evaluated(z, y, times / times[times > 0].mean())
    value, slopes = loss.value_and_grad(z[each], y[each], np.ones(len(each)))
    assert found.values[0] == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(found.slopes, np.bincount(each, slopes, minlength=25), atol=1e-12)


def test_many_pairs_with_any_number_of_threads(same_bits):
    random = np.random.default_rng(3)
    z, y = rows(random, 200_000)
    c = random.uniform(0.5, 1.5, len(z))
    matrix = bound(LevelPairs()).cost_matrix(K)

    def both():
        slopes = np.empty(len(z))
        return np.array(level_pairs(z, y, c, matrix, slopes)), slopes

    (value, _), slopes = same_bits(both)
    step = 1e-4 * np.sign(z)  # against the sums by levels of NumPy
    total = pairs = 0.0
    for k, m in itertools.combinations(range(K), 2):
        lower, higher = np.flatnonzero(y == k), np.flatnonzero(y == m)
        lower = lower[np.argsort(z[lower])]
        first = np.searchsorted(z[lower], z[higher] - 1, side="right")
        weight = np.append(np.cumsum(c[lower][::-1])[::-1], 0)[first]
        scores = np.append(np.cumsum((c * z)[lower][::-1])[::-1], 0)[first]
        total += (m - k) * float(np.sum(c[higher] * ((1 - z[higher]) * weight + scores)))
        pairs += c[lower].sum() * c[higher].sum()
    assert value == pytest.approx(total / pairs, rel=1e-10)
    moved = level_pairs(z + 1e-7 * step, y, c, matrix, np.empty(len(z)))[0]
    assert (moved - value) * c.mean() == pytest.approx(1e-7 * float(slopes @ step), rel=1e-3)


def test_pairs_far_out_and_of_one_level():
    z, y = rows(np.random.default_rng(0), 30)
    loss = bound(LevelPairs())
    assert loss.value_and_grad(np.append(z, np.inf), np.append(y, 0.0), np.ones(31))[0] == np.inf
    with pytest.raises(ParameterError, match="must be a number"):
        loss.value_and_grad(np.append(z, np.nan), np.append(y, 1.0), np.ones(31))
    value, slopes = loss.value_and_grad(z, np.ones(30), np.ones(30))
    assert value == 0
    assert not slopes.any()


@pytest.mark.parametrize("loss", PAIRS, ids=repr)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 9), ties=st.booleans())
def test_thresholds_after_training_are_the_best_of_all(loss, seed, n, ties):
    random = np.random.default_rng(seed)
    z, y = rows(random, n, ties=ties)
    c = random.uniform(0.2, 2.0, n)
    costs = loss.cost_matrix(K)
    thresholds = bound(loss).best_thresholds(z, y, c)
    assert (np.diff(thresholds) >= 0).all()

    def cost(cuts):
        return float(np.sum(c * costs[y.astype(int), (z[:, None] > np.asarray(cuts)).sum(axis=1)]))

    places = np.unique(z)
    places = np.append(places - 1e-3, places[-1] + 1e-3)
    best = min(cost(cuts) for cuts in itertools.combinations_with_replacement(places, K - 1))
    assert cost(thresholds) == pytest.approx(best, abs=1e-12)


# Thresholds


@pytest.mark.parametrize("kind", THRESHOLDS)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), far=st.integers(-2, 3))
def test_thresholds_by_definition(kind, seed, n, far):
    random = np.random.default_rng(seed)
    z, y = rows(random, n, spread=10.0**far)
    thresholds, c = np.sort(random.normal(size=K - 1)), random.uniform(0.1, 2.0, n)
    loss = bound(kind()).with_extra(thresholds)
    wanted = np.array([by_definition(kind, *row, thresholds) for row in zip(z, y.astype(int), strict=True)])
    values, slopes, by_threshold = loss.value_and_grad(z, y)
    np.testing.assert_allclose(values, wanted, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(slopes, -by_threshold.sum(axis=1))
    assert loss.sum(z, y, c) == pytest.approx(float(np.sum(c * wanted)), rel=1e-12, abs=1e-14)
    compiled = loss.slopes_and_extra(z, y, c)
    np.testing.assert_allclose(compiled[0], c * slopes, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(compiled[1], c @ by_threshold, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", THRESHOLDS)
@pytest.mark.parametrize("seed", range(4))
def test_convex_in_scores_and_thresholds_together(kind, seed):
    """Also where thresholds are out of order."""
    random = np.random.default_rng(seed)
    z, y = rows(random, 30)
    thresholds, c = random.normal(size=K - 1), random.uniform(0.1, 2.0, 30)
    loss = bound(kind()).with_extra(thresholds)
    slopes, by_threshold = loss.slopes_and_extra(z, y, c)
    value = loss.sum(z, y, c)
    for spread in (1e-6, 1e-2, 1.0, 100.0):
        dz, change = spread * random.normal(size=30), spread * random.normal(size=K - 1)
        there = loss.with_extra(thresholds + change).sum(z + dz, y, c)
        assert there >= value + float(slopes @ dz + by_threshold @ change) - 1e-10 * (1 + spread)
        line = loss.with_extra(thresholds, change).along(z, dz, 1.0, y, c)
        assert line[0] == pytest.approx(there, rel=1e-12)
    dz, change = random.normal(size=30), random.normal(size=K - 1)
    ends = [loss.with_extra(thresholds + s * change).sum(z + s * dz, y, c) for s in (1e-6, -1e-6)]
    slope = loss.with_extra(thresholds, change).along(z, dz, 0.0, y, c)[1]
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-4)
    if not kind.smooth:
        assert loss.extra_derivatives(z, y, c) is None
        return
    up, down = (loss.with_extra(thresholds + s).slopes_and_extra(z, y, c)[1] for s in (1e-6, -1e-6))
    first, second = loss.extra_derivatives(z, y, c)
    np.testing.assert_array_equal(first, by_threshold)
    np.testing.assert_allclose(second, (up - down) / 2e-6, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", THRESHOLDS)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_in_order_no_loss_is_larger(kind, seed):
    random = np.random.default_rng(seed)
    z, y = rows(random, 30)
    thresholds, c = 2 * random.normal(size=K - 1), random.uniform(0.1, 2.0, 30)
    loss = bound(kind())
    ordered = loss.in_order(thresholds)
    assert (np.diff(ordered) >= 0).all()
    there = loss.with_extra(ordered).sum(z, y, c)
    assert there <= loss.with_extra(thresholds).sum(z, y, c) * (1 + 1e-14)


@pytest.mark.parametrize("kind", THRESHOLDS)
def test_threads_do_not_show(same_bits, kind):
    z, y = rows(np.random.default_rng(5), 60_000)
    loss, c = bound(kind()).with_extra(np.array([-1.0, 0.0, 0.0, 2.0])), np.random.default_rng(6).random(60_000)
    same_bits(lambda: (loss.sum(z, y, c), *loss.slopes_and_extra(z, y, c), loss.along(z, z[::-1], 0.1, y, c)))


# The optimum

RNG = np.random.default_rng(8)
X = RNG.normal(size=(60, 3))
SIGNAL = X @ [1.0, -2.0, 0.5] + RNG.normal(size=60)
# The middle level is rare, and the others are everywhere: nothing but a constraint keeps its thresholds in order.
Y = np.digitize(SIGNAL, [-1.5, 0.0, 1.5]).astype(float)
RARE = np.where(np.arange(60) % 20 == 7, 1.0, 2.0 * (RNG.random(60) > 0.5))
C = RNG.uniform(0.5, 1.5, 60)


def objective(loss, y, n_shards=1, keep=slice(None)):
    opened = Threads(n_shards=n_shards).open(from_arrays(X[keep]))
    labels, costs = (opened.scatter(column[keep]) for column in (y, C))
    return Objective(opened, labels, costs, loss, L2(), 1.0, "none")


def by_cvxpy(loss, y):
    w, t = cp.Variable(3), cp.Variable(loss.n_levels - 1)
    form = cp.logistic if getattr(loss, "margin", "") == "logistic" else lambda a: cp.pos(1 + a)
    z, total, constraints = X @ w, 0, []
    if isinstance(loss, LevelPairs):
        lower, higher = np.nonzero(y[:, None] < y)
        weights = C[lower] * C[higher]
        costs = loss.cost_matrix(loss.n_levels)[y[lower].astype(int), y[higher].astype(int)]
        total = C.mean() / weights.sum() * cp.sum(cp.multiply(weights * costs, form(z[lower] - z[higher])))
    else:
        for k in range(loss.n_levels - 1):
            above = np.flatnonzero(y > k if loss.all_thresholds else y == k + 1)
            below = np.flatnonzero(y <= k if loss.all_thresholds else y == k)
            total += cp.sum(cp.multiply(C[above], form(t[k] - z[above])))
            total += cp.sum(cp.multiply(C[below], form(z[below] - t[k])))
        constraints = [t[k] <= t[k + 1] for k in range(loss.n_levels - 2)]
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + total), constraints)
    return problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9)


@pytest.mark.parametrize("labels", ["four levels", "a rare one"])
@pytest.mark.parametrize("loss", [*(kind() for kind in THRESHOLDS), LevelPairs(), LevelPairs("squared")], ids=repr)
def test_the_optimum_and_its_bound_against_cvxpy(loss, labels):
    """Of the constrained problem: to keep thresholds in order takes no constraint."""
    y = Y if labels == "four levels" else RARE
    loss = bound(loss, int(y.max()) + 1)
    wanted = by_cvxpy(loss, y)
    for solver in ("lbfgs", "bundle"):
        o = objective(loss, y)
        if (chosen := SOLVERS[solver](tol=1e-5)).refusal(o) is not None:
            continue
        result = chosen.run(o)
        assert result.status is Status.CONVERGED
        assert result.bound <= wanted * (1 + 1e-8)
        assert wanted * (1 - 1e-8) <= result.objective <= wanted * (1 + 1.1e-5)
        if o.parameters.n_extra:
            found = o.parameters.extra(result.theta).copy()
            ordered = o.parameters.join(result.theta[:3], extra=loss.in_order(found))
            assert o.at(ordered).value <= result.objective * (1 + 1e-14)
            assert np.all(np.diff(loss.in_order(found)) >= 0)


def test_without_a_constraint_thresholds_of_neighbours_would_not_stay_in_order():
    """What the rare level is for: the loss without largest and smallest thresholds has its optimum out of order."""
    from scipy.optimize import minimize

    def loose(theta):
        w, t = theta[:3], theta[3:]
        return 0.5 * float(w @ w) + sum(
            c * by_definition(ImmediateThreshold, z, k, t) for c, z, k in zip(C, X @ w, RARE.astype(int), strict=True)
        )

    t = minimize(loose, np.zeros(5)).x[3:]
    assert t[0] > t[1] + 0.5


@pytest.mark.parametrize("kind", THRESHOLDS)
def test_a_level_whose_rows_all_weigh_nothing(kind):
    """As in a fold: the threshold above all others has nothing to hold it, and the bound is still one."""
    keep = Y < 3
    loss = bound(kind(), 4)
    fewer = bound(kind(), 3)
    o = objective(loss, Y, keep=keep)
    result = SOLVERS["lbfgs" if loss.smooth else "bundle"](tol=1e-4).run(o)
    best = SOLVERS["lbfgs" if loss.smooth else "bundle"](tol=1e-8, max_passes=3000).run(objective(fewer, Y, keep=keep))
    assert result.bound <= best.objective * (1 + 1e-9)
    assert np.isfinite(result.theta).all()
    assert result.objective >= best.bound * (1 - 1e-9)
    assert result.objective <= best.objective * 1.01


@pytest.mark.parametrize("loss", [*(kind() for kind in THRESHOLDS), LevelPairs()], ids=repr)
def test_shards(loss):
    one, three = (SOLVERS["bundle"](tol=1e-6).run(objective(bound(loss, 4), Y, n)) for n in (1, 3))
    assert three.objective == pytest.approx(one.objective, rel=3e-6)


# What is refused


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LevelPairs("most"), "costs must be 'linear', 'unit', 'squared' or a matrix, not 'most'"),
        (lambda: LevelPairs([[0, 1], [1, 2]]), "zeros on the diagonal"),
        (lambda: LevelPairs(COSTS).with_classes(range(3)), "5 × 5 numbers, but there are 3 levels"),
        (lambda: AllThreshold("bad"), "levels must be a list of names, the lowest first, not 'bad'"),
        (lambda: AllThreshold(["bad"]), "at least two levels, not 1"),
        (lambda: AllThreshold([1, 2, 1.0]), "the level '1' is named twice"),
    ],
)
def test_settings_that_are_refused(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


def test_levels_by_their_names():
    names = np.array([1.0, 3.0, 7.0])
    assert AllThreshold().order(names).tolist() == [0, 1, 2]
    assert AllThreshold(["7", 1, 3]).order(names).tolist() == [2, 0, 1]
    with pytest.raises(LabelError, match=r"the label 7.0 is none of the levels, which are 1, 3"):
        AllThreshold([1, 3]).order(names)
    with pytest.raises(LabelError, match=r"no row .of positive weight. has the level '5'"):
        AllThreshold([1, 3, 5, 7]).order(names)


@pytest.mark.parametrize("seed", range(6))
def test_slopes_of_equal_thresholds_are_a_subgradient(seed):
    """Also when they are divided among them; and zero at the best thresholds in order."""
    random = np.random.default_rng(seed)
    z, y = rows(random, 40)
    y = np.where((y == 2) & (random.random(40) < 0.8), 4.0, y)  # a rare level
    c = random.uniform(0.1, 2.0, 40)
    loss = bound(ImmediateThreshold())
    for thresholds in (np.zeros(4), np.array([-1.0, 0.2, 0.2, 1.0]), np.array([-1.0, -1.0, 1.0, 1.0])):
        at = loss.with_extra(thresholds)
        slopes, by_threshold = at.slopes_and_extra(z, y, c)
        settled, value = at.settled_slopes(by_threshold), at.sum(z, y, c)
        assert settled.sum() == pytest.approx(by_threshold.sum())
        for spread in (1e-5, 1e-1, 10.0):
            dz, change = spread * random.normal(size=40), spread * random.normal(size=4)
            there = loss.with_extra(thresholds + change).sum(z + dz, y, c)
            assert there >= value + float(slopes @ dz + settled @ change) - 1e-11 * (1 + spread)
    opened = Threads().open(from_arrays(z[:, None]))
    o = Objective(opened, opened.scatter(y), opened.scatter(c), loss, L2(), 1.0, "none")
    best = o.at(np.append(1.0, random.normal(size=4))).with_best_intercept()
    assert np.all(np.diff(best.theta[1:]) >= 0)
    assert np.abs(best.free_slopes).max() <= 1e-12 * best.slope_size
    for _ in range(40):  # no thresholds are better, in order or not
        other = best.theta[1:] + random.choice([1e-3, 0.1, 2.0]) * random.normal(size=4)
        assert loss.with_extra(other).sum(z, y, c) >= best.loss * (1 - 1e-13)
