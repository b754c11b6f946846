"""A search for C.

`select_C` begins with a C that is surely too small, doubles it, begins each training where the last one ended, and
stops when rows that were held out no longer gain. The figure shows the score on them, and what each value of C cost.
"""

import sys
from pathlib import Path

import beeline

ROWS = Path(__file__).parents[1] / "data" / "covtype-train.csv.gz"


def main(folder: Path) -> None:
    """Search for the C of a support vector machine, and draw the search."""
    rows = beeline.read(ROWS, label="Cover_Type", scale="minmax")
    found = beeline.select_C(rows, "squared_hinge", folds=3)
    print(found.sentence)
    found.plot().savefig(folder / "search_for_c.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
