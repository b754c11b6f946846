"""`beeline export`: a model for other programs."""

from __future__ import annotations

from typing import Annotated, Literal

from beeline.cli.options.common import Debug, refuse_same_file
from beeline.cli.options.declaring import Option, Positional
from beeline.cli.output.errors import one_line_errors

__all__ = ["export"]

Precision = Literal["float32", "float64"]
Format = Literal["liblinear", "onnx", "beeline"]
_ENDINGS: dict[str, Format] = {
    ".onnx": "onnx",
    ".txt": "liblinear",
    ".liblinear": "liblinear",
    ".beeline": "beeline",
    ".safetensors": "beeline",
}


def export(
    model: Annotated[str, Positional("MODEL")],
    file: Annotated[str | None, Positional("[FILE]")] = None,
    *,
    output: Annotated[
        str | None, Option("The same as FILE, as other commands call it.", ("--output", "-o"), metavar="FILE")
    ] = None,
    to: Annotated[
        Format | None,
        Option(
            "liblinear, onnx, or beeline for a model of LIBLINEAR's; when not given, FILE's ending says it.",
            ("--to",),
            metavar="FORMAT",
        ),
    ] = None,
    precision: Annotated[
        Precision | None,
        Option("The numbers of an ONNX graph: float32, or float64. Default: float32.", metavar="TYPE"),
    ] = None,
    debug: Debug = False,
) -> None:
    """Write a model for other programs.

    onnx (FILE ends with .onnx): a graph for any ONNX runtime; needs pip install "beeline-ml[onnx]". That of a model of
    a table takes its columns by name, as they are in the table, and fills, scales and looks up categories by itself.
    liblinear (.txt, .liblinear; .model too, unless MODEL is LIBLINEAR's): a text model for LIBLINEAR's predict, with
    the names of the features behind the weights. beeline (.beeline, .safetensors): a model of LIBLINEAR's in
    beeline's own format. Learned scaling is folded in, so that all take features as they were before it.

    Example: beeline export income.model income.onnx
    """
    with one_line_errors(debug):
        from beeline._sentences import Argument
        from beeline.exceptions import ParameterError
        from beeline.model.file import load_model

        if (file is None) == (output is None):
            raise ParameterError("say once where the model is to go: as FILE, or by ", Argument("output"))
        file = str(file or output)
        refuse_same_file(file, [model])
        chosen = to or _format_of(file, model)
        if precision is not None and chosen != "onnx":
            raise ParameterError(Argument("precision"), " has no meaning but for ONNX; leave it out")
        trained = load_model(model)
        if chosen == "onnx":
            trained.to_onnx(file, precision or "float32")
        elif chosen == "liblinear":
            trained.to_liblinear(file)
        else:
            trained.save(file)


def _format_of(file: str, model: str) -> Format:
    """What a file's ending says; LIBLINEAR calls its models .model too, and nobody exports one to what it is."""
    from pathlib import Path

    from beeline._sentences import Argument
    from beeline.exceptions import ParameterError
    from beeline.model.liblinear import is_liblinear

    ending = Path(file).suffix.lower()
    if ending == ".model":
        return "beeline" if is_liblinear(model) else "liblinear"
    if ending not in _ENDINGS:
        raise ParameterError(
            f"{file} does not say by its ending what it is to be ({', '.join(_ENDINGS)}, .model); name the format by ",
            Argument("to"),
        )
    return _ENDINGS[ending]
