"""Options and output that the commands share."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from beeline.cli.options.declaring import Option

__all__ = ["Debug", "Json", "Memory", "Threads", "memory_or", "print_json", "refuse_same_file", "use_threads"]

Debug = Annotated[bool, Option("Show a traceback when something goes wrong.", ("--debug",))]
Json = Annotated[bool, Option("Print one JSON object instead of text.", ("--json",))]
Threads = Annotated[int | None, Option("Threads to use; BEELINE_NUM_THREADS or all cores when not given.", metavar="N")]
Memory = Annotated[str | None, Option("Memory for data, such as 64M or 4G; little when not given.", metavar="SIZE")]


def memory_or(usual: int, memory: str | None) -> int:
    """Bytes of rows to read at a time: the usual, or half of what the user gave; a reader needs as much again."""
    from beeline.data.options import parse_size

    return usual if memory is None else max(1, parse_size(memory) // 2)


def use_threads(n: int | None) -> None:
    """Set the number of threads of all kernels, when the user gave one."""
    if n is not None:
        from beeline.kernels import set_num_threads

        set_num_threads(n)


def refuse_same_file(output: str | None, inputs: list[str]) -> None:
    """Refuse to write over a file that is about to be read."""
    from beeline.exceptions import ParameterError

    if output is None or not Path(output).exists():
        return
    for source in inputs:
        if Path(source).exists() and Path(output).samefile(source):
            raise ParameterError(
                f"{output} is read by this command and cannot be written to; choose another name", parameter="output"
            )


def print_json(record: dict[str, Any]) -> None:
    """Print one JSON object, valid for every reader: no NaN, no infinity."""
    sys.stdout.write(json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
