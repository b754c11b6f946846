"""Who trains models of several classes, with what settings: beeline by `sgd` and exactly, and the peers.

A contender is given a set and a setting, and answers with the seconds that training took and the test accuracy. Its
lanes are the settings that stay the same while its effort grows: epochs, passes, iterations, or how small a tolerance
is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from support import sets
from support.liblinear_peer import LiblinearProblem
from support.problems import Stopwatch
from support.processes import BEELINE, VW, python_alone, run, scratch
from support.texts import Texts, class_texts

__all__ = [
    "CONTENDERS",
    "FORMS",
    "SETS",
    "Classes",
    "Contender",
    "Found",
    "Setting",
    "make_estimator",
    "sgd",
    "sgd_command",
]

SETS = {
    "mnist": "MNIST",
    "20newsgroups": "20 newsgroups",
    "sector": "sector",
    "covtype": "covtype",
    "reuters": "Reuters",
    "kdd99-types": "KDD99",
}
FORMS = {"hinge": "crammer_singer", "logistic": "softmax"}  # by beeline's names, with how it tells classes apart
Setting = dict[str, float | str]
_TIMED_VW = (
    "import sys, time, pylibvw; start = time.perf_counter(), time.process_time(); vw = pylibvw.vw(sys.argv[1:]); "
    "vw.run_parser(); vw.finish(); print(time.perf_counter() - start[0], time.process_time() - start[1])"
)


class Found(NamedTuple):
    """Seconds of a training on the wall, its test accuracy in per cent, and seconds of all cores together."""

    seconds: float
    accuracy: float
    cores: float


@dataclass(eq=False)
class Classes:
    """A set with several classes, and what the contenders make of it before they are timed."""

    name: str

    @classmethod
    def of(cls, name: str, train: tuple, test: tuple) -> Classes:
        """Rows that are there already: matrices with their labels."""
        made = cls(name)
        made._parts = tuple(sets.Rows(X.data, X.indices, X.indptr, X.shape, y) for X, y in (train, test))
        return made

    @cached_property
    def _parts(self) -> tuple[sets.Rows, sets.Rows]:
        return sets.held_out(self.name)

    @property
    def train(self) -> sets.Rows:
        """Rows to learn from, in random order."""
        return self._parts[0]

    @property
    def y(self) -> np.ndarray:
        """Their classes."""
        return self.train.labels

    @cached_property
    def X(self):  # noqa: N802
        """The rows, for SciPy."""
        return self.train.matrix()

    @cached_property
    def X_test(self):  # noqa: N802
        """Rows to predict."""
        return self._parts[1].matrix()

    @property
    def y_test(self) -> np.ndarray:
        """Their classes."""
        return self._parts[1].labels

    @property
    def n_classes(self) -> int:
        """How many there are."""
        return int(self.y.max()) + 1

    def accuracy(self, answers: np.ndarray) -> float:
        """Per cent of the test rows that are told right."""
        return 100 * float(np.mean(np.asarray(answers).ravel() == self.y_test))

    def accuracy_of(self, weights: np.ndarray, intercepts: np.ndarray) -> float:
        """The same of a linear model, with a column for each class."""
        return self.accuracy((self.X_test @ weights + intercepts).argmax(axis=1))

    @cached_property
    def texts(self) -> Texts:
        """The rows as text."""
        return class_texts(self.name, *self._parts)

    @cached_property
    def liblinear(self) -> LiblinearProblem:
        """The rows as LIBLINEAR has them, with a column of ones."""
        import scipy.sparse as sp

        return LiblinearProblem(sp.csr_matrix(sp.hstack([self.X, np.ones((len(self.y), 1))])), self.y)

    @cached_property
    def vw_arguments(self) -> list[str]:
        """As many classes, and room for as many weights."""
        bits = max(18, int(np.ceil(np.log2(self.X.shape[1])) + np.ceil(np.log2(self.n_classes))))
        return ["--quiet", "--oaa", str(self.n_classes), "-b", str(min(bits, 24))]

    @cached_property
    def vw_cache(self) -> Path:
        """The rows as Vowpal Wabbit keeps them itself."""
        path = self.texts.path("train", "vwcache")
        if not path.exists():
            arguments = ["-d", str(self.texts.path("train", "vw")), "--cache_file", str(path), "-k"]
            run([sys.executable, "-c", VW, *self.vw_arguments, *arguments])
        return path


class Contender(NamedTuple):
    """One of those who train.

    Attributes
    ----------
    name
        What tables call it.
    lanes
        Settings that stay while its effort grows.
    effort, efforts
        What grows, and the steps of it.
    train
        From a set and a setting to what it took and reached.
    """

    name: str
    lanes: tuple[Setting, ...]
    effort: str
    efforts: tuple[float, ...]
    train: Callable[[Classes, Setting], Found]


def _fitted(classes: Classes, estimator) -> Found:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # limits that end it
        with Stopwatch() as watch:
            estimator.fit(classes.X, classes.y)
    return Found(watch.seconds.wall, classes.accuracy(estimator.predict(classes.X_test)), watch.seconds.cores)


def make_estimator(form: str, **settings):
    """beeline's estimator of a form."""
    from beeline import LinearSVC, LogisticRegression

    if form == "logistic":
        return LogisticRegression(multi_class="softmax", **settings)
    if form == "squared_hinge":
        return LinearSVC(loss="squared_hinge", **settings)
    return LinearSVC(loss="hinge", multi_class=FORMS[form], **settings)


