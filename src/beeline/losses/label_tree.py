"""Trees of labels: classes are their leaves, and what classes have in common are the nodes above them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from beeline._lazy import cached_property
from beeline._types import Floats, Ints
from beeline._words import count, did_you_mean, label_text, quoted, shortened
from beeline.exceptions import LabelError, ParameterError

__all__ = ["LabelTree", "as_label_tree"]

_SEPARATORS = {"dots": ".", "slashes": "/"}
_BY_NAMES = ("auto", *_SEPARATORS)
_ROOT = ""  # what a root is called that nobody has named


@dataclass(frozen=True, eq=False, repr=False)
class LabelTree:
    """A tree whose leaves are the classes.

    It is made by `from_edges`, `from_names` or `from_nested`; losses take the path of a file too. Names are texts; a
    class that is a number is called as people write it, 3 and not 3.0.

    Parameters
    ----------
    names
        The nodes, depth first, the root before all others.
    parents
        The place of each node's parent among them; −1 for the root.
    lengths
        How long the edge above each node is; 0 for the root.

    Examples
    --------
    >>> from beeline import LabelTree
    >>> tree = LabelTree.from_names(["comp.graphics", "comp.windows", "sci.space"])
    >>> tree.classes
    ('comp.graphics', 'comp.windows', 'sci.space')
    >>> tree.ancestors("comp.windows")
    ('comp',)
    >>> tree.distance("comp.graphics", "comp.windows"), tree.distance("comp.graphics", "sci.space")
    (2.0, 4.0)
    """

    names: tuple[str, ...]
    parents: tuple[int, ...]
    lengths: tuple[float, ...]

    # How it is made.

    @classmethod
    def from_edges(cls, edges: Iterable[Sequence[Any]]) -> LabelTree:
        """The tree of these edges: (parent, child), or (parent, child, length) where edges are not of length 1.

        Parameters
        ----------
        edges
            Each edge once, in any order; children keep the order in which they come.
        """
        above: dict[str, str] = {}
        below: dict[str, list[str]] = {}
        lengths: dict[str, float] = {}
        for number, edge in enumerate(edges):
            parent, child, length = _as_edge(edge, number)
            if parent == child:
                raise _refused(f"the node {child!r} is its own parent; take that edge out of the tree")
            if child in above:
                again = "twice below" if above[child] == parent else f"below {above[child]!r} and below"
                raise _refused(f"the node {child!r} lies {again} {parent!r}; a node of a tree has one parent")
            above[child], lengths[child] = parent, length
            below.setdefault(parent, []).append(child)
        if not math.isfinite(2 * sum(lengths.values())):
            raise _refused("the edges of the tree are so long that the way along them overflows; give smaller lengths")
        if not above:
            raise _refused("a tree of labels needs at least one edge, from a node to the one below it")
        roots = [parent for parent in below if parent not in above]
        if len(roots) > 1:
            raise _refused(
                f"the tree has {count(len(roots), 'root')}, {shortened([repr(root) for root in roots])}; put a node "
                "above them"
            )
        return cls._ordered(roots[0] if roots else None, below, lengths)

    @classmethod
    def from_names(cls, names: Iterable[Any], separator: str = ".") -> LabelTree:
        """The tree that names of classes spell out: `comp.graphics` lies below `comp`, which lies below the root.

        Parameters
        ----------
        names
            The classes.
        separator
            What stands between a node and the one below it.
        """
        if not separator or not isinstance(separator, str):
            raise ParameterError(
                f"what separates the parts of a name must be a text such as '.', not {separator!r}", parameter="tree"
            )
        texts = [label_text(name) for name in names]
        edges: dict[str, str] = {}
        for text in texts:
            parts = text.split(separator)
            if not all(parts):
                raise _refused(f"the class {text!r} has an empty part between its separators {separator!r}; rename it")
            nodes = [separator.join(parts[: depth + 1]) for depth in range(len(parts))]
            edges |= dict(zip(nodes, [_ROOT, *nodes[:-1]], strict=True))
        tree = cls.from_edges((parent, child) for child, parent in edges.items())
        tree.leaves_of(texts)
        return tree

    @classmethod
    def from_nested(cls, nested: Any) -> LabelTree:  # noqa: ANN401
        """The tree of dictionaries and lists in each other: {"fruit": ["apple", "pear"], "bread": None}.

        Parameters
        ----------
        nested
            A dictionary from nodes to what lies below them, which is a dictionary again, a list of classes and
            dictionaries, or nothing where the node is a class; or a list of such.
        """
        edges: list[tuple[str, str]] = []
        waiting, seen = [(_ROOT, nested)], {id(nested)}
        while waiting:
            parent, inside = waiting.pop()
            for name, below in _children(inside):
                edges.append((parent, name))
                if below:
                    if id(below) in seen:  # which may lie inside itself, without an end
                        raise _refused(
                            f"what lies below the node {name!r} is the same dictionary or list as elsewhere in the "
                            "tree, or one that it lies in itself; a node of a tree has one parent"
                        )
                    seen.add(id(below))
                    waiting.append((name, below))
        return cls.from_edges(edges)

    @classmethod
    def _ordered(cls, root: str | None, below: Mapping[str, list[str]], lengths: Mapping[str, float]) -> LabelTree:
        """The nodes depth first."""
        names: list[str] = []
        parents: list[int] = []
        waiting = [] if root is None else [(root, -1)]
        while waiting:
            name, parent = waiting.pop()
            waiting += [(child, len(names)) for child in reversed(below.get(name, []))]
            names.append(name)
            parents.append(parent)
        if len(names) <= len(lengths):  # nodes that the root does not reach
            lost = min(set(lengths) - set(names))
            raise _refused(f"the node {lost!r} lies below itself: edges must not form a circle")
        return cls(tuple(names), tuple(parents), tuple(lengths.get(name, 0.0) for name in names))

    # What it says.

    def __repr__(self) -> str:
        depth = max(self.depths)
        return f"LabelTree({count(len(self.classes), 'class')}, {count(len(self) - 1, 'node')}, depth {depth})"

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LabelTree) and self.to_edges() == other.to_edges()

    def __hash__(self) -> int:
        return hash((self.names, self.parents, self.lengths))

    def to_edges(self) -> list[list[Any]]:
        """Every edge as [parent, child], or [parent, child, length] where that is not 1; as plain JSON."""
        each = zip(self.names, self.parents, self.lengths, strict=True)
        return [
            [self.names[parent], name, *([] if length == 1 else [length])]
            for name, parent, length in each
            if parent >= 0
        ]

    @property
    def root(self) -> str:
        """The node above all others; of a tree from names or from dictionaries it has no name."""
        return self.names[0]

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """How many edges each node is below the root."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(depths[parent] + 1 if parent >= 0 else 0)
        return tuple(depths)

    @cached_property
    def leaves(self) -> tuple[int, ...]:
        """The places of the leaves among the nodes."""
        inner = set(self.parents)
        return tuple(node for node in range(len(self)) if node not in inner)

    @property
    def classes(self) -> tuple[str, ...]:
        """The leaves, depth first."""
        return tuple(self.names[leaf] for leaf in self.leaves)

    @cached_property
    def sorted_classes(self) -> tuple[str, ...]:
        """The leaves as classes are numbered: as numbers where all of them are, else as texts."""
        try:
            return tuple(sorted(self.classes, key=float))
        except ValueError:
            return tuple(sorted(self.classes))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: node for node, name in enumerate(self.names)}

    def _place(self, name: object) -> int:
        text = label_text(name)
        if text not in self._places:
            like = did_you_mean(text, self.names) or f"it has the classes {shortened(list(self.classes))}"
            raise LabelError(f"the tree of labels has no node {text!r}; {like}")
        return self._places[text]

    def _up(self, node: int) -> Iterator[int]:
        """The node and all above it, without the root."""
        while self.parents[node] >= 0:
            yield node
            node = self.parents[node]

    def path(self, name: object) -> tuple[str, ...]:
        """The nodes from below the root to this one, itself included."""
        return tuple(self.names[node] for node in self._up(self._place(name)))[::-1]

    def ancestors(self, name: object) -> tuple[str, ...]:
        """The nodes between the root and this one."""
        return self.path(name)[:-1]

    def depth(self, name: object) -> int:
        """How many edges a node is below the root."""
        return self.depths[self._place(name)]

    def distance(self, one: object, other: object) -> float:
        """The length of the way between two nodes, through the node above both."""
        a, b = set(self._up(self._place(one))), set(self._up(self._place(other)))
        return float(sum(self.lengths[node] for node in sorted(a ^ b)))

    def leaves_of(self, names: Iterable[object]) -> Ints:
        """The place of each class among the nodes; `LabelError` for one that is no leaf of the tree."""
        found = [self._place(name) for name in names]
        leaves = set(self.leaves)
        if inner := [node for node in found if node not in leaves]:
            name, below = self.names[inner[0]], [self.names[n] for n in range(len(self)) if self.parents[n] == inner[0]]
            raise LabelError(
                f"the label {name!r} is an inner node of the tree, above {shortened([repr(one) for one in below])}; "
                "give its rows a leaf of their own below it"
            )
        if len(set(found)) < len(found):
            twice = next(node for node in found if found.count(node) > 1)
            raise LabelError(f"two classes are both called {self.names[twice]!r}; rename one")
        return np.array(found, np.int64)

    def restricted_to(self, names: Iterable[object]) -> LabelTree:
        """The tree of these classes alone: without the leaves, and the nodes, that have none of them below."""
        kept = sorted({0, *(node for leaf in self.leaves_of(names) for node in self._up(int(leaf)))})
        place = {node: k for k, node in enumerate(kept)} | {-1: -1}
        return LabelTree(
            tuple(self.names[node] for node in kept),
            tuple(place[self.parents[node]] for node in kept),
            tuple(self.lengths[node] for node in kept),
        )

    def paths(self, names: Iterable[object]) -> Floats:
        """Which nodes lie on the way to each class: a row of 0 and 1 a class, a column a node, the root's being 0."""
        leaves = self.leaves_of(names)
        table = np.zeros((len(leaves), len(self)))
        for row, leaf in enumerate(leaves):
            table[row, list(self._up(int(leaf)))] = 1.0
        return table

    def distances(self, names: Iterable[object] | None = None) -> Floats:
        """Δ: the length of the way between every two classes, in this order; None: that of `sorted_classes`."""
        paths = self.paths(self.sorted_classes if names is None else names)
        lengths = np.array(self.lengths)
        common = np.einsum("in,n,jn->ij", paths, lengths, paths)
        own = np.diag(common)
        lengths_of_ways: Floats = np.maximum(own[:, None] + own - 2 * common, 0.0)
        return lengths_of_ways


