"""How solvers get to the optimum.

One support vector machine, four solvers. Each line is what is *proven* at that moment: how far the model is at most
above the optimum. All of them end at the same tolerance, `tol=1e-6`, so that they can be compared by what it took.
"""

import sys
from pathlib import Path

import beeline

ROWS = Path(__file__).parents[1] / "data" / "covtype-train.csv.gz"


def main(folder: Path) -> None:
    """Train by each solver, and draw how far it was from the optimum, by steps and by seconds."""
    rows = beeline.read(ROWS, label="Cover_Type", scale="minmax")
    spruce = rows.labels == 1  # against all other trees

    runs = {}
    for solver in ("newton", "dual_cd", "lbfgs", "bundle"):
        model = beeline.LinearSVC(C=0.1, solver=solver, tol=1e-6).fit(rows.X, spruce)
        print(f"{solver:8} {model.report_.sentence}")
        runs[solver] = model
    beeline.plot_convergence(runs).savefig(folder / "convergence.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
