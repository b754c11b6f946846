"""Help pages without noise: flags have no type, and the usage line no braces."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

from typer.core import TyperCommand, TyperGroup

__all__ = ["Command", "Group", "paragraphs"]


class _Quiet:
    def get_params(self, ctx: Any) -> Any:  # noqa: ANN401
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


class Command(_Quiet, TyperCommand):
    """A sub-command."""


class Group(_Quiet, TyperGroup):
    """The command that has sub-commands."""


def paragraphs(docstring: str | None) -> str:
    """The text with line breaks only between paragraphs, so that it can be broken to fit any terminal."""
    return "\n\n".join(" ".join(part.split()) for part in cleandoc(docstring or "").split("\n\n"))
