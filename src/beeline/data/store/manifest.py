"""The manifest: what a store holds, as plain JSON with a checksum over itself."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beeline._types import Ints
from beeline.data.files.sealed import checksum_text, seal, unseal
from beeline.data.store.form import Form
from beeline.exceptions import CorruptStoreError, StoreError, StoreVersionError

__all__ = ["FORMAT", "MANIFEST", "VERSION", "ChunkTable", "Manifest", "PartInfo", "plain_number"]

FORMAT = "beeline-store"
VERSION = 1
MANIFEST = "manifest.json"

_PARTIAL = re.compile(r"\..+\.partial-\d+-\w+")


@dataclass(frozen=True, eq=False)
class ChunkTable:
    """The chunks of a part, in order; they lie one behind the other.

    Attributes
    ----------
    rows, nnz, nbytes
        The size of each chunk: rows, stored entries, bytes in the file.
    checksum
        XXH3-64 of those bytes.
    target_checksum
        XXH3-64 of the labels, weights and query ids alone, which are also read without the rows; None where there are
        none, and in stores of a beeline that did not write them.
    """

    rows: Ints
    nnz: Ints
    nbytes: Ints
    checksum: NDArray[np.uint64]
    target_checksum: NDArray[np.uint64] | None = None

    def to_json(self) -> dict[str, Any]:
        """Columns as lists."""
        columns = {
            "rows": self.rows.tolist(),
            "nnz": self.nnz.tolist(),
            "bytes": self.nbytes.tolist(),
            "checksum": _texts(self.checksum),
        }
        # Left out where it is not known: the bytes of an older manifest, by which an index knows its store, stay so.
        return columns if self.target_checksum is None else columns | {"target_checksum": _texts(self.target_checksum)}

    @staticmethod
    def from_json(document: dict[str, Any]) -> ChunkTable:
        """The table that `to_json` described."""
        rows, nnz, nbytes = (np.array(document[name], np.int64) for name in ("rows", "nnz", "bytes"))
        checksum = _numbers(document["checksum"])
        of_targets = _numbers(document["target_checksum"]) if "target_checksum" in document else None
        lengths = {len(column) for column in (rows, nnz, nbytes, checksum, of_targets) if column is not None}
        if len(lengths) > 1:
            raise ValueError("the columns of a chunk table differ in length")
        return ChunkTable(rows, nnz, nbytes, checksum, of_targets)


def _texts(checksums: NDArray[np.uint64]) -> list[str]:
    return [checksum_text(c) for c in checksums.tolist()]


def _numbers(texts: list[str]) -> NDArray[np.uint64]:
    return np.array([int(text, 16) for text in texts], np.uint64)


@dataclass(frozen=True, eq=False)
class PartInfo:
    """One Arrow IPC file of a store.

    Attributes
    ----------
    name, nbytes
        The file's name in the store's folder, and its size.
    start
        Where the first chunk begins; what lies before is Arrow's header, what lies behind the last is its footer.
    frame
        XXH3-64 of the header followed by the footer.
    chunks
        The record batches.
    """

    name: str
    nbytes: int
    start: int
    frame: int
    chunks: ChunkTable

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "name": self.name,
            "bytes": self.nbytes,
            "rows": int(self.chunks.rows.sum()),
            "nnz": int(self.chunks.nnz.sum()),
            "start": self.start,
            "frame": checksum_text(self.frame),
            "chunks": self.chunks.to_json(),
        }

    @staticmethod
    def from_json(document: dict[str, Any]) -> PartInfo:
        """The part that `to_json` described."""
        chunks = ChunkTable.from_json(document["chunks"])
        name = str(document["name"])
        if Path(name).name != name:
            raise ValueError(f"{name!r} is not the name of a file in the store's folder")
        return PartInfo(name, int(document["bytes"]), int(document["start"]), int(document["frame"], 16), chunks)


@dataclass(frozen=True, eq=False)
class Manifest:
    """What a store holds.

    Attributes
    ----------
    n_rows, n_features, nnz
        The size.
    form
        The columns and their types.
    parts
        The files with the rows, in order.
    row_order
        `{"kind": "source"}`, or `{"kind": "shuffled", "seed": …}`.
    statistics
        Of labels, weights and values; see `beeline.data.store.statistics`.
    recipe
        How raw rows become these rows, as JSON, or None.
    side_files
        What later capabilities put beside the rows, by name; a reader leaves alone what it does not know.
    made_by
        The program that wrote the store.
    """

    n_rows: int
    n_features: int
    nnz: int
    form: Form
    parts: tuple[PartInfo, ...]
    row_order: dict[str, Any]
    statistics: dict[str, Any]
    recipe: dict[str, Any] | None = None
    side_files: dict[str, Any] = field(default_factory=dict)
    made_by: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without the checksum."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "made_by": self.made_by,
            "rows": self.n_rows,
            "features": self.n_features,
            "nnz": self.nnz,
            "form": self.form.to_json(),
            "row_order": self.row_order,
            "statistics": self.statistics,
            "recipe": self.recipe,
            "side_files": self.side_files,
            "parts": [part.to_json() for part in self.parts],
        }

    @staticmethod
    def from_json(document: dict[str, Any]) -> Manifest:
        """The manifest that `to_json` described; the counts of the parts must add up."""
        n_rows, n_features, nnz = (int(document[name]) for name in ("rows", "features", "nnz"))
        parts = tuple(PartInfo.from_json(part) for part in document["parts"])
        if sum(int(p.chunks.rows.sum()) for p in parts) != n_rows or sum(int(p.chunks.nnz.sum()) for p in parts) != nnz:
            raise ValueError("the rows or entries of the parts do not add up")
        return Manifest(
            n_rows,
            n_features,
            nnz,
            Form.from_json(document["form"], n_features),
            parts,
            **{name: document[name] for name in ("row_order", "statistics", "recipe", "side_files", "made_by")},
        )

    def to_bytes(self) -> bytes:
        """The content of the manifest file."""
        return seal(self.to_json())

    @staticmethod
    def load(folder: Path) -> Manifest:
        """Read and check the manifest of the store in a folder."""
        raw = _read(folder)
        path = folder / MANIFEST
        document, intact = unseal(raw)
        if document is None or document.get("format") != FORMAT:
            if FORMAT.encode() in raw:
                raise _altered(path)
            raise StoreError(f"{folder} is not a beeline store: its {MANIFEST} was written by another program")
        version = document.get("version")
        if isinstance(version, int) and version > VERSION:
            raise StoreVersionError(
                f"{folder} is a store of version {version}, and this beeline reads versions up to {VERSION}; "
                "install a newer beeline to open it"
            )
        if version != VERSION or not intact:
            raise _altered(path)
        try:
            return Manifest.from_json(document)
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptStoreError(f"{path} does not describe a store ({error}); convert the source again") from None


def _read(folder: Path) -> bytes:
    if _PARTIAL.fullmatch(folder.name):
        raise StoreError(f"{folder} is what an unfinished conversion left; convert the source again")
    path = folder / MANIFEST
    try:
        return path.read_bytes()
    except FileNotFoundError:
        if not folder.exists():
            raise StoreError(f"{folder} does not exist; there is no store to open") from None
        raise StoreError(f"{folder} is not a beeline store: it has no {MANIFEST}") from None
    except NotADirectoryError:
        raise StoreError(f"{folder} is not a beeline store: it is a file, and a store is a folder") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error


def _altered(path: Path) -> CorruptStoreError:
    return CorruptStoreError(f"{path} was altered after it was written; convert the source again")


def plain_number(value: float) -> float | str:
    """A number as JSON can hold it: what is not finite becomes text."""
    return value if math.isfinite(value) else str(value)
