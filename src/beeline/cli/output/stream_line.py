"""One line on standard error that tells how rows are predicted before they are learned from, on a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beeline.fitting.stream import StreamCallback, StreamStep
from beeline._words import count, percentage

__all__ = ["stream_line"]

_EVERY = 0.1  # seconds


@contextmanager
def stream_line() -> Iterator[StreamCallback | None]:
    """A callback that keeps one line up to date: rows, progressive validation, time. None when nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    line = _Line()
    try:
        yield line
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class _Line:
    def __init__(self) -> None:
        self.shown = -_EVERY

    def __call__(self, step: StreamStep) -> None:
        if step.seconds - self.shown < _EVERY:
            return
        self.shown = step.seconds
        rate = step.rows / max(step.seconds, 1e-9)
        told = [count(step.rows, "row"), f"loss {step.loss:.4g} (of all {step.mean_loss:.4g})"]
        if not math.isnan(step.error):
            told.append(f"wrong {percentage(step.error)} (of all {percentage(step.mean_error)})")
        told += [f"{rate:,.0f} rows/s", f"{step.seconds:.1f} s"]
        sys.stderr.write("\r\x1b[Klearning  " + "  ".join(told))
        sys.stderr.flush()
