# Every target does its own set-up: nothing has to be installed or typed first.
#   make demo           real data: converted, inspected, learned from, predicted, a page to keep
#   make tour           the examples in Python, on what the demo leaves behind
#   make test           the tests; make test-all runs the slow ones too
#   make lint           ruff, clang-format, mypy
#   make format         puts the sources in house style
#   make bench          every benchmark, with its claim checked
#   make asan           the kernels' tests under address and undefined-behaviour sanitizers
#   make fuzz           the LIBSVM parser under a coverage-guided fuzzer, for a minute
#   make fuzz-solvers   random problems for every loss and solver, each certificate held against other optima
#   make docs           writes the generated references anew
#   make site           builds pages to read into build/site, with the gallery and charts
#   make wheel          builds a wheel and an sdist into dist/
#   make clean          removes all that was made here
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
JOBS ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$(( n < 4 ? n : 4 )))
KERNELS := $(wildcard src/beeline/kernels/*.cpp src/beeline/kernels/*.h) CMakeLists.txt
# An editable install finds new modules by itself, but not new packages.
PACKAGES := $(wildcard src/beeline/*/__init__.py src/beeline/*/*/__init__.py)
PIP = $(BIN)/python -m pip -qq --disable-pip-version-check
# Python compiles what is imported, when it is; to compile all that is installed takes longer than to install it.
INSTALL = $(PIP) install --no-compile
PYTHON_CODE := src tests benchmarks examples tools fuzz
CPP_CODE := $(wildcard src/beeline/kernels/*.cpp src/beeline/kernels/*.h fuzz/*.cpp)

.PHONY: help demo tour test test-all lint format bench asan fuzz fuzz-solvers docs site wheel clean

help:
	@sed -n 's/^#   make/make/p' Makefile

# A stamp says that something is installed; it is renewed when what it depends on changes.
$(VENV)/tools.stamp: tools/make_venv.sh
	tools/make_venv.sh $(VENV)
	touch $@

$(VENV)/install.stamp: $(VENV)/tools.stamp pyproject.toml $(KERNELS) $(PACKAGES)
	@echo "Building and installing beeline in $(VENV) (a minute or two the first time) …"
	$(PIP) uninstall --yes beeline  # a distribution of that name has the same files
	$(INSTALL) --no-build-isolation -Cbuild-dir=build/here -Ccmake.define.BEELINE_THIS_MACHINE=ON --editable .
	touch $@

$(VENV)/%.stamp: $(VENV)/install.stamp tools/extra.py
	$(INSTALL) $$($(BIN)/python tools/extra.py $*)
	touch $@

demo: $(VENV)/plot.stamp
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

tour: $(VENV)/plot.stamp
	@[ -d out/train.store ] || $(MAKE) --no-print-directory demo
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/tour.sh

test: $(VENV)/test.stamp
	$(BIN)/pytest -m "not slow" -n $(JOBS) $(ARGS)

test-all: $(VENV)/test.stamp $(VENV)/site.stamp $(VENV)/benchopt.stamp
	$(BIN)/pytest -n $(JOBS) $(ARGS)

lint: $(VENV)/lint.stamp
	$(BIN)/ruff check $(PYTHON_CODE)
	$(BIN)/ruff format --check $(PYTHON_CODE)
	$(BIN)/clang-format --dry-run --Werror $(CPP_CODE)
	$(BIN)/mypy

format: $(VENV)/lint.stamp
	$(BIN)/ruff check --fix $(PYTHON_CODE)
	$(BIN)/ruff format $(PYTHON_CODE)
	$(BIN)/clang-format -i $(CPP_CODE)

bench: $(VENV)/bench.stamp
	@failed=0; for script in benchmarks/*.py; do \
	  echo "== $$script"; $(BIN)/python $$script --check || failed=1; done; exit $$failed

docs: $(VENV)/install.stamp
	$(BIN)/python tools/make_docs.py
	$(BIN)/python tools/make_picture.py

site: $(VENV)/site.stamp
	$(BIN)/python tools/make_site.py

wheel: $(VENV)/wheel.stamp
	$(BIN)/python -m build --outdir dist .

# The kernels once more, in an environment of their own, with every access to memory checked. Python itself is not
# instrumented, so the sanitizer's library is loaded before it; what Python never frees is no leak of ours. Reports go
# past pytest's capture, because a process that is stopped by one cannot show what was captured.
ASAN := $(VENV)-asan
ASAN_LIBRARIES = $$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libstdc++.so)
asan: $(ASAN)/install.stamp
	nm -D $(ASAN)/lib/python3*/site-packages/beeline/kernels/_kernels*.so | grep __asan_report_store >/dev/null
	LD_PRELOAD="$(ASAN_LIBRARIES)" PYTHONMALLOC=malloc BEELINE_NUM_THREADS=4 \
	ASAN_OPTIONS=detect_leaks=0:halt_on_error=1:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1 \
	  $(ASAN)/bin/python -m pytest -m "not slow" --capture=sys $(or $(ARGS),tests/unit tests/contract)

$(ASAN)/tools.stamp: tools/make_venv.sh
	tools/make_venv.sh $(ASAN)
	touch $@

$(ASAN)/install.stamp: $(ASAN)/tools.stamp pyproject.toml $(KERNELS) $(PACKAGES) tools/extra.py
	$(ASAN)/bin/python -m pip -qq install --no-build-isolation --editable . \
	  -Cbuild-dir=build/asan -Ccmake.build-type=Debug -Cinstall.strip=false -Ccmake.define.BEELINE_SANITIZE=ON
	$(ASAN)/bin/python -m pip -qq install $$($(ASAN)/bin/python tools/extra.py test)
	touch $@

# Coverage-guided: what it finds new is kept in build/fuzz/corpus and built upon by the next run. A crash is written to
# build/fuzz, with the command that repeats it.
FUZZ_SECONDS ?= 60
FUZZ_CXX ?= clang++
FUZZED := $(wildcard src/beeline/kernels/libsvm_*.cpp) src/beeline/kernels/threads.cpp
fuzz: build/fuzz/libsvm
	mkdir -p build/fuzz/corpus
	build/fuzz/libsvm -max_total_time=$(FUZZ_SECONDS) -max_len=2000 -timeout=20 -print_final_stats=1 \
	  -artifact_prefix=build/fuzz/ -dict=fuzz/libsvm.dict build/fuzz/corpus fuzz/seeds

build/fuzz/libsvm: $(wildcard fuzz/*.cpp) $(KERNELS)
	@mkdir -p build/fuzz
	@echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' > build/fuzz/probe.cpp
	@$(FUZZ_CXX) -fsanitize=fuzzer,address build/fuzz/probe.cpp -o build/fuzz/probe 2>/dev/null || { \
	  echo "make fuzz needs clang++ with libFuzzer (Debian: apt-get install clang libclang-rt-14-dev);" \
	  "say FUZZ_CXX=… if it has another name"; exit 1; }
	$(FUZZ_CXX) -std=c++17 -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined \
	  -fno-sanitize-recover=all -DBEELINE_SMALL_WINDOWS -Isrc/beeline/kernels $(wildcard fuzz/*.cpp) $(FUZZED) -pthread -o $@

# Problems have numbers, from FUZZ_FIRST on; a fault is told with the number that makes its problem again, by
# `PYTHONPATH=. .venv/bin/python -m fuzz.solvers --seed N`.
FUZZ_PROBLEMS ?= 1000
FUZZ_FIRST ?= 0
fuzz-solvers: $(VENV)/install.stamp
	PYTHONPATH=. $(BIN)/python -m fuzz.solvers --seconds $(FUZZ_SECONDS) --problems $(FUZZ_PROBLEMS) --first $(FUZZ_FIRST) --jobs $(JOBS)

clean:
	rm -rf $(VENV) $(ASAN) build dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find $(PYTHON_CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
