"""beeline against a peer on one problem: find the tolerances that just reach a target, then run both in turn."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from support import sets
from support.peers import Peer
from support.problems import Fit, Problem

__all__ = ["TARGETS", "Measure", "Repeats", "contest"]

TARGETS = ("default", "distance")
DISTANCE = 1e-4
_SAME = 1e-9  # objectives that agree so far are equal
_LOOSEST, _TIGHTEST = -4, 26  # rungs of the ladder
_PATIENCE = 100.0  # seconds of a search that a peer gets


def rung(k: int) -> float:
    """Tolerances, two a decade."""
    return 10.0 ** (-k / 2)


@dataclass(frozen=True)
class Repeats:
    """How often both are run: for about so many seconds, but no less and no more often than that."""

    seconds: float = 4.0
    least: int = 3
    most: int = 25
    patience: float = 40.0

    def number(self, pair: float) -> int:
        """Repeats of a pair of runs that takes so long."""
        least = self.least if pair * self.least <= self.patience else 1
        return max(least, min(self.most, int(self.seconds / max(pair, 1e-9))))


@dataclass(frozen=True)
class Measure:
    """Medians at one target.

    Attributes
    ----------
    set, peer, target
        What was run.
    ours, theirs
        Seconds.
    our_tol, their_tol
        The tolerances that just reached the target.
    distance
        How far the target is above the optimum, relatively.
    note
        What else is to be said.
    """

    set: str
    peer: str
    target: str
    ours: float
    theirs: float
    our_tol: float
    their_tol: float
    distance: float
    solver: str
    note: str = ""

    @property
    def ratio(self) -> float:
        """Our time against theirs."""
        return self.ours / self.theirs


@dataclass
class _Ladder:
    """J by rung, of one solver on one problem."""

    problem: Problem
    fit: Callable[[float], Fit]
    values: dict[int, tuple[float, float, bool]] = field(default_factory=dict)

    def at(self, k: int) -> tuple[float, float, bool]:
        """J, the seconds that it took, and whether an iteration limit ended it."""
        if k not in self.values:
            found = self.fit(rung(k))
            self.values[k] = self.problem.value(found), found.seconds, found.capped
        return self.values[k]

    def loosest(self, target: float, start: int) -> int | None:
        """The loosest rung with J at most the target; None when there is none, or patience ends first."""
        k = start
        spent = 0.0
        while self.at(k)[0] > target:
            _, seconds, capped = self.at(k)
            spent += seconds
            k += 1
            if k > _TIGHTEST or capped or spent > _PATIENCE:
                return None
        while k > _LOOSEST and self.at(k - 1)[0] <= target:
            k -= 1
        return k


class _PeerLadder(_Ladder):
    """A ladder that remembers, in a file, where a peer gets to: peers do not change."""

    def __init__(self, problem: Problem, peer: Peer) -> None:
        self.path = sets.FOLDER / "peers.json"
        self.key = f"{peer.name} {peer.version} {problem.key}"
        known = json.loads(self.path.read_text()) if self.path.exists() else {}
        values = {int(k): tuple(v) for k, v in known.get(self.key, {}).items()}
        super().__init__(problem, peer.prepare(problem), values)

    def at(self, k: int) -> tuple[float, float, bool]:
        if k not in self.values:
            super().at(k)
            known = json.loads(self.path.read_text()) if self.path.exists() else {}
            known[self.key] = self.values
            self.path.write_text(json.dumps(known, indent=1))
        return self.values[k]


def contest(problem: Problem, peer: Peer, repeats: Repeats, targets: tuple[str, ...] = TARGETS) -> list[Measure]:
    """One measure a target."""
    theirs = _PeerLadder(problem, peer)
    ours = _Ladder(problem, problem.beeline)
    return [_measure(problem, peer, (ours, theirs), target, repeats) for target in targets]


def _measure(problem: Problem, peer: Peer, ladders: tuple[_Ladder, _Ladder], target: str, repeats: Repeats) -> Measure:
    ours, theirs = ladders
    optimum = problem.optimum
    at_default, fit, note = round(-2 * math.log10(peer.tol)), theirs.fit, ""
    if target == "default":
        their_k = at_default
        if peer.at_default:
            fit = peer.at_default(problem)
            value = problem.value(fit(peer.tol))
        else:
            value, _, capped = theirs.at(at_default)
            note = "ended by its iteration limit" if capped else ""
    else:
        value = optimum * (1 + DISTANCE)
        found = theirs.loosest(value, at_default)
        their_k = found if found is not None else min(theirs.values, key=lambda k: theirs.values[k])
        if found is None:
            value = theirs.at(their_k)[0]
            note = f"cannot reach {DISTANCE:g}, compared at its best"
    distance = value / optimum - 1
    if distance < -problem.gap - _SAME:
        raise AssertionError(f"{peer.name} is below the optimum of {problem.key} by {-distance:.1e}")
    # A certified gap of the target's distance is always enough; most often less is.
    our_k = ours.loosest(value * (1 + _SAME), min(_TIGHTEST, math.ceil(-2 * math.log10(max(distance, _SAME)))))
    if our_k is None:
        return Measure(
            problem.set, peer.name, target, math.inf, 1.0, 0.0, rung(their_k), distance, "", "beeline cannot"
        )
    medians = _interleaved(lambda: problem.beeline(rung(our_k)), lambda: fit(rung(their_k)), repeats)
    solver = problem.last.results[0].solver
    return Measure(
        problem.set, peer.name, target, *medians, rung(our_k), rung(their_k), distance, solver, note
    )  # fmt: skip


def _interleaved(ours: Callable[[], Fit], theirs: Callable[[], Fit], repeats: Repeats) -> tuple[float, float]:
    """Median seconds of both, taken in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    number = 1
    while len(times[0]) < number:
        for run, taken in zip((ours, theirs), times, strict=True):
            time.sleep(0.005)  # threads that wait for work by spinning come to rest
            taken.append(run().seconds)
        number = repeats.number(times[0][0] + times[1][0])
    return statistics.median(times[0]), statistics.median(times[1])
