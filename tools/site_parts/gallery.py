"""The gallery: every script of examples/gallery is run, and becomes a page with what it drew, printed and wrote."""

from __future__ import annotations

import ast
import html
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from beeline.plotting import COLOURS
from beeline.report.svg import themed_svg

__all__ = ["Example", "card", "example_page", "run_example", "write_settings"]

_LINES = ("score", "warm", "best", "stop", "cold")  # roles of colours, in the order in which lines get them


@dataclass(frozen=True)
class Example:
    """A script that was run: its name, what it says of itself, its source, what it printed and the files it wrote."""

    name: str
    title: str
    about: str
    source: str
    printed: str
    pictures: list[Path]
    pages: list[Path]

    def picture(self, path: Path, prefix: str) -> str:
        """A picture in the colours of the page."""
        return themed_svg(path.read_bytes(), prefix, "drawn", self.title, {})


def write_settings(path: Path) -> None:
    """Settings of matplotlib by which pictures have the colours of our roles, and texts stay texts."""
    ink, grid, muted = (COLOURS[role].removeprefix("#") for role in ("ink", "grid", "muted"))
    colours = ", ".join(repr(COLOURS[role].removeprefix("#")) for role in _LINES)  # there # begins a comment
    settings = {
        "axes.prop_cycle": f"cycler('linestyle', ['-', '--']) * cycler('color', [{colours}])",
        "axes.edgecolor": muted,
        "axes.labelcolor": ink,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "grid.color": grid,
        "legend.labelcolor": ink,
        "savefig.transparent": True,
        "svg.fonttype": "none",
        "svg.hashsalt": "beeline",
        "text.color": ink,
        "xtick.color": ink,
        "ytick.color": ink,
    }
    path.write_text("".join(f"{name}: {value}\n" for name, value in settings.items()), encoding="utf-8")


def run_example(script: Path, folder: Path, settings: Path) -> Example:
    """Run a script that writes into a folder; a warning is an error."""
    folder.mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), str(folder)],
        env=os.environ | {"MATPLOTLIBRC": str(settings)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{script} failed:\n{done.stderr}")
    source = script.read_text(encoding="utf-8")
    title, _, about = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
    found = sorted(folder.iterdir())
    by_kind = [[path for path in found if path.suffix == suffix] for suffix in (".svg", ".html")]
    if not any(by_kind):
        sys.exit(f"{script} wrote neither a picture (.svg) nor a page (.html)")
    return Example(script.stem, title.removesuffix("."), about, source, done.stdout, *by_kind)


def example_page(example: Example) -> str:
    """The page of an example, as Markdown: the picture, what was printed, the program."""
    parts = [f"# {example.title}", example.about]
    for path in example.pictures:
        parts.append(raw(f'<div class="picture">{example.picture(path, f"{example.name}-{path.stem}")}</div>'))
    for path in example.pages:
        name, address = html.escape(path.stem), f"../{example.name}/{path.name}"
        parts.append(raw(f'<p><a href="{address}">The page of the {name}, by itself</a></p>'))
        parts.append(raw(f'<iframe class="page-frame" src="{address}" title="The page of the {name}"></iframe>'))
    if example.printed:
        parts.append(f"It prints:\n\n```text\n{example.printed.rstrip()}\n```")
    code = re.sub(r'^"""(.*?)\n.*?^"""', r'"""\1"""', example.source, count=1, flags=re.DOTALL | re.MULTILINE)
    parts.append(f"The program, `python examples/gallery/{example.name}.py FOLDER`:\n\n```python\n{code.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def card(example: Example) -> str:
    """A link to the page of an example, with a small picture."""
    if example.pictures:
        picture = example.picture(example.pictures[0], f"card-{example.name}")
    else:
        address = f"{example.name}/{example.pages[0].name}"
        picture = f'<iframe class="paper" src="{address}" title="" tabindex="-1" scrolling="no"></iframe>'
    return f'<a href="gallery/{example.name}.html">{picture}<strong>{html.escape(example.title)}</strong></a>'


def raw(markup: str) -> str:
    """Markup that goes onto the page as it is."""
    return f"```{{raw}} html\n{markup}\n```"
