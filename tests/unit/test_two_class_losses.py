"""Losses of two classes over all rows: against all pairs, and against all labels that rows could be given."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from beeline.exceptions import ParameterError
from beeline.kernels import common_unit, f_beta, roc_area
from beeline.losses import BalancedError, BreakEven, FBeta, Precision, Recall, RocArea

LOSSES = [RocArea(), RocArea(0.3), FBeta(), FBeta(0.4), FBeta(3.0), BalancedError()]
LOSSES += [Precision(2), Recall(2), Recall(6), BreakEven()]
MEASURED_BY_SIGN = [FBeta(), FBeta(0.4), FBeta(3.0), BalancedError()]
IDS = [repr(loss) for loss in LOSSES]


def pairs_of(z, y, c, max_fpr=1.0):
    """The loss and its slopes by all pairs: a NumPy twin of the kernel. The highest negative rows count first."""
    up, down = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    down = down[np.argsort(-z[down], kind="stable")]
    counted = np.diff(np.minimum(np.cumsum(c[down]), max_fpr * c[down].sum()), prepend=0.0)
    weights = c[up][:, None] * counted / (c[up].sum() * max_fpr * c[down].sum())
    gaps = 1 - (z[up][:, None] - z[down])
    slopes = np.zeros(len(z))
    slopes[up] -= (weights * (gaps > 0)).sum(axis=1)
    slopes[down] += (weights * (gaps > 0)).sum(axis=0)
    return float(np.sum(weights * np.maximum(gaps, 0))), slopes


def measure(loss, y, called):
    """What the labels lack of the measure."""
    right, wrong, n = np.sum(called & (y > 0)), np.sum(called & (y < 0)), np.sum(y > 0)
    if isinstance(loss, FBeta):
        square = loss.beta**2
        return 1 - (1 + square) * right / (square * n + right + wrong)
    if isinstance(loss, BalancedError):
        return 0.5 * ((n - right) / n + wrong / (len(y) - n))
    return 1 - right / (loss.k if isinstance(loss, Precision) else n)


def all_labels(loss, z, y):
    """The loss by all labels that the rows could be given."""
    m, up = len(y), y > 0
    number = None if isinstance(loss, MEASURED) else min(up.sum() if isinstance(loss, BreakEven) else loss.k, m)
    best = -np.inf
    for bits in itertools.product((False, True), repeat=m):
        called = np.array(bits)
        if isinstance(loss, BalancedError):  # both classes count the same
            each = 0.5 * m * z / np.where(up, up.sum(), m - up.sum())
            scores = np.sum(each[called]) - np.sum(each[up])
        elif number is None:
            scores = np.sum(z[called]) - np.sum(z[up])
        elif called.sum() != number:
            continue
        elif (mistakes := min(number, up.sum()) - np.sum(called & up)) > 0:
            scores = mistakes * (np.mean(z[called & ~up]) - np.mean(z[up & ~called]))
        else:
            scores = 0.0
        best = max(best, measure(loss, y, called) + scores / m)
    return best


MEASURED = (FBeta, BalancedError)


def rows(random, n, *, spread=2.0, ties=False):
    y = np.where(random.random(n) < random.uniform(0.15, 0.85), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    z = spread * random.normal(size=n)
    return (np.round(z) if ties else z), y


@pytest.mark.parametrize("loss", LOSSES[2:], ids=IDS[2:])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_of_all_labels(loss, seed):
    random = np.random.default_rng(seed)
    z, y = rows(random, 9, spread=10.0 ** random.integers(-1, 3), ties=seed % 3 == 0)
    value, slopes = loss.value_and_grad(z, y, np.ones(9))
    assert value == pytest.approx(all_labels(loss, z, y), rel=1e-12, abs=1e-12)
    assert value >= 0
    # The slopes are those of labels that are as good.
    if isinstance(loss, FBeta):
        called = (y > 0) ^ (slopes != 0)
        again = measure(loss, y, called) + float(np.sum((called.astype(float) - (y > 0)) * z)) / 9
        assert again == pytest.approx(value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("max_fpr", [1.0, 0.5, 0.25, 0.07, 0.01])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 300), ties=st.booleans())
def test_roc_area_by_all_pairs(max_fpr, seed, n, ties):
    random = np.random.default_rng(seed)
    z, y = rows(random, n, spread=10.0 ** random.integers(-3, 4), ties=ties)
    z = z + random.choice([0.0, 1e3])
    weights = random.choice([np.ones(n), random.uniform(0.1, 3.0, n), random.integers(1, 4, n).astype(float)])
    weights = weights / weights.mean()
    value, slopes = RocArea(max_fpr).value_and_grad(z, y, weights)
    wanted, wanted_slopes = pairs_of(z, y, weights, max_fpr)
    assert value == pytest.approx(wanted, rel=1e-10, abs=1e-14)
    if not ties:  # where other subgradients are as good
        np.testing.assert_allclose(slopes, wanted_slopes, atol=1e-12)


@pytest.mark.parametrize("max_fpr", [1.0, 0.5, 0.07])
@pytest.mark.parametrize("levels", [1, 2, 5, 1000])
def test_the_area_that_is_measured_with_ties(max_fpr, levels):
    """scikit-learn's, whose standardisation (McClish) is undone: 0.5·(1 + (area − β²/2) / (β − β²/2))."""
    random = np.random.default_rng(levels)
    z, y = random.integers(0, levels, 300).astype(float), np.where(random.random(300) < 0.3, 1.0, -1.0)
    weights = random.integers(1, 4, 300).astype(float)
    found = RocArea(max_fpr).measured(z, y, weights)
    theirs = roc_auc_score(y, z, sample_weight=weights, max_fpr=None if max_fpr == 1 else max_fpr)
    least = max_fpr**2 / 2
    area = theirs if max_fpr == 1 else (2 * theirs - 1) * (max_fpr - least) + least
    assert found == pytest.approx(area / max_fpr, rel=1e-12)
    if levels == 1:
        assert found == pytest.approx(max_fpr / 2)


