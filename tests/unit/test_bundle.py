"""The bundle method: its variants, its centres, its bounds on weights, and losses of one's own."""

import numpy as np
import pytest
from bundle_problems import problem
from objectives import arrays_of
from scipy.optimize import linprog, minimize

from beeline.data.core.arrays import from_arrays
from beeline.data.core.block import Block
from beeline.exceptions import ParameterError
from beeline.losses import (
    CrammerSinger,
    EpsilonInsensitive,
    Hinge,
    LeastSquares,
    Logistic,
    Quantile,
    ScalarLoss,
    VectorLoss,
)
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers.auto import choose_solver
from beeline.solvers.base import Status
from beeline.solvers.bundle import bundle
from beeline.solvers.bundle.bundle import Bundle, step_bound
from beeline.solvers.bundle.centre import CentredModel
from beeline.solvers.bundle.lp import LinearProgramModel
from beeline.solvers.bundle.models import Penalty
from beeline.solvers.bundle.planes import Plane, Planes


class TestVariants:
    @pytest.mark.parametrize("loss", [Hinge(), Logistic()])
    @pytest.mark.parametrize("variant", ["bmrm", "line"])
    @pytest.mark.parametrize("regularizer", [L2(), ElasticNet(0.5), L1()])
    def test_agree(self, loss, variant, regularizer):
        o = problem(loss, regularizer, n=100, d=5, strength=20.0)
        if variant == "line" and not regularizer.l2:
            with pytest.raises(ParameterError, match="needs an L2 part"):
                Bundle(variant="line").solve(o)
            return
        tol = 3e-4 if variant == "line" else 1e-6
        best = Bundle(1e-8).solve(o)
        result = Bundle(tol, 1e5, variant=variant).solve(o)
        assert best.status is Status.CONVERGED
        assert result.gap <= tol
        assert best.objective * (1 - 1e-8) <= result.objective <= best.objective * (1 + tol)
        assert result.objective * (1 - result.gap) <= best.objective

    def test_ocas_never_rises_and_needs_fewer_steps(self):
        o = problem(Hinge(), n=2000, d=30, strength=0.1)
        values = []
        ocas = Bundle(1e-3).solve(o, callback=lambda step: values.append(step.objective))
        assert (np.diff(values) <= 0).all()
        assert 2 * ocas.iterations <= Bundle(1e-3, 10_000, variant="bmrm").solve(o).iterations

    @pytest.mark.parametrize("regularizer", [L2(), L1()])
    @pytest.mark.parametrize("intercept", ["none", "free"])
    def test_steps_keep_their_points(self, regularizer, intercept):
        # An interval cut overwrites the memory of the point that it begins at.
        o = problem(Hinge(), regularizer, n=500, strength=0.5, intercept=intercept)
        start, seen = np.full(o.size, 0.1), []
        Bundle(1e-5).solve(o, start=start, callback=seen.append)
        assert len(seen) > 5
        np.testing.assert_array_equal(start, 0.1)
        for step in seen:
            assert o.at(step.theta).value == pytest.approx(step.objective, rel=1e-12)

    @pytest.mark.parametrize("regularizer", [L2(), L1(), ElasticNet(0.5)])
    @pytest.mark.parametrize("intercept", ["none", "free"])
    def test_same_bits_for_any_threads(self, same_bits, regularizer, intercept):
        # So many rows that every kernel has several tasks to share out.
        o = problem(Hinge(), regularizer, n=50_000, d=10, intercept=intercept, strength=50.0)

        def solved():
            result = Bundle(1e-4).solve(o)
            return result.iterations, result.trace[-1].gap, result.theta

        assert same_bits(solved, threads=(1, 3))[0] > 5

    def test_all_scores_of_a_row_come_from_one_product(self, monkeypatch):
        o, seen, scores = problem(CrammerSinger(), n=150, outputs=4, intercept="none"), [], Block.scores

        def watched(block, w):
            if block.n_rows == 150:
                seen.append(w.shape)
            return scores(block, w)

        monkeypatch.setattr(Block, "scores", watched)
        result = Bundle(1e-3).solve(o)
        assert set(seen) == {(8, 4)}
        assert len(seen) <= result.iterations + 1  # J of the result is evaluated anew

    def test_within_the_bound_on_steps(self):
        o = problem(Hinge(), strength=100.0, intercept="none")
        result = Bundle(1e-2, variant="bmrm").solve(o)
        assert result.iterations <= result.facts["step_bound"]
        assert result.facts["planes"] == result.iterations
        assert result.facts["plane_bytes"] >= 8 * o.size
        assert step_bound(1.0, 1.0, 1.0, 0.01) == pytest.approx(796)

    def test_few_planes_suffice(self):
        o = problem(Hinge(), n=500, d=20)
        free, tight = Bundle(1e-4, 1e5).solve(o), Bundle(1e-4, 1e5, max_planes=8).solve(o)
        assert tight.gap <= 1e-4
        assert tight.objective == pytest.approx(free.objective, rel=2e-4)
        assert tight.facts["plane_bytes"] == 8 * (8 * 20 + 8 * 8)


