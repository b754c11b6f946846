"""Classes are found alike, whether there are two of them or more."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

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
