"""Where folds have been, for values of C that come after larger ones."""

from __future__ import annotations

from typing import Any, NamedTuple

from beeline.selection.runners import Runner

__all__ = ["Places"]


class _Place(NamedTuple):
    C: float
    epsilon: float | None
    where: Any


class Places:
    """Where all folds were at the best C and at the value that was tried before it.

    What strides have left out lies beside the best, and begins from the nearest smaller C that is known here: larger
    weights than needed are a bad start.

    Parameters
    ----------
    remembers
        Whether there is memory for that; elsewhere folds begin at zero.
    """

    def __init__(self, remembers: bool) -> None:
        self.remembers = remembers
        self.last: _Place | None = None
        self.known: list[_Place] = []

    def note(self, runner: Runner, C: float, epsilon: float | None, *, best: bool) -> None:
        """Take note of where the folds are, after a training at C."""
        if not self.remembers:
            return
        place = _Place(C, epsilon, runner.place)
        if best:
            self.known = [place] if self.last is None else [self.last, place]
        self.last = place

    def go_down(self, runner: Runner, C: float, epsilon: float | None) -> None:
        """Put the folds to where they were at the largest known value up to C; to zero where there is none."""
        below = [place for place in self.known if place.epsilon == epsilon and place.C <= C]
        if below:
            runner.go_back(max(below, key=lambda place: place.C).where)
        else:
            runner.reset()
