"""Where folds have been, for values of C that come after larger ones."""

from __future__ import annotations

from typing import Any, NamedTuple

from beeline.selection.runners import Runner

__all__ = ["Places"]

_NEAR = 2.1  # times a C, from where its folds may begin


class _Place(NamedTuple):
    C: float
    epsilon: float | None
    where: Any


class Places:
    """Where all folds were at the best C, and at the largest value below it.

    What was left out lies beside the best, and begins from the nearest smaller C that is known here, or a step above:
    weights that are far larger than needed are a bad start.

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
            others = [*self.known, self.last] if self.last is not None else []
            below = [other for other in others if other.epsilon == epsilon and other.C < C]
            self.known = [max(below, key=lambda other: other.C), place] if below else [place]
        self.last = place

    def go_down(self, runner: Runner, C: float, epsilon: float | None) -> None:
        """Put the folds to where they were at the largest known value up to C, or a little above; else to zero."""
        near = [place for place in self.known if place.epsilon == epsilon and place.C <= _NEAR * C]
        if near:
            runner.go_back(min(near, key=lambda place: (place.C > C, -place.C)).where)
        else:
            runner.reset()
