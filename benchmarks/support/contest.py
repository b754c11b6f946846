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

__all__ = ["DEFAULT", "Measure", "Repeats", "contest", "target_name"]

DEFAULT = "default"
_SAME = 1e-9  # objectives that agree so far are equal
_LOOSEST, _TIGHTEST = -4, 26  # rungs of the ladder
_PATIENCE = 100.0  # seconds of a search that a peer gets
_LONG = 1.0  # seconds of a run that is not repeated to choose among settings


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
        What was run, the target by its name.
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

    def loosest(self, target: float, start: int, least: int = _LOOSEST) -> int | None:
        """The loosest rung, from `least` on, with J at most the target; None if there is none, or patience ends."""
        k = start
        spent = 0.0
        while self.at(k)[0] > target:
            _, seconds, capped = self.at(k)
            spent += seconds
            k += 1
            if k > _TIGHTEST or capped or spent > _PATIENCE:
                return None
        while k > least and self.at(k - 1)[0] <= target:
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


def target_name(target: float | None) -> str:
    """How a target is called: the relative distance from the optimum, or None for the peer's default objective."""
    return DEFAULT if target is None else f"{target:g}"


def contest(
    problem: Problem, peer: Peer, repeats: Repeats, targets: tuple[float | None, ...], *, by_estimator: bool = False
) -> list[Measure]:
    """One measure a target; beeline trains by its estimator, or by `train` on rows that were checked before."""
    fit = problem.estimator if by_estimator else problem.beeline
    ours = _Ladder(problem, fit)
    pairs = [_default(problem, peer) if target is None else _distance(problem, peer, target) for target in targets]
    rungs = [_our_rung(problem, peer, ours, pair.value) for pair in pairs]
    runs = {("ours", k): lambda k=k: fit(rung(k)) for k in rungs}
    runs |= {("theirs", run.kind, run.k): run for pair in pairs for run in pair.runs}
    taken = _interleaved(runs, repeats)
    measures = []
    for target, k, pair in zip(targets, rungs, pairs, strict=True):
        theirs = min(pair.runs, key=lambda run: taken["theirs", run.kind, run.k].wall)
        measures.append(
            Measure(
                problem.set,
                peer.name,
                target_name(target),
                taken["ours", k],
                taken["theirs", theirs.kind, theirs.k],
                (rung(k), rung(theirs.k)),
                pair.value / problem.optimum - 1,
                problem.last_solver,
                pair.note or theirs.note,
            )
        )
    return measures


class _Run(NamedTuple):
    """A peer's run: a name for its settings, the rung of its tolerance, the function, what is to be said of it."""

    kind: str
    k: int
    fit: Callable[[float], Fit]
    note: str = ""

    def __call__(self) -> Fit:
        return self.fit(rung(self.k))


class _Target(NamedTuple):
    """An objective to reach, and the peer's runs that reach it, of which the fastest counts."""

    value: float
    runs: tuple[_Run, ...]
    note: str = ""


def _default(problem: Problem, peer: Peer) -> _Target:
    k = _default_rung(peer)
    if peer.at_default:
        fit = peer.at_default(problem)
        return _Target(problem.value(fit(peer.tol)), (_Run("default", k, fit),))
    ladder = _PeerLadder(problem, peer)
    value, _, capped = ladder.at(k)
    return _Target(value, (_Run("ladder", k, ladder.fit),), "ended by its iteration limit" if capped else "")


def _default_rung(peer: Peer) -> int:
    return round(-2 * math.log10(peer.tol))


def _distance(problem: Problem, peer: Peer, distance: float) -> _Target:
    """That distance from the optimum, by the settings of the peer that get there first."""
    value = problem.optimum * (1 + distance)
    reached: list[tuple[float, _Run]] = []
    for settings in peer.settings(problem) if peer.settings else (peer,):
        ladder = _PeerLadder(problem, settings)
        k = ladder.loosest(value, _default_rung(settings), settings.loosest_rung)
        if k is not None:
            note = settings.name.removeprefix(peer.name).strip()
            reached.append((ladder.at(k)[1], _Run(settings.name, k, ladder.fit, note)))
    if reached:
        return _Target(value, tuple(_fastest(reached)))
    ladder = _PeerLadder(problem, peer)
    k = min(ladder.values, key=lambda k: ladder.values[k][0])
    run = _Run("ladder", k, ladder.fit)
    return _Target(ladder.at(k)[0], (run,), f"cannot reach {distance:g}, compared at its best")


def _fastest(reached: list[tuple[float, _Run]], most: int = 2, rounds: int = 5) -> list[_Run]:
    """The fastest of some runs, given what each took once; short ones are tried in turn a few times more."""
    least = [seconds for seconds, _ in reached]
    if len(reached) > most:
        for _ in range(rounds):
            for number, (seconds, run) in enumerate(reached):
                if seconds <= _LONG:
                    least[number] = min(least[number], run().seconds.wall)
    order = sorted(range(len(reached)), key=least.__getitem__)
    return [reached[number][1] for number in order[:most]]


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
