"""The recipe and its JSON."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beeline.data.recipe.recipe import Column, Recipe
from beeline.data.recipe.scaling import Scaling
from beeline.exceptions import DataError

finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def recipes(draw):
    names = draw(st.lists(st.text(max_size=5), unique=True, max_size=5))
    columns, at = [], 0
    for name in names:
        if draw(st.booleans()):
            texts = tuple(sorted(draw(st.sets(st.text(max_size=3), max_size=4))))
            column = Column(name, "categories", at, texts, draw(st.sampled_from([None, 0.0])))
        else:
            column = Column(name, "numeric", at, fill=draw(finite | st.none()), width=draw(st.integers(1, 3)))
        columns.append(column)
        at += column.n_features
    kind = draw(st.sampled_from(["none", "minmax", "standard", "maxabs", "unit-norm"]))
    numbers = st.lists(finite, min_size=at, max_size=at).map(lambda x: np.array(x, np.float64))
    learned = kind in ("minmax", "standard", "maxabs")
    scaling = Scaling(kind, draw(st.none() | numbers), draw(numbers)) if learned else Scaling(kind)
    names = st.none() | st.text()
    return Recipe(
        at,
        draw(st.sampled_from([tuple(columns), None])),
        draw(st.integers(0, 1)),
        draw(names),
        draw(names),
        draw(names),
        draw(st.none() | st.lists(st.text()).map(tuple)),
        tuple(draw(st.lists(st.text(), max_size=2))),
        scaling,
    )


@given(recipes())
def test_json_reads_back_exactly(recipe):
    assert Recipe.from_json(json.loads(json.dumps(recipe.to_json(), allow_nan=False))) == recipe


def example():
    columns = (
        Column("age", "numeric", 0, fill=1.5),
        Column("protocol", "categories", 1, ("tcp", "udp")),
        Column("pixels", "numeric", 3, width=2),
    )
    return Recipe(5, columns, label="y", scaling=Scaling("maxabs", None, np.ones(5)))


def test_features_are_named_after_columns_and_categories():
    assert example().feature_names == ["age", "protocol=tcp", "protocol=udp", "pixels[0]", "pixels[1]"]
    assert example().indicators.tolist() == [False, True, True, False, False]
    assert Recipe(3).feature_names is None


def test_recipes_that_differ_in_the_scaling_differ():
    other = replace(example(), scaling=Scaling("maxabs", None, np.full(5, 2.0)))
    assert other != example()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 4}, "update beeline"),
        ({"version": None}, "version"),
        ({"version": 3, "hash_bits": None, "label_decimals": 1}, "true or false"),
        ({"surprise": 1}, "unknown field 'surprise'"),
        ({"n_features": 4}, "make 5 features, not 4"),
        ({"n_features": -1}, "cannot have -1 features"),
        ({"n_features": True}, "cannot have True features"),
        ({"index_base": 2}, "0 or 1"),
        ({"label": 3}, "label column"),
        ({"columns": 7}, "columns of a recipe must be a list"),
        ({"columns": ["x"]}, "JSON object"),
        ({"label_categories": [1]}, "list of texts"),
        ({"ignored": "abc"}, "list of texts"),
        ({"scaling": {"kind": "none"}}, "kind, shift and factor"),
        ({"scaling": {"kind": "odd", "shift": None, "factor": None}}, "must be one of"),
        ({"scaling": {"kind": "none", "shift": None, "factor": [1.0]}}, "no factors"),
        ({"scaling": {"kind": "maxabs", "shift": None, "factor": ["1"]}}, "list of numbers"),
        ({"scaling": {"kind": "maxabs", "shift": None, "factor": [1.0]}}, "1 features cannot serve 5"),
        ({"scaling": {"kind": "minmax", "shift": [0.0], "factor": [1.0, 1.0]}}, "as many shifts"),
        ({"scaling": {"kind": "maxabs", "shift": None, "factor": [float("nan")] * 5}}, "finite"),
    ],
)
def test_a_bad_record_is_refused_with_a_sentence(change, message):
    with pytest.raises(DataError, match=message):
        Recipe.from_json({**example().to_json(), **change})


def test_an_absent_field_is_named():
    record = example().to_json()
    del record["weight"]
    with pytest.raises(DataError, match="lacks the field 'weight'"):
        Recipe.from_json(record)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "odd"}, "unknown kind"),
        ({"categories": ["b", "a"]}, "sorted"),
        ({"categories": ["a", "a"]}, "distinct"),
        ({"categories": "ab"}, "list of texts"),
        ({"fill": float("inf")}, "finite"),
        ({"fill": "1"}, "number as fill"),
        ({"first": -1}, "at least 0"),
        ({"first": 2}, "starts at feature 2, not 1"),
        ({"width": 2}, "cannot have a width"),
        ({"name": "age"}, "twice"),
        ({"name": 5}, "named by a text"),
    ],
)
def test_a_bad_column_is_refused_with_a_sentence(change, message):
    record = example().to_json()
    record["columns"][1] |= change
    with pytest.raises(DataError, match=message):
        Recipe.from_json(record)
