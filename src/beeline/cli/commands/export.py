"""`beeline export`: a model for other programs."""

from __future__ import annotations

from typing import Annotated, Literal

from beeline.cli.options.common import Debug, refuse_same_file
from beeline.cli.options.declaring import Option, Positional
from beeline.cli.output.errors import one_line_errors

__all__ = ["export"]

Precision = Literal["float32", "float64"]


def export(
    model: Annotated[str, Positional("MODEL")],
    file: Annotated[str, Positional("FILE")],
    *,
    to: Annotated[
        Literal["liblinear", "onnx", "beeline"],
        Option("liblinear, onnx, or beeline for a model of LIBLINEAR's.", ("--to",), metavar="FORMAT"),
    ],
    precision: Annotated[
        Precision | None,
        Option("The numbers of an ONNX graph: float32, or float64. Default: float32.", metavar="TYPE"),
    ] = None,
    debug: Debug = False,
) -> None:
    """Write a model for other programs.

    liblinear: a text model for LIBLINEAR's predict. onnx: a graph for any ONNX runtime; needs pip install
    beeline[onnx]. Learned scaling is folded into the weights, so that both take features as they were before it.

    Example: beeline export income.model income.onnx --to onnx
    """
    with one_line_errors(debug):
        from beeline._sentences import Argument
        from beeline.cli.output.model_facts import load_model
        from beeline.exceptions import ParameterError

        refuse_same_file(file, [model])
        trained = load_model(model)
        if precision is not None and to != "onnx":
            raise ParameterError(Argument("precision"), " has no meaning but for ONNX; leave it out")
        if to == "onnx":
            trained.to_onnx(file, precision or "float32")
        elif to == "liblinear":
            trained.to_liblinear(file)
        else:
            trained.save(file)
