"""Claims about the bundle method, with the hinge, λ = 1/(C·rows) and a certified gap of 0.1 %.

- steps: `ocas` needs at most half the steps of `bmrm`, in the geometric mean over sets and λ; and at most 200 for
  λ ≥ 1e-5.
- original: `ocas` takes at most 0.33 of the time of `bmrm`, in the geometric mean.
- SVMperf: at most 0.33 of its time, in the geometric mean, where the variable SVM_PERF names the program; both to J at
  most 0.1 % above a bound that is proven.
- dual: within 2 times `DualCD` at λ = 1e-3, in the geometric mean.
- products: a step takes at most 1.3 times its two products with the rows, where those are most of the work: MNIST, with
  150 entries a row; beside it covtype and KDD99, with 12.
- l1: steps and time with L1, without a claim; a run that takes more than half a minute is left there.
- regression: ε-insensitive regression with a free intercept on `fried`, without a claim (figure 4 of the paper).
- growth: the time grows with the rows like rows^s, s ≤ 1.1, from 10,000 rows of covtype and KDD99 to all, for L2 and
  L1, λ = 1e-5.
- quantile: at most 1/20 of the time of scikit-learn's QuantileRegressor on `fried`, in the geometric mean, to an
  objective at most 1e-6 above, relatively. It runs with "highs-ipm"; with --full with "highs-ds" and "highs" too, and
  the fastest counts.

Sets: a9a, w8a, KDD99, covtype, 20 newsgroups; λ = 1e-3, 1e-4, 1e-5, 1e-6. A run of `bmrm` is stopped when it has taken
6 times as long as `ocas`, or 3.5 times and a minute (with --full 60 times), and counts with what it has taken until
then, which flatters it. All may use all cores; the machine should have nothing else to do. A time that is compared with
another solver's is the least of several, taken in turn.

    python benchmarks/bundle.py [--check] [--full] [--only steps,svmperf,dual,products,l1,regression,growth,quantile]
                                [--sets a9a,w8a] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from support import sets
from support.alike import share_alike
from support.bundle_peers import QUANTILE_SOLVERS, SvmPerf, fried, quantile_contest

from beeline.data.core.arrays import from_arrays
from beeline.data.core.block import Block
from beeline.data.core.dataset import ArrayDataset
from beeline.losses import EpsilonInsensitive, Hinge
from beeline.objective import Objective
from beeline.regularizers import L1, L2, Regularizer
from beeline.solvers.base import Result
from beeline.solvers.bundle.bundle import Bundle
from beeline.solvers.dual.dual_cd import DualCD

GAP = 1e-3
SETS = ("a9a", "w8a", "kdd99", "covtype", "20newsgroups")
STRENGTHS = (1e-3, 1e-4, 1e-5, 1e-6)
PARTS = ("steps", "svmperf", "dual", "products", "l1", "regression", "growth", "quantile")
_PASSES, _BMRM_PASSES = 5000, 20_000
_PATIENCE, _MORE_PATIENCE = 6, 60  # times as long as `ocas`, for `bmrm`
_ENOUGH = 60.0  # seconds, after which 3.5 times will do
_HALF_A_MINUTE = 30.0
_REPEATS = 5


@dataclass
class Report:
    """Tables, printed as they grow, and figures with their limits."""

    lines: list[str] = field(default_factory=list)
    figures: list[tuple[str, float, float]] = field(default_factory=list)

    def say(self, line: str) -> None:
        """A line."""
        self.lines.append(line)
        print(line, flush=True)

    def head(self, *names: str) -> None:
        """Begin a table."""
        self.say("")
        self.row(*names)
        self.say("|---" * len(names) + "|")

    def row(self, *cells: object) -> None:
        """A line of a table."""
        self.say(f"| {' | '.join(map(str, cells))} |")

    def figure(self, name: str, value: float, limit: float) -> None:
        """A claim: the value is at most the limit."""
        self.figures.append((name, value, limit))

    def finish(self) -> bool:
        """Whether everything holds."""
        self.head("figure", "is", "at most")
        for name, value, limit in self.figures:
            self.row(name, f"{value:.3g}", f"{limit:g}{'' if value <= limit else ', missed'}")
        return all(value <= limit for _, value, limit in self.figures)


def objective(name: str, strength: float, rows: int | None = None, regularizer: Regularizer | None = None) -> Objective:
    """λΩ(w) + the mean hinge over the rows of a set, or over so many of them, taken evenly."""
    whole = sets.binary(name)
    matrix, labels = whole.matrix(), whole.labels
    if rows is not None:
        picked = np.linspace(0, len(labels) - 1, rows).astype(int)
        matrix, labels = matrix[picked], labels[picked]
    data = ArrayDataset(Block(matrix.data, matrix.shape[1], matrix.indptr, matrix.indices))
    return Objective.of(
        data, labels, np.full(len(labels), 1 / len(labels)), Hinge(), regularizer or L2(), strength, "none"
    )


def seconds(run: Callable[[], object]) -> float:
    """Until it is done."""
    clock = time.perf_counter()
    run()
    return time.perf_counter() - clock


def both_clocks(run: Callable[[], object]) -> tuple[float, float]:
    """(seconds until it is done, seconds of all cores together)."""
    clock = time.process_time()
    wall = seconds(run)
    return wall, time.process_time() - clock


def mean(ratios: Iterable[float]) -> float:
    """The geometric one."""
    return float(np.exp(np.mean(np.log(list(ratios)))))


def timed_solve(solver: Bundle, o: Objective, limit: float = math.inf) -> tuple[Result, float]:
    """(what it found, seconds); stopped after so many."""
    clock = time.perf_counter()
    result = solver.run(o, None, lambda _: time.perf_counter() - clock > limit)
    return result, time.perf_counter() - clock


def steps(names: list[str], full: bool, report: Report) -> None:
    """`ocas` against `bmrm`."""
    in_steps, in_time, counts = [], [], []
    report.head("set", "λ", "steps, ocas", "steps, bmrm", "bound (13)", "seconds, ocas", "seconds, bmrm")
    for name in names:
        for strength in STRENGTHS:
            o = objective(name, strength)
            ocas, ours = timed_solve(Bundle(GAP, _PASSES), o)
            limit = max(1.0, _MORE_PATIENCE * ours if full else min(_PATIENCE * ours, max(3.5 * ours, _ENOUGH)))
            bmrm, theirs = timed_solve(Bundle(GAP, _BMRM_PASSES, variant="bmrm"), o, limit)
            in_steps.append(ocas.iterations / bmrm.iterations)
            in_time.append(ours / theirs)
            counts += [ocas.iterations] * (strength >= 1e-5)
            over = "" if bmrm.gap <= GAP else "over "
            most = f"{ocas.facts['step_bound']:.1e}"
            found = f"{over}{bmrm.iterations}", most, f"{ours:.2f}", f"{over}{theirs:.2f}"
            report.row(name, f"{strength:g}", ocas.iterations, *found)
    report.figure("steps of ocas to those of bmrm", mean(in_steps), 0.5)
    report.figure("most steps of ocas for λ ≥ 1e-5", max(counts), 200)
    report.figure("time of ocas to that of bmrm", mean(in_time), 0.33)


def against_svmperf(names: list[str], report: Report) -> None:
    """The time of `ocas` to that of SVMperf."""
    if "SVM_PERF" not in os.environ:
        print("\nSVMperf: SVM_PERF names no program, left out")
        return
    ratios = []
    report.head("set", "λ", "seconds, bundle", "seconds, SVMperf", "its -e", "its J over the bound", "ratio")
    for name in names:
        peer = SvmPerf(name)
        for strength in STRENGTHS:
            o = objective(name, strength)
            _, ours = timed_solve(Bundle(GAP, _PASSES), o)
            close = Bundle(0.1 * GAP, _PASSES).solve(o)
            bound = close.objective * (1 - close.gap)
            theirs, value, tolerance = peer.run(o, bound * (1 + GAP))
            ratios.append(ours / max(theirs, 0.01))
            cells = f"{ours:.2f}", f"{theirs:.2f}", tolerance, f"{value / bound - 1:.1e}", f"{ratios[-1]:.2f}"
            report.row(name, f"{strength:g}", *cells)
    report.figure("time to that of SVMperf", mean(ratios), 0.33)


def against_dual(names: list[str], report: Report) -> None:
    """The time of `ocas` to that of `DualCD`, each over rows of its own, as a first training sees them."""
    ratios = []
    report.head("set", "seconds, bundle", "seconds, dual_cd", "ratio", "ratio of processor time")
    for name in names:
        taken: list[tuple[float, ...]] = []
        for _ in range(_REPEATS):
            one, other = objective(name, 1e-3), objective(name, 1e-3)
            ours = both_clocks(lambda one=one: Bundle(GAP).solve(one))
            taken.append((*ours, *both_clocks(lambda other=other: DualCD(GAP).solve(other))))
        ours, our_work, theirs, their_work = (min(column) for column in zip(*taken, strict=True))
        ratios.append(ours / theirs)
        report.row(name, f"{ours:.3f}", f"{theirs:.3f}", f"{ours / theirs:.2f}", f"{our_work / their_work:.2f}")
    report.figure("geometric mean over the sets of the time to that of dual_cd, λ = 1e-3", mean(ratios), 2.0)


def products(report: Report) -> None:
    """The time of a step to that of its two products, in the middle of several.

    The products are those of the last step: with its weights, and with the slopes of its rows, many of which are zero
    and cost nothing.
    """
    report.head("set", "entries a row", "slopes that are not zero", "a step to its two products", "of processor time")
    for name in ("mnist", "covtype", "kdd99"):
        o = objective(name, 1e-5)
        rows, ratios = o.rows.local(), []
        for _ in range(_REPEATS):
            found: list[Result] = []
            a_run = both_clocks(lambda o=o, found=found: found.append(Bundle(GAP).solve(o)))
            last = o.at(found[0].theta)
            w, u = last.theta, o.rows.gather(last.slopes)
            twenty = both_clocks(lambda rows=rows, w=w, u=u: [(rows.scores(w), rows.transposed(u)) for _ in range(20)])
            ratios.append(np.array(a_run) / found[0].iterations / (np.array(twenty) / 20))
        wall, work = np.median(ratios, axis=0)
        report.row(name, f"{rows.nnz / rows.n_rows:.0f}", f"{np.mean(u != 0):.0%}", f"{wall:.2f}", f"{work:.2f}")
        report.figure(f"a step to its two products, {name}", float(wall), 1.3)


def one_norm(names: list[str], report: Report) -> None:
    """With L1: steps, time and what is left of the weights."""
    report.head("set", "λ", "steps, L1", "seconds", "weights that are not zero")
    for name in names:
        for strength in STRENGTHS:
            o = objective(name, strength, regularizer=L1())
            result, taken = timed_solve(Bundle(GAP, _PASSES), o, _HALF_A_MINUTE)
            over = "" if result.gap <= GAP else f" (gap {result.gap:.1%})"
            left = np.count_nonzero(result.theta)
            report.row(name, f"{strength:g}", f"{result.iterations}{over}", f"{taken:.2f}", left)


def regression(report: Report) -> None:
    """ε-insensitive regression, `ocas` and `bmrm`."""
    X, y = fried()
    report.head("λ", "steps, ocas", "steps, bmrm", "seconds, ocas", "seconds, bmrm")
    for strength in STRENGTHS:
        costs = np.full(len(y), 1 / len(y))
        o = Objective.of(from_arrays(X, y), y, costs, EpsilonInsensitive(0.1), L2(), strength, "free")
        ocas, ours = timed_solve(Bundle(GAP, _PASSES), o)
        bmrm, theirs = timed_solve(Bundle(GAP, _BMRM_PASSES, variant="bmrm"), o, _HALF_A_MINUTE)
        over = "" if bmrm.gap <= GAP else "over "
        report.row(f"{strength:g}", ocas.iterations, f"{over}{bmrm.iterations}", f"{ours:.2f}", f"{over}{theirs:.2f}")


def growth(names: list[str], report: Report) -> None:
    """The exponent s of time ~ rows^s."""
    sizes = (10_000, 40_000, 160_000)
    report.head("set", "Ω", *(f"{rows:,} rows" for rows in sizes), "all rows", "exponent")
    for name in (name for name in names if name in ("covtype", "kdd99")):
        whole = len(sets.binary(name).labels)
        for regularizer in (L2(), L1()):
            times = []
            for rows in (*sizes, whole):
                o = objective(name, 1e-5, rows, regularizer)
                runs = 3 if rows < whole else 1
                times.append(min(seconds(lambda o=o: Bundle(GAP, _PASSES).solve(o)) for _ in range(runs)))
            exponent = float(np.polyfit(np.log([*sizes, whole]), np.log(times), 1)[0])
            report.row(name, regularizer.name, *(f"{t:.2f} s" for t in times), f"{exponent:.2f}")
            report.figure(f"growth with the rows, {name}, {regularizer.name}", exponent, 1.1)


def quantiles(full: bool, report: Report) -> None:
    """The time of `QuantileRegressor` to that of scikit-learn's."""
    peers, found = (QUANTILE_SOLVERS if full else QUANTILE_SOLVERS[:1]), []
    names = "seconds, scikit-learn", "seconds, tol 1e-4", "objective above", "seconds, tol 1e-6", "objective above"
    report.head("τ", "alpha", *names, "ratio, tol 1e-4", "ratio, tol 1e-6")
    for quantile in (0.1, 0.5, 0.9):
        for alpha in (1e-3, 1e-2):
            c = quantile_contest(quantile, alpha, peers)
            found.append(c)
            ours = f"{c.default:.3f}", f"{c.above[0]:.1e}", f"{c.close:.3f}", f"{c.above[1]:.1e}"
            ratios = f"{c.default / c.theirs:.3f}", f"{c.close / c.theirs:.3f}"
            report.row(quantile, alpha, f"{c.theirs:.2f} ({c.solver})", *ours, *ratios)
    report.figure("quantile regression to scikit-learn's time, tol 1e-6", mean(c.close / c.theirs for c in found), 0.05)
    report.figure("its objective over scikit-learn's, relatively", max(c.above[1] for c in found), 1e-6)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with 1 when a claim does not hold")
    parser.add_argument("--full", action="store_true", help="more patience with bmrm; all of scikit-learn's solvers")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--sets", default=",".join(SETS), help=f"some of {', '.join(SETS)}")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    share_alike()
    if not sets.SHARED.exists():
        print("the data sets of ../shared/data are not here")
        return 1
    warnings.simplefilter("ignore")
    names, report = options.sets.split(","), Report()
    parts: dict[str, Callable[[], None]] = {
        "steps": lambda: steps(names, options.full, report),
        "svmperf": lambda: against_svmperf(names, report),
        "dual": lambda: against_dual(names, report),
        "products": lambda: products(report),
        "l1": lambda: one_norm(names, report),
        "regression": lambda: regression(report),
        "growth": lambda: growth(names, report),
        "quantile": lambda: quantiles(options.full, report),
    }
    for part in options.only.split(","):
        parts[part]()
    holds = report.finish()
    if options.markdown:
        options.markdown.write_text("\n".join(report.lines).lstrip() + "\n", encoding="utf-8")
    return 0 if holds or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
