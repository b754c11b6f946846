"""Settings that must be of a kind, most of them numbers: one sentence for whatever else is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from numbers import Integral, Real

from beeline._sentences import Argument
from beeline._words import did_you_mean, quoted
from beeline.exceptions import ParameterError

__all__ = ["as_choice", "as_function", "as_number", "as_seed", "as_whole_number", "square"]


def square(number: float) -> float:
    """number², infinite where that is too large: Python's own power raises an error there."""
    return number * number


def as_number(name: str, value: object, of: str = "") -> float:
    """The setting as a float; `of` says which, where a setting has several numbers."""
    if type(value) is float:
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterError(Argument(name), f"{of} must be a number, not {quoted(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ParameterError(
            Argument(name), f"{of} must be at most 1.8e308, not a number of {len(str(value))} digits"
        ) from None


def as_whole_number(name: str, value: object) -> int:
    """The setting as an integer."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ParameterError(Argument(name), f" must be a whole number, not {quoted(value)}")
    return int(value)


def as_seed(value: object) -> int:
    """A seed for what is random: a whole number that is not negative."""
    seed = as_whole_number("seed", value)
    if seed < 0:
        raise ParameterError(Argument("seed"), f" must not be negative, not {seed}")
    return seed


def as_function(name: str, value: object) -> None:
    """Raise where something is given that cannot be called."""
    if value is not None and not callable(value):
        raise ParameterError(Argument(name), f" must be a function, not {value!r}")
    if value is not None and not _takes_one(value):
        raise ParameterError(Argument(name), " must be a function of one argument, which says how far the work is")


def _takes_one(function: Callable[..., object]) -> bool:
    try:
        signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:  # a compiled function that does not tell
        return True
    return True


def as_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise where a setting is none of its choices."""
    known = list(choices)
    if value not in known:
        hint = f"; {close}" if (close := did_you_mean(value, known)) else ""
        raise ParameterError(Argument(name), f" must be one of {', '.join(known)}, not {quoted(value)}{hint}")
