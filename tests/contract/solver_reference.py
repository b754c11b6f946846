"""Optima by SciPy, from formulas written down here once more: nothing is shared with the code under test."""

import numpy as np
from scipy.optimize import linprog, minimize


def _smooth(name, parameter, r, y):
    """Value and slope of a smooth loss at scores r."""
    if name == "logistic":
        return np.logaddexp(0, -y * r), -y / (1 + np.exp(np.clip(y * r, -700, 700)))
    if name == "squared_hinge":
        s = np.maximum(0, 1 - y * r)
        return s**2, -2 * y * s
    if name == "squared":
        return 0.5 * (r - y) ** 2, r - y
    if name == "squared_epsilon_insensitive":
        s = np.maximum(0, np.abs(r - y) - parameter)
        return s**2, 2 * np.sign(r - y) * s
    raise KeyError(name)


def optimum(name, X, y, c, *, epsilon=0.1, strength=1.0, l1=0.0, l2=1.0, intercept="free"):
    """min J, to about 1e-9."""
    X = np.asarray(X, dtype=float)
    d = X.shape[1]
    if intercept != "none":
        X = np.column_stack([X, np.ones(len(y))])
    penalised = np.ones(X.shape[1])
    if intercept == "free":
        penalised[d:] = 0
    l1s, l2s = strength * l1 * penalised, strength * l2 * penalised
    if name in ("hinge", "epsilon_insensitive"):
        return _by_slacks(name, X, y, c, epsilon, l1s, l2s)
    if name == "softmax" and l1:
        return _softmax_l1(X, y.astype(int), c, l1s, l2s)
    if name == "softmax":
        return _softmax(X, y.astype(int), c, l2s)
    if name == "crammer_singer":
        return _crammer_singer(X, y.astype(int), c, l1s, l2s)
    return _by_lbfgs(lambda z: _smooth(name, epsilon, z, y), X, c, strength * l1 * penalised, strength * l2 * penalised)


def _softmax(X, y, c, l2):
    """All classes in one vector, class after class, by Newton's method with the Hessian written out."""
    p, k = X.shape[1], y.max() + 1
    right = np.eye(k)[y]

    def parts(v):
        z = X @ v.reshape(k, p).T
        top = z.max(axis=1, keepdims=True)
        total = np.log(np.exp(z - top).sum(axis=1, keepdims=True)) + top
        return z, total, np.exp(z - total)

    def value(v):
        z, total, _ = parts(v)
        return float(c @ (total[:, 0] - z[np.arange(len(y)), y]) + 0.5 * np.tile(l2, k) @ v**2)

    def gradient(v):
        return ((parts(v)[2] - right) * c[:, None]).T.dot(X).ravel() + np.tile(l2, k) * v

    def hessian(v):
        probabilities = parts(v)[2]
        blocks = [
            [X.T @ ((c * (a * (i == j) - a * b))[:, None] * X) for j, b in enumerate(probabilities.T)]
            for i, a in enumerate(probabilities.T)
        ]
        return np.block(blocks) + np.diag(np.tile(l2, k))

    v = np.zeros(p * k)
    for _ in range(100):  # Newton's method, halving steps; least squares, as a shift of all intercepts changes nothing
        step = np.linalg.lstsq(hessian(v), -gradient(v), rcond=1e-12)[0]
        while value(v + step) > value(v) and np.abs(step).max() > 1e-12:
            step *= 0.5
        if np.abs(step).max() <= 1e-12:
            break
        v = v + step
    return value(v)


def _softmax_l1(X, y, c, l1, l2):
    """All classes in one vector, class after class; positive and negative parts of the weights apart."""
    k = y.max() + 1
    right = np.eye(k)[y]

    def loss(z):
        z = z.reshape(k, -1).T
        top = z.max(axis=1, keepdims=True)
        total = np.log(np.exp(z - top).sum(axis=1, keepdims=True)) + top
        values = np.zeros((k, len(y)))
        values[0] = total[:, 0] - z[np.arange(len(y)), y]
        return values.ravel(), (np.exp(z - total) - right).T.ravel()

    return _by_lbfgs(loss, np.kron(np.eye(k), X), np.tile(c, k), np.tile(l1, k), np.tile(l2, k))


def _by_lbfgs(loss, X, c, l1, l2):
    """Weights split into positive and negative parts where there is an L1 part, which makes J smooth."""
    p = X.shape[1]
    split = bool(l1.any())
    fold = (lambda v: v[:p] - v[p:]) if split else (lambda v: v)

    def value(v):
        w = fold(v)
        values, slopes = loss(X @ w)
        g = X.T @ (c * slopes) + l2 * w
        grad = np.concatenate([g + l1, -g + l1]) if split else g
        return c @ values + 0.5 * (l2 * w) @ w + (l1 @ (v[:p] + v[p:]) if split else 0.0), grad

    best, start = np.inf, np.zeros(2 * p if split else p)
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 30}
    bounds = [(0, None)] * len(start) if split else None
    for _ in range(4):  # restarts shake off a line search that gave up
        found = minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        best, start = min(best, found.fun), found.x
    return best


