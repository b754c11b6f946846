"""A look at a regularizer of one's own before it is trusted, whether it is what it says.

A gap is certified by the modulus and by the gradient, so that one of them being wrong would make it false. The look
takes milliseconds and sees a few lines, two of them where Ω curves least; training looks once more between zero and
where it ended.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from beeline._types import Floats
from beeline.exceptions import ParameterError
from beeline.regularizers.base import Regularizer

__all__ = ["check_regularizer", "fault_of_omega"]

_LINES, _PLACES, _LANCZOS = 6, 9, 60
_STEP, _CLOSE = 1e-6, 1e-4
_REACH = 3.0
_HALVINGS, _LEFT = 40, 1e-3  # of an interval; what a jump leaves of the slope's change
_PROX_STEPS = (0.1, 1.0)
_ROUNDING = 1e-12


def check_regularizer(omega: Regularizer, n_features: int) -> None:
    """Raise `ParameterError` when a regularizer cannot be what it should, for so many weights.

    That is, when it returns what is no number or of the wrong shape, is not zero and least at zero, has a wrong
    gradient, is less convex than its modulus says, or gives a prox that is none.
    """
    modulus = getattr(omega, "modulus", None)
    if not isinstance(modulus, int | float) or not 0 < modulus < math.inf:
        raise ParameterError(
            f"{omega!r} must have a positive modulus, by which it is strongly convex, not {modulus!r}; adding "
            "½·modulus·‖w‖² makes any convex function so",
            parameter="regularizer",
        )
    if omega.trusted:
        return
    value, gradient = _called(omega, np.zeros(n_features))
    if abs(value) > _ROUNDING or np.abs(gradient).max(initial=0.0) > _ROUNDING:
        raise ParameterError(
            f"{omega!r} must be zero, and least, where all weights are zero; there it is {value:.4g}",
            parameter="regularizer",
        )
    random = np.random.default_rng(0)
    lines = [_Line(omega, _REACH * begin, along) for begin, along in random.normal(size=(_LINES, 2, n_features))]
    lines += [_Line(omega, line.begin, _least_curved(omega, line.begin, line.direction)) for line in lines[:2]]
    for line in lines:
        if fault := line.fault():
            raise ParameterError(f"{omega!r} {fault}", parameter="regularizer")
    if type(omega).prox is not Regularizer.prox:
        _check_prox(omega, random.normal(size=n_features))


def fault_of_omega(omega: Regularizer, begin: Floats, end: Floats) -> str | None:
    """What is wrong with a regularizer on the line between two vectors of weights and beyond; None: nothing."""
    if omega.trusted or not np.any(end != begin):
        return None
    length = math.sqrt(float(np.sum(np.square(end - begin))))
    return _Line(omega, begin, (end - begin) / length, length).fault()


@dataclass(frozen=True, eq=False)
class _Line:
    """Weights begin + t·direction, where the length says how far t goes."""

    omega: Regularizer
    begin: Floats
    direction: Floats
    length: float = _REACH

    def at(self, t: float) -> tuple[float, float]:
        """Ω and its derivative by t."""
        value, gradient = _called(self.omega, self.begin + t * self.direction)
        return value, float(np.sum(gradient * self.direction))

    def fault(self) -> str | None:
        """What is wrong along the line, as the rest of a sentence; None: nothing."""
        places = np.linspace(-0.25, 1.25, _PLACES) * self.length
        samples = np.array([self.at(t) for t in places])
        return self._wrong_slope(places, *samples.T) or self._flat(places, samples[:, 1])

    def _wrong_slope(self, places: Floats, values: Floats, slopes: Floats) -> str | None:
        if not self.omega.differentiable:
            return None
        if self._jumps(places[0], places[-1]):
            return "has a slope that jumps; say differentiable = False"
        step = _STEP * self.length
        found = np.array([self.at(t + step)[0] - self.at(t - step)[0] for t in places]) / (2 * step)
        rounding = 8 * float(np.finfo(np.float64).eps * np.abs(values).max()) / step
        wrong = np.abs(found - slopes) > _CLOSE * np.abs(slopes).max() + rounding
        if not wrong.any():
            return None
        at = int(np.argmax(wrong))
        return f"has a wrong gradient: along a line its value changes by {found[at]:.4g} and not by {slopes[at]:.4g}"

    def _flat(self, places: Floats, slopes: Floats) -> str | None:
        """Whether the slope grows by less than the modulus says."""
        distances = np.diff(places) * float(np.sum(np.square(self.direction)))
        growth = np.diff(slopes) / distances
        flat = growth < self.omega.modulus * (1 - _CLOSE) - _ROUNDING * np.abs(slopes).max() / distances
        if not flat.any():
            return None
        return (
            f"is not as convex as its modulus, {self.omega.modulus:g}, says: along a line its slope grows by "
            f"{growth.min():.4g}; take a smaller modulus"
        )

    def _jumps(self, low: float, high: float) -> bool:
        """Whether the slope jumps: halving an interval, always towards where it changes more, leaves much of that."""
        s_low, s_high = self.at(low)[1], self.at(high)[1]
        change = s_high - s_low
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            s_middle = self.at(middle)[1]
            if s_middle - s_low >= s_high - s_middle:
                high, s_high = middle, s_middle
            else:
                low, s_low = middle, s_middle
        return s_high - s_low > _LEFT * abs(change) > 0


def _least_curved(omega: Regularizer, w: Floats, first: Floats) -> Floats:
    """A direction in which Ω curves as little as any, by the method of Lanczos on differences of gradients."""
    unit = _STEP * max(1.0, float(np.abs(w).max(initial=0.0)))
    basis, products = [first / math.sqrt(float(np.sum(np.square(first))))], list[Floats]()
    while len(products) < min(_LANCZOS, len(w)):
        v = basis[-1]
        products.append((_called(omega, w + unit * v)[1] - _called(omega, w - unit * v)[1]) / (2 * unit))
        rest = products[-1] - sum(float(np.sum(products[-1] * u)) * u for u in basis)
        rest = rest - sum(float(np.sum(rest * u)) * u for u in basis)
        size = math.sqrt(float(np.sum(np.square(rest))))
        if size <= _CLOSE * unit * math.sqrt(float(np.sum(np.square(products[-1])))):
            break
        basis.append(rest / size)
    kept = np.array(basis[: len(products)])
    small = kept @ np.array(products).T
    return np.linalg.eigh(0.5 * (small + small.T))[1][:, 0] @ kept


def _check_prox(omega: Regularizer, v: Floats) -> None:
    for step in _PROX_STEPS:
        w = np.asarray(omega.prox(v.copy(), step))
        if w.shape != v.shape or not np.isfinite(w).all():
            raise ParameterError(
                f"{omega!r} must return from prox as many finite weights as it is given, {len(v)}",
                parameter="regularizer",
            )
        best = step * omega.value(w) + 0.5 * float(np.sum(np.square(w - v)))
        for other in (v, np.zeros_like(v), w + _CLOSE * v, w - _CLOSE * v, 0.5 * w):
            if step * omega.value(other) + 0.5 * float(np.sum(np.square(other - v))) < best * (1 - _ROUNDING):
                raise ParameterError(
                    f"{omega!r} has a wrong prox: step·Ω(w) + ½‖w − v‖² is not least where it says",
                    parameter="regularizer",
                )


def _called(omega: Regularizer, w: Floats) -> tuple[float, Floats]:
    """Value and gradient, which are numbers."""
    given = w.copy()
    try:
        value, gradient = omega.value(given), omega.gradient(given)
    except (ValueError, IndexError) as error:
        raise ParameterError(
            f"{omega!r} cannot be evaluated for the weights of {len(w)} features: {error}", parameter="regularizer"
        ) from error
    if not np.array_equal(given, w):
        raise ParameterError(
            f"{omega!r} changes the weights that it is given; let it work on copies", parameter="regularizer"
        )
    if np.ndim(value) or not isinstance(gradient, np.ndarray) or gradient.shape != w.shape:
        raise ParameterError(
            f"{omega!r} must have one number as its value and {len(w)} as its gradient, not shapes {np.shape(value)} "
            f"and {np.shape(gradient)}",
            parameter="regularizer",
        )
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        raise ParameterError(
            f"{omega!r} has the value {value} and a gradient that is not finite; both must be numbers",
            parameter="regularizer",
        )
    return float(value), gradient
