"""What every loss of several scores a row must be; the registry says which there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loss_rows import instances

from beeline.exceptions import LabelError, ParameterError
from beeline.losses import (
    LOSSES,
    CrammerSinger,
    Hinge,
    LeastSquares,
    Logistic,
    MulticlassMargin,
    ScaledMulticlassMargin,
    SoftmaxMargin,
    VectorLoss,
    get_loss,
)

ALL = list(instances(VectorLoss))
every_loss = pytest.mark.parametrize("loss", ALL, ids=repr)
every_compiled = pytest.mark.parametrize("loss", [loss for loss in ALL if loss.compiled], ids=repr)
every_width = pytest.mark.parametrize("k", [2, 3, 7, 16, 37])
K = 5


def rows(loss, n=200, k=K, seed=1, spread=2.0):
    random = np.random.default_rng(seed)
    z = spread * random.normal(size=(n, k))
    if loss.labels == "classes":
        return z, random.integers(0, k, size=n).astype(float)
    y = random.normal(size=(n, k))
    return z, np.where(y > 0, 1.0, -1.0) if loss.labels == "sets" else y


def far_from_kinks(loss, n=200, k=K):
    """Rows that are not within 1e-3 of a kink: no two of what a maximum is taken over are so close."""
    z, y = rows(loss, n, k)
    if loss.labels != "classes":
        return z, y
    right = z[np.arange(n), y.astype(int)][:, None]
    delta = loss._rows(z, y) if hasattr(loss, "costs") else (np.arange(k) != y[:, None]).astype(float)
    scaled = delta * (1 + z - right) if loss.name == "scaled_multiclass_margin" else delta + z - right
    plain, alone = z - right + 1e9 * (np.arange(k) == y[:, None]), np.abs(1 + z - right)
    apart = [np.diff(np.sort(scaled, axis=1)[:, -2:])[:, 0], np.abs(plain).min(axis=1), alone.min(axis=1)]
    apart.append(np.diff(np.sort(z, axis=1)[:, -2:])[:, 0])
    far = np.min(apart, axis=0) > 1e-3
    assert far.sum() > n / 2
    return z[far], y[far]


def test_there_are_some():
    assert {"softmax", "crammer_singer", "multilabel_hinge", "multivariate_squared"} <= {loss.name for loss in ALL}


@every_loss
def test_slope_is_the_derivative(loss):
    z, y = far_from_kinks(loss)
    step, slopes = 1e-6, loss.value_and_grad(z, y)[1]
    for k in range(z.shape[1]):
        move = step * np.eye(z.shape[1])[k]
        numeric = (loss.value_and_grad(z + move, y)[0] - loss.value_and_grad(z - move, y)[0]) / (2 * step)
        np.testing.assert_allclose(slopes[:, k], numeric, rtol=1e-6, atol=1e-6)


CURVED = [loss for loss in ALL if loss.has_curvature]
every_curved = pytest.mark.parametrize("loss", CURVED, ids=repr)


@every_curved
def test_curvature_is_the_second_derivative(loss):
    z, y = far_from_kinks(loss)
    if loss.name == "multilabel_squared_hinge":
        far = (np.abs(1 - y * z) > 1e-3).all(axis=1)
        z, y = z[far], y[far]
    h, step = loss.curvature(z, y), 1e-6
    numeric = np.empty((len(z), K, K))
    for k in range(K):
        move = np.zeros_like(z)
        move[:, k] = step
        numeric[:, k] = (loss.value_and_grad(z + move, y)[1] - loss.value_and_grad(z - move, y)[1]) / (2 * step)
        np.testing.assert_allclose(loss.hessian_products(h, move / step), numeric[:, k], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(loss.curvature_diagonals(h), np.einsum("ikk->ik", numeric), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(loss.curvature_total(h), numeric.sum(axis=0), rtol=1e-5, atol=1e-5)


@every_loss
def test_no_curvature_is_said(loss):
    if loss not in CURVED:
        with pytest.raises(AttributeError, match="gives no curvature"):
            loss.curvature(*rows(loss, 1))


@every_loss
@given(st.integers(0, 10_000), st.floats(0, 1), st.floats(0.1, 30))
def test_convex(loss, seed, part, spread):
    (start, y), (stop, _) = rows(loss, 1, K, seed, spread), rows(loss, 1, K, seed + 1, spread)
    at = lambda z: float(loss.value_and_grad(z, y)[0][0])  # noqa: E731
    chord = (1 - part) * at(start) + part * at(stop)
    assert at((1 - part) * start + part * stop) <= chord + 1e-12 * (1 + abs(chord))


@every_loss
def test_only_differences_of_scores_matter_where_it_is_said(loss):
    z, y = rows(loss)
    same = np.allclose(loss.value_and_grad(z + 3.5, y)[0], loss.value_and_grad(z, y)[0], atol=1e-12)
    assert same == loss.shift_invariant == (loss.labels == "classes")


@every_loss
def test_extreme_scores(loss):
    large = 1e300 if loss.shift_invariant else 1e100
    some = [[-1e6, 0, 1e6], [large, -large, 0], [1e3, 1e3, 1e3], [0, 0, 0], [700, -700, 0]]
    z = np.hstack([np.array(some), np.zeros((5, K - 3))])
    for seed in range(3):
        y, c = rows(loss, 5, seed=seed)[1], np.ones(5)
        with np.errstate(over="raise", invalid="raise", divide="raise", under="ignore"):
            values, slopes = loss.value_and_grad(z, y)
        assert np.isfinite(values).all()
        assert (values >= 0).all()
        assert np.isfinite(slopes).all()
        assert np.isfinite(loss.sum(z, y, c))
        np.testing.assert_allclose(loss.slopes(z, y, c), slopes, atol=1e-15)
        if loss.has_curvature:
            assert np.isfinite(loss.curvatures(z, y, c)).all()


def test_softmax_keeps_the_digits_of_a_small_loss():
    z, y = np.array([[40.0, 0.0, 0.0]]), np.zeros(1)
    (loss,) = [loss for loss in ALL if loss.name == "softmax"]
    values, slopes = loss.value_and_grad(z, y)
    assert values[0] == pytest.approx(2 * np.exp(-40), rel=1e-12)
    assert slopes[0, 0] == pytest.approx(-2 * np.exp(-40), rel=1e-12)
    assert loss.sum(z, y, np.ones(1)) == pytest.approx(values[0], rel=1e-12)
    assert loss.slopes(z, y, np.ones(1))[0, 0] == pytest.approx(slopes[0, 0], rel=1e-12)


@every_compiled
@every_width
def test_compiled_form_is_the_same(loss, k):
    z, y = rows(loss, 3000, k, 2)
    c = np.random.default_rng(3).uniform(0, 2, size=3000)
    assert loss.compiled == loss.name
    values, slopes = loss.value_and_grad(z, y)
    assert loss.sum(z, y, c) == pytest.approx(float(c @ values), rel=1e-12)
    np.testing.assert_allclose(loss.slopes(z, y, c), c[:, None] * slopes, rtol=1e-11, atol=1e-14)
    if loss.has_curvature:
        expected = c[:, None] * loss.curvature(z, y)
        np.testing.assert_allclose(loss.curvatures(z, y, c), expected, rtol=1e-11, atol=1e-14)
        total, together, _ = loss.derivatives(z, y, c)
        assert total == loss.sum(z, y, c)
        np.testing.assert_array_equal(together, loss.slopes(z, y, c))
    dz = np.random.default_rng(4).normal(size=z.shape)
    value, slope = loss.along(z, dz, 0.3, y, c)
    moved, inclines = loss.value_and_grad(z + 0.3 * dz, y)
    assert value == pytest.approx(float(c @ moved), rel=1e-12)
    assert slope == pytest.approx(float(np.sum(c[:, None] * inclines * dz)), rel=1e-9, abs=1e-9)
    a = -c[:, None] * slopes
    assert loss.dual_cost(a, y, c) == pytest.approx(loss.conjugate_sum(a, y, c), rel=1e-11)
    assert loss.dual_cost(-a, y, c, -1.0) == loss.dual_cost(a, y, c)


@every_compiled
def test_threads_do_not_show(same_bits, loss):
    z, y = rows(loss, 20_000, 7)
    c, dz = np.random.default_rng(6).random(20_000), np.ones_like(z)

    def computed():
        both = loss.derivatives(z, y, c) if loss.has_curvature else ()
        return loss.sum(z, y, c), loss.slopes(z, y, c), loss.along(z, dz, 0.1, y, c), both

    same_bits(computed)


@every_loss
def test_weights_are_repetitions(loss):
    z, y = rows(loss, 50)
    times = np.random.default_rng(6).integers(0, 4, size=len(z))
    repeated = loss.sum(np.repeat(z, times, axis=0), np.repeat(y, times, axis=0), np.ones(times.sum()))
    assert loss.sum(z, y, times.astype(float)) == pytest.approx(repeated, rel=1e-13)


CONJUGATE = [loss for loss in ALL if loss.has_conjugate]
every_conjugate = pytest.mark.parametrize("loss", CONJUGATE, ids=repr)


def test_only_the_multivariate_loss_has_no_conjugate():
    assert {loss.name for loss in ALL} - {loss.name for loss in CONJUGATE} == {"multivariate_squared"}


@every_conjugate
def test_fenchel_and_young(loss):
    """ψ(a) + c·l(z) + a·z ≥ 0 for every z, with equality where a = −c·l'(z)."""
    z, y = far_from_kinks(loss, 40)
    c = np.random.default_rng(7).uniform(0.1, 2, size=len(z))
    a = -loss.slopes(z, y, c)
    others = rows(loss, 300, z.shape[1], 8, spread=5.0)[0]
    for i in range(len(z)):
        one = slice(i, i + 1)
        dual = loss.conjugate_sum(a[one], y[one], c[one])
        values = c[i] * loss.value_and_grad(others, np.repeat(y[one], len(others), axis=0))[0]
        assert (dual + values + others @ a[i] >= -1e-9 * (1 + abs(dual))).all()
        at_slope = dual + c[i] * loss.value_and_grad(z[one], y[one])[0][0] + float(a[i] @ z[i])
        assert at_slope == pytest.approx(0, abs=1e-9 * (1 + abs(dual)))


