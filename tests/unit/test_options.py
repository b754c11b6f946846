"""Options that make no sense are refused when they are given."""

from __future__ import annotations

import re

import numpy as np
import pytest

import beeline
from beeline.data.options import ReadOptions
from beeline.data.recipe.recipe import Recipe
from beeline.exceptions import ParameterError


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delimiter": ";;"}, "delimiter must be one ASCII character"),
        ({"delimiter": ""}, "delimiter must be one ASCII character"),
        ({"delimiter": "§"}, "delimiter must be one ASCII character"),
        ({"delimiter": '"'}, "delimiter must be one ASCII character"),
        ({"label": 2}, "label must be text, not 2; write it in quotes"),
        ({"weight": 0}, "weight must be text"),
        ({"ignore": "age"}, "ignore must be a list of names, not 'age'"),
        ({"text": (1,)}, "text must be a list of names"),
        ({"recipe": "train.store"}, "recipe must be a Recipe"),
    ],
)
def test_values_of_the_wrong_kind(options, words):
    with pytest.raises(ParameterError, match=words):
        ReadOptions(**options)


def test_values_of_the_right_kind():
    ReadOptions(delimiter="\t", label="2", ignore=("a", "b"), recipe=Recipe(n_features=1))


@pytest.mark.parametrize(
    ("read", "sentence"),
    [
        (lambda path: beeline.read(path, lable="y"), "reading has no option 'lable'; did you mean 'label'?"),
        (lambda path: beeline.read(path, lable="y", memory="1M"), "did you mean 'label'?"),
        (lambda path: beeline.convert(path, path.parent / "s", sclae="standard"), "did you mean 'scale'?"),
        (lambda path: beeline.read(path, qid="q"), "reading has no option 'qid'; take query="),
        (lambda path: beeline.read(path, sep=";"), "reading has no option 'sep'; there are format, label, "),
        (lambda path: beeline.read(np.ones((2, 2)), lable="y"), "did you mean 'label'?"),
        (lambda path: beeline.fit_stream(path, lable="y"), "did you mean 'label'?"),
        (lambda path: beeline.fit_stream(path, label="y", los="hinge"), "did you mean 'loss'?"),
    ],
)
def test_misspelt_options_are_asked_about(tmp_path, read, sentence):
    (tmp_path / "t.csv").write_text("a,y\n1,0\n2,1\n")
    with pytest.raises(ParameterError, match=re.escape(sentence)):
        read(tmp_path / "t.csv")
