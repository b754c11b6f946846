"""Losses of two classes over all rows go wherever losses go, and say what they cannot do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from spawned_engine import Spawned

import beeline
from beeline import FBetaClassifier, LinearModel, LinearSVC, PrecisionAtK, ROCClassifier, from_arrays
from beeline.engines import Threads
from beeline.exceptions import LabelError, ModelWarning, ParameterError
from beeline.losses import LOSSES, BalancedError, BreakEven, FBeta, Precision, Recall, RocArea, TwoClassLoss
from beeline.losses.tied_checking import check_tied_loss, fault_of_tied_loss
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers.auto import SOLVERS
from beeline.solvers.base import Status

EACH = [RocArea(), RocArea(0.2), FBeta(), FBeta(2.0), BalancedError(), Precision(20), Recall(30), BreakEven()]
IDS = [repr(loss) for loss in EACH]
N, D = 240, 5
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.7)
SCORES = X @ [2.0, -1.5, 1.0, 0.5, 0.0] + 0.4 * RNG.normal(size=N)
LIMIT = np.quantile(SCORES, 0.9)
Y = np.where(SCORES > LIMIT, 1.0, -1.0)
WHOLE = RNG.integers(0, 4, N).astype(float)


def objective(loss, omega=None, engine=None, data=None, y=Y, costs=None, C=50.0):
    costs = np.full(len(y), C) if costs is None else C * costs / costs[costs > 0].mean()
    intercept = "none" if loss.differences_only else "free"
    return Objective.of(data or from_arrays(X[: len(y)]), y, costs, loss, omega or L2(), 1.0, intercept, engine=engine)


def solved(o, tol=1e-4, **options):
    result = SOLVERS["bundle"](tol=tol, **options).run(o)
    assert result.status is Status.CONVERGED
    assert result.gap <= tol
    return result


def test_there_are_all_of_them():
    assert {loss.name for loss in EACH} == {name for name, kind in LOSSES.items() if issubclass(kind, TwoClassLoss)}


@pytest.fixture(scope="module")
def spawned():
    engine = Spawned(3)
    yield engine
    engine.close()


@pytest.mark.parametrize("loss", EACH, ids=IDS)
def test_the_same_bits_wherever_the_shards_lie(loss, spawned):
    one, other = (solved(objective(loss, engine=engine), 1e-3) for engine in (Threads(n_shards=3), spawned))
    np.testing.assert_array_equal(one.theta, other.theta)
    assert (one.objective, one.bound) == (other.objective, other.bound)


@pytest.mark.parametrize("omega", [L2(), L1(), ElasticNet(0.5)], ids=["l2", "l1", "elastic_net"])
@pytest.mark.parametrize("loss", EACH, ids=IDS)
def test_certificates_hold_by_each_other(loss, omega):
    """All variants, sparse rows and several shards: no bound lies above what another one found."""
    sparse = from_arrays(scipy.sparse.csr_array(X))
    problems = [
        objective(loss, omega),
        objective(loss, omega, data=sparse),
        objective(loss, omega, Threads(n_shards=4)),
    ]
    results = [solved(o, 1e-3) for o in problems] + [solved(problems[0], 1e-3, variant="bmrm")]
    if isinstance(omega, L2) and loss.differences_only:
        results.append(solved(problems[0], 1e-2, variant="line"))
    theirs = [problems[0].at(result.theta).value for result in results]
    np.testing.assert_allclose(theirs, [result.objective for result in results], rtol=1e-12)
    assert max(result.bound for result in results) <= min(theirs) * (1 + 1e-12)
    if isinstance(omega, L2):
        assert results[0].objective < problems[0].null.value * 0.99


@pytest.mark.parametrize("loss", EACH, ids=IDS)
def test_weights_are_repetition(loss):
    each = np.repeat(np.arange(N), WHOLE.astype(int))
    random = np.random.default_rng(1)
    with_weights = objective(loss, costs=WHOLE)
    repeated = objective(loss, data=from_arrays(X[each]), y=Y[each])
    for spread in (0.1, 3.0):
        theta = spread * random.normal(size=with_weights.size)
        assert with_weights.at(theta).value == pytest.approx(repeated.at(theta).value, rel=1e-12)
        slopes = with_weights.at(theta).gradient, repeated.at(theta).gradient
        np.testing.assert_allclose(*slopes, rtol=1e-9, atol=1e-9)
    found = solved(with_weights), solved(repeated)
    assert found[0].objective == pytest.approx(found[1].objective, rel=2e-4)


@pytest.mark.parametrize("loss", EACH, ids=IDS)
def test_along_a_line(loss):
    """Values and slopes along lines, by which steps are chosen, are those of points; steps end where J is least."""
    o, random = objective(loss), np.random.default_rng(3)
    begin, direction = o.at(0.3 * random.normal(size=o.size)), random.normal(size=o.size)
    line = begin.line(direction)
    for t in (0.0, 0.4, 3.0):
        there = o.at(begin.theta + t * direction)
        value, slope = line.at(t)
        assert value == pytest.approx(there.value, rel=1e-12)
        assert slope == pytest.approx(float(there.gradient @ direction), rel=1e-9, abs=1e-9)
    best = line.least(-np.inf, np.inf, 1.0, 1e-9)
    near = [line.at(best + step)[0] for step in np.linspace(-1, 1, 41) if step]
    assert line.at(best)[0] <= min(near) * (1 + 2e-9)


@pytest.mark.parametrize("loss", EACH, ids=IDS)
def test_a_store_within_a_budget(loss, tmp_path):
    X_long, y_long = np.tile(X, (40, 1)), np.tile(Y, 40) > 0
    loss = Precision(40 * loss.k) if isinstance(loss, Precision) else loss
    store = beeline.convert(from_arrays(X_long, y_long), tmp_path / "store")
    here = LinearModel(loss, C=20.0).fit(X_long, y_long)
    there = LinearModel(loss, C=20.0, memory="700k").fit(store)
    assert there.report_.objective == pytest.approx(here.report_.objective, rel=2e-4)
    if not loss.differences_only:
        assert there.score(X_long, y_long) == pytest.approx(here.score(X_long, y_long), abs=0.05)


@pytest.mark.parametrize("loss", EACH, ids=IDS)
def test_c_is_chosen_by_the_measure(loss):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # so few rows leave the choice to chance
        found = LinearModel(loss, C="auto", cv=3).fit(X, Y > 0).selection_
    assert found.metric == loss.measure
    assert 0.5 < found.best_score <= 1.0


def test_k_is_that_of_the_part_that_is_held_out():
    """A third of the positive rows can be all of a third of k, not of k."""
    signs = np.where(np.arange(90) % 3 == 0, 1.0, -1.0)
    perfect = signs[:, None] + 0.01 * np.random.default_rng(0).normal(size=(90, 1))
    found = PrecisionAtK(k=30, C="auto", cv=3).fit(perfect, signs).selection_
    assert found.best_score == 1.0
    assert Recall(6).of_part(0.5).k == 3
    assert Precision(2).of_part(0.1).k == 1
    assert RocArea(0.5).of_part(0.1).max_fpr == 0.5


@pytest.mark.parametrize("loss", EACH, ids=IDS)
def test_a_look_finds_nothing_wrong(loss):
    check_tied_loss(loss, Y, np.array([0, N]), 1)
    random = np.random.default_rng(2)
    begin, end = random.normal(size=(2, N))
    assert fault_of_tied_loss(loss.within(None), Y, np.ones(N), begin, end) is None


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("loss", EACH, ids=IDS)
def test_features_of_any_scale(loss, scale):
    """The same problem in other units, C with them: the same model, and the same certificate."""
    o = objective(loss, data=from_arrays(scale * X), C=50.0 / scale**2) if scale < 1 else None
    o = o or objective(loss, data=from_arrays(scale * X))
    result = solved(o, 1e-3)
    assert o.null.value >= result.objective >= result.bound * (1 - 1e-12)
    assert np.abs(result.theta[:D]).max() > 0


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("loss", EACH, ids=IDS)
def test_ties_and_weights_of_many_sizes(loss, C):
    """Rows that occur many times with both labels, and one that weighs as much as all others."""
    random = np.random.default_rng(4)
    rows = np.repeat(np.round(random.normal(size=(12, 3))), 10, axis=0)
    y = np.where(random.random(120) < 0.25, 1.0, -1.0)
    weights = np.ones(120)
    weights[::7], weights[5] = 0.0, 100.0
    o = objective(loss, data=from_arrays(rows), y=y, costs=weights, C=C)
    result = SOLVERS["bundle"](tol=1e-4).run(o)
    assert result.gap <= 1e-4 or result.objective <= 1e-10
    assert result.bound <= min(o.at(t).value for t in (result.theta, o.null.theta, 0.9 * result.theta)) * (1 + 1e-12)


@pytest.mark.parametrize("loss", [*EACH, Precision(1)], ids=[*IDS, "Precision(1)"])
def test_one_positive_row(loss):
    y = np.full(N, -1.0)
    y[int(np.argmax(SCORES))] = 1.0
    if isinstance(loss, Precision) and loss.k > 1:
        with pytest.raises(
            ParameterError, match=r"k = 20 rows cannot all be of the class True, of which there is 1 row"
        ):
            LinearModel(loss).fit(X, y > 0)
        return
    model = LinearModel(loss, C=1000.0).fit(X, y > 0)
    assert model.report_.gap <= 1e-4
    if loss.name != "recall" or loss.k == 1:  # of which 29 rows may lie above it
        assert model.decision_function(X).argmax() == y.argmax()


def test_what_is_refused():
    y = Y > 0
    for loss in (RocArea(), Precision(5), Recall(5), BreakEven()):
        with pytest.raises(ParameterError, match="only differences of scores matter, which say nothing about an inter"):
            LinearModel(loss, fit_intercept="regularized").fit(X, y)
    with pytest.raises(ParameterError, match="class_weight changes nothing about the loss 'roc_area'"):
        LinearModel("roc_area", class_weight="balanced").fit(X, y)
    with pytest.raises(ParameterError, match="k = 500 rows are to be looked at, and there are 240 rows; take fewer"):
        LinearModel(Recall(500)).fit(X, y)
    with pytest.raises(ParameterError, match="k = 30 rows cannot all be of the class True, of which there are 24 rows"):
        PrecisionAtK(k=30).fit(X, y)
    with pytest.raises(ParameterError, match="not whole multiples of one weight"):
        PrecisionAtK(k=5).fit(X, y, sample_weight=np.random.default_rng(0).uniform(0.5, 2.0, N))
    for estimator in (ROCClassifier(), FBetaClassifier(), PrecisionAtK(k=2)):
        with pytest.raises(LabelError, match="only one class"):
            estimator.fit(X, np.ones(N))
        with pytest.raises(LabelError, match=r"Only binary classification is supported .* the labels name 3 classes"):
            estimator.fit(X, np.arange(N) % 3)
    with pytest.raises(ParameterError, match="the metric 'accuracy' goes by a threshold"):
        ROCClassifier(C="auto", scoring="accuracy").fit(X, y)


def test_the_balanced_error_is_that_of_balanced_classes():
    """The support vector machine whose classes weigh the same is the same problem, and found by other solvers."""
    one = LinearModel("balanced_error", C=30.0, tol=1e-6).fit(X, Y)
    other = LinearSVC(loss="hinge", C=30.0 / N, class_weight="balanced", tol=1e-6).fit(X, Y)
    assert one.report_.objective == pytest.approx(other.report_.objective, rel=2e-6)
    np.testing.assert_allclose(one.coef_.ravel(), other.coef_.ravel(), atol=5e-3)
    assert BalancedError().measured(one.decision_function(X), Y, np.ones(N)) > 0.8


def test_a_worthless_model_is_told():
    with pytest.warns(
        ModelWarning, match=r"no better than zero weights.*take the loss 'roc_area' with a small max_fpr"
    ):
        PrecisionAtK(k=2, C=1e-9).fit(X, Y)
    with pytest.warns(ModelWarning, match="no better than its intercept alone") as said:
        FBetaClassifier(C=1e-9).fit(X, Y)
    assert "class_weight" not in str(said[0].message)


def test_scores_and_predictions():
    y = np.where(Y > 0, "rare", "common")
    for estimator, share in (
        (ROCClassifier(), None),
        (PrecisionAtK(k=12, C=1000.0), 12 / N),
        (FBetaClassifier(), None),
    ):
        model = estimator.fit(X, y)
        z = model.decision_function(X)
        assert model.classes_.tolist() == ["common", "rare"]
        np.testing.assert_array_equal(model.predict(X) == "rare", z > 0)
        if share is not None:
            assert np.mean(z > 0) == pytest.approx(share)
    half = ROCClassifier(max_fpr=0.1).fit(X, y)
    found = RocArea(0.1).measured(half.decision_function(X), Y, np.ones(N))
    other = RocArea(0.1).measured(LinearModel("logistic", C=1e-3).fit(X, y).decision_function(X), Y, np.ones(N))
    assert found > other
