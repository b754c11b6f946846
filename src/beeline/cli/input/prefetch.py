"""Reading that begins before the command line is understood: loading what understands it takes as long."""

from __future__ import annotations

import os
from dataclasses import replace

__all__ = ["begin_prefetch"]

_COMMANDS = ("train", "select")
_NOT_DATA = ("-o", "--output", "--resume", "--report", "--tree")
_WAITS = ("-h", "--help", "--memory", "--cache", "--stream", "--continue")


def begin_prefetch(arguments: list[str]) -> None:
    """Begin to parse the LIBSVM text that `train` or `select` is likely to read.

    A guess from the bare arguments: right nearly always, and without consequences where it is wrong. What is wrong with
    the file is for the command itself to find and say.
    """
    # Under a limit of memory, what is read and where it is kept is for the command to decide.
    if (
        not arguments
        or arguments[0] not in _COMMANDS
        or any(argument.partition("=")[0] in _WAITS for argument in arguments)
    ):
        return
    from beeline.data.files.finding import detect_format, find_files
    from beeline.data.options import ReadOptions
    from beeline.data.text.dialect import first_dialect, narrows
    from beeline.data.text.prefetch import start_prefetch
    from beeline.exceptions import BeelineError

    path = _first_file(arguments[1:])
    if path is None:
        return
    try:
        (file,) = find_files(path)
        if file.is_plain and detect_format(file) == "libsvm":
            options = ReadOptions()
            dialect = replace(first_dialect(options), queries=False)
            start_prefetch(file, dialect.narrowed() if narrows(options, file.size) else dialect, options)
    except (BeelineError, OSError, MemoryError):
        return


def _first_file(arguments: list[str]) -> str | None:
    """The first argument that names a file of data, and not one to write."""
    for before, argument in zip(["", *arguments], arguments, strict=False):
        if before not in _NOT_DATA and not argument.startswith("-") and os.path.isfile(argument):  # noqa: PTH113
            return argument
    return None
