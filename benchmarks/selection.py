"""Claims: choosing C by cross-validation takes at most these shares of the peers' time.

| against | on | time at most |
|---|---|---|
| LIBLINEAR `-C`, -s 0 and -s 2 | a9a, w8a, ijcnn1, madelon, 20 newsgroups, covtype | 0.6 each; geometric mean 0.33 |
| our own cold grid over the same C values | the same; geometric mean | 0.4 |
| scikit-learn's LogisticRegressionCV(Cs=10, cv=5) | a9a, ijcnn1, 20 newsgroups | 0.2 each |

Against LIBLINEAR both search on the same five folds (its own), by accuracy and without an intercept, by the same rule,
that of the warm-start paper (`stop="paper"`), and both run to their own end. What the default, `stop="auto"`, takes on
these folds is shown beside it. The C that beeline finds must have a CV accuracy within 0.1 points of LIBLINEAR's best:
both as LIBLINEAR reports them. What beeline finds on its own folds, which are stratified, is shown as well. LIBLINEAR
gets 60 seconds (`--full`: as long as it likes); where that is not enough, the ratio is an upper bound, and the accuracy
is compared with the best until then. beeline's time is that of `select_C` on a SciPy matrix (madelon: a NumPy array),
with all the copies that it makes; LIBLINEAR's is that of find_parameters on its own structure, built before. beeline
has two threads; LIBLINEAR has one.

scikit-learn runs with the solver that is fastest for it and n_jobs=2 (`--full` tries all), to convergence; beeline's is
the time of `LogisticRegression(C="auto")`, from its first look at the data to the model trained on all rows.

`--plots` repeats the experiments of the warm-start paper (Figures 1 to 3, Table 2) and draws them into build/bench.

    python benchmarks/selection.py [--check] [--full] [--only liblinear,sklearn] [--sets a9a,w8a] [--markdown FILE]
    python benchmarks/selection.py --plots
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from support import sets
from support.alike import share_alike
from support.liblinear_search import FOLDS, Found, LiblinearSearch, their_folds
from support.problems import Seconds, Stopwatch

from beeline import LogisticRegression, select_C
from beeline.selection import Selection

SETS = ("a9a", "w8a", "ijcnn1", "madelon", "20newsgroups", "covtype")
LOSSES = {0: "logistic", 2: "squared_hinge"}
MOST, MOST_MEAN, MOST_OF_COLD = 0.6, 0.33, 0.4
CLOSE = 0.001  # CV accuracy that may be missing
PATIENCE = 60.0  # with LIBLINEAR, in seconds

SKLEARN_SETS = ("a9a", "ijcnn1", "20newsgroups")
SKLEARN_SOLVERS = ("lbfgs", "newton-cholesky", "newton-cg", "liblinear")
SKLEARN_FASTEST = {"a9a": "newton-cholesky", "ijcnn1": "newton-cholesky", "20newsgroups": "newton-cg"}
MOST_OF_SKLEARN = 0.2


@dataclass(frozen=True)
class Budget:
    """How often each is run: until it has taken so many seconds, but at most so often."""

    seconds: float = 5.0
    most: int = 5


@dataclass(frozen=True, eq=False)
class Search:
    """One set and loss.

    Attributes
    ----------
    set, solver
        What was searched; the solver by LIBLINEAR's number.
    theirs, ours, own
        What LIBLINEAR found, beeline on the same folds, and beeline on its own.
    times
        Median seconds of `LIBLINEAR`, `beeline`, beeline's `cold` grid, and beeline with its `auto` rule.
    """

    set: str
    solver: int
    theirs: Found
    ours: Selection
    own: Selection
    times: dict[str, Seconds]

    @property
    def ratio(self) -> float:
        """Our time against LIBLINEAR's."""
        return self.times["beeline"].wall / self.times["LIBLINEAR"].wall

    @property
    def of_cold(self) -> float:
        """Our time against that of our cold grid."""
        return self.times["beeline"].wall / self.times["cold"].wall

    @property
    def rate(self) -> float:
        """The CV accuracy at our C, by LIBLINEAR; by beeline where LIBLINEAR did not come to that C."""
        return self.theirs.rates.get(self.ours.best_C, self.ours.best_score)

    @property
    def missing(self) -> float:
        """How much CV accuracy our C loses against LIBLINEAR's best."""
        return self.theirs.best_rate - self.rate


