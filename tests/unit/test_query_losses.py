"""Losses within queries against their definitions: all orders of few documents, all pairs, differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from query_twins import TWINS, average_precision, best_order, ndcg, reciprocal_rank, utility
from scipy.optimize import linear_sum_assignment

from beeline.exceptions import LabelError, ParameterError
from beeline.kernels import query_losses
from beeline.losses import LOSSES, get_loss

SETTINGS = {
    "ndcg": [{}, {"k": 1}, {"k": 2}, {"k": 3}, {"k": 10}],
    "rank_utility": [{}, {"half_life": 1.5}],
}
CASES = [(name, setting) for name in TWINS for setting in SETTINGS.get(name, [{}])]
MARGINS = ("ndcg", "rank_utility", "map", "mrr")
MEASURES = {
    "ndcg": ndcg,
    "rank_utility": utility,
    "map": average_precision,
    "mrr": reciprocal_rank,
}
RANDOM = np.random.default_rng(5)


def one(name, setting, z, y, w=None):
    w = np.ones(len(y)) if w is None else w
    return get_loss(name, **setting).value_and_grad(np.asarray(z, float), np.asarray(y, float), w)


def random_query(random, n, levels=4, spread=1.0):
    y = random.integers(0, levels, n).astype(float)
    if random.random() < 0.2:
        y = y / 2  # fractions are relevances too
    z = spread * random.normal(size=n)
    return (np.round(z, 1) if random.random() < 0.5 else z), y


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_values_are_those_of_all_orders(name, setting):
    random = np.random.default_rng(1)
    for trial in range(60):
        n = int(random.integers(1, 7 if trial % 10 == 0 else 6))
        z, y = random_query(random, n, int(random.integers(1, 6)), random.choice([0.1, 1.0, 10.0]))
        assert one(name, setting, z, y)[0] == pytest.approx(TWINS[name](z, y, np.ones(n), **setting), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-3, 3), st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0])), min_size=1, max_size=5),
    st.sampled_from(CASES),
)
def test_values_of_any_few_documents(documents, case):
    z, y = np.array(documents).T
    name, setting = case
    assert one(name, setting, z, y)[0] == pytest.approx(TWINS[name](z, y, np.ones(len(y)), **setting), abs=1e-12)


@pytest.mark.parametrize("name", ["pairwise_hinge", "pairwise_logistic", "listnet"])
def test_weights_of_rows(name):
    random = np.random.default_rng(2)
    for _ in range(30):
        z, y = random_query(random, 12)
        w = random.uniform(0.2, 3, size=12)
        value, _slopes = one(name, {}, z, y, w)
        assert value == pytest.approx(TWINS[name](z, y, w), rel=1e-12)
        assert one(name, {}, np.repeat(z, 2), np.repeat(y, 2))[0] == pytest.approx(one(name, {}, z, y)[0], rel=1e-12)
        twice = np.where(np.arange(12) % 3 == 0, 2.0, 1.0)
        again = np.repeat(np.arange(12), twice.astype(int))
        assert one(name, {}, z[again], y[again])[0] == pytest.approx(one(name, {}, z, y, twice)[0], rel=1e-12)


@pytest.mark.parametrize(("name", "setting"), CASES)
@pytest.mark.parametrize("n", [2, 7, 40])
def test_slopes_are_subgradients(name, setting, n):
    random = np.random.default_rng(3)
    for _ in range(20):
        z, y = random_query(random, n)
        value, slopes = one(name, setting, z, y)
        assert abs(slopes.sum()) < 1e-12  # only differences matter
        for _ in range(5):
            step = random.choice([1e-3, 0.1, 2.0]) * random.normal(size=n)
            assert one(name, setting, z + step, y)[0] >= value + slopes @ step - 1e-12 * (1 + abs(step).sum())
        if get_loss(name).smooth:
            step = 1e-6 * random.normal(size=n)
            change = one(name, setting, z + step, y)[0] - one(name, setting, z - step, y)[0]
            assert change == pytest.approx(2 * float(slopes @ step), rel=1e-4, abs=1e-11)


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_what_changes_nothing(name, setting):
    random = np.random.default_rng(4)
    for _ in range(20):
        z, y = random_query(random, 15)
        value, slopes = one(name, setting, z, y)
        order = random.permutation(15)
        other, moved = one(name, setting, z[order], y[order])
        assert other == pytest.approx(value, rel=1e-12, abs=1e-13)
        if len(set(z)) == len(z):
            np.testing.assert_allclose(moved, slopes[order], atol=1e-12)
        assert one(name, setting, z + 7.25, y)[0] == pytest.approx(value, rel=1e-11, abs=1e-12)
        if name.startswith("pairwise"):  # only the order of relevances counts
            assert one(name, setting, z, y**2 + 1)[0] == value
        if name in ("map", "mrr"):  # only whether there is any
            assert one(name, setting, z, np.where(y > 0, 7.0, 0.0))[0] == value
        if name == "listnet":
            assert one(name, setting, z, y + 3)[0] == pytest.approx(value, rel=1e-12)
        if name == "rank_utility":
            assert one(name, setting, z, 5 * y)[0] == pytest.approx(value, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(("name", "setting"), [case for case in CASES if case[0] in MARGINS])
def test_max_margin_losses_bound_their_measure(name, setting):
    random = np.random.default_rng(6)
    for n in (2, 5, 30):
        for _ in range(30):
            z, y = random_query(random, n)
            relevant = y > 0
            if not relevant.any() or (name in ("map", "mrr") and relevant.all()) or len(set(y)) < 2:
                assert one(name, setting, z, y)[0] == 0
                continue
            predicted = np.lexsort((y, -z))  # of equal scores the worse first
            assert one(name, setting, z, y)[0] >= 1 - MEASURES[name](y, predicted, **setting) - 1e-12
            apart = 1e4 * y + z
            assert one(name, setting, apart, y) == (0.0, pytest.approx(np.zeros(n)))


def assigned(z, y, k):
    """max_π Σ_i c_i f_π(i) − a_i b_π(i) by SciPy's assignment, and as a function of an order."""
    gains, best = 2.0**y - 1, best_order(y)
    discounts = 1 / np.log2(np.arange(2, len(y) + 2)) * (np.arange(len(y)) < (k or len(y)))
    c, worth = gains[best] / gains.sum(), gains / (discounts @ gains[best])
    values = np.outer(c, z) - np.outer(discounts, worth)
    most = values[linear_sum_assignment(values, maximize=True)].sum()
    return most, lambda order: float(c @ z[order] - discounts @ worth[order])


