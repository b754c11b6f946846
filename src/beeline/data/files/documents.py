"""Documents: what is made of numbers, texts, lists, dictionaries and arrays, each in one file.

A safetensors file: the arrays, and a description in JSON of all else, with a checksum over both. It is written under a
temporary name first, and reading one never runs code.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from beeline.data.files.tensors import NotTensorsError, Tensors, checksum, map_tensors, write_tensors
from beeline.exceptions import SourceError

__all__ = ["Document", "from_plain", "read_document", "to_plain", "write_document"]

Document = dict[str, Any]
_ARRAY, _NUMBER = "$array", "$number"  # the keys of what JSON has no word for


def write_document(path: str | os.PathLike[str], kind: str, version: int, document: Document) -> None:
    """Write a document; the same one gives the same bytes."""
    tensors: Tensors = {}
    description = json.dumps(to_plain(document, tensors), ensure_ascii=False, allow_nan=False)
    metadata = {"format": kind, "version": str(version), "description": description}
    write_tensors(path, metadata | {"checksum": checksum(description, tensors)}, tensors)


def read_document(path: Path, kind: str, version: int, what: str) -> Document:
    """Read what `write_document` has written; its arrays are read as they are used, and cannot be changed.

    Parameters
    ----------
    kind, version
        As they were written.
    what
        What it is, and how its owner calls it in a sentence, such as "checkpoint".
    """
    try:
        metadata, tensors = map_tensors(path)
    except NotTensorsError:
        raise SourceError(f"{path} is no {what}, or was cut short; remove it to begin anew") from None
    if metadata.get("format") != kind or not metadata.get("version", "").isdecimal():
        raise SourceError(f"{path} is no {what}; remove it, or choose another folder")
    if int(metadata["version"]) != version:
        whose = "a newer" if int(metadata["version"]) > version else "an older"
        raise SourceError(f"{path} was written by {whose} beeline; finish it with that one, or remove it to begin anew")
    description = metadata.get("description", "")
    if metadata.get("checksum") != checksum(description, tensors):
        raise SourceError(f"{path} was altered after it was written; remove it to begin anew")
    document: Document = from_plain(json.loads(description), tensors)
    return document


def to_plain(value: Any, tensors: Tensors, prefix: str = "") -> Any:  # noqa: ANN401
    """The value in JSON, with the names of arrays, which go among the tensors; numbers that JSON lacks are texts."""
    if isinstance(value, np.ndarray):
        name = f"{prefix}{len(tensors):06d}"
        tensors[name] = value
        return {_ARRAY: name}
    if isinstance(value, Mapping):
        return {str(key): to_plain(one, tensors, prefix) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(one, tensors, prefix) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return {_NUMBER: repr(value)} if isinstance(value, float) and not math.isfinite(value) else value


def from_plain(value: Any, tensors: Tensors) -> Any:  # noqa: ANN401
    """The value that `to_plain` described."""
    if isinstance(value, list):
        return [from_plain(one, tensors) for one in value]
    if not isinstance(value, dict):
        return value
    if _ARRAY in value:
        return tensors[value[_ARRAY]]
    return float(value[_NUMBER]) if _NUMBER in value else {key: from_plain(one, tensors) for key, one in value.items()}
