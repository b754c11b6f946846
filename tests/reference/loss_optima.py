"""Optima of every loss by CVXPY, from formulas written down here once more: nothing is shared with the code under test.

CVXPY turns each formula into cones, and Clarabel's interior point method solves them to some eight digits, whether they
have kinks or not.
"""

import cvxpy as cp
import numpy as np
from objectives import arrays_of

_EXACT = {"tol_gap_abs": 1e-8, "tol_gap_rel": 1e-8, "tol_feas": 1e-8}


def _softplus(t, scale):
    return scale * cp.logistic(t / scale)


def _binary(name, m, width):
    """A function of the margins."""
    h, soft = width / 2, width / (2 * np.log(2))
    return {
        "logistic": lambda: cp.logistic(-m),
        "hinge": lambda: cp.pos(1 - m),
        "squared_hinge": lambda: cp.square(cp.pos(1 - m)),
        "smoothed_hinge": lambda: cp.huber(cp.pos(1 - m), width) / (2 * width),
        "huber_hinge": lambda: cp.huber(cp.pos(1 + h - m), width) / (2 * width),
        "soft_hinge": lambda: _softplus(1 - m, soft),
        "modified_huber": lambda: cp.huber(cp.pos(1 - m), 2),
        "exponential": lambda: cp.exp(-m),
        "squared_margin": lambda: cp.square(1 - m) / 2,
        "perceptron": lambda: cp.pos(-m),
        "squared_perceptron": lambda: cp.square(cp.pos(-m)) / 2,
    }[name]()


def _regression(name, r, s):
    """A function of the residuals."""
    tau, delta, epsilon, width = (s.get(key, 1.0) for key in ("tau", "delta", "epsilon", "width"))
    return {
        "squared": lambda: cp.square(r) / 2,
        "absolute": lambda: cp.abs(r),
        "huber": lambda: cp.huber(r, delta) / 2,
        "pseudo_huber": lambda: delta * cp.norm(cp.vstack([np.full(r.shape, delta), r]), axis=0) - delta**2,
        "log_cosh": lambda: cp.log_sum_exp(cp.vstack([r, -r]), axis=0) - np.log(2),
        "epsilon_insensitive": lambda: cp.pos(cp.abs(r) - epsilon),
        "squared_epsilon_insensitive": lambda: cp.square(cp.pos(cp.abs(r) - epsilon)),
        "soft_epsilon_insensitive": lambda: (
            _softplus(r - epsilon, width / (4 * np.log(2))) + _softplus(-r - epsilon, width / (4 * np.log(2)))
        ),
        "quantile": lambda: cp.maximum(-tau * r, (1 - tau) * r),
        "soft_quantile": lambda: _softplus(r, width / (2 * np.log(2))) - tau * r,
        "expectile": lambda: tau * cp.square(cp.pos(-r)) + (1 - tau) * cp.square(cp.pos(r)),
    }[name]()


def _rate(name, z, y, s):
    """A deviance under a link."""
    power = s.get("power", 1.5)
    up, down = 2 - power, power - 1
    logs = np.log(np.where(y > 0, y, 1))
    return {
        "poisson": lambda: cp.exp(z) - cp.multiply(y, z) + y * logs - y,
        "gamma": lambda: cp.multiply(y, cp.exp(-z)) + z - logs - 1,
        "tweedie": lambda: cp.exp(up * z) / up + cp.multiply(y, cp.exp(-down * z)) / down - y**up / (up * down),
        "cross_entropy": lambda: cp.logistic(z) - cp.multiply(y, z),
    }[name]()


def _classes(name, z, y, costs):
    """A function of the scores of all classes."""
    n, k = z.shape
    right = np.eye(k)[y.astype(int)]
    score = cp.sum(cp.multiply(right, z), axis=1)
    gaps = z - cp.reshape(score, (n, 1), order="C") @ np.ones((1, k))
    delta = (np.ones((k, k)) - np.eye(k) if costs is None else np.array(costs))[y.astype(int)]
    return {
        "softmax": lambda: cp.log_sum_exp(gaps, axis=1),
        "tree_logistic": lambda: cp.log_sum_exp(gaps, axis=1),  # all classes below the root
        "tree_margin": lambda: cp.max(gaps + 2 * (1 - right), axis=1),
        "crammer_singer": lambda: cp.max(gaps + 1 - right, axis=1),
        "weston_watkins": lambda: cp.sum(cp.multiply(1 - right, cp.pos(1 + gaps)), axis=1),
        "multiclass_margin": lambda: cp.max(gaps + delta, axis=1),
        "scaled_multiclass_margin": lambda: cp.max(cp.multiply(delta, gaps + 1), axis=1),
        "softmax_margin": lambda: cp.log_sum_exp(gaps + delta, axis=1),
        "multiclass_perceptron": lambda: cp.max(gaps, axis=1),
    }[name]()


def formula(loss, z, y):
    """The loss of every row as an expression of CVXPY; `loss` gives its name, kind of labels and settings only."""
    s = loss.settings
    kinds = {
        "binary": lambda: _binary(loss.name, cp.multiply(y, z), s.get("width", 1.0)),
        "classes": lambda: _classes(loss.name, z, y, s.get("costs")),
        "sets": lambda: cp.sum(_binary(loss.name.removeprefix("multilabel_"), cp.multiply(y, z), 1.0), axis=1),
        "vectors": lambda: _vectors(z - y, s.get("metric")),
        "none": lambda: cp.pos(s["rho"] - z),
        "real": lambda: _regression(loss.name, z - y, s) if loss.link == "none" else _rate(loss.name, z, y, s),
    }
    return kinds[loss.labels]()


def _vectors(r, metric):
    root = np.linalg.cholesky(np.eye(r.shape[1]) if metric is None else np.array(metric))
    return cp.sum(cp.square(r @ root), axis=1) / 2


def optimum(objective):
    """(min J, a θ that has it) of an objective whose rows are in memory."""
    o, k = objective, objective.n_outputs
    X, y, c = arrays_of(o)
    w, b = cp.Variable((X.shape[1], k)), cp.Variable((1, k))
    z = X @ w + (np.ones((len(X), 1)) @ b if o.has_intercept else 0)
    values = formula(o.loss, z if k > 1 else z[:, 0], y)
    parts = [w, b] if o.intercept == "regularized" else [w]
    omega = sum(o.regularizer.l2 / 2 * cp.sum_squares(part) + o.regularizer.l1 * cp.sum(cp.abs(part)) for part in parts)
    signs = [w >= 0] if o.regularizer.nonnegative else []
    problem = cp.Problem(cp.Minimize(o.strength * omega + c @ values), signs)
    problem.solve(solver="CLARABEL", **_EXACT)
    assert problem.status == "optimal"
    return problem.value, o.join(w.value.ravel(), b.value.ravel() if b.value is not None else np.zeros(k))