class TestCentre:
    @staticmethod
    def planes(random, count=12, d=6):
        planes = Planes(d, 0, 100, 20)
        for _ in range(count):
            slope = random.normal(size=d)
            planes.add(Plane(slope, float(random.uniform(0.5, 1.0))))
        return planes

    @pytest.mark.parametrize("lower", [None, 0.0])
    def test_it_leads_to_the_minimum_of_the_programme(self, lower):
        planes = self.planes(np.random.default_rng(3))
        A, b, d, l1 = planes.slopes.values, planes.offsets, 6, 0.05
        bounds = {} if lower is None else {"lower": np.full(d, lower), "upper": np.full(d, np.inf)}
        penalty = Penalty(l1, 0.0, **bounds)
        sides = np.hstack([A, -A, -np.ones((len(b), 1))])
        limits = [(0, None)] * d + [(0, None if lower is None else 0)] * d + [(0, None)]
        best = linprog(np.append(np.full(2 * d, l1), 1.0), sides, -b, bounds=limits).fun
        assert CentredModel.takes(penalty, planes)
        model, gap = CentredModel(penalty, planes, 1.0, 0.0), 1.0  # a tolerance of zero: no vertex is asked for
        while gap > 1e-7:
            minimum = model.minimise(gap)
            value = l1 * np.abs(minimum.weights).sum() + (A @ minimum.weights + b).max(initial=0.0)
            assert minimum.bound <= best + 1e-12
            assert value >= best - 1e-12
            assert value - minimum.bound <= 1.01 * gap
            gap *= 0.3
        assert LinearProgramModel(penalty, planes, 1.0).minimise(1e-12).bound == pytest.approx(best, rel=1e-9)

    def test_it_takes_fewer_steps_than_vertices_where_the_strength_is_small(self, monkeypatch):
        o = problem(Hinge(), L1(), n=400, d=30, strength=1e-2, intercept="none")
        centred = Bundle(1e-3, 5000).solve(o)
        monkeypatch.setattr(CentredModel, "takes", lambda *_: False)
        vertices = Bundle(1e-3, 5000).solve(o)
        assert centred.objective == pytest.approx(vertices.objective, rel=2e-3)
        assert centred.iterations < 0.8 * vertices.iterations

    def test_weights_that_are_not_wanted_are_zero(self):
        random = np.random.default_rng(0)
        X = random.normal(size=(300, 20))
        y = np.where(X[:, 0] - X[:, 1] + 0.3 * random.normal(size=300) > 0, 1.0, -1.0)
        o = Objective.of(from_arrays(X, y), y, np.ones(300), Hinge(), L1(), 20.0, "free")
        trace = []
        result = Bundle(1e-3).run(o, None, lambda step: trace.append(step.objective))
        assert np.count_nonzero(result.theta[:20]) <= 4
        assert np.count_nonzero(result.theta[:2]) == 2
        assert (np.diff(trace) <= 0).all()

    def test_it_does_not_take_bounds_off_zero(self):
        planes = Planes(2, 0, 10, 20)
        assert not CentredModel.takes(Penalty(1.0, 0.0, np.zeros(2), np.array([np.inf, 1.0])), planes)
        assert not CentredModel.takes(Penalty(1.0, 0.0), Planes(2, 1, 10, 20))


