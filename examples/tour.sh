#!/usr/bin/env bash
# The tour: every example in Python, on the stores that the demo leaves behind. Run it by `make tour`.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -d out/train.store ] || { echo "out/train.store is missing; run make demo first" >&2; exit 1; }
rm -f out/late.model
source examples/say.sh

say "1. Use the stores from Python (examples/use_store.py)."
run python examples/use_store.py out/train.store out/test.store

say "2. Compare classifiers (examples/classify.py)."
run python examples/classify.py out/train.store out/test.store

say "3. See in Python how a search goes, and what it is worth (examples/choose_c.py)."
run python examples/choose_c.py out/train.store out/test.store

say "4. Compare regressions on the raw table (examples/regress.py)."
run python examples/regress.py $train $test

say "5. Train with a loss of your own (examples/own_loss.py)."
run python examples/own_loss.py $train $test

say "6. Learn from rows as they come, with a kind of forest that appears late (examples/stream.py)."
run python examples/stream.py $train $test out/late.model

say "7. Classes that form a tree: mistakes that are nearer to the truth (examples/label_tree.py)."
run python examples/label_tree.py out/train.store out/test.store

say "8. Rank the documents of queries, made at random (examples/rank.py)."
run python examples/rank.py

say "9. One positive row in a hundred, and models that are trained for what they are judged by (examples/imbalanced.py)."
run python examples/imbalanced.py

say "10. Levels in an order, made at random (examples/ordinal.py)."
run python examples/ordinal.py
