"""The real data sets of the benchmarks, prepared once and kept in build/bench.

Everything is CSR with float64 values and int32 indices, which are sorted but for one set: what LIBLINEAR's format,
scikit-learn and beeline all take without loss.

| set | rows |
|---|---|
| covtype | scaled to [0, 1] column by column; class 2 against the rest |
| kdd99 | the symbolic columns one-hot, the others scaled to [0, 1] by the training rows; `normal.` against the rest |
| mnist | pixels / 255; digit 1 against the rest |
| a9a, w8a, ijcnn1, sector | as they are published |
| 20newsgroups | tf-idf of the words; the `comp` groups against the rest |
| kdd99-types | the same rows with their 23 kinds of connection; the first file only, since the other has 17 new kinds |
| reuters | Reuters-21578, ModApte: tf-idf of documents with one topic, which other documents of both parts have too |
| 20newsgroups-text | the same as `TfidfVectorizer.fit_transform` gives it: the indices of a row are in no order |
| madelon | as it is published, dense and not scaled |
"""

from __future__ import annotations

import bz2
import gzip
import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["BINARY", "MULTICLASS", "SHARED", "Rows", "binary", "held_out", "multiclass", "prepared"]

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
FOLDER = ROOT / "build" / "bench"


@dataclass(eq=False)
class Rows:
    """A matrix in CSR form with a label a row."""

    values: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    shape: tuple[int, int]
    labels: np.ndarray

    def matrix(self):
        """The SciPy matrix over the same memory."""
        import scipy.sparse

        return scipy.sparse.csr_matrix((self.values, self.indices, self.indptr), self.shape)

    def arrays(self, prefix: str = "") -> dict[str, np.ndarray]:
        """What an .npz file keeps of them."""
        named = {"values": self.values, "indices": self.indices, "indptr": self.indptr, "labels": self.labels}
        return {prefix + key: array for key, array in {**named, "shape": np.array(self.shape)}.items()}

    @classmethod
    def load(cls, path: Path, prefix: str = "") -> Rows:
        """From an .npz file with `arrays` in it."""
        with np.load(path) as file:
            named = {key: file[prefix + key] for key in ("values", "indices", "indptr", "labels", "shape")}
        return cls(**{**named, "shape": tuple(named["shape"].tolist())})

    def take(self, order: np.ndarray) -> Rows:
        """Some of the rows, in that order."""
        X = self.matrix()[order]
        return Rows(X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32), X.shape, self.labels[order])

    def relabelled(self, positive: tuple[int, ...]) -> Rows:
        """The same rows: +1 for the positive classes, −1 for the rest."""
        labels = np.where(np.isin(self.labels, positive), 1.0, -1.0)
        return Rows(self.values, self.indices, self.indptr, self.shape, labels)


def _rows(X, labels) -> Rows:
    import scipy.sparse

    X = scipy.sparse.csr_matrix(X, dtype=np.float64)
    X.eliminate_zeros()
    X.sum_duplicates()
    return Rows(
        X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32), X.shape, np.asarray(labels, dtype=np.float64)
    )


def _libsvm(n_features: int, train: str, test: str | None = None) -> dict[str, Rows]:
    from sklearn.datasets import load_svmlight_file

    parts = {}
    for part, name in (("train", train), ("test", test)):
        if name:
            with (gzip if name.endswith(".gz") else bz2).open(SHARED / name) as file:
                parts[part] = _rows(*load_svmlight_file(file, n_features=n_features))
    return parts


def _covtype() -> dict[str, Rows]:
    from pyarrow import csv

    table = csv.read_csv(SHARED / "covtype" / "covtype.csv.gz")
    X = np.column_stack([column.to_numpy() for column in table.columns]).astype(np.float64)
    X, labels = X[:, :-1], X[:, -1]
    low, high = X.min(axis=0), X.max(axis=0)
    return {"train": _rows((X - low) / np.where(high > low, high - low, 1.0), labels)}


