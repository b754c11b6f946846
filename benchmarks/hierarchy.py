"""Claims: over a tree of labels, mistakes are nearer to the truth than a flat classifier's, and no more of them.

20 newsgroups, whose names spell a tree, and CLINC150, whose 150 intents lie in ten domains, both by tf-idf.

- The mean length of the way from the right class to the predicted one (`tree_loss`) is smaller with a loss over the
  tree than with the flat loss of its kind, a softmax or the hinge of Crammer and Singer, at no loss of accuracy. C is
  found for all of them in the same way: the least error on a tenth of the training rows that are held out, then trained
  on all.
- Training takes at most a tenth of the processor's time of HiClass, which trains a classifier of scikit-learn's at each
  node or parent of the tree, with the C among the same ones that is best for it.

    python benchmarks/hierarchy.py [--check] [--only clinc150,20newsgroups] [--losses logistic,margin]
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tarfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from support.problems import Stopwatch
from support.sets import SHARED

from beeline import LabelTree, LinearModel
from beeline.losses import CrammerSinger, Loss, Softmax, TreeLogistic, TreeMargin
from beeline.losses.label_tree import as_label_tree

MOST_OF_HICLASS = 0.1
TOL = 1e-3
CS = {"logistic": (3.0, 10.0, 30.0, 100.0), "margin": (0.1, 0.3, 1.0, 3.0)}
PAIRS: dict[str, tuple[Callable[[], Loss], Callable[[LabelTree], Loss]]] = {
    "logistic": (Softmax, TreeLogistic),
    "margin": (CrammerSinger, TreeMargin),
}


@dataclass
class Set:
    """Rows to learn from and rows to judge by, with the tree of their classes."""

    name: str
    X: sp.csr_array
    y: np.ndarray
    X_test: sp.csr_array
    y_test: np.ndarray
    tree: LabelTree

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of nine tenths of the rows, and of the rest."""
        order = np.random.default_rng(0).permutation(len(self.y))
        return np.sort(order[len(order) // 10 :]), np.sort(order[: len(order) // 10])

    def judged(self, y: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
        """(accuracy, tree loss)."""
        names = np.unique(self.y)
        distances = self.tree.distances(names.tolist())
        far = distances[np.searchsorted(names, y), np.searchsorted(names, predicted)]
        return float(np.mean(y == predicted)), float(far.mean())


class Found(NamedTuple):
    """How good a model is on the test rows, its C, and the processor's seconds that training with that took."""

    accuracy: float
    tree_loss: float
    C: float
    seconds: float


def by_words(texts: dict[str, list[str]]) -> list[sp.csr_array]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer().fit(texts["train"])
    return [sp.csr_array(words.transform(texts[part])) for part in ("train", "test")]


def clinc150() -> Set:
    """Intents in domains."""
    with gzip.open(SHARED / "clinc150" / "data_full.json.gz") as file:
        data = json.load(file)
    X, X_test = by_words({part: [text for text, _ in data[part]] for part in ("train", "test")})
    y, y_test = (np.array([intent for _, intent in data[part]]) for part in ("train", "test"))
    domains = json.loads((SHARED / "clinc150" / "domains.json").read_text())
    return Set("CLINC150", X, y, X_test, y_test, LabelTree.from_nested(domains))


def newsgroups() -> Set:
    """Groups in groups of groups, by the dots of their names."""
    texts: dict[str, list[str]] = {"train": [], "test": []}
    groups: dict[str, list[str]] = {"train": [], "test": []}
    with tarfile.open(SHARED / "20newsgroups" / "20news-bydate.tar.gz") as archive:
        for member in archive:
            if member.isfile():
                part = "train" if "train" in member.name else "test"
                texts[part].append(archive.extractfile(member).read().decode("latin-1"))
                groups[part].append(Path(member.name).parent.name)
    X, X_test = by_words(texts)
    y, y_test = np.array(groups["train"]), np.array(groups["test"])
    tree = as_label_tree("dots", np.unique(y).tolist())
    return Set("20 newsgroups", X, y, X_test, y_test, tree)


SETS: dict[str, Callable[[], Set]] = {"clinc150": clinc150, "20newsgroups": newsgroups}


def found_by(
    data: Set, Cs: tuple[float, ...], train: Callable[[Any, np.ndarray, float], Callable[[Any], Any]]
) -> Found:
    """The C with the fewest errors on held-out rows, then trained on all rows."""
    some, others = data.parts
    scores = [float(np.mean(train(data.X[some], data.y[some], C)(data.X[others]) == data.y[others])) for C in Cs]
    C = Cs[int(np.argmax(scores))]
    with Stopwatch() as watch:
        predict = train(data.X, data.y, C)
    return Found(*data.judged(data.y_test, predict(data.X_test)), C, watch.seconds.cores)


def ours(loss: Loss) -> Callable[[Any, np.ndarray, float], Callable[[Any], Any]]:
    """Training by one of our losses."""
    return lambda X, y, C: LinearModel(loss, C=C, tol=TOL).fit(X, y).predict


def theirs(tree: LabelTree, kind: type, classifier: Callable[[float], Any]) -> Callable[..., Callable[[Any], Any]]:
    """Training by HiClass; the predicted class is the last node of the path."""
    depth = max(tree.depths)

    def train(X: Any, y: np.ndarray, C: float) -> Callable[[Any], Any]:
        paths = {name: [*tree.path(name), *[""] * (depth - tree.depth(name))] for name in np.unique(y).tolist()}
        model = kind(local_classifier=classifier(C))
        model.fit(sp.csr_matrix(X), np.array([paths[name] for name in y.tolist()]))
        leaf = {tuple(path): name for name, path in paths.items()}
        first = next(iter(leaf.values()))  # for a path that HiClass left on its way
        return lambda rows: np.array([leaf.get(tuple(p), first) for p in model.predict(sp.csr_matrix(rows)).tolist()])

    return train


def peers(kind: str) -> dict[str, tuple[type, Callable[[float], Any]]]:
    """What HiClass offers for a tree, with a classifier of the kind of the loss."""
    from hiclass import LocalClassifierPerNode, LocalClassifierPerParentNode
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    def classifier(C: float) -> Any:
        return LogisticRegression(C=C, max_iter=1000) if kind == "logistic" else LinearSVC(C=C, loss="hinge")

    return {
        "HiClass, per parent node": (LocalClassifierPerParentNode, classifier),
        "HiClass, per node": (LocalClassifierPerNode, classifier),
    }


def line(name: str, found: Found) -> None:
    print(
        f"  {name:28} C {found.C:<6g} accuracy {found.accuracy:.4f}  tree loss {found.tree_loss:.4f}  "
        f"{found.seconds:7.2f} s",
        flush=True,
    )


def compare(data: Set, kind: str) -> int:
    """The claims about one kind of loss on one set; how many do not hold."""
    print(f"{data.name}, {kind}: {data.X.shape[0]:,} rows, {data.tree!r}")
    flat_loss, tree_loss = PAIRS[kind]
    flat = found_by(data, CS[kind], ours(flat_loss()))
    line("flat", flat)
    tree = found_by(data, CS[kind], ours(tree_loss(data.tree)))
    line("over the tree", tree)
    broken = int(not (tree.tree_loss < flat.tree_loss and tree.accuracy >= flat.accuracy))
    for name, (peer, classifier) in peers(kind).items():
        found = found_by(data, CS[kind], theirs(data.tree, peer, classifier))
        line(name, found)
        ratio = tree.seconds / found.seconds
        print(f"    time of ours / theirs {ratio:.3f}, at most {MOST_OF_HICLASS}")
        broken += ratio > MOST_OF_HICLASS
    return broken


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when the claims do not hold")
    parser.add_argument("--only", default=",".join(SETS), help=f"some of {', '.join(SETS)}")
    parser.add_argument("--losses", default=",".join(PAIRS), help=f"some of {', '.join(PAIRS)}")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    warnings.simplefilter("ignore")
    broken = 0
    for name in options.only.split(","):
        data = SETS[name]()
        broken += sum(compare(data, kind) for kind in options.losses.split(","))
    return int(options.check and broken > 0)


if __name__ == "__main__":
    sys.exit(main())
