"""From a task of several classes to a model: the forms, their options and their files."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from objectives import over

from beeline import LinearModel, LogisticRegression, Model, convert
from beeline.data.core.arrays import from_arrays
from beeline.exceptions import ParameterError
from beeline.losses import Hinge, Logistic, MulticlassPerceptron, Softmax, VectorLoss
from beeline.objective import Objective
from beeline.regularizers import L1, L2
from beeline.solvers.newton import preconditioning
from beeline.solvers.newton.newton import Newton
from beeline.solvers.newton.preconditioning import blocks_of, cost_of_blocks
from beeline.training.run import train
from beeline.training.task import Task

RNG = np.random.default_rng(3)
X = (RNG.normal(size=(240, 5)) + 0.4) * (RNG.random((240, 5)) < 0.7)
Y = (X @ RNG.normal(size=(5, 4)) + RNG.gumbel(size=(240, 4))).argmax(axis=1)
NAMES = np.array(["ant", "bee", "cow", "dog"])[Y]
TWO = (Y > 1).astype(int)


def task(y=Y, loss=None, regularizer=None, **options):
    return Task(from_arrays(X), y.astype(float), int(y.max()) + 1, loss or Logistic(), regularizer or L2(), **options)


class TestForm:
    def test_auto(self):
        assert task().form == "softmax"
        assert task(regularizer=L1()).form == "ovr"
        assert task(TWO).form == "ovr"
        assert task(loss=Hinge()).form == "ovr"
        assert task(loss=Softmax()).form == "softmax"
        assert task(TWO, Softmax()).form == "softmax"
        assert task(TWO, multiclass="softmax").form == "softmax"

    def test_pairs_that_make_no_sense(self):
        with pytest.raises(ParameterError, match="'softmax' extends the loss 'logistic' to more classes, not 'hinge'"):
            task(loss=Hinge(), multiclass="softmax")
        with pytest.raises(ParameterError, match="the loss 'softmax' takes all classes together"):
            task(loss=Softmax(), multiclass="ovr")
        with pytest.raises(ParameterError, match="multiclass must be one of auto, ovr"):
            task(multiclass="ovo")
        with pytest.raises(ParameterError, match="does not take 1 scores a row"):
            Objective.of(from_arrays(X), Y.astype(float), np.ones(240), Softmax(), L2())
        with pytest.raises(ParameterError, match="does not take 3 scores a row"):
            Objective.of(from_arrays(X), Y.astype(float), np.ones(240), Logistic(), L2(), n_outputs=3)

    def test_l1(self):
        sparse = LogisticRegression(multi_class="softmax", l1_ratio=1.0, C=0.05).fit(X, Y)
        assert sparse.results_[0].solver == "lbfgs"
        assert sparse.results_[0].gap <= sparse.tol
        assert (sparse.coef_ == 0).any()
        assert LogisticRegression(l1_ratio=1.0).fit(X, Y).model_.settings["multiclass"] == "ovr"


class TestSoftmax:
    def test_probabilities_fit_together(self):
        model = LogisticRegression().fit(X, NAMES)
        assert model.model_.link == "softmax"
        p = model.predict_proba(X)
        z = model.decision_function(X)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        np.testing.assert_allclose(np.log(p[:, 1] / p[:, 2]), z[:, 1] - z[:, 2], atol=1e-9)
        assert model.coef_.shape == (4, 5)
        # The best intercepts make the mean probability of each class its share.
        np.testing.assert_allclose(p.mean(axis=0), np.bincount(Y) / 240, atol=1e-5)

    def test_every_way_to_say_it(self):
        models = [
            LogisticRegression(),
            LogisticRegression(multi_class="softmax"),
            LinearModel(),
            LinearModel(loss="softmax"),
            LinearModel(loss=Softmax(), multi_class="softmax", solver="newton"),
        ]
        first, *others = [model.fit(X, NAMES).coef_ for model in models]
        for other in others:
            np.testing.assert_array_equal(first, other)

    def test_layouts(self, tmp_path):
        store = convert(scipy.sparse.csr_array(X), tmp_path / "rows.store")
        dense = LogisticRegression(tol=1e-10).fit(X, Y)
        sparse = LogisticRegression(tol=1e-10).fit(scipy.sparse.csr_array(X), Y)
        stored = LogisticRegression(tol=1e-10).fit(store, Y)
        for other in (sparse, stored):
            np.testing.assert_allclose(dense.coef_, other.coef_, atol=1e-6)
            np.testing.assert_allclose(dense.intercept_, other.intercept_, atol=1e-6)

    def test_rare_features_give_the_same(self):
        """Many features that occur in few rows are multiplied feature by feature."""
        wide = scipy.sparse.random_array((200, 900), density=0.02, rng=np.random.default_rng(0), format="csr")
        y = np.arange(200) % 5
        sparse = LogisticRegression(tol=1e-10).fit(wide, y)
        dense = LogisticRegression(tol=1e-10).fit(wide.toarray(), y)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-5)

    def test_weights_of_samples_and_classes(self):
        times = RNG.integers(0, 3, size=240)
        weighted = LogisticRegression(tol=1e-12).fit(X, Y, times)
        repeated = LogisticRegression(tol=1e-12).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)
        doubled = LogisticRegression(class_weight={1: 2}).fit(X, Y)
        same = LogisticRegression().fit(X, Y, np.where(Y == 1, 2.0, 1.0))
        np.testing.assert_array_equal(doubled.coef_, same.coef_)

    @pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
    def test_two_classes_are_a_logistic_loss_of_half_the_strength(self, intercept):
        softmax = train(task(TWO, Softmax(), intercept=intercept), tol=1e-12)
        logistic = train(task(TWO, intercept=intercept, strength=0.5), tol=1e-12)
        assert softmax.weights.shape == (5, 1)
        np.testing.assert_allclose(softmax.weights, logistic.weights, atol=1e-6)
        np.testing.assert_allclose(softmax.intercepts, logistic.intercepts, atol=1e-6)
        assert softmax.results[0].objective == pytest.approx(logistic.results[0].objective, rel=1e-10)
        again = train(task(TWO, Softmax(), intercept=intercept), tol=1e-8, start=softmax)
        assert again.results[0].iterations == 1

    def test_two_classes_have_probabilities(self):
        model = LinearModel(loss="softmax").fit(X, TWO)
        z = model.decision_function(X)
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-z)))
        np.testing.assert_array_equal(model.predict(X), z > 0)

    def test_warm_start(self):
        model = LogisticRegression(warm_start=True).fit(X, Y)
        assert model.fit(X, Y).report_.iterations <= 2
        with pytest.raises(ParameterError, match=r"weights of shape \(5, 4\)"):
            train(task(), start=train(task(TWO)))

    def test_files(self, tmp_path):
        model = LogisticRegression().fit(X, Y).model_
        model.save(tmp_path / "one.model")
        loaded = Model.load(tmp_path / "one.model")
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert loaded.settings["multiclass"] == "softmax"
        model.to_liblinear(tmp_path / "one.liblinear")
        assert (tmp_path / "one.liblinear").read_text().startswith("solver_type MCSVM_CS\nnr_class 4\n")
        np.testing.assert_array_equal(Model.from_liblinear(tmp_path / "one.liblinear").predict(X), model.predict(X))


class TestBlocks:
    """The preconditioner with one matrix an output."""

    @staticmethod
    def objective(intercept="free"):
        return task(loss=Softmax(), C=30.0, intercept=intercept).objectives()[0]

    @pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
    def test_they_are_the_hessian_s_blocks(self, intercept, monkeypatch):
        monkeypatch.setattr(preconditioning, "_PART", 1.0)
        o = self.objective(intercept)
        point = o.at(0.1 * np.random.default_rng(0).normal(size=o.size))
        hessian = np.array([point.hessian_product(row) for row in np.eye(o.size)])
        m = o.size // 4
        blocks = blocks_of(point)
        r = np.random.default_rng(1).normal(size=o.size)
        p, rho = blocks.start(r)
        for k in range(4):
            block = hessian[k::4, k::4]
            block[-1, -1] += 1e-3
            np.testing.assert_allclose(block @ p.reshape(m, 4)[:, k], r.reshape(m, 4)[:, k], atol=1e-9)
        assert rho == pytest.approx(float(r @ p))

    @pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
    def test_they_lead_to_the_same_optimum(self, intercept, monkeypatch):
        o = self.objective(intercept)
        usual = Newton(tol=1e-10).solve(o)
        asked = []
        monkeypatch.setattr(preconditioning, "cost_of_blocks", lambda objective: asked.append(objective) or 0.0)
        result = Newton(tol=1e-10).solve(o, callback=lambda step: None)  # a kernel would take all steps at once
        assert asked
        assert result.gap <= 1e-10
        assert result.objective == pytest.approx(usual.objective, rel=1e-10)

    def test_they_are_for_few_features_in_memory(self, tmp_path):
        o = self.objective()
        assert np.isfinite(cost_of_blocks(o))
        assert cost_of_blocks(over(o, convert(X, tmp_path / "rows.store"))) == np.inf
        assert cost_of_blocks(over(o, from_arrays(scipy.sparse.csr_array((240, 3000))))) == np.inf
        assert cost_of_blocks(task(TWO).objectives()[0]) == np.inf


def test_a_loss_of_ones_own():
    """Two softmaxes, one of them sharper: value and gradient are all that a loss of several scores needs."""

    class Smoothed(VectorLoss):
        name, labels = "smoothed", "classes"

        def value_and_grad(self, z, y):
            return Softmax().value_and_grad(z, y)

        def curvature(self, z, y):
            return Softmax().curvature(z, y)

    own = LinearModel(loss=Smoothed(), tol=1e-12).fit(X, Y)
    assert own.model_.settings["multiclass"] == "smoothed"
    centred = own.coef_ - own.coef_.mean(axis=0)  # nobody knows that only differences count here
    np.testing.assert_allclose(centred, LogisticRegression(tol=1e-12).fit(X, Y).coef_, atol=1e-5)


@pytest.mark.parametrize("cost", [1e-8, 1.0, 1e3])
def test_intercepts_whose_slopes_are_next_to_nothing(cost):
    """Rows of one class only: with kinks rounded off less and less, slopes fall below 1e-308 before they are zero."""
    data, costs = from_arrays(np.zeros((5, 1))), np.full(5, cost)
    null = Objective.of(data, np.zeros(5), costs, MulticlassPerceptron(), L2(), 1.0, "free", n_outputs=5).null
    assert np.isfinite(null.theta).all()
    assert null.value <= 1e-9 * cost
