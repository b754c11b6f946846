"""From data and settings to a model: what the estimators and the command line share."""

from __future__ import annotations

from beeline.fitting.fit import Fitted, fit
from beeline.fitting.indexing import build_index
from beeline.fitting.searching import select_C
from beeline.fitting.settings import Settings
from beeline.fitting.stream import StreamStep, fit_stream

__all__ = ["Fitted", "Settings", "StreamStep", "build_index", "fit", "fit_stream", "select_C"]
