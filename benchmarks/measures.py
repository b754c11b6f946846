"""Claims: ROC area and F1 train in a tenth of SVMperf's time, cost as little as sorting, and grow like the rows.

1. a9a by ROC area and by F1, without an intercept, at the C that is SVMperf's c = 10 (1000: it counts in percent).
   Where the variable SVM_PERF names its program, both run in turn, ours to a certified gap of SVMperf's default
   precision, 0.1 % of the largest loss. Without it, our seconds to that gap stand beside 2.2 s (ROC) and 69 s (F1),
   which its program took on a machine like ours: no measurement of the same run. What is one is the cutting-plane
   method by which SVMperf works (one slack, planes at the model's minimum) on the same loss and kernels: `bundle` with
   variant `bmrm`, to that gap.
2. The ROC area of 1,000,000 rows, one value with all slopes, takes at most twice as long as `np.sort` of as many
   numbers. Beside it the other losses, and rows of which 1 in 100 is positive.
3. From 10,000 to 1,000,000 rows, training by ROC area and by F1 to the default tolerance grows with an exponent of at
   most 1.1.

    python benchmarks/measures.py [--check] [--repeat N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import warnings

import numpy as np
from support import sets
from support.bundle_peers import SvmPerf
from support.problems import Stopwatch

import beeline
from beeline.losses import get_loss
from beeline.objective import Objective
from beeline.regularizers import L2
from beeline.solvers.bundle.bundle import Bundle

MOST_TIME, MOST_SORTS, MOST_GROWTH = 0.1, 2.0, 1.1
C = 1000.0  # SVMperf's c = 10
PRECISION = 1e-3  # SVMperf's -e 0.1, in percent: of the largest loss
ELSEWHERE = {"roc_area": 2.2, "f_beta": 69.0}  # seconds of SVMperf's training, measured once
SVM_PERF = {"roc_area": 10, "f_beta": 1}  # its -l
ROWS = 1_000_000
SIZES = (10_000, 100_000, 1_000_000)


def _verdict(held: bool) -> str:
    return "PASS" if held else "FAIL"


def a9a(name: str) -> Objective:
    """J of a9a."""
    rows = sets.binary("a9a")
    y = np.where(rows.labels > 0, 1.0, -1.0)
    return Objective.of(beeline.from_arrays(rows.matrix()), y, np.full(len(y), C), get_loss(name), L2(), 1.0, "none")


def tolerance(o: Objective, gap: float) -> float:
    """The relative tolerance that is that gap: a part of J, which is not known before."""
    return gap / Bundle(tol=1e-4).run(o).objective


def timed(o: Objective, variant: str, tol: float) -> tuple[float, int, float]:
    """(seconds, planes, J) until J is certified to that tolerance."""
    with Stopwatch() as watch:
        result = Bundle(tol=tol, max_passes=100_000, variant=variant).run(o)
    return watch.seconds.wall, int(result.facts["planes"]), result.objective


def training(repeat: int) -> bool:
    """The first claim."""
    good = True
    print(f"a9a, C = {C:g}                    seconds  planes           J")
    for name, elsewhere in ELSEWHERE.items():
        o = a9a(name)
        tol, variants = tolerance(o, PRECISION * C), ("ocas", "bmrm")
        taken: dict[str, list[float]] = {variant: [] for variant in (*variants, "SVMperf")}
        for _ in range(repeat):
            found = {variant: timed(o, variant, tol) for variant in variants}
            for variant, (seconds, _, _) in found.items():
                taken[variant].append(seconds)
            if "SVM_PERF" in os.environ:
                taken["SVMperf"].append(SvmPerf("a9a").train_for(o, SVM_PERF[name], C / 100)[0])
        for variant, (_, planes, value) in found.items():
            print(f"  {name:10} {variant:16}{statistics.median(taken[variant]):10.2f}{planes:8}{value:12.3f}")
        same = bool(taken["SVMperf"])
        theirs = statistics.median(taken["SVMperf"]) if same else elsewhere
        part = statistics.median(taken["ocas"]) / theirs
        good &= part <= MOST_TIME
        where = "in the same run" if same else "measured once, elsewhere, and not in this run"
        print(f"{_verdict(part <= MOST_TIME)}  {part:.3f} of SVMperf's {theirs:.2g} s (at most {MOST_TIME}), {where}")
    return good


def sorts(repeat: int) -> bool:
    """The second claim."""
    random = np.random.default_rng(0)
    z, ones = random.normal(size=ROWS), np.ones(ROWS)
    names = ("roc_area", "f_beta", "balanced_error", "precision", "recall", "break_even")
    good = True
    for part in (0.5, 0.01):
        y = np.where(random.random(ROWS) < part, 1.0, -1.0)
        taken: dict[str, list[float]] = {name: [] for name in ("np.sort", *names)}
        for _ in range(5 * repeat):
            with Stopwatch() as watch:
                np.sort(z)
            taken["np.sort"].append(watch.seconds.wall)
            for name in names:
                loss = get_loss(name)
                with Stopwatch() as watch:
                    loss.evaluated(z, y, ones)
                taken[name].append(watch.seconds.wall)
        times = {name: statistics.median(seconds) for name, seconds in taken.items()}
        print(f"\n{ROWS:,} rows, {part:.0%} positive        ms  times np.sort")
        for name, seconds in times.items():
            print(f"  {name:26}{1e3 * seconds:8.1f}  {seconds / times['np.sort']:6.2f}")
        ratio = times["roc_area"] / times["np.sort"]
        good &= ratio <= MOST_SORTS
        print(f"{_verdict(ratio <= MOST_SORTS)}  ROC area: {ratio:.2f} sorts (at most {MOST_SORTS:g})")
    return good


def growth(repeat: int) -> bool:
    """The third claim."""
    random = np.random.default_rng(1)
    X = random.normal(size=(max(SIZES), 10))
    scores = X @ np.linspace(1, -1, 10) + random.normal(size=len(X))
    y = np.where(scores > np.quantile(scores, 0.9), 1.0, -1.0)
    good = True
    print("\nseconds of training by rows   " + "".join(f"{m:>12,}" for m in SIZES) + "  exponent")
    for name in ELSEWHERE:
        times = []
        for m in SIZES:
            labels, costs = y[:m], np.full(m, 100.0)
            o = Objective.of(beeline.from_arrays(X[:m]), labels, costs, get_loss(name), L2(), 1.0, "none")
            seconds = []
            for _ in range(repeat):
                with Stopwatch() as watch:
                    Bundle().run(o)
                seconds.append(watch.seconds.wall)
            times.append(statistics.median(seconds))
        exponent = float(np.polyfit(np.log(SIZES), np.log(times), 1)[0])
        held = exponent <= MOST_GROWTH
        good &= held
        print(f"{_verdict(held)}  {name:24}" + "".join(f"{t:12.3f}" for t in times) + f"  {exponent:8.2f}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when a claim does not hold")
    parser.add_argument("--repeat", type=int, default=3, help="so many runs of each")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    good = [claim(options.repeat) for claim in (training, sorts, growth)]
    return int(options.check and not all(good))


if __name__ == "__main__":
    sys.exit(main())
