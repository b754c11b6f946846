PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(wildcard src/beeline/kernels/*.cpp src/beeline/kernels/*.h) CMakeLists.txt pyproject.toml

.PHONY: test

$(VENV)/deps.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet "scikit-build-core>=0.10" "nanobind>=2.4" "cmake>=3.18" ninja
	touch $@

$(VENV)/install.stamp: $(VENV)/deps.stamp $(SOURCES)
	$(BIN)/pip install --quiet --no-build-isolation --editable ".[test,lint]"
	touch $@

test: $(VENV)/install.stamp
	$(BIN)/pytest