@every_conjugate
def test_what_is_not_feasible_costs_infinitely_much(loss):
    y, c = rows(loss, 1)[1] * 0 if loss.labels == "classes" else np.ones((1, K)), np.ones(1)
    bad = [[1.5, -1.5, 0, 0, 0], [0.5, 0.5, -1.0, 0, 0], [0.5, -0.4, 0, 0, 0], [-0.5, 0.5, 0, 0, 0]]
    if loss.labels == "sets":
        bad = [[-0.5, 0, 0, 0, 0]]
    elif loss.name == "scaled_multiclass_margin":
        bad = [[7.5, -2, -2, -2, -1.5], *bad[1:]]
    for a in bad:
        assert loss.conjugate_sum(np.array([a]), y, c) == np.inf
        assert loss.dual_cost(np.array([a]), y, c) == np.inf
    assert loss.conjugate_sum(np.zeros((1, K)), y, np.zeros(1)) == 0
    assert loss.dual_cost(np.zeros((1, K)), y, np.zeros(1)) == 0
    assert loss.dual_cost(np.array([[0.5, -0.5, 0, 0, 0]]), y, np.zeros(1)) == np.inf


@pytest.mark.parametrize(("name", "twin"), [("softmax", Logistic()), ("crammer_singer", Hinge())])
def test_two_scores_are_a_binary_loss_of_their_difference(name, twin):
    z, y = rows(LOSSES[name](), 300, 2)
    difference, signs = z[:, 1] - z[:, 0], 2 * y - 1
    values, slopes = LOSSES[name]().value_and_grad(z, y)
    expected, inclines = twin.value_and_grad(difference, signs)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    np.testing.assert_allclose(slopes[:, 1], inclines, rtol=1e-10)


