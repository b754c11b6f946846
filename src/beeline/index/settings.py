"""How an index is built."""

from __future__ import annotations

from dataclasses import dataclass, replace

from beeline.exceptions import ParameterError

__all__ = ["IndexSettings"]

_LEAF_ROWS = {"boxes": 32, "chunks": 1000}


@dataclass(frozen=True, kw_only=True)
class IndexSettings:
    """How an index is built.

    Attributes
    ----------
    leaf_rows
        Rows of a leaf; None: 32 for boxes, 1,000 for chunks.
    samples
        Rows of a leaf that are kept to rank it, for chunks.
    chunk_bytes
        Bytes of leaves that lie together and are read together; a larger leaf is read alone.
    seed
        Of what is random.
    """

    leaf_rows: int | None = None
    samples: int = 16
    chunk_bytes: int = 64 << 10
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("leaf_rows", 1), ("samples", 1), ("chunk_bytes", 1), ("seed", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ParameterError(f"{name} must be at least {least}, not {value}", parameter=name)

    def of(self, kind: str) -> IndexSettings:
        """With the defaults of that kind of index."""
        return self if self.leaf_rows is not None else replace(self, leaf_rows=_LEAF_ROWS[kind])
