"""The on-disk data set: a folder of Arrow IPC files and a manifest; docs/store.md describes the format."""

from __future__ import annotations

from beeline.data.store.store import Store, open_store
from beeline.data.store.writer import StoreWriter

__all__ = ["Store", "StoreWriter", "open_store"]
