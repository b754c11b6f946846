"""The best settings of the peers: every lane of each, on every set, until more effort gains nothing.

What is found is kept in build/bench, so that a search that is interrupted goes on where it was; the settings that get
within 0.5 points of the best accuracy first, for each set and contender, are written beside this file.
"""

from __future__ import annotations

import json
import os
import resource
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from support import sets
from support.contenders import CONTENDERS, Classes, Contender, Found, Setting

__all__ = ["WITHIN", "Best", "Known", "load", "search", "write"]

WITHIN = 0.5  # points below the best accuracy
_PATIENCE = 60  # seconds of the processor that a training may take
_FAR = 2.0  # points behind, of a lane that is left where it rises slowly
_LITTLE = 0.05  # points that two more rungs of effort have to gain
_LIKELY, _DOUBT, _ROUNDS = 6, 3.0, 3  # settings that are timed again: how many, how much slower at most, how often
_FILE = Path(__file__).with_name("stochastic_settings.json")


class Best(NamedTuple):
    """The setting of a contender that gets there first, or comes closest, and what it took and reached."""

    setting: Setting
    found: Found
    reaches: bool


@dataclass
class Known:
    """What was found of a set: the best accuracy of all contenders, and the best of each."""

    accuracy: float
    best: dict[str, Best]


def search(classes: Classes, ours: list[Found], names: list[str]) -> Known:
    """Try all settings of all contenders; `ours` counts for the best accuracy."""
    tried: dict[str, list[tuple[Setting, Found]]] = {}
    for name in names:
        tried[name] = []
        for lane in CONTENDERS[name].lanes:
            best = max((found.accuracy for _, found in tried[name]), default=0.0)
            tried[name] += _climb(classes, CONTENDERS[name], lane, best)
    accuracy = max(found.accuracy for found in (*ours, *(f for several in tried.values() for _, f in several)))
    target = accuracy - WITHIN
    return Known(accuracy, {name: _best(classes, name, several, target) for name, several in tried.items() if several})


def _cores(found: Found) -> float:
    """By the time of all cores, which tells more than the clock where others use the machine too."""
    return found.cores


def _best(classes: Classes, name: str, tried: list[tuple[Setting, Found]], target: float) -> Best:
    """The fastest setting that gets there; if none does, the fastest within the same distance of its own best.

    Those that may be it are timed a few times more, in turn.
    """
    own = max(found.accuracy for _, found in tried)
    reaches = own >= target
    least = target if reaches else own - WITHIN
    there = sorted((one for one in tried if one[1].accuracy >= least), key=lambda one: one[1].cores)
    likely = [one for one in there[:_LIKELY] if one[1].cores <= _DOUBT * there[0][1].cores]
    for _ in range(_ROUNDS if len(likely) > 1 else 0):
        again = [_limited(lambda s=setting: CONTENDERS[name].train(classes, s), _PATIENCE) for setting, _ in likely]
        likely = [(s, min(old, new or old, key=_cores)) for (s, old), new in zip(likely, again, strict=True)]
    return Best(*min(likely, key=lambda one: one[1].cores), reaches)


def _climb(classes: Classes, contender: Contender, lane: Setting, best: float) -> list[tuple[Setting, Found]]:
    """One lane, with more and more effort, until it gains nothing, takes too long, or is far behind another's best."""
    climbed: list[tuple[Setting, Found]] = []
    for effort in contender.efforts:
        setting = {**lane, contender.effort: effort}
        found = _remembered(classes, contender, setting)
        if found is None:
            break
        climbed.append((setting, found))
        gain = climbed[-1][1].accuracy - climbed[-2][1].accuracy if len(climbed) > 1 else np.inf
        if found.accuracy < best - _FAR and gain < WITHIN:
            break
        before = [f.accuracy for _, f in climbed[:-2]]
        if before and max(f.accuracy for _, f in climbed[-2:]) < max(before) + _LITTLE:
            break
    return climbed


def _remembered(classes: Classes, contender: Contender, setting: Setting) -> Found | None:
    """What a training takes and reaches, from the file if it was tried before; None where patience ended."""
    file = sets.FOLDER / f"stochastic-search-{classes.name}.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    key = f"{contender.name} | {json.dumps(setting, sort_keys=True)}"
    if key not in known:
        _prepare(classes, contender)
        known[key] = _limited(lambda: contender.train(classes, setting), _PATIENCE)
        file.write_text(json.dumps(known, indent=0))
        print(f"   {classes.name}: {key}: {known[key]}", flush=True)
    return None if known[key] is None else Found(*known[key])


def _prepare(classes: Classes, contender: Contender) -> None:
    """Make what the trainings of a contender share, before there is a process for each."""
    _ = classes.X, classes.X_test
    if contender.name.startswith("LIBLINEAR"):
        _ = classes.liblinear
    if contender.name.startswith(("Vowpal", "SVM")):
        _ = classes.texts
    if contender.name.startswith("Vowpal"):
        _ = classes.vw_cache


def _limited(work: Callable[[], Found], seconds: int) -> Found | None:
    """What a function gives, in a process of its own that ends when it takes more of the processor than that."""
    receive, send = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            os.close(receive)
            os.write(send, json.dumps(work()).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(send)
    said = os.read(receive, 1000)
    os.close(receive)
    os.waitpid(pid, 0)
    return Found(*json.loads(said)) if said else None


def write(known: dict[str, Known]) -> None:
    """Keep the settings beside this file; sets that were not searched keep theirs."""
    told = json.loads(_FILE.read_text()) if _FILE.exists() else {}
    for name, one in known.items():
        best = {peer: [b.setting, [round(x, 4) for x in b.found], b.reaches] for peer, b in one.best.items()}
        told[name] = {"accuracy": round(one.accuracy, 4), "best": {**told.get(name, {}).get("best", {}), **best}}
    _FILE.write_text(json.dumps(told, indent=1) + "\n")


def load(name: str) -> Known:
    """What a search has found for a set."""
    told = json.loads(_FILE.read_text())[name]
    best = {peer: Best(setting, Found(*found), reaches) for peer, (setting, found, reaches) in told["best"].items()}
    return Known(told["accuracy"], best)
