"""The options that say what is learned, and how: shared by `train` and `select`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from beeline.cli.options.declaring import Option

__all__ = ["TrainingOptions", "number_or_auto", "panel_option"]

# Spelled out, so that --help needs no NumPy; a test compares them with the registries.
LossName = Literal[
    "absolute",
    "all_threshold",
    "all_threshold_hinge",
    "balanced_error",
    "break_even",
    "crammer_singer",
    "cross_entropy",
    "epsilon_insensitive",
    "expectile",
    "exponential",
    "f_beta",
    "gamma",
    "hinge",
    "huber",
    "huber_hinge",
    "immediate_threshold",
    "immediate_threshold_hinge",
    "level_pairs",
    "listnet",
    "log_cosh",
    "logistic",
    "map",
    "modified_huber",
    "mrr",
    "multiclass_margin",
    "multiclass_perceptron",
    "multilabel_hinge",
    "multilabel_logistic",
    "multilabel_squared_hinge",
    "multivariate_squared",
    "ndcg",
    "novelty",
    "pairwise_hinge",
    "pairwise_logistic",
    "perceptron",
    "poisson",
    "precision",
    "pseudo_huber",
    "quantile",
    "ramp",
    "rank_utility",
    "recall",
    "roc_area",
    "scaled_multiclass_margin",
    "smoothed_hinge",
    "soft_epsilon_insensitive",
    "soft_hinge",
    "soft_quantile",
    "softmax",
    "softmax_margin",
    "squared",
    "squared_epsilon_insensitive",
    "squared_hinge",
    "squared_margin",
    "squared_perceptron",
    "tree_logistic",
    "tree_margin",
    "truncated_squared_hinge",
    "tweedie",
    "weston_watkins",
]
RegularizerName = Literal["l2", "l1", "elastic_net"]
InterceptKind = Literal["free", "regularized", "none"]
MulticlassForm = Literal["auto", "ovr", "softmax", "crammer_singer"]

_IMPLIED = {"softmax": "logistic", "crammer_singer": "hinge"}  # the loss that a form extends


def panel_option(
    text: str,
    metavar: str | None,
    *names: str,
    choices: Any = None,  # noqa: ANN401
    panel: str = "Training",
    places: bool = False,
) -> Option:
    """An option in a panel of its own on the help page; `choices` is a Literal, whose values are listed."""
    help_text = text if choices is None else f"{text} One of {', '.join(get_args(choices))}."
    return Option(help_text, names, metavar=metavar, panel=panel, places=places)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What was said of the task and of the solver."""

    loss: Annotated[
        LossName | None,
        panel_option(
            "The loss; when not given, logistic where labels name classes and squared where they are numbers. Behind "
            "the name of one that counts first places may be an @ and how many.",
            "LOSS",
            choices=LossName,
            places=True,
        ),
    ] = None
    regularizer: Annotated[
        RegularizerName, panel_option("What large weights cost.", "NAME", choices=RegularizerName)
    ] = "l2"
    l1_ratio: Annotated[
        float | None, panel_option("The part of L1 in the elastic net, 0.5 when not given.", "PART")
    ] = None
    nonnegative: Annotated[bool, panel_option("Let no weight be negative.", None, "--nonnegative")] = False
    epsilon: Annotated[
        str | None,
        panel_option(
            "What the ε-insensitive losses do not see, 0.1 when not given; auto searches for it along with C.", "WIDTH"
        ),
    ] = None
    loss_setting: Annotated[
        list[str] | None,
        panel_option(
            "A setting of the loss's own, such as tau=0.9 or 'costs=[[0,1],[5,0]]'. May be given several times.",
            "NAME=VALUE",
        ),
    ] = None
    tree: Annotated[
        str | None,
        panel_option(
            "The tree of the classes, for tree_logistic and tree_margin: a file of lines `parent child`, or dots or "
            "slashes between the parts of the classes' names.",
            "FILE",
        ),
    ] = None
    levels: Annotated[
        str | None,
        panel_option(
            "For losses of levels in an order, the levels with commas between them, the lowest first. When not given, "
            "labels as they are sorted, numbers by their size; numbers with decimals have to be named.",
            "NAMES",
        ),
    ] = None
    intercept: Annotated[
        InterceptKind | None,
        panel_option(
            "Whether there is one, and whether it is regularized as weights are. When not given, free; for losses to "
            "which only differences of scores matter, none.",
            "KIND",
            choices=InterceptKind,
        ),
    ] = None
    multiclass: Annotated[
        MulticlassForm,
        panel_option(
            "How more than two classes are told apart; auto is softmax for logistic with l2 and weights of any sign, "
            "ovr otherwise.",
            "FORM",
            choices=MulticlassForm,
        ),
    ] = "auto"
    class_weight: Annotated[
        list[str] | None,
        panel_option("balanced, or LABEL=WEIGHT: what multiplies C for a class. May be given several times.", "WEIGHT"),
    ] = None
    solver: Annotated[str, panel_option("Who minimises; auto takes the fastest.", "NAME")] = "auto"
    solver_setting: Annotated[
        list[str] | None,
        panel_option(
            "An option of the solver's own, such as variant=bmrm or history=20. May be given several times.",
            "NAME=VALUE",
        ),
    ] = None
    max_passes: Annotated[float, panel_option("Stop after so many passes over the data.", "N")] = 1000
    time_limit: Annotated[
        str | None,
        panel_option(
            "Stop after so many seconds, or a time such as 10s, 5m or 1.5h, and take the best so far. Reading is not "
            "included, but of rows that are learned from as they are read. A search gets four fifths of the time where "
            "a model is trained after it.",
            "TIME",
        ),
    ] = None
    seed: Annotated[int, panel_option("The same seed gives the same model, bit by bit.", "N")] = 0
    memory: Annotated[
        str | None,
        Option(
            "Memory for data, such as 400M or 4G: what does not fit stays on disk, and solvers that would need more "
            "are refused. When not given, rows may take half of what is free.",
            metavar="SIZE",
        ),
    ] = None
    cache: Annotated[
        str | None,
        Option(
            "Keep the rows as a store in this folder, and read them from there as long as the source and the options "
            "to read it are the same.",
            metavar="FOLDER",
        ),
    ] = None

    checkpoint: Annotated[
        str | None,
        Option(
            "Keep where training is in this folder, and go on from there, to the same bits, when the same command is "
            "given again. The folder is removed when the model is saved.",
            metavar="FOLDER",
        ),
    ] = None
    checkpoint_interval: Annotated[
        float,
        Option("Seconds between two times that this is written; 0: after every iteration.", metavar="SECONDS"),
    ] = 30.0

    @property
    def named_loss(self) -> str | None:
        """The loss that was named, or that the form of several classes implies; None: labels decide."""
        return self.loss or _IMPLIED.get(self.multiclass)

    @property
    def loss_name(self) -> str:
        """The name of the loss that settings begin with, without its places."""
        return (self.named_loss or "logistic").partition("@")[0]

    @property
    def goes_on(self) -> str:
        """What to say of a training that was interrupted and can go on; nothing where it cannot."""
        return "" if self.checkpoint is None else f"; the same command goes on from {self.checkpoint}"

    @property
    def seconds(self) -> float | None:
        """The time limit."""
        return None if self.time_limit is None else _parse_seconds(self.time_limit)

    @property
    def searches_epsilon(self) -> bool:
        """Whether ε is to be searched for."""
        return self.epsilon == "auto"

    def to_settings(self, threads: int | None) -> dict[str, Any]:
        """The arguments of `Settings` that these options are; the loss with its own settings."""
        from beeline._sentences import Argument
        from beeline.engines import Resources
        from beeline.exceptions import ParameterError
        from beeline.losses import get_loss
        from beeline.regularizers import get_regularizer

        loss = self.named_loss or "logistic"
        if self.l1_ratio is not None and self.regularizer != "elastic_net":
            raise ParameterError(
                Argument("l1_ratio"),
                " has no meaning without ",
                Argument("regularizer", "elastic_net"),
                "; leave it out",
            )
        same = ["nonnegative", "intercept", "multiclass", "max_passes", "seed"]
        same += ["checkpoint", "checkpoint_interval"]
        return {name: getattr(self, name) for name in same} | {
            "time_limit": self.seconds,
            "solver": self._solver(),
            "resources": Resources(self.memory, threads),
            "loss": get_loss(loss, **self._loss_settings(loss)),
            "regularizer": get_regularizer(
                self.regularizer, **({} if self.l1_ratio is None else {"l1_ratio": self.l1_ratio})
            ),
        }

    def _solver(self) -> str | tuple[str, dict[str, Any]]:
        """The solver's name, with options where there are any."""
        if not self.solver_setting:
            return self.solver
        return self.solver, _named_values("solver_setting", self.solver_setting, ("tol", "max_passes", "seed"))

    def _loss_settings(self, loss: str) -> dict[str, Any]:
        """The settings of the loss's own: numbers, or matrices as JSON."""
        from beeline._sentences import Argument
        from beeline.exceptions import ParameterError
        from beeline.losses import get_loss

        if self.epsilon is not None and not loss.endswith("epsilon_insensitive"):
            raise ParameterError(Argument("epsilon"), " has no meaning without an ε-insensitive loss; leave it out")
        if self.loss_setting and self.named_loss is None:
            raise ParameterError(
                Argument("loss_setting"), " has no meaning without ", Argument("loss"), "; name the loss"
            )
        if self.tree is not None and not loss.startswith("tree_"):
            raise ParameterError(
                Argument("tree"), " has no meaning without ", Argument("loss", "tree_logistic"), " or tree_margin"
            )
        epsilon = None if self.epsilon is None else number_or_auto("epsilon", self.epsilon)
        settings: dict[str, Any] = {"epsilon": epsilon} if isinstance(epsilon, float) else {}
        settings |= {} if self.tree is None else {"tree": self.tree}
        if self.levels is not None:
            if get_loss(loss).labels != "levels":
                raise ParameterError(
                    Argument("levels"), " has no meaning without ", Argument("loss", "all_threshold"), " or its kind"
                )
            settings["levels"] = [level.strip() for level in self.levels.split(",")]
        return settings | _named_values("loss_setting", self.loss_setting or [], tuple(settings))


