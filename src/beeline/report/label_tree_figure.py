"""The tree of the classes inside the page of an evaluation, with the mistakes at each node."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from beeline.evaluation import Evaluation, NodeErrors
from beeline.plotting import COLOURS, SMALL, escape_math, is_narrow, new_figure
from beeline.report.svg import PageFigure, Sizes, page_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["label_tree_figure"]

_MOST_LEAVES = 60  # that a page has lines for; of larger trees only inner nodes are drawn
_LINE, _MARGIN = 0.21, 0.5  # inches: of a leaf, and above and below all
_SMALLEST, _LARGEST = 12.0, 260.0  # square points, of no mistakes and of nothing but mistakes
_GAP = 4.0  # points between a disc and the name above it
_WRONG = 0.5  # of the rows below a node: from here on it is shown as one to look at
_LONGEST = 34  # characters of a name


def label_tree_figure(found: Evaluation) -> PageFigure:
    """The tree from the root on the left to the classes on the right; discs are as large as the part that leaves."""
    nodes = _drawn(found.tree)
    caption = (
        "The tree of the classes. The disc at a node, and the number behind it, say which part of the rows below it is "
        "predicted elsewhere in the tree."
    )
    if len(nodes) < len(found.tree):
        caption += f" Of {len(found.tree) - 1:,} nodes only those above others are drawn."
    worst = sorted((node for node in nodes if node.rows and node.parent >= 0), key=lambda node: -_part(node))[:5]
    told = "; ".join(f"{node.name} {_part(node):.1%}" for node in worst)
    height = 2 * _MARGIN + _LINE * len(_places(nodes)[1])
    sizes = Sizes(broad=(9.4, height), slim=(4.0, height))
    label = f"The tree of the classes, and which part of the rows below a node is predicted elsewhere. {told}."
    return page_figure(partial(_draw, nodes), "label-tree", sizes, label, caption)


def _part(node: NodeErrors) -> float:
    return node.errors / node.rows if node.rows else 0.0


def _area(node: NodeErrors) -> float:
    """Square points of the disc."""
    return _SMALLEST + (_LARGEST - _SMALLEST) * _part(node)


def _drawn(nodes: tuple[NodeErrors, ...]) -> tuple[NodeErrors, ...]:
    """All nodes, or those above others where there would be too many."""
    inner = sorted({node.parent for node in nodes if node.parent >= 0})
    if len(nodes) - len(inner) <= _MOST_LEAVES:
        return nodes
    place = {node: k for k, node in enumerate(inner)} | {-1: -1}
    return tuple(nodes[node]._replace(parent=place[nodes[node].parent]) for node in inner)


def _places(nodes: tuple[NodeErrors, ...]) -> tuple[list[float], list[int]]:
    """(the height of every node, the leaves): leaves a line each, others in the middle of what is below them."""
    above = {node.parent for node in nodes}
    leaves = [k for k in range(len(nodes)) if k not in above]
    heights = [0.0] * len(nodes)
    for line, leaf in enumerate(leaves):
        heights[leaf] = -float(line)
    below: dict[int, list[float]] = {}
    for k in range(len(nodes) - 1, -1, -1):
        if k in below:
            heights[k] = 0.5 * (min(below[k]) + max(below[k]))
        below.setdefault(nodes[k].parent, []).append(heights[k])
    return heights, leaves


def _draw(nodes: tuple[NodeErrors, ...], size: tuple[float, float]) -> Figure:
    figure = new_figure(size)
    axes = figure.subplots()
    heights, leaves = _places(nodes)
    at_end = set(leaves)
    deepest = max(node.depth for node in nodes) or 1
    for k, node in enumerate(nodes):
        if node.parent >= 0:
            start, end = nodes[node.parent].depth, node.depth
            bend = start + 0.5
            xs, ys = [start, bend, bend, end], [heights[node.parent]] * 2 + [heights[k]] * 2
            axes.plot(xs, ys, color=COLOURS["grid"], linewidth=1.2, zorder=1)
        part = _part(node)
        role = "muted" if not node.rows else "stop" if part >= _WRONG else "warm" if part > 0 else "best"
        axes.scatter([node.depth], [heights[k]], s=_area(node), color=COLOURS[role], linewidths=0, zorder=2)
        _name(axes, node, heights[k], leaf=k in at_end, shorter=is_narrow(figure))
    room = 2.2 if is_narrow(figure) else 0.9
    axes.set_xlim(-0.25, deepest + room * (1 + 0.25 * deepest))
    axes.set_ylim(-len(leaves) + 0.3, 0.9)
    axes.set_axis_off()
    return figure


def _name(axes: Axes, node: NodeErrors, height: float, *, leaf: bool, shorter: bool) -> None:
    """The name of a node, behind a leaf and above an inner node."""
    most = _LONGEST // 2 if shorter else _LONGEST
    name = node.name if len(node.name) <= most else "…" + node.name[1 - most :]
    share = f"{_part(node):.1%}" if node.rows else "no rows"
    words = escape_math(f"{name}  {share}" if name else share)
    look: dict[str, Any] = {"fontsize": SMALL, "color": COLOURS["ink"], "annotation_clip": False}
    if leaf:
        axes.annotate(words, (node.depth, height), (11, 0), textcoords="offset points", va="center", **look)
    else:
        above = _GAP + math.sqrt(_area(node) / math.pi)
        axes.annotate(words, (node.depth, height), (0, above), textcoords="offset points", ha="center", **look)
