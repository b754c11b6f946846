#!/usr/bin/env bash
# The demo: real rows are converted to a store, looked at, learned from and predicted; pages tell how it went. Run it by
# `make demo`; `make tour` goes on from there in Python.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p out
rm -rf out/train.store out/test.store out/forest.model out/svm.model out/small.model out/stream.model
rm -f out/answers.csv out/training.html out/search.html

source examples/say.sh

say "1. Convert 4,000 patches of forest, each with 54 measurements, to a store; scale every feature to 0 … 1."
run beeline convert $train out/train.store --label Cover_Type --scale minmax

say "2. Convert 1,001 held-out patches by the same recipe: same columns, same scaling."
run beeline convert $test out/test.store --like out/train.store

say "3. Look at what is there."
run beeline info out/train.store

say "4. Train a model that tells the seven kinds of forest apart, with a page to keep."
run beeline train out/train.store -o out/forest.model --C 10 --report out/training.html

say "5. Evaluate it on the held-out rows: on the raw file, which the model's own recipe makes into features."
run beeline evaluate out/forest.model $test

say "6. Predict: the kind of every patch, and how probable each kind is."
run beeline predict out/forest.model $test -o out/answers.csv --probabilities
run head -n 4 out/answers.csv

say "7. Inspect what it looks at."
run beeline inspect out/forest.model --top 3

say "8. Search for C, and train with the best one: of a support vector machine."
run beeline select out/train.store --loss squared_hinge --folds 3 -o out/svm.model --report out/search.html

say "9. Train in a memory that holds a tenth of the rows: they are read block by block."
run beeline train out/train.store -o out/small.model --loss hinge --memory 200K
run beeline evaluate out/small.model $test --memory 200K

say "10. More data than memory: batches, an index, and only the rows that matter (examples/more_than_memory.py)."
run python examples/more_than_memory.py out/readings.store

say "11. Learn from rows as they come through a pipe, and go on with more of them another day."
run bash -c "zcat $train | beeline train - --solver sgd --label Cover_Type -o out/stream.model"
run beeline train --continue out/stream.model $test -o out/stream.model

say "Stores, models, answers and two pages to open in a browser, training.html and search.html, are in out/."
say "Next: make tour goes on in Python; docs/ten-minutes.md; beeline train --help; make site builds all pages to read."
