"""One line on standard error that tells how far the training is, when that is a terminal."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beeline.solvers.base import Callback, Step

__all__ = ["training_line"]

_EVERY = 0.1  # seconds


@contextmanager
def training_line() -> Iterator[Callback | None]:
    """A callback that keeps one line up to date: pass, objective, gap, time. None when nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    line = _Line()
    try:
        yield line
    finally:
        line.clear()


class _Line:
    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.shown = 0.0

    def __call__(self, step: Step) -> None:
        seconds = time.perf_counter() - self.started
        if seconds - self.shown < _EVERY and self.shown:
            return
        self.shown = seconds
        gap = f"{100 * step.gap:.3g} %" if math.isfinite(step.gap) else "unknown"
        sys.stderr.write(
            f"\r\x1b[Ktraining  pass {step.passes:.0f}  objective {step.objective:.6g}  gap {gap}  {seconds:.1f} s"
        )
        sys.stderr.flush()

    def clear(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
