"""Words for messages."""

from __future__ import annotations

__all__ = ["shortened"]


def shortened(names: list[str], most: int = 8) -> str:
    """The names in one line, the first few only where there are many."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
