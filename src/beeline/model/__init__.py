"""The trained model and its files."""

from __future__ import annotations

from beeline.model.model import Link, Model
from beeline.model.report import Report

__all__ = ["Link", "Model", "Report"]
