"""Real data of all kinds, small parts of it, as people have them: raw or scaled, dense or sparse."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

Find = Callable[[str], Path]
"""Gives the folder of a set by its name."""
Load = Callable[[Find], tuple]

MOST_ROWS = 2500


def bundled(name: str, scaled: bool = True) -> Load:
    """A set that comes with scikit-learn."""

    def load(_: Find) -> tuple:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return _scaled(X, scaled), y

    return load


def libsvm(folder: str, name: str, n_features: int) -> Load:
    """Sparse rows."""

    def load(shared: Find) -> tuple:
        X, y = datasets.load_svmlight_file(str(shared(folder) / name), n_features=n_features)
        return _some(X, y)

    return load


def torgo(name: str, scaled: bool = True) -> Load:
    """A regression of numbers; columns that are no numbers are left out."""

    def load(shared: Find) -> tuple:
        with gzip.open(shared("torgo") / f"{name}.arff.gz", "rt") as file:
            lines = [line.strip() for line in file]
        start = next(i for i, line in enumerate(lines) if line.lower() == "@data") + 1
        cells = [line.replace("\t", ",").split(",") for line in lines[start:] if line]
        numbers = [j for j, cell in enumerate(cells[0]) if _is_number(cell)]
        table = np.array([[float(row[j]) for j in numbers] for row in cells])
        X, y = _some(table[:, :-1], table[:, -1])
        return _scaled(X, scaled), y

    return load


def wine_quality(shared: Find) -> tuple:
    """Marks from 3 to 9, by numbers that were not scaled."""
    table = np.loadtxt(shared("wine") / "winequality-red.csv", delimiter=",")
    return table[:, :-1], table[:, -1]


def madelon(shared: Find) -> tuple:
    """Features without a meaning, most of them; two classes."""
    X = np.loadtxt(gzip.open(shared("madelon") / "madelon_train.data.gz"))
    return X[:1000], np.loadtxt(gzip.open(shared("madelon") / "madelon_train.labels.gz"))[:1000]


def covtype(shared: Find) -> tuple:
    """Seven classes of forest, by columns of very different scales."""
    with gzip.open(shared("covtype") / "covtype.csv.gz", "rt") as file:
        next(file)
        rows = [next(file) for _ in range(60_000)][:: 60_000 // MOST_ROWS]
    table = np.array([[float(cell) for cell in row.split(",")] for row in rows])
    return table[:, :-1], table[:, -1]


def sentences(shared: Find) -> tuple:
    """Ten domains of short sentences, as a vectorizer gives them."""
    with gzip.open(shared("clinc150") / "data_full.json.gz", "rt") as file:
        rows = json.load(file)["train"]
    domain_of = {
        intent.replace(" ", "_"): domain
        for domain, intents in json.loads((shared("clinc150") / "domains.json").read_text()).items()
        for intent in intents
    }
    some = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS]]
    words = TfidfVectorizer().fit_transform([text for text, _ in some])
    return words, np.array([domain_of[intent.replace(" ", "_")] for _, intent in some])


def _some(X, y) -> tuple:
    rows = np.random.default_rng(0).permutation(X.shape[0])[:MOST_ROWS]
    return X[rows], y[rows]


def _scaled(X, scaled: bool):
    return StandardScaler().fit_transform(X) if scaled else X


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


BUNDLED = {
    "breast cancer, logistic": (bundled("breast_cancer"), "logistic"),
    "breast cancer, raw, logistic": (bundled("breast_cancer", scaled=False), "logistic"),
    "breast cancer, hinge": (bundled("breast_cancer"), "hinge"),
    "iris, logistic": (bundled("iris", scaled=False), "logistic"),
    "wine, raw, logistic": (bundled("wine", scaled=False), "logistic"),
    "digits, squared_hinge": (bundled("digits", scaled=False), "squared_hinge"),
    "diabetes, squared": (bundled("diabetes", scaled=False), "squared"),
    "diabetes, huber": (bundled("diabetes"), "huber"),
    "diabetes, absolute": (bundled("diabetes"), "absolute"),
    "diabetes, poisson": (bundled("diabetes"), "poisson"),
}
SHARED = {
    "a9a, logistic": (libsvm("a9a", "a9a.gz", 123), "logistic"),
    "w8a, hinge": (libsvm("w8a", "w8a.gz", 300), "hinge"),
    "ijcnn1, squared_hinge": (libsvm("ijcnn1", "ijcnn1.trn.bz2", 22), "squared_hinge"),
    "madelon, logistic": (madelon, "logistic"),
    "covtype, raw, softmax": (covtype, "logistic"),
    "sentences, softmax": (sentences, "logistic"),
    "wine quality, raw, squared": (wine_quality, "squared"),
    "wine quality, raw, epsilon_insensitive": (wine_quality, "epsilon_insensitive"),
    "california housing, squared": (torgo("cal.housing"), "squared"),
    "california housing, raw, huber": (torgo("cal.housing", scaled=False), "huber"),
    "abalone, poisson": (torgo("abalone"), "poisson"),
    "cpu, quantile": (torgo("cpu.small"), "quantile"),
    "fried, squared_epsilon_insensitive": (torgo("fried"), "squared_epsilon_insensitive"),
    "pol, raw, squared": (torgo("pol", scaled=False), "squared"),
    "2dplanes, log_cosh": (torgo("2dplanes"), "log_cosh"),
}
