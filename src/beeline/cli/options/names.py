"""Several names in one value of an option: `--ignore a,b`, and `--ignore '"a,b"'` for one with a comma in it."""

from __future__ import annotations

import csv

__all__ = ["as_one_name", "split_names"]


def split_names(value: str) -> list[str]:
    """The names that a value lists, as a line of CSV does."""
    if "," not in value and '"' not in value:
        return [value]  # also where there is a line break in it
    return next(csv.reader([value], skipinitialspace=True))


def as_one_name(name: str) -> str:
    """The value that lists this name alone."""
    return '"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name
