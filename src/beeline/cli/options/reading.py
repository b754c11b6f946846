"""The options that say how a source is read: one for every field of `ReadOptions`, documented there."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from beeline.cli.options.declaring import Option
from beeline.cli.options.groups import with_parameters
from beeline.cli.options.names import split_names
from beeline.data.options import ReadOptions

__all__ = ["with_read_options"]

# Where the option is not simply the field's name.
_SPELLED = {
    "query": "--qid",
    "header": "--header/--no-header",
    "zero_based": "--zero-based/--one-based",
    "multilabel": "--multilabel/--single-label",
}
_METAVARS = {
    "label": "COLUMN",
    "weight": "COLUMN",
    "query": "COLUMN",
    "ignore": "COLUMNS",
    "text": "COLUMNS",
    "delimiter": "CHARACTER",
    "n_features": "N",
    "hash": "BITS",
    "max_categories": "N",
    "format": "FORMAT",
    "missing": "HOW",
    "extra": "HOW",
    "scale": "HOW",
    "dtype": "TYPE",
    "layout": "LAYOUT",
}
_COLUMNS = ("label", "weight", "query", "ignore", "text")
_PANELS = {
    "Tables (CSV, Parquet, Arrow)": (*_COLUMNS, "delimiter", "header", "missing", "extra", "max_categories"),
    "LIBSVM text": ("zero_based", "n_features", "hash", "multilabel", "skip_bad_lines"),
    "Values": ("scale", "dtype", "layout", "allow_nonfinite"),
}
# An object, which `convert --like STORE` takes from a store; and what each command knows of itself.
_NOT_OPTIONS = {"recipe", "targets"}


def with_read_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `ReadOptions`; it gets those that were used as the dictionary `reading`."""
    names = [field.name for field in fields(ReadOptions) if field.name not in _NOT_OPTIONS]
    return with_parameters("reading", _parameters(names), _several_as_tuples)(command)


def _several_as_tuples(given: dict[str, Any]) -> dict[str, Any]:
    """Lists of names, of which each value may have several, as `ReadOptions` has them."""
    return {
        name: tuple(one for several in value for one in split_names(several)) if isinstance(value, list) else value
        for name, value in given.items()
    }


def _spelled(name: str) -> str:
    return _SPELLED.get(name, "--" + name.replace("_", "-"))


def _parameters(names: list[str]) -> list[inspect.Parameter]:
    hints = get_type_hints(ReadOptions, localns={"Recipe": object})
    defaults: dict[str, Any] = {field.name: field.default for field in fields(ReadOptions)}
    texts = _documentation(ReadOptions.__doc__ or "")
    panels = {name: panel for panel, members in _PANELS.items() for name in members}
    parameters = []
    for name in names:
        option = Option(
            _help(texts.get(name, ""), hints[name]),
            (_spelled(name),),
            metavar=_METAVARS.get(name),
            panel=panels.get(name, "Options"),
            show_default=defaults[name] is not None and defaults[name] not in (False, ()),
        )
        several = get_origin(hints[name]) is tuple
        kind = list[get_args(hints[name])[0]] if several else hints[name]  # type: ignore[misc]
        default = list(defaults[name]) if several else defaults[name]
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
        )
    return parameters


def _help(text: str, hint: Any) -> str:  # noqa: ANN401
    if get_origin(hint) is tuple:
        return f"{text} Several: a,b, or given several times."
    if get_origin(hint) is not Literal:
        return text
    return f"{text} One of {', '.join(get_args(hint))}."


def _documentation(docstring: str) -> dict[str, str]:
    """The description of each parameter in a numpydoc docstring, without its backticks."""
    _, _, body = inspect.cleandoc(docstring).partition("Parameters\n----------\n")
    texts: dict[str, str] = {}
    for names, text in re.findall(r"^(\w[\w, ]*)\n((?:[ ]{4}.*\n?)+)", body, flags=re.MULTILINE):
        sentence = " ".join(text.replace("`", "").split())
        texts.update(dict.fromkeys(names.split(", "), sentence))
    return texts
