"""Attributes that are computed when first asked for: without a lock, or by one thread while the others wait."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import beeline
from beeline._lazy import cached_property, computed_once

calls: list[object] = []
entered = threading.Barrier(2)
going_on = threading.Event()


@dataclass(frozen=True)
class Square:
    side: float

    @cached_property
    def area(self) -> float:
        """Its area."""
        calls.append(self)
        return self.side**2

    @cached_property
    def met(self) -> object:
        entered.wait(timeout=20)  # until another thread is here too
        return object()

    @computed_once
    def slow(self) -> object:
        calls.append(self)
        going_on.wait(timeout=20)
        return object()

    @cached_property
    def failing(self) -> float:
        calls.append(self)
        raise ValueError("not today")


@pytest.fixture(autouse=True)
def no_calls():
    calls.clear()
    going_on.clear()


def test_a_value_is_computed_once_and_kept_in_the_instance():
    square = Square(3.0)
    assert "area" not in vars(square)
    assert [square.area, square.area] == [9.0, 9.0]
    assert calls == [square]
    assert vars(square)["area"] == 9.0
    assert Square(4.0).area == 16.0


def test_it_can_be_set_and_forgotten_through_the_instance():
    square = Square(3.0)
    vars(square)["area"] = 1.0
    assert square.area == 1.0
    del vars(square)["area"]
    assert square.area == 9.0


def test_equality_hash_and_pickles_are_those_of_the_fields():
    square = Square(3.0)
    going_on.set()
    assert square.area
    assert square.slow
    assert square == Square(3.0)
    assert hash(square) == hash(Square(3.0))
    assert pickle.loads(pickle.dumps(Square(3.0))).slow  # its lock is no obstacle


def test_the_class_shows_the_property_and_its_text():
    assert isinstance(Square.area, cached_property)
    assert Square.area.__doc__ == "Its area."


def test_an_error_is_not_kept():
    square = Square(3.0)
    for _ in range(2):
        with pytest.raises(ValueError, match="not today"):
            _ = square.failing
    assert len(calls) == 2


def test_a_property_has_one_name():
    with pytest.raises((TypeError, RuntimeError)) as error:  # which Python 3.11 wraps

        class Twice:
            one = cached_property(lambda self: 1)
            other = one

    assert "two names, 'one' and 'other'" in str(error.value.__cause__ or error.value)


@pytest.mark.parametrize("squares", [(Square(1.0), Square(2.0)), (Square(3.0),) * 2], ids=["two", "one"])
def test_threads_do_not_wait_for_each_other(squares):
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda square: square.met, squares))
    assert [square.met for square in squares] == found  # both see what was there first


def test_what_is_large_is_computed_by_one_thread():
    square = Square(5.0)
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(lambda: square.slow) for _ in range(4)]
        going_on.set()
        values = {future.result() for future in found}
    assert values == {square.slow}
    assert calls == [square]


def test_the_library_has_no_property_with_a_lock():
    sources = Path(beeline.__file__).parent.rglob("*.py")
    assert not [path for path in sources if "functools import cached_property" in path.read_text(encoding="utf-8")]
