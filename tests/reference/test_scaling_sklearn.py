"""Scaling against scikit-learn's scalers."""

import numpy as np
import pytest

from beeline.data.core.block import Block
from beeline.data.recipe.scaling import ScalingLearner

preprocessing = pytest.importorskip("sklearn.preprocessing")

PEERS = {
    "minmax": preprocessing.MinMaxScaler,
    "standard": preprocessing.StandardScaler,
    "maxabs": preprocessing.MaxAbsScaler,
    "unit-norm": preprocessing.Normalizer,
}


@pytest.mark.parametrize("kind", PEERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_as_scikit_learn(kind, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(2000, 8)) * rng.lognormal(size=8) + rng.normal(size=8)).astype(dtype)
    X[:, 3] = 0
    X[7] = 0
    learner = ScalingLearner(kind)
    for part in np.array_split(X, 5):
        learner.add(Block(part, 8))
    scaled = learner.finish(8).apply(Block(X, 8)).values
    expected = PEERS[kind]().fit_transform(X.astype(np.float64))
    np.testing.assert_allclose(
        scaled,
        expected,
        rtol=1e-5 if dtype == np.float32 else 1e-11,
        atol=1e-6 if dtype == np.float32 else 1e-12,
    )