def as_label_tree(given: Any, names: Sequence[object] | None = None) -> LabelTree | None:  # noqa: ANN401
    """What users give for a tree, as one; None where it takes the classes' names, which are not known yet.

    Parameters
    ----------
    given
        A tree; "dots" or "slashes" between the parts of the classes' names; "auto", whichever these have; the path of a
        file; dictionaries; or edges.
    names
        The classes; None: they are not known.
    """
    if given is None or isinstance(given, LabelTree):
        return given
    if isinstance(given, str) and given in _BY_NAMES:
        if names is None:
            return None
        dotted = any("." in label_text(name) for name in names)
        return LabelTree.from_names(names, _SEPARATORS.get(given, "." if dotted else "/"))
    if isinstance(given, str) or hasattr(given, "__fspath__"):
        from beeline.losses.label_tree_file import read_label_tree

        return read_label_tree(given)
    if isinstance(given, Mapping):
        return LabelTree.from_nested(given)
    if isinstance(given, Iterable):
        return LabelTree.from_edges(given)
    raise _refused(
        "a tree of labels is a LabelTree, 'dots', 'slashes', 'auto', a file, dictionaries or pairs of nodes, "
        f"not {quoted(given)}"
    )


def _as_edge(edge: Any, number: int) -> tuple[str, str, float]:  # noqa: ANN401
    """(parent, child, length)."""
    if isinstance(edge, str) or not isinstance(edge, Sequence | np.ndarray) or len(edge) not in (2, 3):
        raise _refused(f"edge {number} of the tree must be a pair of nodes, parent and child, not {quoted(edge)}")
    length = 1.0
    if len(edge) == 3:
        try:
            length = float(edge[2])
        except (TypeError, ValueError):
            length = math.nan
        if not 0 < length < math.inf:
            raise _refused(f"edge {number} of the tree must have a positive, finite length, not {quoted(edge[2])}")
    return label_text(edge[0]), label_text(edge[1]), length


def _children(inside: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """(name, what lies below) of all nodes in a dictionary or a list."""
    if isinstance(inside, Mapping):
        yield from ((label_text(name), below) for name, below in inside.items())
    elif isinstance(inside, str) or not isinstance(inside, Iterable):
        yield label_text(inside), None
    else:
        for one in inside:
            yield from _children(one) if isinstance(one, Mapping) else [(_leaf(one), None)]


def _leaf(name: Any) -> str:  # noqa: ANN401
    if isinstance(name, Iterable) and not isinstance(name, str):
        raise _refused(f"a list of classes has {name!r} in it; a node with others below it needs a name: {{name: …}}")
    return label_text(name)


def _refused(sentence: str) -> ParameterError:
    return ParameterError(sentence, parameter="tree")
