"""From a loss to a model: labels that fit, links, sets of labels, vectors, costs; and their files."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse

from beeline import LabelSets, LinearModel, Model, from_arrays
from beeline.exceptions import LabelError, ModelError, ModelWarning, ParameterError
from beeline.fitting import Settings, fit
from beeline.losses import (
    LOSSES,
    CrossEntropy,
    LeastSquares,
    MultilabelHinge,
    MultivariateSquared,
    Poisson,
    ScalarLoss,
    Softmax,
    SoftmaxMargin,
    VectorLoss,
    check_loss,
)
from beeline.losses.tied_checking import check_tied_loss
from beeline.objective import Objective
from beeline.regularizers import L2
from beeline.solvers.auto import SOLVERS
from beeline.solvers.newton.newton import Newton
from beeline.training.run import Trained, train
from beeline.training.task import Task

RNG = np.random.default_rng(5)
X = RNG.normal(size=(120, 4))
Z = X @ RNG.normal(size=4) + 0.3 * RNG.normal(size=120)
COUNTS = RNG.poisson(np.exp(0.8 * Z + 0.5)).astype(float)
SETS = (X @ RNG.normal(size=(4, 3)) + 0.5 * RNG.normal(size=(120, 3)) > 0.4).astype(int)
VECTORS = X @ RNG.normal(size=(4, 2)) + [1.0, -2.0] + 0.1 * RNG.normal(size=(120, 2))
METRIC = [[2.0, 0.7], [0.7, 1.0]]


def labels(name):
    classes = np.digitize(Z, [-1, 1])
    kinds = {"binary": Z > 0, "classes": classes, "levels": classes, "sets": SETS, "vectors": VECTORS, "none": None}
    special = {"poisson": COUNTS, "gamma": np.exp(Z), "tweedie": COUNTS, "cross_entropy": 1 / (1 + np.exp(-Z))}
    return special.get(name, kinds.get(LOSSES[name].labels, Z))


def label_sets(matrix):
    counts = matrix.sum(axis=1)
    return LabelSets(np.concatenate([[0], np.cumsum(counts)]), np.nonzero(matrix)[1].astype(float))


def _taken(name):
    """Whether some solver takes the loss with L2."""
    loss = LOSSES[name]()
    if isinstance(loss, VectorLoss):
        loss = loss.output_loss or loss
    outputs = 3 if isinstance(loss, VectorLoss) else 1
    o = Objective.of(from_arrays(X), Z, np.ones(120), loss, L2(), n_outputs=outputs)
    return any(solver(1e-4, 1, 0).refusal(o) is None for solver in SOLVERS.values())


NAMES = [name for name, kind in LOSSES.items() if kind.scope != "group"]  # those of queries are in test_ranker.py
UNTAKEN = [name for name in NAMES if not _taken(name)]


@pytest.mark.parametrize("name", NAMES)
def test_linear_model_takes_every_loss(name, tmp_path):
    model = LinearModel(name, fit_intercept=LOSSES[name].labels != "none")
    if name in UNTAKEN:
        with pytest.raises(ParameterError, match="no solver can take"):
            model.fit(X, labels(name))
        return
    with pytest.warns(ModelWarning, match="zero weights") if "perceptron" in name else nullcontext():
        model.fit(X, labels(name))
    model.model_.save(tmp_path / "m")
    again = Model.load(tmp_path / "m")
    assert (again.loss, again.kind, again.link) == (name, model.model_.kind, model.model_.link)
    assert again.loss_settings == LOSSES[name]().settings
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert len(model.predict(X)) == 120
    if LOSSES[name].labels not in ("none", "sets") and "perceptron" not in name:
        assert model.score(X, labels(name)) > 0.1


class TestLabels:
    @pytest.mark.parametrize(
        ("name", "bad"), [("poisson", -1.0), ("gamma", 0.0), ("tweedie", -2.0), ("cross_entropy", 1.01)]
    )
    def test_a_label_outside_the_domain_is_refused_by_its_row(self, name, bad):
        y = labels(name).copy()
        y[7] = bad
        with pytest.raises(LabelError, match=f"row 7 has the label {bad:g}; the labels of '{name}' must be"):
            LinearModel(name).fit(X, y)
        with pytest.raises(LabelError, match="row 7"):
            fit(from_arrays(X, y), Settings(loss=name))

    def test_shapes(self):
        with pytest.raises(LabelError, match="'multivariate_squared' needs a matrix of labels"):
            fit(from_arrays(X, Z), Settings(loss="multivariate_squared"))
        with pytest.raises(LabelError, match="'poisson' needs one label a row"):
            fit(from_arrays(X), Settings(loss="poisson"), np.ones((120, 2)))
        with pytest.raises(LabelError, match="read the data with multilabel=True, or give y as a matrix"):
            fit(from_arrays(X, Z), Settings(loss="multilabel_hinge"))
        with pytest.raises(LabelError, match="row 2 has 3 for label 1; sets of labels are told by 0 and 1"):
            LinearModel("multilabel_hinge").fit(X, np.where(np.arange(120)[:, None] == [9, 2], 3, SETS[:, :2]))
        with pytest.raises(LabelError, match="no row has a label"):
            fit(from_arrays(X, label_sets(SETS * 0)), Settings(loss="multilabel_hinge"))
        with pytest.raises(LabelError, match="y must have a row of labels a row, 120 in all"):
            LinearModel("multilabel_hinge").fit(from_arrays(X), Z)

    def test_settings_without_meaning(self):
        with pytest.raises(ParameterError, match="class_weight has no meaning for the loss 'multilabel_hinge'"):
            LinearModel("multilabel_hinge", class_weight="balanced").fit(X, SETS)
        with pytest.raises(ParameterError, match="probability has no meaning for a regression"):
            LinearModel("poisson", probability=True).fit(X, COUNTS)
        with pytest.raises(ParameterError, match="a free intercept alone would satisfy the loss 'novelty'"):
            fit(from_arrays(X), Settings(loss="novelty"))

    def test_novelty_needs_no_labels(self):
        task = Task(from_arrays(X), np.zeros(120), None, LOSSES["novelty"](), L2(), intercept="none")
        assert task.objectives()[0].n_outputs == 1


class TestLinks:
    def test_rates_are_exp_of_the_score(self):
        model = LinearModel("poisson", tol=1e-10).fit(X, COUNTS).model_
        assert (model.link, model.kind, model.has_probabilities) == ("exp", "regression", False)
        np.testing.assert_allclose(model.predict(X), np.exp(model.decision_function(X)))
        assert model.predict(X).mean() == pytest.approx(COUNTS.mean(), rel=1e-6)  # a free intercept sees to that

    def test_shares_lie_between_0_and_1(self):
        model = LinearModel(CrossEntropy()).fit(X, labels("cross_entropy"))
        np.testing.assert_allclose(model.predict(X), 1 / (1 + np.exp(-model.model_.decision_function(X))))
        assert model.score(X, labels("cross_entropy")) > 0.9
        with pytest.raises(ParameterError, match="a regression has no probabilities"):
            model.model_.predict_proba(X)

    def test_a_rate_beyond_all_numbers_is_infinite(self):
        model = Model(weights=np.full((1, 1), 1e4), intercepts=np.zeros(1), classes=None, loss="poisson", link="exp")
        np.testing.assert_array_equal(model.predict(np.array([[1.0], [-1.0]])), [np.inf, 0])

    def test_liblinear_does_not_know_them(self, tmp_path):
        for model, words in (
            (LinearModel("poisson").fit(X, COUNTS), "predict the score itself"),
            (LinearModel("multivariate_squared").fit(X, VECTORS), "predict one number a row"),
            (LinearModel("multilabel_logistic").fit(X, SETS), "knows no sets of labels"),
        ):
            with pytest.raises(ModelError, match=words):
                model.model_.to_liblinear(tmp_path / "m")

    @pytest.mark.parametrize(
        ("name", "outputs"),
        [
            ("poisson", ["value"]),
            ("cross_entropy", ["value"]),
            ("multivariate_squared", ["value"]),
            ("multilabel_logistic", ["label", "scores", "probabilities"]),
            ("multilabel_hinge", ["label", "scores"]),
        ],
    )
    def test_onnx_predicts_the_same(self, name, outputs, tmp_path):
        onnxruntime = pytest.importorskip("onnxruntime")
        model = LinearModel(name).fit(X, labels(name)).model_
        model.to_onnx(tmp_path / "m.onnx", precision="float64")
        session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
        assert [output.name for output in session.get_outputs()] == outputs
        found = dict(zip(outputs, session.run(None, {"X": X}), strict=True))
        np.testing.assert_allclose(found[outputs[0]], model.predict(X), rtol=1e-9)
        if "probabilities" in found:
            np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=1e-9)


class TestSets:
    def test_a_label_is_a_binary_problem(self):
        sets = LinearModel("multilabel_logistic", tol=1e-10).fit(X, SETS)
        assert (sets.predict(X).shape, sets.predict(X).dtype) == ((120, 3), np.int64)
        for k in range(3):
            one = LinearModel("logistic", tol=1e-10).fit(X, SETS[:, k])
            np.testing.assert_allclose(sets.coef_[k], one.coef_[0], atol=1e-4)
            np.testing.assert_allclose(sets.predict_proba(X)[:, k], one.predict_proba(X)[:, 1], atol=1e-5)
        assert sets.score(X, SETS) == np.mean((sets.predict(X) == SETS).all(axis=1))

    def test_sets_and_matrices_are_the_same(self):
        # Label 1 of the matrix is called 5.
        names = np.array([0.0, 5.0, 7.0])
        sets = label_sets(SETS)
        named = LabelSets(sets.indptr, names[sets.values.astype(int)])
        first = fit(from_arrays(X, named), Settings(loss="multilabel_hinge")).model
        second = LinearModel("multilabel_hinge").fit(X, SETS).model_
        np.testing.assert_array_equal(first.classes, names)
        np.testing.assert_array_equal(first.weights, second.weights)
        assert first.output_name(1) == "5.0"
        with pytest.raises(LabelError, match="sets of labels; a model of one label a row"):
            fit(from_arrays(X, named), Settings(loss="hinge"))

    @pytest.mark.parametrize("name", ["multilabel_hinge", "multilabel_logistic"])
    def test_labels_that_all_rows_have_or_none(self, name):
        matrix = SETS.copy()
        matrix[:, 0], matrix[:, 2] = 1, 0
        predicted = LinearModel(name).fit(X, matrix).predict(X)
        assert predicted[:, 0].all()
        assert not predicted[:, 2].any()

    def test_all_labels_together_have_the_same_optimum(self):
        y = np.where(SETS == 1, 1.0, -1.0)
        task = Task(from_arrays(scipy.sparse.csr_array(X)), y, None, LOSSES["multilabel_squared_hinge"](), L2())
        apart = train(task, "newton", tol=1e-9)
        together = Objective.of(task.data, y, np.ones(120), task.loss, L2(), n_outputs=3)
        result = Newton(1e-9).solve(together)
        assert result.objective == pytest.approx(sum(one.objective for one in apart.results), rel=1e-8)
        w, b = together.split(result.theta)
        np.testing.assert_allclose(w, apart.weights, atol=1e-4)
        np.testing.assert_allclose(b, apart.intercepts, atol=1e-4)

    def test_no_probabilities_from_hinges(self):
        model = LinearModel(MultilabelHinge()).fit(X, SETS)
        assert not hasattr(model, "predict_proba")
        with pytest.raises(ParameterError, match="train by multilabel_logistic"):
            model.model_.predict_proba(X)


@pytest.mark.parametrize(("name", "y"), [("poisson", COUNTS), ("multilabel_logistic", SETS), ("squared", Z)])
def test_warm_starts(name, y):
    model = LinearModel(name, warm_start=True, tol=1e-6).fit(X, y)
    first = model.coef_.copy()
    told = []
    model.set_params(callback=lambda step: told.append(step.objective)).fit(X, y)
    np.testing.assert_allclose(model.coef_, first, atol=1e-3)
    assert len(told) <= 2 * model.model_.n_outputs
    if model.model_.n_outputs == 1:
        assert told[0] == pytest.approx(told[-1], rel=1e-3)


def test_no_start_from_another_kind_of_model():
    model = LinearModel("multivariate_squared", warm_start=True).fit(X, VECTORS)
    expected = LinearModel("squared").fit(X, Z).coef_
    np.testing.assert_allclose(model.set_params(loss="squared").fit(X, Z).coef_, expected, atol=1e-6)


class TestVectors:
    def test_without_a_metric_each_number_is_least_squares(self):
        vectors = LinearModel("multivariate_squared", tol=1e-10).fit(X, VECTORS)
        for k in range(2):
            one = LinearModel(LeastSquares(), tol=1e-10).fit(X, VECTORS[:, k])
            np.testing.assert_allclose(vectors.coef_[k], one.coef_, atol=1e-5)
            assert vectors.intercept_[k] == pytest.approx(one.intercept_, abs=1e-5)
        assert vectors.predict(X).shape == (120, 2)
        assert vectors.score(X, VECTORS) > 0.9

    def test_a_metric_couples_them(self):
        model = LinearModel(MultivariateSquared(METRIC), C=0.1, tol=1e-12).fit(X, VECTORS)
        # The normal equations of all weights: (XᵀX ⊗ M·C + 1) w = C XᵀYM, with centred columns for the free intercepts.
        Xc, Yc = X - X.mean(axis=0), VECTORS - VECTORS.mean(axis=0)
        system = np.kron(0.1 * Xc.T @ Xc, METRIC) + np.eye(8)
        expected = np.linalg.solve(system, (0.1 * Xc.T @ Yc @ np.array(METRIC)).ravel()).reshape(4, 2)
        np.testing.assert_allclose(model.model_.weights, expected, atol=1e-7)
        np.testing.assert_allclose(model.predict(X).mean(axis=0), VECTORS.mean(axis=0), atol=1e-7)

    def test_a_warm_start_keeps_two_outputs_apart(self):
        task = Task(from_arrays(X), VECTORS, None, MultivariateSquared(METRIC), L2())
        first = train(task, tol=1e-10)
        again = train(task, tol=1e-6, start=Trained(first.weights, first.intercepts, []))
        np.testing.assert_allclose(again.weights, first.weights, atol=1e-6)
        assert again.results[0].iterations == 1

    def test_two_scores_of_classes_are_still_one(self):
        assert LinearModel("softmax_margin").fit(X, Z > 0).model_.n_outputs == 1

    def test_metric_of_the_wrong_size(self):
        with pytest.raises(ParameterError, match="2 × 2 numbers, but the labels have 3"):
            LinearModel(MultivariateSquared(METRIC)).fit(X, SETS)


class TestCosts:
    def test_dear_mistakes_are_made_less_often(self):
        y = np.digitize(Z + 2 * np.random.default_rng(0).normal(size=120), [-1, 1])
        costs = np.ones((3, 3)) - np.eye(3)
        costs[2] *= 20  # whatever else is class 2 is a bad mistake
        plain, careful = LinearModel(Softmax()).fit(X, y), LinearModel(SoftmaxMargin(costs)).fit(X, y)
        missed = [int(((model.predict(X) != 2) & (y == 2)).sum()) for model in (plain, careful)]
        assert missed[1] < missed[0]
        assert careful.model_.loss_settings == {"costs": costs.tolist()}

    def test_wrong_shape(self):
        with pytest.raises(ParameterError, match="2 × 2 numbers, but there are 3 classes"):
            LinearModel(SoftmaxMargin([[0, 1], [1, 0]])).fit(X, labels("softmax"))


class _Skewed(VectorLoss):
    """A loss of one's own with a Hessian of another form: Σ_k a_k (z_k − y)², its curvature written out."""

    name, labels = "skewed", "vectors"
    weights = np.array([1.0, 5.0])

    def value_and_grad(self, z, y):
        r = z - y
        return (self.weights * r**2).sum(axis=1), 2 * self.weights * r

    def curvature(self, z, y):
        return np.broadcast_to(2 * self.weights, z.shape).copy()

    def hessian_products(self, h, u):
        return h * u

    def curvature_diagonals(self, h):
        return h

    def curvature_total(self, h):
        return np.diag(h.sum(axis=0))