@pytest.mark.parametrize("seed", range(8))
def test_the_worst_negative_rows_of_all(seed):
    """The part of the weight is that of the negative rows that cost most: against all orders of them."""
    random = np.random.default_rng(seed)
    z, y = rows(random, 9)
    y[2:6] = -1.0
    weights, part = random.uniform(0.2, 2.0, 9), random.uniform(0.05, 0.95)
    weights /= weights.mean()
    up, down = y > 0, np.flatnonzero(y < 0)
    costs = np.array([np.sum(weights[up] * np.maximum(0, 1 - z[up] + z[j])) for j in down]) / weights[up].sum()
    most = part * weights[down].sum()
    best = 0.0
    for order in itertools.permutations(range(len(down)), min(len(down), 6)):
        counted = np.diff(np.minimum(np.cumsum(weights[down][list(order)]), most), prepend=0.0)
        best = max(best, float(np.sum(counted * costs[list(order)])) / most)
    assert RocArea(part).value_and_grad(z, y, weights)[0] == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@pytest.mark.parametrize("seed", range(4))
def test_convex_with_these_subgradients(loss, seed):
    random = np.random.default_rng(seed)
    z, y = rows(random, 40)
    weights = [np.ones(40), random.integers(1, 4, 40).astype(float)][seed % 2]
    value, slopes = loss.value_and_grad(z, y, weights / weights.mean())
    for spread in (1e-6, 1e-2, 1.0, 100.0):
        other = z + spread * random.normal(size=40)
        there = loss.value_and_grad(other, y, weights / weights.mean())[0]
        assert there >= value + float(slopes @ (other - z)) - 1e-12 * (1 + spread)


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@pytest.mark.parametrize("seed", range(4))
def test_slopes_by_differences(loss, seed):
    random = np.random.default_rng(seed)
    z, y = rows(random, 60)
    weights = random.integers(1, 4, 60) / 1.0
    weights /= weights.mean()
    slopes = loss.value_and_grad(z, y, weights)[1]
    direction = random.normal(size=60)
    up, down = (loss.value_and_grad(z + step * direction, y, weights)[0] for step in (1e-7, -1e-7))
    assert float(slopes @ direction) == pytest.approx((up - down) / 2e-7, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
@pytest.mark.parametrize("seed", range(6))
def test_weights_are_repetition(loss, seed):
    random = np.random.default_rng(seed)
    z, y = rows(random, 25, ties=seed % 2 == 0)
    times = random.integers(0, 5, 25)
    times[:2], times[2] = 2, 1
    weights = times / times[times > 0].mean()
    found = loss.evaluated(z, y, weights)
    each = np.repeat(np.arange(25), times)
    value, slopes = loss.value_and_grad(z[each], y[each], np.ones(len(each)))
    assert found.values[0] == pytest.approx(value, rel=1e-11, abs=1e-13)
    assert found.costs[0] == pytest.approx(1.0, rel=1e-14)
    direction = random.normal(size=25)
    steps = [loss.evaluated(z + s * direction, y, weights).values[0] for s in (1e-7, -1e-7)]
    if seed % 2:
        assert float(found.slopes @ direction) == pytest.approx((steps[0] - steps[1]) / 2e-7, rel=1e-5, abs=1e-6)
        sums = np.bincount(each, slopes, minlength=25)
        np.testing.assert_allclose(found.slopes, sums, atol=1e-12)


@pytest.mark.parametrize("loss", MEASURED_BY_SIGN, ids=repr)
@pytest.mark.parametrize("seed", range(6))
def test_at_least_what_the_signs_get_wrong(loss, seed):
    random = np.random.default_rng(seed)
    for spread in (0.01, 1.0, 100.0):
        z, y = rows(random, 50, spread=spread)
        weights = random.uniform(0.1, 3.0, 50)
        value = loss.value_and_grad(z, y, weights / weights.mean())[0]
        assert value >= 1 - loss.measured(z, y, weights) - 1e-12
        assert loss.value_and_grad(z, y, np.ones(50))[0] >= measure(loss, y, z > 0) - 1e-12
        assert 1 - loss.measured(z, y, np.ones(50)) == pytest.approx(measure(loss, y, z > 0))


@pytest.mark.parametrize("loss", [Precision(3), Recall(3), Recall(45), BreakEven(), RocArea(), RocArea(0.2)], ids=repr)
@pytest.mark.parametrize("seed", range(6))
def test_at_least_what_the_highest_rows_get_wrong(loss, seed):
    random = np.random.default_rng(seed)
    for spread in (0.01, 1.0, 100.0):
        z, y = rows(random, 50, spread=spread)
        weights = random.integers(1, 4, 50).astype(float)
        value = loss.value_and_grad(z, y, weights / weights.mean())[0]
        assert value >= 1 - loss.measured(z, y, weights) - 1e-12
        if isinstance(loss, Precision | Recall):
            called = np.zeros(50, bool)
            called[np.argsort(-z)[: loss.k]] = True
            assert 1 - loss.measured(z, y, np.ones(50)) == pytest.approx(measure(loss, y, called))
    far = np.where(y > 0, 1e6, -1e6) + z
    assert loss.value_and_grad(far, y, np.ones(50))[0] == pytest.approx(
        1 - loss.measured(far, y, np.ones(50)), abs=1e-9
    )


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
def test_only_differences_matter_where_a_loss_says_so(loss):
    z, y = rows(np.random.default_rng(0), 40)
    one, other = (loss.value_and_grad(z + shift, y, np.ones(40)) for shift in (0.0, 1.5))
    assert (one[0] == pytest.approx(other[0], rel=1e-12)) == loss.differences_only
    if loss.differences_only:
        assert abs(one[1].sum()) < 1e-14


def f_beta_by_steps(z, y, w, beta, steps=20_000):
    """F_β with weights that may be parted, by small steps of the negative weight: from below."""
    up, down = (rows[np.argsort(-z[rows], kind="stable")] for rows in (np.flatnonzero(y > 0), np.flatnonzero(y < 0)))
    total, square = w.sum(), beta**2
    wrong = np.append(np.linspace(0, w[down].sum(), steps), np.cumsum(w[down]))
    scores = np.interp(wrong, np.append(0, np.cumsum(w[down])), np.append(0, np.cumsum(w[down] * z[down])))
    best = 0.0
    for k in range(len(up) + 1):
        right = w[up[:k]].sum()
        lacks = 1 - (1 + square) * right / (square * w[up].sum() + right + wrong)
        best = max(best, float(np.max(lacks + (scores - np.sum(w[up[k:]] * z[up[k:]])) / total)))
    return best


@pytest.mark.parametrize("beta", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("seed", range(6))
def test_weights_without_a_common_unit_may_be_parted(beta, seed):
    random = np.random.default_rng(seed)
    z, y = rows(random, 12)
    weights = random.uniform(0.1, 3.0, 12)
    weights /= weights.mean()
    value = FBeta(beta).value_and_grad(z, y, weights)[0]
    below = f_beta_by_steps(z, y, weights, beta)
    assert below - 1e-12 <= value <= below + 1e-6


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
def test_rows_of_one_class_cost_nothing(loss):
    z = np.arange(5.0)
    for y in (np.ones(5), -np.ones(5)):
        value, slopes = loss.value_and_grad(z, y, np.ones(5))
        assert value == 0
        assert not slopes.any()


@pytest.mark.parametrize("loss", LOSSES, ids=IDS)
def test_scores_far_out(loss):
    z, y = rows(np.random.default_rng(0), 60)
    value, slopes = loss.value_and_grad(1e300 * z, y, np.ones(60))
    assert value >= 0
    assert np.isfinite(slopes).all()
    outlier = np.append(z, 1e12)
    value, slopes = loss.value_and_grad(outlier, np.append(y, 1.0), np.ones(61))
    assert np.isfinite(value)
    assert np.isfinite(slopes).all()
    assert loss.value_and_grad(np.append(z, np.inf), np.append(y, 1.0), np.ones(61))[0] == np.inf
    with pytest.raises(ParameterError, match="must be a number"):
        loss.value_and_grad(np.append(z, np.nan), np.append(y, 1.0), np.ones(61))


@pytest.mark.parametrize("shape", ["normal", "heavy", "ties", "one"])
@pytest.mark.parametrize("part", [1.0, 0.1])
def test_large_columns_by_a_twin(shape, part, same_bits):
    """So many rows that threads share the work, with scores that do not spread evenly."""
    random, n = np.random.default_rng(3), 200_000
    z = {
        "normal": random.normal(size=n),
        "heavy": random.standard_cauchy(n) ** 3,
        "ties": np.round(random.normal(size=n), 1),
        "one": np.full(n, 0.3),
    }[shape]
    y, c = np.where(random.random(n) < 0.3, 1.0, -1.0), random.uniform(0.5, 1.5, n)

    def both():
        slopes = np.empty(n), np.empty(n)
        found = roc_area(z, y, c, part, slopes[0]), f_beta(z, y, c, 1.0, slopes[1])
        return [*slopes, np.array(found)]

    found = same_bits(both)
    up, down = y > 0, np.flatnonzero(y < 0)
    down = down[np.argsort(-z[down], kind="stable")]
    counted = np.diff(np.minimum(np.cumsum(c[down]), part * c[down].sum()), prepend=0.0)
    keys, weights = z[down][::-1], counted[::-1]
    weight = np.append(0, np.cumsum(weights[::-1]))[::-1]
    scores = np.append(0, np.cumsum((weights * keys)[::-1]))[::-1]
    first = np.searchsorted(keys, z[up] - 1, side="right")
    twin = float(np.sum(c[up] * ((1 - z[up]) * weight[first] + scores[first]))) / (c[up].sum() * weight[0])
    assert found[2][0, 0] == pytest.approx(twin, rel=1e-6 if shape == "heavy" else 1e-10)
    if shape == "normal":
        wanted = -c[up] * weight[first] / (c[up].sum() * weight[0]) * c.mean()
        np.testing.assert_allclose(found[0][up], wanted, rtol=1e-9, atol=1e-18)


def test_common_units():
    assert common_unit(np.array([2.0, 3.0, 0.0])) == pytest.approx(1.0)
    assert common_unit(np.array([4.0, 6.0, 10.0])) == pytest.approx(2.0)
    assert common_unit(np.array([0.7, 0.7])) == 0.7
    assert common_unit(np.array([1.0, np.pi])) == 0
    assert common_unit(np.zeros(3)) == 0
    random = np.random.default_rng(0)
    whole = random.integers(1, 100, 500)
    assert common_unit(whole / whole.mean()) == pytest.approx(1 / whole.mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RocArea(0.0), "max_fpr must be above 0 and at most 1, not 0.0"),
        (lambda: RocArea(1.5), "max_fpr must be above 0"),
        (lambda: FBeta(-1.0), "beta must be positive"),
        (lambda: Precision(0), "k must be at least 1, not 0"),
        (lambda: Recall(1.5), "k must be a whole number"),
    ],
)
def test_settings_that_are_refused(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


def test_k_rows_need_weights_that_can_be_counted():
    z, y = rows(np.random.default_rng(0), 20)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, 20)
    for kind in (Precision, Recall):
        with pytest.raises(ParameterError, match="not whole multiples of one weight"):
            kind(3).value_and_grad(z, y, weights)
    assert BreakEven().value_and_grad(z, y, weights / weights.mean())[0] > 0
