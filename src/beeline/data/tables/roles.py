"""Which column of a table does what: features, label, weight, query id, or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from beeline._sentences import Argument, Sentence
from beeline._words import did_you_mean, shortened
from beeline.data.options import ReadOptions
from beeline.exceptions import DataError, ParameterError

__all__ = ["Roles", "assign_roles", "check_distinct", "check_same_names"]


@dataclass(frozen=True)
class Roles:
    """The columns of a table by what they do.

    Attributes
    ----------
    features
        In the order of the features they become.
    label, weight, query
        None: there is no such column.
    ignored
        Columns left out.
    """

    features: tuple[str, ...]
    label: str | None
    weight: str | None
    query: str | None
    ignored: tuple[str, ...]

    @property
    def wanted(self) -> list[str]:
        """Every column that is read."""
        return [*self.features, *self.targets]

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns beside the features."""
        return tuple(name for name in (self.label, self.weight, self.query) if name is not None)

    @property
    def targets_in_words(self) -> str:
        """What these columns are: `a label`, or `a label or query id`."""
        columns = {"label": self.label, "weight": self.weight, "query id": self.query}
        return "a " + " or ".join(word for word, name in columns.items() if name is not None)


def assign_roles(names: Sequence[str], options: ReadOptions, where: str, index: Sequence[str] = ()) -> Roles:
    """Give every column its role, by a recipe learned before or by what the user says.

    New tables are matched with a recipe by the names of their columns, in any order. A column that neither the recipe
    nor the user knows raises, as does one that the recipe needs and the table lacks; the label, weight and query
    columns of the recipe may be absent. Columns of an index are left out, unless somebody names them.
    """
    _check_options(names, options, where)
    roles = _roles(names, options, where, index)
    if options.targets:
        return roles
    return replace(roles, label=None, weight=None, query=None, ignored=roles.ignored + roles.targets)


def _roles(names: Sequence[str], options: ReadOptions, where: str, index: Sequence[str]) -> Roles:
    recipe = options.recipe
    if recipe is None:
        named = {options.label, options.weight, options.query, *options.ignore}
        left_out = tuple(name for name in index if name not in (*named, *options.text))
        features = tuple(name for name in names if name not in named and name not in left_out)
        if not features:
            raise DataError(f"{where}no column is left to be a feature")
        return Roles(features, options.label, options.weight, options.query, options.ignore + left_out)
    if recipe.columns is None:
        raise DataError(f"{where}the recipe is for numbered features, not for a table with named columns")
    given = set(names) - set(options.ignore)
    roles = Roles(
        tuple(column.name for column in recipe.columns),
        options.label or (recipe.label if recipe.label in given else None),
        options.weight or (recipe.weight if recipe.weight in given else None),
        options.query or (recipe.query if recipe.query in given else None),
        recipe.ignored + options.ignore,
    )
    for name in roles.features:
        if name not in given:
            raise DataError(f"{where}there is no column {name!r}, which the recipe needs{_other_columns(name, names)}")
    known = {*roles.wanted, *roles.ignored, *index, recipe.label, recipe.weight, recipe.query}
    strange = [name for name in names if name not in known]
    if strange and options.extra == "error":
        several = len(strange) > 1
        raise DataError(
            Sentence(
                f"{where}the recipe does not know column{'s' * several} {shortened([repr(name) for name in strange])}; "
                f"leave {'them' if several else 'it'} out with ",
                Argument("extra", "ignore"),
            )
        )
    return replace(roles, ignored=roles.ignored + tuple(strange))


def _check_options(names: Sequence[str], options: ReadOptions, where: str) -> None:
    if options.recipe is not None:
        kept = ("missing",) if options.missing != "drop" else ()
        options.refuse(("text", "scale", "max_categories", *kept), "a table that is read by a recipe learned before")
    else:
        options.refuse(("extra",), "a table whose columns are all learned from")
    said = [("label", options.label), ("weight", options.weight), ("query", options.query)]
    said += [("ignore", name) for name in options.ignore]
    taken: dict[str, str] = {}
    for option, name in said:
        if name is None:
            continue
        if name not in names:
            raise DataError(
                Sentence(f"{where}there is no column {name!r} (", Argument(option), f"){_other_columns(name, names)}")
            )
        if name in taken:
            raise ParameterError(f"column {name!r} cannot be both ", Argument(taken[name]), " and ", Argument(option))
        taken[name] = option
    for name in options.text:
        if name not in names:
            raise DataError(
                Sentence(f"{where}there is no column {name!r} (", Argument("text"), f"){_other_columns(name, names)}")
            )
        if taken.get(name) in ("weight", "ignore"):
            raise ParameterError(f"column {name!r} cannot be both ", Argument(taken[name]), " and ", Argument("text"))


def _other_columns(name: str, names: Sequence[str]) -> str:
    """The columns that may have been meant; all of them where none is like it."""
    if close := did_you_mean(name, names, cutoff=0.5):
        return f"; {close}"
    some = names if len(names) <= 10 else [*names[:5], "…", *names[-5:]]
    shown = ", ".join(repr(other) if other != "…" else other for other in some)
    return f"; the columns are {shown}{' …' if len(names) > 10 else ''}"


def check_distinct(names: Iterable[str], where: str, hint: str = "") -> None:
    """Raise when two columns have the same name."""
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise DataError(Sentence(f"{where}{count} columns have the name {name!r}; give each its own name", hint))


def check_same_names(first: Iterable[str], names: Iterable[str], where: str, first_file: str) -> None:
    """Raise when a further file of a table has other columns than the first one; their order may differ."""
    known, given = list(first), list(names)
    if absent := sorted(set(known).difference(given), key=known.index):
        raise DataError(f"{where}there is no column {absent[0]!r}, which {first_file} has")
    if extra := sorted(set(given).difference(known), key=given.index):
        raise DataError(f"{where}there is a column {extra[0]!r}, which {first_file} does not have")
