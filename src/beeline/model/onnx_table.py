"""The columns of a table as inputs of an ONNX graph, which does by itself what the recipe does.

A column of numbers is a matrix of one column, or of as many as its lists have entries; NaN means a missing value and is
filled as the recipe says, or stays NaN where the recipe fills nothing. A column of texts is a matrix of texts with one
column; a text that is no category, such as an empty one, has no effect. Categories are not made into indicators:
each is looked up and has its weights, which comes to the same and takes no more time for many categories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from beeline._types import Floats
from beeline.data.recipe.recipe import Column, Recipe
from beeline.exceptions import ModelError
from beeline.model.onnx_nodes import CATEGORIES_DOMAIN, OnnxNodes

if TYPE_CHECKING:
    from beeline.model.model import Model

__all__ = ["table_product"]


def table_product(graph: OnnxNodes, model: Model) -> tuple[str, Floats]:
    """(Xw with X made of the columns, what is still to be added)."""
    recipe = model.recipe
    assert recipe is not None
    assert recipe.columns is not None
    if any(not column.name for column in recipe.columns):
        raise ModelError("a column has no name, which an input of ONNX needs; name it in the table and train again")
    for column in recipe.columns:
        numeric = column.kind == "numeric"
        graph.add_input(column.name, graph.element if numeric else graph.onnx.TensorProto.STRING, column.width)
    weights, shift = _scaled_weights(model.weights, recipe)
    marks = recipe.indicators
    numbers = _numbers(graph, [column for column in recipe.columns if column.kind == "numeric"], shift[~marks])
    codes = {
        column: _codes(graph, column) for column in recipe.columns if column.kind == "categories" and column.categories
    }
    parts = [] if numbers is None else [graph.op("MatMul", numbers, graph.constant(weights[~marks].astype(graph.type)))]
    parts += [_looked_up(graph, code, weights[_features(column)]) for column, code in codes.items()]
    if not parts:
        raise ModelError("no column of the table became a feature; there is nothing to export")
    product = parts[0] if len(parts) == 1 else graph.op("Sum", *parts)
    if recipe.scaling.kind == "unit-norm":
        product = graph.op("Div", product, graph.divisor(_norm(graph, numbers, codes)))
    return product, model.intercepts - shift[marks] @ weights[marks]


def _scaled_weights(weights: Floats, recipe: Recipe) -> tuple[Floats, Floats]:
    """(weights of features from which the shift was taken, the shift)."""
    scaling, zeros = recipe.scaling, np.zeros(len(weights))
    scaled = weights if scaling.factor is None else weights * scaling.factor[:, None]
    return scaled, zeros if scaling.shift is None else scaling.shift


def _features(column: Column) -> slice:
    return slice(column.first, column.first + column.n_features)


def _numbers(graph: OnnxNodes, columns: list[Column], shift: Floats) -> str | None:
    """All columns of numbers beside each other, filled and shifted; None where there are none."""
    if not columns:
        return None
    names = [column.name for column in columns]
    rows = names[0] if len(names) == 1 else graph.op("Concat", *names, axis=1)
    fills = np.repeat([np.nan if c.fill is None else c.fill for c in columns], [c.width for c in columns])
    if not np.isnan(fills).all():
        rows = graph.op("Where", graph.op("IsNaN", rows), graph.constant(fills.astype(graph.type)), rows)
    return graph.op("Sub", rows, graph.constant(shift.astype(graph.type))) if shift.any() else rows


def _codes(graph: OnnxNodes, column: Column) -> str:
    """The number of each row's category; one beyond the last where it is none."""
    n = len(column.categories)
    found = graph.op(
        "LabelEncoder",
        column.name,
        domain=CATEGORIES_DOMAIN,
        keys_strings=list(column.categories),
        values_int64s=list(range(n)),
        default_int64=n,
    )
    return graph.op("Squeeze", found, graph.whole([1]))


def _looked_up(graph: OnnxNodes, codes: str, values: Floats) -> str:
    """A row of the values for each code; zeros for what is no category."""
    known = np.concatenate([values, np.zeros((1, values.shape[1]))])
    return graph.op("Gather", graph.constant(known.astype(graph.type)), codes, axis=0)


def _norm(graph: OnnxNodes, numbers: str | None, codes: dict[Column, str]) -> str:
    """The Euclidean length of the features: numbers, and a one for each category that is known."""
    parts = [] if numbers is None else [graph.op("ReduceSumSquare", numbers, axes=[1])]
    parts += [_looked_up(graph, code, np.ones((len(column.categories), 1))) for column, code in codes.items()]
    return graph.op("Sqrt", parts[0] if len(parts) == 1 else graph.op("Sum", *parts))