# What each option may say, and how that is told.
_SAID: dict[str, tuple[tuple[type, ...], str]] = {
    "loss_setting": ((int, float, list), "a number or a matrix, such as tau=0.9 or costs=[[0,1],[5,0]]"),
    "solver_setting": ((object,), "a value, such as variant=bmrm or history=20"),
}
_TEXTS = ("rescaling", "costs")  # settings of losses that may be words


def _named_values(option: str, items: list[str], elsewhere: tuple[str, ...]) -> dict[str, Any]:
    """What NAME=VALUE says, each name once; those that have an option of their own are said by it."""
    from beeline._sentences import Argument
    from beeline.exceptions import ParameterError

    found: dict[str, Any] = {}
    for name, value in (_named_value(option, item) for item in items):
        if name in elsewhere:
            raise ParameterError(
                Argument(option), f" cannot say {name}, which is said by ", Argument(name), "; leave it out"
            )
        if name in found:
            raise ParameterError(Argument(option), f" says {name} twice; leave one out")
        found[name] = value
    return found


def _named_value(option: str, item: str) -> tuple[str, Any]:
    """NAME=VALUE, taken apart: the value is JSON or a word of Python's, or the text itself where texts are allowed."""
    import json

    from beeline._sentences import Argument
    from beeline.exceptions import ParameterError

    kinds, words = _SAID[option]
    name, sign, text = item.partition("=")
    kinds = (*kinds, str) if name in _TEXTS else kinds
    words_of_python = {"True": True, "False": False, "None": None}
    try:
        value = words_of_python[text] if text in words_of_python else json.loads(text)
    except ValueError:
        value = _as_number(text)
    if not (name and sign and text and isinstance(value, kinds)):
        raise ParameterError(Argument(option), f" must be a name with {words}, not {item!r}")
    return name, value


def _as_number(text: str) -> float | str:
    """Numbers as people write them and JSON does not, such as .9 and +1; other texts as they are."""
    try:
        return float(text)
    except ValueError:
        return text


def _parse_seconds(text: str) -> float:
    """Seconds from a number, or from a text such as 10s, 5m or 1.5h."""
    from beeline._sentences import Argument
    from beeline.exceptions import ParameterError

    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1.0)
    try:
        return float(number) * unit
    except ValueError:
        raise ParameterError(
            Argument("time_limit"), f" must be a number of seconds, or a time such as 10s, 5m or 1.5h, not {text!r}"
        ) from None


def number_or_auto(name: str, text: str) -> float | Literal["auto"]:
    """The number, or `auto`."""
    from beeline._sentences import Argument
    from beeline.exceptions import ParameterError

    if text == "auto":
        return "auto"
    try:
        return float(text)
    except ValueError:
        raise ParameterError(Argument(name), f" must be a number or auto, not {text!r}") from None
