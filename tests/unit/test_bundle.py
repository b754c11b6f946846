"""The bundle method: its model, its planes, its variants and its bounds on weights."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from beeline.data.arrays import from_arrays
from beeline.exceptions import ParameterError
from beeline.kernels import num_threads, set_num_threads
from beeline.losses import (
    EpsilonInsensitive,
    Hinge,
    LeastSquares,
    Logistic,
    Quantile,
    ScalarLoss,
    Softmax,
    VectorLoss,
)
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers.auto import choose_solver
from beeline.solvers.base import Status
from beeline.solvers.bundle import Bundle, step_bound
from beeline.solvers.bundle_centre import CentredModel
from beeline.solvers.bundle_lp import LinearModel
from beeline.solvers.bundle_models import Penalty, QuadraticModel
from beeline.solvers.line_search import valley
from beeline.solvers.planes import Plane, Planes, tangent
from beeline.solvers.simplex_qp import independent_rows, maximise


def problem(loss, regularizer=None, *, n=200, d=8, intercept="free", seed=0, strength=1.0, outputs=1):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) + 0.3
    z = X @ random.normal(size=d) + 0.5 * random.normal(size=n)
    y = np.where(z > 0, 1.0, -1.0) if loss.labels == "binary" else z
    if loss.labels == "classes":
        y = random.integers(0, outputs, size=n).astype(float)
    return Objective(
        from_arrays(X, y),
        y,
        random.uniform(0.5, 1.5, n),
        loss,
        regularizer or L2(),
        strength,
        intercept,
        n_outputs=outputs,
    )


class OwnHinge(ScalarLoss):
    """The hinge without a compiled form."""

    name, labels, smooth, piecewise_linear = "own_hinge", "binary", False, True

    def value_and_grad(self, z, y):
        return Hinge().value_and_grad(z, y)

    def kinks(self, y):
        return Hinge().kinks(y)


class TestKinks:
    @pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.3), Quantile(0.2), OwnHinge()])
    @pytest.mark.parametrize("alike", [False, True])
    def test_buckets_against_numpy(self, loss, alike):
        random = np.random.default_rng(0)
        z, dz = random.normal(size=(2, 40_000))
        y = np.sign(random.normal(size=40_000))
        c = np.full(1, 0.7) if alike else random.random(40_000)
        dz[::7] = 0
        slope, jumps, bends = loss.bends(z, dz, y, c, (-0.5, 0.75), 50)
        costs = np.broadcast_to(c, z.shape)
        assert slope == pytest.approx(loss.along(z, dz, 0.75, y, costs.copy())[1])
        seen = np.zeros(50)
        for (scores, jump), found in zip(loss.kinks(y), bends, strict=True):
            with np.errstate(divide="ignore", invalid="ignore"):
                times = (scores - z) / dz
            sizes = jump * costs * np.abs(dz)
            for k in range(50):
                inside = np.floor((times + 0.5) / 1.25 * 50) == k
                np.testing.assert_allclose(found.of(k)[0], times[inside])
                np.testing.assert_allclose(found.of(k)[1], sizes[inside])
                seen[k] += sizes[inside].sum()
        np.testing.assert_allclose(jumps, seen)

    def test_a_row_that_stays_at_its_kink_is_not_passed(self):
        _, jumps, (found,) = Hinge().bends(np.ones(3), np.zeros(3), np.ones(3), np.ones(3), (-1.0, 1.0), 4)
        assert not jumps.any()
        assert not found.marks.any()

    @pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.3), Quantile(0.2), LeastSquares(), OwnHinge()])
    def test_a_stretch_gives_lines_below_the_losses(self, loss):
        random = np.random.default_rng(0)
        z, dz = random.normal(size=(2, 3000))
        dz[:10] = 0
        y, c = np.sign(random.normal(size=3000)), random.random(3000)
        slopes, moved = dz.copy(), z.copy()
        value, offset = loss.stretch(moved, slopes, (-0.1, 0.2, 0.4), y, c)
        np.testing.assert_allclose(moved, z + 0.2 * dz)
        assert value == pytest.approx(loss.sum(moved, y, c))
        for scale in (0.0, 0.1, 1.0, 10.0):
            for place in (-0.1, 0.0, 0.2, 0.4, 1.0):
                there = z + place * dz + scale * random.normal(size=3000)
                assert offset + slopes @ there <= loss.sum(there, y, c) * (1 + 1e-12)
        if loss.piecewise_linear and len(loss.kinks(y)) == 1:  # the mean of the tangents on the way
            steps = np.linspace(-0.1, 0.4, 2002)
            steps = 0.5 * (steps[1:] + steps[:-1])
            mean = np.mean([c * loss.value_and_grad(z + t * dz, y)[1] for t in steps], axis=0)
            np.testing.assert_allclose(slopes, mean, atol=1e-3)

    def test_lengths_must_agree(self):
        with pytest.raises(ValueError, match="one number a row"):
            Hinge().bends(np.ones(3), np.ones(2), np.ones(3), np.ones(3), (0.0, 1.0), 4)
        with pytest.raises(ValueError, match="one cost a row"):
            Hinge().stretch(np.ones(3), np.ones(3), (0.0, 0.1, 0.2), np.ones(3), np.ones(2))


class TestLineSearch:
    @pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.2), EpsilonInsensitive(0.0)])
    @pytest.mark.parametrize("regularizer", [L2(), L1(), ElasticNet(0.3)])
    @pytest.mark.parametrize("seed", range(3))
    def test_exact(self, loss, regularizer, seed):
        o = problem(loss, regularizer, seed=seed)
        random = np.random.default_rng(seed)
        theta = random.normal(size=o.size)
        theta[::2] = 0
        line = o.at(theta).line(random.normal(size=o.size))
        low, high = -5.0, 5.0
        t = valley(line, low, high, 1.0).t
        for _ in range(200):  # golden section
            a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
            low, high = (low, b) if line.at(a)[0] < line.at(b)[0] else (a, high)
        assert line.at(t)[0] <= line.at(0.5 * (low + high))[0] * (1 + 1e-14)

    def test_from_kinks_at_the_start(self):
        # All residuals are zero at t = 0, where J has no slope but two.
        o = problem(EpsilonInsensitive(0.0), intercept="none")
        o = Objective(o.data, np.zeros(200), o.costs, o.loss, o.regularizer, intercept="none")
        assert valley(o.at().line(np.ones(o.size)), 0.0, np.inf, 1.0).t == 0.0

    def test_rows_that_share_a_kink(self):
        X, y = np.ones((6, 1)), np.array([1.0, 1, 1, 1, -1, -1])
        o = Objective(from_arrays(X), y, np.ones(6), Hinge(), L2(), 1e-3, "none")
        found = valley(o.at().line(np.ones(1)), -10.0, 10.0, 0.3)
        assert found.t == pytest.approx(1.0)
        assert found.left < found.t < found.right


class TestPlanes:
    @pytest.mark.parametrize("loss", [Hinge(), Logistic(), EpsilonInsensitive(0.1), LeastSquares(), Softmax()])
    @pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
    def test_below_the_risk_everywhere(self, loss, intercept):
        outputs = 3 if isinstance(loss, VectorLoss) else 1
        o = problem(loss, intercept=intercept, outputs=outputs)
        random = np.random.default_rng(1)
        for _ in range(10):
            plane, point = tangent(o.at(random.normal(size=o.size)), 1e-9)
            touch = plane.slope @ point.theta + plane.offset
            assert touch == pytest.approx(point.loss, rel=1e-8)
            if intercept == "free":
                np.testing.assert_array_equal(plane.slope[o.n_regularized :], 0)
            for scale in (0.01, 1, 10):
                theta = point.theta + scale * random.normal(size=o.size)
                assert plane.slope @ theta + plane.offset <= o.at(theta).loss * (1 + 1e-10)

    def test_the_limit_keeps_the_bound(self):
        random = np.random.default_rng(0)
        penalty, few, many = Penalty(0.0, 1.0), Planes(5, 0, 6, 50), Planes(5, 0, 100, 50)
        models = [QuadraticModel(penalty, planes) for planes in (few, many)]
        last = -np.inf
        for _ in range(30):
            plane = Plane(random.normal(size=5), float(random.random()))
            for model in models:
                model.add(plane)
            bounds = [model.minimise(1e-9).bound for model in models]
            assert bounds[0] <= bounds[1] + 1e-9
            assert bounds[0] >= last - 1e-9
            last = bounds[0]
        assert few.count <= 6
        assert few.nbytes < many.nbytes

    def test_idle_ones_are_dropped(self):
        planes = Planes(2, 0, 100, 3)
        model = QuadraticModel(Penalty(0.0, 1.0), planes)
        model.add(Plane(np.array([1.0, 0.0]), -5.0))
        for _ in range(10):
            model.add(Plane(np.array([0.0, 0.1]), 3.0))
            model.minimise(1e-9)
        assert 1 not in planes.numbers
        assert 0 in planes.numbers

    def test_gram_follows(self):
        random = np.random.default_rng(0)
        planes = Planes(7, 0, 10, 2)
        for _ in range(40):
            planes.add(Plane(random.normal(size=7), 0.0))
            alpha = random.random(planes.count) * (random.random(planes.count) < 0.4)
            planes.use(alpha / max(alpha.sum(), 1e-9))
            slopes = planes.slopes.values
            np.testing.assert_allclose(planes.gram, slopes @ slopes.T, atol=1e-12)


class TestProgramme:
    @pytest.mark.parametrize("seed", range(5))
    def test_against_scipy(self, seed):
        random = np.random.default_rng(seed)
        p, d = 12, 5 + 3 * seed
        A, f = random.normal(size=(p, d)), random.normal(size=p)
        H = A @ A.T
        alpha, _ = maximise(H, f, np.eye(p)[0])
        assert alpha.min() >= 0
        assert alpha.sum() == pytest.approx(1)
        found = minimize(
            lambda v: 0.5 * v @ H @ v - f @ v,
            np.full(p, 1 / p),
            jac=lambda v: H @ v - f,
            bounds=[(0, None)] * p,
            constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        assert f @ alpha - 0.5 * alpha @ H @ alpha >= -found.fun - 1e-9
        slopes = f - H @ alpha
        assert slopes.max() - slopes @ alpha <= 1e-10

    def test_equal_planes_and_no_curvature(self):
        H, f = np.zeros((4, 4)), np.array([0.0, 1.0, 2.0, 2.0])
        alpha, _ = maximise(H, f, np.eye(4)[0])
        assert f @ alpha == pytest.approx(2)

    def test_equalities_and_their_multipliers(self):
        random = np.random.default_rng(3)
        p = 15
        A, f = random.normal(size=(p, 6)), random.random(p)
        A[0] = f[0] = 0
        tails = random.normal(size=(p, 3))
        tails[0] = 0
        tails[:, 2] = -tails[:, 0] - tails[:, 1]  # as of scores that may all be shifted
        rows, turn = independent_rows(tails.T)
        assert len(rows) == 2
        np.testing.assert_allclose(turn @ tails.T, rows, atol=1e-12)
        alpha, multipliers = maximise(A @ A.T, f, np.eye(p)[0], 0.0, rows)
        assert np.abs(tails.T @ alpha).max() < 1e-9
        heights = f - A @ (A.T @ alpha) - multipliers @ rows
        assert heights.max() - heights @ alpha <= 1e-9


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
        # A stretch overwrites the memory of the point that it begins at.
        o = problem(Hinge(), regularizer, n=500, strength=0.5, intercept=intercept)
        start, seen = np.full(o.size, 0.1), []
        Bundle(1e-5).solve(o, start=start, callback=seen.append)
        assert len(seen) > 5
        np.testing.assert_array_equal(start, 0.1)
        for step in seen:
            assert o.at(step.theta).value == pytest.approx(step.objective, rel=1e-12)

    @pytest.mark.parametrize("regularizer", [L2(), L1(), ElasticNet(0.5)])
    @pytest.mark.parametrize("intercept", ["none", "free"])
    def test_same_bits_for_any_threads(self, regularizer, intercept):
        # So many rows that every kernel has several tasks to share out.
        o = problem(Hinge(), regularizer, n=50_000, d=10, intercept=intercept, strength=50.0)
        before, found = num_threads(), []
        try:
            for threads in (1, 3):
                set_num_threads(threads)
                found.append(Bundle(1e-4).solve(o))
        finally:
            set_num_threads(before)
        assert found[0].iterations > 5
        assert found[0].trace[-1].gap == found[1].trace[-1].gap
        np.testing.assert_array_equal(found[0].theta, found[1].theta)

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
        assert LinearModel(penalty, planes, 1.0).minimise(1e-12).bound == pytest.approx(best, rel=1e-9)

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
        o = Objective(from_arrays(X, y), y, np.ones(300), Hinge(), L1(), 20.0, "free")
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
        X, y, c = o.data.block.to_dense(), o.labels, o.costs
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
        X, y, c = o.data.block.to_dense(), o.labels, o.costs
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
        X, y, c = o.data.block.to_dense(), o.labels, o.costs
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