def interleaved(runs: dict[str, Callable[[], Seconds]], budget: Budget) -> dict[str, Seconds]:
    """Median seconds of all, taken in turn; what has used up its budget is not run again."""
    taken: dict[str, list[Seconds]] = {name: [] for name in runs}
    for _ in range(budget.most):
        for name, run in runs.items():
            if sum(seconds.wall for seconds in taken[name]) < budget.seconds:
                time.sleep(0.005)  # threads that wait for work by spinning come to rest
                taken[name].append(run())
    return {name: Seconds(*map(statistics.median, zip(*times, strict=True))) for name, times in taken.items()}


def rows_of(name: str):
    """(rows as beeline and scikit-learn get them, labels −1 and +1, what LIBLINEAR gets)."""
    rows = sets.binary(name)
    X = rows.matrix()
    return (X.toarray() if name == "madelon" else X), rows.labels, rows.arrays()


def timed_search(X, y, loss: str, keep: list[Selection], **options) -> Seconds:
    with Stopwatch() as watch:
        keep.append(select_C(X, loss, y, metric="accuracy", intercept="none", **options))
    return watch.seconds


def against_liblinear(name: str, budget: Budget, patience: float) -> list[Search]:
    """Both losses on one set."""
    X, y, arrays = rows_of(name)
    folds, peer = their_folds(len(y)), LiblinearSearch(arrays)
    found = []
    for solver, loss in LOSSES.items():
        ours, cold, theirs = [], [], []
        own = select_C(X, loss, y, metric="accuracy", intercept="none", folds=FOLDS)

        def run_liblinear(solver: int = solver, keep: list[Found] = theirs) -> Seconds:
            keep.append(peer.run(solver, patience))
            return Seconds(keep[-1].wall, keep[-1].cores)

        def run_auto(loss: str = loss) -> Seconds:
            return timed_search(X, y, loss, [], folds=folds)

        def run_cold(loss: str = loss, keep: list[Selection] = cold, of: list[Selection] = ours) -> Seconds:
            grid = {"C_min": of[0].curve[0].C, "C_max": of[0].curve[-1].C, "warm": False, "all_the_way": True}
            grid |= {"stop": "paper"}
            return timed_search(X, y, loss, keep, folds=folds, **grid)

        def run_beeline(loss: str = loss, keep: list[Selection] = ours) -> Seconds:
            return timed_search(X, y, loss, keep, folds=folds, stop="paper")

        runs = {"beeline": run_beeline, "LIBLINEAR": run_liblinear, "cold": run_cold, "auto": run_auto}
        times = interleaved(runs, budget)
        found.append(Search(name, solver, theirs[0], ours[0], own, times))
        print(line(found[-1]), flush=True)
    peer.close()
    return found


def line(s: Search) -> str:
    ours, theirs, cold = (s.times[key] for key in ("beeline", "LIBLINEAR", "cold"))
    own = f"2^{math.log2(s.own.best_C):.0f} {100 * s.own.best_score:.2f} %"
    return (
        f"  {s.set:13} -s {s.solver}{ours.wall:8.3f} s{theirs.wall:8.2f} s  ratio {_bound(s)}{s.ratio:.3f} (of cores "
        f"{ours.cores / theirs.cores:.3f})  cold{cold.wall:8.3f} s  ratio {s.of_cold:.3f} (of cores "
        f"{ours.cores / cold.cores:.3f})  C {_C_of(s)}  accuracy {_rate_of(s)}  own folds {own}"
        f"{'  FAILS' if s.ratio > MOST or s.missing > CLOSE else ''}"
    )


def _bound(s: Search) -> str:
    return "" if s.theirs.whole else "≤ "


def _C_of(s: Search) -> str:  # noqa: N802
    return f"2^{math.log2(s.ours.best_C):.0f} against 2^{math.log2(s.theirs.best_C):.0f}"


def _rate_of(s: Search) -> str:
    return f"{100 * s.rate:.2f} % against {100 * s.theirs.best_rate:.2f} %"


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios)))


