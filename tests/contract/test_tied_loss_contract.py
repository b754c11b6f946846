"""Losses of groups, of all rows, and with parameters of their own go wherever losses of rows go."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from spawned_engine import Spawned
from toy_losses import TOYS, Levels, ListNet, PairHinge, SmallChain

import beeline
from beeline import LinearModel, Model, from_arrays
from beeline.engines import Threads
from beeline.exceptions import DataError, ParameterError
from beeline.losses import FBeta, GroupLoss, LevelPairs, RocArea
from beeline.objective import Objective, Parameters
from beeline.regularizers import L1, L2
from beeline.solvers.auto import SOLVERS
from beeline.solvers.base import Status
from beeline.training.run import train
from beeline.training.task import Task

N, D = 120, 5
RNG = np.random.default_rng(11)
X = RNG.normal(size=(N, D))
SIGNAL = X @ RNG.normal(size=D) + 0.5 * RNG.normal(size=N)
SIZES = np.tile([3, 4, 5, 6, 2, 4], 5)
STARTS = np.append(0, np.cumsum(SIZES))
GROUPS = np.repeat(np.arange(len(SIZES)), SIZES)
LABELS = {
    "small_chain": np.digitize(SIGNAL, [-0.8, 0.8]).astype(float),
    None: np.digitize(SIGNAL, [-1.5, 0.0, 1.5]).astype(float),
}
OUTPUTS = {"small_chain": 3}
INTERCEPTS = ("free", "regularized", "none")


def labels(name):
    return LABELS.get(name, LABELS[None])


def objective(name, intercept="none", omega=None, engine=None, costs=None, keep=None):
    """J over the rows, or over those that are kept."""
    keep = np.ones(N, bool) if keep is None else keep
    costs = np.full(N, 2.0) if costs is None else costs
    loss = TOYS[name]()
    sizes = np.bincount(GROUPS[keep], minlength=len(SIZES))
    groups = np.append(0, np.cumsum(sizes[sizes > 0])) if loss.scope == "group" else None
    rows = (engine or Threads()).open(from_arrays(X[keep]), groups)
    y, c = (rows.scatter(column[keep]) for column in (labels(name), costs))
    return Objective(rows, y, c, loss, omega or L2(), 1.0, intercept, n_outputs=OUTPUTS.get(name, 1))


def allowed(name, intercept):
    return not (TOYS[name].free_extra and intercept == "regularized")


def problems(solvers=("lbfgs", "bundle")):
    for name in TOYS:
        for intercept in INTERCEPTS:
            for solver in solvers:
                if allowed(name, intercept) and SOLVERS[solver]().refusal(objective(name, intercept)) is None:
                    slow = name == "small_chain" and (intercept, solver) != ("regularized", "lbfgs")
                    yield pytest.param(name, intercept, solver, marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize(("name", "intercept"), [(n, i) for n in TOYS for i in INTERCEPTS if allowed(n, i)])
def test_gradients_by_differences(name, intercept):
    random = np.random.default_rng(1)
    o = objective(name, intercept, costs=random.uniform(0.5, 2.0, size=N))
    theta = random.normal(size=o.size) * 0.3
    for direction in (*np.eye(o.size)[:: max(1, o.size // 7)], random.normal(size=o.size)):
        step = 1e-6 * direction
        slope = (o.at(theta + step).value - o.at(theta - step).value) / 2e-6
        assert float(o.at(theta).gradient @ direction) == pytest.approx(slope, rel=1e-4, abs=1e-4)
        line = o.at(theta).line(direction)
        assert line.at(0.7)[0] == pytest.approx(o.at(theta + 0.7 * direction).value, rel=1e-12)
        assert line.at(0.7)[1] == pytest.approx(float(o.at(theta + 0.7 * direction).gradient @ direction), abs=1e-9)


@pytest.mark.parametrize(("name", "intercept", "solver"), list(problems()))
def test_certified_optimum(name, intercept, solver):
    o = objective(name, intercept)
    result = SOLVERS[solver](tol=1e-5).run(o)
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(o.at(result.theta).value, rel=1e-12)
    best = result.objective
    for start in (result.theta, np.zeros(o.size)):
        found = minimize(lambda t: (o.at(t).value, o.at(t).gradient), start, jac=True, method="L-BFGS-B")
        best = min(best, found.fun)
    assert result.bound <= best * (1 + 1e-10)
    if o.loss.smooth:
        assert result.objective <= best * (1 + 1.2e-5)


@pytest.mark.parametrize("omega", [L1()], ids=["l1"])
@pytest.mark.parametrize("name", ["list_net", "all_soft", "pair_hinge"])
def test_other_regularizers(name, omega):
    o = objective(name, "none", omega)
    results = [SOLVERS[s](tol=1e-4).run(o) for s in ("lbfgs", "bundle") if SOLVERS[s]().refusal(o) is None]
    assert all(result.status is Status.CONVERGED for result in results)
    assert max(r.bound for r in results) <= min(r.objective for r in results) * (1 + 1e-12)


@pytest.mark.parametrize(("name", "intercept", "solver"), list(problems()))
def test_weight_zero_is_absent(name, intercept, solver):
    """Also of whole groups, and of parts of them."""
    random = np.random.default_rng(242)
    keep = random.uniform(size=N) > 0.3
    keep[STARTS[2] : STARTS[4]] = False
    with_zeros = objective(name, intercept, costs=np.where(keep, 2.0, 0.0))
    without = objective(name, intercept, keep=keep)
    theta = random.normal(size=without.size) * 0.3
    assert with_zeros.at(theta).value == pytest.approx(without.at(theta).value, rel=1e-13)
    np.testing.assert_allclose(with_zeros.at(theta).gradient, without.at(theta).gradient, rtol=1e-10, atol=1e-10)
    one, other = (SOLVERS[solver](tol=1e-4).run(o) for o in (with_zeros, without))
    assert one.objective == pytest.approx(other.objective, rel=2e-4)


@pytest.mark.parametrize("name", TOYS)
def test_costs_scale_the_loss(name):
    random = np.random.default_rng(2)
    weights = random.uniform(0.5, 2.0, size=N)
    one, other = (objective(name, costs=scale * weights) for scale in (1.0, 3.0))
    theta = random.normal(size=one.size) * 0.3
    assert other.at(theta).loss == pytest.approx(3 * one.at(theta).loss, rel=1e-12)


@pytest.fixture(scope="module")
def spawned():
    engine = Spawned(4)
    yield engine
    engine.close()


@pytest.mark.parametrize(("name", "intercept", "solver"), list(problems()))
def test_the_same_bits_wherever_the_shards_lie(name, intercept, solver, spawned):
    here = objective(name, intercept, engine=Threads(n_shards=4))
    there = objective(name, intercept, engine=spawned)
    assert here.rows.n_shards == 4
    spawned.crossed.clear()
    one, other = (SOLVERS[solver](tol=1e-3).run(o) for o in (here, there))
    np.testing.assert_array_equal(one.theta, other.theta)
    assert (one.objective, one.bound) == (other.objective, other.bound)
    assert max((shape[0] for shape in spawned.crossed if shape), default=0) < N // 4 - 5
    whole = SOLVERS[solver](tol=1e-3).run(objective(name, intercept))
    assert one.objective == pytest.approx(whole.objective, rel=2e-3)


def test_shards_never_cut_groups():
    for n_shards in (2, 3, 7, 50, 500):
        rows = Threads(n_shards=n_shards).open(from_arrays(X), STARTS)
        assert {shard.start for shard in rows.shards} <= set(STARTS)
        assert rows.shards[0].start == 0
        assert rows.shards[-1].stop == N
        inside = np.concatenate([shard.start + shard.groups[:-1] for shard in rows.shards])
        np.testing.assert_array_equal(inside, STARTS[:-1])


@pytest.mark.parametrize("name", TOYS)
def test_through_a_store(name, tmp_path):
    y, loss = labels(name), TOYS[name]()
    store = beeline.convert(from_arrays(X, y, queries=GROUPS), tmp_path / "store")
    fitted = LinearModel(loss, fit_intercept=False, C=2.0).fit(store)
    groups = GROUPS if loss.scope == "group" else None
    other = LinearModel(loss, fit_intercept=False, C=2.0).fit(X, y, groups=groups)
    assert fitted.model_.report.objective == pytest.approx(other.model_.report.objective, rel=2e-4)


@pytest.mark.parametrize("name", TOYS)
def test_a_path_for_c_with_grouped_folds(name):
    loss = TOYS[name]()
    groups = GROUPS if loss.scope == "group" else None
    model = LinearModel(loss, C="auto", cv=2, fit_intercept=False).fit(X, labels(name), groups=groups)
    selection = model.selection_
    assert selection.metric == ("log_loss" if name == "none" else "loss" if name != "small_chain" else "accuracy")
    assert selection.best_score != selection.null_score
    assert (model.model_.extra is None) == (loss.n_extra(3) == 0)


def test_held_out_scores_are_those_of_groups():
    """A search shows the mean loss of held-out groups, as the exact model at that C has it."""
    C, scores = 4.0, []
    selection = beeline.select_C(
        X, ListNet(), LABELS[None], groups=GROUPS, folds=3, C_min=C, C_max=C, intercept="none", tol=1e-7
    )
    from beeline.selection.folds import make_folds

    for fold in make_folds(3, LABELS[None], classes=False, groups=GROUPS, seed=0):
        assert not set(GROUPS[fold.train]) & set(GROUPS[fold.test])
        model = LinearModel(ListNet(), C=C, fit_intercept=False, tol=1e-8)
        model.fit(X[fold.train], LABELS[None][fold.train], groups=GROUPS[fold.train])
        z = model.model_.decision_function(X[fold.test])
        each = [
            ListNet().value_and_grad(z[of], LABELS[None][fold.test][of], np.ones(of.sum()))[0]
            for of in (GROUPS[fold.test] == g for g in np.unique(GROUPS[fold.test]))
        ]
        scores.append(np.mean(each))
    np.testing.assert_allclose(selection.curve[0].fold_scores, scores, rtol=1e-3)


@pytest.mark.filterwarnings("ignore:at no C")
@pytest.mark.parametrize("loss", [ListNet(), RocArea(), FBeta(), LevelPairs()], ids=lambda loss: type(loss).__name__)
def test_training_rows_are_judged_as_those_that_are_held_out(loss):
    """A mean over groups, or the loss of all rows itself: with hardly any weights it is the same of both."""
    y = LABELS[None] if loss.labels != "binary" else (LABELS[None] > 1).astype(float)
    groups = GROUPS if loss.scope == "group" else None
    found = beeline.select_C(X, loss, y, groups=groups, folds=3, C_min=1e-6, C_max=1e-6, intercept="none")
    assert found.curve[0].training_loss == pytest.approx(found.curve[0].loss, rel=0.15)


@pytest.mark.parametrize("loss", [ListNet(), PairHinge(), "squared"], ids=["ListNet", "PairHinge", "by rows"])
def test_held_out_rankings_are_judged_by_whole_queries(loss):
    C, text = 0.5, "ndcg@3"
    y = LABELS[None]
    model = LinearModel(loss, C="auto", cv=3, scoring=text, fit_intercept=False).fit(X, y, groups=GROUPS)
    assert (model.selection_.metric, model.selection_.greater_is_better) == (text, True)
    assert model.selection_.best_score > model.selection_.null_score
    found = beeline.select_C(
        X, loss, y, groups=GROUPS, metric=text, folds=3, C_min=C, C_max=C, intercept="none", tol=1e-5
    )
    from beeline.query_measures import RankedQueries, query_measure
    from beeline.selection.folds import make_folds

    scores = []
    for fold in make_folds(3, y, classes=False, groups=GROUPS, seed=0):
        assert not set(GROUPS[fold.train]) & set(GROUPS[fold.test])
        alone = LinearModel(loss, C=C, fit_intercept=False, tol=1e-5)
        given = {} if loss == "squared" else {"groups": GROUPS[fold.train]}
        z = alone.fit(X[fold.train], y[fold.train], **given).predict(X[fold.test])
        starts = np.concatenate([[0], np.flatnonzero(np.diff(GROUPS[fold.test])) + 1, [np.sum(fold.test)]])
        ranked = RankedQueries(y[fold.test], z, starts)
        scores.append(ranked.mean(ranked.by_query(query_measure(text))))
    np.testing.assert_allclose(found.curve[0].fold_scores, scores, rtol=1e-3)


def test_a_metric_of_ones_own_sees_groups():
    def top(estimator, places, y, groups):
        predicted = estimator.predict(places)
        return np.mean([y[groups == g][predicted[groups == g].argmax()] for g in np.unique(groups)])

    model = LinearModel(PairHinge(), C="auto", cv=2, scoring=top, fit_intercept=False).fit(
        X, LABELS[None], groups=GROUPS
    )
    assert model.selection_.best_score > LABELS[None].mean() + 0.5


def test_parameters_of_the_loss_are_in_the_models_file(tmp_path):
    model = LinearModel(Levels(), C=10.0, fit_intercept=False, tol=1e-6).fit(X, LABELS[None]).model_
    assert model.extra.shape == (3,)
    assert np.all(np.diff(model.extra) > 0)
    model.save(tmp_path / "m.beeline")
    again = Model.load(tmp_path / "m.beeline")
    np.testing.assert_array_equal(again.extra, model.extra)
    assert LinearModel().fit(X, SIGNAL > 0).model_.extra is None


def test_a_warm_start_has_the_parameters_too():
    task = Task(from_arrays(X), LABELS[None], None, Levels(), L2(), intercept="none")
    first = train(task, tol=1e-8)
    again = train(task, tol=1e-6, start=first)
    assert again.results[0].iterations <= 2
    np.testing.assert_allclose(again.extra, first.extra, rtol=1e-3)


def test_layout():
    p = Parameters(4, 3, "free", n_extra=2)
    theta = np.arange(17.0)
    assert (p.size, p.n_weights, p.n_regularized) == (17, 12, 14)
    w, b = p.split(theta)
    np.testing.assert_array_equal(p.join(w, b, p.extra(theta)), theta)
    np.testing.assert_array_equal(b, [14, 15, 16])
    assert Parameters(4, 3, "free", 2, free_extra=True).n_regularized == 12
    assert Parameters(4, 3, "regularized", 2).n_regularized == 17
    assert Parameters(4, 1, "none").size == 4
    with pytest.raises(ParameterError, match="regularized intercept"):
        Parameters(4, 1, "regularized", 2, free_extra=True)


WRONG = {
    "wrong slopes": lambda self, z, y, weights: (float(z @ z), z),
    "not convex": lambda self, z, y, weights: (float(np.sum(1 - np.cos(z))), np.sin(z)),
    "must not be negative": lambda self, z, y, weights: (float(np.sum(z * z)) - 1e3, 2 * z),
    "arrays of shapes": lambda self, z, y, weights: (z * z, 2 * z),
    "changes the scores": lambda self, z, y, weights: (float(np.sum(z * z)), z.__iadd__(1.0)),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_with_a_loss_is_said(words):
    kind = type("Wrong", (GroupLoss,), {"value_and_grad": WRONG[words]})
    with pytest.raises(ParameterError, match=words):
        LinearModel(kind(), fit_intercept=False).fit(X, LABELS[None], groups=GROUPS)


def test_what_goes_wrong_far_out_takes_the_bound_with_it():
    class Tired(GroupLoss):
        """Squared, and less and less steep where scores are beyond 50."""

        def value_and_grad(self, z, y, weights):
            r, beyond = z - y, np.maximum(abs(z) - 50, 0.0)
            fades = np.exp(-beyond)
            return float(np.sum(r * r * fades)), np.where(beyond > 0, fades * (2 * r - r * r * np.sign(z)), 2 * r)

    with pytest.warns(UserWarning, match="not convex"):
        model = LinearModel(Tired(), C=1.0, fit_intercept=False).fit(X, 30 * LABELS[None], groups=GROUPS)
    assert model.model_.report.gap is None


def test_rows_of_a_group_must_lie_together():
    with pytest.raises(DataError, match=r"row 2 goes on with the group 7, which had ended before; sort the rows"):
        LinearModel(ListNet()).fit(X[:4], [1.0, 2, 3, 4], groups=[7, 8, 7, 7])
    with pytest.raises(DataError, match=r"no groups; give data with query ids.* or give groups=, one a row"):
        LinearModel(ListNet()).fit(X, LABELS[None])
    with pytest.raises(ParameterError, match="one a row, 120 in all"):
        LinearModel(ListNet()).fit(X, LABELS[None], groups=GROUPS[:-1])


def test_solvers_that_need_single_rows_say_so():
    for solver in ("newton", "smoothed_newton", "dual_cd", "l1_cd", "interior_point"):
        for loss in (ListNet(), Levels()):
            groups = GROUPS if loss.scope == "group" else None
            with pytest.raises(ParameterError, match="lbfgs or bundle"):
                LinearModel(loss, solver=solver, fit_intercept=False).fit(X, LABELS[None], groups=groups)


def test_a_chain_predicts_classes():
    model = LinearModel(SmallChain(), C=10.0).fit(X, LABELS["small_chain"], groups=GROUPS)
    assert model.coef_.shape == (3, D)
    assert model.model_.extra.shape == (9,)
    assert model.score(X, LABELS["small_chain"]) > 0.7


class MeanSquares(GroupLoss):
    """The mean squared error of a group, which an intercept matters to."""

    def value_and_grad(self, z, y, weights):
        return float(np.mean(weights * (z - y) ** 2)), 2 * weights * (z - y) / len(z)


class ScaledSquares(MeanSquares):
    """The same with a scale of the labels that counts in Ω."""

    def n_extra(self, n_outputs):
        return 1

    def value_and_grad(self, z, y, weights):
        r = z - y * (1 + self.extra[0])
        return float(np.mean(weights * r**2)), 2 * weights * r / len(z), np.array([-np.mean(2 * weights * r * y)])


@pytest.mark.parametrize("kind", [MeanSquares, ScaledSquares])
def test_bounds_hold_where_intercepts_are_not_the_best(kind):
    rows = Threads().open(from_arrays(X), STARTS)
    y, c = rows.scatter(LABELS[None] - 3.0), rows.scatter(np.full(N, 2.0))
    o = Objective(rows, y, c, kind(), L2(), 1.0, "free")
    best = SOLVERS["lbfgs"](tol=1e-9).run(o)
    assert best.status is Status.CONVERGED
    random = np.random.default_rng(0)
    for shift in (0.0, 1e-9, 1e-3, 0.1, 1.0, -5.0):
        for spread in (0.0, 1e-3, 0.3):
            theta = best.theta + spread * random.normal(size=o.size)
            theta[-1] += shift
            assert o.at(theta).bound <= best.objective * (1 + 1e-12)


class CurvedLevels(Levels):
    """One that also says its curvature, which is not all of it: thresholds bend too."""

    def curvature(self, z, y):
        raise AssertionError("not to be asked for")


def test_curvatures_of_a_loss_with_parameters_are_not_asked_for():
    model = LinearModel(CurvedLevels(), C=10.0, fit_intercept=False).fit(X, LABELS[None])
    assert model.model_.report.solver == "lbfgs"
    assert LinearModel(CurvedLevels(), C="auto", cv=3, fit_intercept=False).fit(X, LABELS[None]).C_ > 0
    with pytest.raises(ParameterError, match="curvature"):
        LinearModel(CurvedLevels(), solver="newton", fit_intercept=False).fit(X, LABELS[None])


def test_without_weights_kinked_thresholds_are_the_best():
    o = objective("sharp_levels")
    zero = np.zeros(o.size)
    assert o.null.value < 0.9 * o.at(zero).value
    again = minimize(lambda free: o.at(np.append(zero[:D], free)).value, o.null.theta[D:], method="Nelder-Mead")
    assert o.null.value <= again.fun * 1.02
