"""Claims: training in memory takes at most these shares of the peers' time, to the same objective.

| against | on | time at most |
|---|---|---|
| LIBLINEAR -s 1 and -s 3 (dual) | every set; geometric mean | 0.6 each; 0.45 |
| LIBLINEAR -s 0, -s 2 and -s 7 | every set; geometric mean | 0.6 each; 0.4 |
| liblinear-multicore -m 2, same solvers | geometric mean | 0.7 |
| scikit-learn LogisticRegression (lbfgs) | geometric mean | 0.3 |
| Snap ML, two threads | geometric mean | 1.0 |
| LIBLINEAR one-vs-rest -s 1; Crammer–Singer -s 4 | MNIST, sector, 20 newsgroups | 0.4; 0.6 each |
| Cyanure, logistic and squared hinge | 20 newsgroups as the vectorizer gives it, covtype, a9a | 0.5 each |
| beeline on sorted rows | 20 newsgroups as the vectorizer gives it | 1.2 each |

C = 1, and no intercept (LIBLINEAR would regularize it), but a free one against scikit-learn. The claims hold for two
targets: the objective that the peer reaches at its default tolerance, and 1e-4 above the optimum, relatively. Both
sides run at the loosest tolerance of a ladder (two steps a decade) that reaches the target; J is evaluated for both by
NumPy alone. Runs alternate, and medians are compared. beeline's time is that of `train` on CSR rows in float64, with
all the copies that it makes; the peer's is that of its training function on its own structure, built before. beeline
has two threads, and so have the peers that can use them.

Against Cyanure the targets are 1e-3, 1e-5 and 1e-7 above the optimum, and both sides train by their estimators, on
SciPy matrices as they come.

Test accuracy at beeline's default tolerance is within 0.1 points of the exact solution's.

    python benchmarks/liblinear.py [--check] [--only dual,primal] [--sets a9a,w8a] [--repeat N] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support import peers, sets
from support.alike import share_alike
from support.contest import DEFAULT, Measure, Repeats, contest, target_name
from support.problems import Problem
from support.row_order import compare_orders

from beeline.exceptions import ParameterError


@dataclass(frozen=True)
class Claim:
    """Peers, sets, and the shares of their time that are claimed: for each pair, and in the geometric mean."""

    title: str
    peers: tuple[tuple[str, int | str], ...]
    sets: tuple[str, ...] = tuple(sets.BINARY)
    each: float = math.inf
    mean: float = math.inf
    intercept: str = "none"
    multiclass: str | None = None
    targets: tuple[float | None, ...] = (None, 1e-4)
    by_estimator: bool = False

    @property
    def target_names(self) -> list[str]:
        """What the targets are called."""
        return [target_name(target) for target in self.targets]


SETS = [*sets.BINARY, "sector", "20newsgroups-text"]
SOLVERS = (1, 3, 0, 2, 7)
LOSSES = ("logistic", "squared_hinge", "hinge")
CLAIMS = {
    "dual": Claim("LIBLINEAR -s 1, -s 3", (("liblinear", 1), ("liblinear", 3)), each=0.6, mean=0.45),
    "primal": Claim(
        "LIBLINEAR -s 0, -s 2, -s 7", (("liblinear", 0), ("liblinear", 2), ("liblinear", 7)), each=0.6, mean=0.4
    ),
    "multicore": Claim("liblinear-multicore -m 2", tuple(("multicore", s) for s in SOLVERS), mean=0.7),
    "sklearn": Claim("scikit-learn LogisticRegression, lbfgs", (("sklearn", ""),), mean=0.3, intercept="free"),
    "snapml": Claim("Snap ML, two threads", tuple(("snapml", loss) for loss in LOSSES), mean=1.0),
    "ovr": Claim("LIBLINEAR one-vs-rest -s 1", (("liblinear", 1),), sets.MULTICLASS, each=0.4, multiclass="ovr"),
    "crammer": Claim(
        "LIBLINEAR -s 4", (("liblinear", 4),), sets.MULTICLASS, each=0.6, multiclass="crammer_singer"
    ),
    "cyanure": Claim(
        "Cyanure, at most two threads", (("cyanure", "logistic"), ("cyanure", "squared_hinge")),
        ("20newsgroups-text", "a9a", "covtype"), each=0.5, targets=(1e-3, 1e-5, 1e-7), by_estimator=True
    ),
}  # fmt: skip
GROUPS = {"multiclass": ("ovr", "crammer")}
MAKERS = {
    "liblinear": peers.liblinear,
    "multicore": peers.multicore,
    "sklearn": lambda _: peers.sklearn_lbfgs(),
    "snapml": peers.snapml,
    "cyanure": peers.cyanure,
}


def measures(claim: Claim, names: list[str], repeats: Repeats) -> Iterator[Measure]:
    """All that a claim is about, set by set; printed as they come."""
    for name in names:
        rows = None
        for kind, setting in claim.peers:
            peer = MAKERS[kind](setting)
            problem = Problem(name, peer.loss, claim.intercept, claim.multiclass)
            problem.rows = rows = rows or problem.rows
            for measure in contest(problem, peer, repeats, claim.targets, by_estimator=claim.by_estimator):
                print("  " + line(measure, claim), flush=True)
                yield measure


def line(m: Measure, claim: Claim) -> str:
    fails = "  FAILS" if m.ratio > claim.each else ""
    note = f"  ({m.note})" if m.note else ""
    of_cores = m.ours.cores / m.theirs.cores
    return (
        f"{m.set:13} {m.peer:22} {m.target:9}{m.ours.wall:8.4f} s{m.theirs.wall:8.4f} s  ratio {m.ratio:6.3f}"
        f"  (of cores {of_cores:6.3f})  at {m.distance:7.1e}  tol {m.tols[0]:7.1e} {m.tols[1]:7.1e}"
        f"  {m.solver}{fails}{note}"
    )


def title(target: str) -> str:
    if target == DEFAULT:
        return "to the peer's objective at its default tolerance"
    return f"to {target} above the optimum"


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(r) for r in ratios))


def verdicts(claim: Claim, found: list[Measure]) -> tuple[bool, list[str]]:
    """Whether the claim holds, and a sentence a target."""
    holds, sentences = True, []
    for target in claim.target_names:
        ratios = {f"{m.set} {m.peer}": m.ratio for m in found if m.target == target}
        mean, worst = geometric_mean(list(ratios.values())), max(ratios, key=ratios.__getitem__)
        each = math.isinf(claim.each) or ratios[worst] <= claim.each
        fine = each and mean <= claim.mean
        holds &= fine
        limits = [f"mean at most {claim.mean}"] * math.isfinite(claim.mean)
        limits += [f"each at most {claim.each}"] * math.isfinite(claim.each)
        sentences.append(
            f"{'PASS' if fine else 'FAIL'}  {claim.title}, {title(target)}: geometric mean {mean:.3f}, worst "
            f"{ratios[worst]:.3f} ({worst}); claimed {', '.join(limits)}"
        )
    return holds, sentences


def markdown(claim: Claim, found: list[Measure]) -> str:
    """A table a claim: sets down, peers across, the ratio at each target."""
    names = list(dict.fromkeys(m.peer for m in found))
    ratios = {(m.set, m.peer, m.target): m for m in found}
    lines = [f"### {claim.title}", "", f"| set | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for name in dict.fromkeys(m.set for m in found):
        cells = [_cell([ratios[name, peer, target] for target in claim.target_names]) for peer in names]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    means = [
        " / ".join(
            f"{geometric_mean([m.ratio for m in found if (m.peer, m.target) == (p, t)]):.2f}"
            for t in claim.target_names
        )
        for p in names
    ]
    lines.append(f"| geometric mean | {' | '.join(means)} |")
    return "\n".join(lines) + "\n"


def _cell(pair: list[Measure]) -> str:
    ratios = " / ".join(f"{m.ratio:.2f}" for m in pair)
    return f"{ratios} ({pair[-1].ours.wall:.3g} s against {pair[-1].theirs.wall:.3g} s)"


def accuracies(names: list[str]) -> bool:
    """Print test accuracy at the default tolerance beside the exact solution's; whether all are within 0.1 points."""
    holds = True
    print("test accuracy at beeline's default tolerance, and of the exact solution")
    for name in names:
        if name not in sets.BINARY:
            continue
        for loss in LOSSES:
            problem = Problem(name, loss)
            ours, exact = problem.accuracy(problem.beeline(1e-4)), problem.accuracy(problem.best)
            if ours is None:
                break
            fine = abs(ours - exact) <= 0.001
            holds &= fine
            print(f"  {name:13} {loss:14} {100 * ours:6.2f} % {100 * exact:6.2f} %{'' if fine else '  FAILS'}")
    return holds


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when a claim does not hold")
    parser.add_argument("--only", help=f"some of {', '.join([*CLAIMS, *GROUPS, 'unsorted', 'accuracy'])}")
    parser.add_argument("--sets", help=f"some of {', '.join(SETS)}")
    parser.add_argument("--repeat", type=int, help="so many runs of each, however long they take")
    parser.add_argument("--quick", action="store_true", help="one run of each pair that takes more than half a second")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    share_alike()
    if not sets.SHARED.exists():
        print("the data sets of ../shared/data are not here")
        return 1
    wanted = options.only.split(",") if options.only else [*CLAIMS, "unsorted", "accuracy"]
    wanted = [part for name in wanted for part in GROUPS.get(name, (name,))]
    chosen = options.sets.split(",") if options.sets else SETS
    repeats = Repeats(0.5, 1, 5) if options.quick else Repeats()
    if options.repeat:
        repeats = Repeats(0.0, options.repeat, options.repeat, math.inf)
    holds, sentences, tables = True, [], []
    for name in wanted:
        if name == "accuracy":
            holds &= accuracies(chosen)
            continue
        if name == "unsorted":
            fine, said, table = compare_orders(repeats)
            holds, sentences, tables = holds and fine, sentences + said, [*tables, table]
            continue
        claim = CLAIMS[name]
        print(f"{claim.title} (ours, theirs)", flush=True)
        try:
            found = list(measures(claim, [s for s in claim.sets if s in chosen], repeats))
        except ParameterError as error:  # a problem that no solver takes
            holds, found = False, []
            sentences.append(f"FAIL  {claim.title}: {error}")
        if found:
            fine, said = verdicts(claim, found)
            holds, sentences = holds and fine, sentences + said
            tables.append(markdown(claim, found))
    print("\n".join(sentences))
    if options.markdown:
        options.markdown.write_text("\n".join(tables), encoding="utf-8")
    return 0 if holds or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
