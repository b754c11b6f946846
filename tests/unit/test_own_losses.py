"""A loss of one's own is a class with one method; what is wrong with it is said before training begins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from beeline import LinearModel, Model
from beeline.exceptions import ConvergenceWarning, ParameterError
from beeline.losses import LOSSES, Hinge, RowLoss, ScalarLoss, SmoothedHinge, SoftHinge, VectorLoss
from beeline.losses.checking import check_loss, fault_after_training, has_kinks
from beeline.regularizers import ElasticNet

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 6))
Z = X @ RNG.normal(size=6) + 0.5 * RNG.normal(size=400)
CLASSES = np.digitize(Z, [-1.0, 1.0])
SIGNS = np.where(Z > 0, 1.0, -1.0)
# Those of levels own parameters, and are in test_ordinal_losses.py.
ROW_LOSSES = sorted(n for n, kind in LOSSES.items() if issubclass(kind, RowLoss) and kind.labels != "levels")


class SteepBelow(ScalarLoss):
    """Squares, four times as much where the prediction is too small."""

    def value_and_grad(self, z, y):
        r = z - y
        weight = np.where(r < 0, 4.0, 1.0)
        return 0.5 * weight * r**2, weight * r


class Stock(ScalarLoss):
    """With a kink, of which it says nothing, and whole numbers as slopes."""

    def value_and_grad(self, z, y):
        r = z - y
        return np.where(r < 0, -4 * r, r), np.where(r < 0, -4, 1)


class Cubic(ScalarLoss):
    """Two classes."""

    labels = "binary"

    def value_and_grad(self, z, y):
        short = np.maximum(0, 1 - y * z)
        return short**3, -3 * y * short**2


class CurvedCubic(Cubic):
    def curvature(self, z, y):
        return 6 * np.maximum(0, 1 - y * z)


class SquaredMargins(VectorLoss):
    """Several classes: every other one stays below the right one by 1."""

    def value_and_grad(self, z, y):
        rows, right = np.arange(len(y)), y.astype(int)
        over = np.maximum(0, 1 + z - z[rows, right][:, None])
        over[rows, right] = 0
        slopes = 2 * over
        slopes[rows, right] = -slopes.sum(axis=1)
        return (over**2).sum(axis=1), slopes


def optimum(loss, y, l1, l2):
    """J at the optimum by SciPy, with weights split into positive and negative parts for L1."""

    def both(parts):
        up, down, b = parts[:6], parts[6:12], parts[12]
        value, slope = loss.value_and_grad(X @ (up - down) + b, y)
        gradient = X.T @ slope + l2 * (up - down)
        total = l1 * (up + down).sum() + 0.5 * l2 * ((up - down) ** 2).sum() + value.sum()
        return total, np.concatenate([gradient + l1, l1 - gradient, [slope.sum()]])

    bounds = [(0, None)] * 12 + [(None, None)]
    return minimize(
        both, np.zeros(13), jac=True, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}
    ).fun


@pytest.mark.parametrize(
    ("regularizer", "l1", "l2"), [("l2", 0, 1), ("l1", 1, 0), (ElasticNet(0.3), 0.3, 0.7)], ids=["l2", "l1", "mixed"]
)
@pytest.mark.parametrize("solver", ["auto", "bundle", "lbfgs"])
@pytest.mark.parametrize(("loss", "y"), [(SteepBelow(), Z), (Cubic(), SIGNS)], ids=["numbers", "classes"])
def test_one_method_suffices(loss, y, solver, regularizer, l1, l2):
    model = LinearModel(loss, regularizer, solver=solver, tol=1e-6).fit(X, y)
    assert model.report_.gap <= 1e-6
    assert model.report_.objective == pytest.approx(optimum(loss, y, l1, l2), rel=2e-6)


@pytest.mark.parametrize("regularizer", ["l2", "l1", "elastic_net"])
def test_kinks_are_found_and_left_to_the_bundle_method(regularizer):
    loss = Stock()
    model = LinearModel(loss, regularizer).fit(X, Z)
    assert model.report_.solver == "bundle"
    assert model.report_.converged
    known = LinearModel(LOSSES["quantile"](0.8), regularizer, C=5.0).fit(X, Z)
    assert model.report_.objective == pytest.approx(known.report_.objective, rel=2e-4)
    with pytest.raises(ParameterError, match=r"'lbfgs' needs a smooth loss, unlike Stock\(\).* take bundle"):
        LinearModel(loss, regularizer, solver="lbfgs").fit(X, Z)


def test_what_a_class_says_of_itself_is_believed():
    class Declared(SteepBelow):
        smooth = False

    class Trusted(Stock):
        trusted = True

    assert LinearModel(Declared()).fit(X, Z).report_.solver == "bundle"
    with pytest.warns(ConvergenceWarning, match="lbfgs reached its pass limit"):
        LinearModel(Trusted(), max_passes=30).fit(X, Z)


def test_kinks_that_a_class_tells_are_looked_at():
    class Pieces(Stock):
        smooth, piecewise_linear = False, True

    class Told(Pieces):
        def kinks(self, y):
            return [(y, 5.0)]

    class Elsewhere(Pieces):
        def kinks(self, y):
            return [(y + 1.0, 5.0)]

    class Single(Pieces):
        def kinks(self, y):
            return [(y[0], 5.0)]

    exact = LinearModel(Told(), fit_intercept=False).fit(X, Z).report_.objective
    assert exact == pytest.approx(LinearModel(Stock(), fit_intercept=False).fit(X, Z).report_.objective, rel=2e-4)
    with pytest.raises(ParameterError, match="must say by kinks where its pieces meet"):
        LinearModel(Pieces()).fit(X, Z)
    with pytest.raises(ParameterError, match=r"Elsewhere\(\) has other kinks than it says: .* by 5 and not by 0;"):
        LinearModel(Elsewhere()).fit(X, Z)
    with pytest.raises(ParameterError, match="as float64, one a row, 100 numbers"):
        LinearModel(Single()).fit(X, Z)


def test_newton_takes_it_with_a_curvature():
    with pytest.raises(ParameterError, match="'newton' needs a loss with a curvature"):
        LinearModel(Cubic(), solver="newton").fit(X, SIGNS)
    model = LinearModel(CurvedCubic(), solver="newton", tol=1e-8).fit(X, SIGNS)
    assert model.report_.objective == pytest.approx(optimum(Cubic(), SIGNS, 0, 1), rel=1e-7)


@pytest.mark.parametrize(
    ("curvature", "words"),
    [
        (lambda z, y: 3 * np.maximum(0, 1 - y * z), "has a wrong curvature: at the score .* its slope changes by"),
        (lambda z, y: np.where(z > 0, np.nan, 0), "must return one finite curvature a row, 100 numbers, not shape"),
        (lambda z, y: 1.0, r"must return one finite curvature a row, 100 numbers, not shape \(\)"),
    ],
)
def test_a_wrong_curvature_is_found(curvature, words):
    class Wrong(Cubic):
        def curvature(self, z, y):
            return curvature(z, y)

    with pytest.raises(ParameterError, match=words):
        LinearModel(Wrong()).fit(X, SIGNS)


@pytest.mark.parametrize("loss", [SteepBelow(), Stock()])
def test_a_search_for_c_goes_by_the_loss_itself(loss):
    model = LinearModel(loss, C="auto", cv=3).fit(X, Z)
    assert model.selection_.metric == "loss"
    assert model.report_.converged


def test_two_classes_become_many_one_against_the_rest():
    model = LinearModel(Cubic()).fit(X, CLASSES)
    assert len(model.results_) == 3
    assert model.score(X, CLASSES) > 0.7


def test_several_scores():
    model = LinearModel(SquaredMargins(), tol=1e-5).fit(X, CLASSES)
    assert model.report_.solver == "bundle"
    assert model.report_.converged
    assert model.coef_.shape == (3, 6)
    free = LinearModel(SquaredMargins(), fit_intercept=False, tol=1e-5).fit(X, CLASSES)
    assert free.report_.solver == "lbfgs"
    assert free.report_.converged


def test_a_name_is_made_of_the_class():
    class StockLoss(SteepBelow):
        pass

    class L2Of_Things(SteepBelow):  # noqa: N801
        pass

    class Named(StockLoss):
        name = "mine"

    names = [kind.name for kind in (StockLoss, L2Of_Things, Named, SteepBelow)]
    assert names == ["stock_loss", "l2_of_things", "mine", "steep_below"]


def test_a_model_is_saved_without_the_loss_and_predicts_without_it(tmp_path):
    class Local(SteepBelow):
        def __init__(self, weight=3.0):
            self.weight = weight

    model = LinearModel(Local(2.0)).fit(X, Z)
    model.model_.save(tmp_path / "m")
    loaded = Model.load(tmp_path / "m")
    assert (loaded.loss, loaded.loss_settings) == ("local", {"weight": 2.0})
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


class Spoiled(ScalarLoss):
    """Least squares with something wrong."""

    def __init__(self, spoil):
        self.spoil = spoil

    def value_and_grad(self, z, y):
        r = z - y
        value = 0.5 * r**2
        if self.spoil == "in place":
            z -= y
        return {
            "slope": (value, 2 * r),
            "nan": (np.where(z > 0, np.nan, value), r),
            "total": (value.sum(keepdims=True), r),
            "negative": (value - z * z, r - 2 * z),
            "float32": (value.astype(np.float32), r),
            "values only": value,
            "nothing": None,
            "lists": (list(value), list(r)),
            "bumps": (1 - np.exp(-value), r * np.exp(-value)),
        }.get(self.spoil, (value, r))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ("slope", "has a wrong slope: at the score .* its value changes by .* or say trusted = True"),
        ("nan", "returns nan with the slope .*; both must be finite"),
        ("total", r"must return one value a row and slopes of shape \(100,\), not shapes \(1,\) and \(100,\)"),
        ("negative", r"is -\d.* at the score .* and the label .*; a loss must not be negative"),
        ("float32", "must return float64, not float32 and float64"),
        ("values only", "must return two arrays from value_and_grad"),
        ("nothing", "must return two arrays from value_and_grad"),
        ("lists", "must return two arrays from value_and_grad"),
        ("in place", "changes the scores or the labels that it is given; let it work on copies"),
        ("bumps", "is not convex: as the score of the label .* goes from .*, its slope falls from"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(spoil, words):
    with pytest.raises(ParameterError, match=rf"^Spoiled\(spoil='{spoil}'\) {words}"):
        LinearModel(Spoiled(spoil)).fit(X, Z)


def test_a_class_is_not_a_loss():
    with pytest.raises(ParameterError, match=r"^give a loss, Stock\(\), and not its class$"):
        LinearModel(Stock).fit(X, Z)


def test_names_of_the_library_are_taken():
    class Huber(SteepBelow):
        pass

    with pytest.raises(ParameterError, match=r"the library has a loss 'huber'; give Huber\(\) another name"):
        LinearModel(Huber()).fit(X, Z)


def test_a_loss_of_the_library_is_not_changed_in_part():
    class Twice(Hinge):
        def value_and_grad(self, z, y):
            value, slope = super().value_and_grad(z, y)
            return 2 * value, 2 * slope

    with pytest.raises(ParameterError, match="the rest of Hinge does not fit; derive it from ScalarLoss"):
        LinearModel(Twice()).fit(X, SIGNS)


def test_a_trusted_loss_may_be_negative_without_planes():
    class Shifted(ScalarLoss):
        trusted = True

        def value_and_grad(self, z, y):
            return 0.5 * z**2 - z * y, z - y  # 0 where all scores are

    model = LinearModel(Shifted(), solver="lbfgs").fit(X, Z)
    assert model.report_.converged
    np.testing.assert_allclose(model.coef_, LinearModel("squared").fit(X, Z).coef_, rtol=1e-2)


class Far(ScalarLoss):
    """Least squares, something else beyond scores of 5."""

    def __init__(self, beyond, where="value"):
        self.beyond, self.where = beyond, where

    def value_and_grad(self, z, y):
        r = z - y
        value, slope = 0.5 * r**2, r.copy()
        (value if self.where == "value" else slope)[np.abs(z) > 5] = self.beyond
        return value, slope


@pytest.mark.parametrize("regularizer", ["l2", "l1"])
@pytest.mark.parametrize("loss", [Far(math.nan), Far(math.nan, "slope")])
def test_what_is_no_number_far_out_ends_the_training(loss, regularizer):
    with pytest.raises(ParameterError, match=r"at the score .* and the label .*; it must be a number at every score"):
        LinearModel(loss, regularizer, solver="bundle").fit(X, 20 * Z)


def test_a_solver_that_a_loss_misleads_says_so():
    with pytest.warns(ConvergenceWarning, match=r"lbfgs can make no more progress .*; Far\(.*\) may have kinks"):
        LinearModel(Far(math.inf), solver="lbfgs").fit(X, 20 * Z)


def test_steps_that_go_too_far_do_not_warn():
    """Warnings are errors here."""

    class Rates(ScalarLoss):
        link = "exp"

        def value_and_grad(self, z, y):
            up, down = np.exp(z / 2), y * np.exp(-z / 2)
            return up + down - 2 * np.sqrt(y), (up - down) / 2

    model = LinearModel(Rates()).fit(50 * X, np.exp(3 * Z))
    assert model.report_.converged
    assert (model.predict(50 * X) > 0).all()


class TestLookingForKinks:
    @pytest.mark.parametrize("name", [name for name in ROW_LOSSES if LOSSES[name].convex])
    @pytest.mark.parametrize("size", [1.0, 50.0])
    def test_every_loss_of_the_registry_is_seen_as_it_is(self, name, size):
        loss, random = LOSSES[name](), np.random.default_rng(1)
        kinds = {"binary": SIGNS, "sets": random.choice([-1.0, 1.0], (90, 3)), "classes": CLASSES.astype(float)}
        y = kinds.get(loss.labels, random.normal(size=(90, 3) if loss.labels == "vectors" else 90) * size)
        y = random.random(90) if name == "cross_entropy" else np.abs(y) if loss.domain else y
        assert has_kinks(loss, y, 3) == (not loss.smooth)

    @pytest.mark.parametrize("width", [1e-2, 1e-4, 1e-6])
    def test_however_steep_a_slope_is_it_does_not_jump(self, width):
        assert not has_kinks(SoftHinge(width), SIGNS)
        assert not has_kinks(SmoothedHinge(width), SIGNS)

    @pytest.mark.parametrize(("jump", "curve"), [(1.0, 1.0), (1.0, 100.0), (1e-3, 1.0)])
    def test_small_jumps_within_curves(self, jump, curve):
        class Both(ScalarLoss):
            def value_and_grad(self, z, y):
                r = z - y
                return jump * np.abs(r) + curve * r**2, jump * np.sign(r) + 2 * curve * r

        assert has_kinks(Both(), Z)

    def test_a_jump_before_a_long_curve(self):
        class Shelf(ScalarLoss):
            def value_and_grad(self, z, y):
                short, over = np.maximum(y - z, 0), np.maximum(z - y, 0)
                return 3 * short + 0.1 * over**2, np.where(short > 0, -3, 0.2 * over)

        assert has_kinks(Shelf(), np.round(40 + 5 * Z))

    def test_numbers_too_large_for_doubles_are_no_kinks(self):
        class Counts(ScalarLoss):
            def value_and_grad(self, z, y):
                return np.exp(z) - y * z + y * np.log(y) - y, np.exp(z) - y

        y = np.array([1.0, 800.0, 1e5])
        assert not has_kinks(Counts(), y)
        check_loss(Counts(), y)


def test_no_rows_no_complaint():
    check_loss(SteepBelow(), np.empty(0))


def test_labels_of_a_kind_that_there_is_not():
    class Misspelt(SteepBelow):
        labels = "binaries"

    with pytest.raises(ParameterError, match=r"has labels = 'binaries'; they are one of binary, real"):
        LinearModel(Misspelt()).fit(X, Z)


@pytest.mark.parametrize("C", [1.0, "auto"])
def test_two_classes_by_two_scores(C):
    model = LinearModel(SquaredMargins(), C=C, cv=2 if C == "auto" else 5).fit(X, SIGNS)
    assert model.coef_.shape == (1, 6)
    assert model.report_.converged
    assert model.score(X, SIGNS) > 0.9
    assert model.set_params(warm_start=True).fit(X, SIGNS).fit(X, SIGNS).report_.converged
    with pytest.raises(ParameterError, match="nonnegative=True says nothing of two classes"):
        LinearModel(SquaredMargins(), nonnegative=True).fit(X, SIGNS)


class Tired(ScalarLoss):
    """A squared hinge that grows slower and slower from a margin on where no look before training gets to."""

    labels = "binary"

    def __init__(self, limit=5.0):
        self.limit = limit

    def value_and_grad(self, z, y):
        margin, top = y * z, 1 + self.limit
        short, beyond = np.maximum(1 - margin, 0), np.maximum(-self.limit - margin, 0)
        value = np.where(beyond > 0, top**2 + 2 * top * np.log1p(beyond), short**2)
        return value, -2 * y * np.where(beyond > 0, top / (1 + beyond), short)


class TiredOfTwo(VectorLoss):
    """The same for the difference of two scores."""

    def value_and_grad(self, z, y):
        value, slope = Tired(limit=30.0).value_and_grad(z[:, 1] - z[:, 0], np.where(y == 1, 1.0, -1.0))
        return value, np.column_stack([-slope, slope])


class Clipped(ScalarLoss):
    """Convex, with slopes that are too small far away."""

    def value_and_grad(self, z, y):
        return (z - y) ** 2, 2 * np.clip(z - y, -60, 60)


def far_row(n, x):
    """Rows alike, and one that lies far on the wrong side."""
    return np.append(np.ones(n), x)[:, None], np.append(np.ones(n), 0.0)


@pytest.mark.parametrize("solver", ["bundle", "lbfgs"])
@pytest.mark.parametrize(
    ("loss", "rows"), [(Tired(), (70, 20.0)), (TiredOfTwo(), (2000, 60.0))], ids=["one score", "two scores"]
)
def test_no_certificate_where_training_got_to_what_is_not_convex(loss, rows, solver):
    with pytest.warns(ConvergenceWarning, match=r"an unknown distance.* not convex: as the scores? of .*; let the"):
        model = LinearModel(loss, solver=solver, fit_intercept=False).fit(*far_row(*rows))
    report = model.report_
    assert (report.gap, report.converged) == (None, False)
    assert report.status == ("limit" if rows == (2000, 60.0) and solver == "bundle" else "unproven")
    assert "an unknown distance above the optimum" in report.sentence
    assert all(point.gap == math.inf for point in model.results_[0].trace)
    if rows == (70, 20.0):
        assert report.objective > 1.04 * 65.69  # J of a smaller weight: the certificate would have been false


def test_slopes_that_are_wrong_where_training_got_to():
    y = Z.copy()
    y[300] = 100.0
    words = r"Clipped\(\) is not convex, or has a wrong slope: as the score of the label 100"
    with pytest.warns(ConvergenceWarning, match=words):
        assert LinearModel(Clipped(), solver="lbfgs").fit(X, y).report_.gap is None


def test_a_look_after_training_finds_the_row_among_many():
    X_many = np.random.default_rng(0).normal(size=(20_000, 3))
    y = X_many @ np.ones(3)
    y[15_001] = -100.0
    with pytest.warns(ConvergenceWarning, match="label -100"):
        assert LinearModel(Clipped(), solver="lbfgs").fit(X_many, y).report_.gap is None


def test_what_is_trusted_is_not_looked_at_after_training():
    class Believed(Tired):
        trusted = True

    assert LinearModel(Believed(), fit_intercept=False).fit(*far_row(70, 20.0)).report_.converged


@pytest.mark.parametrize("name", ROW_LOSSES)
def test_a_look_after_training_finds_nothing_wrong_with_the_librarys_losses(name):
    loss, random = LOSSES[name](), np.random.default_rng(1)
    vector = isinstance(loss, VectorLoss)
    for scale in (1e-12, 1.0, 30.0):
        end = scale * random.normal(size=(60, 3) if vector else 60)
        y = {"binary": SIGNS[:60], "classes": CLASSES[:60].astype(float), "none": np.zeros(60)}.get(loss.labels)
        if y is None:
            y = np.abs(random.normal(size=end.shape)) * (1e6 if loss.link == "none" and loss.labels != "sets" else 0.5)
        y = np.where(random.random(y.shape) < 0.5, 1.0, -1.0) if loss.labels == "sets" else y
        for start in (np.zeros_like(end), end, end + 1e-9):
            assert fault_after_training(loss, y, start, end) is None
