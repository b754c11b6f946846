"""Claims about the bundle method, with the hinge, λ = 1/(C·rows) and a certified gap of 0.1 %.

- steps: `ocas` needs at most half the steps of `bmrm`, in the geometric mean over sets and λ; and at most 200 for
  λ ≥ 1e-5. A run of `bmrm` that does not end within its limit counts with the limit.
- time: within 2 times `DualCD` at λ = 1e-3, in the geometric mean.
- products: a step takes at most 1.3 times its two products with the rows, where those are most of the work (covtype).
- linear: the time grows with the rows like rows^s, s ≤ 1.1, from 10,000 rows of covtype to all, for L2 and L1, λ=1e-5.

Sets: a9a, w8a, covtype, 20 newsgroups, and with --full KDD99; λ = 1e-3, 1e-4, 1e-5, 1e-6 (20 newsgroups: the first
two, its planes have 130,000 numbers each; with --full all). Times are those of all cores together, so that others on
the machine disturb less; one that is compared is the least of several, taken in turn.

    python benchmarks/bundle.py [--check] [--full]
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from support import sets

from beeline.data.block import Block
from beeline.data.dataset import ArrayDataset
from beeline.losses import Hinge
from beeline.objective import Objective
from beeline.regularizers import L1, L2, Regularizer
from beeline.solvers.bundle import Bundle
from beeline.solvers.dual_cd import DualCD

GAP = 1e-3
STRENGTHS = (1e-3, 1e-4, 1e-5, 1e-6)
_BMRM_PASSES = 1000
_REPEATS = 5


def objective(name: str, strength: float, rows: int | None = None, regularizer: Regularizer | None = None) -> Objective:
    """λΩ(w) + the mean hinge over the rows of a set, or over so many of them, taken evenly."""
    whole = sets.binary(name)
    matrix, labels = whole.matrix(), whole.labels
    if rows is not None:
        picked = np.linspace(0, len(labels) - 1, rows).astype(int)
        matrix, labels = matrix[picked], labels[picked]
    data = ArrayDataset(Block(matrix.data, matrix.shape[1], matrix.indptr, matrix.indices))
    return Objective(
        data, labels, np.full(len(labels), 1 / len(labels)), Hinge(), regularizer or L2(), strength, "none"
    )


def seconds(run: Callable[[], object]) -> float:
    """Of all cores together."""
    clock = time.process_time()
    run()
    return time.process_time() - clock


def mean(ratios: list[float]) -> float:
    """The geometric one."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def strengths(name: str, full: bool) -> tuple[float, ...]:
    return STRENGTHS[:2] if name == "20newsgroups" and not full else STRENGTHS


def steps(names: list[str], full: bool) -> tuple[list[float], list[tuple[str, float, int]]]:
    """(steps of `ocas` to those of `bmrm`, the steps of `ocas`)."""
    ratios, counts = [], []
    print("| set | λ | steps, ocas | steps, bmrm | bound (13) | seconds, ocas | seconds, bmrm |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        for strength in strengths(name, full):
            o = objective(name, strength)
            clock = time.process_time()
            ocas = Bundle(GAP, 5000).solve(o)
            between = time.process_time()
            bmrm = Bundle(GAP, _BMRM_PASSES, variant="bmrm").solve(o)
            times = between - clock, time.process_time() - between
            ratios.append(ocas.iterations / bmrm.iterations)
            counts.append((name, strength, ocas.iterations))
            more = "" if bmrm.gap <= GAP else f" (gap {bmrm.gap:.1g})"
            print(
                f"| {name} | {strength:g} | {ocas.iterations} | {bmrm.iterations}{more} | "
                f"{ocas.facts['step_bound']:.1e} | {times[0]:.2f} | {times[1]:.2f} |",
                flush=True,
            )
    return ratios, counts


def against_dual(names: list[str]) -> list[float]:
    """The time of `ocas` to that of `DualCD`, each over rows of its own, as a first training sees them."""
    ratios = []
    print("\n| set | seconds, bundle | seconds, dual_cd | ratio |\n|---|---|---|---|")
    for name in names:
        taken: list[tuple[float, float]] = []
        for _ in range(_REPEATS):
            one, other = objective(name, 1e-3), objective(name, 1e-3)
            ours = seconds(lambda one=one: Bundle(GAP).solve(one))
            taken.append((ours, seconds(lambda other=other: DualCD(GAP).solve(other))))
        ours, theirs = (min(column) for column in zip(*taken, strict=True))
        ratios.append(ours / theirs)
        print(f"| {name} | {ours:.3f} | {theirs:.3f} | {ours / theirs:.2f} |", flush=True)
    return ratios


def products(name: str) -> float:
    """The time of a step to that of its two products."""
    o, best = objective(name, 1e-5), math.inf
    for _ in range(3):
        found = []
        a_run = seconds(lambda found=found: found.append(Bundle(GAP).solve(o)))
        w = np.ones(o.size)
        z = o.at(w).z[0]
        both = seconds(lambda w=w, z=z: [(o.at(w), o.shards[0].block.transposed(z)) for _ in range(20)]) / 20
        best = min(best, a_run / found[0].iterations / both)
    return best


def growth(name: str, regularizer: Regularizer) -> float:
    """The exponent s of time ~ rows^s."""
    whole = len(sets.binary(name).labels)
    sizes = [10_000, 40_000, 160_000, whole]
    times = []
    for rows in sizes:
        o = objective(name, 1e-5, rows, regularizer)
        times.append(min(seconds(lambda o=o: Bundle(GAP, 5000).solve(o)) for _ in range(3 if rows < whole else 1)))
    print(
        f"\n{name}, {regularizer!r}: " + ", ".join(f"{n:,} rows {t:.2f} s" for n, t in zip(sizes, times, strict=True))
    )
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a claim does not hold")
    parser.add_argument("--full", action="store_true", help="more sets and λ")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    names = ["a9a", "w8a", "covtype", "20newsgroups", *(["kdd99"] if arguments.full else [])]
    ratios, counts = steps(names, arguments.full)
    most = max(count for _, strength, count in counts if strength >= 1e-5)
    figures = [
        ("steps of ocas to those of bmrm", mean(ratios), 0.5),
        ("most steps of ocas for λ ≥ 1e-5", most, 200),
        ("time to that of dual_cd, λ = 1e-3", mean(against_dual(names)), 2.0),
        ("a step to its two products", products("covtype"), 1.3),
        ("growth with the rows, L2", growth("covtype", L2()), 1.1),
        ("growth with the rows, L1", growth("covtype", L1()), 1.1),
    ]
    print("\n| figure | is | at most |\n|---|---|---|")
    for name, value, limit in figures:
        print(f"| {name} | {value:.3g} | {limit:g} |{'' if value <= limit else ' missed'}")
    if arguments.check and any(value > limit for _, value, limit in figures):
        sys.exit(1)


if __name__ == "__main__":
    main()
