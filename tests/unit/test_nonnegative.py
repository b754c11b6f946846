"""Weights that may not be negative: from the regularizer to estimators, searches and models."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog, minimize, nnls
from sklearn.base import clone

from beeline import LinearModel, Model, convert, read, select_C
from beeline.data.core.arrays import from_arrays
from beeline.exceptions import ModelWarning, ParameterError
from beeline.losses import LeastSquares, Logistic
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.selection.bounds import null_C
from beeline.solvers.auto import choose_solver
from beeline.solvers.bundle.bundle import Bundle
from beeline.solvers.l1.l1_cd import strength_max

RNG = np.random.default_rng(4)
N, D = 120, 6
X = RNG.normal(size=(N, D)) + 0.3
TARGET = X @ np.array([1.0, -1.0, 0.5, -0.5, 2.0, 0.0]) + RNG.normal(size=N)
BINARY = np.where(TARGET > 0, 1, -1)
CLASSES = np.digitize(TARGET, [-0.5, 1.5])


def problem(loss, regularizer, y, **options):
    return Objective.of(from_arrays(X), np.asarray(y, float), np.ones(N), loss, regularizer, **options)


class TestOptimum:
    @pytest.mark.parametrize("intercept", [True, False])
    def test_least_squares_by_active_sets(self, intercept):
        """A ridge is a row for each weight; a free intercept means centred columns."""
        C = 2.0
        A, y = (X - X.mean(axis=0), TARGET - TARGET.mean()) if intercept else (X, TARGET)
        w, _ = nnls(np.vstack([np.sqrt(C) * A, np.eye(D)]), np.append(np.sqrt(C) * y, np.zeros(D)))
        model = LinearModel("squared", C=C, nonnegative=True, fit_intercept=intercept, tol=1e-12).fit(X, TARGET)
        assert 0 < np.count_nonzero(w) < D
        np.testing.assert_allclose(model.coef_, w, atol=1e-6)
        assert model.intercept_ == pytest.approx(TARGET.mean() - X.mean(axis=0) @ w if intercept else 0.0, abs=1e-6)

    @pytest.mark.parametrize(("name", "l1", "l2"), [("l2", 0, 1), ("l1", 1, 0), ("elastic_net", 0.5, 0.5)])
    def test_logistic_by_projected_steps(self, name, l1, l2):
        def value(v):  # over weights that are not negative L1 is linear
            w, m = v[:D], BINARY * (X @ v[:D] + v[D])
            slopes = -BINARY / (1 + np.exp(m))
            g = np.append(X.T @ slopes + l1 + l2 * w, slopes.sum())
            return np.logaddexp(0, -m).sum() + l1 * w.sum() + l2 / 2 * w @ w, g

        limits = [(0, None)] * D + [(None, None)]
        best = minimize(value, np.zeros(D + 1), jac=True, bounds=limits, method="L-BFGS-B", options={"ftol": 1e-15})
        model = LinearModel("logistic", name, nonnegative=True, tol=1e-10).fit(X, BINARY)
        assert model.coef_.min() == 0
        assert model.report_.objective == pytest.approx(best.fun, rel=1e-9)
        np.testing.assert_allclose(model.coef_[0], best.x[:D], atol=1e-4)

    def test_hinge_with_l1_is_a_linear_programme(self):
        cost = np.concatenate([np.ones(D), [0.0], np.ones(N)])
        margins = -np.hstack([BINARY[:, None] * X, BINARY[:, None], np.eye(N)])
        limits = [(0, None)] * D + [(None, None)] + [(0, None)] * N
        best = linprog(cost, margins, -np.ones(N), bounds=limits).fun
        model = LinearModel("hinge", "l1", nonnegative=True, tol=1e-10).fit(X, BINARY)
        assert model.coef_.min() == 0
        assert model.report_.objective == pytest.approx(best, rel=1e-9)

    def test_a_regularized_intercept_may_be_negative(self):
        model = LinearModel("squared", nonnegative=True, fit_intercept="regularized").fit(X, TARGET - 50)
        assert model.coef_.min() >= 0
        assert model.intercept_ < -10


class TestSeveralOutputs:
    @pytest.mark.parametrize("regularizer", ["l2", "l1", "elastic_net"])
    def test_each_class_against_the_rest(self, regularizer):
        model = LinearModel("logistic", regularizer, nonnegative=True).fit(X, CLASSES)
        assert model.model_.settings["multiclass"] == "ovr"
        assert model.coef_.shape == (3, D)
        assert model.coef_.min() == 0
        alone = LinearModel("logistic", regularizer, nonnegative=True).fit(X, CLASSES == 2)
        np.testing.assert_allclose(model.coef_[2], alone.coef_[0], atol=1e-5)

    @pytest.mark.parametrize("form", ["softmax", "crammer_singer"])
    def test_all_classes_together(self, form):
        loss = {"softmax": "logistic", "crammer_singer": "hinge"}[form]
        model = LinearModel(loss, multi_class=form, nonnegative=True, C=0.1).fit(X, CLASSES)
        assert model.coef_.min() >= 0
        assert model.report_.gap <= 1e-4

    def test_two_classes_of_which_only_differences_are_kept(self):
        for options in ({"loss": "softmax"}, {"loss": "hinge", "multi_class": "crammer_singer"}):
            with pytest.raises(ParameterError, match="only differences are kept; take a loss of one score"):
                LinearModel(**options, nonnegative=True).fit(X, BINARY)

    def test_sets_and_vectors(self):
        sets = LinearModel("multilabel_logistic", nonnegative=True, C=0.1).fit(X, np.c_[TARGET > 0, TARGET < 0])
        assert sets.coef_.min() == 0
        together = np.c_[TARGET, -TARGET]
        vectors = LinearModel("multivariate_squared", nonnegative=True).fit(X, together)
        assert vectors.coef_.shape == (2, D)
        assert vectors.coef_.min() == 0
        alone = LinearModel("squared", nonnegative=True).fit(X, -TARGET)
        np.testing.assert_allclose(vectors.coef_[1], alone.coef_, atol=1e-5)


class TestSolvers:
    @pytest.mark.parametrize(
        ("name", "loss", "y", "others"),
        [
            ("newton", "logistic", BINARY, "l1_cd or lbfgs or bundle"),
            ("smoothed_newton", "hinge", BINARY, "interior_point or bundle"),
            ("dual_cd", "logistic", BINARY, "l1_cd or lbfgs or bundle"),
            ("class_dual_cd", "crammer_singer", CLASSES, "bundle"),
        ],
    )
    def test_some_refuse(self, name, loss, y, others):
        regularizer = "l2"
        LinearModel(loss, regularizer, solver=name, tol=0.1).fit(X, y)
        sentence = rf"the solver '{name}' cannot keep weights at zero or above, as .*nonnegative=True\) asks; for .* "
        with pytest.raises(ParameterError, match=f"{sentence}take {others}$"):
            LinearModel(loss, regularizer, solver=name, nonnegative=True).fit(X, y)
        with pytest.raises(ParameterError, match=f"the solver '{name}' cannot keep"):
            LinearModel(loss, regularizer, solver=name, nonnegative=True, C="auto").fit(X, y)

    @pytest.mark.parametrize("regularizer", [L2(), L1(), ElasticNet(0.5)])
    def test_the_regularizer_says_the_same_as_the_solver(self, regularizer):
        free = problem(LeastSquares(), regularizer, TARGET)
        bounded = problem(LeastSquares(), regularizer.without_negative_weights(), TARGET)
        by_solver, by_both = Bundle(nonnegative=True).solve(free), Bundle(nonnegative=True).solve(bounded)
        by_regularizer = Bundle().solve(bounded)
        np.testing.assert_array_equal(by_solver.theta, by_regularizer.theta)
        np.testing.assert_array_equal(by_solver.theta, by_both.theta)
        assert choose_solver(bounded, tol=1e-9).solve(bounded).objective <= by_both.objective * (1 + 1e-9)
        capped = Bundle(bounds=(0, 0.2)).solve(bounded)
        assert capped.theta[:D].min() == 0
        assert capped.theta[:D].max() == pytest.approx(0.2)

    def test_bounds_must_not_contradict(self):
        o = problem(LeastSquares(), L2(nonnegative=True), TARGET)
        with pytest.raises(ParameterError, match=r"bounds below zero, which L2\(nonnegative=True\) rules out"):
            Bundle(bounds=(-1.0, 1.0)).solve(o)

    @pytest.mark.parametrize("variant", ["ocas", "bmrm", "line"])
    def test_variants_begin_inside(self, variant):
        o = problem(Logistic(), L2(nonnegative=True), BINARY, strength=10.0)
        result = Bundle(1e-4, variant=variant).solve(o, start=-np.ones(o.size))
        assert result.theta[:D].min() >= 0
        assert result.objective == pytest.approx(Bundle(1e-8).solve(o).objective, rel=2e-4)


class TestSearch:
    @pytest.mark.parametrize(
        ("loss", "regularizer"), [("logistic", "l2"), ("hinge", "l1"), ("squared_hinge", "elastic_net")]
    )
    def test_auto(self, loss, regularizer):
        model = LinearModel(loss, regularizer, C="auto", cv=0.3, nonnegative=True, tol=1e-8).fit(X, BINARY)
        assert model.coef_.min() == 0
        assert model.coef_.max() > 0
        again = LinearModel(loss, regularizer, C=model.C_, nonnegative=True, tol=1e-8).fit(X, BINARY)
        np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-4)

    def test_folds_are_bounded_too(self):
        """Where all features speak against the target, nothing is better than the mean, at any C."""
        with pytest.warns(ModelWarning, match="at no C of .* was the rmse"):
            found = select_C(X[:, :1], "squared", -X[:, 0], nonnegative=True, folds=3, C_max=4.0)
        scores = np.array([point.fold_scores for point in found.curve])
        np.testing.assert_allclose(scores, scores[:1].repeat(len(scores), axis=0), rtol=1e-12)
        assert found.start.weights.max() == 0

    def test_where_l1_keeps_all_weights_at_zero(self):
        for regularizer in (L1(), L1(nonnegative=True)):
            o = problem(Logistic(), regularizer, -BINARY, intercept="none")
            slopes = X.T @ (0.5 * BINARY)
            pull = (-slopes).max() if regularizer.nonnegative else np.abs(slopes).max()
            assert strength_max(o) == pytest.approx(pull)
            assert 0.5 / pull < null_C(o) <= 1 / pull
            for factor, zero in ((1.001, True), (0.99, False)):
                theta = Bundle(1e-9).solve(o.with_strength(factor * pull)).theta
                assert (not theta.any()) == zero
        assert strength_max(problem(Logistic(), L1(), -BINARY, intercept="none")) > pull


class TestModels:
    @pytest.mark.parametrize("scale", ["standard", "minmax", "maxabs"])
    def test_in_units_of_the_raw_columns(self, scale, tmp_path):
        table = pd.DataFrame(X * [1, 10, 0.01, 5, 100, 1] - 7, columns=list("abcdef"))
        table["y"] = TARGET
        table.to_csv(tmp_path / "rows.csv", index=False)
        rows = read(tmp_path / "rows.csv", label="y", scale=scale)
        model = LinearModel("squared", nonnegative=True).fit(rows)
        raw = table.drop(columns="y")
        base = model.predict(raw)
        slopes = [(model.predict(raw.assign(**{name: raw[name] + 1})) - base).mean() for name in raw]
        assert min(slopes) >= -1e-9
        assert max(slopes) > 1e-3
        assert LinearModel("squared").fit(rows).coef_.min() < -1e-3

    def test_store(self, tmp_path):
        store = convert(from_arrays(X, TARGET), tmp_path / "rows.store")
        walked = LinearModel("squared", nonnegative=True, tol=1e-10).fit(store)
        direct = LinearModel("squared", nonnegative=True, tol=1e-10).fit(X, TARGET)
        np.testing.assert_allclose(walked.coef_, direct.coef_, atol=1e-6)

    def test_the_file_says_so(self, tmp_path):
        model = LinearModel("hinge", nonnegative=True).fit(X, BINARY).model_
        model.save(tmp_path / "m")
        assert Model.load(tmp_path / "m").settings["nonnegative"] is True
        assert "nonnegative" not in LinearModel("hinge").fit(X, BINARY).model_.settings
        by_object = LinearModel("hinge", L2(nonnegative=True)).fit(X, BINARY).model_
        assert by_object.settings["nonnegative"] is True
        np.testing.assert_array_equal(by_object.weights, model.weights)

    def test_pickle_clone_and_parameters(self):
        model = LinearModel("hinge", ElasticNet(0.3), nonnegative=True)
        assert model.get_params()["nonnegative"] is True
        assert clone(model).nonnegative is True
        fitted = pickle.loads(pickle.dumps(model.fit(X, BINARY)))
        np.testing.assert_array_equal(fitted.predict(X), model.predict(X))
        assert model.regularizer.nonnegative is False  # the caller's own is left as it is

    def test_a_model_of_any_sign_is_a_start(self):
        model = LinearModel("squared", warm_start=True).fit(X, TARGET)
        assert model.coef_.min() < 0
        model.set_params(nonnegative=True, tol=0.9).fit(X, TARGET)
        assert model.coef_.min() >= 0

    def test_ctrl_c_before_a_class_began(self):
        """Its start is what is left of it then, and that must be a model too."""

        def interrupt(step):
            raise KeyboardInterrupt

        model = LinearModel("logistic", multi_class="ovr", warm_start=True).fit(X, CLASSES)
        assert model.coef_.min() < 0
        model.set_params(nonnegative=True, callback=interrupt).fit(X, CLASSES)
        assert model.coef_.min() >= 0

    def test_probabilities(self):
        model = LinearModel("hinge", nonnegative=True, probability=True).fit(X, BINARY)
        assert model.coef_.min() >= 0
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
