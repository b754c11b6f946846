"""Values as people read them, as plain text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

__all__ = ["decimals", "number", "printable", "shown"]


def shown(value: object) -> str:
    """A value as people read it; markup stays as it is."""
    if hasattr(value, "__html__"):
        return value  # type: ignore[return-value]
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(shown(item) for item in value)
    return printable(str(value))


def printable(value: str) -> str:
    """Without the control characters that HTML does not allow, and that may turn the direction of a line."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in value)


def number(value: float, digits: int = 6) -> str:
    """A number with as many digits as people read; a dash for none."""
    if math.isnan(value):
        return "–"
    if abs(value) < 1e15 and (value == int(value) or abs(value) >= 10 ** (digits - 1)):
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}".replace("inf", "∞")


def decimals(values: Iterable[float], significant: int) -> Callable[[float], str]:
    """How to write the numbers of a column: with as many decimals as the largest needs for its significant digits.

    Whole numbers need none.
    """
    known = [abs(value) for value in values if math.isfinite(value)]
    largest = max(known, default=0.0)
    whole = all(value == int(value) for value in known)
    places = 0 if whole else max(0, significant - 1 - math.floor(math.log10(largest)))
    if largest >= 1e9 or places > 9:
        return lambda value: number(value, significant)
    return lambda value: f"{value:,.{places}f}" if math.isfinite(value) else number(value)
