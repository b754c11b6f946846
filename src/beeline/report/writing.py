"""Pages become files."""

from __future__ import annotations

import os
from pathlib import Path

from beeline.data.files.atomic import replacing

__all__ = ["write_page"]


def write_page(path: str | os.PathLike[str], html: str) -> None:
    """Write a page, which appears under its name only when it is complete."""
    with replacing(path) as temporary:
        Path(temporary).write_text(html, encoding="utf-8")
