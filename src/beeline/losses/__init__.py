"""The losses and their registry."""

from __future__ import annotations

from functools import cache
from typing import Any

from beeline._words import did_you_mean, offer, quoted
from beeline.exceptions import ParameterError
from beeline.losses.base import Labels, Loss, LossLink, RowLoss, ScalarLoss, Scope, VectorLoss, parameters_of
from beeline.losses.checking import check_loss
from beeline.losses.costs import MulticlassMargin, ScaledMulticlassMargin, SoftmaxMargin
from beeline.losses.groups import GroupLoss
from beeline.losses.label_tree import LabelTree
from beeline.losses.level_pairs import LevelPairs
from beeline.losses.margin import (
    Exponential,
    Hinge,
    HuberHinge,
    Logistic,
    ModifiedHuber,
    Perceptron,
    SmoothedHinge,
    SoftHinge,
    SquaredHinge,
    SquaredMargin,
    SquaredPerceptron,
)
from beeline.losses.measures import BalancedError, BreakEven, FBeta, Precision, Recall
from beeline.losses.multiclass import CrammerSinger, MulticlassPerceptron, Softmax, WestonWatkins
from beeline.losses.multioutput import (
    MultilabelHinge,
    MultilabelLogistic,
    MultilabelSquaredHinge,
    MultivariateSquared,
)
from beeline.losses.novelty import Novelty
from beeline.losses.one_vs_rest import OneVsRest
from beeline.losses.ordinal import (
    AllThreshold,
    AllThresholdHinge,
    ImmediateThreshold,
    ImmediateThresholdHinge,
    LevelLoss,
    ThresholdLoss,
)
from beeline.losses.quantile import Expectile, Quantile, SoftQuantile
from beeline.losses.ranking import (
    ListNet,
    MeanAveragePrecision,
    Ndcg,
    PairwiseHinge,
    PairwiseLogistic,
    QueryLoss,
    RankUtility,
    ReciprocalRank,
)
from beeline.losses.rates import CrossEntropy, Gamma, Poisson, Tweedie
from beeline.losses.regression import (
    Absolute,
    EpsilonInsensitive,
    Huber,
    LeastSquares,
    LogCosh,
    PseudoHuber,
    SoftEpsilonInsensitive,
    SquaredEpsilonInsensitive,
)
from beeline.losses.roc_area import RocArea
from beeline.losses.trees import TreeLogistic, TreeMargin
from beeline.losses.truncated import Ramp, Truncated, TruncatedSquaredHinge
from beeline.losses.two_classes import TwoClassLoss

__all__ = [
    "LOSSES",
    "Absolute",
    "AllThreshold",
    "AllThresholdHinge",
    "BalancedError",
    "BreakEven",
    "CrammerSinger",
    "CrossEntropy",
    "EpsilonInsensitive",
    "Expectile",
    "Exponential",
    "FBeta",
    "Gamma",
    "GroupLoss",
    "Hinge",
    "Huber",
    "HuberHinge",
    "ImmediateThreshold",
    "ImmediateThresholdHinge",
    "LabelTree",
    "Labels",
    "LeastSquares",
    "LevelLoss",
    "LevelPairs",
    "ListNet",
    "LogCosh",
    "Logistic",
    "Loss",
    "LossLink",
    "MeanAveragePrecision",
    "ModifiedHuber",
    "MulticlassMargin",
    "MulticlassPerceptron",
    "MultilabelHinge",
    "MultilabelLogistic",
    "MultilabelSquaredHinge",
    "MultivariateSquared",
    "Ndcg",
    "Novelty",
    "OneVsRest",
    "PairwiseHinge",
    "PairwiseLogistic",
    "Perceptron",
    "Poisson",
    "Precision",
    "PseudoHuber",
    "Quantile",
    "QueryLoss",
    "Ramp",
    "RankUtility",
    "Recall",
    "ReciprocalRank",
    "RocArea",
    "RowLoss",
    "ScalarLoss",
    "ScaledMulticlassMargin",
    "Scope",
    "SmoothedHinge",
    "SoftEpsilonInsensitive",
    "SoftHinge",
    "SoftQuantile",
    "Softmax",
    "SoftmaxMargin",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "SquaredMargin",
    "SquaredPerceptron",
    "ThresholdLoss",
    "TreeLogistic",
    "TreeMargin",
    "Truncated",
    "TruncatedSquaredHinge",
    "Tweedie",
    "TwoClassLoss",
    "VectorLoss",
    "WestonWatkins",
    "check_loss",
    "get_loss",
    "is_built_in",
    "loss_settings",
]

