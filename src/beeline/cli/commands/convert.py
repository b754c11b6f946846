"""`beeline convert`: any source becomes a store."""

from __future__ import annotations

import time
from typing import Annotated, Any

from beeline.cli.options.common import Debug, Json, Threads, print_json, use_threads
from beeline.cli.options.declaring import Option, Positional
from beeline.cli.options.reading import with_read_options
from beeline.cli.output.errors import one_line_errors
from beeline.cli.output.progress import progress_bar

__all__ = ["convert"]


@with_read_options
def convert(
    sources: Annotated[list[str], Positional("SOURCE")],
    store: Annotated[str, Positional("STORE")],
    *,
    memory: Annotated[str, Option("Memory to use for data, such as 512M or 4G.", metavar="SIZE")] = "512M",
    like: Annotated[
        str | None,
        Option("Take columns, categories and scaling from this store, as for test rows.", metavar="STORE"),
    ] = None,
    shuffle: Annotated[bool, Option("Put the rows in a random order.", ("--shuffle",))] = False,
    seed: Annotated[
        int | None,
        Option("With --shuffle: the same seed, the same order; 0 if not given.", metavar="N"),
    ] = None,
    merge: Annotated[
        bool, Option("Keep one row of all that are equal, with their weights added; 64 bytes a row.", ("--merge",))
    ] = False,
    overwrite: Annotated[bool, Option("Replace a store that is already there.", ("--overwrite",))] = False,
    threads: Threads = None,
    json: Json = False,
    debug: Debug = False,
    reading: dict[str, Any],
) -> None:
    """Convert data of any size to a store, in bounded memory.

    SOURCE is a file, a folder or a URI (s3://, gs://, hdfs://), or several of them: LIBSVM text, CSV, Parquet, Arrow
    or npz, plain or compressed by gzip, bzip2 or zstd. STORE is the folder to write.

    Example: beeline convert train.csv.gz train.store --label income --scale standard
    """
    with one_line_errors(debug):
        use_threads(threads)
        from beeline.cli.output.facts import reader_facts, store_facts
        from beeline.cli.output.show import show_converted, show_skipped
        from beeline.data.convert import convert as convert_source
        from beeline.data.convert import open_reader, open_store
        from beeline.data.options import ReadOptions

        if like is not None:
            reading["recipe"] = open_store(like).recipe
        started = time.perf_counter()
        with progress_bar() as progress:
            reader = open_reader(sources[0] if len(sources) == 1 else sources, ReadOptions(**reading), progress)
            made = convert_source(
                reader, store, memory=memory, shuffle=shuffle, seed=seed, merge=merge, overwrite=overwrite
            )
        facts = store_facts(made) | reader_facts(reader)
        facts |= {"path": store, "seconds": time.perf_counter() - started}
        if json:
            print_json(facts)
        else:
            show_converted(facts)
            show_skipped(facts)
