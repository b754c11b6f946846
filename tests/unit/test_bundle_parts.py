"""What the bundle method is made of: kinks, line searches, planes and the quadratic programme over them."""

import numpy as np
import pytest
from bundle_problems import problem
from objectives import over
from scipy.optimize import minimize

from beeline.data.core.arrays import from_arrays
from beeline.losses import EpsilonInsensitive, Hinge, LeastSquares, Logistic, Quantile, ScalarLoss, Softmax, VectorLoss
from beeline.objective import Objective
from beeline.regularizers import L1, L2, ElasticNet
from beeline.solvers.bundle.bundle import _interval_cut
from beeline.solvers.bundle.line_search import line_minimum
from beeline.solvers.bundle.models import Penalty, QuadraticModel
from beeline.solvers.bundle.planes import Plane, Planes, tangent
from beeline.solvers.bundle.simplex_qp import independent_rows, maximise


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
        slope, jumps, marks = loss.kink_histogram(z, dz, y, c, (-0.5, 0.75), 50)
        costs = np.broadcast_to(c, z.shape)
        assert slope == pytest.approx(loss.along(z, dz, 0.75, y, costs.copy())[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.array([(scores - z) / dz for scores, _ in loss.kinks(y)])
        sizes = np.array([jump * costs * np.abs(dz) for _, jump in loss.kinks(y)])
        buckets = np.floor((times + 0.5) / 1.25 * 50)
        np.testing.assert_array_equal(marks, np.where((buckets >= 0) & (buckets < 50), buckets + 1, 0))
        for k in range(50):
            found, inside = loss.kinks_in_bucket(marks, z, dz, y, c, k), buckets == k  # kink after kink
            np.testing.assert_allclose(found[0], times[inside])
            np.testing.assert_allclose(found[1], sizes[inside])
            assert jumps[k] == pytest.approx(sizes[inside].sum())

    def test_a_row_that_stays_at_its_kink_is_not_passed(self):
        _, jumps, marks = Hinge().kink_histogram(np.ones(3), np.zeros(3), np.ones(3), np.ones(3), (-1.0, 1.0), 4)
        assert not jumps.any()
        assert marks.shape == (1, 3)
        assert not marks.any()

    @pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.3), Quantile(0.2), LeastSquares(), OwnHinge()])
    def test_an_interval_cut_lies_below_the_losses(self, loss):
        random = np.random.default_rng(0)
        z, dz = random.normal(size=(2, 3000))
        dz[:10] = 0
        y, c = np.sign(random.normal(size=3000)), random.random(3000)
        slopes, moved = dz.copy(), z.copy()
        value, offset, terms, size = loss.interval_cut(moved, slopes, (-0.1, 0.2, 0.4), y, c)
        assert np.abs(slopes).sum() <= size
        assert abs(offset) <= terms
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

    @pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.3), Quantile(0.2), OwnHinge()])
    @pytest.mark.parametrize("far", [1.0, 1e9, 1e25, 1e192])
    @pytest.mark.parametrize("intercept", ["regularized", "none"])
    def test_planes_lie_below_the_losses_however_long_the_interval(self, loss, far, intercept):
        """Its ends may be where a programme went astray; tangents there are differences of huge numbers."""
        random = np.random.default_rng(0)
        X, y = random.normal(size=(30, 3)), np.sign(random.normal(size=30))
        o = Objective.of(from_arrays(X), y, random.random(30), loss, L1(), 1.0, intercept)
        best = o.at(0.1 * random.normal(size=o.size))
        _, plane = _interval_cut(best.line(far * random.normal(size=o.size)), 0.0, 0.0, 0.2)
        for scale in (0.0, 0.1, 1.0, 10.0):
            theta = scale * random.normal(size=o.size)
            assert plane.at(theta) - plane.slope_error * np.linalg.norm(theta) <= o.at(theta).loss * (1 + 1e-12)

    def test_lengths_must_agree(self):
        with pytest.raises(ValueError, match="one number a row"):
            Hinge().kink_histogram(np.ones(3), np.ones(2), np.ones(3), np.ones(3), (0.0, 1.0), 4)
        with pytest.raises(ValueError, match="one cost a row"):
            Hinge().interval_cut(np.ones(3), np.ones(3), (0.0, 0.1, 0.2), np.ones(3), np.ones(2))


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
        t = line_minimum(line, low, high, 1.0).t
        for _ in range(200):  # golden section
            a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
            low, high = (low, b) if line.at(a)[0] < line.at(b)[0] else (a, high)
        assert line.at(t)[0] <= line.at(0.5 * (low + high))[0] * (1 + 1e-14)

    def test_from_kinks_at_the_start(self):
        # All residuals are zero at t = 0, where J has no slope but two.
        o = problem(EpsilonInsensitive(0.0), intercept="none")
        o = over(o, labels=np.zeros(200))
        assert line_minimum(o.at().line(np.ones(o.size)), 0.0, np.inf, 1.0).t == 0.0

    def test_rows_that_share_a_kink(self):
        X, y = np.ones((6, 1)), np.array([1.0, 1, 1, 1, -1, -1])
        o = Objective.of(from_arrays(X), y, np.ones(6), Hinge(), L2(), 1e-3, "none")
        found = line_minimum(o.at().line(np.ones(1)), -10.0, 10.0, 0.3)
        assert found.t == pytest.approx(1.0)
        assert found.left < found.t < found.right
        assert (found.down, found.up) == pytest.approx((-2 + 1e-3, 2 + 1e-3))


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
