"""What a command has to warn of: lines on standard error, and an exit code of its own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from beeline.cli.output.errors import print_line
from beeline.cli.output.exit_codes import CONCERNED
from beeline.exceptions import ConvergenceWarning, ModelWarning

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Concerns"]

# Python's names in sentences about a training or a search, where they are options of the command line.
_NAMES = re.compile(r"(?<![\w'\"-])(max_passes|time_limit|C_max|C_min|tol(?= \(now))")


class Concerns:
    """What is to be said in the end about a training or a search, each sentence once."""

    def __init__(self) -> None:
        self.sentences: dict[str, None] = {}

    def __bool__(self) -> bool:
        return bool(self.sentences)

    def add(self, sentences: Iterable[str]) -> None:
        """Sentences that may have come as warnings too."""
        self.sentences |= dict.fromkeys(sentences)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Keep what beeline warns of meanwhile; what others warn of becomes a line each."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        ours = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning | ModelWarning)]
        self.add(ours)
        for sentence in dict.fromkeys(str(warning.message) for warning in caught):
            if sentence not in ours:
                print_line("warning", sentence, color="33")

    def say(self) -> None:
        """Print a line for each, in the words of the command line."""
        for sentence in self.sentences:
            print_line("warning", _NAMES.sub(lambda m: f"--{m[1].replace('_', '-')}", sentence), color="33")

    def leave(self) -> None:
        """Leave with the exit code for concerns, if there are any."""
        if self:
            raise SystemExit(CONCERNED)
