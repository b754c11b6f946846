"""Checks of what losses are set to."""

from __future__ import annotations

import math
from numbers import Real

from beeline.exceptions import ParameterError

__all__ = ["a_number", "between", "positive"]


def a_number(name: str, value: float) -> float:
    """The setting, which must be a number."""
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterError(f"{name} must be a number, not {value!r}")
    return float(value)


def positive(name: str, value: float) -> float:
    """The setting, which must be positive and finite."""
    if not 0 < a_number(name, value) < math.inf:
        raise ParameterError(f"{name} must be positive and finite, not {value}")
    return float(value)


def between(name: str, value: float, low: float, high: float) -> float:
    """The setting, which must lie between two numbers and be neither of them."""
    if not low < a_number(name, value) < high:
        raise ParameterError(f"{name} must be between {low:g} and {high:g}, not {value}")
    return float(value)
