"""Figures as SVG inside a page: the same bytes for the same figure, in colours that the page decides."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

from beeline._forks import ForkSafeLock
from beeline.plotting import COLOURS, load_matplotlib
from beeline.report.values import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PageFigure", "Sizes", "page_figure", "themed_svg"]

# Texts stay texts: they can be read aloud, found and selected, and take the font of the page.
_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "beeline"}
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_PLACES = {"d", "x", "y", "width", "height", "transform"}  # a hundredth of a point is finer than any screen
_settings_lock = ForkSafeLock()


class Sizes(NamedTuple):
    """Inches; the style sheet shows one or the other, so that the texts have a readable size on both."""

    broad: tuple[float, float]
    slim: tuple[float, float]


class PageFigure(NamedTuple):
    """A figure of a page: the same picture for wide and for narrow screens, as markup, and what is written below."""

    pictures: Sequence[str]
    caption: str


def page_figure(
    draw: Callable[[tuple[float, float]], Figure],
    name: str,
    sizes: Sizes,
    label: str,
    caption: str,
    hints: Mapping[str, str] | None = None,
) -> PageFigure:
    """A figure with its caption: one picture for wide and one for narrow screens.

    Parameters
    ----------
    draw
        Makes the figure in a size.
    name
        Begins every id.
    label, caption, hints
        What a screen reader says, what is written below, and what appears where the pointer rests.
    """
    pictures = [
        inline_svg(partial(draw, size), f"{name}-{screen}", screen, label, hints or {})
        for screen, size in sizes._asdict().items()
    ]
    return PageFigure(pictures, caption)


def inline_svg(draw: Callable[[], Figure], prefix: str, screen: str, label: str, hints: Mapping[str, str]) -> str:
    """A figure as an `<svg>` element.

    The page says with which colour a role of `COLOURS` is shown, by a CSS variable of that name.

    Parameters
    ----------
    draw
        Makes the figure; called once, with matplotlib's own settings instead of the user's.
    prefix
        Begins every id, so that a page can have several figures.
    screen
        The class of the element, by which the style sheet knows the screens it is for.
    label
        What a screen reader says.
    hints
        From the gid of an artist to the text that appears when the pointer rests on it.
    """
    return themed_svg(_saved(draw), prefix, screen, label, hints)


def themed_svg(saved: bytes, prefix: str, screen: str, label: str, hints: Mapping[str, str]) -> str:
    """A picture that matplotlib saved as SVG, as an `<svg>` element in the colours of a page; as `inline_svg`."""
    root = ElementTree.fromstring(saved)
    view = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update({"viewBox": view, "role": "img", "aria-label": printable(label), "class": screen})
    variables = {colour: f"var(--{role})" for role, colour in COLOURS.items()}
    _clean(root, prefix, variables)
    for element in root.iter("g"):
        if hint := hints.get(element.get("id", "").removeprefix(f"{prefix}-")):
            title = ElementTree.Element("title")
            title.text = printable(hint)
            element.insert(0, title)
            element.set("class", "hint")
    return ElementTree.tostring(root, encoding="unicode")


def _saved(draw: Callable[[], Figure]) -> bytes:
    mpl, file = load_matplotlib(), io.BytesIO()
    # Settings exist only for the whole process: two threads must not restore each other's.
    with _settings_lock, mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        draw().savefig(file, format="svg", transparent=True, metadata=_NO_METADATA)
    return file.getvalue()


def _clean(parent: ElementTree.Element, prefix: str, variables: Mapping[str, str]) -> None:
    """Leave what HTML needs: no namespaces, no style sheet, no size; ids that are the page's own."""
    parent.tag = _local(parent.tag)
    parent.text = parent.text and parent.text.strip()
    parent.tail = None
    for child in list(parent):
        if _local(child.tag) in ("metadata", "style"):
            parent.remove(child)
        else:
            _clean(child, prefix, variables)
    attributes = {_local(name): value for name, value in parent.attrib.items()}
    parent.attrib.clear()
    for name, value in attributes.items():
        parent.set(name, _own(name, value, prefix, variables))


def _own(name: str, value: str, prefix: str, variables: Mapping[str, str]) -> str:
    if name == "id":
        return f"{prefix}-{value}"
    if name == "href":
        return value.replace("#", f"#{prefix}-", 1)
    if name == "clip-path":
        return value.replace("url(#", f"url(#{prefix}-", 1)
    if name == "style":
        value = re.sub(r"font: ([^;]*?)([\d.]+px) [^;]*", r"font-size: \2; font-weight: \1", value)
        return re.sub(r"#[0-9a-f]{6}", lambda found: variables.get(found[0], found[0]), value)
    if name in _PLACES:
        return re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]):.2f}", " ".join(value.split()))
    return value


def _local(name: str) -> str:
    return name.rpartition("}")[2]
