"""The recipe: how raw rows become the rows of a data set, so that new raw rows can be treated alike."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from beeline._sentences import Argument, Sentence
from beeline._types import AnyArray
from beeline.data.recipe.hashing import MOST_BITS
from beeline.data.recipe.scaling import Scaling
from beeline.exceptions import DataError, LabelError

__all__ = ["Column", "Recipe", "no_labels"]

ColumnKind = Literal["numeric", "categories"]

# Fields that came later, with the version that has them: a recipe is written with the smallest that has what it needs.
_LATER = {"hash_bits": 2, "label_decimals": 3}
_VERSION = max(_LATER.values())


@dataclass(frozen=True)
class Column:
    """One column of a table and the features it becomes.

    Attributes
    ----------
    name
        The column's name in the table.
    kind
        `numeric`: the value itself. `categories`: one 0/1 indicator feature a category; a value that is none of them
        sets no indicator.
    first
        The number of its first feature, counted from 0.
    categories
        The categories, sorted; empty for numeric columns.
    fill
        What a missing value of a numeric column becomes. For categories any number means that a missing value sets
        no indicator. None: a missing value is an error.
    width
        The number of features of a numeric column: more than 1 when each value is a list of that many numbers.
    """

    name: str
    kind: ColumnKind
    first: int
    categories: tuple[str, ...] = ()
    fill: float | None = None
    width: int = 1

    def __post_init__(self) -> None:
        def demand(condition: bool, what: str) -> None:
            if not condition:
                raise DataError(f"column {self.name!r} of a recipe {what}")

        demand(isinstance(self.name, str), "must be named by a text")
        demand(self.kind in get_args(ColumnKind), f"has the unknown kind {self.kind!r}")
        demand(_is_count(self.first), "must have a feature number of at least 0")
        demand(_is_count(self.width) and self.width > 0, "must have a width of at least 1")
        demand(all(isinstance(c, str) for c in self.categories), "must have texts as categories")
        demand(all(a < b for a, b in pairwise(self.categories)), "must have sorted and distinct categories")
        demand(self.kind == "categories" or not self.categories, "is numeric and cannot have categories")
        demand(self.kind == "numeric" or self.width == 1, "has categories and cannot have a width")
        demand(self.fill is None or math.isfinite(self.fill), "must have a finite fill value")

    @property
    def n_features(self) -> int:
        """The number of features it becomes."""
        return len(self.categories) if self.kind == "categories" else self.width

    @property
    def feature_names(self) -> list[str]:
        """`age`, or `protocol=tcp` for a category, or `pixels[0]` for a place in a list."""
        if self.kind == "categories":
            return [f"{self.name}={category}" for category in self.categories]
        return [self.name] if self.width == 1 else [f"{self.name}[{i}]" for i in range(self.width)]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "first": self.first,
            "categories": list(self.categories),
            "fill": self.fill,
            "width": self.width,
        }

    @classmethod
    def from_json(cls, record: Any) -> Column:  # noqa: ANN401
        """The column that `to_json` wrote; anything else raises `DataError`."""
        _check_fields(record, {"name", "kind", "first", "categories", "fill", "width"}, "a column of a recipe")
        if record["fill"] is not None and type(record["fill"]) not in (int, float):
            raise DataError(f"column {record['name']!r} of a recipe must have a number as fill value")
        return cls(**{**record, "categories": _texts(record["categories"], "categories")})


@dataclass(frozen=True)
class Recipe:
    """How raw rows become the rows of a data set.

    Attributes
    ----------
    n_features
        The number of features.
    columns
        The columns of a table, in the order of their features; None: numbered features (LIBSVM text, arrays).
    index_base
        The number of the first feature in LIBSVM text: 0 or 1.
    label, weight, query
        The names of these columns in a table.
    label_categories
        Text labels: label k stands for `label_categories[k]`.
    ignored
        Columns of the table that were left out, and are left out of new tables too.
    scaling
        How the features are scaled, after missing values were filled.
    hash_bits
        Features are hashes, of so many bits, of the numbers in LIBSVM text; None: they are the numbers.
    label_decimals
        Whether the labels of a table are numbers that are written with decimals, such as 11.0.
    """

    n_features: int
    columns: tuple[Column, ...] | None = None
    index_base: int = 1
    label: str | None = None
    weight: str | None = None
    query: str | None = None
    label_categories: tuple[str, ...] | None = None
    ignored: tuple[str, ...] = ()
    scaling: Scaling = field(default_factory=Scaling)
    hash_bits: int | None = None
    label_decimals: bool = False

    def __post_init__(self) -> None:
        if not _is_count(self.n_features):
            raise DataError(f"a recipe cannot have {self.n_features!r} features")
        if self.index_base not in (0, 1):
            raise DataError(f"features are numbered from 0 or 1, not {self.index_base!r}")
        for name in ("label", "weight", "query"):
            if not isinstance(getattr(self, name), str | None):
                raise DataError(f"the {name} column of a recipe must be named by a text")
        if type(self.label_decimals) is not bool:
            raise DataError("a recipe must say by true or false whether labels are written with decimals")
        if self.hash_bits is not None:
            if type(self.hash_bits) is not int or not 1 <= self.hash_bits <= MOST_BITS or self.columns is not None:
                raise DataError(f"features cannot be hashed to {self.hash_bits!r} bits")
            if self.n_features != 1 << self.hash_bits:
                raise DataError(f"hashes of {self.hash_bits} bits cannot make {self.n_features} features")
        if self.columns is not None:
            self._check_columns(self.columns)
        if self.scaling.n_features not in (None, self.n_features):
            raise DataError(f"a scaling of {self.scaling.n_features} features cannot serve {self.n_features}")

    def _check_columns(self, columns: tuple[Column, ...]) -> None:
        if len({column.name for column in columns}) < len(columns):
            raise DataError("a recipe names a column twice")
        at = 0
        for column in columns:
            if column.first != at:
                raise DataError(f"column {column.name!r} of a recipe starts at feature {column.first}, not {at}")
            at += column.n_features
        if at != self.n_features:
            raise DataError(f"the columns of a recipe make {at} features, not {self.n_features}")

    @property
    def feature_names(self) -> list[str] | None:
        """One name a feature, or None when features have only numbers."""
        if self.columns is None:
            return None
        return [name for column in self.columns for name in column.feature_names]

    @property
    def indicators(self) -> AnyArray:
        """True for the features that are indicators of a category."""
        marks = np.zeros(self.n_features, bool)
        for column in self.columns or ():
            if column.kind == "categories":
                marks[column.first : column.first + column.n_features] = True
        return marks

    def to_json(self) -> dict[str, Any]:
        """Plain JSON that `from_json` reads back exactly."""
        latest = self.label_decimals or self.scaling.left_to_intercept is not None
        version = _VERSION if latest else 1 if self.hash_bits is None else 2
        return {name: getattr(self, name) for name, since in _LATER.items() if since <= version} | {
            "version": version,
            "n_features": self.n_features,
            "columns": None if self.columns is None else [column.to_json() for column in self.columns],
            "index_base": self.index_base,
            "label": self.label,
            "weight": self.weight,
            "query": self.query,
            "label_categories": None if self.label_categories is None else list(self.label_categories),
            "ignored": list(self.ignored),
            "scaling": self.scaling.to_json(),
        }

    @classmethod
    def from_json(cls, record: Any) -> Recipe:  # noqa: ANN401
        """The recipe that `to_json` wrote; anything else raises `DataError`. No code is run."""
        if not isinstance(record, dict) or type(record.get("version")) is not int:
            raise DataError("a recipe must be a JSON object with a version")
        if record["version"] > _VERSION:
            raise DataError(
                f"this recipe has version {record['version']} and this beeline knows up to {_VERSION}; update beeline"
            )
        plain: tuple[str, ...] = ("n_features", "index_base", "label", "weight", "query")
        plain += tuple(name for name, since in _LATER.items() if since <= record["version"])
        _check_fields(record, {"version", "columns", "label_categories", "ignored", "scaling", *plain}, "a recipe")
        columns, categories = record["columns"], record["label_categories"]
        if not isinstance(columns, list | None):
            raise DataError("the columns of a recipe must be a list")
        return cls(
            **{name: record[name] for name in plain},
            columns=None if columns is None else tuple(Column.from_json(column) for column in columns),
            label_categories=None if categories is None else _texts(categories, "label_categories"),
            ignored=_texts(record["ignored"], "ignored columns"),
            scaling=Scaling.from_json(record["scaling"]),
        )


def _is_count(number: object) -> bool:
    return type(number) is int and number >= 0


def _texts(values: Any, what: str) -> tuple[str, ...]:  # noqa: ANN401
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise DataError(f"the {what} of a recipe must be a list of texts")
    return tuple(values)


def _check_fields(record: Any, names: set[str], what: str) -> None:  # noqa: ANN401
    if not isinstance(record, dict):
        raise DataError(f"{what} must be a JSON object")
    if unknown := sorted(set(record) - names):
        raise DataError(f"{what} has the unknown field {unknown[0]!r}; it may come from a newer beeline")
    if absent := sorted(names - set(record)):
        raise DataError(f"{what} lacks the field {absent[0]!r}")


def no_labels(recipe: Recipe | None, purpose: str = "") -> LabelError:
    """The error of rows without labels: by their recipe, in which column they should be."""
    absent = "" if recipe is None or recipe.label is None else f": there is no column {recipe.label!r}"
    sentence = f"the data have no labels{purpose}{absent}; name the column that holds them by "
    return LabelError(Sentence(sentence, Argument("label", "NAME")))
