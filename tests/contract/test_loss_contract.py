"""What every scalar loss must be; the registry says which there are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from beeline.exceptions import ParameterError
from beeline.losses import LOSSES, ScalarLoss, get_loss

SETTINGS = {"epsilon": (0.0, 0.2), "width": (0.05, 0.7)}


def instances():
    """Every scalar loss of the registry, with small and large settings."""
    for kind in LOSSES.values():
        if not issubclass(kind, ScalarLoss):
            continue
        names = [name for name in SETTINGS if name in vars(kind())]
        for choice in range(2 if names else 1):
            yield kind(**{name: SETTINGS[name][choice] for name in names})


ALL = list(instances())
every_loss = pytest.mark.parametrize("loss", ALL, ids=repr)


def labels(loss, n, seed=0):
    y = np.random.default_rng(seed).normal(size=n)
    return np.where(y > 0, 1.0, -1.0) if loss.labels == "binary" else y


def scores(loss, n=400, seed=1):
    """Scores around the labels, none of them within 1e-3 of a kink or of a jump of the curvature."""
    z, y = 2 * np.random.default_rng(seed).normal(size=n), labels(loss, n)
    slack = 1 - y * z if loss.labels == "binary" else np.abs(z - y)
    kinks = [0.0, getattr(loss, "width", 0.0), getattr(loss, "epsilon", 0.0)]
    return z[np.all([np.abs(slack - k) > 1e-3 for k in kinks], axis=0)], y[
        np.all([np.abs(slack - k) > 1e-3 for k in kinks], axis=0)
    ]


def test_registry():
    assert {type(loss).name for loss in ALL} <= set(LOSSES)
    assert all(LOSSES[name].name == name for name in LOSSES)
    assert all(get_loss(name).name == name for name in LOSSES)
    with pytest.raises(ParameterError, match="no loss 'nonsense'; there are"):
        get_loss("nonsense")


@every_loss
def test_slope_is_the_derivative(loss):
    z, y = scores(loss)
    step = 1e-6
    numeric = (loss.value_and_grad(z + step, y)[0] - loss.value_and_grad(z - step, y)[0]) / (2 * step)
    np.testing.assert_allclose(loss.value_and_grad(z, y)[1], numeric, rtol=1e-6, atol=1e-6)


@every_loss
def test_curvature_is_the_second_derivative(loss):
    if not loss.has_curvature:
        with pytest.raises(AttributeError, match="gives no curvature"):
            loss.curvature(np.zeros(1), np.ones(1))
        return
    z, y = scores(loss)
    step = 1e-6
    numeric = (loss.value_and_grad(z + step, y)[1] - loss.value_and_grad(z - step, y)[1]) / (2 * step)
    np.testing.assert_allclose(loss.curvature(z, y), numeric, rtol=1e-5, atol=1e-5)


@every_loss
@given(st.floats(-20, 20), st.floats(-20, 20), st.floats(0, 1), st.booleans())
def test_convex(loss, start, stop, part, positive):
    y = np.full(1, 1.0 if positive else -1.0)
    at = lambda z: float(loss.value_and_grad(np.array([z]), y)[0][0])  # noqa: E731
    chord = (1 - part) * at(start) + part * at(stop)
    assert at((1 - part) * start + part * stop) <= chord + 1e-12 * (1 + abs(chord))


@every_loss
def test_extreme_scores(loss):
    z = np.array([-1e6, -1e3, 0.0, 1e3, 1e6])
    y, c = labels(loss, 5), np.ones(5)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        values, slopes = loss.value_and_grad(z, y)
    assert np.isfinite(values).all()
    assert np.isfinite(slopes).all()
    assert (values >= 0).all()
    assert np.isfinite(loss.sum(z, y, c))
    assert np.isfinite(loss.slopes(z, y, c)).all()


@every_loss
def test_compiled_form_is_the_same(loss):
    z, y = 3 * np.random.default_rng(2).normal(size=20_000), labels(loss, 20_000)
    c = np.random.default_rng(3).uniform(0, 2, size=20_000)
    assert loss.compiled == loss.name
    values, slopes = loss.value_and_grad(z, y)
    assert loss.sum(z, y, c) == pytest.approx(float(c @ values), rel=1e-12)
    np.testing.assert_allclose(loss.slopes(z, y, c), c * slopes, rtol=1e-11, atol=1e-14)
    if loss.has_curvature:
        np.testing.assert_allclose(loss.curvatures(z, y, c), c * loss.curvature(z, y), rtol=1e-10, atol=1e-13)
        total, together, _ = loss.derivatives(z, y, c)
        assert total == loss.sum(z, y, c)
        np.testing.assert_array_equal(together, loss.slopes(z, y, c))
    dz = np.random.default_rng(4).normal(size=20_000)
    value, slope = loss.along(z, dz, 0.3, y, c)
    moved, inclines = loss.value_and_grad(z + 0.3 * dz, y)
    assert value == pytest.approx(float(c @ moved), rel=1e-12)
    assert slope == pytest.approx(float((c * inclines) @ dz), rel=1e-9, abs=1e-9)
    a = -c * slopes
    assert loss.dual_cost(a, y, c) == pytest.approx(loss.conjugate_sum(a, y, c), rel=1e-11)


@every_loss
def test_threads_do_not_show(loss):
    from beeline.kernels import loss_sum

    z, y = np.random.default_rng(5).normal(size=100_000), labels(loss, 100_000)
    sums = {
        loss_sum(loss.compiled, loss.parameters, z, y, np.ones_like(z), None, None, threads) for threads in (1, 2, 4)
    }
    assert len(sums) == 1


@every_loss
def test_threads_of_numpy_do_not_show_without_the_compiled_form(loss):
    own = type(loss).__new__(type("Own", (type(loss),), {"compiled": None}))
    vars(own).update(vars(loss))
    z, y = np.random.default_rng(5).normal(size=100_000), labels(loss, 100_000)
    c, dz = np.random.default_rng(6).random(100_000), np.ones(100_000)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append((own.sum(z, y, c), own.along(z, dz, 0.1, y, c)))
    assert found[0] == found[1]


@every_loss
def test_weights_are_repetitions(loss):
    z, y = scores(loss, 50)
    times = np.random.default_rng(6).integers(0, 4, size=len(z))
    repeated = loss.sum(np.repeat(z, times), np.repeat(y, times), np.ones(times.sum()))
    assert loss.sum(z, y, times.astype(float)) == pytest.approx(repeated, rel=1e-13)


@every_loss
def test_fenchel_and_young(loss):
    """ψ(a) + c·l(z) + az ≥ 0 for every z, with equality where a = −c·l'(z)."""
    z, y = scores(loss, 60)
    c = np.random.default_rng(7).uniform(0.1, 2, size=len(z))
    a = loss.slopes(z, y, c) * -1
    for i in range(len(z)):
        one = slice(i, i + 1)
        dual = loss.conjugate_sum(a[one], y[one], c[one])
        assert np.isfinite(dual)
        others = np.concatenate([z, np.linspace(-30, 30, 61)])
        n = len(others)
        values = c[i] * loss.value_and_grad(others, np.full(n, y[i]))[0]
        assert (dual + values + a[i] * others >= -1e-9 * (1 + abs(dual))).all()
        at_slope = dual + c[i] * loss.value_and_grad(z[one], y[one])[0][0] + a[i] * z[i]
        assert at_slope == pytest.approx(0, abs=1e-9 * (1 + abs(dual)))