class TestBounds:
    @pytest.mark.parametrize("regularizer", [L2(), ElasticNet(0.5)])
    @pytest.mark.parametrize("bounds", [(0.0, np.inf), (-0.1, 0.3), (np.full(8, -0.2), np.linspace(0, 1, 8))])
    @pytest.mark.parametrize("variant", ["ocas", "bmrm", "line"])
    def test_against_scipy(self, regularizer, bounds, variant):
        o = problem(LeastSquares(), regularizer, strength=300.0)
        X, y, c = arrays_of(o)
        low, high = (np.broadcast_to(side, 8) for side in bounds)

        def value(v):
            r, w = X @ v[:8] + v[8] - y, v[:8]
            g = np.append(X.T @ (c * r) + 300 * (regularizer.l2 * w + regularizer.l1 * np.sign(w)), c @ r)
            return 0.5 * c @ r**2 + 300 * (0.5 * regularizer.l2 * w @ w + regularizer.l1 * np.abs(w).sum()), g

        result = Bundle(1e-4, 1e5, bounds=bounds, variant=variant).solve(o)
        w = result.theta[:8]
        assert ((w >= low) & (w <= high)).all()
        signs = [(0 if s > 0 else lo, 0 if s < 0 else hi) for s, lo, hi in zip(np.sign(w), low, high, strict=True)]
        found = minimize(
            value, np.append(w, result.theta[8]), jac=True, bounds=[*signs, (None, None)], method="L-BFGS-B"
        )
        assert result.objective <= found.fun * (1 + 2e-4)
        assert result.objective * (1 - result.gap) <= found.fun * (1 + 1e-9)

    def test_nonnegative_l1_is_a_linear_programme(self):
        o = problem(EpsilonInsensitive(0.0), L1(), n=60, strength=3.0, intercept="none")
        X, y, c = arrays_of(o)
        cost = np.concatenate([np.full(8, 3.0), c])
        G = np.vstack([np.hstack([X, -np.eye(60)]), np.hstack([-X, -np.eye(60)])])
        best = linprog(cost, G, np.concatenate([y, -y])).fun
        result = Bundle(1e-8, nonnegative=True).solve(o)
        assert result.objective == pytest.approx(best, rel=1e-7)
        assert result.theta.min() >= 0
        assert result.theta.max() > 0
        capped = Bundle(1e-8, bounds=(-np.inf, 0.1)).solve(o)
        parts = np.hstack([np.hstack([X, -X]), -np.eye(60)]), np.hstack([np.hstack([-X, X]), -np.eye(60)])
        cost = np.concatenate([np.full(16, 3.0), c])
        limits = [(0, 0.1)] * 8 + [(0, None)] * 68
        best = linprog(cost, np.vstack(parts), np.concatenate([y, -y]), bounds=limits).fun
        assert capped.objective == pytest.approx(best, rel=1e-7)

    def test_l1_with_every_weight_bounded_is_a_linear_programme(self):
        o = problem(EpsilonInsensitive(0.0), L1(), n=60, strength=3.0, intercept="none")
        X, y, c = arrays_of(o)
        parts = np.hstack([X, -X, -np.eye(60)]), np.hstack([-X, X, -np.eye(60)])
        cost = np.concatenate([np.full(16, 3.0), c])
        limits = [(0, 0.4)] * 8 + [(0, 0.2)] * 8 + [(0, None)] * 60
        best = linprog(cost, np.vstack(parts), np.concatenate([y, -y]), bounds=limits).fun
        result = Bundle(1e-8, bounds=(-0.2, 0.4)).solve(o)
        assert result.objective == pytest.approx(best, rel=1e-7)
        assert result.gap <= 1e-8

    def test_a_start_outside_is_put_inside(self):
        o = problem(Hinge())
        result = Bundle(1e-4, nonnegative=True).solve(o, start=-np.ones(o.size))
        assert result.theta[:8].min() >= 0
        assert result.gap <= 1e-4


class Wild(ScalarLoss):
    """Values and slopes, nothing else."""

    name, labels = "wild", "real"

    def value_and_grad(self, z, y):
        r = z - y
        return np.sqrt(1 + r**2) - 1, r / np.sqrt(1 + r**2)


class Sharp(Wild):
    """With a kink that it does not tell."""

    name, smooth = "sharp", False

    def value_and_grad(self, z, y):
        return np.abs(z - y) + 0.5 * (z - y) ** 2, np.sign(z - y) + (z - y)


