"""One training on a store, as a process of its own: where it was after every iteration, and when.

`python indexed_child.py FOLDER < SETTINGS` writes FOLDER/trace.jsonl, a line an iteration, and FOLDER/thetas.f64, the
weights and the intercept of each. Seconds count from `started`, a time of the clock, so that starting Python, loading
beeline, opening and reading are in them. Nothing but training happens here, since its memory is measured.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path


def main(folder: Path, how: dict) -> None:
    import numpy as np

    import beeline
    from beeline.engines import Resources
    from beeline.fitting.settings import Settings
    from beeline.fitting.tasks import make_task
    from beeline.index import open_index
    from beeline.losses import get_loss
    from beeline.solvers import SOLVERS
    from beeline.solvers.result import relative_gap

    loss = get_loss(how["loss"], **how["loss_settings"])
    settings = Settings(loss=loss, C=how["C"], resources=Resources(memory=how["memory"]))
    task, _ = make_task(beeline.open_store(how["store"]), settings)
    if how["index"] is not None:
        task = replace(task, index=open_index(task.data, how["index"]))
    (objective,) = task.objectives()
    solver = SOLVERS[how["solver"]](how["tol"], how["max_passes"], 0, **how["options"])
    with (folder / "trace.jsonl").open("w") as trace, (folder / "thetas.f64").open("wb") as thetas:
        for step in solver.steps(objective, None):
            seconds, gap = time.time() - how["started"], relative_gap(step.objective, step.bound, step.scale)
            point = {"seconds": seconds, "passes": step.passes, "objective": step.objective, "gap": gap, **step.facts}
            trace.write(json.dumps(point) + "\n")
            thetas.write(np.asarray(step.theta, np.float64).tobytes())
            over = step.passes >= how["max_passes"] or seconds >= how["most_seconds"]
            if step.final or gap <= how["tol"] or over:
                break


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.stdin.read()))
