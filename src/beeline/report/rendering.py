"""Pages from templates: what comes from outside is text, never markup, unless a template says otherwise."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from beeline import __version__
from beeline.exceptions import MissingDependencyError
from beeline.plotting import COLOURS
from beeline.report.values import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DARK_COLOURS", "Cell", "KeyFigure", "Row", "Table", "load_jinja", "render"]

# The roles of `COLOURS` on a dark ground.
DARK_COLOURS = {
    "sheet": "#19212b",
    "ink": "#e6ebf2",
    "muted": "#9aa7b8",
    "grid": "#2c3644",
    "score": "#74b0ff",
    "warm": "#ff9d57",
    "cold": "#bba9ea",
    "best": "#4fd6ac",
    "stop": "#ff8fab",
}


class KeyFigure(NamedTuple):
    """A large figure, with its spread in small where it has one."""

    name: str
    value: str
    spread: str | None = None


class Cell(NamedTuple):
    """A cell of a table; `hint` appears where the pointer rests, `share` is the length of a bar below, at most 1."""

    value: str
    hint: str | None = None
    share: float | None = None


class Row(NamedTuple):
    """A row of a table: its name, which stands first, and its cells."""

    name: object
    cells: Sequence[Cell]
    best: bool = False


class Table(NamedTuple):
    """A table with a caption; the first column has the rows' names."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Row]


def load_jinja() -> Any:  # noqa: ANN401
    """The package that fills templates in, or a sentence that says how to get it."""
    try:
        import jinja2
    except ImportError:
        raise MissingDependencyError.of_extra("pages need", "plot") from None
    return jinja2


def render(template: str, **values: Any) -> str:  # noqa: ANN401
    """A whole page; all values are shown as people read them, and escaped.

    An environment serves one page: Jinja's cache of templates has a lock, which a process that is forked meanwhile
    would find locked, and to compile the templates anew takes a thirtieth of what drawing a figure takes.
    """
    jinja2 = load_jinja()
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        finalize=shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"version": __version__, "colours": {"light": COLOURS, "dark": DARK_COLOURS}}
    return str(environment.get_template(template).render(values))


def _source(name: str) -> str:
    return files("beeline.report").joinpath("templates", name).read_text(encoding="utf-8")
