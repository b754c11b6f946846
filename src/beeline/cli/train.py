"""`beeline train`: data become a model."""

from __future__ import annotations

import os
import signal
import warnings
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from beeline.cli.common import Debug, Json, Threads, print_json, use_threads
from beeline.cli.errors import one_line_errors, print_line
from beeline.cli.progress import progress_bar
from beeline.cli.reading import with_read_options

if TYPE_CHECKING:
    from beeline._types import AnyArray
    from beeline.data.dataset import Dataset
    from beeline.fitting import Settings
    from beeline.model import Model

__all__ = ["train"]

# Spelled out, so that --help needs no NumPy; a test compares them with the registries.
LossName = Literal[
    "absolute",
    "crammer_singer",
    "cross_entropy",
    "epsilon_insensitive",
    "expectile",
    "exponential",
    "gamma",
    "hinge",
    "huber",
    "huber_hinge",
    "log_cosh",
    "logistic",
    "modified_huber",
    "multiclass_margin",
    "multiclass_perceptron",
    "multilabel_hinge",
    "multilabel_logistic",
    "multilabel_squared_hinge",
    "multivariate_squared",
    "novelty",
    "perceptron",
    "poisson",
    "pseudo_huber",
    "quantile",
    "rounded_hinge",
    "scaled_multiclass_margin",
    "soft_epsilon_insensitive",
    "soft_hinge",
    "soft_quantile",
    "softmax",
    "softmax_margin",
    "squared",
    "squared_epsilon_insensitive",
    "squared_hinge",
    "squared_perceptron",
    "tweedie",
    "weston_watkins",
]
RegularizerName = Literal["l2", "l1", "elastic_net"]
InterceptKind = Literal["free", "regularized", "none"]
MulticlassForm = Literal["auto", "ovr", "softmax", "crammer_singer"]

_PANEL = "Training"
_IMPLIED = {"softmax": "logistic", "crammer_singer": "hinge"}  # the loss that a form extends
_ROUGH = 1e-6  # the tolerance down to which the digits that float32 keeps are enough


def _option(text: str, metavar: str | None, *names: str, choices: Any = None) -> Any:  # noqa: ANN401
    help_text = text if choices is None else f"{text} One of {', '.join(get_args(choices))}."
    return typer.Option(*names, help=help_text, metavar=metavar, rich_help_panel=_PANEL)


