"""What all figures have in common: matplotlib when it is there, colours by their role, light axes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import TYPE_CHECKING, Any

from beeline.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "SMALL", "escape_math", "is_narrow", "lighten", "line_styles", "load_matplotlib", "new_figure"]

# One colour for each role and no colour twice, so that a page can give every role another one on a dark ground.
# They are told apart by people who do not tell red from green, and by their lightness in print.
COLOURS = {
    "sheet": "#ffffff",
    "ink": "#1d2733",
    "muted": "#5b6878",
    "grid": "#dfe4ea",
    "score": "#1c5fb8",
    "warm": "#c4560b",
    "cold": "#7a6a9e",
    "best": "#0b7a5e",
    "stop": "#a12a4b",
}
SMALL = 8.5  # points, of texts inside a figure
_NARROW = 6.0  # inches
# Where there are more lines than colours, they are told apart by their dashes too.
_ROLES = ("score", "warm", "best", "stop", "cold")
_STROKES = ("solid", (0, (5, 2)), (0, (1.5, 1.5)))


def load_matplotlib() -> Any:  # noqa: ANN401
    """The package that draws, or a sentence that says how to get it."""
    try:
        import matplotlib.figure
    except ImportError:
        raise MissingDependencyError.of_extra("plots need", "plot") from None
    return matplotlib


def new_figure(size: tuple[float, float] = (9.0, 5.6)) -> Figure:
    """A figure of some inches, that belongs to no window."""
    load_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained", facecolor=COLOURS["sheet"])


def is_narrow(figure: Figure) -> bool:
    """Whether a figure is too narrow for things beside each other."""
    return bool(figure.bbox.width / figure.dpi < _NARROW)


def escape_math(words: str) -> str:
    """A name of the user's, which must not be taken for a formula."""
    return "".join(c if c.isprintable() else " " for c in words).replace("$", r"\$")


def line_styles() -> Iterator[dict[str, Any]]:
    """Looks of lines that are told apart, one after the other without end."""
    return cycle({"color": COLOURS[role], "linestyle": stroke} for stroke in _STROKES for role in _ROLES)


def lighten(*panels: Axes) -> None:
    """A light look: small numbers, neither frames nor marks."""
    for axes in panels:
        axes.tick_params(which="both", length=0, labelsize=SMALL, labelcolor=COLOURS["ink"])
        for spine in axes.spines.values():
            spine.set_visible(False)
