"""Engines: where the rows lie, and how work is done on them."""

from __future__ import annotations

from beeline.engines.base import Engine, Promise, Rows, RowVector
from beeline.engines.resources import Resources
from beeline.engines.shards import Shard
from beeline.engines.threads import Threads

__all__ = ["Engine", "Promise", "Resources", "RowVector", "Rows", "Shard", "Threads"]
