"""One index serves many models, whatever their labels, weights, C and folds, and is never built again."""

from __future__ import annotations

import numpy as np
import pytest
from index_tools import SETTINGS, clusters, indexed

import beeline
from beeline.solvers.indexed.indexed import Indexed

X, Y = clusters(1500, 10)
CLASSES = (2.0 * np.argmax(X.toarray()[:, :3], axis=1)).astype(float)
KINDS = ["boxes", "chunks", "forest"]
TOL = 1e-3


@pytest.fixture(scope="module", params=KINDS)
def store(request, tmp_path_factory):
    """A store with an index; what lies on the disk must be the same, to the last byte and second, in the end."""
    store = indexed(tmp_path_factory.mktemp("one") / "s", X, Y, request.param, SETTINGS[request.param])[0]
    before = _state_of(store.path)
    yield store
    assert _state_of(store.path) == before


@pytest.fixture(autouse=True)
def built_once(store, monkeypatch):
    """No test may build an index after the fixture has."""

    def refuse(*_, **__):
        raise AssertionError("an index is built again")

    for place in ("beeline.index.build_index", "beeline.index.build._build", "beeline.fitting.indexing.build"):
        monkeypatch.setattr(place, refuse)


@pytest.fixture
def runs(monkeypatch):
    """The objectives that indexed learning has solved."""
    seen = []
    steps = Indexed.steps

    def watched(self, objective, start):
        seen.append(objective)
        return steps(self, objective, start)

    monkeypatch.setattr(Indexed, "steps", watched)
    return seen


def _state_of(folder):
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return [(file.name, file.stat().st_mtime_ns, file.read_bytes()) for file in files]


def _both(store, y=None, weights=None, loss="hinge", **how):
    """J of the model that the index gives, and of that over the rows in memory."""
    labels = Y if y is None else y
    ours = beeline.LinearSVC(loss=loss, solver="indexed", tol=TOL, **how).fit(store, y, sample_weight=weights)
    theirs = beeline.LinearSVC(loss=loss, tol=0.1 * TOL, **how).fit(X, labels, sample_weight=weights)
    assert ours.report_.solver == "indexed"
    return ours, theirs


def test_one_class_against_the_rest(store, runs):
    ours, theirs = _both(store, CLASSES)
    assert len(runs) == 3
    assert ours.coef_.shape == (3, X.shape[1])
    assert ours.report_.objective == pytest.approx(theirs.report_.objective, rel=1.1 * TOL)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99


def test_weights_of_rows_and_classes(store, runs):
    weights = np.random.default_rng(1).integers(0, 3, len(Y)).astype(float)
    ours, theirs = _both(store, weights=weights, class_weight={1.0: 3.0})
    assert len(runs) == 1
    assert ours.report_.objective == pytest.approx(theirs.report_.objective, rel=1.1 * TOL)


def test_labels_that_the_store_does_not_have(store, runs):
    """Even numbers to predict: leaves are those of other labels."""
    numbers = X.toarray() @ np.linspace(-1, 1, X.shape[1])
    ours = beeline.LinearSVR(solver="indexed", tol=TOL, epsilon=0.1).fit(store, numbers)
    theirs = beeline.LinearSVR(tol=0.1 * TOL, epsilon=0.1).fit(X, numbers)
    assert len(runs) == 1
    assert ours.report_.objective == pytest.approx(theirs.report_.objective, rel=1.1 * TOL)
    flipped, same = _both(store, -Y)
    assert flipped.report_.objective == pytest.approx(same.report_.objective, rel=1.1 * TOL)


def test_several_columns_of_labels(store, runs):
    """A problem for each column, over the same rows."""
    sets = np.column_stack([Y > 0, CLASSES == 2, X.toarray()[:, 3] > 0]).astype(float)
    ours = beeline.LinearModel("multilabel_hinge", solver="indexed", tol=TOL).fit(store, sets)
    theirs = beeline.LinearModel("multilabel_hinge", tol=0.1 * TOL).fit(X, sets)
    assert len(runs) == 3
    assert ours.report_.objective == pytest.approx(theirs.report_.objective, rel=1.1 * TOL)


@pytest.mark.parametrize(("loss", "labels"), [("hinge", Y), ("squared_hinge", Y), ("hinge", CLASSES)])
def test_a_search_for_c(store, runs, loss, labels):
    """All folds at every C; rows that are held out meet their own labels, whatever their order in the index."""
    how = {"folds": 3, "C_min": 0.005, "C_max": 0.02}
    found = beeline.select_C(store, loss, labels, solver="indexed", **how)
    known = beeline.select_C(X, loss, labels, **how)
    assert len(runs) == 3 * 3 * (1 if labels is Y else 3)
    assert all(objective.rows.index is not None for objective in runs)
    assert [point.score for point in found.curve] == pytest.approx([point.score for point in known.curve], abs=0.02)
    assert [point.loss for point in found.curve] == pytest.approx([point.loss for point in known.curve], rel=0.02)
    assert found.curve[-1].score > 0.7


def test_probabilities(store, runs):
    """Five folds beside the model."""
    ours, theirs = _both(store, probability=True)
    assert len(runs) == 6
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.03)


def test_the_index_is_taken_where_it_pays(store, runs, monkeypatch):
    """Also in a search, and by a loss whose folds could go in lockstep."""
    monkeypatch.setattr("beeline.training.indexing.SMALL", 0)
    monkeypatch.setattr("beeline.training.indexing._PAYS", 1.0)
    found = beeline.LinearSVC(loss="squared_hinge", C="auto", cv=2, tol=TOL).fit(store)
    assert found.report_.solver == "indexed"
    assert len(runs) == 2 * len(found.selection_.curve) + 1
    monkeypatch.setattr("beeline.training.indexing._PAYS", 0.0)
    assert beeline.LinearSVC(loss="squared_hinge", tol=TOL).fit(store).report_.solver != "indexed"