def liblinear_claims(found: list[Search]) -> list[tuple[bool, str]]:
    """What is claimed of all searches, and whether it holds."""
    mean, worst = geometric_mean([s.ratio for s in found]), max(found, key=lambda s: s.ratio)
    least, cold = max(found, key=lambda s: s.missing), geometric_mean([s.of_cold for s in found])
    return [
        (mean <= MOST_MEAN, f"LIBLINEAR -C: geometric mean {mean:.3f}, at most {MOST_MEAN} is claimed"),
        (worst.ratio <= MOST, f"LIBLINEAR -C: worst {worst.ratio:.3f} ({_name(worst)}), at most {MOST} is claimed"),
        (
            least.missing <= CLOSE,
            f"LIBLINEAR -C: at our C at most {100 * least.missing:.3f} points of CV accuracy are missing "
            f"({_name(least)}); {100 * CLOSE:g} are allowed",
        ),
        (cold <= MOST_OF_COLD, f"our cold grid: geometric mean {cold:.3f}, at most {MOST_OF_COLD} is claimed"),
    ]


def _name(s: Search) -> str:
    return f"{s.set} -s {s.solver}"


def liblinear_table(found: list[Search]) -> str:
    head = ["set", "", "LIBLINEAR, 1 thread, s", "beeline, 2 threads, s", "ratio", "C, ours / theirs"]
    head += ["CV accuracy, ours / theirs", "cold grid, s", "ratio", 'beeline, `stop="auto"`, s']
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for s in found:
        seconds = {key: f"{value.wall:.3g}" for key, value in s.times.items()}
        theirs = seconds["LIBLINEAR"] if s.theirs.whole else f"> {seconds['LIBLINEAR']}"
        cells = [s.set, f"-s {s.solver}", theirs, seconds["beeline"], f"{_bound(s)}{s.ratio:.2f}"]
        cells += [_C_of(s).replace("against", "/"), _rate_of(s).replace("against", "/")]
        lines.append(f"| {' | '.join([*cells, seconds['cold'], f'{s.of_cold:.2f}', seconds['auto']])} |")
    means = [geometric_mean([s.ratio for s in found]), geometric_mean([s.of_cold for s in found])]
    lines.append(f"| geometric mean | | | | {means[0]:.2f} | | | | {means[1]:.2f} | |")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Fitted:
    """A model with its C: median seconds, CV accuracy, test accuracy."""

    name: str
    seconds: Seconds
    C: float
    cv_accuracy: float
    test_accuracy: float


def fit_sklearn(solver: str, jobs: int, X, y):
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegressionCV

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ConvergenceWarning)
        settings = {"solver": solver, "n_jobs": jobs, "scoring": "accuracy", "max_iter": 10_000}
        return LogisticRegressionCV(Cs=10, cv=5, **settings).fit(X, y)


def fit_beeline(X, y) -> LogisticRegression:
    return LogisticRegression(C="auto", scoring="accuracy").fit(X, y)


def best_of(model) -> tuple[float, float]:
    """(C, CV accuracy) of a fitted model."""
    if isinstance(model, LogisticRegression):
        return model.selection_.best_C, model.selection_.best_score
    scores = model.scores_
    scores = next(iter(scores.values())) if isinstance(scores, dict) else scores
    return float(np.ravel(model.C_)[0]), float(np.reshape(scores, (FOLDS, -1)).mean(axis=0).max())


