"""Files of named arrays: safetensors, written in a fixed order, with a checksum for what their owners describe them by.

Reading one never runs code.
"""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from beeline._types import AnyArray
from beeline.data.files.atomic import replacing
from beeline.exceptions import SourceError

__all__ = ["NotTensorsError", "Tensors", "checksum", "map_tensors", "read_tensors", "write_tensors"]

_TYPES = {
    "float64": "F64",
    "int64": "I64",
    "uint64": "U64",
    "float32": "F32",
    "int32": "I32",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}
_KINDS = {code: np.dtype(name) for name, code in _TYPES.items()}

Tensors = dict[str, AnyArray]


class NotTensorsError(Exception):
    """A file is no safetensors file, or was cut short; its owner knows what to say."""


def write_tensors(path: str | os.PathLike[str], metadata: dict[str, str], tensors: Tensors) -> None:
    """Write arrays, under a temporary name first; the same arrays give the same file."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(_header(metadata, tensors))
        for name in _in_order(tensors):
            file.write(np.ascontiguousarray(tensors[name]).reshape(-1).view(np.uint8).data)


def read_tensors(path: Path) -> tuple[dict[str, str], Tensors]:
    """(metadata, arrays)."""
    from safetensors import SafetensorError, safe_open

    try:
        path.open("rb").close()  # which says more about a file that cannot be opened
        with safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 — not a dictionary
            return file.metadata() or {}, tensors
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    except (SafetensorError, TypeError, ValueError, AttributeError, KeyError) as error:  # or of types NumPy has not
        raise NotTensorsError(str(error)) from error


def map_tensors(path: Path) -> tuple[dict[str, str], Tensors]:
    """As `read_tensors`, but the arrays are read as they are used: for those that may be larger than the memory."""
    from safetensors import SafetensorError, safe_open

    try:
        path.open("rb").close()
        with safe_open(path, framework="numpy") as file:  # which looks at sizes and places
            metadata = file.metadata() or {}
        raw = np.memmap(path, np.uint8, mode="r")
        start = 8 + int(raw[:8].view("<u8")[0])
        record = json.loads(raw[8:start].tobytes())
        record.pop("__metadata__", None)
        return metadata, {name: _mapped(raw[start:], its) for name, its in record.items()}
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    except (SafetensorError, TypeError, ValueError, AttributeError, KeyError) as error:
        raise NotTensorsError(str(error)) from error


def _mapped(raw: AnyArray, its: dict[str, Any]) -> AnyArray:
    start, stop = its["data_offsets"]
    array: AnyArray = raw[start:stop].view(_KINDS[its["dtype"]]).reshape(its["shape"])
    return array


def _header(metadata: dict[str, str], tensors: Tensors) -> bytes:
    """The header of a safetensors file: its length, then JSON, padded so that tensors are aligned.

    The safetensors package would write it in a random order, and the same model would not give the same file.
    """
    record: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name in _in_order(tensors):
        tensor = tensors[name]
        start, end = end, end + tensor.nbytes
        shape = list(tensor.shape)
        record[name] = {"dtype": _TYPES[tensor.dtype.name], "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _in_order(tensors: Tensors) -> list[str]:
    """Tensors of wide numbers first, so that all are aligned."""
    return sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))


def checksum(description: str, tensors: Tensors) -> str:
    """Of the description and every array."""
    import xxhash

    state = xxhash.xxh3_128(description.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        state.update(f"\n{name} {tensor.dtype.str} {tensor.shape}\n".encode())
        state.update(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)
    return state.hexdigest()
