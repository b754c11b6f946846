"""What a user may say about a source, gathered in one place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from beeline._numbers import as_choice
from beeline._sentences import Argument
from beeline._words import offer
from beeline.exceptions import ParameterError

if TYPE_CHECKING:
    from beeline.data.recipe.recipe import Recipe

__all__ = ["Extra", "Format", "Layout", "Missing", "ReadOptions", "Scale", "parse_size", "size_in_words"]

Format = Literal["auto", "libsvm", "csv", "parquet", "arrow", "npz"]
Missing = Literal["error", "zero", "mean", "drop"]
Extra = Literal["error", "ignore"]
Scale = Literal["none", "minmax", "standard", "maxabs", "unit-norm"]
Layout = Literal["auto", "dense", "sparse"]
Dtype = Literal["auto", "float64", "float32"]

_CHOICES = {"format": Format, "missing": Missing, "extra": Extra, "scale": Scale, "layout": Layout, "dtype": Dtype}
# What columns are called elsewhere, and the options that name them here.
_OTHERWISE = {"qid": "query", "group": "query", "groups": "query", "y": "label", "target": "label"}
_OTHERWISE |= {"sample_weight": "weight", "weights": "weight"}
_DELIMITER = re.compile(r"[^\r\n\"\0\x80-\U0010ffff]")


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How a source is read. Options that a source cannot honour raise `ParameterError`; none is ignored.

    Parameters
    ----------
    format
        The files' format; `auto` looks at their names and first bytes.
    label
        The column of a table that holds the labels.
    weight
        The column of a table that holds the weight of each row.
    query
        The column of a table that holds the query id of each row, for ranking.
    ignore
        Columns of a table to leave out.
    text
        Columns of a table that hold categories although they look like numbers.
    delimiter
        The character that separates the fields of a CSV file; seen in its first line when not given.
    header
        Whether the first line of a CSV file holds the names of the columns; if not, they are named f1, f2, …. When not
        said, names are expected, and a first line that looks like data raises.
    missing
        What missing values in a table become; `drop` leaves out the rows that have any, also in the label, and counts
        them.
    extra
        Columns of a table that the recipe does not know are an error, or ignored.
    max_categories
        How many categories a text column of a table may have; more are taken as a mistake.
    scale
        How features are scaled; learned from the data and recorded in the recipe.
    dtype
        Type of the stored values. Text is read exactly as float64 and then rounded to this type. `auto` is float64,
        with one exception: `beeline train` holds LIBSVM text from 8 MB on as float32 if no number has more than six
        digits. That changes values by at most 6e-8 of themselves; `float64` declines it.
    layout
        Dense rows or sparse rows; `auto` keeps a sparse source sparse and takes the smaller for tables.
    zero_based
        Whether features of LIBSVM text count from 0 or from 1; found out when not given.
    n_features
        The number of features of LIBSVM text; the largest index seen when not given.
    hash
        Fold the features of LIBSVM text into 2 to the power of this, by a hash of their numbers, where these are large.
        Values of features that fall together are summed.
    multilabel
        Whether LIBSVM labels are sets (`1,3,7`) or single; found out when not given.
    skip_bad_lines
        Count and report bad lines instead of stopping at the first.
    allow_nonfinite
        Let NaN and infinite values pass.
    recipe
        Read by this recipe, learned before, instead of learning one.
    targets
        Whether labels, weights and query ids are read; if not, nothing is asked of the columns of a table that hold
        them, and lines of LIBSVM text need no label.
    """

    format: Format = "auto"
    label: str | None = None
    weight: str | None = None
    query: str | None = None
    ignore: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    delimiter: str | None = None
    header: bool | None = None
    missing: Missing = "error"
    extra: Extra = "error"
    max_categories: int = 100_000
    scale: Scale = "none"
    dtype: Dtype = "auto"
    layout: Layout = "auto"
    zero_based: bool | None = None
    n_features: int | None = None
    hash: int | None = None
    multilabel: bool | None = None
    skip_bad_lines: bool = False
    allow_nonfinite: bool = False
    recipe: Recipe | None = None
    targets: bool = True

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            as_choice(name, getattr(self, name), get_args(choices))
        for name in ("label", "weight", "query", "delimiter"):
            if not isinstance(value := getattr(self, name), str | None):
                raise ParameterError(Argument(name), f" must be text, not {value!r}; write it in quotes")
        for name in ("ignore", "text"):
            if isinstance(value := getattr(self, name), str) or not all(isinstance(column, str) for column in value):
                raise ParameterError(Argument(name), f" must be a list of names, not {value!r}")
            object.__setattr__(self, name, tuple(value))  # as a recipe keeps them
        if self.recipe is not None and not hasattr(self.recipe, "feature_names"):
            raise ParameterError(
                Argument("recipe"), f" must be a Recipe, such as that of open_store(path), not {self.recipe!r}"
            )
        if self.delimiter is not None and not _DELIMITER.fullmatch(self.delimiter):
            raise ParameterError(
                Argument("delimiter"), f" must be one ASCII character other than a quote, not {self.delimiter!r}"
            )
        if self.n_features is not None and self.n_features < 1:
            raise ParameterError(Argument("n_features"), f" must be at least 1, not {self.n_features}")
        if self.hash is not None and not 1 <= self.hash <= 30:
            raise ParameterError(Argument("hash"), f" must be a number of bits from 1 to 30, not {self.hash}")
        if self.max_categories < 1:
            raise ParameterError(Argument("max_categories"), f" must be at least 1, not {self.max_categories}")

    @classmethod
    def named(cls, given: Mapping[str, Any]) -> ReadOptions:
        """The options that somebody gave by name; where there is none of that name, the one like it is asked about."""
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                hint = f"take {_OTHERWISE[name]}=" if name in _OTHERWISE else offer(name, known)
                raise ParameterError(f"reading has no option {name!r}; {hint}", parameter=name)
        return cls(**given)

    @property
    def fills_missing(self) -> bool:
        """Whether missing values are filled."""
        return self.missing in ("zero", "mean")

    @property
    def value_type(self) -> Literal["float64", "float32"]:
        """The type that values have where nothing smaller is asked for."""
        return "float32" if self.dtype == "float32" else "float64"

    def refuse(self, names: Iterable[str], kind: str) -> None:
        """Raise when one of the named options was given, because this kind of source cannot honour it."""
        refused = set(names)
        for field in fields(self):
            if field.name in refused and getattr(self, field.name) != field.default:
                raise ParameterError(Argument(field.name), f" has no meaning for {kind}; leave it out")


_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_size(text: str | int) -> int:
    """Bytes from a number or a text such as `512M`, `4G` or `1.5GiB`."""
    if isinstance(text, int) and not isinstance(text, bool):
        size = text
    elif not isinstance(text, str):
        raise ParameterError(f"{text!r} is not a size; write it as 512M or 4G", parameter="memory")
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?\s*", text.upper())
        if not match:
            raise ParameterError(f"{text!r} is not a size; write it as 512M or 4G", parameter="memory")
        size = int(float(match[1]) * _UNITS[match[2]])
    if size <= 0:
        raise ParameterError(f"a size must be positive, not {text!r}", parameter="memory")
    return size


def size_in_words(size: int) -> str:
    """Bytes as people say them: `540 MB`, `1.5 GB`."""
    for unit, name in ((2**30, "GB"), (2**20, "MB"), (2**10, "KB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"
