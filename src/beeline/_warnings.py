"""Warnings at the call that the user made."""

from __future__ import annotations

import sys

__all__ = ["calls_inside"]


def calls_inside() -> int:
    """How many calls, from that of the caller on, were made by this package: the `stacklevel` of the last of them."""
    frame, calls = sys._getframe(1), 0
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "beeline":
        frame, calls = frame.f_back, calls + 1
    return calls
