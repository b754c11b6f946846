"""HTML from data: what comes from outside is text, never markup."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib.resources import files

from beeline import __version__
from beeline.plotting import COLOURS

__all__ = [
    "concern_box",
    "decimals",
    "definitions",
    "key_figures",
    "number",
    "page",
    "printable",
    "section",
    "table",
    "text",
]

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
# Nothing is fetched and no script runs, whatever a page has been given to show.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(title: str, parts: Iterable[str]) -> str:
    """A whole page around the parts of its body, which are markup already."""
    body = "\n".join(part for part in parts if part)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text(title)}</title>
<link rel="icon" href="data:,">
<style>
{_style()}
</style>
</head>
<body>
<main>
{body}
</main>
<footer>beeline {text(__version__)}</footer>
</body>
</html>
"""


def _style() -> str:
    light, dark = (
        " ".join(f"--{role}: {colour};" for role, colour in colours.items()) for colours in (COLOURS, DARK_COLOURS)
    )
    sheet = files("beeline.report").joinpath("page.css").read_text(encoding="utf-8")
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{sheet.strip()}"


def text(value: object) -> str:
    """A value as people read it, made harmless."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(text(item) for item in value)
    return escape(printable(str(value)))


def printable(value: str) -> str:
    """Without the control characters that HTML does not allow, and that may turn the direction of a line."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in value)


def number(value: float, digits: int = 6) -> str:
    """A number with as many digits as people read; a dash for none."""
    if math.isnan(value):
        return "–"
    if abs(value) < 1e15 and (value == int(value) or abs(value) >= 10 ** (digits - 1)):
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}".replace("inf", "∞")


def decimals(values: Iterable[float], significant: int) -> Callable[[float], str]:
    """How to write the numbers of a column: with as many decimals as the largest needs for its significant digits.

    Whole numbers need none.
    """
    known = [abs(value) for value in values if math.isfinite(value)]
    largest = max(known, default=0.0)
    whole = all(value == int(value) for value in known)
    places = 0 if whole else max(0, significant - 1 - math.floor(math.log10(largest)))
    if largest >= 1e9 or places > 9:
        return lambda value: number(value, significant)
    return lambda value: f"{value:,.{places}f}" if math.isfinite(value) else number(value)


def section(heading: str, content: str) -> str:
    """A part of a page under its heading; the content is markup already."""
    return f"<section>\n<h2>{text(heading)}</h2>\n{content}\n</section>"


def concern_box(sentences: Sequence[str]) -> str:
    """What is to be known before all else; nothing where there is nothing."""
    if not sentences:
        return ""
    items = "\n".join(f"<li>{text(sentence[:1].upper() + sentence[1:])}.</li>" for sentence in sentences)
    return f'<aside class="concerns" aria-label="Warnings">\n<h2>Before you use it</h2>\n<ul>\n{items}\n</ul>\n</aside>'


def key_figures(figures: Iterable[tuple[str, str]]) -> str:
    """Names with large figures, which are markup already."""
    items = "\n".join(f"<div><dt>{text(name)}</dt><dd>{value}</dd></div>" for name, value in figures)
    return f'<dl class="figures">\n{items}\n</dl>'


def definitions(facts: Iterable[tuple[str, object]]) -> str:
    """A table of names and values."""
    rows = "\n".join(f'<tr><th scope="row">{text(name)}</th><td>{text(value)}</td></tr>' for name, value in facts)
    return f'<table class="facts">\n<tbody>\n{rows}\n</tbody>\n</table>'


def table(caption: str, columns: Sequence[str], rows: Iterable[str]) -> str:
    """A table of rows, which are markup already, that scrolls sideways, without its caption, where it is too wide."""
    head = "".join(f'<th scope="col">{text(column)}</th>' for column in columns)
    body = "\n".join(rows)
    return (
        f'<p class="caption">{text(caption)}</p>\n'
        f'<div class="wide" role="region" tabindex="0" aria-label="{text(caption)}">\n<table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )
