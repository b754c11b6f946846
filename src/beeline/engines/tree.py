"""Sums over shards, in one fixed tree: the same shards give the same bits, wherever they lie.

Node (level, k) of the tree covers the shards k·2^level … (k + 1)·2^level − 1, as far as there are any, and is the sum
of its two children. Addition of floating-point numbers is not associative, so that a sum over machines in the order in
which they answer would change from run to run. Whoever holds all shards of a node can make it; only nodes travel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["add_parts", "fold"]


def fold(values: Iterable[Any], combine: Callable[[Any, Any], Any]) -> Any:  # noqa: ANN401
    """All values combined along the tree; no more than log₂ n of them are held at a time.

    Raises `ValueError` where there are none.
    """
    nodes: list[tuple[int, Any]] = []  # of falling levels, each to the left of the next
    for value in values:
        level, node = 0, value
        while nodes and nodes[-1][0] == level:
            node, level = combine(nodes.pop()[1], node), level + 1
        nodes.append((level, node))
    if not nodes:
        raise ValueError("a sum over no shards")
    node = nodes.pop()[1]
    while nodes:
        node = combine(nodes.pop()[1], node)
    return node


def add_parts(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sums of two verbs' parts."""
    return tuple(a + b for a, b in zip(left, right, strict=True))
