"""Draw the rows in examples/data from the full covtype data: `python tools/sample_covtype.py covtype.csv.gz`.

The sample is stratified (each class keeps its share, with at least 20 rows) and the same on every run.
"""

import gzip
import random
import sys
from collections import defaultdict
from pathlib import Path

ROWS, TEST_SHARE, SEED = 5000, 0.2, 7
TARGET = Path(__file__).parent.parent / "examples" / "data"


def main(source: str) -> None:
    """Write covtype-train.csv.gz and covtype-test.csv.gz."""
    with gzip.open(source, "rt", encoding="ascii") as file:
        header, *lines = file.read().splitlines()
    by_class = defaultdict(list)
    for line in lines:
        by_class[line.rsplit(",", 1)[1]].append(line)
    draw = random.Random(SEED)
    train: list[str] = []
    test: list[str] = []
    for _, members in sorted(by_class.items()):
        n = max(20, round(ROWS * len(members) / len(lines)))
        sample = draw.sample(members, n)
        cut = round(n * TEST_SHARE)
        test += sample[:cut]
        train += sample[cut:]
    for name, rows in (("train", train), ("test", test)):
        draw.shuffle(rows)
        text = "\n".join([header, *rows, ""]).encode()
        # No time stamp and no file name inside, so that the same rows give the same bytes.
        (TARGET / f"covtype-{name}.csv.gz").write_bytes(gzip.compress(text, 9, mtime=0))


if __name__ == "__main__":
    main(sys.argv[1])