class Negative(Wild):
    name = "negative"

    def value_and_grad(self, z, y):
        return (z - y) ** 2 - 10, 2 * (z - y)


class Distance(VectorLoss):
    """The largest distance to the label, of any output: K scores with kinks."""

    name, labels, smooth = "distance", "real", False

    def value_and_grad(self, z, y):
        r = z - y[:, None]
        most = np.abs(r).argmax(axis=1)
        rows, slopes = np.arange(len(y)), np.zeros_like(z)
        slopes[rows, most] = np.sign(r[rows, most])
        return np.abs(r)[rows, most], slopes


class TestOwnLosses:
    @pytest.mark.parametrize("regularizer", [L2(), L1(), ElasticNet(0.5)])
    @pytest.mark.parametrize("intercept", ["free", "none"])
    @pytest.mark.parametrize(("loss", "first"), [(Wild(), "lbfgs"), (Sharp(), "bundle")])
    def test_values_and_slopes_suffice(self, loss, first, regularizer, intercept):
        o = problem(loss, regularizer, intercept=intercept)
        solver = choose_solver(o, tol=1e-6)
        assert solver.name == first
        result, other = solver.solve(o), Bundle(1e-7).solve(o)
        assert result.gap <= 1e-6
        assert result.objective == pytest.approx(other.objective, rel=2e-6)
        random = np.random.default_rng(0)
        for scale in (1e-3, 1e-2, 1e-1):
            theta = result.theta + scale * random.normal(size=o.size)
            assert o.at(theta).value >= result.objective * (1 - result.gap)

    def test_several_scores(self):
        o = problem(Distance(), outputs=2, n=60, d=3)
        result = Bundle(1e-6).solve(o)
        assert result.gap <= 1e-6
        # Both outputs want the same: half of Ω each, and the loss of one.
        one = problem(EpsilonInsensitive(0.0), n=60, d=3, strength=2.0)
        assert result.objective == pytest.approx(Bundle(1e-8).solve(one).objective, rel=2e-6)

    def test_a_negative_loss_is_refused(self):
        with pytest.raises(ParameterError, match="never negative, unlike Negative"):
            Bundle().solve(problem(Negative()))


@pytest.mark.parametrize("regularizer", [L2(), L1(), ElasticNet(0.5)])
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_rows_without_features(regularizer, intercept):
    y = np.array([1.0, -1.0, 1.0, 1.0])
    o = Objective.of(from_arrays(np.zeros((4, 0))), y, np.ones(4), Hinge(), regularizer, 1e-3, intercept)
    assert Bundle(1e-6).solve(o).objective == pytest.approx(2.0 if intercept == "free" else 4.0)


def test_settings_are_checked():
    for settings, words in (
        ({"variant": "cutting"}, "variant must be one of ocas, bmrm, line"),
        ({"max_planes": 3}, "max_planes must be at least 4"),
        ({"idle": 0}, "idle must be at least 1"),
        ({"nonnegative": True, "bounds": (0, 1)}, "leave one of them out"),
        ({"bounds": (0.1, 1)}, "zero must lie within"),
    ):
        with pytest.raises(ParameterError, match=words):
            Bundle(**settings)
    with pytest.raises(ParameterError, match="one for each of 8"):
        Bundle(bounds=(np.zeros(3), 1.0)).solve(problem(Hinge()))


@pytest.mark.parametrize("seed", range(5))
def test_a_centre_that_went_astray_is_left(seed, monkeypatch):
    """Features that differ in their last digits only; where Ω alone exceeds J⁺ there is no minimum of a model."""
    random = np.random.default_rng(seed)
    X = 1.2e8 + 1e3 * random.normal(size=(10, 3))
    y = (X - X.mean(axis=0)) @ random.normal(size=3) / 1e3
    o = Objective.of(from_arrays(X), y, np.full(10, 500.0), Quantile(0.5), L1(), 1.0, "regularized")
    sizes = []

    class Noted(bundle.CentredModel):
        def minimise(self, gap):
            minimum = super().minimise(gap)
            sizes.append(self.penalty.value(minimum.weights))
            return minimum

    monkeypatch.setattr(bundle, "CentredModel", Noted)
    result = Bundle(1e-4, 150).run(o)
    assert max(sizes) <= 3 * o.null.value
    assert result.bound <= result.objective
