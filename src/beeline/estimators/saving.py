"""What an estimator has learned, as its copies, pickles and skops files have it: one text in JSON, and arrays.

skops names every class that a file would make, and loads none that its reader does not trust. So the state of an
estimator names no class but the estimator's own: results, reports, recipes and the rest are written by their fields,
and made again by their constructors, which look at what they are given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from beeline import exceptions
from beeline.data.files.documents import from_plain, to_plain
from beeline.data.files.tensors import Tensors
from beeline.data.recipe.recipe import Column, Recipe
from beeline.data.recipe.scaling import Scaling
from beeline.estimators.learned import Learned
from beeline.exceptions import CorruptModelError
from beeline.fitting.online import Online
from beeline.model import Model, Report
from beeline.selection import PathPoint, Selection
from beeline.selection.result import End
from beeline.solvers.result import Result, Status, TracePoint
from beeline.solvers.state import State
from beeline.training.concerns import Concern
from beeline.training.run import Trained

__all__ = ["restored", "saved"]

_WARNINGS = {
    name: kind for name, kind in vars(exceptions).items() if isinstance(kind, type) and issubclass(kind, Warning)
}
_KIND = "$kind"  # the key of what is made again by its kind
_RECORDS = (Column, Concern, Learned, Model, PathPoint, Recipe, Report, Result, Scaling, Selection, State, TracePoint)
_MAKERS: dict[str, Callable[..., Any]] = {
    **{kind.__name__: kind for kind in (*_RECORDS, Trained)},
    "Online": Online.of_record,
    "Status": lambda name: Status[name],
    "End": lambda name: End[name],
    "tuple": lambda items: (*items,),
    "warning": lambda name: _WARNINGS[name],
}


def saved(learned: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as a text and arrays."""
    arrays: Tensors = {}
    text = json.dumps(to_plain(_described(learned), arrays), ensure_ascii=False)
    return {"text": text, "arrays": arrays}


def restored(document: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that `saved` has described; raises `CorruptModelError` where they make no sense."""
    try:
        return dict(_made(from_plain(json.loads(document["text"]), document["arrays"])))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptModelError(f"the estimator was altered after it was saved: {error}") from error


def _described(value: Any) -> Any:  # noqa: ANN401
    """The value in dictionaries, lists, arrays, texts and numbers."""
    if (of_kind := _fields_of(value)) is not None:
        kind, given = of_kind
        return {_KIND: kind, **{name: _described(one) for name, one in given.items()}}
    if isinstance(value, Mapping):
        return {name: _described(one) for name, one in value.items()}
    return [_described(one) for one in value] if isinstance(value, list) else value


def _fields_of(value: Any) -> tuple[str, dict[str, Any]] | None:  # noqa: ANN401
    """(the kind of a value, what its maker is given); None of a value that is plain already."""
    if isinstance(value, Online):
        return "Online", value.to_record()
    if isinstance(value, Enum):
        return type(value).__name__, {"name": value.name}
    if isinstance(value, type):
        return "warning", {"name": value.__name__}
    if is_dataclass(value):
        return type(value).__name__, {its.name: getattr(value, its.name) for its in fields(value)}
    if isinstance(value, TracePoint | Concern):
        return type(value).__name__, value._asdict()
    return ("tuple", {"items": list(value)}) if isinstance(value, tuple) else None


def _made(value: Any) -> Any:  # noqa: ANN401
    """The value that `_described` took apart."""
    if isinstance(value, list):
        return [_made(one) for one in value]
    if not isinstance(value, dict):
        return value
    given = {name: _made(one) for name, one in value.items() if name != _KIND}
    return _MAKERS[value[_KIND]](**given) if _KIND in value else given
