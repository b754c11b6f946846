"""Options that make no sense are refused when they are given."""

from __future__ import annotations

import pytest

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
