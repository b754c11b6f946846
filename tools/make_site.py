"""Build the site: pages to read, from docs/, examples/ and docstrings, into build/site; `make site`.

The pages are put together in a folder of their own, and Sphinx makes HTML of them; every warning, such as of a link
that leads nowhere, ends the build. What is built loads nothing from elsewhere.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from site_parts import charts, gallery, references

from beeline.plotting import COLOURS
from beeline.report.rendering import DARK_COLOURS

ROOT = Path(__file__).parent.parent
PARTS = Path(__file__).parent / "site_parts"
_LINK = re.compile(r"\]\((\.\./[^)#]+)")
_SECTION = re.compile(r"^## (.+)\n\n((?:- .*\n(?:  .*\n)*)+)", re.MULTILINE)


def main(target: Path = ROOT / "build" / "site") -> None:
    """Build the site in a folder; what it is made from stays beside it, for a look."""
    source = target.with_name(f"{target.name}-source")
    for folder in (source, target):
        shutil.rmtree(folder, ignore_errors=True)
    source.mkdir(parents=True)
    write_sources(source)
    from sphinx.cmd.build import build_main

    if code := build_main(["-q", "-W", "--keep-going", "-b", "html", str(source), str(target)]):
        sys.exit(code)
    shutil.rmtree(target / ".doctrees", ignore_errors=True)
    print(f"{target}: {len(list(target.rglob('*.html')))} pages; open {target / 'index.html'}")


def write_sources(source: Path) -> None:
    """Everything that Sphinx reads."""
    shutil.copytree(PARTS / "static", source / "static")
    shutil.copy(PARTS / "conf.py", source)
    (source / "static" / "colours.css").write_text(colours(), encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "figures", source / "figures")
    (source / "extra").mkdir()
    pages = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    pages |= references.command_pages() | references.name_pages()
    pages["benchmarks.md"] = charts.with_charts(pages["benchmarks.md"])
    pages |= gallery_pages(pages["gallery.md"], source)
    pages |= section_pages(pages["index.md"])
    for name, text in pages.items():
        path = source / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(with_files(text, source), encoding="utf-8")


def gallery_pages(about: str, source: Path) -> dict[str, str]:
    """The gallery, and a page for each script that docs/gallery.md names, in its order."""
    settings = source / "matplotlibrc"
    gallery.write_settings(settings)
    scripts = re.findall(r"\]\(\.\./examples/gallery/(\w+)\.py\)", about)
    if missing := {path.stem for path in (ROOT / "examples" / "gallery").glob("*.py")} ^ set(scripts):
        sys.exit(f"docs/gallery.md and examples/gallery do not agree on {', '.join(sorted(missing))}")
    examples = []
    for name in scripts:
        script = ROOT / "examples" / "gallery" / f"{name}.py"
        examples.append(gallery.run_example(script, source / "extra" / name, settings))
    cards = gallery.raw(f'<div class="gallery">{"".join(map(gallery.card, examples))}</div>')
    linked = re.sub(r"\.\./examples/(gallery/\w+)\.py", r"\1.md", about)
    title, _, rest = linked.partition("\n\n")
    page = "\n\n".join([title, cards, rest, references.toctree("gallery", scripts)])
    return {"gallery.md": page} | {f"gallery/{one.name}.md": gallery.example_page(one) for one in examples}


def section_pages(index: str) -> dict[str, str]:
    """A page for each section of docs/index.md, which is the navigation; one with a single link is that page."""
    pages, names = {}, []
    for title, links in _SECTION.findall(index):
        linked = re.findall(r"^- \[.*?\]\((?:\.\./)?([\w-]+)\.md\)", links, re.MULTILINE)
        if len(linked) == 1:
            names += linked
            continue
        name = re.sub(r"\W+", "-", title.lower())
        names.append(name)
        pages[f"{name}.md"] = f"# {title}\n\n{links}\n{references.toctree('', [one.lower() for one in linked])}"
    return pages | {"index.md": f"{index}\n{references.toctree('', names)}"}


def with_files(text: str, source: Path) -> str:
    """A page whose links to files outside docs/ lead to copies: Markdown becomes a page, the rest stays a file."""

    def copied(link: re.Match[str]) -> str:
        path = (ROOT / "docs" / link[1]).resolve()
        inside = path.relative_to(ROOT)
        if path.suffix != ".md":
            (source / "files" / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, source / "files" / inside)
            return f"](/files/{inside.as_posix()}"
        name = "-".join(inside.with_suffix("").parts).lower()
        words = path.read_text(encoding="utf-8").replace("](docs/", "](")
        (source / f"{name}.md").write_text(f"---\norphan: true\n---\n\n{words}", encoding="utf-8")
        return f"](/{name}.md"

    return _LINK.sub(copied, text)


def colours() -> str:
    """The colours of the roles, as the pages of reports have them, for the theme's light and dark."""
    rules = []
    for theme, of_role in (("light", COLOURS), ("dark", DARK_COLOURS)):
        variables = "".join(f"  --{role}: {colour};\n" for role, colour in of_role.items())
        rules.append(f'html[data-theme="{theme}"] {{\n{variables}}}\n')
    return "".join(rules)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
