# What the demo and the tour share: a heading, a command that is shown before it is run, and the rows that are shipped.
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() {
  printf '\033[36m$ %s\033[0m\n' "$*"
  "$@"
}
[ -t 1 ] || { say() { printf '\n%s\n' "$*"; }; run() { printf '$ %s\n' "$*"; "$@"; }; }
train=examples/data/covtype-train.csv.gz test=examples/data/covtype-test.csv.gz