def sgd(classes: Classes, form: str, passes: float | None = None) -> Found:
    """beeline's estimator of stochastic steps with nothing set, until it ends by itself or has made some passes."""
    from beeline import SGDClassifier

    limit = {} if passes is None else {"max_passes": passes}
    return _fitted(classes, SGDClassifier(loss=form, multi_class=FORMS[form], **limit))


def sgd_command(classes: Classes, form: str, passes: float | None = None) -> Found:
    """The same from text to a saved model, as a command."""
    from beeline import Model

    options = ["--loss", form, "--multiclass", FORMS[form], "--solver", "sgd"]
    options += [] if passes is None else ["--max-passes", f"{passes:g}"]
    with scratch() as folder:
        files = [str(classes.texts.path("train", "svm")), "-o", str(folder / "model")]
        taken = run([BEELINE, "train", *files, *options], codes=(0, 3))
        saved = Model.load(folder / "model")
    width = classes.X_test.shape[1]
    weights = np.pad(saved.weights, ((0, max(0, width - len(saved.weights))), (0, 0)))[:width]
    return Found(taken.seconds, classes.accuracy_of(weights, saved.intercepts), taken.cores)


def _exact(classes: Classes, setting: Setting) -> Found:
    return _fitted(classes, make_estimator(setting["loss"], C=setting["C"], tol=setting["tol"]))


def _sklearn_sgd(classes: Classes, setting: Setting) -> Found:
    from sklearn.linear_model import SGDClassifier

    settings = {"loss": setting["loss"], "alpha": setting["alpha"], "average": setting["average"] == "yes"}
    epochs = int(setting["epochs"])
    return _fitted(classes, SGDClassifier(**settings, max_iter=epochs, tol=None, n_jobs=2, random_state=0))


def _sklearn_lbfgs(classes: Classes, setting: Setting) -> Found:
    from sklearn.linear_model import LogisticRegression

    return _fitted(classes, LogisticRegression(C=setting["C"], tol=1e-9, max_iter=int(setting["iterations"])))


def _liblinear(classes: Classes, setting: Setting) -> Found:
    seconds, W, _ = classes.liblinear.train(f"-s 4 -c {setting['C']:g} -B -1 -e {setting['tol']:g} -q")
    return Found(seconds[0], classes.accuracy_of(W[:-1], W[-1]), seconds[1])


def _vw_options(setting: Setting) -> list[str]:
    more = ["--holdout_off"] if setting["passes"] > 1 else []
    options = {"--loss_function": setting["loss"], "-l": f"{setting['rate']:g}", "--passes": f"{setting['passes']:g}"}
    return [word for pair in options.items() for word in pair] + more


def _vw_accuracy(classes: Classes, folder: Path) -> float:
    tests = ["-d", str(classes.texts.path("test", "vw")), "-p", str(folder / "answers")]
    run([sys.executable, "-c", VW, "--quiet", "-t", "-i", str(folder / "model"), *tests])
    return classes.accuracy(np.loadtxt(folder / "answers") - 1)


