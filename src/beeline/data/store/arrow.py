"""pyarrow, which is loaded when a store is first read or written: most trainings never see one, and it takes 50 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beeline._lazy import LateModule

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = LateModule("pyarrow")

__all__ = ["pa"]