def test_labels_are_checked():
    z = np.zeros((2, 3))
    loss = get_loss("softmax")
    for y in ([0.0, 3.0], [-1.0, 0.0], [np.nan, 0.0]):
        with pytest.raises(ValueError, match="no class number"):
            loss.sum(z, np.array(y), np.ones(2))
    with pytest.raises(ValueError, match="one label a row"):
        loss.sum(z, np.zeros(3), np.ones(2))


@every_loss
def test_labels_of_its_domain_are_taken(loss):
    loss.check_labels(rows(loss)[1])


@pytest.mark.parametrize(
    ("name", "y", "words"),
    [
        ("softmax", [0.0, 1.5], "row 1 has the label 1.5; the labels of 'softmax' must be class numbers"),
        ("multilabel_hinge", [[1.0, -1.0], [1.0, 0.0]], "row 1 has the label 0; .* −1 and"),
        ("multivariate_squared", [[1.0, 2.0], [np.nan, 0.0]], "row 1 has the label nan; .* finite numbers"),
    ],
)
def test_other_labels_are_refused_by_their_row(name, y, words):
    with pytest.raises(LabelError, match=words):
        get_loss(name).check_labels(np.array(y))


COSTS = np.array([[0, 1, 2.5], [3, 0, 0.5], [1, 4, 0]])


