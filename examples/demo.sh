#!/usr/bin/env bash
# The demo: real rows are converted to a store, looked at, learned from, predicted, and used from Python; pages tell how
# it went. Run it by `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p out
rm -rf out/train.store out/test.store out/forest.model out/svm.model out/small.model out/stream.model out/late.model
rm -f out/answers.csv out/training.html out/search.html

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() {
  printf '\033[36m$ %s\033[0m\n' "$*"
  "$@"
}
[ -t 1 ] || { say() { printf '\n%s\n' "$*"; }; run() { printf '$ %s\n' "$*"; "$@"; }; }
train=examples/data/covtype-train.csv.gz test=examples/data/covtype-test.csv.gz

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

say "8. Use the stores from Python (examples/use_store.py)."
run python examples/use_store.py out/train.store out/test.store

say "9. Compare classifiers (examples/classify.py)."
run python examples/classify.py out/train.store out/test.store

say "10. Search for C, and train with the best one: of a support vector machine."
run beeline select out/train.store --loss squared_hinge --folds 3 -o out/svm.model --report out/search.html

say "11. See in Python how a search goes, and what it is worth (examples/choose_c.py)."
run python examples/choose_c.py out/train.store out/test.store

say "12. Compare regressions on the raw table (examples/regress.py)."
run python examples/regress.py $train $test

say "13. Train with a loss of your own (examples/own_loss.py)."
run python examples/own_loss.py $train $test

say "14. Train in a memory that holds a tenth of the rows: they are read block by block."
run beeline train out/train.store -o out/small.model --loss hinge --memory 200K
run beeline evaluate out/small.model $test --memory 200K

say "15. More data than memory: batches, an index, and only the rows that matter (examples/more_than_memory.py)."
run python examples/more_than_memory.py out/readings.store

say "16. Learn from rows as they come through a pipe, and go on with more of them another day."
run bash -c "zcat $train | beeline train - --solver sgd --label Cover_Type -o out/stream.model"
run beeline train --continue out/stream.model $test -o out/stream.model

say "17. The same from Python, with a kind of forest that appears late (examples/stream.py)."
run python examples/stream.py $train $test out/late.model

say "18. Classes that form a tree: mistakes that are nearer to the truth (examples/label_tree.py)."
run python examples/label_tree.py out/train.store out/test.store

say "Stores, models, answers and two pages to open in a browser, training.html and search.html, are in out/."
say "Next: docs/ten-minutes.md, beeline train --help; make site builds all pages to read, with a gallery."
