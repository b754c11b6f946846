"""What a command has to warn of: lines on standard error, and an exit code of its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from beeline.cli.output.errors import print_line
from beeline.cli.output.exit_codes import CONCERNED
from beeline.cli.output.spelling import spelled
from beeline.exceptions import ConvergenceWarning, ModelWarning

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Concerns"]


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
        ours = [_sentence(w.message) for w in caught if issubclass(w.category, ConvergenceWarning | ModelWarning)]
        self.add(ours)
        for sentence in dict.fromkeys(_sentence(warning.message) for warning in caught):
            if sentence not in ours:
                print_line("warning", sentence, color="33")

    def say(self) -> None:
        """Print a line for each, in the words of the command line."""
        for sentence in self.sentences:
            print_line("warning", spelled(sentence), color="33")

    def leave(self) -> None:
        """Leave with the exit code for concerns, if there are any."""
        if self:
            raise SystemExit(CONCERNED)


def _sentence(message: Warning | str) -> str:
    """What a warning says, with the arguments that it names."""
    whole = message.args[0] if isinstance(message, Warning) and len(message.args) == 1 else str(message)
    return whole if isinstance(whole, str) else str(message)
