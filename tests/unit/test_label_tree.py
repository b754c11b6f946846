"""Trees of labels: from edges, names, dictionaries and files; what they say, and what they refuse."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beeline.exceptions import BeelineError, FormatError, LabelError, ParameterError, SourceError
from beeline.losses.label_tree import LabelTree, as_label_tree

NAMES = ["comp.graphics", "comp.sys.mac", "comp.sys.pc", "sci.space", "misc"]
EDGES = [["", name] for name in ("comp", "sci", "misc")]
EDGES += [["comp", "comp.graphics"], ["comp", "comp.sys"], ["comp.sys", "comp.sys.mac"], ["comp.sys", "comp.sys.pc"]]
EDGES += [["sci", "sci.space"]]
NESTED = {"comp": ["comp.graphics", {"comp.sys": ["comp.sys.mac", "comp.sys.pc"]}], "sci": "sci.space", "misc": None}


@st.composite
def trees(draw, most=12):
    """Any tree: each node below one that came before it."""
    n = draw(st.integers(2, most))
    parents = [draw(st.integers(0, node - 1)) for node in range(1, n)]
    lengths = draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=n - 1, max_size=n - 1))
    edges = [(f"n{p}", f"n{k + 1}", length) for k, (p, length) in enumerate(zip(parents, lengths, strict=True))]
    return LabelTree.from_edges(draw(st.permutations(edges)))


class TestSources:
    def test_edges_names_and_dictionaries_say_the_same(self):
        by_edges = LabelTree.from_edges(EDGES)
        assert set(map(tuple, LabelTree.from_names(NAMES).to_edges())) == set(map(tuple, by_edges.to_edges()))
        assert set(map(tuple, LabelTree.from_nested(NESTED).to_edges())) == set(map(tuple, by_edges.to_edges()))

    def test_slashes(self):
        tree = as_label_tree("slashes", ["a/x", "a/y", "b"])
        assert tree == LabelTree.from_names(["a/x", "a/y", "b"], "/")
        assert tree.ancestors("a/y") == ("a",)

    def test_whichever_separator_names_have(self):
        assert as_label_tree("auto", ["a.x", "b"]) == LabelTree.from_names(["a.x", "b"])
        assert as_label_tree("auto", ["a/x", "b"]) == LabelTree.from_names(["a/x", "b"], "/")
        assert as_label_tree("auto", [1.0, 2.0]) == LabelTree.from_edges([("", 1), ("", 2)])

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("t.txt", "# animals\nroot a\nroot b\n\na x\na y 2.5\n"),
            ("t.csv", "root,a\nroot,b\na,x\na,y,2.5\n"),
            ("t.tsv", "root\ta\nroot\tb\na\tx\na\ty\t2.5\n"),
            ("t.json", json.dumps([["root", "a"], ["root", "b"], ["a", "x"], ["a", "y", 2.5]])),
        ],
    )
    def test_files(self, tmp_path, name, text):
        (tmp_path / name).write_text(text)
        tree = as_label_tree(tmp_path / name)
        assert tree == as_label_tree(str(tmp_path / name))
        assert tree == LabelTree.from_edges([("root", "a"), ("root", "b"), ("a", "x"), ("a", "y", 2.5)])
        assert tree.classes == ("x", "y", "b")
        assert tree.root == "root"
        assert tree.distance("x", "y") == 3.5

    def test_names_with_spaces_and_dictionaries_in_a_file(self, tmp_path):
        (tmp_path / "a.csv").write_text('all,"red, or so"\nall,dark blue\n')
        assert as_label_tree(tmp_path / "a.csv").classes == ("red, or so", "dark blue")
        (tmp_path / "a.json").write_text(json.dumps({"bank": ["pay", "save"], "travel": ["fly"]}))
        assert as_label_tree(tmp_path / "a.json").ancestors("pay") == ("bank",)

    def test_numbers_are_called_as_people_write_them(self):
        tree = LabelTree.from_edges(
            [("all", "even"), ("all", "odd"), ("even", 2.0), ("even", np.int64(10)), ("odd", 3)]
        )
        assert tree.classes == ("2", "10", "3")
        assert tree.ancestors(2) == tree.ancestors(np.float64(2)) == ("even",)
        assert LabelTree.from_edges([(0, 10), (0, 9), (0, 1)]).sorted_classes == ("1", "9", "10")

    def test_dictionaries_and_lists_that_lie_in_themselves(self):
        below, names = {}, ["x"]
        below["a"] = {"b": below}
        for nested, node in ((below, "b"), ({"a": names, "b": names}, "b")):
            with pytest.raises(ParameterError, match=f"what lies below the node '{node}' is the same dictionary or li"):
                LabelTree.from_nested(nested)


class TestAnswers:
    def test_of_one_tree(self):
        tree = LabelTree.from_names(NAMES)
        assert tree.path("comp.sys.pc") == ("comp", "comp.sys", "comp.sys.pc")
        assert tree.ancestors("misc") == ()
        assert tree.depth("sci.space") == 2
        assert [tree.distance("comp.sys.pc", name) for name in NAMES] == [3, 2, 0, 5, 4]
        assert repr(tree) == "LabelTree(5 classes, 8 nodes, depth 3)"
        assert len(tree) == 9

    @given(trees())
    def test_distances_by_brute_force(self, tree):
        order = tree.sorted_classes
        table = tree.distances()
        for i, a in enumerate(order):
            for j, b in enumerate(order):
                apart = set(tree.path(a)) ^ set(tree.path(b))
                expected = sum(tree.lengths[tree.names.index(node)] for node in apart)
                assert table[i, j] == pytest.approx(expected, abs=1e-12)
                assert tree.distance(a, b) == pytest.approx(expected, abs=1e-12)
        assert not np.diag(table).any()

    @given(trees(), st.data())
    def test_a_part_of_a_tree_keeps_paths_and_distances(self, tree, data):
        some = data.draw(st.lists(st.sampled_from(tree.classes), min_size=1, unique=True))
        part = tree.restricted_to(some)
        assert set(part.classes) == set(some)
        for name in some:
            assert part.path(name) == tree.path(name)
        np.testing.assert_array_equal(part.distances(some), tree.distances(some))

    @given(trees())
    def test_what_is_written_is_read_again(self, tree):
        again = LabelTree.from_edges(json.loads(json.dumps(tree.to_edges())))
        assert again == tree
        assert hash(again) == hash(tree)
        assert again.names == tree.names
        assert again.parents == tree.parents

    def test_a_chain_as_deep_as_one_likes(self):
        n = 5000
        tree = LabelTree.from_edges([(k, k + 1) for k in range(n)] + [(0, "other")])
        assert tree.depth(n) == n
        assert tree.distance(n, "other") == n + 1


CASES = [
    ([("r", "a"), ("s", "b")], "2 roots, 'r', 's'; put a node above them"),
    ([("r", "a"), ("s", "a"), ("r", "s")], "'a' lies below 'r' and below 's'; a node of a tree has one parent"),
    ([("r", "a"), ("r", "a")], "'a' lies twice below 'r'"),
    ([("a", "b"), ("b", "c"), ("c", "a")], "'a' lies below itself: edges must not form a circle"),
    ([("r", "x"), ("a", "b"), ("b", "a")], "'a' lies below itself"),
    ([("a", "a")], "'a' is its own parent"),
    ([], "at least one edge"),
    (["ab"], "edge 0 of the tree must be a pair of nodes, parent and child, not 'ab'"),
    ([("a", "b", "c")], "edge 0 of the tree must have a positive, finite length, not 'c'"),
    ([("a", "b", 0)], "positive, finite length, not 0"),
    ([("a", "b", 1e308), ("a", "c", 1e308)], "so long that the way along them overflows; give smaller lengths"),
    (7, "a tree of labels is a LabelTree, .* not 7"),
    ({"a": [["b"]]}, r"a list of classes has \['b'\] in it; a node with others below it needs a name"),
]


class TestRefusals:
    @pytest.mark.parametrize(("given", "words"), CASES)
    def test_what_is_no_tree(self, given, words):
        with pytest.raises(ParameterError, match=words) as caught:
            as_label_tree(given)
        assert caught.value.parameter == "tree"

    @pytest.mark.parametrize(
        ("names", "words"),
        [
            (
                ["comp.pc", "comp"],
                "the label 'comp' is an inner node of the tree, above 'comp.pc'; give its rows a leaf",
            ),
            (["a.b", "a.b"], "two classes are both called 'a.b'"),
            (["a..b", "c"], "'a..b' has an empty part between its separators '.'"),
        ],
    )
    def test_names_that_spell_no_tree(self, names, words):
        with pytest.raises(BeelineError, match=words):
            LabelTree.from_names(names)

    def test_labels_that_it_does_not_have(self):
        tree = LabelTree.from_names(NAMES)
        with pytest.raises(LabelError, match=r"no node 'sci\.spac'; did you mean 'sci\.space'"):
            tree.distances(["sci.spac", "misc"])
        with pytest.raises(LabelError, match=r"it has the classes comp\.graphics"):
            tree.path("0")

    def test_files_that_are_none(self, tmp_path):
        path = tmp_path / "t.txt"
        with pytest.raises(SourceError, match=r"the tree of labels '.*t.txt' cannot be read: no such file"):
            as_label_tree(path)
        path.write_text("a b\nmachine learning is fun\n")
        with pytest.raises(FormatError, match=r"t.txt, line 2: an edge of the tree is a parent, a child"):
            as_label_tree(path)
        path.write_text("a b\nc d\n")
        with pytest.raises(FormatError, match=r"t.txt: the tree has 2 roots"):
            as_label_tree(path)
        path.write_bytes(b"\xff\xfe\xff")
        with pytest.raises(FormatError, match="not UTF-8"):
            as_label_tree(path)
        (tmp_path / "t.json").write_text("{")
        with pytest.raises(FormatError, match="not JSON"):
            as_label_tree(tmp_path / "t.json")
