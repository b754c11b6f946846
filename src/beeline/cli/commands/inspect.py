"""`beeline inspect`: what a model is and what it looks at."""

from __future__ import annotations

from typing import Annotated

from beeline.cli.options.common import Debug, Json, print_json
from beeline.cli.options.declaring import Option, Positional
from beeline.cli.output.errors import one_line_errors

__all__ = ["inspect"]


def inspect(
    model: Annotated[str, Positional("MODEL")],
    *,
    top: Annotated[int, Option("How many features to show for each class.", metavar="N", least=0)] = 10,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show a model: its classes, size, training report, and the features with the largest weights.

    MODEL is a file that beeline train or LIBLINEAR wrote. Weights are those of the features as the model takes them,
    after scaling.

    Example: beeline inspect income.model --top 20
    """
    with one_line_errors(debug):
        from beeline.cli.output.model_facts import model_facts, top_features
        from beeline.model.file import load_model

        trained = load_model(model)
        facts = model_facts(trained, model) | {"top": top_features(trained, top) if top else []}
        if json:
            print_json(facts)
        else:
            from beeline.cli.output.show_model import show_model

            show_model(facts)
