"""The pages of the reference: one for each command and public name, by what writes docs/cli.md and docs/api.md."""

from __future__ import annotations

from typing import Any

import make_docs

__all__ = ["command_pages", "name_pages"]


def command_pages() -> dict[str, str]:
    """From names of files to Markdown: `cli.md` with what all commands share, and a page for each."""
    from beeline.cli.app import app

    commands: dict[str, Any] = app.commands  # type: ignore[attr-defined]
    shared = make_docs.cli_reference().partition("\n## beeline ")[0]
    table = [f"| [`beeline {name}`](cli/{name}.md) | {_first(command.help)} |" for name, command in commands.items()]
    overview = f"{shared}\n## Commands\n\n| | |\n|---|---|\n" + "\n".join(table) + "\n\n" + toctree("cli", commands)
    return {"cli.md": overview} | {
        f"cli/{name}.md": make_docs.described_command(name, command, level=1) + "\n"
        for name, command in commands.items()
    }


def name_pages() -> dict[str, str]:
    """From names of files to Markdown: `api.md` with what there is, and a page for each name."""
    pages, lines = {}, []
    for title, thing in make_docs.public_names():
        pages[f"api/{title}.md"] = make_docs.described(title, thing, level=1) + "\n"
        lines.append(f"| [`{title}`](api/{title}.md) | {_first(thing.__doc__ or '')} |")
    pages["api/beeline.exceptions.md"] = make_docs.exception_tree(level=1) + "\n"
    lines.append("| [`beeline.exceptions`](api/beeline.exceptions.md) | What is raised and warned of. |")
    head = "# The Python interface\n\n```python\nimport beeline\n```\n\n| | |\n|---|---|\n"
    tree = toctree("api", [name.removeprefix("api/").removesuffix(".md") for name in pages])
    return {"api.md": head + "\n".join(lines) + f"\n\n{tree}"} | pages


def toctree(folder: str, names: Any) -> str:
    """What a page is the head of, for the navigation; the page itself links to each."""
    prefix = f"{folder}/" if folder else ""
    return "\n".join(["```{toctree}", ":hidden:", "", *(f"{prefix}{name}" for name in names), "```"]) + "\n"


def _first(text: str) -> str:
    """The first sentence of a text, as the cell of a table."""
    return " ".join(text.strip().split("\n\n")[0].split()).replace("|", "\\|")