def _split(X, l1, l2):
    """Columns with an L1 part twice, the second time negated: their weights are then not negative, and Ω is smooth."""
    twice = np.nonzero(l1)[0]
    columns = np.append(np.arange(X.shape[1]), twice)
    signs = np.append(np.ones(X.shape[1]), -np.ones(len(twice)))
    return columns, signs, l1[columns], l2[columns], np.nonzero(l1[columns])[0]


def _by_programme(G, h, c, l1, l2, positive, value):
    """min over v and slacks of l1ᵀv + ½ l2ᵀv² + cᵀ(slacks), G(v, slacks) ≤ h and some v ≥ 0; `value` is J at v."""
    p, n = len(l1), len(c)
    if not l2.any():
        limits = [(0 if j in positive else None, None) for j in range(p)] + [(0, None)] * n
        return linprog(np.concatenate([l1, c]), G, h, bounds=limits, options={"dual_feasibility_tolerance": 1e-10}).fun
    signs = np.zeros((len(positive), p + n))
    signs[np.arange(len(positive)), positive] = -1
    G, h, scale = np.vstack([G, signs]), np.append(h, np.zeros(len(positive))), c.sum()

    def at(v):
        v = v[:p].copy()
        v[positive] = np.maximum(v[positive], 0)
        return l1 @ v + 0.5 * (l2 * v) @ v + value(v)

    # The last iterates drown in rounding: the best one counts.
    linear, squares = np.concatenate([l1, c]) / scale, np.concatenate([l2, np.zeros(n)]) / scale
    return min(at(v) for v in _interior_points(squares, linear, G, h))


def _by_slacks(name, X, y, c, epsilon, l1, l2):
    """The quadratic programme with a slack a row; rows of no cost are left out, or slacks could grow without end."""
    columns, signs, l1, l2, positive = _split(X, l1, l2)
    X, y, c = X[c > 0][:, columns] * signs, y[c > 0], c[c > 0]
    n, p = X.shape
    sides = [(y[:, None] * X, np.ones(n))] if name == "hinge" else [(X, y - epsilon), (-X, -y - epsilon)]
    G = np.vstack([*(np.hstack([-A, -np.eye(n)]) for A, _ in sides), np.hstack([np.zeros((n, p)), -np.eye(n)])])
    h = np.concatenate([*(-t for _, t in sides), np.zeros(n)])

    def value(v):
        slack = [np.maximum(0, t - A @ v) for A, t in sides]
        return c @ (slack[0] if len(slack) == 1 else np.maximum(*slack))

    return _by_programme(G, h, c, l1, l2, positive, value)


def _crammer_singer(X, y, c, l1, l2):
    """The quadratic programme with a slack a row: x·w_k − x·w_y + [k ≠ y] ≤ slack for every class k."""
    X, y, c = X[c > 0], y[c > 0], c[c > 0]
    (n, p), k = X.shape, y.max() + 1
    differences = np.eye(k)[None, :, :] - np.eye(k)[y][:, None, :]  # row, class, weights of a class
    scores = np.einsum("ikl,ij->ikjl", differences, X).reshape(n * k, p * k)
    columns, signs, l1, l2, positive = _split(scores, np.repeat(l1, k), np.repeat(l2, k))
    scores = scores[:, columns] * signs
    h = -(1 - np.eye(k)[y]).ravel()
    G = np.hstack([scores, -np.repeat(np.eye(n), k, axis=0)])
    return _by_programme(G, h, c, l1, l2, positive, lambda v: c @ (scores @ v - h).reshape(n, k).max(axis=1))


def _interior_points(P, q, G, h):
    """Iterates towards argmin ½vᵀ diag(P) v + qᵀv subject to Gv ≤ h, by Mehrotra's predictor and corrector."""
    m = len(h)
    v, s, u = np.zeros(len(q)), np.ones(m) * max(1, np.abs(h).max()), np.ones(m) / m

    def longest(x, dx):
        return min(1.0, 0.99 * float(np.min(-x[dx < 0] / dx[dx < 0], initial=np.inf)))

    for _ in range(80):
        dual, primal, mu = P * v + q + G.T @ u, G @ v + s - h, s @ u / m
        system = np.diag(P + 1e-14) + G.T @ ((u / s)[:, None] * G)

        def direction(target, dual=dual, primal=primal, system=system, s=s, u=u):
            dv = np.linalg.lstsq(system, -dual - G.T @ ((u * primal + target - u * s) / s), rcond=None)[0]
            ds = -primal - G @ dv
            return dv, ds, (target - u * s - u * ds) / s

        dv, ds, du = direction(np.zeros(m))
        after = (s + longest(s, ds) * ds) @ (u + longest(u, du) * du) / m
        dv, ds, du = direction((after / mu) ** 3 * mu - ds * du)
        t = min(longest(s, ds), longest(u, du))
        v, s, u = v + t * dv, s + t * ds, u + t * du
        yield v
        if not (s @ u > 1e-15 * m and np.isfinite(v).all()):
            return