class _Own(ScalarLoss):
    """Least squares, spoiled in some way."""

    name, labels = "own", "real"

    def __init__(self, spoil="nothing"):
        self.spoil = spoil

    def value_and_grad(self, z, y):
        r = z - y
        slope = {"sign": -r, "half": 0.5 * r, "shape": r[:-1]}.get(self.spoil, r)
        value = 0.5 * r**2
        return np.where(z > 0, np.nan, value) if self.spoil == "nan" else value, slope

    def curvature(self, z, y):
        return np.ones_like(z)


class _Trusted(_Own):
    trusted = True


class TestOwnLosses:
    def test_a_right_one_is_taken(self):
        own, ours = LinearModel(_Own(), tol=1e-10).fit(X, Z), LinearModel("squared", tol=1e-10).fit(X, Z)
        np.testing.assert_allclose(own.coef_, ours.coef_, atol=1e-8)
        assert own.model_.loss_settings == {"spoil": "nothing"}

    @pytest.mark.parametrize(
        ("spoil", "words"),
        [
            ("sign", "has a wrong slope: at the score .* its value changes by"),
            ("half", "has a wrong slope"),
            ("nan", "returns nan with the slope .* both must be finite"),
            ("shape", r"must return one value a row and slopes of shape \(100,\), not shapes \(100,\) and \(99,\)"),
        ],
    )
    def test_a_wrong_one_is_found(self, spoil, words):
        with pytest.raises(ParameterError, match=words):
            LinearModel(_Own(spoil)).fit(X, Z)

    def test_the_look_can_be_declined(self):
        check_loss(_Trusted("sign"), Z)

    def test_rounding_of_huge_values_is_no_wrong_slope(self):
        check_loss(_Own(), 1e10 * Z)

    @pytest.mark.parametrize("name", NAMES)
    def test_every_loss_of_the_registry_would_pass(self, name):
        y = labels(name)
        y = np.zeros(120) if y is None else np.asarray(y, float)
        if LOSSES[name].labels in ("binary", "sets"):
            y = 2 * y - 1
        if LOSSES[name].labels == "levels":
            y = np.digitize(Z, [-1.0, 1.0]).astype(float)
        outputs = 3 if LOSSES[name].labels in ("classes", "levels") else 1
        loss = LOSSES[name]().with_classes([0, 1, 2]) if outputs > 1 else LOSSES[name]()
        if loss.scope == "all" or loss.n_extra(outputs):
            check_tied_loss(loss, y, np.array([0, len(y)]), outputs)
        else:
            check_loss(LOSSES[name](), y, y.shape[1] if y.ndim > 1 else 3)

    def test_kinks_are_no_wrong_slopes(self):
        check_loss(LOSSES["hinge"](), np.repeat([1.0, -1.0], 50))
        check_loss(LOSSES["absolute"](), np.random.default_rng(0).uniform(-2, 2, size=100))  # the very scores


