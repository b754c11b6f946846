"""What is there when it is first asked for, and kept: attributes that are computed, modules that are loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, overload

from beeline._forks import ForkSafeLock, import_late

__all__ = ["LateModule", "cached_property", "computed_once", "found_late"]

Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801 — it is used as a decorator, as the one in functools is
    """A property that is computed once and then kept in the instance's `__dict__`, where it can also be set or deleted.

    That of functools holds a lock in Python 3.11, one for all instances of a class, while it computes: threads that
    solve problems of their own wait for each other, and a process that is forked meanwhile inherits the lock locked.
    Here two threads that ask at the same time may compute twice; both get the value that was there first.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute, self.name = compute, ""
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        if self.name not in ("", name):
            raise TypeError(f"a property cannot have two names, {self.name!r} and {name!r}")
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> cached_property[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> cached_property[Value] | Value:
        if instance is None:
            return self
        value: Value = instance.__dict__.setdefault(self.name, self.compute(instance))
        return value


class computed_once(cached_property[Value]):  # noqa: N801
    """A cached property for what is too large to be there twice: who asks while it is computed waits for it."""

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> computed_once[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> computed_once[Value] | Value:
        if instance is None:
            return self
        kept = instance.__dict__
        with kept.setdefault(f"lock of {self.name}", ForkSafeLock()):
            value: Value = kept[self.name] if self.name in kept else self.compute(instance)
            kept[self.name] = value  # before the lock is released
            return value


class LateModule:
    """A module that is loaded when the first of its names is asked for.

    For one that takes long to load where most runs do without it, but many functions of a file name it.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        value = getattr(import_late(self._name), name)
        self.__dict__[name] = value
        return value


def found_late(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are loaded when they are first used.

    `homes` has the module of each name: relative to the package, with a dot in front.
    """

    def load(name: str) -> Any:  # noqa: ANN401
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}{_question(name, homes)}")
        home = homes[name]
        value = getattr(import_late(package + home if home.startswith(".") else home), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


def _question(name: str, names: Mapping[str, str]) -> str:
    """Which name was meant; nothing of those that tools look for, such as `__path__`."""
    from beeline._words import did_you_mean

    question = "" if name.startswith("_") else did_you_mean(name, names, cutoff=0.75)
    return question and f"; {question}"
