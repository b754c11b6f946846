"""Claim: a fixed accuracy is reached in fewer steps of stochastic training when there are more rows, up to a point.

Figures 1 to 4 of Chen, Chen & Yang (2011), "Characterizing inverse time dependency in multi-class learning", in our
terms: MCID as it was published (`sgd` with variant="mcid", one row a step), for the softmax, the hinge of Crammer and
Singer and the perceptron, beside what `sgd` does when nothing is said. RCV1 and ODP are not at hand; the sets are
MNIST with random deformations, covtype with 7 classes, Reuters-21578 (documents of one topic) and sector.

1. Seconds (and steps) to fixed test accuracies against the number of rows; mean of 10 runs with other random orders.
2. Test accuracy against the number of rows, after fixed numbers of steps.
3. Test accuracy against steps: all classes in one problem against one problem a class, K-Pegasos and K-binary-LR.
4. Seconds to accuracies beside solvers that take whole passes: LIBLINEAR -s 4 with its tolerances, and SVMmulticlass
   where the variable SVM_MULTICLASS names its program; both minimise what the multi-class SVM does.

Checked: on every set `sgd` by itself, with the hinge, needs fewer steps with all rows, to the highest of the
accuracies, than with the fewest, which may never get there; and at most half as many again as with any number of rows.
Of MCID nothing is claimed: its last weights go up and down. λ is not given in the paper; it was chosen of 1e-3, 1e-4,
1e-5 and 1e-6 for each set by the test accuracy of the multi-class SVM with all rows, which flatters the published
method. Seconds are those of the processor, while rows are learned from.

    python benchmarks/inverse_time.py [--check] [--only mnist,covtype,reuters,sector] [--runs 10] [--markdown FILE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from support import deformed, enlarged, inverse_figures, sets
from support.alike import share_alike
from support.contenders import Classes
from support.inverse_figures import Curves
from support.walks import RULES, Problem, looks, walk

PUBLISHED = ("multi-class LR", "multi-class SVM", "multi-class perceptron")
DEFAULTS = ("default, softmax", "default, hinge")
BINARY = ("K-binary-LR", "K-Pegasos")
CHECKED = ("default, hinge",)
DIGITS, TESTS = 1_000_000, 10_000


def digits() -> Problem:
    """Deformed digits; their test rows are made of MNIST's own test digits."""
    X, y = deformed.rows(DIGITS)
    ((X_test, y_test),) = enlarged.batches("mnist", TESTS, "test")
    sizes = (5_000, 15_000, 60_000, 200_000, DIGITS)
    return Problem("mnist", X, y, X_test, y_test, sizes, 1e-3, (74.0, 78.0, 82.0), (1_000, 5_000, 25_000), 100_000)


def of_set(name: str, sizes: tuple[int, ...], strength: float, targets: tuple[float, ...], most: int) -> Problem:
    """One of the sets as they are."""
    classes = Classes(name)
    fixed = (most // 100, most // 20, most // 4)
    sizes = (*(n for n in sizes if n < len(classes.y)), len(classes.y))
    rest = classes.X_test, classes.y_test, sizes, strength, targets, fixed, most
    return Problem(name, classes.X, classes.y, *rest)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "mnist": digits,
    "covtype": lambda: of_set("covtype", (1_000, 5_000, 20_000, 100_000), 1e-3, (66.0, 69.0, 71.0), 100_000),
    "reuters": lambda: of_set("reuters", (800, 1_600, 3_200), 1e-4, (85.0, 90.0, 93.0), 50_000),
    "sector": lambda: of_set("sector", (1_600, 3_200), 1e-4, (75.0, 85.0, 90.0), 30_000),
}


def measure(problem: Problem, runs: int) -> Curves:
    """All walks of a set; runs with the same order for everybody, in turn."""
    points = sorted({*looks(problem.most), *problem.fixed})
    curves = Curves(problem)
    for n in problem.sizes:
        for seed in range(runs):
            for learner in (*PUBLISHED, *DEFAULTS, *(BINARY if n == problem.sizes[-1] else ())):
                compared = n == problem.sizes[-1] and learner not in DEFAULTS  # in figure 3, to the end
                until = (np.inf, problem.most) if compared else (max(problem.targets), max(problem.fixed))
                seen = walk(problem, learner, n, seed, points, until)
                curves.add(learner, n, seen)
        for learner in RULES:
            print(f"   {curves.in_words(learner, n)}", flush=True)
    return curves


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when the claim does not hold")
    parser.add_argument("--only", default=",".join(PROBLEMS), help="some of the sets, separated by commas")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--markdown", type=Path, help="write the tables here")
    parser.add_argument("--figures", type=Path, default=inverse_figures.FOLDER, help="where the figures go")
    arguments = parser.parse_args()
    if not sets.SHARED.exists():
        print("the data sets of ../shared/data are not here")
        return 1
    share_alike()
    measured, holds = [], True
    for name in arguments.only.split(","):
        print(name, flush=True)
        curves = measure(PROBLEMS[name](), arguments.runs)
        curves.compare_with_passes()
        measured.append(curves)
        for learner in CHECKED:
            fewer = curves.declines(learner)
            holds &= fewer
            print(f"   {learner}: {'more rows, fewer steps' if fewer else 'FAILS'}", flush=True)
    inverse_figures.draw(measured, arguments.figures)
    if arguments.markdown is not None:
        arguments.markdown.write_text(inverse_figures.tables(measured), encoding="utf-8")
    print("holds" if holds else "FAILS")
    return int(arguments.check and not holds)


if __name__ == "__main__":
    sys.exit(main())
