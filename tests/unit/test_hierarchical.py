"""The classifier over a tree of labels: trees of any source, paths, probabilities of nodes, measures and pictures."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import beeline
from beeline import HierarchicalClassifier, LabelTree, LinearModel, LogisticRegression
from beeline.evaluation.label_trees import node_errors, tree_measures
from beeline.exceptions import LabelError, ParameterError

NAMES = np.array(["land.hill.high", "land.hill.low", "land.rock", "sea.calm", "sea.rough"])
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(150, 5))
Y = NAMES[(X @ RANDOM.normal(size=(5, 5)) + RANDOM.gumbel(size=(150, 5))).argmax(axis=1)]
TREE = LabelTree.from_names(NAMES)


@pytest.fixture(scope="module")
def fitted():
    return HierarchicalClassifier(C=0.5).fit(X, Y)


def test_trees_of_any_source_are_the_same(fitted, tmp_path):
    path = tmp_path / "tree.csv"
    path.write_text("\n".join(f"{parent or 'root'},{child}" for parent, child in TREE.to_edges()))
    nested = {
        "land": {"land.hill": ["land.hill.high", "land.hill.low"], "land.rock": None},
        "sea": ["sea.calm", "sea.rough"],
    }
    for tree in (TREE, TREE.to_edges(), path, "dots", nested):
        other = HierarchicalClassifier(tree, C=0.5).fit(X, Y)
        np.testing.assert_allclose(other.coef_, fitted.coef_, atol=1e-6)
        assert other.tree_.paths(NAMES).sum() == TREE.paths(NAMES).sum()


def test_paths_and_probabilities_of_nodes(fitted):
    assert fitted.tree_ == TREE
    paths = fitted.predict_path(X)
    assert paths == [TREE.path(name) for name in fitted.predict(X)]
    nodes, classes = fitted.predict_node_proba(X), fitted.predict_proba(X)
    for column, node in enumerate(fitted.tree_.names[1:]):
        below = [name == node or name.startswith(f"{node}.") for name in fitted.classes_]
        np.testing.assert_allclose(nodes[:, column], classes[:, below].sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(classes.sum(axis=1), 1)
    assert fitted.score(X, Y) == (fitted.predict(X) == Y).mean() > 0.5


def test_weights_of_nodes_come_to_those_of_classes(fitted):
    nodes = fitted.node_coef_
    assert nodes.shape == (8, 5)
    np.testing.assert_allclose(TREE.paths(fitted.classes_)[:, 1:] @ nodes, fitted.coef_, atol=1e-12)
    two = HierarchicalClassifier(C=0.5).fit(X, np.where(X[:, 0] > 0, "a.x", "b"))
    assert two.coef_.shape == (1, 5)
    np.testing.assert_allclose(np.diff(two.tree_.paths(two.classes_)[:, 1:] @ two.node_coef_, axis=0), two.coef_)


def test_without_a_tree_it_is_a_softmax():
    numbers = np.searchsorted(NAMES, Y)
    flat = HierarchicalClassifier(C=0.5, tol=1e-7).fit(X, numbers)
    plain = LogisticRegression(C=0.5, tol=1e-7).fit(X, numbers)
    np.testing.assert_allclose(flat.coef_, plain.coef_, atol=1e-3)
    assert flat.predict_path(X[:1]) == [(str(flat.predict(X[:1])[0]),)]
    assert flat.tree_.classes == ("0", "1", "2", "3", "4")


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_margins(rescaling):
    model = HierarchicalClassifier(loss="tree_margin", rescaling=rescaling, C=0.5).fit(X, Y)
    assert model.report_.status == "converged"
    assert model.score(X, Y) > 0.5
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_node_proba")
    assert model.model_.loss_settings["rescaling"] == rescaling


def test_models_keep_their_tree(fitted, tmp_path):
    fitted.model_.save(tmp_path / "m")
    again = beeline.Model.load(tmp_path / "m")
    found = beeline.evaluate(again, X, Y)
    assert found.tree[0].rows == len(X)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_refusals():
    with pytest.raises(ParameterError, match="rescaling has no meaning without loss='tree_margin'; leave it out"):
        HierarchicalClassifier(rescaling="slack").fit(X, Y)
    with pytest.raises(ParameterError, match="loss must be one of tree_logistic, tree_margin, not 'hinge'"):
        HierarchicalClassifier(loss="hinge").fit(X, Y)
    with pytest.raises(LabelError, match=r"no node 'land\.hill\.high'"):
        HierarchicalClassifier([("all", "land.rock"), ("all", "sea.calm")]).fit(X, Y)
    with pytest.raises(LabelError, match=r"the label 'sea' is an inner node of the tree, above 'sea\.calm'"):
        HierarchicalClassifier().fit(X, np.where(Y == "sea.rough", "sea", Y))
    with pytest.raises(ParameterError, match="'tree_loss' needs a loss over a tree of labels"):
        LogisticRegression(C="auto", scoring="tree_loss", cv=2).fit(X, Y)


def test_a_search_by_the_loss_of_the_tree():
    model = HierarchicalClassifier(C="auto", scoring="tree_loss", cv=2, tol=1e-3).fit(X[:60], Y[:60])
    assert model.selection_.metric == "tree_loss"
    usual = HierarchicalClassifier(loss="tree_margin", C="auto", cv=2, tol=1e-3).fit(X[:60], Y[:60])
    assert usual.selection_.metric == "tree_loss"
    assert LinearModel("tree_logistic", C="auto", cv=2, tol=1e-3).fit(X[:60], Y[:60]).selection_.metric == "log_loss"


@pytest.mark.parametrize("loss", ["tree_logistic", "tree_margin"])
class TestHostileInput:
    def fit(self, loss, tree, rows=X, y=Y, **more):
        weights = more.pop("sample_weight", None)
        return HierarchicalClassifier(tree, loss=loss, C=0.5, **more).fit(rows, y, sample_weight=weights)

    def test_chains_of_nodes_cost_no_more_than_their_ends(self, loss):
        """Ways of a thousand nodes to each class; and a class whose way is thirty branches long."""
        names = [str(name) for name in NAMES]
        deep = [(f"{name}/{k - 1}" if k else "r", f"{name}/{k}") for name in names for k in range(1000)]
        model = self.fit(loss, deep + [(f"{name}/999", name) for name in names])
        assert model.report_.status == "converged"
        assert model.tree_.depth(names[0]) == 1001
        side = [("r", names[0]), *[(f"m{k}" if k else "r", f"m{k + 1}") for k in range(3)]]
        model = self.fit(loss, side + [(f"m{k}", names[k]) for k in (1, 2, 3)] + [("m3", names[4])])
        assert model.report_.status == "converged"

    def test_features_of_very_different_scales(self, loss):
        model = self.fit(loss, TREE, X * np.array([1e-8, 1, 1, 1, 1e6]))
        assert model.report_.status == "converged"
        assert model.score(X * np.array([1e-8, 1, 1, 1, 1e6]), Y) > 0.4

    def test_rows_without_weight_leave_their_class_out(self, loss):
        model = self.fit(loss, TREE, sample_weight=(Y != "sea.calm").astype(float))
        assert "sea.calm" not in model.classes_
        assert model.report_.status == "converged"

    def test_one_class_is_refused(self, loss):
        with pytest.raises(LabelError, match="only one class"):
            self.fit(loss, TREE, y=np.repeat("sea.calm", len(X)))


class TestMeasures:
    def table(self):
        return np.random.default_rng(1).integers(0, 9, size=(5, 5)).astype(float)

    def test_by_brute_force_over_the_rows(self):
        table, sets = self.table(), [set(TREE.path(name)) for name in NAMES]
        rows = [(i, j) for i, j in itertools.product(range(5), repeat=2) for _ in range(int(table[i, j]))]
        shared = sum(len(sets[i] & sets[j]) for i, j in rows)
        found = tree_measures(table, TREE, list(NAMES))
        assert found["tree_loss"] == pytest.approx(np.mean([TREE.distance(NAMES[i], NAMES[j]) for i, j in rows]))
        precision = found["hierarchical_precision"]
        recall = found["hierarchical_recall"]
        assert precision == pytest.approx(shared / sum(len(sets[j]) for _, j in rows))
        assert recall == pytest.approx(shared / sum(len(sets[i]) for i, _ in rows))
        assert found["hierarchical_f1"] == pytest.approx(2 * precision * recall / (precision + recall))

    def test_errors_at_nodes(self):
        table = self.table()
        for node in node_errors(table, TREE, list(NAMES)):
            below = np.array([node.depth == 0 or node.name in TREE.path(name) for name in NAMES])
            assert node.rows == table[below].sum()
            assert node.errors == table[np.ix_(below, ~below)].sum()

    def test_an_evaluation_has_them(self, fitted):
        found = beeline.evaluate(fitted, X, Y)
        assert 0 < found.measures["tree_loss"] < 6
        assert found.measures["hierarchical_f1"] > found.measures["accuracy"]
        assert [node["name"] for node in found.to_json()["tree"]] == list(TREE.names)
        json.dumps(found.to_json())
        assert not beeline.evaluate(LogisticRegression().fit(X, Y), X, Y).tree


def test_a_page_draws_the_tree(fitted):
    pytest.importorskip("matplotlib")
    from beeline.report.evaluation import evaluation_page

    page = evaluation_page(beeline.evaluate(fitted, X, Y), {})
    assert "The tree of the classes" in page
    assert page.count("land.hill.high") >= 2


def test_the_picture_of_a_large_tree_has_its_inner_nodes():
    pytest.importorskip("matplotlib")
    from beeline.report.label_tree_figure import label_tree_figure

    names = [f"{a}.{b}" for a in "xyz" for b in range(40)]
    tree, table = LabelTree.from_names(names), np.eye(120)
    found = beeline.Evaluation(kind="multiclass", rows=120, measures={}, tree=node_errors(table, tree, names))
    figure = label_tree_figure(found)
    assert "Of 123 nodes only those above others are drawn" in figure.caption
    assert "x.0" not in figure.pictures[0]
