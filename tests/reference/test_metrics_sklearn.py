"""Measures, against scikit-learn's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as theirs

from beeline import metrics as ours
from beeline.exceptions import DataError


def case(seed, n=60, n_classes=3, ties=True):
    rng = np.random.default_rng(seed)
    y, predicted = rng.integers(0, n_classes, n), rng.integers(0, n_classes, n)
    z = np.round(rng.standard_normal(n), 1 if ties else 12) + y * 0.3
    weights = rng.integers(0, 4, n) * 0.5
    p = rng.dirichlet(np.ones(n_classes), n)
    return y, predicted, z, weights, p


seeds = st.integers(0, 10_000)


@settings(max_examples=20)
@given(seeds, st.booleans())
def test_classification(seed, weighted):
    y, predicted, _, weights, p = case(seed)
    c = weights if weighted else None
    assert ours.accuracy(y, predicted, c) == pytest.approx(theirs.accuracy_score(y, predicted, sample_weight=c))
    table = ours.confusion(y, predicted, 3, c)
    expected = theirs.confusion_matrix(y, predicted, sample_weight=c, labels=[0, 1, 2])
    np.testing.assert_allclose(table, expected)
    for average in ("macro", "micro"):
        score = theirs.f1_score(y, predicted, average=average, sample_weight=c, labels=[0, 1, 2], zero_division=0)
        assert ours.f1(table, average) == pytest.approx(score)
        more = {"average": average, "sample_weight": c, "labels": [0, 1, 2], "zero_division": 0}
        assert ours.precision(table, average) == pytest.approx(theirs.precision_score(y, predicted, **more))
        assert ours.recall(table, average) == pytest.approx(theirs.recall_score(y, predicted, **more))
    assert ours.log_loss(y, p, c) == pytest.approx(theirs.log_loss(y, p, sample_weight=c, labels=[0, 1, 2]))


@settings(max_examples=20)
@given(seeds, st.booleans(), st.booleans())
def test_two_classes(seed, weighted, ties):
    y, predicted, z, weights, _ = case(seed, n_classes=2, ties=ties)
    c = weights if weighted else None
    assert ours.auc(y == 1, z, c) == pytest.approx(theirs.roc_auc_score(y, z, sample_weight=c))
    expected = theirs.average_precision_score(y, z, sample_weight=c)
    assert ours.average_precision(y == 1, z, c) == pytest.approx(expected)
    table = ours.confusion(y, predicted, 2, c)
    assert ours.f1(table, "binary") == pytest.approx(theirs.f1_score(y, predicted, sample_weight=c, zero_division=0))


@settings(max_examples=20)
@given(seeds, st.booleans(), st.booleans())
def test_curves(seed, weighted, ties):
    y, _, z, weights, _ = case(seed, n_classes=2, ties=ties)
    c = weights + 0.5 if weighted else None
    curve = ours.ranking(y == 1, z, c).curve()
    false, true, thresholds = theirs.roc_curve(y, z, sample_weight=c, drop_intermediate=False)
    np.testing.assert_allclose(curve.thresholds, thresholds[1:])
    np.testing.assert_allclose(curve.false_positives, false[1:], atol=1e-12)
    np.testing.assert_allclose(curve.recall, true[1:], atol=1e-12)
    precision, _, at = theirs.precision_recall_curve(y, z, sample_weight=c)
    np.testing.assert_allclose(curve.precision, precision[:-1][::-1])
    np.testing.assert_allclose(curve.thresholds, at[::-1])


def test_a_long_curve_is_thinned_and_keeps_its_ends():
    z = np.random.default_rng(0).standard_normal(5000)
    curve = ours.ranking(z + np.random.default_rng(1).standard_normal(5000) > 0, z).curve(100)
    assert 90 <= len(curve.thresholds) <= 100
    assert curve.thresholds[0] == z.max()
    assert (curve.false_positives[-1], curve.recall[-1]) == (1, 1)


@settings(max_examples=20)
@given(seeds, st.booleans())
def test_regression(seed, weighted):
    _, _, z, weights, p = case(seed)
    c, y = weights if weighted else None, p[:, 0]
    assert ours.rmse(y, z, c) == pytest.approx(theirs.root_mean_squared_error(y, z, sample_weight=c))
    assert ours.mae(y, z, c) == pytest.approx(theirs.mean_absolute_error(y, z, sample_weight=c))
    assert ours.r2(y, z, c) == pytest.approx(theirs.r2_score(y, z, sample_weight=c))


def test_undefined_is_nan():
    one = np.ones(4)
    assert math.isnan(ours.auc(one == 1, np.arange(4.0)))
    assert math.isnan(ours.auc(np.zeros(0, bool), np.zeros(0)))
    assert math.isnan(ours.average_precision(one == 0, np.arange(4.0)))
    assert ours.average_precision(one == 1, np.arange(4.0)) == 1
    assert math.isnan(ours.r2(one, np.arange(4.0)))
    assert math.isnan(ours.accuracy(np.zeros(0), np.zeros(0)))
    assert math.isnan(ours.mae(one, one, np.zeros(4)))


def test_a_probability_of_zero_costs_much_but_not_everything():
    assert ours.log_loss(np.array([0]), np.array([[0.0, 1.0]])) == pytest.approx(-math.log(np.finfo(float).eps))


def test_weights_mean_repetition():
    y, predicted, z, _, p = case(0, n_classes=2)
    counts = np.random.default_rng(1).integers(0, 3, len(y))
    many = np.repeat(np.arange(len(y)), counts)
    c = counts.astype(float)
    assert ours.auc(y == 1, z, c) == pytest.approx(ours.auc(y[many] == 1, z[many]))
    assert ours.log_loss(y, p, c) == pytest.approx(ours.log_loss(y[many], p[many]))
    assert ours.accuracy(y, predicted, c) == pytest.approx(ours.accuracy(y[many], predicted[many]))


def test_lengths_must_match():
    with pytest.raises(DataError, match="3 labels do not match 2 predictions"):
        ours.accuracy(np.zeros(3), np.zeros(2))


@settings(max_examples=20)
@given(seeds, st.booleans(), st.sampled_from([0.5, 1.0, 2.0, 3.5]))
def test_f_beta(seed, weighted, beta):
    y, predicted, _, weights, _ = case(seed)
    c = weights if weighted else None
    more = {"beta": beta, "sample_weight": c, "zero_division": 0}
    table = ours.confusion(y, predicted, 3, c)
    score = theirs.fbeta_score(y, predicted, average="macro", labels=[0, 1, 2], **more)
    assert ours.f_beta(table, beta) == pytest.approx(score)
    two = ours.confusion(y > 0, predicted > 0, 2, c)
    assert ours.f_beta(two, beta, "binary") == pytest.approx(theirs.fbeta_score(y > 0, predicted > 0, **more))


@settings(max_examples=20)
@given(seeds, st.booleans())
def test_levels_and_balance(seed, weighted):
    y, predicted, _, weights, _ = case(seed, n_classes=4)
    c = weights if weighted else None
    table = ours.confusion(y, predicted, 4, c)
    kappa = theirs.cohen_kappa_score(y, predicted, weights="quadratic", sample_weight=c, labels=range(4))
    assert ours.quadratic_kappa(table) == pytest.approx(kappa)
    balanced = theirs.balanced_accuracy_score(y, predicted, sample_weight=c)
    assert 1 - ours.balanced_error(table) == pytest.approx(balanced)
    apart = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    assert ours.mean_cost(table, apart) == pytest.approx(theirs.mean_absolute_error(y, predicted, sample_weight=c))


@settings(max_examples=30)
@given(seeds, st.integers(1, 70))
def test_hits_among_the_first(seed, k):
    y, _, z, _, _ = case(seed, n_classes=2)
    weights = np.random.default_rng(seed).integers(0, 3, 60)
    rows = np.repeat(np.arange(60), weights)
    assert ours.hits_at(y == 1, z, k, weights.astype(float)) == pytest.approx(ours.hits_at(y[rows] == 1, z[rows], k))
    drawn = np.random.default_rng(seed)
    means = []
    for _ in range(100):  # orders that break ties at random
        order = np.lexsort((drawn.random(60), -z))
        means.append(np.count_nonzero(y[order[:k]] == 1))
    found, of = ours.hits_at(y == 1, z, k)
    assert of == np.count_nonzero(y == 1)
    assert found == pytest.approx(np.mean(means), abs=5 * np.std(means) / 10 + 1e-9)


def test_what_is_not_defined_for_levels():
    nothing, one_level = np.zeros((3, 3)), np.diag([5.0, 0, 0])
    assert math.isnan(ours.mean_cost(nothing, np.ones((3, 3))))
    assert math.isnan(ours.balanced_error(nothing))
    assert math.isnan(ours.quadratic_kappa(nothing))
    assert math.isnan(ours.quadratic_kappa(one_level))
    assert ours.balanced_error(one_level) == 0
    with pytest.raises(DataError, match=r"costs of shape \(2, 2\) do not fit a confusion table of shape \(3, 3\)"):
        ours.mean_cost(one_level, np.ones((2, 2)))


# Classes a, b below a node, c beside it.
ANCESTORS = np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]])


def test_classes_of_a_tree():
    y, predicted = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 2, 2, 0])
    table = ours.confusion(y, predicted, 3)
    shared, ours_size, their_size = 2 + 1 + 0 + 1 + 0, 2 + 2 + 1 + 1 + 2, 2 + 2 + 2 + 1 + 1
    p, r, f = ours.hierarchical_f1(table, ANCESTORS)
    assert (p, r) == (shared / ours_size, shared / their_size)
    assert f == pytest.approx(2 * p * r / (p + r))
    assert ours.hierarchical_f1(np.diag([1.0, 2, 3]), ANCESTORS) == (1, 1, 1)
    assert ours.hierarchical_f1(np.zeros((3, 3)), ANCESTORS) == (0, 0, 0)
    flat = ours.hierarchical_f1(table, np.eye(3))
    assert flat == pytest.approx([ours.accuracy(y, predicted)] * 3)
    with pytest.raises(DataError, match="do not fit 3 classes: give each class a row"):
        ours.hierarchical_f1(table, np.eye(2))