class TestCosts:
    def test_without_costs_of_their_own_margins_are_those_of_crammer_and_singer(self):
        z, y = rows(CrammerSinger())
        for loss in (MulticlassMargin(), ScaledMulticlassMargin(), MulticlassMargin(1 - np.eye(K))):
            for mine, other in zip(loss.value_and_grad(z, y), CrammerSinger().value_and_grad(z, y), strict=True):
                np.testing.assert_array_equal(mine, other)

    def test_formulas_by_brute_force(self):
        z, y = rows(CrammerSinger(), 300, 3)
        for i in range(300):
            one, right = slice(i, i + 1), int(y[i])
            gaps = z[i] - z[i, right]
            expected = {
                MulticlassMargin: max(gaps + COSTS[right]),
                ScaledMulticlassMargin: max(COSTS[right] * (gaps + 1)),
                SoftmaxMargin: np.log(np.exp(gaps + COSTS[right]).sum()),
            }
            for kind, value in expected.items():
                assert kind(COSTS).value_and_grad(z[one], y[one])[0][0] == pytest.approx(max(value, 0), rel=1e-12)

    @pytest.mark.parametrize(
        ("costs", "words"),
        [
            ([[0, 1]], r"square matrix, not of shape \(1, 2\)"),
            ([[0, 1], [1]], "matrix of numbers"),
            ([[0, -1], [1, 0]], "not negative"),
            ([[0, np.nan], [1, 0]], "finite"),
            ([[1, 1], [1, 0]], "zeros on the diagonal"),
        ],
    )
    def test_bad_ones_are_refused(self, costs, words):
        with pytest.raises(ParameterError, match=words):
            MulticlassMargin(costs)

    def test_they_must_fit_the_classes(self):
        MulticlassMargin(COSTS).check_outputs(3)
        with pytest.raises(ParameterError, match="3 × 3 numbers, but there are 4 classes"):
            MulticlassMargin(COSTS).check_outputs(4)


class TestMetric:
    @pytest.mark.parametrize(
        ("metric", "words"),
        [([[1, 2], [0, 1]], "symmetric"), ([[1, 2], [2, 1]], "negative eigenvalue"), ([1, 2], "square matrix")],
    )
    def test_bad_ones_are_refused(self, metric, words):
        with pytest.raises(ParameterError, match=words):
            get_loss("multivariate_squared", metric=metric)

    def test_it_must_fit_the_labels(self):
        with pytest.raises(ParameterError, match="2 × 2 numbers, but the labels have 3"):
            get_loss("multivariate_squared", metric=np.eye(2)).check_outputs(3)

    def test_the_identity_is_least_squares_for_each(self):
        loss = get_loss("multivariate_squared", metric=np.eye(K))
        z, y = rows(loss)
        single = LeastSquares().value_and_grad(z.ravel(), y.ravel())
        np.testing.assert_allclose(loss.value_and_grad(z, y)[0], single[0].reshape(z.shape).sum(axis=1))


def test_a_tie_at_zero_weights_does_not_stop_the_perceptron():
    values, slopes = get_loss("multiclass_perceptron").value_and_grad(np.zeros((2, 3)), np.array([0.0, 2.0]))
    np.testing.assert_array_equal(values, 0)
    np.testing.assert_array_equal(slopes, [[-1, 1, 0], [1, 0, -1]])
