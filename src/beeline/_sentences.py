"""Sentences that know which of their words are arguments.

A sentence for a user names the arguments to change. In Python one writes `header=False`, on the command line
`--no-header`. So a sentence is put together from texts and `Argument`s: as a string it is Python's, and who speaks
another language says how arguments are spelled there.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Argument", "Sentence"]

_UNSAID = object()


class Argument:
    """An argument in a sentence: its name, or `name=value`.

    Parameters
    ----------
    name
        As functions and estimators call it.
    value
        What it is, or should be; left out where only its name is said.
    """

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: object = _UNSAID) -> None:
        self.name, self.value = name, value

    @property
    def has_value(self) -> bool:
        """Whether the sentence says a value too."""
        return self.value is not _UNSAID

    def __str__(self) -> str:
        return f"{self.name}={self.value!r}" if self.has_value else self.name

    def __reduce__(self) -> tuple[object, ...]:
        return Argument, (self.name, self.value) if self.has_value else (self.name,)


class Sentence(str):
    """Text as Python's users read it, which can be spelled anew.

    Parameters
    ----------
    parts
        Texts, arguments and other sentences, in their order; they are joined with nothing between them.
    """

    parts: tuple[str | Argument, ...]

    def __new__(cls, *parts: str | Argument) -> Sentence:
        """Join the parts."""
        made = super().__new__(cls, "".join(map(str, parts)))
        made.parts = tuple(piece for part in parts for piece in (part.parts if isinstance(part, Sentence) else (part,)))
        return made

    def __add__(self, more: str) -> Sentence:
        return Sentence(self, more)

    def format(self, *args: object, **named: object) -> Sentence:
        """The sentence with its texts filled in as by `str.format`."""
        return Sentence(*(part.format(*args, **named) if isinstance(part, str) else part for part in self.parts))

    def spelled(self, spell: Callable[[Argument], str]) -> str:
        """The text with each argument as `spell` says."""
        return "".join(part if isinstance(part, str) else spell(part) for part in self.parts)

    @property
    def argument(self) -> str | None:
        """The name of the first argument in it; None where there is none."""
        return next((part.name for part in self.parts if isinstance(part, Argument)), None)