@pytest.mark.parametrize("levels", [2, 3, 5, 20, 1000])
@pytest.mark.parametrize("k", [None, 1, 5])
def test_the_worst_order_is_an_assignment(levels, k):
    """By SciPy's assignment of all documents to all places; few levels and many are solved by different means."""
    random = np.random.default_rng(7)
    for n in (3, 20, 100, 300):
        for spread in (0.01, 0.3, 3.0):
            for following in (0.0, 1.0):
                y = random.integers(0, levels, n) * 4.0 / levels
                z = spread * (random.normal(size=n) + following * y)
                if len(set(y)) < 2:
                    continue
                most, value_of = assigned(z, y, k)
                found, slopes = one("ndcg", {"k": k}, z, y)
                assert found == pytest.approx(most - value_of(best_order(y)), abs=1e-11)
                assert slopes.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("k", [None, 1, 7])
def test_of_two_levels_the_assignment_is_a_sort(k):
    """The best irrelevant documents first, as many of the worst relevant ones last: no other order is needed."""
    random = np.random.default_rng(11)
    for n in (2, 9, 60):
        for spread in (0.0, 0.02, 0.3, 3.0):
            z, y = spread * random.normal(size=n), (np.arange(n) < 1 + n // 3).astype(float)
            falling = np.argsort(-z, kind="stable")
            good, bad = (falling[y[falling] == level] for level in (1, 0))
            m, most = len(good), min(len(good), len(bad))
            sorts = [
                np.concatenate([bad[:t], good[: m - t], bad[t:][: n - m - t], good[m - t :]]) for t in range(most + 1)
            ]
            best, value_of = assigned(z, y, k)
            assert max(map(value_of, sorts)) == pytest.approx(best, abs=1e-12)
            found, _slopes = one("ndcg", {"k": k}, z, y)
            assert found == pytest.approx(best - value_of(best_order(y)), abs=1e-12)


@pytest.mark.parametrize("levels", [3, 6, 10, 100])
def test_the_worst_order_is_found_among_ties(levels):
    """Paths of the same length, but for their rounding, are no circle to go round for ever."""
    random = np.random.default_rng(8)
    for n in (60, 400):
        for k in (1, 10, None):
            z = np.round(random.normal(size=n), 1) / 3
            y = random.integers(0, levels, n).astype(float)
            value, slopes = one("ndcg", {"k": k}, z, y)
            moved = one("ndcg", {"k": k}, z + 1e-6 * slopes, y)[0]
            assert moved >= value + 1e-6 * (slopes @ slopes) - 1e-12  # a plane below a convex function
            assert slopes.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("relevances", ["0 to 4", "0 to 40", "halves"])
def test_ten_thousand_documents_in_a_query(name, relevances):
    """No hang, whatever the scores are, and planes below the loss where it can be known."""
    random, n = np.random.default_rng(12), 10_000
    y = {
        "0 to 4": random.integers(0, 5, n),
        "0 to 40": random.integers(0, 41, n),
        "halves": random.integers(0, 9, n) / 2,
    }
    y, setting = y[relevances].astype(float), {"k": 10} if name == "ndcg" else {}
    if relevances == "0 to 40" and name in ("ndcg", "rank_utility"):
        y = y[:1500]  # the same for more, which takes a second each
    z = random.normal(size=len(y))
    value, slopes = one(name, setting, z, y)
    step = 0.1 * random.normal(size=len(y))
    assert one(name, setting, z + step, y)[0] >= value + slopes @ step - 1e-9
    for far in (np.zeros(len(y)), np.where(z > 0, 1e300, -1e300)):
        if name == "pairwise_logistic" and far.any():
            continue  # one pair after the other
        value, slopes = one(name, setting, far, y)
        assert np.isfinite(value)
        assert np.isfinite(slopes).all()
        assert abs(slopes.sum()) < 1e-9


@pytest.mark.parametrize("name", ["ndcg", "rank_utility"])
def test_what_would_take_too_long_is_refused(name):
    random = np.random.default_rng(13)
    y, z = random.random(5000), random.normal(size=5000)
    words = r"a query has 5000 documents of 5000 different relevances, and finding the worst order .* 'listnet'"
    with pytest.raises(LabelError, match=words):
        one(name, {}, z, y)
    few, slopes = one("ndcg", {"k": 3}, z[:3000], y[:3000])  # of a few places the order is found soon
    assert few > 0
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize(("name", "setting"), CASES)
@pytest.mark.parametrize("tiny", [1e-3, 1e-17, 1e-300])
def test_tiny_relevances_are_relevances(name, setting, tiny):
    """Gains that are tiny together are as good as large ones."""
    z, y = np.array([0.0, 1.0, 0.5]), tiny * np.array([1.0, 0.0, 2.0])
    value, slopes = one(name, setting, z, y)
    assert np.isfinite(value)
    if name != "listnet":
        assert value > 0.1
        assert slopes[0] <= 0 < slopes[1]


@pytest.mark.parametrize("name", TWINS)
def test_far_scores(name):
    y = np.array([2.0, 1, 0, 0, 1])
    for size in (30.0, 250.0, 301.0, 1000.0):
        z = size * np.array([-1.0, 0.3, 0, 1, -0.2])
        value, slopes = one(name, {}, z, y)
        assert value == pytest.approx(TWINS[name](z, y, np.ones(5)), rel=1e-12)
        assert np.isfinite(slopes).all()
    assert one(name, {}, [np.inf, 0, 0, 0, 0], y)[0] == np.inf
    assert np.isnan(one(name, {}, [np.nan, 0, 0, 0, 0], y)[0])


def test_logistic_pairs_by_products_are_those_one_by_one():
    random = np.random.default_rng(8)
    for n in (2, 9, 100, 700):
        for spread in (0.01, 1.0, 30.0, 100.0):
            z, y = spread * random.uniform(-1, 1, n), random.integers(0, 3, n).astype(float)
            d = z[:, None] - z
            pairs = y[:, None] > y
            if not pairs.any():
                continue
            value, slopes = one("pairwise_logistic", {}, z, y)
            assert value == pytest.approx(np.logaddexp(0, -d)[pairs].mean(), rel=1e-12, abs=1e-15)
            each = np.where(pairs, 1 / (1 + np.exp(np.minimum(d, 700))), 0.0) / pairs.sum()
            np.testing.assert_allclose(slopes, each.sum(axis=0) - each.sum(axis=1), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("name", TWINS)
def test_many_queries_are_queries_one_by_one(name):
    random = np.random.default_rng(9)
    sizes = random.integers(1, 60, 400)
    starts = np.append(0, np.cumsum(sizes))
    z, y = random.normal(size=starts[-1]), random.integers(0, 4, starts[-1]).astype(float)
    loss, w = get_loss(name), np.ones(starts[-1])
    values, slopes, _ = loss.of_groups(z, y, w, starts)
    for g in range(0, 400, 7):
        of = slice(starts[g], starts[g + 1])
        value, slope = loss.value_and_grad(z[of], y[of], w[of])
        assert value == values[g]
        np.testing.assert_array_equal(slope, slopes[of])


@pytest.mark.parametrize("name", TWINS)
def test_threads_do_not_show(name, same_bits):
    random = np.random.default_rng(10)
    starts = np.arange(0, 40_001, 100)
    z, y = random.normal(size=40_000), random.integers(0, 2, 40_000).astype(float)

    def run():
        return np.concatenate(get_loss(name).of_groups(z, y, np.ones(40_000), starts)[:2])

    same_bits(run)


@pytest.mark.parametrize(
    ("name", "setting", "words"),
    [
        ("ndcg", {"k": 0}, "k must be at least 1, not 0"),
        ("ndcg", {"k": 1.5}, "k must be a whole number, not 1.5"),
        ("rank_utility", {"half_life": 1}, "half_life must be finite and more than 1, not 1"),
    ],
)
def test_settings_are_looked_at(name, setting, words):
    with pytest.raises(ParameterError, match=words):
        LOSSES[name](**setting)


@pytest.mark.parametrize("name", TWINS)
def test_relevances_are_not_negative(name):
    with pytest.raises(LabelError, match=r"row 1 has the label -1; .* must be relevances: numbers that are not neg"):
        get_loss(name).check_labels(np.array([0.0, -1.0]))
    get_loss(name).check_labels(np.array([0.0, 0.5, 2000.0]))
    assert np.isfinite(one(name, {}, [0.0, 1.0, 0.0], [0.0, 2000.0, 1.0])[0])


@pytest.mark.parametrize("name", MARGINS)
def test_rows_of_a_query_weigh_the_same(name):
    with pytest.raises(ParameterError, match="sample_weight must be the same for all rows of a query"):
        one(name, {}, [0.0, 1.0], [0.0, 1.0], np.array([0.5, 1.5]))


def test_what_the_kernel_refuses():
    three, two = np.ones(3), np.array([0, 3])
    for starts, values, words in (
        ([0, 2], 1, "end behind"),
        ([0, 0, 3], 2, "must have a row"),
        ([0, 3], 2, "one value"),
    ):
        with pytest.raises(ValueError, match=words):
            query_losses("map", three, three, three, np.array(starts), three, np.ones(values), np.ones(3))
    with pytest.raises(ValueError, match="no such loss"):
        query_losses("hinge", three, three, three, two, three, np.ones(1), np.ones(3))
