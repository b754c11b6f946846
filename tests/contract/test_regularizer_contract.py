"""What every regularizer must do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beeline import regularizers
from beeline.exceptions import ParameterError
from beeline.regularizers import REGULARIZERS, ElasticNet, Regularizer, get_regularizer

KINDS = [kind() for kind in REGULARIZERS.values()] + [ElasticNet(0.0), ElasticNet(0.3), ElasticNet(1.0)]
every_regularizer = pytest.mark.parametrize("omega", KINDS, ids=repr)
FORMULAS = {
    "l2": lambda w, _: 0.5 * np.sum(w**2),
    "l1": lambda w, _: np.sum(np.abs(w)),
    "elastic_net": lambda w, ratio: ratio * np.sum(np.abs(w)) + (1 - ratio) * 0.5 * np.sum(w**2),
}


def weights(seed=0, n=40):
    w = np.random.default_rng(seed).normal(size=n) * 3
    w[::7] = 0
    return w


def test_registry():
    assert set(REGULARIZERS) == {"l2", "l1", "elastic_net"} == set(FORMULAS)
    for name, kind in REGULARIZERS.items():
        assert isinstance(get_regularizer(name), kind)
        assert get_regularizer(omega := kind()) is omega


@every_regularizer
def test_value_is_the_formula(omega: Regularizer):
    w = weights()
    assert omega.value(w) == pytest.approx(FORMULAS[omega.name](w, omega.l1), rel=1e-13)
    assert omega.value(np.zeros(5)) == 0
    assert omega.value(np.zeros(0)) == 0


@every_regularizer
def test_gradient_is_the_derivative(omega):
    w, step = weights(), 1e-6
    for j in np.flatnonzero(w):
        moved = np.eye(len(w))[j] * step
        slope = (omega.value(w + moved) - omega.value(w - moved)) / (2 * step)
        assert omega.gradient(w)[j] == pytest.approx(slope, rel=1e-6, abs=1e-7)
    assert np.all(omega.gradient(w)[w == 0] == 0)
    assert omega.smooth == (omega.l1 == 0)


@every_regularizer
@given(seed=st.integers(0, 2**32), part=st.floats(0, 1))
def test_as_convex_as_it_says(omega, seed, part):
    u, v = weights(seed), weights(seed + 1)
    between = omega.value(part * u + (1 - part) * v)
    curved = 0.5 * omega.l2 * part * (1 - part) * np.sum((u - v) ** 2)
    above = part * omega.value(u) + (1 - part) * omega.value(v)
    assert between <= above - curved + 1e-10 * (1 + above)


@every_regularizer
def test_without_negative_weights(omega):
    bounded = omega.without_negative_weights()
    assert bounded.nonnegative
    assert not omega.nonnegative
    assert not bounded.smooth
    assert (bounded.l1, bounded.l2) == (omega.l1, omega.l2)
    assert repr(bounded) == (repr(omega)[:-1] + ", nonnegative=True)").replace("(, ", "(")
    assert eval(repr(bounded), dict(vars(regularizers))).nonnegative


def test_settings_are_checked():
    with pytest.raises(ParameterError, match="there is no regularizer 'l3'; there are l2, l1, elastic_net"):
        get_regularizer("l3")
    for ratio in (-0.1, 1.1, np.nan):
        with pytest.raises(ParameterError, match="l1_ratio must lie between 0 and 1"):
            get_regularizer("elastic_net", l1_ratio=ratio)
