"""Losses over trees of labels, against brute force over the leaves and against optima found independently."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import beeline
from beeline import LinearModel
from beeline.exceptions import LabelError, ParameterError
from beeline.losses import (
    CrammerSinger,
    LabelTree,
    MulticlassMargin,
    ScaledMulticlassMargin,
    Softmax,
    TreeLogistic,
    TreeMargin,
    get_loss,
)
from beeline.losses.trees import TreeLayout

SHAPES = {
    "flat": [("r", f"c{k}") for k in range(5)],
    "uniform": [("r", "a"), ("r", "b"), *[("a", f"c{k}") for k in range(2)], *[("b", f"c{k}") for k in range(2, 5)]],
    "unbalanced": [("r", "c0"), ("r", "a"), ("a", "c1"), ("a", "b"), ("b", "c2"), ("b", "d"), ("d", "c3"), ("d", "c4")],
    "chains": [
        ("r", "a"),
        ("a", "b"),
        ("b", "c0"),
        ("r", "d"),
        ("d", "e"),
        ("e", "c1"),
        ("e", "c2"),
        ("r", "c3"),
        ("d", "c4"),
    ],
    "lengths": [("r", "a", 2.0), ("r", "c0"), ("a", "c1", 0.5), ("a", "c2"), ("r", "b", 3.0), ("b", "c3"), ("b", "c4")],
}
KINDS = [TreeLogistic, TreeMargin, lambda tree: TreeMargin(tree, "slack")]
CASES = [
    pytest.param(LabelTree.from_edges(edges), kind, id=f"{name}-{k}")
    for name, edges in SHAPES.items()
    for k, kind in enumerate(KINDS)
]
every_case = pytest.mark.parametrize(("tree", "kind"), CASES)
NAMES = tuple(f"c{k}" for k in range(5))


def scores(loss, n=60, seed=0, spread=2.0):
    random = np.random.default_rng(seed)
    return spread * random.normal(size=(n, loss.n_scores(5))), random.integers(0, 5, n).astype(float)


def leaf_scores(loss, tree, z):
    """s, by walking the path of every leaf."""
    layout = TreeLayout.of(tree, NAMES)
    table = np.array([[node in tree.path(name) for node in layout.names] for name in NAMES]) * layout.scales
    return np.array([[sum(row[on] * scale[on]) for scale, on in zip(table, table > 0, strict=True)] for row in z])


@every_case
def test_value_by_brute_force_over_the_leaves(tree, kind):
    loss = kind(tree).with_classes(NAMES)
    z, y = scores(loss)
    s = leaf_scores(loss, tree, z)
    np.testing.assert_allclose(loss.to_classes(z), s, atol=1e-12)
    values, _ = loss.value_and_grad(z, y)
    for row, right in enumerate(y.astype(int)):
        delta = np.array([tree.distance(NAMES[right], name) for name in NAMES])
        gaps = s[row] - s[row, right]
        expected = {
            "tree_logistic": np.log(np.exp(gaps).sum()),
            "margin": max(gaps + delta),
            "slack": max(delta * (gaps + 1)),
        }[getattr(loss, "rescaling", loss.name)]
        assert values[row] == pytest.approx(max(expected, 0), rel=1e-12)
        if loss.name == "tree_margin":  # above what a prediction by the largest score costs
            assert values[row] >= delta[s[row].argmax()] - 1e-12


@every_case
def test_slopes_and_curvatures_by_differences(tree, kind):
    loss = kind(tree).with_classes(NAMES)
    curved = loss if loss.has_curvature else loss.smoothed(1.5)
    z, y = scores(loss, 40)
    c, step = np.random.default_rng(1).uniform(0.5, 2, len(z)), 1e-6
    slopes, h = curved.slopes(z, y, c), curved.curvatures(z, y, c)
    hessians = np.empty((len(z), z.shape[1], z.shape[1]))
    for v in range(z.shape[1]):
        move = np.zeros_like(z)
        move[:, v] = step
        above, below = (curved.value_and_grad(z + sign * move, y) for sign in (1, -1))
        np.testing.assert_allclose(slopes[:, v], c * (above[0] - below[0]) / (2 * step), atol=1e-6)
        hessians[:, v] = c[:, None] * (above[1] - below[1]) / (2 * step)
        np.testing.assert_allclose(curved.hessian_products(h, move / step), hessians[:, v], atol=1e-5)
    np.testing.assert_allclose(curved.curvature_diagonals(h), np.einsum("ivv->iv", hessians), atol=1e-5)
    np.testing.assert_allclose(curved.curvature_total(h), hessians.sum(axis=0), atol=1e-4)
    value, together, again = curved.derivatives(z, y, c)
    assert value == pytest.approx(curved.sum(z, y, c), rel=1e-12)
    np.testing.assert_allclose(together, slopes, atol=1e-12)
    np.testing.assert_allclose(again, h, atol=1e-12)
    dz = np.random.default_rng(2).normal(size=z.shape)
    value, slope = curved.along(z, dz, 0.3, y, c)
    assert value == pytest.approx(curved.sum(z + 0.3 * dz, y, c), rel=1e-12)
    assert slope == pytest.approx(float((curved.slopes(z + 0.3 * dz, y, c) * dz).sum()), rel=1e-9)


@every_case
def test_fenchel_and_young(tree, kind):
    loss = kind(tree).with_classes(NAMES)
    z, y = scores(loss, 30)
    c = np.random.default_rng(3).uniform(0.1, 2, len(z))
    a = -loss.slopes(z, y, c)
    others = scores(loss, 200, 4, 5.0)[0]
    for i in range(len(z)):
        one = slice(i, i + 1)
        dual = loss.conjugate_sum(a[one], y[one], c[one])
        values = c[i] * loss.value_and_grad(others, np.repeat(y[one], len(others)))[0]
        assert (dual + values + others @ a[i] >= -1e-9 * (1 + abs(dual))).all()
        at_slope = dual + loss.sum(z[one], y[one], c[one]) + float(a[i] @ z[i])
        assert at_slope == pytest.approx(0, abs=1e-9 * (1 + abs(dual)))
    if z.shape[1] > 5:  # slopes along inner nodes that are not the sums of those below
        a[:, -1] += 1e-6
        assert loss.conjugate_sum(a, y, c) == np.inf


@pytest.mark.parametrize(
    ("mine", "twin", "scale"),
    [
        (TreeLogistic, Softmax(), 1.0),
        (TreeMargin, CrammerSinger(), 2.0),
        (lambda tree: TreeMargin(tree, "slack"), ScaledMulticlassMargin(2.0 * (1 - np.eye(5))), 1.0),
        (TreeMargin, MulticlassMargin(2.0 * (1 - np.eye(5))), 1.0),
    ],
)
@pytest.mark.parametrize("tree", [None, SHAPES["flat"]])
def test_flat_trees_are_losses_without_one(mine, twin, scale, tree):
    """A margin of 2 everywhere is that of 1, for scores of half the size, twice."""
    loss = mine(tree)
    z, y = scores(loss)
    values, slopes = loss.value_and_grad(z, y)
    expected, inclines = twin.value_and_grad(z / scale, y)
    np.testing.assert_allclose(values, scale * expected, rtol=1e-12)
    np.testing.assert_allclose(slopes, inclines, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=2, max_size=14), st.integers(0, 100))
def test_sums_over_any_tree_are_products_with_its_paths(parents, seed):
    edges = [(f"n{min(parent, k)}", f"n{k + 1}") for k, parent in enumerate(parents)]
    tree = LabelTree.from_edges(edges)
    names = np.random.default_rng(seed).permutation(tree.classes).tolist()
    layout = TreeLayout.of(tree, names)
    table = np.array([[node in tree.path(name) for node in layout.names] for name in names]) * layout.scales
    np.testing.assert_array_equal(layout.paths, table)
    # Chains that are one column count as all of their nodes, and no other column has a single one below it.
    every = tree.paths(names)
    np.testing.assert_allclose(table @ table.T, every @ every.T, atol=1e-12)
    assert layout.n_nodes <= 3 * len(names) - 1
    random = np.random.default_rng(seed)
    z, a = random.normal(size=(7, layout.n_nodes)), random.normal(size=(7, layout.n_classes))
    np.testing.assert_allclose(layout.sum_paths(z), z @ table.T, atol=1e-12)
    np.testing.assert_allclose(layout.sum_subtrees(a), a @ table, atol=1e-12)


# Training.

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(80, 4))
Y = np.array(NAMES)[(X @ RANDOM.normal(size=(4, 5)) + RANDOM.gumbel(size=(80, 5))).argmax(axis=1)]


def independent_optimum(loss, C, intercept):
    """min J over the weights of all nodes, by SciPy, kinks rounded off as little as it can take."""
    bound = loss.with_classes(NAMES)
    smooth = bound if bound.smooth else bound.smoothed(1e-3)
    numbers = np.searchsorted(NAMES, Y).astype(float)
    rows = np.hstack([X, np.ones((len(X), 1))]) if intercept else X
    n = bound.n_scores(5)

    def objective(theta):
        W = theta.reshape(-1, n)
        z, weights = np.ascontiguousarray(rows @ W), W[:4]
        slopes = C * rows.T @ smooth.slopes(z, numbers, np.ones(len(z)))
        slopes[:4] += weights
        return 0.5 * (weights**2).sum() + C * smooth.sum(z, numbers, np.ones(len(z))), slopes.ravel()

    options = {"maxiter": 400, "ftol": 1e-14, "gtol": 1e-8, "maxcor": 30}
    found = minimize(objective, np.zeros(rows.shape[1] * n), jac=True, method="L-BFGS-B", options=options)
    z = np.ascontiguousarray(rows @ found.x.reshape(-1, n))
    return 0.5 * (found.x.reshape(-1, n)[:4] ** 2).sum() + C * bound.sum(z, numbers, np.ones(len(z)))


@pytest.mark.parametrize("intercept", [True, False])
@every_case
def test_optimum_and_certificate(tree, kind, intercept):
    loss = kind(tree)
    expected = independent_optimum(loss, 0.3, intercept)
    report = LinearModel(loss, C=0.3, fit_intercept=intercept, tol=1e-4).fit(X, Y).report_
    assert report.status == "converged"
    assert report.gap <= 1e-4
    assert (1 - report.gap) * report.objective <= expected * (1 + 1e-9)
    assert report.objective <= expected * (1 + 2e-4)


@pytest.mark.parametrize(
    ("loss", "solver"), [(TreeLogistic, "lbfgs"), (TreeLogistic, "bundle"), (TreeMargin, "bundle")]
)
def test_other_solvers_come_to_the_same(loss, solver):
    tree = LabelTree.from_edges(SHAPES["unbalanced"])
    one, other = (
        LinearModel(loss(tree), C=0.3, solver=by, tol=1e-5 if loss is TreeLogistic else 1e-4).fit(X, Y)
        for by in ("auto", solver)
    )
    assert one.report_.objective == pytest.approx(other.report_.objective, rel=3e-4)
    assert (one.predict(X) == other.predict(X)).mean() > 0.97


def with_shards(rows, y, folder):
    return beeline.convert(beeline.from_arrays(rows, np.searchsorted(NAMES, y)), folder)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_dense_sparse_and_store_give_the_same(kind, tmp_path):
    tree = LabelTree.from_edges([(a, int(b[1]) if b[0] == "c" else b, *rest) for a, b, *rest in SHAPES["chains"]])
    numbers = np.searchsorted(NAMES, Y)
    store = with_shards(X, Y, tmp_path / "s")
    tol = 1e-11 if kind is TreeLogistic else 1e-4
    plain = LinearModel(kind(tree), C=0.3, tol=tol).fit(X, numbers)
    for rows, y in ((sp.csr_array(X), numbers), (store, None), (beeline.read(store.path), None)):
        other = LinearModel(kind(tree), C=0.3, tol=tol).fit(rows, y)
        np.testing.assert_allclose(other.coef_, plain.coef_, atol=1e-5 if kind is TreeLogistic else 2e-2)
        assert other.report_.objective == pytest.approx(plain.report_.objective, rel=2e-4)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_weights_are_repetitions(kind):
    tree = LabelTree.from_edges(SHAPES["unbalanced"])
    times = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = LinearModel(kind(tree), C=0.3).fit(X, Y, sample_weight=times.astype(float))
    repeated = LinearModel(kind(tree), C=0.3).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    assert weighted.report_.objective == pytest.approx(repeated.report_.objective, rel=2e-4)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2e-2)


def test_weights_of_classes_are_the_sums_over_their_paths_and_least_norms_lead_back():
    tree = LabelTree.from_edges(SHAPES["unbalanced"])
    model = LinearModel(TreeLogistic(tree), C=0.3, tol=1e-9, fit_intercept=False).fit(X, Y)
    loss = TreeLogistic(tree).with_classes(NAMES)
    nodes = loss.from_classes(model.coef_.T)
    np.testing.assert_allclose(loss.to_classes(nodes), model.coef_.T, atol=1e-12)
    z = np.ascontiguousarray(X @ nodes)
    value = 0.5 * (nodes**2).sum() + 0.3 * loss.sum(z, np.searchsorted(NAMES, Y).astype(float), np.ones(len(z)))
    assert value == pytest.approx(model.report_.objective, rel=1e-8)


def test_a_warm_start_is_at_the_optimum():
    tree = LabelTree.from_edges(SHAPES["chains"])
    model = LinearModel(TreeLogistic(tree), C=0.3, tol=1e-6, warm_start=True).fit(X, Y)
    first = model.report_.iterations
    assert model.fit(X, Y).report_.iterations < first


@pytest.mark.parametrize("kind", KINDS)
def test_two_classes(kind):
    two = np.where(X[:, 0] > 0, "yes", "no")
    model = LinearModel(kind({"a": {"b": ["yes"]}, "no": None}), C=1.0).fit(X, two)
    assert model.model_.kind == "binary"
    assert model.score(X, two) > 0.9
    if kind is TreeLogistic:
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("loss", ["tree_logistic", "tree_margin"])
def test_search_for_the_best_c(loss):
    model = LinearModel(get_loss(loss, tree=SHAPES["unbalanced"]), C="auto", cv=2, tol=1e-2, fit_intercept=False).fit(
        X, Y
    )
    assert model.report_.status == "converged"
    assert model.score(X, Y) > 0.4


def test_leaves_that_no_row_has_are_left_out():
    kept = Y != "c4"
    model = LinearModel(TreeLogistic(SHAPES["unbalanced"]), C=0.3).fit(X[kept], Y[kept])
    assert model.classes_.tolist() == ["c0", "c1", "c2", "c3"]
    assert model.report_.status == "converged"


def test_a_chain_is_its_nodes():
    """A tree that says the same with a node more in a chain, whose weights are half as large, has the same optimum."""
    chain = LabelTree.from_edges([("r", "a"), ("a", "b"), ("b", "d"), *[("d", f"c{k}") for k in range(3)], ("r", "c3")])
    chain = LabelTree.from_edges([*map(tuple, chain.to_edges()), ("r", "e"), ("e", "c4")])
    bound = TreeLogistic(chain).with_classes(NAMES)
    assert bound.n_scores(5) == 7
    model = LinearModel(TreeLogistic(chain), C=0.3, tol=1e-9, fit_intercept=False).fit(X, Y)
    paths, numbers = chain.paths(NAMES)[:, 1:], np.searchsorted(NAMES, Y)

    def objective(theta):
        nodes = theta.reshape(-1, 4)
        s = X @ nodes.T @ paths.T
        powers = np.exp(s - s.max(axis=1, keepdims=True))
        p = powers / powers.sum(axis=1, keepdims=True)
        value = 0.5 * (nodes**2).sum() - 0.3 * np.log(p[np.arange(len(s)), numbers]).sum()
        p[np.arange(len(s)), numbers] -= 1
        return value, (nodes + 0.3 * (p @ paths).T @ X).ravel()

    found = minimize(objective, np.zeros(paths.shape[1] * 4), jac=True, method="L-BFGS-B", options={"ftol": 1e-15})
    assert model.report_.objective == pytest.approx(found.fun, rel=1e-8)
    np.testing.assert_allclose(model.coef_, paths @ found.x.reshape(-1, 4), atol=1e-3)


def test_names_with_dots():
    names = np.array(["a.x", "a.y", "b.u.p", "b.u.q", "c"])[np.searchsorted(NAMES, Y)]
    dotted = LinearModel(TreeLogistic("dots"), C=0.3).fit(X, names)
    spelled = LinearModel(TreeLogistic(LabelTree.from_names(np.unique(names))), C=0.3).fit(X, names)
    np.testing.assert_array_equal(dotted.coef_, spelled.coef_)
    with pytest.raises(ParameterError, match="'dots' is spelled out by the names of classes, which are not known"):
        TreeLogistic("dots").n_scores(3)


def test_refusals():
    with pytest.raises(LabelError, match="no node 'c4'; it has the classes c0, c1, c2, c3"):
        LinearModel(TreeLogistic([("r", "c0"), ("r", "c1"), ("r", "c2"), ("r", "c3")])).fit(X, Y)
    with pytest.raises(LabelError, match="'c1' is an inner node of the tree"):
        LinearModel(TreeLogistic([*SHAPES["flat"], ("c1", "c1.a")])).fit(X, Y)
    with pytest.raises(ParameterError, match="rescaling must be one of margin, slack, not 'both'"):
        TreeMargin(None, "both")
    with pytest.raises(ParameterError, match="the tree has 5 classes, not 6"):
        TreeMargin(SHAPES["flat"]).check_outputs(6)


@every_case
def test_settings_make_it_again(tree, kind):
    loss = kind(tree)
    again = get_loss(loss.name, **loss.settings)
    assert again.tree == tree
    assert again.settings == loss.settings
    assert "5 classes" in repr(loss)
    assert loss.identity == again.identity != kind(SHAPES["flat"][:3]).identity
    bound = loss.with_classes(NAMES[::-1])
    same = pickle.loads(pickle.dumps(bound))
    z, y = scores(bound)
    np.testing.assert_array_equal(same.slopes(z, y, np.ones(len(z))), bound.slopes(z, y, np.ones(len(z))))
