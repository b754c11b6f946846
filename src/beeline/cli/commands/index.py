"""`beeline index`: a store gets an index, by which training reads only rows that matter."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from beeline.cli.options.common import Debug, Json, Threads, print_json, use_threads
from beeline.cli.options.declaring import Option, Positional
from beeline.cli.output.errors import one_line_errors
from beeline.cli.output.progress import progress_bar

__all__ = ["index"]


def index(
    store: Annotated[str, Positional("STORE")],
    *,
    kind: Annotated[
        Literal["auto", "boxes", "chunks", "forest"],
        Option(
            "boxes: leaves with bounds on scores, by which it is certain what does not matter. chunks: large leaves, "
            "ranked by some of their rows. forest: metric trees over random parts of the rows. auto: boxes, chunks or "
            "none, by a look at a sample of the rows.",
            metavar="KIND",
        ),
    ] = "auto",
    leaf_rows: Annotated[
        int | None,
        Option(
            "Rows of a leaf; 32 for boxes, 1000 for chunks and at most 50 for a forest when not given.",
            metavar="N",
            least=1,
        ),
    ] = None,
    samples: Annotated[
        int | None, Option("Rows of a leaf by which chunks are ranked; 16 when not given.", metavar="N", least=1)
    ] = None,
    tree_size: Annotated[
        int | None, Option("Rows of a tree of a forest, about; 10000 when not given.", metavar="N", least=1)
    ] = None,
    width: Annotated[
        int | None, Option("Pivots of a node of a forest, at most; 10 when not given.", metavar="K", least=2)
    ] = None,
    memory: Annotated[str, Option("Memory to use for data, such as 512M or 4G.", metavar="SIZE")] = "512M",
    seed: Annotated[int, Option("The seed of what is random.", metavar="N", least=0)] = 0,
    threads: Threads = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Build an index of a store, for training on the rows that matter only.

    The index lies in the folder of STORE and is about as large as its rows. It serves hinges and ε-insensitive losses,
    cut off or not, with any labels, C, folds and classes; `beeline train` takes it where it pays. One of the same kind
    that is there is replaced.

    Example: beeline index train.store

    Example: beeline index train.store --kind forest --tree-size 100000 --width 100
    """
    with one_line_errors(debug):
        use_threads(threads)
        from beeline.cli.output.facts import index_facts
        from beeline.cli.output.show import show_index
        from beeline.data.convert import open_store
        from beeline.fitting.indexing import build_index, choose_kind, settings_for

        rows, started, why = open_store(store), time.perf_counter(), None
        given = {"leaf_rows": leaf_rows, "samples": samples, "tree_size": tree_size, "width": width}
        settings = {name: value for name, value in given.items() if value is not None} | {"seed": seed}
        settings_for(kind, settings)  # what is wrong with them is said before anything is read
        chosen: str | None = kind
        if kind == "auto":
            chosen, why = choose_kind(rows, seed, memory=memory)
        facts = {"path": store, "kind": chosen, "chosen_because": why}
        if chosen is not None:
            with progress_bar() as progress:
                made = build_index(rows, chosen, memory=memory, progress=progress, **settings)
            facts |= index_facts(made, rows) | {"seconds": time.perf_counter() - started}
        if json:
            print_json(facts)
        else:
            show_index(facts)
