"""A model and rows as `evaluate` is given them: names of files, data sets, arrays and columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from beeline._sentences import Argument
from beeline._types import AnyArray
from beeline.data.core.block import Block
from beeline.data.core.labels import LabelSets, refuse_missing
from beeline.data.core.targets import as_groups
from beeline.data.recipe.recipe import Recipe
from beeline.data.tables.frames import is_frame
from beeline.exceptions import DataError, ParameterError
from beeline.model.file import load_model
from beeline.model.model import Model
from beeline.model.walk import Walk

__all__ = ["given_groups", "given_labels", "given_model", "given_rows", "part_of_column"]


def given_model(model: Any, name: str = "model") -> Model:  # noqa: ANN401
    """The model itself, that of a fitted estimator, or that of a file."""
    if isinstance(model, str | os.PathLike):
        return load_model(model)
    found = getattr(model, "model_", model)
    if not isinstance(found, Model):
        raise ParameterError(
            Argument(name), f" must be a Model, a fitted estimator or the name of a file, not {model!r}"
        )
    return found


def given_rows(
    model: Model,
    data: Any,  # noqa: ANN401
    options: dict[str, Any],
    memory: int,
) -> tuple[Iterator[Block], Callable[[], Recipe | None], Callable[[], list[str]]]:
    """The blocks, how their labels are to be understood and what queries are called: files tell when they are read."""
    if isinstance(data, str | os.PathLike) or (isinstance(data, list | tuple) and _are_paths(data)):
        paths = [os.fspath(path) for path in (data if isinstance(data, list | tuple) else [data])]
        data = Walk(model, paths, options, None)
    elif others := [name for name in options if name != "extra" or not is_frame(data)]:
        where = "files and frames" if others[0] == "extra" else "files"
        raise ParameterError(Argument(others[0]), f" has no meaning but for {where}; leave it out")
    if isinstance(data, Walk):
        return data.blocks(memory), lambda: data.recipe, lambda: data.query_names
    if isinstance(data, Block):
        return iter([data]), lambda: None, list
    found = model.dataset(data, **options)
    return iter(found.blocks(min(memory, found.memory or memory))), lambda: found.recipe, list


def _are_paths(data: list[Any] | tuple[Any, ...]) -> bool:
    return bool(data) and all(isinstance(one, str | os.PathLike) for one in data)


def given_labels(y: Any) -> Any:  # noqa: ANN401
    """The labels as an array, of which none may be missing; None where rows have them."""
    if y is None or isinstance(y, LabelSets):
        return y
    labels = np.asarray(y)
    refuse_missing(labels)
    return labels


def given_groups(groups: Any) -> AnyArray | None:  # noqa: ANN401
    """The queries as an array, one a row; None where rows have them."""
    return None if groups is None else as_groups(groups)


def part_of_column(column: Any, start: int, n_rows: int) -> Any:  # noqa: ANN401
    """The part of a column that belongs to a block; what is missing in the end is said once all rows are known."""
    if column is None:
        return None
    if len(column) < start + n_rows:
        raise DataError(f"there are {len(column):,} labels or weights, and more rows; give one for each row")
    return column[start : start + n_rows]
