"""beeline against a peer on one problem: find the tolerances that just reach a target, then run both in turn."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from support import sets
from support.peers import Peer
from support.problems import Fit, Problem, Seconds

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

    def number(self, once: float) -> int:
        """Repeats of runs that take so long together."""
        least = self.least if once * self.least <= self.patience else 1
        return max(least, min(self.most, int(self.seconds / max(once, 1e-9))))


@dataclass(frozen=True)
class Measure:
    """Medians at one target.

    Attributes
    ----------
    set, peer, target
        What was run.
    ours, theirs
        Seconds.
    tols
        The tolerances that just reached the target: ours, theirs.
    distance
        How far the target is above the optimum, relatively.
    solver
        Which of ours it was.
    note
        What else is to be said.
    """

    set: str
    peer: str
    target: str
    ours: Seconds
    theirs: Seconds
    tols: tuple[float, float]
    distance: float
    solver: str
    note: str = ""

    @property
    def ratio(self) -> float:
        """Our time against theirs."""
        return self.ours.wall / self.theirs.wall


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
            self.values[k] = self.problem.value(found), found.seconds.wall, found.capped
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


def contest(problem: Problem, peer: Peer, repeats: Repeats) -> list[Measure]:
    """One measure a target."""
    theirs = _PeerLadder(problem, peer)
    ours = _Ladder(problem, problem.beeline)
    pairs = [_default(problem, peer, theirs), _distance(problem, peer, theirs)]
    rungs = [_our_rung(problem, peer, ours, pair.value) for pair in pairs]
    runs = {("ours", k): lambda k=k: problem.beeline(rung(k)) for k in rungs}
    runs |= {("theirs", *pair.run[:2]): lambda pair=pair: pair.run[2](rung(pair.run[1])) for pair in pairs}
    taken = _interleaved(runs, repeats)
    solver = problem.last.results[0].solver
    return [
        Measure(
            problem.set,
            peer.name,
            target,
            taken["ours", k],
            taken["theirs", *pair.run[:2]],
            (rung(k), rung(pair.run[1])),
            pair.value / problem.optimum - 1,
            solver,
            pair.note,
        )
        for target, k, pair in zip(TARGETS, rungs, pairs, strict=True)
    ]


class _Target(NamedTuple):
    """An objective to reach, and the peer's run that reaches it: its kind, rung and function."""

    value: float
    run: tuple[str, int, Callable[[float], Fit]]
    note: str = ""


def _default(problem: Problem, peer: Peer, ladder: _Ladder) -> _Target:
    k = round(-2 * math.log10(peer.tol))
    if peer.at_default:
        fit = peer.at_default(problem)
        return _Target(problem.value(fit(peer.tol)), ("default", k, fit))
    value, _, capped = ladder.at(k)
    return _Target(value, ("ladder", k, ladder.fit), "ended by its iteration limit" if capped else "")


def _distance(problem: Problem, peer: Peer, ladder: _Ladder) -> _Target:
    value = problem.optimum * (1 + DISTANCE)
    k = ladder.loosest(value, round(-2 * math.log10(peer.tol)))
    if k is not None:
        return _Target(value, ("ladder", k, ladder.fit))
    k = min(ladder.values, key=lambda k: ladder.values[k][0])
    return _Target(ladder.at(k)[0], ("ladder", k, ladder.fit), f"cannot reach {DISTANCE:g}, compared at its best")


def _our_rung(problem: Problem, peer: Peer, ladder: _Ladder, value: float) -> int:
    distance = value / problem.optimum - 1
    if distance < -problem.gap - _SAME:
        raise AssertionError(f"{peer.name} is below the optimum of {problem.key} by {-distance:.1e}")
    # A certified gap of the target's distance is always enough; most often less is.
    start = min(_TIGHTEST, math.ceil(-2 * math.log10(max(distance, _SAME))))
    k = ladder.loosest(value * (1 + _SAME), start)
    if k is None:
        raise AssertionError(f"beeline does not get within {distance:.1e} of the optimum of {problem.key}")
    return k


def _interleaved(runs: dict[tuple, Callable[[], Fit]], repeats: Repeats) -> dict[tuple, Seconds]:
    """Median seconds of all, taken in turn."""
    taken: dict[tuple, list[Seconds]] = {key: [] for key in runs}
    done, number = 0, 1
    while done < number:
        for key, run in runs.items():
            time.sleep(0.005)  # threads that wait for work by spinning come to rest
            taken[key].append(run().seconds)
        done += 1
        number = repeats.number(sum(seconds[0].wall for seconds in taken.values()))
    return {key: Seconds(*map(statistics.median, zip(*seconds, strict=True))) for key, seconds in taken.items()}
