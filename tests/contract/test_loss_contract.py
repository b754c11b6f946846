"""What every scalar loss must be; the registry says which there are."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loss_rows import instances, labels, scores
from threadpoolctl import threadpool_limits

from beeline.exceptions import LabelError, ParameterError
from beeline.losses import LOSSES, ScalarLoss, get_loss

ALL = list(instances(ScalarLoss))
every_loss = pytest.mark.parametrize("loss", ALL, ids=repr)


def test_registry():
    assert {type(loss).name for loss in ALL} <= set(LOSSES)
    assert all(LOSSES[name].name == name for name in LOSSES)
    assert all(get_loss(name).name == name for name in LOSSES)
    with pytest.raises(ParameterError, match="no loss 'nonsense'; there are"):
        get_loss("nonsense")
    with pytest.raises(ParameterError, match="'huber' has no setting 'tau'; it has delta"):
        get_loss("huber", tau=0.1)
    with pytest.raises(ParameterError, match="'hinge' has no setting 'tau'; it has none"):
        get_loss("hinge", tau=0.1)


def test_there_are_enough():
    assert len(LOSSES) >= 30


@pytest.mark.parametrize("kind", LOSSES.values(), ids=LOSSES)
def test_every_loss_says_what_it_is(kind):
    assert kind.formula
    assert kind.summary
    assert not (kind.piecewise_linear and kind.smooth)
    loss = kind()
    assert type(loss)(**loss.settings).settings == loss.settings


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
@given(st.floats(-20, 20), st.floats(-20, 20), st.floats(0, 1), st.integers(0, 49))
def test_convex(loss, start, stop, part, row):
    y = labels(loss, 50)[row : row + 1]
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
    assert loss.compiled == {"squared_margin": "squared"}.get(loss.name, loss.name)  # which is the same for ±1
    values, slopes = loss.value_and_grad(z, y)
    assert loss.sum(z, y, c) == pytest.approx(float(c @ values), rel=1e-12)
    np.testing.assert_allclose(loss.slopes(z, y, c), c * slopes, rtol=1e-11, atol=1e-14)
    if loss.has_curvature:
        np.testing.assert_allclose(loss.curvatures(z, y, c), c * loss.curvature(z, y), rtol=1e-10, atol=1e-13)
        total, together, _ = loss.derivatives(z, y, c)
        assert total == pytest.approx(loss.sum(z, y, c), rel=1e-14)
        np.testing.assert_array_equal(together, loss.slopes(z, y, c))
    dz = np.random.default_rng(4).normal(size=20_000)
    value, slope = loss.along(z, dz, 0.3, y, c)
    moved, inclines = loss.value_and_grad(z + 0.3 * dz, y)
    assert value == pytest.approx(float(c @ moved), rel=1e-12)
    assert slope == pytest.approx(float((c * inclines) @ dz), rel=1e-9, abs=1e-9)
    a = -c * slopes
    if loss.has_conjugate:
        for scale in (1.0, 0.0):
            expected = loss.conjugate_sum(scale * a, y, c)
            assert np.isfinite(expected)
            assert loss.dual_cost(a, y, c, scale) == pytest.approx(expected, rel=1e-10)


@every_loss
def test_threads_do_not_show(same_bits, loss):
    z, y = np.random.default_rng(5).normal(size=30_000), labels(loss, 30_000)
    c, dz = np.random.default_rng(6).random(30_000), np.ones(30_000)

    def computed():
        both = loss.derivatives(z, y, c) if loss.has_curvature else ()
        return loss.sum(z, y, c), loss.slopes(z, y, c), loss.along(z, dz, 0.1, y, c), both

    same_bits(computed)


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


CONJUGATE = [loss for loss in ALL if loss.has_conjugate]
every_conjugate = pytest.mark.parametrize("loss", CONJUGATE, ids=repr)


def test_only_tweedie_has_no_conjugate():
    assert {loss.name for loss in ALL} - {loss.name for loss in CONJUGATE} == {"tweedie"}
    with pytest.raises(AttributeError, match="Tweedie gives no conjugate"):
        get_loss("tweedie").dual_cost(np.zeros(1), np.zeros(1), np.ones(1))


@every_conjugate
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


@every_conjugate
def test_what_is_not_feasible_costs_infinitely_much(loss):
    y, c = labels(loss, 1), np.ones(1)
    if loss.name in ("squared", "squared_margin", "squared_epsilon_insensitive", "expectile"):
        assert loss.conjugate_sum(np.array([1.0]), y, np.zeros(1)) == np.inf
    else:
        sides = [np.array([side]) for side in (100.0, -100.0)]
        assert np.inf in [loss.conjugate_sum(a, y, c) for a in sides]
        assert [loss.dual_cost(a, y, c) for a in sides] == [loss.conjugate_sum(a, y, c) for a in sides]
    assert loss.conjugate_sum(np.zeros(1), y, np.zeros(1)) == 0
    assert loss.dual_cost(np.ones(1), y, np.zeros(1)) == np.inf


KINKED = [loss for loss in ALL if loss.piecewise_linear]


@pytest.mark.parametrize("loss", KINKED, ids=repr)
def test_kinks_are_all_that_bends_a_piecewise_linear_loss(loss):
    y = labels(loss, 200)
    kinks = loss.kinks(y)
    slope = lambda z: loss.value_and_grad(z, y)[1]  # noqa: E731
    rise = np.zeros(200)
    for where, jump in kinks:
        together = sum(other for place, other in kinks if np.array_equal(place, where))  # a tube without width
        np.testing.assert_allclose(slope(where + 1e-6) - slope(where - 1e-6), together, atol=1e-12)
        rise += jump
    np.testing.assert_allclose(slope(np.full(200, 1e6)) - slope(np.full(200, -1e6)), rise, atol=1e-12)


def test_losses_without_kinks_say_so():
    assert {loss.name for loss in ALL if not loss.smooth} == {loss.name for loss in KINKED}
    with pytest.raises(AttributeError, match="Logistic is not said to be piecewise linear"):
        get_loss("logistic").kinks(np.ones(1))


@every_loss
def test_labels_of_its_domain_are_taken(loss):
    loss.check_labels(labels(loss, 500))


@pytest.mark.parametrize(
    ("name", "bad", "words"),
    [
        ("hinge", 0.0, "row 1 has the label 0; the labels of 'hinge' must be −1 and \\+1"),
        ("squared", np.nan, "row 1 has the label nan; the labels of 'squared' must be finite numbers"),
        ("huber", np.inf, "row 1 has the label inf"),
        ("poisson", -1.0, "row 1 has the label -1; the labels of 'poisson' must be finite numbers that are not neg"),
        ("gamma", 0.0, "row 1 has the label 0; the labels of 'gamma' must be positive and finite"),
        ("tweedie", -0.5, "row 1 has the label -0.5; .* not negative"),
        ("cross_entropy", 1.5, "row 1 has the label 1.5; the labels of 'cross_entropy' must be between 0 and 1"),
    ],
)
def test_other_labels_are_refused_by_their_row(name, bad, words):
    y = np.array([1.0, bad, bad])
    with pytest.raises(LabelError, match=words):
        get_loss(name).check_labels(y)


def test_novelty_does_not_look_at_labels():
    get_loss("novelty").check_labels(np.array([np.nan]))


def test_a_quantile_has_tau_of_the_labels_below_it():
    y = np.random.default_rng(9).normal(size=4001)
    for tau in (0.1, 0.5, 0.8):
        loss = get_loss("quantile", tau=tau)
        total = [loss.sum(np.full(4001, z), y, np.ones(4001)) for z in np.sort(y)]
        assert int(np.argmin(total)) == pytest.approx(4000 * tau, abs=1)


@pytest.mark.parametrize(
    ("name", "best"), [("poisson", np.log), ("gamma", np.log), ("tweedie", np.log), ("cross_entropy", None)]
)
def test_a_perfect_prediction_costs_nothing(name, best):
    y = np.array([0.2, 0.7]) if best is None else np.array([0.5, 3.0, 1e5])
    z = np.log(y / (1 - y)) if best is None else best(y)
    values, slopes = get_loss(name).value_and_grad(z, y)
    np.testing.assert_allclose(slopes, 0, atol=1e-9 * (1 + y.max()))
    if best is not None:
        np.testing.assert_allclose(values, 0, atol=1e-9 * (1 + y.max()))


def test_tweedie_lies_between_poisson_and_gamma():
    z, y = np.linspace(-2, 2, 9), np.full(9, 1.7)
    for power, name in ((1 + 1e-7, "poisson"), (2 - 1e-7, "gamma")):
        near, limit = get_loss("tweedie", power=power).value_and_grad(z, y), get_loss(name).value_and_grad(z, y)
        np.testing.assert_allclose(near[0], limit[0], atol=1e-5)
        np.testing.assert_allclose(near[1], limit[1], atol=1e-5)


@pytest.mark.parametrize("loss", [loss for loss in ALL if loss.has_smoothed], ids=repr)
@pytest.mark.parametrize("width", [1.0, 1e-3])
def test_smoothed_form_is_near_and_dual_feasible(loss, width):
    z, y = 3 * np.random.default_rng(8).normal(size=2000), labels(loss, 2000)
    smoothed = loss.smoothed(width)
    assert smoothed.has_curvature
    difference = smoothed.value_and_grad(z, y)[0] - loss.value_and_grad(z, y)[0]
    assert np.abs(difference).max() <= width / 2 + 1e-12
    assert np.isfinite(loss.conjugate_sum(-smoothed.slopes(z, y, np.ones(2000)), y, np.ones(2000)))


@pytest.mark.parametrize(
    ("name", "setting", "bad"),
    [
        ("epsilon_insensitive", "epsilon", -1.0),
        ("smoothed_hinge", "width", -1.0),
        ("huber_hinge", "width", 0.0),
        ("soft_hinge", "width", np.inf),
        ("soft_epsilon_insensitive", "width", 0.0),
        ("quantile", "tau", 1.0),
        ("soft_quantile", "tau", np.nan),
        ("expectile", "tau", 0.0),
        ("huber", "delta", 0.0),
        ("pseudo_huber", "delta", -1.0),
        ("tweedie", "power", 2.0),
        ("novelty", "rho", 0.0),
    ],
)
def test_settings_are_checked(name, setting, bad):
    with pytest.raises(ParameterError, match=f"{setting} must"):
        get_loss(name, **{setting: bad})


@pytest.mark.parametrize(
    ("loss", "name", "value"),
    [
        ("quantile", "tau", "0.5"),
        ("huber", "delta", None),
        ("epsilon_insensitive", "epsilon", [1]),
        ("tweedie", "power", True),
    ],
)
def test_a_setting_must_be_a_number(loss, name, value):
    with pytest.raises(ParameterError, match=f"{name} must be a number, not {re.escape(repr(value))}"):
        LOSSES[loss](value)