def _connections() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The features, and what kinds of connections they are, by their names."""
    from pyarrow import csv

    symbolic, label = {1, 2, 3}, 41
    options = csv.ReadOptions(autogenerate_column_names=True)
    files = {"train": "kddcup.data_10_percent.gz", "test": "corrected.gz"}
    tables = {part: csv.read_csv(SHARED / "kdd99" / name, read_options=options) for part, name in files.items()}
    columns: dict[str, list[np.ndarray]] = {part: [] for part in files}
    for j in range(label):
        raw = {part: table.column(j).to_numpy() for part, table in tables.items()}
        if j in symbolic:
            for category in np.unique(raw["train"].astype(str)):
                for part in files:
                    columns[part].append((raw[part] == category).astype(np.float64))
        else:
            low, high = float(raw["train"].min()), float(raw["train"].max())
            for part in files:
                columns[part].append((raw[part] - low) / (high - low if high > low else 1.0))
    kinds = {part: table.column(label).to_numpy().astype(str) for part, table in tables.items()}
    return {part: np.column_stack(columns[part]) for part in files}, kinds


def _kdd99() -> dict[str, Rows]:
    X, kinds = _connections()
    return {part: _rows(X[part], kinds[part] == "normal.") for part in X}


def _kdd99_types() -> dict[str, Rows]:
    X, kinds = _connections()
    return {"train": _rows(X["train"], np.unique(kinds["train"], return_inverse=True)[1])}


def _mnist() -> dict[str, Rows]:
    parts = {}
    for part, name in (("train", "train"), ("test", "t10k")):
        with gzip.open(SHARED / "mnist" / f"{name}-images-idx3-ubyte.gz") as file:
            pixels = np.frombuffer(file.read(), dtype=np.uint8, offset=16).reshape(-1, 784)
        with gzip.open(SHARED / "mnist" / f"{name}-labels-idx1-ubyte.gz") as file:
            labels = np.frombuffer(file.read(), dtype=np.uint8, offset=8)
        parts[part] = _rows(pixels / 255.0, labels)
    return parts


def _news() -> tuple[dict[str, list[str]], dict[str, list[int]]]:
    """The texts and the numbers of their groups, of which 1 … 5 are comp.*."""
    texts: dict[str, list[str]] = {"train": [], "test": []}
    groups: dict[str, list[str]] = {"train": [], "test": []}
    with tarfile.open(SHARED / "20newsgroups" / "20news-bydate.tar.gz") as archive:
        for member in archive:
            if member.isfile():
                part = "train" if "train" in member.name else "test"
                texts[part].append(archive.extractfile(member).read().decode("latin-1"))
                groups[part].append(Path(member.name).parent.name)
    names = sorted(set(groups["train"]))
    return texts, {part: [names.index(group) for group in groups[part]] for part in groups}


def _newsgroups() -> dict[str, Rows]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, groups = _news()
    words = TfidfVectorizer().fit(texts["train"])
    return {part: _rows(words.transform(texts[part]), groups[part]) for part in texts}


def _newsgroups_text() -> dict[str, Rows]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, groups = _news()
    X = TfidfVectorizer().fit_transform(texts["train"])
    return {"train": Rows(X.data, X.indices, X.indptr, X.shape, np.asarray(groups["train"], dtype=np.float64))}


def _reuters() -> dict[str, Rows]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts: dict[str, list[str]] = {"train": [], "test": []}
    topics: dict[str, list[str]] = {"train": [], "test": []}
    for part, topic, text in _single_topics():
        texts[part].append(text)
        topics[part].append(topic)
    names = sorted(set(topics["train"]) & set(topics["test"]))
    kept = {part: [i for i, topic in enumerate(topics[part]) if topic in names] for part in texts}
    words = TfidfVectorizer().fit(texts["train"][i] for i in kept["train"])
    return {
        part: _rows(
            words.transform(texts[part][i] for i in kept[part]), [names.index(topics[part][i]) for i in kept[part]]
        )
        for part in texts
    }


def _single_topics() -> Iterator[tuple[str, str, str]]:
    """(part, topic, text) of every document of the ModApte split that has one topic."""
    with tarfile.open(SHARED / "reuters21578" / "reuters21578.tar.gz") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".sgm") else None
            for document in re.findall(r"<REUTERS(.*?)</REUTERS>", file.read().decode("latin1") if file else "", re.S):
                split = re.search(r'LEWISSPLIT="(TRAIN|TEST)"', document[:400])
                topics = re.findall("<D>(.*?)</D>", re.search(r"<TOPICS>(.*?)</TOPICS>", document, re.S)[1])
                if 'TOPICS="YES"' in document[:400] and split and len(topics) == 1:
                    text = re.sub("<[^>]+>", " ", document[document.find("<TEXT") :])
                    yield split[1].lower(), topics[0], text


def _madelon() -> dict[str, Rows]:
    parts = {}
    for part, name in (("train", "train"), ("test", "valid")):
        X, labels = (np.loadtxt(SHARED / "madelon" / f"madelon_{name}.{kind}.gz") for kind in ("data", "labels"))
        parts[part] = _rows(X, labels)
    return parts


_MAKERS: dict[str, Callable[[], dict[str, Rows]]] = {
    "covtype": _covtype,
    "kdd99": _kdd99,
    "kdd99-types": _kdd99_types,
    "mnist": _mnist,
    "a9a": lambda: _libsvm(123, "a9a/a9a.gz", "a9a/a9a.t.gz"),
    "w8a": lambda: _libsvm(300, "w8a/w8a.gz"),
    "ijcnn1": lambda: _libsvm(22, "ijcnn1/ijcnn1.trn.bz2", "ijcnn1/ijcnn1.tst.bz2"),
    "sector": lambda: _libsvm(55197, "sector/sector.scale.bz2", "sector/sector.t.scale.bz2"),
    "20newsgroups": _newsgroups,
    "20newsgroups-text": _newsgroups_text,
    "reuters": _reuters,
    "madelon": _madelon,
}

# The classes that count as positive; of the sets that training is measured on, and of those for one claim only.
BINARY: dict[str, tuple[int, ...]] = {
    "covtype": (2,),
    "kdd99": (1,),
    "mnist": (1,),
    "a9a": (1,),
    "w8a": (1,),
    "ijcnn1": (1,),
    "20newsgroups": (1, 2, 3, 4, 5),
}
_FOR_ONE: dict[str, tuple[int, ...]] = {"madelon": (1,), "20newsgroups-text": (1, 2, 3, 4, 5)}
MULTICLASS = ("mnist", "sector", "20newsgroups")


def prepared(name: str) -> Path:
    """The file with the set's rows; made when it is not there."""
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        parts = _MAKERS[name]()
        unfinished = path.with_suffix(".unfinished.npz")
        arrays = {key: array for part, rows in parts.items() for key, array in rows.arrays(f"{part}_").items()}
        np.savez(unfinished, **arrays)
        unfinished.rename(path)
    return path


def _load(name: str, part: str) -> Rows | None:
    path = prepared(name)
    with np.load(path) as file:
        if f"{part}_labels" not in file:
            return None
    return Rows.load(path, f"{part}_")


def binary(name: str, part: str = "train") -> Rows | None:
    """The set's binary problem, with labels −1 and +1; None for a part that it does not have."""
    rows = _load(name, part)
    return rows and rows.relabelled((BINARY | _FOR_ONE)[name])


def multiclass(name: str, part: str = "train") -> Rows | None:
    """The set with classes numbered from 0 in the order of their labels."""
    rows, train = _load(name, part), _load(name, "train")
    if rows is not None and train is not None:
        rows.labels = np.searchsorted(np.unique(train.labels), rows.labels).astype(np.float64)
    return rows


def held_out(name: str, share: float = 0.1) -> tuple[Rows, Rows]:
    """The set with its classes, in random order, and its test part; without one, a random share of the rows."""
    train, test = multiclass(name), multiclass(name, "test")
    random = np.random.default_rng(0)
    order = random.permutation(len(train.labels))
    if test is None:
        n = round(share * len(order))
        order, test = order[n:], train.take(np.sort(order[:n]))
    return train.take(order), test
