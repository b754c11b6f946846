"""One process that reads a store, or trains on it by `sgd`, within some memory, and tells when each pass ended.

`python store_child.py FOLDER read|walk|train MEMORY [LOSS MULTICLASS]` prints a line of JSON with the seconds of the
passes. `read` reads the files one after the other, `walk` gives the rows as solvers get them; `train` learns.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

PASSES = 3


def read(store: Path) -> float:
    start, buffer = time.perf_counter(), bytearray(8 << 20)
    for path in sorted(store.rglob("*")):
        if path.is_file():
            with path.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass
    return time.perf_counter() - start


def walk(store: Path, memory: int) -> float:
    import beeline

    start = time.perf_counter()
    for block in beeline.open_store(store).blocks(memory // 8):
        block.values.sum()
    return time.perf_counter() - start


def train(store: Path, memory: int, loss: str, multiclass: str) -> list[float]:
    import beeline
    from beeline.engines import Resources
    from beeline.fitting.settings import Settings
    from beeline.fitting.tasks import make_task
    from beeline.losses import get_loss
    from beeline.solvers import SOLVERS

    settings = Settings(loss=get_loss(loss), multiclass=multiclass, resources=Resources(memory=memory))
    task, _ = make_task(beeline.open_store(store), settings)
    (objective,) = task.objectives()
    solver = SOLVERS["sgd"](1e-4, PASSES, 0, early_stopping=False)
    ends, start, passes = [], time.perf_counter(), 1
    for step in solver.steps(objective, None):
        if step.passes >= passes - 1e-9:
            ends.append(time.perf_counter() - start)
            passes += 1
    return ends


def main() -> None:
    store, what, memory = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    if what == "train":
        told = train(store, memory, *sys.argv[4:6])
    else:
        told = [read(store) if what == "read" else walk(store, memory)]
    Path(sys.argv[-1]).write_text(json.dumps(told))


if __name__ == "__main__":
    main()
