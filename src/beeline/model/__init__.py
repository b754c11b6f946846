"""The trained model and its files."""

from __future__ import annotations

from beeline.links import Link
from beeline.model.model import Model
from beeline.model.report import Report

__all__ = ["Link", "Model", "Report"]