@with_read_options
def train(
    sources: Annotated[list[str], typer.Argument(metavar="DATA", hidden=True)],
    *,
    reading: dict[str, Any],
    output: Annotated[str, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")],
    loss: Annotated[
        LossName | None,
        _option(
            "The loss; when not given, logistic where labels name classes and squared where they are numbers.",
            "LOSS",
            choices=LossName,
        ),
    ] = None,
    C: Annotated[float, _option("What multiplies the loss of every row; smaller regularizes more.", "C", "--C")] = 1.0,
    regularizer: Annotated[
        RegularizerName, _option("What large weights cost.", "NAME", choices=RegularizerName)
    ] = "l2",
    l1_ratio: Annotated[float | None, _option("The part of L1 in the elastic net, 0.5 when not given.", "PART")] = None,
    epsilon: Annotated[
        float | None, _option("What the ε-insensitive losses do not see, 0.1 when not given.", "WIDTH")
    ] = None,
    loss_setting: Annotated[
        list[str] | None,
        _option("A setting of the loss's own, such as tau=0.9. May be given several times.", "NAME=VALUE"),
    ] = None,
    intercept: Annotated[
        InterceptKind,
        _option("Whether there is one, and whether it is regularized as weights are.", "KIND", choices=InterceptKind),
    ] = "free",
    multiclass: Annotated[
        MulticlassForm,
        _option(
            "How more than two classes are told apart; auto is softmax for logistic with l2, ovr otherwise.",
            "FORM",
            choices=MulticlassForm,
        ),
    ] = "auto",
    class_weight: Annotated[
        list[str] | None,
        _option("balanced, or LABEL=WEIGHT: what multiplies C for a class. May be given several times.", "WEIGHT"),
    ] = None,
    probability: Annotated[
        bool,
        _option(
            "Calibrate probabilities for a loss that gives scores only; trains five times more.", None, "--probability"
        ),
    ] = False,
    solver: Annotated[str, _option("Who minimises; auto takes the fastest.", "NAME")] = "auto",
    tol: Annotated[float, _option("Stop at this relative distance from the optimum.", "PART")] = 1e-4,
    max_passes: Annotated[float, _option("Stop after so many passes over the data.", "N")] = 1000,
    seed: Annotated[int, _option("The same seed gives the same model, bit by bit.", "N")] = 0,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Memory for rows, such as 4G; half of what is free when not given."),
    ] = None,
    threads: Threads = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Train a model on data of any size.

    DATA is a store, or whatever can be converted to one. Rows that do not fit in memory are kept in a store beside
    MODEL until the end. Ctrl-C ends the training and saves the best model so far, with exit code 130.

    Example: beeline train train.csv.gz -o income.model --label income --scale standard
    """
    with one_line_errors(debug):
        use_threads(threads)
        from beeline.cli.model_facts import model_facts
        from beeline.cli.rows import rows_to_learn
        from beeline.cli.show_model import show_trained
        from beeline.fitting import Settings

        named: str | None = loss or _IMPLIED.get(multiclass or "")
        chosen = _named(named, regularizer, l1_ratio, _loss_settings(named, epsilon, loss_setting or []))
        chosen |= {"C": C, "intercept": intercept, "multiclass": multiclass, "probability": probability}
        chosen |= {"solver": solver, "tol": tol, "max_passes": max_passes, "seed": seed}
        settings = Settings(**chosen)
        target = _checked_target(output)
        narrow = tol >= _ROUGH
        with ExitStack() as stack:
            with progress_bar() as progress:
                data = stack.enter_context(
                    rows_to_learn(sources, reading, _budget(memory), target, progress, narrow=narrow)
                )
            complete, why = _completed(settings, named is None, class_weight or [], data)
            model = _fitted(data, complete)
        model.save(target)
        facts = model_facts(model, target) | {"loss_chosen_because": why}
        if json:
            print_json(facts)
        else:
            show_trained(facts)
        if facts["report"]["status"] == "interrupted":
            print_line("interrupted", f"the best model so far was saved as {output}", color="33")
            raise SystemExit(128 + signal.SIGINT)


def _loss_settings(loss: str | None, epsilon: float | None, given: list[str]) -> dict[str, Any]:
    """The settings of the loss's own: numbers, or matrices as JSON."""
    import json

    from beeline.exceptions import ParameterError

    if epsilon is not None and not (loss or "").endswith("epsilon_insensitive"):
        raise ParameterError("epsilon has no meaning without an ε-insensitive loss; leave it out")
    if given and loss is None:
        raise ParameterError("loss_setting has no meaning without --loss; name the loss")
    settings: dict[str, Any] = {} if epsilon is None else {"epsilon": epsilon}
    for item in given:
        name, _, text = item.partition("=")
        try:
            settings[name] = json.loads(text)
        except ValueError:
            settings[name] = None
        if not isinstance(settings[name], int | float | list):
            raise ParameterError(f"loss_setting must be NAME=VALUE such as tau=0.9, not {item!r}")
    return settings


def _named(loss: str | None, regularizer: str, l1_ratio: float | None, settings: dict[str, Any]) -> dict[str, Any]:
    """The loss and the regularizer, with the settings of their own."""
    from beeline.exceptions import ParameterError
    from beeline.losses import get_loss
    from beeline.regularizers import get_regularizer

    if l1_ratio is not None and regularizer != "elastic_net":
        raise ParameterError("l1_ratio has no meaning without regularizer=elastic_net; leave it out")
    return {
        "loss": get_loss(loss or "logistic", **settings),
        "regularizer": get_regularizer(regularizer, **({} if l1_ratio is None else {"l1_ratio": l1_ratio})),
    }


def _budget(memory: str | None) -> int:
    from beeline.data.memory import available_memory
    from beeline.data.options import parse_size

    return available_memory() // 2 if memory is None else parse_size(memory)


def _checked_target(output: str) -> Path:
    """The file to write, after a look whether it can be written: before hours of training, not after."""
    from beeline.exceptions import ParameterError, SourceError
    from beeline.model.file import is_model_file

    target = Path(output)
    if target.is_dir():
        raise ParameterError(f"{output} is a folder; give the name of a file to write")
    if not target.parent.is_dir():
        raise SourceError(f"{output} cannot be written: there is no folder {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise SourceError(f"{output} cannot be written: the folder {target.parent} is read-only")
    if target.exists() and not is_model_file(target):
        raise ParameterError(f"{output} is there already and is not a model; choose another name, or remove it")
    return target


def _completed(settings: Settings, choose: bool, class_weight: list[str], data: Dataset) -> tuple[Settings, str | None]:
    """(the settings with what depends on the data, why the loss was chosen)."""
    from beeline.cli.choosing import choose_loss, parse_class_weights

    why = None
    if choose:
        name, why = choose_loss(data)
        settings = replace(settings, loss=name)
    return replace(settings, class_weight=parse_class_weights(class_weight, data)), why


def _fitted(data: Dataset, settings: Settings) -> Model:
    """The model; what the solver warns of becomes one line on standard error."""
    from beeline.cli.training_line import training_line
    from beeline.fitting import fit

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with training_line() as callback:
            model = fit(data, settings, _labels_to_use_up(data), callback=callback).model
    for sentence in dict.fromkeys(str(warning.message) for warning in caught):
        print_line("warning", sentence, color="33")
    return model


def _labels_to_use_up(data: Dataset) -> AnyArray | None:
    """The labels of rows in memory, which are then nowhere else; None: those of the data."""
    from beeline.data.dataset import ArrayDataset
    from beeline.data.labels import LabelSets

    texts = data.recipe is not None and data.recipe.label_categories is not None
    if texts or not isinstance(data, ArrayDataset) or data.labels is None or isinstance(data.labels, LabelSets):
        return None
    return data.give_labels()  # type: ignore[return-value]
