"""Trees of labels in files: an edge a line, or dictionaries in JSON."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

from beeline.exceptions import FormatError, ParameterError, SourceError
from beeline.losses.label_tree import LabelTree

__all__ = ["read_label_tree"]


def read_label_tree(path: str | os.PathLike[str]) -> LabelTree:
    """The tree of a file.

    Parameters
    ----------
    path
        A file of lines `parent child`, or `parent child length`, between which there are spaces, or commas or tabs
        where names have spaces; lines that begin with `#` say nothing. Or one that ends in `.json`, of dictionaries as
        `LabelTree.from_nested` takes them, or of a list of edges.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SourceError(f"the tree of labels {str(path)!r} cannot be read: {reason}") from None
    except UnicodeDecodeError:
        raise FormatError("the tree of labels is not UTF-8 text", str(path)) from None
    edges = None if path.suffix.lower() == ".json" else _edges(text, str(path))
    try:
        return LabelTree.from_edges(edges) if edges is not None else _of_json(text, str(path))
    except ParameterError as error:
        raise FormatError(str(error), str(path)) from None


def _of_json(text: str, path: str) -> LabelTree:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise FormatError(f"the tree of labels is not JSON: {error}", path) from None
    are_edges = isinstance(found, list) and all(isinstance(edge, list) for edge in found)
    return LabelTree.from_edges(found) if are_edges else LabelTree.from_nested(found)


def _edges(text: str, path: str) -> list[list[str]]:
    edges = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        separator = next((mark for mark in "\t," if mark in line), None)
        words = line.split() if separator is None else next(csv.reader([line], delimiter=separator))
        edge = [word.strip() for word in words]
        if len(edge) not in (2, 3) or not all(edge):
            raise FormatError(
                f"an edge of the tree is a parent, a child and perhaps a length, not {line.strip()!r}; put commas "
                "between names that have spaces",
                path,
                number,
            )
        edges.append(edge)
    return edges