@every_loss
def test_what_is_not_feasible_costs_infinitely_much(loss):
    y, c = labels(loss, 1), np.ones(1)
    if loss.name in ("squared", "squared_epsilon_insensitive"):
        assert loss.conjugate_sum(np.array([1.0]), y, np.zeros(1)) == np.inf
    else:
        assert loss.conjugate_sum(-y * 0.5 if loss.labels == "binary" else np.array([1.5]), y, c) == np.inf
    assert loss.conjugate_sum(np.zeros(1), y, np.zeros(1)) == 0


@pytest.mark.parametrize("loss", [loss for loss in ALL if loss.has_rounded], ids=repr)
@pytest.mark.parametrize("width", [1.0, 1e-3])
def test_rounded_form_is_near_and_dual_feasible(loss, width):
    z, y = 3 * np.random.default_rng(8).normal(size=2000), labels(loss, 2000)
    rounded = loss.rounded(width)
    assert rounded.has_curvature
    apart = rounded.value_and_grad(z, y)[0] - loss.value_and_grad(z, y)[0]
    assert np.abs(apart).max() <= width / 2 + 1e-12
    assert np.isfinite(loss.conjugate_sum(-rounded.slopes(z, y, np.ones(2000)), y, np.ones(2000)))


def test_settings_are_checked():
    for name, setting in (("epsilon_insensitive", "epsilon"), ("rounded_hinge", "width"), ("soft_hinge", "width")):
        with pytest.raises(ParameterError, match=setting):
            get_loss(name, **{setting: -1.0})
    with pytest.raises(ParameterError, match="width"):
        get_loss("soft_epsilon_insensitive", width=0.0)
