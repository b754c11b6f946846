"""A pass of `sgd` over a store that is larger than memory, beside the time of reading it."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from support import deformed, sets
from support.contenders import FORMS
from support.indexed_runs import ALLOWANCE, forget
from support.watching import mb, watch

__all__ = ["store_pass"]

ROWS, MEMORY = 300_000, 64 << 20
MOST, REPEATS = 1.2, 2
CHILD = Path(__file__).with_name("store_child.py")


def store_pass() -> tuple[list[str], bool]:
    """A table, and whether the second pass takes at most 1.2 times as long as reading the files."""
    store = deformed.store(ROWS)
    size = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    what = {"reading its files": ("read",), "a walk over its rows": ("walk",)}
    what |= {f"a pass of sgd {form}": ("train", form, multiclass) for form, multiclass in FORMS.items()}
    taken: dict[str, list[list[float]]] = {name: [] for name in what}
    for _ in range(REPEATS):
        for name, words in what.items():
            taken[name].append(_child(store, *words))
    # Of trainings, the second pass: the first has what is done once, the last one looks at J in the end.
    seconds = {name: statistics.median(one[min(1, len(one) - 1)] - (one[0] if len(one) > 1 else 0) for one in several)
               for name, several in taken.items()}  # fmt: skip
    whole = {name: statistics.median(one[-1] for one in several) for name, several in taken.items()}
    reading = seconds["reading its files"]
    head = f"| {ROWS:,} rows, {mb(size)}, a budget of {mb(MEMORY)} | seconds | share of reading | three passes and J |"
    lines = [head, "|---" * 4 + "|"]
    lines += [
        f"| {name} | {taken:.2f} | {taken / reading:.2f} | {f'{whole[name]:.2f}' if 'sgd' in name else ''} |"
        for name, taken in seconds.items()
    ]
    return lines, all(taken <= MOST * reading for name, taken in seconds.items() if "sgd" in name)


def _child(store: Path, what: str, *more: str) -> list[float]:
    """The seconds at the end of each pass, with nothing of the store in the page cache to begin with."""
    forget(store)
    told = sets.FOLDER / "store-pass.json"
    command = [sys.executable, str(CHILD), str(store), what, str(MEMORY), *more, str(told)]
    if code := watch(command, MEMORY + ALLOWANCE).code:
        raise SystemExit(f"{' '.join(command)} ended with the code {code}")
    return json.loads(told.read_text())
