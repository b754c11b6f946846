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
from beeline._words import percentage

__all__ = ["training_line"]

_EVERY = 0.1  # seconds
_LAST = 10  # gaps by which the time that is left is told


@contextmanager
def training_line(tol: float) -> Iterator[Callback | None]:
    """A callback that keeps one line up to date: pass, objective, gap, time. None when nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    line = _Line(tol)
    try:
        yield line
    finally:
        line.clear()


def _of_index(step: Step) -> list[str]:
    """What was read, and how many rows of it matter."""
    from beeline.cli.output.drawing import byte_size

    read = byte_size(int(step.facts["bytes_read"]))
    return [f"read {read} ({percentage(step.passes, 2)} of the rows)", f"active {step.facts['active']:,.0f}"]


def _of_rows_before(step: Step) -> list[str]:
    """How rows were predicted before they were learned from."""
    told = [f"loss {step.facts['progressive_loss']:.4g}"]
    if "progressive_error" in step.facts:
        told.append(f"wrong {percentage(step.facts['progressive_error'])}")
    return told


class _Line:
    def __init__(self, tol: float) -> None:
        self.tol, self.started, self.shown = tol, time.perf_counter(), 0.0
        self.gaps: list[tuple[float, float]] = []  # when, and the logarithm of the gap

    def __call__(self, step: Step) -> None:
        seconds = time.perf_counter() - self.started
        if seconds - self.shown < _EVERY and self.shown:
            return
        self.shown = seconds
        gap = percentage(step.gap) if math.isfinite(step.gap) else "unknown"
        told = [f"pass {step.passes:.0f}", f"objective {step.objective:.6g}", f"gap {gap}", f"{seconds:.1f} s"]
        if "bytes_read" in step.facts:
            told[:1] = _of_index(step)
        if "progressive_loss" in step.facts:
            told[1:3] = _of_rows_before(step)
        if (left := self._time_left(step, seconds)) is not None:
            told.append(f"about {left:.0f} s left")
        sys.stderr.write("\r\x1b[Ktraining  " + "  ".join(told))
        sys.stderr.flush()

    def _time_left(self, step: Step, seconds: float) -> float | None:
        """By how fast the gap has fallen so far, about; None where that cannot be said."""
        if not 0 < step.gap < 1:
            return None
        self.gaps.append((seconds, math.log(step.gap)))
        (begin, first), (now, last) = self.gaps[max(0, len(self.gaps) - _LAST)], self.gaps[-1]
        wanted = math.log(self.tol)
        if not (now > begin and last < first and last > wanted):
            return None
        return (last - wanted) * (now - begin) / (first - last)

    def clear(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
