"""Regularizers Ω(w): what large weights cost."""

from __future__ import annotations

from beeline._words import offer, quoted
from beeline.exceptions import ParameterError
from beeline.regularizers.base import Regularizer
from beeline.regularizers.checking import check_regularizer, fault_of_omega
from beeline.regularizers.separable import L1, L2, ElasticNet

__all__ = [
    "L1",
    "L2",
    "REGULARIZERS",
    "ElasticNet",
    "Regularizer",
    "check_regularizer",
    "fault_of_omega",
    "get_regularizer",
]

REGULARIZERS: dict[str, type[Regularizer]] = {kind.name: kind for kind in (L2, L1, ElasticNet)}


def get_regularizer(regularizer: str | Regularizer, **settings: float) -> Regularizer:
    """The regularizer of that name, made with the settings; a regularizer passes through."""
    if isinstance(regularizer, Regularizer):
        return regularizer
    if not isinstance(regularizer, str) or regularizer not in REGULARIZERS:
        raise ParameterError(
            f"there is no regularizer {quoted(regularizer)}; {offer(regularizer, REGULARIZERS)}",
            parameter="regularizer",
        )
    return REGULARIZERS[regularizer](**settings)
