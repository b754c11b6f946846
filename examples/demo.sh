#!/usr/bin/env bash
# The demo: real rows are converted to a store, looked at, and used from Python. Run it by `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p out
rm -rf out/train.store out/test.store

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() {
  printf '\033[36m$ %s\033[0m\n' "$*"
  "$@"
}
[ -t 1 ] || { say() { printf '\n%s\n' "$*"; }; run() { printf '$ %s\n' "$*"; "$@"; }; }

say "1. Convert 4,000 patches of forest, each with 54 measurements, to a store; scale every feature to 0 … 1."
run beeline convert examples/data/covtype-train.csv.gz out/train.store --label Cover_Type --scale minmax

say "2. Convert 1,001 held-out patches by the same recipe: same columns, same scaling."
run beeline convert examples/data/covtype-test.csv.gz out/test.store --like out/train.store

say "3. Look at what is there."
run beeline info out/train.store

say "4. Use the stores from Python (examples/use_store.py)."
run python examples/use_store.py out/train.store out/test.store

say "The stores are in out/. Next: beeline convert --help, or docs/guide-data.md."
