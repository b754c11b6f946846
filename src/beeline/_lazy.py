"""Attributes that are computed when they are first asked for, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from beeline._forks import ForkSafeLock

__all__ = ["cached_property", "computed_once"]

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
