"""Claims: a search for C takes at most these times of one training, and of scikit-learn's search.

| against | on | time at most |
|---|---|---|
| one training at the C found | every set below, by the logistic loss and the squared hinge | 12 |
| LogisticRegressionCV(cv=5), all defaults | iris, digits | 1.0 |
| LogisticRegressionCV(cv=5), its fastest solver | 10,000 rows of MNIST, 20 newsgroups | 0.5 |

A search is `fit` with C="auto", all else as it comes: 5 folds, some 15 to 25 values of C, and the last training on all
rows. One training is `fit` with the C found, from the beginning. Both have two threads, and so has scikit-learn (its
solver, and `n_jobs=2` for its folds where that is faster). scikit-learn tries 10 values of C; its solvers end where
their own tolerance or their limit of 100 iterations says so, which is said beside the time.

    python benchmarks/search.py [--check] [--quick] [--only training,sklearn] [--sets a9a,iris] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sklearn.datasets
from sklearn.preprocessing import StandardScaler
from support import sets
from support.alike import share_alike
from support.problems import Seconds, Stopwatch

from beeline import LinearSVC, LogisticRegression

MOST_OF_ONE = 12.0
MOST_OF_SKLEARN = {"iris": 1.0, "digits": 1.0, "mnist 10k": 0.5, "20newsgroups, 20 classes": 0.5}
# Which of lbfgs, newton-cg, newton-cholesky, saga and liblinear, with n_jobs of 1 or 2, is the fastest for it.
FASTEST = {"mnist 10k": ("lbfgs", 2), "20newsgroups, 20 classes": ("newton-cg", 2)}
BUNDLED = {
    "iris": sklearn.datasets.load_iris,
    "breast cancer": sklearn.datasets.load_breast_cancer,
    "digits": sklearn.datasets.load_digits,
}
BINARY = ("a9a", "w8a", "ijcnn1", "madelon", "20newsgroups", "covtype")
SETS = (*BUNDLED, *BINARY, "mnist 10k", "20newsgroups, 20 classes")
BUDGET = 20.0  # seconds for all runs of one side


def load(name: str):
    """(rows, labels)."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        return StandardScaler().fit_transform(X), y
    if name == "mnist 10k":
        rows = sets.multiclass("mnist")
        return rows.matrix()[:10_000].toarray(), rows.labels[:10_000]
    rows = sets.multiclass("20newsgroups") if name.endswith("classes") else sets.binary(name)
    order = np.random.default_rng(0).permutation(len(rows.labels))  # scikit-learn's folds are runs of rows
    X, y = rows.matrix()[order], rows.labels[order]
    return (X.toarray() if name == "madelon" else X), y


def median_of(run: Callable[[], object], quick: bool) -> tuple[Seconds, object]:
    """The median over runs within the budget, five at most; and what the last one gave."""
    taken: list[Seconds] = []
    while not taken or (not quick and len(taken) < 5 and sum(t.wall for t in taken) < BUDGET):
        with Stopwatch() as watch:
            found = run()
        taken.append(watch.seconds)
    return Seconds(*map(statistics.median, zip(*taken, strict=True))), found


def against_one_training(name: str, quick: bool) -> list[list[str]]:
    """A row of the table for each loss."""
    X, y = load(name)
    lines = []
    for kind in (LogisticRegression, LinearSVC):
        search, model = median_of(lambda kind=kind: kind(C="auto").fit(X, y), quick)
        one, _ = median_of(lambda kind=kind, C=model.C_: kind(C=C).fit(X, y), quick)
        s = model.selection_
        cells = [name, model.model_.loss, f"{search.wall:.3g}", f"{one.wall:.3g}", f"{search.wall / one.wall:.1f}"]
        lines.append([*cells, f"{len(s.curve)}", f"{s.best_C:.3g}", f"{s.metric} {s.best_score:.4f}", s.end.value])
        print("  " + "  ".join(lines[-1]), flush=True)
    return lines


def against_sklearn(name: str, quick: bool) -> list[str]:
    from sklearn.linear_model import LogisticRegressionCV

    X, y = load(name)
    solver, jobs = FASTEST.get(name, ("lbfgs", None))

    def run() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return LogisticRegressionCV(cv=5, solver=solver, n_jobs=jobs).fit(X, y)

    ours, model = median_of(lambda: LogisticRegression(C="auto").fit(X, y), quick)
    theirs, peer = median_of(run, quick)
    ended = "met its limit of iterations" if np.max(peer.n_iter_) >= peer.max_iter else "converged"
    cells = [name, f"{solver}, n_jobs={jobs}, {ended}", f"{theirs.wall:.3g}", f"{ours.wall:.3g}"]
    cells += [f"{ours.wall / theirs.wall:.2f}", f"{MOST_OF_SKLEARN[name]:g}", model.selection_.sentence]
    print("  " + "  ".join(cells), flush=True)
    return cells


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when a claim does not hold")
    parser.add_argument("--quick", action="store_true", help="one run of each")
    parser.add_argument("--only", default="training,sklearn", help="training, sklearn")
    parser.add_argument("--sets", help=f"some of {'; '.join(SETS)} (between semicolons)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    share_alike()
    chosen = options.sets.split(";") if options.sets else list(SETS)
    if not sets.SHARED.exists():
        print("the data sets of ../shared/data are not here; only those of scikit-learn are measured")
        chosen = [name for name in chosen if name in BUNDLED]
    tables, claims = [], []
    if "training" in options.only:
        print("a search against one training at the C found")
        rows = [line for name in chosen for line in against_one_training(name, options.quick)]
        worst = max(rows, key=lambda cells: float(cells[4]))
        holds = float(worst[4]) <= MOST_OF_ONE
        claims.append((holds, f"a search takes at most {MOST_OF_ONE:g} trainings: {worst[4]} ({worst[0]}, {worst[1]})"))
        head = ["set", "loss", "search, 2 threads, s", "one training, 2 threads, s", "ratio", "values", "C found"]
        tables.append(table([*head, "score", "it ended because"], rows))
    if "sklearn" in options.only:
        print("a search against LogisticRegressionCV(cv=5)")
        rows = [against_sklearn(name, options.quick) for name in chosen if name in MOST_OF_SKLEARN]
        claims += [
            (float(cells[4]) <= float(cells[5]), f"{cells[0]}: {cells[4]}, at most {cells[5]}") for cells in rows
        ]
        head = ["set", "scikit-learn's solver", "scikit-learn, 2 threads, s", "beeline, 2 threads, s", "ratio", "claim"]
        tables.append(table([*head, "what beeline found"], rows))
    print("\n" + "\n".join(tables))
    print("\n".join(f"{'PASS' if holds else 'FAIL'}  {said}" for holds, said in claims))
    if options.markdown:
        options.markdown.write_text("\n".join(tables), encoding="utf-8")
    return int(options.check and not all(holds for holds, _ in claims))


if __name__ == "__main__":
    sys.exit(main())
