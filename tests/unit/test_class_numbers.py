"""Classes are found alike, whether there are two of them or more."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import beeline
from beeline.exceptions import LabelError
from beeline.training.labels import find_classes


@pytest.mark.parametrize("names", [[-1.0, 1.0], [0, 1], [3, 70], [-5.0, 0.0, 2.0], [1, 2, 3, 9]])
def test_names_and_numbers(names):
    picked = np.random.default_rng(0).integers(len(names), size=200_000)
    found = find_classes(np.array(names)[picked], None)
    assert_array_equal(found.names, names)
    assert_array_equal(found.numbers, picked)


@pytest.mark.parametrize("labels", [[0.5, 1.0, 1.0], [0.0, 1.0, 0.5], [-0.5, 0.5]])
def test_fractions_name_no_class(labels):
    with pytest.raises(LabelError, match="names no class"):
        find_classes(np.array(labels), None)


def test_two_labels_of_which_one_has_no_weight():
    with pytest.raises(LabelError, match="only one class, 1"):
        find_classes(np.array([-1.0, 1.0, 1.0]), np.array([0.0, 1.0, 2.0]))


LARGE = [1, 2, 2**53, 2**53 + 1] * 2


@pytest.mark.parametrize("source", ["csv", "libsvm", "frame", "arrays", "sets"])
def test_labels_that_would_become_one_class_are_refused(tmp_path, source):
    X = np.arange(8.0)[:, None]
    if source == "csv":
        (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(LARGE)))
        data = beeline.read(tmp_path / "a.csv", label="y")
    elif source in ("libsvm", "sets"):
        (tmp_path / "a.svm").write_text("".join(f"{label} 1:{i + 1}\n" for i, label in enumerate(LARGE)))
        data = beeline.read(tmp_path / "a.svm", multilabel=source == "sets")
    elif source == "frame":
        data = beeline.read(pd.DataFrame({"x": X[:, 0], "y": LARGE}), label="y")
    else:
        data = beeline.from_arrays(X, np.array(LARGE))
    model = beeline.LinearModel("multilabel_logistic" if source == "sets" else "logistic")
    with pytest.raises(LabelError, match=r"row 2 has the label 9007199254740992, and .* such as id_9007199254740992"):
        model.fit(data)


def test_large_labels_that_are_whole_numbers_stay_apart():
    assert beeline.LogisticRegression().fit(np.arange(8.0)[:, None], np.array(LARGE)).classes_.tolist() == LARGE[:4]
