"""`beeline evaluate`: how good a model's predictions are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from beeline.cli.options.common import Debug, Json, Memory, Threads, memory_or, print_json, use_threads
from beeline.cli.options.declaring import Positional
from beeline.cli.options.reading import with_read_options
from beeline.cli.output.errors import one_line_errors
from beeline.cli.output.progress import progress_bar

if TYPE_CHECKING:
    from beeline.cli.input.rows import Walk
    from beeline.model import Model

__all__ = ["evaluate"]

_MEMORY = 64 << 20


@with_read_options
def evaluate(
    model: Annotated[str, Positional("MODEL")],
    sources: Annotated[list[str], Positional("DATA")],
    *,
    memory: Memory = None,
    threads: Threads = None,
    json: Json = False,
    debug: Debug = False,
    reading: dict[str, Any],
) -> None:
    """Compare a model's predictions with labels.

    MODEL and DATA are as for beeline predict; DATA has labels. A classifier gets accuracy, F1 (the mean over the
    classes when there are more than two), the area under the ROC curve for two classes, log loss where it has
    probabilities, and the confusion table; a regression gets RMSE, MAE and R². Weights of the rows count.

    Example: beeline evaluate income.model test.csv
    """
    with one_line_errors(debug):
        use_threads(threads)
        from beeline.cli.input.rows import Walk
        from beeline.cli.input.skipped import show_passed_over
        from beeline.cli.output.model_facts import load_model
        from beeline.cli.output.show_model import show_evaluation

        trained = load_model(model)
        with progress_bar() as progress:
            walk = Walk(trained, sources, reading, progress)
            facts = {"model": model} | _facts(trained, walk, memory_or(_MEMORY, memory))
        show_passed_over(walk)
        if json:
            print_json(facts)
        else:
            show_evaluation(facts)


def _facts(model: Model, walk: Walk, memory: int) -> dict[str, Any]:
    from beeline.cli.input.evaluating import Answers

    answers = Answers(model)
    for block in walk.blocks(memory):
        answers.add(block, walk.recipe)
    return answers.facts()
