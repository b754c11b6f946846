"""By which numbers a command says how it ended; the help page and the reference are made from here."""

from __future__ import annotations

import signal

__all__ = ["BY_SIGNAL", "CONCERNED", "EXIT_CODES", "FAILED", "USAGE", "exit_codes_in_words"]

FAILED, USAGE, CONCERNED = 1, 2, 3
BY_SIGNAL = 128  # shells add the signal's number to this

EXIT_CODES = {
    0: "done",
    FAILED: "the data or the machine stood in the way",
    USAGE: "the command was given wrongly",
    CONCERNED: "done and written, but there is a warning to read: of training or a search that ended early or in part "
    "failed, or of a model that is no better than none",
    BY_SIGNAL + signal.SIGINT: "interrupted by Ctrl-C",
    BY_SIGNAL + signal.SIGPIPE: "the reader of the output has gone",
    BY_SIGNAL + signal.SIGTERM: "terminated",
}


def exit_codes_in_words() -> str:
    """All of them, in a line."""
    return "; ".join(f"{int(code)} {meaning}" for code, meaning in EXIT_CODES.items())
