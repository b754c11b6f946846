"""Checks of what losses are set to."""

from __future__ import annotations

import math

from beeline._numbers import as_number, as_whole_number
from beeline._sentences import Argument
from beeline.exceptions import ParameterError

__all__ = ["above_one", "at_least_one", "at_least_zero", "between", "positive"]


def positive(name: str, value: float) -> float:
    """The setting, which must be positive and finite."""
    if not 0 < as_number(name, value) < math.inf:
        raise ParameterError(Argument(name), f" must be positive and finite, not {value}")
    return float(value)


def above_one(name: str, value: float) -> float:
    """The setting, which must be finite and more than 1."""
    if not 1 < as_number(name, value) < math.inf:
        raise ParameterError(Argument(name), f" must be finite and more than 1, not {value}")
    return float(value)


def at_least_one(name: str, value: int) -> int:
    """The setting, which must be a whole number and at least 1."""
    if (number := as_whole_number(name, value)) < 1:
        raise ParameterError(Argument(name), f" must be at least 1, not {number}")
    return number


def at_least_zero(name: str, value: float) -> float:
    """The setting, which must be finite and not negative."""
    if not 0 <= as_number(name, value) < math.inf:
        raise ParameterError(Argument(name), f" must be finite and at least 0, not {value}")
    return float(value)


def between(name: str, value: float, low: float, high: float) -> float:
    """The setting, which must lie between two numbers and be neither of them."""
    if not low < as_number(name, value) < high:
        raise ParameterError(Argument(name), f" must be between {low:g} and {high:g}, not {value}")
    return float(value)
