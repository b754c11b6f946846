"""Losses that are cut off: what they are, and the convex problems that lead to a local optimum."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

from beeline import LinearModel, LinearSVC, convert
from beeline.data.core.arrays import from_arrays
from beeline.engines import Threads
from beeline.exceptions import ConvergenceWarning, ModelWarning, ParameterError
from beeline.losses import (
    LOSSES,
    Absolute,
    Hinge,
    Huber,
    LeastSquares,
    Poisson,
    Ramp,
    ScalarLoss,
    Softmax,
    SquaredHinge,
    Truncated,
    TruncatedSquaredHinge,
    get_loss,
)
from beeline.objective import Objective
from beeline.regularizers import L1, L2
from beeline.selection.bounds import first_C
from beeline.solvers import Relaxation, Solver, Status
from beeline.solvers.auto import choose_solver

SCALAR = [kind() for kind in LOSSES.values() if issubclass(kind, ScalarLoss) and kind.convex]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5))
CLEAN = np.where(X @ [2.0, -1.0, 0.5, 0.0, 0.0] + 0.3 * RNG.normal(size=400) > 0.2, 1.0, -1.0)
Y = np.where(RNG.random(400) < 0.12, -CLEAN, CLEAN)  # some labels are wrong


def problem(loss=None, regularizer=None, intercept="free", engine=None, C=1.0):
    return Objective.of(
        from_arrays(X), Y, np.full(400, C), loss or Ramp(), regularizer or L2(), 1.0, intercept, engine=engine
    )


@pytest.mark.parametrize("loss", SCALAR, ids=lambda loss: loss.name)
@pytest.mark.parametrize("s", [0.0, 1.0, 2.5])
def test_it_is_the_loss_up_to_the_cap(loss, s):
    z = np.linspace(-4, 4, 81)
    y = np.resize([-1.0, 1.0] if loss.labels == "binary" else [0.5, 1.0], 81)
    values, slopes = loss.value_and_grad(z, y)
    cut = Truncated(loss, s)
    found, inclines = cut.value_and_grad(z, y)
    np.testing.assert_array_equal(found, np.minimum(values, 1 + s))
    np.testing.assert_array_equal(inclines, np.where(values > 1 + s, 0.0, slopes))
    np.testing.assert_array_equal(cut.outside(z, y), values > 1 + s)
    assert not cut.convex
    assert cut.labels == loss.labels
    assert cut.sum(z, y, np.ones(81)) == pytest.approx(found.sum())


@pytest.mark.parametrize("s", [0.0, 0.5, 3.0])
def test_where_the_hinges_are_cut_off(s):
    """L⁻¹(1 + s) is −s for the hinge and 1 − √(1 + s) for the squared hinge (I4)."""
    y = np.ones(2)
    for loss, margin in ((Ramp(s), -s), (TruncatedSquaredHinge(s), 1 - math.sqrt(1 + s))):
        assert loss.outside(margin + np.array([-1e-9, 1e-9]), y).tolist() == [True, False]


def test_names_and_settings():
    assert repr(Ramp(2.0)) == "Ramp(s=2.0)"
    assert repr(Truncated(Huber(0.5), 2.0)) == "Truncated(Huber(delta=0.5), s=2.0)"
    assert Truncated(Huber(0.5), 2.0).name == "truncated_huber"
    assert Truncated(Huber(0.5), 2.0).settings == {"delta": 0.5, "s": 2.0}
    assert get_loss("ramp", s=0.25).cap == 1.25
    assert Truncated(Poisson()).link == "exp"
    for bad in (Softmax(), Ramp(), "hinge"):
        with pytest.raises(ParameterError, match="only a convex loss of one score a row"):
            Truncated(bad)
    with pytest.raises(ParameterError, match="s must be finite and at least 0, not -1"):
        Ramp(-1)


@pytest.mark.parametrize("loss", [Ramp(), TruncatedSquaredHinge(0.5), Truncated(get_loss("logistic"), 0.5)], ids=repr)
@pytest.mark.parametrize("regularizer", [L2(), L1(), L2(nonnegative=True)], ids=repr)
@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
def test_the_objective_never_rises(loss, regularizer, intercept):
    o = problem(loss, regularizer, intercept)
    values, solver = [], choose_solver(o, tol=1e-6)
    assert isinstance(solver, Relaxation)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = solver.solve(o, callback=lambda step: values.append(step.objective))
    assert result.status is Status.UNPROVEN
    assert result.bound == -math.inf
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    assert result.objective == pytest.approx(o.at(result.theta).value, rel=1e-12)
    assert "a local optimum, whose convex problem was solved to at most" in result.sentence
    outside = loss.outside(o.rows.gather(o.at(result.theta).z), Y)
    assert result.facts["outside"] == outside.sum()
    assert result.facts["outside_positive"] == (outside & (Y > 0)).sum()
    np.testing.assert_array_equal(result.state.arrays["outside"], outside)


def test_the_end_is_the_optimum_of_the_rows_that_are_in():
    o = problem(TruncatedSquaredHinge())
    result = Relaxation(1e-8).run(o)
    inside = result.state.arrays["outside"] == 0
    assert 0 < (~inside).sum() < 60
    kept = Objective.of(from_arrays(X[inside]), Y[inside], np.ones(inside.sum()), SquaredHinge(), L2())
    best = choose_solver(kept, tol=1e-9).run(kept)
    np.testing.assert_allclose(result.theta, best.theta, atol=1e-4)
    for k in range(100):  # no point nearby is lower
        step = 1e-5 * np.random.default_rng(k).normal(size=6)
        assert o.at(result.theta + step).value >= result.objective * (1 - 1e-9)


def test_wrong_labels_do_not_pull():
    """Rows on the wrong side, which a hinge follows."""
    direction = np.array([2.0, -1.0, 0.5, 0.0, 0.0])
    far, labels = np.vstack([X, np.tile(1.5 * direction, (40, 1))]), np.append(CLEAN, -np.ones(40))
    test = np.random.default_rng(3).normal(size=(2000, 5))
    truth = np.where(test @ direction > 0.2, 1.0, -1.0)
    robust, plain = LinearSVC(loss="ramp").fit(far, labels), LinearSVC(loss="hinge").fit(far, labels)
    assert robust.score(test, truth) > 0.95 > plain.score(test, truth)
    assert set(range(400, 440)) <= set(robust.outliers_)
    assert not hasattr(plain, "outliers_")
    assert not hasattr(robust.set_params(loss="hinge").fit(far, labels), "outliers_")


def test_a_regression_without_its_outliers():
    y = X @ [1.0, 2.0, 0.0, 0.0, -1.0] + 0.1 * RNG.normal(size=400)
    wrong = np.where(np.arange(400) % 11 == 0, y + 50, y)
    robust = LinearModel(Truncated(Huber(), 2.0), C=10.0).fit(X, wrong)
    np.testing.assert_allclose(robust.coef_, [1.0, 2.0, 0.0, 0.0, -1.0], atol=0.05)
    assert robust.outliers_.tolist() == list(range(0, 400, 11))
    assert robust.model_.loss == "truncated_huber"
    for loss in (LeastSquares(), Absolute()):
        assert LinearModel(Truncated(loss, 2.0), C=10.0).fit(X, wrong).outliers_.tolist() == list(range(0, 400, 11))


@pytest.mark.parametrize("offset", [0.0, 1e5])
@pytest.mark.parametrize("n_shards", [1, 3])
def test_the_best_intercept_alone(offset, n_shards):
    """It lies in the largest crowd of labels, wherever that is: the loss is flat elsewhere, as at zero."""
    labels = offset + np.concatenate([RNG.normal(20.0, 1.0, 250), RNG.uniform(-300.0, 300.0, 150)])
    loss = Truncated(Huber(), 2.0)
    engine = Threads(n_shards=n_shards)
    o = Objective.of(from_arrays(X), labels, np.ones(400), loss, L2(), 1.0, "free", engine=engine)
    least = min(loss.sum(np.full(400, b), labels, np.ones(400)) for b in offset + np.arange(-300.0, 300.0, 0.01))
    assert o.null.value <= least * (1 + 1e-9)
    assert o.null.theta[-1] == pytest.approx(offset + 20, abs=0.3)
    assert not o.null.theta[:-1].any()
    assert first_C(o) == pytest.approx(first_C(o.with_labels(o.rows.scatter(labels - 7))), rel=1e-3)


def test_labels_on_a_scale_far_above_the_cap():
    """Nearly all rows would be OUT: the end is no worse than the best intercept, and the outliers are its own."""
    y = X @ [200.0, 100.0, -50.0, 0.0, 0.0] + 20 * RNG.normal(size=400) + 1e5
    words = "would give up most rows; .*; raise s or C, or scale the labels"
    with pytest.warns(ModelWarning, match="no better than"), pytest.warns(ConvergenceWarning, match=words):
        model = LinearModel(Truncated(Huber(), 2.0), C=1.0).fit(X, y)
    assert model.score(X, y) > -1
    beyond = model.loss.outside(model.predict(X), y)
    assert model.outliers_.tolist() == np.flatnonzero(beyond).tolist()


@pytest.mark.parametrize("method", ["relaxation", "cccp"])
@pytest.mark.parametrize("begin", ["sample", "convex"])
@pytest.mark.parametrize("continuation", [0, 2])
def test_options(method, begin, continuation):
    """All lead to about the same J here, and none above the start."""
    o = problem()
    options = {"method": method, "begin": begin, "sample_size": 100, "continuation": continuation}
    result = Relaxation(1e-6, **options).run(o)
    best = Relaxation(1e-6, begin="convex").run(o)
    assert result.objective <= 1.05 * best.objective
    assert result.objective < o.at(choose_solver(problem(Hinge())).run(problem(Hinge())).theta).value


def test_cccp_is_for_the_ramp():
    with pytest.raises(ParameterError, match="method='cccp' is for the ramp"):
        Relaxation(method="cccp").run(problem(TruncatedSquaredHinge()))
    with pytest.raises(ParameterError, match="'relaxation' is for losses that are cut off, not Hinge"):
        Relaxation().run(problem(Hinge()))


def test_a_rare_class_is_not_given_up():
    """From a poor start, a few positives among many rows would all be cut off: then it begins at the convex optimum."""
    random = np.random.default_rng(5)
    rows = random.normal(size=(3000, 20))
    labels = np.where(rows[:, 0] + 0.3 * random.normal(size=3000) > 1.9, 1.0, -1.0)
    robust = LinearModel("ramp", C=1.0, solver=("relaxation", {"sample_size": 60})).fit(rows, labels)
    positive = labels > 0
    assert (robust.predict(rows[positive]) > 0).mean() > 0.5


def test_a_class_that_would_be_given_up_keeps_its_convex_loss():
    random = np.random.default_rng(5)
    rows, labels = random.normal(size=(400, 3)), np.where(np.arange(400) < 8, 1.0, -1.0)
    rows[:8] += [1.5, 0.0, 0.0]
    words = r"would give up a class; .* of the positive lie beyond"
    with pytest.warns(ModelWarning, match="no better than"), pytest.warns(ConvergenceWarning, match=words):
        model = LinearModel(Ramp(0.5), C=0.01).fit(rows, labels)
    assert model.report_.status == "unproven"


def test_rows_anywhere_give_the_same(tmp_path):
    rows = from_arrays(X, (Y > 0).astype(float))
    store = convert(rows, tmp_path / "rows.store")
    here, there = LinearModel("ramp").fit(X, Y), LinearModel("ramp", memory="200K").fit(store)
    assert there.report_.objective == pytest.approx(here.report_.objective, rel=1e-3)
    one, three = (Relaxation(1e-8).run(problem(engine=Threads(n_shards=n))) for n in (1, 3))
    assert one.objective == pytest.approx(three.objective, rel=1e-6)


def test_several_classes_and_a_search():
    centres = np.array([[3.0, 0, 0, 0, 0], [0, 3.0, 0, 0, 0], [0, 0, 3.0, 0, 0]])
    labels = np.arange(400) % 3
    rows = X + centres[labels]
    labels = np.where(RNG.random(400) < 0.1, (labels + 1) % 3, labels)
    model = LinearModel("ramp", C="auto").fit(rows, labels)
    assert model.score(rows, labels) > 0.8
    assert len(model.results_) == 3
    assert 0 < len(model.outliers_) < 120
    worst = max(model.results_, key=lambda result: result.facts["convex_gap"])
    in_all = f"beyond the cap in any of them: {len(model.outliers_)} rows"
    assert model.report_.sentence == f"of 3 problems, the worst {worst.sentence}; {in_all}"


def test_a_search_over_labels_on_a_scale_far_above_the_cap():
    y = X @ [200.0, 100.0, -50.0, 0.0, 0.0] + 40 * RNG.normal(size=400)
    words = "or would have cut off most rows; scale the labels, raise s, raise max_passes"
    with pytest.warns(ConvergenceWarning, match=words), pytest.warns(ConvergenceWarning, match="give up most rows"):
        model = LinearModel(Truncated(Huber(), 2.0), C="auto", cv=2).fit(X, y)
    assert model.score(X, y) > 0.5


def test_a_loss_of_ones_own():
    class Quartic(ScalarLoss):
        def value_and_grad(self, z, y):
            return (z - y) ** 4 / 4, (z - y) ** 3

    y = np.where(np.arange(400) % 20 == 0, 40.0, X[:, 0])
    model = LinearModel(Truncated(Quartic(), 1.0), C=10.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, [1.0, 0, 0, 0, 0], atol=0.1)
    assert model.outliers_.tolist() == list(range(0, 400, 20))


def test_a_limit_in_a_convex_problem_is_said():
    """Nothing is called a local optimum whose convex problem was not solved."""
    with pytest.warns(ConvergenceWarning, match="reached its pass limit"):
        result = Relaxation(1e-8, 4, inner="bundle").solve(problem())
    assert result.status is Status.LIMIT
    assert "local optimum" not in result.sentence
    with pytest.warns(ConvergenceWarning, match="reached its time limit"):
        assert Relaxation(1e-8).with_time_limit(1e-9).solve(problem()).status is Status.TIME


@pytest.mark.parametrize("solves", [0, 1, 2])
def test_ctrl_c_in_a_convex_problem_ends_with_the_best_so_far(monkeypatch, solves):
    """Of the sample, of all rows, or of a step."""
    count, run = [0], Solver.run

    def interrupted(self, objective, *arguments, **more):
        if self.name == "relaxation":
            return run(self, objective, *arguments, **more)
        count[0] += 1
        result = run(self, objective, *arguments, **more)
        return replace(result, status=Status.INTERRUPTED) if count[0] > solves else result

    monkeypatch.setattr("beeline.solvers.base.Solver.run", interrupted)
    o = problem()
    result = Relaxation(1e-6, sample_size=100).run(o)
    assert result.status is Status.INTERRUPTED
    assert count[0] == solves + 1
    assert result.objective <= o.null.value


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_what_is_said_of_outliers_is_true_of_the_model(seed):
    """Also where an earlier point was better than the last one, or no weights at all are better than both."""
    random = np.random.default_rng(seed)
    n = int(random.choice([30, 100, 400]))
    X = random.normal(size=(n, 3))
    y = random.normal(size=n) * 10 ** random.uniform(0, 2)
    loss = Truncated(Huber(), s=1.0)
    o = Objective.of(from_arrays(X), y, np.ones(n), loss, L2(), 1.0, "free")
    result = Relaxation().run(o)
    outside = loss.outside(o.rows.gather(o.at(result.theta).z), y)
    np.testing.assert_array_equal(result.state.arrays["outside"].astype(bool), outside)
    assert result.facts["outside"] == outside.sum()
    assert f"{outside.sum():,} of {n:,} rows lie beyond the cap" in result.sentence


def test_rows_of_great_leverage_are_not_blamed_on_c():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1000, 5))
    y = (X[:, 0] > 0).astype(int)
    y[:60] = 1 - y[:60]
    X[:60, 0] *= 20
    with pytest.warns(ModelWarning, match="rows lie so far out in a feature that the model bends to them; scale the"):
        LinearSVC(loss="ramp").fit(X, y)
