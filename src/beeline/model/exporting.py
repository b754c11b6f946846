"""What every export needs: a model that takes rows as they were before scaling."""

from __future__ import annotations

import numpy as np

from beeline._types import Floats
from beeline.exceptions import ModelError
from beeline.kernels import dot
from beeline.model.model import Model

__all__ = ["unscaled"]


def unscaled(model: Model) -> tuple[Floats, Floats]:
    """(weights, intercepts) with the recipe's scaling folded in.

    With x' = (x − shift)·factor, w·x' + b = (factor·w)·x + b − (shift·factor)·w. A scaling of rows to unit norm cannot
    be folded in; who exports must deal with it.
    """
    if model.recipe is not None and model.recipe.hash_bits is not None:
        raise ModelError(
            "the model takes hashes of feature numbers, which no other format knows; train without hashing"
        )
    scaling = model.recipe.scaling if model.recipe is not None else None
    if scaling is None or scaling.factor is None:
        return model.weights, model.intercepts
    weights = model.weights * scaling.factor[:, None]
    if scaling.shift is None:
        return weights, model.intercepts
    return weights, model.intercepts - np.array([dot(scaling.shift, column) for column in weights.T])