def _vw_cached(classes: Classes, setting: Setting) -> Found:
    """From its cache; neither starting Python nor loading the library is counted."""
    with scratch() as folder:
        words = [*classes.vw_arguments, "--cache_file", str(classes.vw_cache), "-f", str(folder / "model")]
        command = [sys.executable, "-c", _TIMED_VW, *words, *_vw_options(setting)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds, cores = map(float, said.split()[-2:])
        return Found(seconds, _vw_accuracy(classes, folder), cores)


def _vw_text(classes: Classes, setting: Setting) -> Found:
    """From text; more than one pass makes a cache on the way. What starting Python takes is taken off."""
    with scratch() as folder:
        words = [*classes.vw_arguments, "-d", str(classes.texts.path("train", "vw")), "-f", str(folder / "model")]
        words += ["--cache_file", str(folder / "cache")] if setting["passes"] > 1 else []
        taken, python = run([sys.executable, "-c", VW, *words, *_vw_options(setting)]), python_alone()
        return Found(taken.seconds - python.seconds, _vw_accuracy(classes, folder), taken.cores - python.cores)


def _svm_multiclass(classes: Classes, setting: Setting) -> Found:
    """The program that SVM_MULTICLASS names, from text, whose classes count from 1; C is for the mean of losses."""
    program = Path(os.environ["SVM_MULTICLASS"])
    texts = {part: classes.texts.path(part, "svmm") for part in ("train", "test")}
    for part, text in texts.items():
        if not text.exists():
            with classes.texts.path(part, "vw").open() as source, text.open("w") as file:
                file.writelines(line.replace(" | ", " ", 1) for line in source)
    options = ["-c", f"{setting['C']:g}", "-e", f"{setting['tol']:g}"]
    classify = program.with_name(program.name.replace("learn", "classify"))
    with scratch() as folder:
        model, answers = str(folder / "model"), str(folder / "answers")
        taken = run([str(program), *options, str(texts["train"]), model])
        run([str(classify), str(texts["test"]), model, answers])
        return Found(taken.seconds, classes.accuracy(np.loadtxt(answers, usecols=0) - 1), taken.cores)


def _lanes(**options: tuple) -> tuple[Setting, ...]:
    """All combinations."""
    lanes: list[Setting] = [{}]
    for name, values in options.items():
        lanes = [{**lane, name: value} for lane in lanes for value in values]
    return tuple(lanes)


_LOOSE = (0.3, 0.1, 0.03, 0.01, 0.001)
CONTENDERS: dict[str, Contender] = {
    c.name: c
    for c in (
        Contender(
            "scikit-learn SGDClassifier",
            _lanes(loss=("hinge", "log_loss"), alpha=(1e-6, 1e-5, 1e-4), average=("no", "yes")),
            "epochs",
            (1, 2, 3, 5, 10),
            _sklearn_sgd,
        ),
        Contender(
            "Vowpal Wabbit, cached",
            _lanes(loss=("hinge", "logistic"), rate=(0.1, 0.5, 2.0)),
            "passes",
            (1, 2, 3, 5, 10),
            _vw_cached,
        ),
        Contender("LIBLINEAR -s 4", _lanes(C=(0.1, 1.0)), "tol", (10.0, 3.0, 1.0, 0.1), _liblinear),
        Contender(
            "scikit-learn lbfgs",
            _lanes(C=(1.0, 10.0, 100.0)),
            "iterations",
            (5, 10, 20, 40, 80),
            _sklearn_lbfgs,
        ),
        Contender(
            "beeline, exact",
            _lanes(loss=("hinge", "logistic", "squared_hinge"), C=(1.0, 10.0)),
            "tol",
            _LOOSE,
            _exact,
        ),
    )
}
# Where a program is given, or with the settings that were found for the same contender by other means.
CONTENDERS["Vowpal Wabbit, from text"] = CONTENDERS["Vowpal Wabbit, cached"]._replace(
    name="Vowpal Wabbit, from text", lanes=(), train=_vw_text
)
if "SVM_MULTICLASS" in os.environ:
    CONTENDERS["SVMmulticlass"] = Contender(
        "SVMmulticlass", _lanes(C=(1e3, 1e4, 1e5)), "tol", (10.0, 3.0, 1.0, 0.3, 0.1), _svm_multiclass
    )
