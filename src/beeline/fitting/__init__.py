"""From data and settings to a model: what the estimators and the command line share."""

from __future__ import annotations

from beeline.fitting.fit import Fitted, fit
from beeline.fitting.searching import select_C
from beeline.fitting.settings import Settings

__all__ = ["Fitted", "Settings", "fit", "select_C"]
