"""Labels and scores for every loss of the registry: what it must be able to take, away from its corners."""

import numpy as np

from beeline.losses import LOSSES, RowLoss

CONVEX = {name: kind for name, kind in LOSSES.items() if kind.convex and issubclass(kind, RowLoss)}

SETTINGS = {
    "epsilon": (0.0, 0.2),
    "width": (0.05, 0.7),
    "tau": (0.2, 0.9),
    "delta": (0.3, 2.0),
    "power": (1.1, 1.9),
    "rho": (0.5, 2.0),
    "costs": (None, [[0, 1, 2, 3, 0.5], [1, 0, 1, 4, 1], [0.1, 2, 0, 2, 2], [5, 1, 1, 0, 1], [3, 0, 3, 1, 0]]),
    "metric": (None, np.cov(np.random.default_rng(0).normal(size=(5, 9)))),
}


def instances(base):
    """Every convex loss of a kind, with small and large settings."""
    for kind in CONVEX.values():
        if not issubclass(kind, base):
            continue
        names = [name for name in SETTINGS if name in vars(kind())]
        for choice in range(2 if names else 1):
            yield kind(**{name: SETTINGS[name][choice] for name in names})


def labels(loss, n, seed=0):
    """Labels of one score a row, from all of the loss's domain."""
    random = np.random.default_rng(seed)
    y = random.normal(size=n)
    if loss.labels == "binary":
        return np.where(y > 0, 1.0, -1.0)
    some = random.random(n) < 0.8
    special = {
        "poisson": random.poisson(2.0, n).astype(float),
        "gamma": np.exp(y),
        "tweedie": np.exp(y) * some,
        "cross_entropy": np.where(some, random.random(n), y > 0),
    }
    return special.get(loss.name, y)


def scores(loss, n=400, seed=1):
    """(scores, labels), none of them within 1e-3 of a kink or of a jump of the curvature."""
    z, y = 2 * np.random.default_rng(seed).normal(size=n), labels(loss, n)
    width, rho = getattr(loss, "width", 0.0), getattr(loss, "rho", 0.0)
    if loss.labels == "binary":
        place, corners = y * z, [-1, 0, 1, 1 - width, 1 - width / 2, 1 + width / 2]
    elif loss.labels == "none":
        place, corners = z, [rho]
    else:
        place, corners = np.abs(z - y), [0, getattr(loss, "epsilon", 0.0), getattr(loss, "delta", 0.0)]
    far = np.all([np.abs(place - corner) > 1e-3 for corner in corners], axis=0)
    return z[far], y[far]


def learned_labels(loss, X, seed=2):
    """Labels that follow from the rows, with noise: class numbers, numbers, or a matrix of 0 and 1 or of numbers."""
    random = np.random.default_rng(seed)
    z = X @ random.normal(size=X.shape[1]) + 0.5 * random.normal(size=len(X)) - 0.3
    several = X @ random.normal(size=(X.shape[1], 3)) + random.gumbel(size=(len(X), 3))
    special = {
        "poisson": random.poisson(np.exp(0.5 * z)).astype(float),
        "gamma": np.exp(0.5 * z),
        "tweedie": np.exp(0.5 * z) * (random.random(len(X)) < 0.7),
        "cross_entropy": 1 / (1 + np.exp(-z)),
    }
    kinds = {
        "binary": (z > 0).astype(int),
        "classes": several.argmax(axis=1),
        "levels": (z > 0).astype(int),
        "sets": (several > 0.5).astype(int),
        "vectors": several,
    }
    return special.get(loss.name, kinds.get(loss.labels, z))
