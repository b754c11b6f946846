"""Indexes of stores: rows in leaves of rows that are alike, and what is known of each leaf without reading it."""

from __future__ import annotations

from beeline.index.build import build_index
from beeline.index.guides import Flats, Guide, Place, Question, Readings
from beeline.index.index import KINDS, IndexedRows, Pilot, StoreIndex, indexes_of, open_index
from beeline.index.settings import IndexSettings

__all__ = [
    "KINDS",
    "Flats",
    "Guide",
    "IndexSettings",
    "IndexedRows",
    "Pilot",
    "Place",
    "Question",
    "Readings",
    "StoreIndex",
    "build_index",
    "indexes_of",
    "open_index",
]
