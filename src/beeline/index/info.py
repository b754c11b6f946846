"""What an index is, as plain JSON with a checksum over itself, beside its rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xxhash

from beeline.data.files.sealed import checksum_text, seal, unseal
from beeline.data.store import Store
from beeline.exceptions import CorruptStoreError, StoreError, StoreVersionError

__all__ = ["FILE", "IndexInfo", "fingerprint"]

FORMAT, VERSION, FILE = "beeline-index", 1, "index.json"


def fingerprint(store: Store) -> str:
    """What tells the rows of a store from all others: its manifest has a checksum of every byte."""
    return checksum_text(xxhash.xxh3_64_intdigest(store.manifest.to_bytes()))


@dataclass(frozen=True)
class IndexInfo:
    """What an index is.

    Attributes
    ----------
    kind, settings
        The kind, and how it was built.
    store
        The fingerprint of the rows that it is of.
    n_rows, n_leaves
        How many there are.
    seconds
        What it took to build.
    arrays
        The arrays beside the rows, by name.
    made_by
        The program that built it.
    """

    kind: str
    settings: dict[str, Any]
    store: str
    n_rows: int
    n_leaves: int
    seconds: float
    arrays: dict[str, dict[str, Any]] = field(repr=False)
    made_by: str = ""

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return seal(
            {
                "format": FORMAT,
                "version": VERSION,
                "made_by": self.made_by,
                "kind": self.kind,
                "settings": self.settings,
                "store": self.store,
                "rows": self.n_rows,
                "leaves": self.n_leaves,
                "seconds": self.seconds,
                "arrays": self.arrays,
            }
        )

    @staticmethod
    def load(folder: Path) -> IndexInfo:
        """Read and check the file of an index."""
        path = folder / FILE
        try:
            document, intact = unseal(path.read_bytes())
        except FileNotFoundError:
            raise StoreError(f"{folder} is no index: it has no {FILE}; build it by `beeline index`") from None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}") from error
        version = None if document is None else document.get("version")
        if isinstance(version, int) and version > VERSION:
            raise StoreVersionError(
                f"{folder} is an index of version {version}, and this beeline reads versions up to {VERSION}; install "
                "a newer beeline, or build the index again"
            )
        if document is None or not intact or document.get("format") != FORMAT:
            raise CorruptStoreError(f"{path} was altered after it was written; build the index again")
        names = ("kind", "settings", "store", "rows", "leaves", "seconds", "arrays", "made_by")
        return IndexInfo(*(document[name] for name in names))
