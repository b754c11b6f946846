"""Files that a command is going to write, looked at before hours of work and not after."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path

from beeline.cli.options.common import refuse_same_file

__all__ = ["check_targets", "checked_file", "checked_model", "checked_page"]


def checked_file(name: str, parameter: str) -> Path:
    """The file, after a look whether it can be written."""
    from beeline.exceptions import ParameterError, SourceError

    target = Path(name)
    if target.is_dir():
        raise ParameterError(f"{name} is a folder; give the name of a file to write", parameter=parameter)
    if not target.parent.is_dir():
        raise SourceError(f"{name} cannot be written: there is no folder {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise SourceError(f"{name} cannot be written: the folder {target.parent} is read-only")
    return target


def checked_model(name: str) -> Path:
    """The model file to write; nothing else is written over."""
    from beeline.exceptions import ParameterError
    from beeline.model.file import is_model_file

    target = checked_file(name, "output")
    if target.exists() and not is_model_file(target):
        raise ParameterError(
            f"{name} is there already and is not a model; choose another name, or remove it", parameter="output"
        )
    return target


def checked_page(name: str) -> Path:
    """The page to write, after a look whether it can be drawn; nothing but a page is written over."""
    from beeline.exceptions import ParameterError
    from beeline.plotting import load_matplotlib
    from beeline.report.rendering import load_jinja

    target = checked_file(name, "report")
    if target.is_file() and not _begins_like_a_page(target):
        raise ParameterError(
            f"{name} is there already and is not a page; choose another name, or remove it", parameter="report"
        )
    load_matplotlib()
    load_jinja()
    return target


def check_targets(sources: list[str], *targets: str | None) -> None:
    """Refuse to write over what is read, or twice to one file."""
    from beeline.exceptions import ParameterError

    for target in targets:
        refuse_same_file(target, sources)
    for one, other in combinations(filter(None, targets), 2):
        if Path(one).absolute() == Path(other).absolute():
            raise ParameterError(f"{one} cannot be two files at once; choose different names", parameter="output")


def _begins_like_a_page(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(14).lower() == b"<!doctype html"