def test_newton_takes_any_hessian_of_several_scores():
    o = Objective.of(from_arrays(X), VECTORS, np.ones(120), _Skewed(), L2(), n_outputs=2)
    weights, intercepts = o.split(Newton(1e-12).solve(o).theta)
    for k, factor in enumerate((2.0, 10.0)):
        one = LinearModel("squared", C=factor, tol=1e-12).fit(X, VECTORS[:, k])
        np.testing.assert_allclose(weights[:, k], one.coef_, atol=1e-8)
        assert intercepts[k] == pytest.approx(one.intercept_, abs=1e-8)


def test_poisson_s_settings_are_kept_in_words():
    assert repr(Poisson()) == "Poisson()"
    assert repr(MultivariateSquared(METRIC)) == "MultivariateSquared(metric=<2 rows>)"


@pytest.mark.parametrize("C", [1, 64, 512])
@pytest.mark.parametrize("solver", ["auto", "smoothed_newton"])
def test_a_bound_is_below_the_optimum_where_c_is_large(solver, C):
    X = np.random.default_rng(0).normal(size=(300, 6))
    y = X[:, 0] > 0
    report = LinearModel("hinge", C=C, solver=solver).fit(X, y).report_
    best = LinearModel("hinge", C=C, solver="bundle", tol=1e-12).fit(X, y).report_.objective
    assert 0 <= report.gap <= 1e-4
    assert report.objective * (1 - report.gap) <= best * (1 + 1e-12)
