"""What every loss of several scores a row must be; the registry says which there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beeline.kernels import loss_sum
from beeline.losses import LOSSES, Hinge, Logistic, VectorLoss

ALL = [kind() for kind in LOSSES.values() if issubclass(kind, VectorLoss)]
every_loss = pytest.mark.parametrize("loss", ALL, ids=repr)
every_width = pytest.mark.parametrize("k", [2, 3, 7, 16, 37])


def rows(n=200, k=5, seed=1, spread=2.0):
    random = np.random.default_rng(seed)
    return spread * random.normal(size=(n, k)), random.integers(0, k, size=n).astype(float)


def smooth_rows(loss, n=200, k=5):
    """Rows whose largest scores are not within 1e-3 of each other, where a loss may have a kink."""
    z, y = rows(n, k)
    shifted = z + (np.arange(k) != y[:, None])
    two = np.sort(shifted, axis=1)[:, -2:]
    far = two[:, 1] - two[:, 0] > 1e-3
    return z[far], y[far]


def hessians(h):
    """What a curvature stands for: diag(h) − hhᵀ/Σh, row by row."""
    return np.einsum("ij,jk->ijk", h, np.eye(h.shape[1])) - h[:, :, None] * h[:, None, :] / h.sum(1)[:, None, None]


def test_there_are_some():
    assert {"softmax", "crammer_singer"} <= {loss.name for loss in ALL}


@every_loss
def test_slope_is_the_derivative(loss):
    z, y = smooth_rows(loss)
    step, slopes = 1e-6, loss.value_and_grad(z, y)[1]
    for k in range(z.shape[1]):
        move = step * np.eye(z.shape[1])[k]
        numeric = (loss.value_and_grad(z + move, y)[0] - loss.value_and_grad(z - move, y)[0]) / (2 * step)
        np.testing.assert_allclose(slopes[:, k], numeric, rtol=1e-6, atol=1e-6)


@every_loss
def test_curvature_is_the_second_derivative(loss):
    if not loss.has_curvature:
        with pytest.raises(AttributeError, match="gives no curvature"):
            loss.curvature(np.zeros((1, 3)), np.zeros(1))
        return
    z, y = rows()
    step, second = 1e-6, hessians(loss.curvature(z, y))
    for k in range(z.shape[1]):
        move = step * np.eye(z.shape[1])[k]
        numeric = (loss.value_and_grad(z + move, y)[1] - loss.value_and_grad(z - move, y)[1]) / (2 * step)
        np.testing.assert_allclose(second[:, k], numeric, rtol=1e-5, atol=1e-7)


@every_loss
@given(st.integers(0, 10_000), st.floats(0, 1), st.floats(0.1, 30))
def test_convex(loss, seed, part, spread):
    (start, y), (stop, _) = rows(1, 4, seed, spread), rows(1, 4, seed + 1, spread)
    at = lambda z: float(loss.value_and_grad(z, y)[0][0])  # noqa: E731
    chord = (1 - part) * at(start) + part * at(stop)
    assert at((1 - part) * start + part * stop) <= chord + 1e-12 * (1 + abs(chord))


@every_loss
def test_extreme_scores(loss):
    z = np.array([[-1e6, 0, 1e6], [1e300, -1e300, 0], [1e3, 1e3, 1e3], [0, 0, 0], [700, -700, 0]])
    for label in range(3):
        y, c = np.full(5, float(label)), np.ones(5)
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


@every_loss
@every_width
def test_compiled_form_is_the_same(loss, k):
    z, y = rows(3000, k, 2)
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


@every_loss
def test_threads_do_not_show(loss):
    z, y = rows(20_000, 7)
    c = np.ones(20_000)
    sums = {loss_sum(loss.compiled, loss.parameters, z, y, c, None, None, threads) for threads in (1, 2, 4)}
    assert len(sums) == 1


@every_loss
def test_weights_are_repetitions(loss):
    z, y = rows(50)
    times = np.random.default_rng(6).integers(0, 4, size=len(z))
    repeated = loss.sum(np.repeat(z, times, axis=0), np.repeat(y, times), np.ones(times.sum()))
    assert loss.sum(z, y, times.astype(float)) == pytest.approx(repeated, rel=1e-13)


@every_loss
def test_fenchel_and_young(loss):
    """ψ(a) + c·l(z) + a·z ≥ 0 for every z, with equality where a = −c·l'(z)."""
    z, y = smooth_rows(loss, 40)
    c = np.random.default_rng(7).uniform(0.1, 2, size=len(z))
    a = -loss.slopes(z, y, c)
    others = rows(300, z.shape[1], 8, spread=5.0)[0]
    for i in range(len(z)):
        one = slice(i, i + 1)
        dual = loss.conjugate_sum(a[one], y[one], c[one])
        values = c[i] * loss.value_and_grad(others, np.full(len(others), y[i]))[0]
        assert (dual + values + others @ a[i] >= -1e-9 * (1 + abs(dual))).all()
        at_slope = dual + c[i] * loss.value_and_grad(z[one], y[one])[0][0] + float(a[i] @ z[i])
        assert at_slope == pytest.approx(0, abs=1e-9 * (1 + abs(dual)))


@every_loss
def test_what_is_not_feasible_costs_infinitely_much(loss):
    y, c = np.zeros(1), np.ones(1)
    for a in ([1.5, -1.5, 0.0], [0.5, 0.5, -1.0], [0.5, -0.4, 0.0]):
        assert loss.conjugate_sum(np.array([a]), y, c) == np.inf
        assert loss.dual_cost(np.array([a]), y, c) == np.inf
    assert loss.conjugate_sum(np.zeros((1, 3)), y, np.zeros(1)) == 0
    assert loss.dual_cost(np.zeros((1, 3)), y, np.zeros(1)) == 0
    assert loss.dual_cost(np.array([[0.5, -0.5, 0]]), y, np.zeros(1)) == np.inf


@pytest.mark.parametrize(("name", "twin"), [("softmax", Logistic()), ("crammer_singer", Hinge())])
def test_two_scores_are_a_binary_loss_of_their_difference(name, twin):
    z, y = rows(300, 2)
    difference, signs = z[:, 1] - z[:, 0], 2 * y - 1
    values, slopes = LOSSES[name]().value_and_grad(z, y)
    expected, inclines = twin.value_and_grad(difference, signs)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    np.testing.assert_allclose(slopes[:, 1], inclines, rtol=1e-10)


def test_labels_are_checked():
    z = np.zeros((2, 3))
    for y in ([0.0, 3.0], [-1.0, 0.0], [np.nan, 0.0]):
        with pytest.raises(ValueError, match="no class number"):
            ALL[0].sum(z, np.array(y), np.ones(2))
    with pytest.raises(ValueError, match="one label a row"):
        ALL[0].sum(z, np.zeros(3), np.ones(2))
