"""Problems for the bundle method."""

import numpy as np

from beeline.data.core.arrays import from_arrays
from beeline.objective import Objective
from beeline.regularizers import L2


def problem(loss, regularizer=None, *, n=200, d=8, intercept="free", seed=0, strength=1.0, outputs=1):
    """Rows whose labels suit the loss, with costs of their own."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) + 0.3
    z = X @ random.normal(size=d) + 0.5 * random.normal(size=n)
    y = np.where(z > 0, 1.0, -1.0) if loss.labels == "binary" else z
    if loss.labels == "classes":
        y = random.integers(0, outputs, size=n).astype(float)
    return Objective.of(
        from_arrays(X, y),
        y,
        random.uniform(0.5, 1.5, n),
        loss,
        regularizer or L2(),
        strength,
        intercept,
        n_outputs=outputs,
    )
