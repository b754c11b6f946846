"""`beeline info`: what a store or a source holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from beeline.cli.options.common import Debug, Json, Memory, Threads, memory_or, print_json, use_threads
from beeline.cli.options.declaring import Option, Positional
from beeline.cli.options.reading import with_read_options
from beeline.cli.output.errors import one_line_errors
from beeline.cli.output.progress import progress_bar

if TYPE_CHECKING:
    from beeline.cli.output.facts import Facts
    from beeline.data.options import ReadOptions
    from beeline.data.reader import Progress

__all__ = ["info"]

_MEMORY = 256 << 20


@with_read_options
def info(
    paths: Annotated[list[str], Positional("PATH")],
    *,
    features: Annotated[
        bool, Option("List the range and mean of every feature; looks at all rows.", ("--features",))
    ] = False,
    memory: Memory = None,
    threads: Threads = None,
    json: Json = False,
    debug: Debug = False,
    reading: dict[str, Any],
) -> None:
    """Show what a store or a source holds.

    PATH is a store, or whatever can be converted to one. Prints rows, features, nonzeros, labels, ranges, size and
    recipe. A store knows all this; a source is read to its end, in bounded memory.

    Example: beeline info train.store
    """
    with one_line_errors(debug):
        use_threads(threads)
        with progress_bar() as progress:
            facts = _facts(paths, reading, features, memory_or(_MEMORY, memory), progress)
        if json:
            print_json(facts)
        else:
            from beeline.cli.output.show import show, show_skipped

            show(facts)
            show_skipped(facts)


def _facts(paths: list[str], reading: dict[str, Any], features: bool, memory: int, progress: Progress | None) -> Facts:
    from beeline.cli.output.facts import store_facts
    from beeline.data.convert import is_store, open_store
    from beeline.data.options import ReadOptions

    options = ReadOptions(**reading)
    if len(paths) > 1 or not is_store(paths[0]):
        return _facts_of_source(paths, options, features, memory, progress)
    options.refuse(reading, "a store, which is read as it is")
    return store_facts(open_store(paths[0], memory), features=features, progress=progress)


def _facts_of_source(
    paths: list[str], options: ReadOptions, features: bool, memory: int, progress: Progress | None
) -> Facts:
    from beeline.cli.output.facts import source_facts
    from beeline.data.convert import open_reader
    from beeline.data.files.finding import detect_format, find_files, total_size

    files = find_files(paths)
    facts: Facts = {
        "path": paths[0] if len(paths) == 1 else paths,
        "format": options.format if options.format != "auto" else detect_format(files[0]),
        "bytes": total_size(files),
    }
    return facts | source_facts(open_reader(paths, options, progress), memory, features=features)
