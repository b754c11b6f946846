"""Engines: where the rows lie and how sums over them are taken."""

from __future__ import annotations

from beeline.engines.base import Engine, Shard
from beeline.engines.threads import Threads

__all__ = ["Engine", "Shard", "Threads"]
