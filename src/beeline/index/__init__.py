"""Indexes of stores: rows in leaves of rows that are alike, and what is known of each leaf without reading it.

Names are loaded when they are first used: most trainings never see an index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beeline._lazy import found_late

if TYPE_CHECKING:
    from beeline.index.build import build_index as build_index
    from beeline.index.guides import Flats as Flats
    from beeline.index.guides import Guide as Guide
    from beeline.index.guides import Place as Place
    from beeline.index.guides import Question as Question
    from beeline.index.guides import Readings as Readings
    from beeline.index.index import KINDS as KINDS
    from beeline.index.index import IndexedRows as IndexedRows
    from beeline.index.index import Pilot as Pilot
    from beeline.index.index import StoreIndex as StoreIndex
    from beeline.index.index import indexes_of as indexes_of
    from beeline.index.index import open_index as open_index
    from beeline.index.settings import IndexSettings as IndexSettings

_HOMES = {
    "KINDS": ".index",
    "Flats": ".guides",
    "Guide": ".guides",
    "IndexSettings": ".settings",
    "IndexedRows": ".index",
    "Pilot": ".index",
    "Place": ".guides",
    "Question": ".guides",
    "Readings": ".guides",
    "StoreIndex": ".index",
    "build_index": ".build",
    "indexes_of": ".index",
    "open_index": ".index",
}

__all__ = [*_HOMES]  # noqa: PLE0604

__getattr__ = found_late(__name__, _HOMES)