def against_sklearn(name: str, budget: Budget, full: bool) -> list[Fitted]:
    """beeline first, then scikit-learn with one solver or all.

    The rows are shuffled, for both: scikit-learn's folds are runs of rows, and 20 newsgroups is in the order of groups.
    """
    X, y, _ = rows_of(name)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    test = sets.binary(name, "test")
    settings = list(product(SKLEARN_SOLVERS, (1, 2))) if full else [(SKLEARN_FASTEST[name], 2)]
    if X.shape[1] > 1000:  # a Hessian of all features
        settings = [(solver, jobs) for solver, jobs in settings if solver != "newton-cholesky"]
    fits: dict[str, Callable[[], object]] = {"beeline": lambda: fit_beeline(X, y)}
    fits |= {f"{solver}, n_jobs={jobs}": lambda s=(solver, jobs): fit_sklearn(*s, X, y) for solver, jobs in settings}
    models: dict[str, object] = {}

    def run(key: str) -> Seconds:
        with Stopwatch() as watch:
            models[key] = fits[key]()
        return watch.seconds

    times = interleaved({key: lambda key=key: run(key) for key in fits}, budget)
    fitted = []
    for key, model in models.items():
        accuracy = float(np.mean(model.predict(test.matrix()) == test.labels))
        fitted.append(Fitted(key, times[key], *best_of(model), accuracy))
        f = fitted[-1]
        print(
            f"  {name:13} {key:30}{f.seconds.wall:8.3f} s  C {f.C:<10.4g}"
            f"CV accuracy {100 * f.cv_accuracy:.2f} %  test accuracy {100 * f.test_accuracy:.2f} %",
            flush=True,
        )
    return fitted


def fastest_peer(fitted: list[Fitted]) -> Fitted:
    return min(fitted[1:], key=lambda f: f.seconds.wall)


def sklearn_claims(found: dict[str, list[Fitted]]) -> list[tuple[bool, str]]:
    claims = []
    for name, fitted in found.items():
        peer = fastest_peer(fitted)
        ratio = fitted[0].seconds.wall / peer.seconds.wall
        said = f"LogisticRegressionCV on {name}: {ratio:.3f} ({peer.name}), at most {MOST_OF_SKLEARN} is claimed"
        claims.append((ratio <= MOST_OF_SKLEARN, said))
    return claims


def sklearn_table(found: dict[str, list[Fitted]]) -> str:
    head = ["set", "scikit-learn, 2 threads, s", "beeline, 2 threads, s", "ratio"]
    head += ["CV accuracy, ours / theirs", "test accuracy, ours / theirs"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, fitted in found.items():
        ours, peer = fitted[0], fastest_peer(fitted)
        cells = [name, f"{peer.seconds.wall:.3g} ({peer.name})", f"{ours.seconds.wall:.3g}"]
        cells += [f"{ours.seconds.wall / peer.seconds.wall:.2f}"]
        cells += [f"{100 * ours.cv_accuracy:.2f} % / {100 * peer.cv_accuracy:.2f} %"]
        cells += [f"{100 * ours.test_accuracy:.2f} % / {100 * peer.test_accuracy:.2f} %"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when a claim does not hold")
    parser.add_argument("--full", action="store_true", help="let LIBLINEAR end by itself; try all of scikit-learn's")
    parser.add_argument("--quick", action="store_true", help="one run of each")
    parser.add_argument("--only", default="liblinear,sklearn", help="liblinear, sklearn")
    parser.add_argument("--sets", default=",".join(SETS), help=f"some of {', '.join(SETS)}")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there")
    parser.add_argument("--plots", action="store_true", help="the warm-start paper's experiments instead")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    share_alike()
    if not sets.SHARED.exists():
        print("the data sets of ../shared/data are not here")
        return 1
    chosen = options.sets.split(",")
    if options.plots:
        from support.warm_paths import repeat_paper

        repeat_paper([name for name in ("ijcnn1", "madelon") if name in chosen])
        return 0
    budget = Budget(most=1) if options.quick else Budget()
    claims, tables = [], []
    if "liblinear" in options.only:
        print("LIBLINEAR -C and our own cold grid (ours, theirs)", flush=True)
        patience = 1e6 if options.full else PATIENCE
        searches = [s for name in SETS if name in chosen for s in against_liblinear(name, budget, patience)]
        claims += liblinear_claims(searches)
        tables.append(liblinear_table(searches))
    if "sklearn" in options.only:
        print("scikit-learn's LogisticRegressionCV(Cs=10, cv=5)", flush=True)
        fits = {name: against_sklearn(name, budget, options.full) for name in SKLEARN_SETS if name in chosen}
        claims += sklearn_claims(fits)
        tables.append(sklearn_table(fits))
    print("\n" + "\n".join(tables))
    print("\n".join(f"{'PASS' if holds else 'FAIL'}  {said}" for holds, said in claims))
    if options.markdown:
        options.markdown.write_text("\n".join(tables), encoding="utf-8")
    return 0 if all(holds for holds, _ in claims) or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