_KINDS: tuple[type[Loss], ...] = (
    Logistic,
    Hinge,
    SquaredHinge,
    SmoothedHinge,
    HuberHinge,
    SoftHinge,
    ModifiedHuber,
    SquaredMargin,
    Exponential,
    Perceptron,
    SquaredPerceptron,
    Softmax,
    CrammerSinger,
    WestonWatkins,
    MulticlassMargin,
    ScaledMulticlassMargin,
    SoftmaxMargin,
    TreeLogistic,
    TreeMargin,
    MulticlassPerceptron,
    AllThreshold,
    AllThresholdHinge,
    ImmediateThreshold,
    ImmediateThresholdHinge,
    LevelPairs,
    MultilabelLogistic,
    MultilabelHinge,
    MultilabelSquaredHinge,
    LeastSquares,
    Absolute,
    Huber,
    PseudoHuber,
    LogCosh,
    EpsilonInsensitive,
    SoftEpsilonInsensitive,
    SquaredEpsilonInsensitive,
    Quantile,
    SoftQuantile,
    Expectile,
    Poisson,
    Gamma,
    Tweedie,
    CrossEntropy,
    MultivariateSquared,
    Novelty,
    Ramp,
    TruncatedSquaredHinge,
    Ndcg,
    MeanAveragePrecision,
    ReciprocalRank,
    RankUtility,
    PairwiseHinge,
    PairwiseLogistic,
    ListNet,
    RocArea,
    FBeta,
    BalancedError,
    Precision,
    Recall,
    BreakEven,
)

LOSSES: dict[str, type[Loss]] = {kind.name: kind for kind in _KINDS}
_BUILT_IN = frozenset(_KINDS)


def is_built_in(loss: Loss) -> bool:
    """Whether the loss is one of the library's, and none of one's own, derived from one or not."""
    return type(loss) in _BUILT_IN or (type(loss) in (Truncated, OneVsRest) and is_built_in(loss.loss))  # type: ignore[attr-defined]


@cache
def loss_settings(name: str) -> dict[str, Any]:
    """What the loss of that name can be set to, with the defaults."""
    parameters = parameters_of(LOSSES[name]).values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


# What other libraries call them.
_ELSEWHERE = {
    "log_loss": "logistic",
    "squared_error": "squared",
    "absolute_error": "absolute",
    "pinball": "quantile",
    "multinomial": "softmax",
}


def get_loss(loss: str | Loss, **settings: Any) -> Loss:  # noqa: ANN401
    """The loss of that name, made with the settings; a loss passes through.

    NAME@K is the loss NAME with the setting k=K: "ndcg@10".
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, type):
        raise ParameterError(f"give a loss, {loss.__name__}(), and not its class", parameter="loss")
    if isinstance(loss, str) and "@" in loss:
        loss, settings = _with_places(loss, settings)
    if not isinstance(loss, str) or loss not in LOSSES:
        ours = _ELSEWHERE.get(loss) if isinstance(loss, str) else None
        instead = offer(loss, sorted(LOSSES)) if ours is None else f"it is called {ours!r} here"
        raise ParameterError(f"there is no loss {quoted(loss)}; {instead}", parameter="loss")
    known = loss_settings(loss)
    for name in settings:
        if name not in known:
            others = f"it has {' and '.join(known)}" if known else "it has none"
            instead = did_you_mean(name, known) or others
            raise ParameterError(f"the loss {loss!r} has no setting {name!r}; {instead}", parameter=name)
    return LOSSES[loss](**settings)


def _with_places(spelled: str, settings: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(NAME, the settings with k) from NAME@K."""
    name, _, places = spelled.partition("@")
    if name in LOSSES and "k" not in loss_settings(name):
        raise ParameterError(f"the loss {name!r} counts no first places; write {name!r}", parameter="loss")
    if not (places.isascii() and places.isdigit() and int(places) > 0):
        raise ParameterError(
            f"behind the @ of a loss must be a positive whole number, as in '{name}@10', not {places!r}",
            parameter="loss",
        )
    if "k" in settings:
        raise ParameterError(f"{spelled!r} says k already; leave one of them out", parameter="loss")
    return name, {**settings, "k": int(places)}
