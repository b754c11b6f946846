"""Pages to keep.

`--report` writes what a training or a search found as one HTML file, with nothing beside it: no script, nothing that
is loaded from elsewhere. It can be mailed, kept with the model, and opened years later, in light and in dark.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROWS = Path(__file__).parents[1] / "data" / "covtype-train.csv.gz"
READING = ["--label", "Cover_Type", "--scale", "minmax"]


def main(folder: Path) -> None:
    """Write the page of a training and the page of a search, by the two commands that make them."""
    rows = Path(shutil.copy(ROWS, folder)).name
    for command in (
        ["train", rows, *READING, "--C", "10", "-o", "forest.model", "--report", "training.html"],
        ["select", rows, *READING, "--loss", "squared_hinge", "--folds", "3", "--report", "search.html"],
    ):
        print(f"$ beeline {' '.join(command)}", flush=True)
        subprocess.run([sys.executable, "-m", "beeline", *command], cwd=folder, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
