"""Whatever is learned, and predicted, has the same bits for any number of threads.

The rows are so many that each kernel has several tasks to share out; pairs of solvers and losses are in
`test_solver_contract`.
"""

import numpy as np
import pytest
import scipy.sparse
from loss_rows import learned_labels

from beeline import Lasso, LinearModel, LinearSVC, LinearSVR, LogisticRegression, convert, select_C
from beeline.data.core.arrays import from_arrays
from beeline.kernels import _kernels
from beeline.losses import LOSSES, CrammerSinger, Hinge, Logistic, Precision, Recall, Softmax, VectorLoss
from beeline.objective import Objective
from beeline.regularizers import L1, L2
from beeline.solvers.auto import choose_solver

N, CLASSES = 20_000, 4
RNG = np.random.default_rng(8)


def rows(layout):
    """Dense rows, sparse ones, and such that are multiplied feature by feature, since features are rare in them."""
    if layout == "dense":
        return RNG.normal(size=(N, 20)) + 0.3
    d, each = (20, 8) if layout == "sparse" else (4000, 10)
    return scipy.sparse.random_array((N, d), density=each / d, format="csr", rng=RNG)


ROWS = {layout: rows(layout) for layout in ("dense", "sparse", "rare")}
SCORES = {layout: X @ RNG.normal(size=(X.shape[1], CLASSES)) for layout, X in ROWS.items()}
Y = {layout: (2 * z + RNG.gumbel(size=z.shape)).argmax(axis=1) for layout, z in SCORES.items()}
every_layout = pytest.mark.parametrize("layout", ROWS)


def shared(compute):
    """How many jobs with several tasks it takes."""
    before = _kernels.shared_jobs()
    compute()
    return _kernels.shared_jobs() - before


@every_layout
@pytest.mark.parametrize("loss", [Logistic(), Hinge(), Softmax(), CrammerSinger()], ids=lambda loss: loss.name)
def test_each_part_of_the_work_is_shared_out(layout, loss):
    outputs = CLASSES if isinstance(loss, VectorLoss) else 1
    y = Y[layout].astype(float) if outputs > 1 else np.where(Y[layout] > 1, 1.0, -1.0)
    o = Objective.of(from_arrays(ROWS[layout]), y, np.ones(N), loss, L2(), n_outputs=outputs)
    theta = np.random.default_rng(9).normal(size=o.size)
    point = o.at(theta)
    assert shared(lambda: o.scores(theta))
    assert shared(lambda: point.value)
    assert shared(lambda: point.loss_gradient)
    assert shared(lambda: point.line(theta).at(0.1)) >= 2
    if loss.has_curvature:
        assert shared(lambda: point.hessian_product(theta))
        assert shared(point.hessian_diagonal)


def told(model, X):
    """All that a fitted model says."""
    found = [model.coef_, np.asarray(model.intercept_), model.predict(X)]
    if hasattr(model, "decision_function"):
        found.append(model.decision_function(X))
    if hasattr(model, "predict_proba"):
        found.append(model.predict_proba(X))
    return found


@every_layout
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LogisticRegression(multi_class="ovr"),
        LogisticRegression(multi_class="ovr", l1_ratio=1.0),
        LinearSVC(),
        LinearSVC(loss="hinge", C=0.1),
        LinearSVC(loss="hinge", multi_class="crammer_singer", C=0.1),
        LinearSVC(loss="hinge", solver="bundle", C=0.01),
        LinearSVC(probability=True, C=0.1),
    ],
    ids=str,
)
def test_classes(same_bits, model, layout):
    X, y = ROWS[layout], Y[layout]
    same_bits(lambda: told(model.set_params(tol=1e-2).fit(X, y), X), threads=(1, 3))


@every_layout
@pytest.mark.parametrize("model", [LinearSVR(C=0.01), Lasso(alpha=1e-3)], ids=str)
def test_numbers(same_bits, model, layout):
    X = ROWS[layout]
    y = SCORES[layout][:, 0] + np.random.default_rng(9).normal(size=N)
    same_bits(lambda: told(model.set_params(tol=1e-2).fit(X, y), X))


def pairs():
    """Losses with regularizers; L1 with a margin over all classes at once is linear programs, and takes seconds."""
    for name, kind in LOSSES.items():
        if kind.scope != "group":
            yield name, L2()
            slow = name in ("weston_watkins", "scaled_multiclass_margin")
            yield pytest.param(name, L1(), marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize(("name", "regularizer"), list(pairs()), ids=lambda part: getattr(part, "name", part))
def test_every_loss(same_bits, name, regularizer):
    loss, X = LOSSES[name](), ROWS["dense"][:, :8]
    y = learned_labels(loss, X).astype(float)
    y = np.where(y > 0, 1.0, -1.0) if loss.labels in ("binary", "sets") else y
    outputs = 3 if isinstance(loss, VectorLoss) else 1
    intercept = "regularized" if loss.labels == "none" else "none" if loss.differences_only else "free"
    c = np.random.default_rng(9).uniform(0.5, 1.5, size=N)  # or sums of whole numbers would be exact
    c = np.ones(N) if isinstance(loss, Precision | Recall) else c  # which count rows
    o = Objective.of(from_arrays(X), y, c, loss, regularizer, 1.0, intercept, n_outputs=outputs)
    same_bits(lambda: choose_solver(o, max_passes=5).run(o).theta, threads=(1, 3))


def test_a_store(same_bits, tmp_path):
    store = convert(ROWS["sparse"], tmp_path / "rows.store")
    for model in (LogisticRegression(), LinearSVC(loss="hinge", C=0.1)):
        same_bits(lambda model=model: told(model.fit(store, Y["sparse"]), store))


def searched(X, y, loss, **settings):
    """The path of C, what was scored on it, and the weights that it ends with."""
    found = select_C(X, loss, y, folds=2, **settings)
    return [[[p.C, *p.fold_scores, p.passes] for p in found.curve], found.start.weights, found.start.intercepts]


# One search goes in lockstep where the loss is smooth, and side by side elsewhere.
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge", "softmax"])
def test_a_search(same_bits, layout, loss):
    y = Y[layout] if loss in ("softmax", "squared_hinge") else Y[layout] > 1
    same_bits(lambda: searched(ROWS[layout], y, loss, C_max=1e-3), threads=(1, 3))


def test_a_search_with_an_l1_regularizer(same_bits):
    X, y = ROWS["rare"], Y["rare"] > 1
    same_bits(lambda: searched(X, y, "logistic", regularizer="l1", C_max=3.0), threads=(1, 3))


def test_a_search_in_an_estimator(same_bits):
    X, y = ROWS["rare"], Y["rare"]
    same_bits(lambda: told(LinearModel("squared_hinge", C="auto", cv=2).fit(X, y), X), threads=(1, 3))
