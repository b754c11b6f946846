"""Weights along a path.

The lasso sets weights to exactly zero, more of them the larger alpha is. From right to left: which measurements of
442 patients come in first, when their disease after a year is to be foretold.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes

import beeline
from beeline.exceptions import ModelWarning


def main(folder: Path) -> None:
    """Train a lasso for each of forty values of alpha, each from the last one, and draw its weights."""
    patients = load_diabetes(scaled=False)
    X = (patients.data - patients.data.mean(axis=0)) / patients.data.std(axis=0)
    alphas = np.geomspace(40, 0.04, 40)
    lasso = beeline.Lasso(warm_start=True)
    warnings.simplefilter("ignore", ModelWarning)  # the first models know next to nothing: that is what is shown
    path = np.array([lasso.set_params(alpha=alpha).fit(X, patients.target).coef_.copy() for alpha in alphas])
    first = [name for _, name in sorted(zip((path != 0).argmax(axis=0), patients.feature_names, strict=True))]
    print(f"in this order: {', '.join(first)}")

    figure = Figure(figsize=(7.4, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.semilogx(alphas, path, label=patients.feature_names)
    axes.set(xlabel="alpha", ylabel="weight")
    figure.legend(loc="outside right center", frameon=False)
    figure.savefig(folder / "lasso_path.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
