#!/usr/bin/env bash
# Make a virtual environment with the build tools in it: tools/make_venv.sh FOLDER
# The interpreter is $PYTHON, or the first of python3, python3.14 … python3.11 that is new enough.
set -euo pipefail
folder=$1

fail() {
  echo "beeline set-up: $*" >&2
  exit 1
}

new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
  for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if new_enough "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  fail "Python 3.11 or newer is needed; install it, or name it: make PYTHON=/path/to/python3.12 …"
}

command -v "${CXX:-c++}" >/dev/null ||
  fail "a C++17 compiler is needed; on Debian or Ubuntu: apt install g++"

if ! [ -x "$folder/bin/python" ] || ! "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
  python=$(find_python)
  "$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
    fail "the headers of $python are needed; on Debian or Ubuntu: apt install python3-dev"
  rm -rf "$folder"
  "$python" -m venv "$folder" >"$folder.log" 2>&1 ||
    { rm -rf "$folder"; "$python" -m virtualenv --quiet "$folder" 2>>"$folder.log"; } ||
    { cat "$folder.log" >&2; rm -f "$folder.log"; fail "no virtual environment could be made; on Debian or Ubuntu: apt install python3-venv"; }
  rm -f "$folder.log"
fi

pip=("$folder/bin/python" -m pip -qq --disable-pip-version-check)
# pip of Debian 11 and older cannot install an editable package without setup.py.
"$folder/bin/python" -c 'import pip, sys; sys.exit(int(pip.__version__.split(".")[0]) < 23)' ||
  "${pip[@]}" install --upgrade "pip>=23"
"${pip[@]}" install --no-compile "scikit-build-core>=0.10" "nanobind>=2.4" "cmake>=3.18" ninja
