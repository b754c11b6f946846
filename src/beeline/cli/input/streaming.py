"""`train` on rows that come once: from a pipe, or from files that are learned from as they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beeline._sentences import Argument
from beeline.exceptions import ParameterError

if TYPE_CHECKING:
    import click

    from beeline._types import AnyArray
    from beeline.cli.options.training import TrainingOptions
    from beeline.fitting.online import Online
    from beeline.fitting.stream import StreamTraining
    from beeline.model import Model

__all__ = ["STANDARD_INPUT", "StreamRequest", "said_options", "train_stream"]

STANDARD_INPUT = "-"

# What has no meaning for rows that come once, and what a model says that goes on.
_REFUSED = ("C", "tol", "probability", "nonnegative", "max_passes", "cache", "checkpoint", "checkpoint_interval")
_OF_SEARCH = ("folds", "metric", "resume", "report")
_OF_THE_MODEL = ("loss", "regularizer", "l1_ratio", "epsilon", "loss_setting", "tree", "intercept", "multiclass")
_OF_ITS_TRAINING = ("alpha", "class_weight", "solver_setting", "seed")


@dataclass(frozen=True)
class StreamRequest:
    """What was asked for.

    Attributes
    ----------
    sources, reading
        Where rows come from, one after the other, and the options to read them by.
    options, alpha
        What was said of the training.
    start
        The file of a model to go on from.
    said
        The names of all options that were given.
    """

    sources: list[str]
    reading: dict[str, Any]
    options: TrainingOptions
    alpha: float | None
    start: str | None
    said: frozenset[str]

    def train(self) -> tuple[Model, StreamTraining, str | None]:
        """(the model, how it came to be, why its loss was chosen)."""
        from beeline.cli.output.stream_line import stream_line
        from beeline.data.options import ReadOptions
        from beeline.fitting.online import Online
        from beeline.fitting.stream import StreamTraining

        self._check()
        why: list[str] = []
        earlier = None if self.start is None else _load(self.start)
        online = None if earlier is None else Online.of_model(earlier)
        options = ReadOptions(**self.reading)
        begin = lambda labels, texts, decimals: self._begin(labels, texts, decimals, why)  # noqa: E731
        with stream_line() as callback:
            training = StreamTraining(
                begin if online is None else online,
                None if earlier is None else earlier.recipe,
                time_limit=self.options.seconds,
                memory=self.options.memory,
                callback=callback,
            )
            for source in self.sources:
                training.add(source, options)
        return training.model(), training, why[0] if why else None

    def _check(self) -> None:
        for name in (*_REFUSED, *_OF_SEARCH):
            if name in self.said:
                raise ParameterError(
                    Argument(name), " has no meaning for rows that are learned from as they are read; leave it out"
                )
        for name in (*_OF_THE_MODEL, *_OF_ITS_TRAINING) if self.start is not None else ():
            if name in self.said:
                raise ParameterError(Argument(name), " is what the model says that training goes on from; leave it out")
        if self.sources.count(STANDARD_INPUT) > 1:
            raise ParameterError("standard input can be read only once; name it once", parameter="source")
        if (limit := self.options.seconds) is not None and not 0 < limit < float("inf"):
            raise ParameterError(Argument("time_limit"), f" must be positive and finite, not {limit:g}")

    def _begin(self, labels: AnyArray, texts: tuple[str, ...] | None, decimals: bool, why: list[str]) -> Online:
        """What learns, once the first labels are known."""
        from beeline.cli.input.choosing import loss_for, parse_class_weights
        from beeline.fitting.online import Online
        from beeline.fitting.online_settings import ALPHA, online_settings

        said = self.options.to_settings(None)
        settings = {name: said[name] for name in ("loss", "regularizer", "intercept", "multiclass", "solver", "seed")}
        if settings["solver"] == "auto":
            settings["solver"] = "sgd"
        choice = None
        if self.options.named_loss is None:
            choice = loss_for(labels, texts, decimals=decimals)
            choice = choice._replace(why=f"the first {choice.why}")
            settings["loss"] = choice.loss
        weights = parse_class_weights(self.options.class_weight or [], texts=texts is not None)
        alpha = ALPHA if self.alpha is None else self.alpha
        online = Online(online_settings(settings | {"alpha": alpha, "class_weight": weights}))
        if choice is not None:
            choice.announce()
            why.append(choice.why)
        return online


def train_stream(request: StreamRequest, output: str, *, json: bool) -> None:
    """Train, save the model and say what came of it."""
    from beeline.cli.input.searching import leave_interrupted
    from beeline.cli.input.skipped import show_passed_over
    from beeline.cli.input.targets import check_targets, checked_model
    from beeline.cli.options.common import print_json
    from beeline.cli.output.concerns import Concerns
    from beeline.cli.output.model_facts import finite_numbers, model_facts
    from beeline.cli.output.show_model import show_trained

    target = checked_model(output)
    check_targets(request.sources, output)  # a model that goes on may be written to its own file
    model, training, why = request.train()
    model.save(target)
    facts = model_facts(model, target) | {"loss_chosen_because": why}
    for stream in training.streams:
        if stream.reader is not None:
            show_passed_over(stream.reader)
    if json:
        online = training.learned
        points = [*online.trace, online.point(online.recent)] if online.recent.weight else online.trace
        print_json(facts | {"progress": [finite_numbers(point._asdict()) for point in points]})
    else:
        show_trained(facts)
    concerns = Concerns()
    concerns.add(facts["report"]["concerns"])
    concerns.say()
    if training.status == "interrupted":
        leave_interrupted(f"the model so far was saved as {output}; --continue goes on from it")
    concerns.leave()


def said_options(context: click.Context) -> frozenset[str]:
    """The names of all options that were given."""
    names = [parameter.name or "" for parameter in context.command.params]
    sources = {name: context.get_parameter_source(name) for name in names}
    return frozenset(name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE")


def _load(path: str) -> Model:
    from beeline.model.file import load_model

    return load_model(path)
