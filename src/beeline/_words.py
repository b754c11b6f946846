"""Words for messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["count", "did_you_mean", "label_text", "offer", "percentage", "quoted", "shortened"]

_MUCH_LESS_ALIKE = 0.15  # than the name that is most like a misspelt one: not asked about beside it


def shortened(names: list[str], most: int = 8) -> str:
    """The names in one line, the first few only where there are many."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def count(n: int, noun: str, several: str | None = None) -> str:
    """A number and its noun: 1 row, 2,000 rows."""
    if n == 1:
        return f"{n:,} {noun}"
    return f"{n:,} {several or noun + ('es' if noun.endswith('s') else 's')}"


def percentage(part: float, digits: int = 3) -> str:
    """A part of 1 with so many digits and its sign, 12.3 %; large ones as whole numbers, never by powers of ten."""
    figure = 100 * part
    text = f"{figure:.{digits}g}"
    return f"{figure:,.0f} %" if "e+" in text else f"{text} %"


def quoted(value: Any) -> str:  # noqa: ANN401
    """A value as one writes it in Python, whether it came in a box of NumPy's or not: 'a', not np.str_('a')."""
    return repr(_unboxed(value))


def label_text(label: object) -> str:
    """A label as people write it: 3, not 3.0."""
    plain = _unboxed(label)
    return str(int(plain)) if isinstance(plain, float) and plain.is_integer() else str(plain)


def _unboxed(value: Any) -> Any:  # noqa: ANN401
    """The value itself, of one in a box of NumPy's."""
    return value.item() if type(value).__module__ == "numpy" and not getattr(value, "shape", True) else value


def did_you_mean(name: object, names: Iterable[str], cutoff: float = 0.6) -> str:
    """A question after names that are like one that there is not, whatever their case; empty where none is."""
    from difflib import SequenceMatcher, get_close_matches

    if not isinstance(name, str):
        return ""
    lowered = {other.lower(): other for other in names}
    likeness = SequenceMatcher(b=name.lower())
    alike = {}
    for match in get_close_matches(name.lower(), lowered, n=3, cutoff=cutoff):
        likeness.set_seq1(match)
        alike[lowered[match]] = likeness.ratio()
    close = [match for match, ratio in alike.items() if ratio > max(alike.values()) - _MUCH_LESS_ALIKE]
    return f"did you mean {' or '.join(map(repr, close))}?" if close else ""


def offer(name: object, names: Iterable[str], more: str = "") -> str:
    """What to take instead of a name that there is not: the ones like it, or a list of all, with what there is else."""
    known = list(names)
    return did_you_mean(name, known) or f"there are {', '.join(known)}{more}"
