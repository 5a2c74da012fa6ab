# build    a virtual environment with pykafkad in place; C is compiled again when it changes
# run      serve; ARGS="--port 0 --ephemeral"
# test     all of: check, unit (all of tests/), short runs of torture, storm, bench and asan, compat (stock clients, a real Kafka);
#          it says how long it will take and how far it is, and every part can be made alone: make compat-spark
# test-quick  the same in three minutes: check, nearly all unit tests, three clients
# check    style, types, layers, formats, generated files, docs/ as a site in build/site; changes nothing (format: changes them)
# suites   other people's test suites against a broker of ours
# bench    the same work on pykafkad and on Apache Kafka, side by side; BENCH_ARGS=
# torture  brokers that are killed at every call, damaged, cut off the power, starved of disk; SEED=, TORTURE_ARGS=
# storm    1,000,000 random requests of every API, every array filled, every config at its extremes; SEED=, STORM_ARGS=
# asan     unit tests and ASAN_SECONDS of mutated input under the address and undefined-behaviour sanitizers;
#          TESTS="tests/unit/test_x.py -k name" runs these alone
# mutants  one change after the other in the code: would the unit tests notice? SEED=, MUTANTS_ARGS="--room storage --count 40"
# tox      unit tests of the installed package on the newest Python that is here; TOX_ARGS="-e py311,py312,py313"
# clean    what the others made
#
# PYTHON chooses the interpreter of a new environment: by default the newest from 3.11 on that runs here.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.DELETE_ON_ERROR:

VENV ?= .venv
BIN := $(VENV)/bin
USABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3.14 python3.13 python3.12 python3.11 python3; do \
    if $$python -c '$(USABLE)' 2>/dev/null; then echo $$python; break; fi; done)
# A test that fails is tried once more; what passed only then is named at the end (tools/parts.py). RERUNS=0: not tried again.
RERUNS ?= 1
PYTEST := $(BIN)/python -m pytest -v --reruns $(RERUNS) --rerun-show-tracebacks -r fER
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
ASAN_SECONDS ?= 600
ASAN_SHORT_SECONDS ?= 60
STORM_SEED ?= 20261119

EXT_SOURCES := $(wildcard ext/*.pyx ext/*.pxi ext/*.pxd ext/c/*.c ext/c/*.h)
C_SOURCES := $(wildcard ext/c/*.c ext/c/*.h bench/*.c tests/seams/*.c)
STYLED := pykafkad tests compat_tests bench examples protocol tools setup.py conftest.py

# Each is a directory and a part of its own, so that no two JVMs are up at a time.
COMPAT := clients groups transactions history tools exchange cleaner differential spark quickstart recipes znodes cluster
COMPAT_PARTS := $(COMPAT:%=compat-%)
TEST_PARTS := setup check unit torture-short storm-short bench-smoke $(COMPAT_PARTS) asan-short
QUICK_PARTS := setup check unit-quick compat-clients-quick
# Slow, or sensitive to what else the machine does, as tests/net is: the rest of the unit tests takes a minute.
NOT_QUICK := test_config_slices test_mutants test_storage_moves test_storm_making test_topic_storm
QUICK_CLIENTS := (reads_back_what_it_produced or quickstart) and not java and not kcat and not spark

.PHONY: build setup run test test-quick check format unit unit-quick compat $(COMPAT_PARTS) compat-cluster-long compat-clients-quick suites bench \
    bench-smoke torture torture-short storm storm-short asan asan-short mutants tox clean

build: $(VENV)/.installed $(VENV)/.compiled

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "no Python from 3.11 on is on the PATH; name one with PYTHON=" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(PIP) install $$($(BIN)/python tools/requirements.py build)
	EXT=none $(PIP) install --no-build-isolation --editable .
	touch $@

# The bytecode too: without it a start costs twice as much, and not every environment lets Python write it.
$(VENV)/.compiled: setup.py $(EXT_SOURCES) $(shell find pykafkad -name '*.py') | $(VENV)/.installed
	$(BIN)/python setup.py -q build_ext --inplace --parallel $$(nproc)
	$(BIN)/python -m compileall -q pykafkad
	touch $@

$(VENV)/.check: pyproject.toml | $(BIN)/python
	$(PIP) install $$($(BIN)/python tools/requirements.py check test compat)
	touch $@

run: build
	@exec $(BIN)/pykafkad start $(ARGS)

setup: build $(VENV)/.check

test: $(BIN)/python
	@$(BIN)/python tools/parts.py $(MAKE) $(TEST_PARTS)

test-quick: $(BIN)/python
	@$(BIN)/python tools/parts.py $(MAKE) $(QUICK_PARTS)

check: build $(VENV)/.check
	$(BIN)/ruff check --no-cache $(STYLED)
	$(BIN)/ruff format --no-cache --check $(STYLED)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/clang-format --dry-run -Werror $(C_SOURCES)
	$(BIN)/python protocol/check.py
	$(BIN)/python tools/readme.py --check
	$(BIN)/mkdocs build --strict --quiet

format: build $(VENV)/.check
	$(BIN)/ruff check --no-cache --fix $(STYLED)
	$(BIN)/ruff format --no-cache $(STYLED)
	$(BIN)/clang-format -i $(C_SOURCES)
	$(BIN)/python tools/readme.py

unit: build $(VENV)/.check
	$(PYTEST) -n 2 tests/unit tests/simulation $(NOT_QUICK:%=--ignore tests/unit/%.py)
	$(PYTEST) tests/net $(NOT_QUICK:%=tests/unit/%.py)

unit-quick: build $(VENV)/.check
	$(PYTEST) -q -n 2 tests/unit $(NOT_QUICK:%=--ignore tests/unit/%.py)

compat: $(BIN)/python
	@$(BIN)/python tools/parts.py $(MAKE) setup $(COMPAT_PARTS)

$(COMPAT_PARTS): compat-%: build $(VENV)/.check
	$(PYTEST) $(WORKERS) compat_tests/$*

compat-groups: WORKERS := -n 2
compat-transactions: WORKERS := -n 2 --dist loadgroup

compat-cluster: WORKERS := -m "not long"

# The drills that take long, mixed clusters, and ten minutes of each set of faults, those of the network and of clusters
# beside three controllers of Kafka's too: about four and a half hours.
compat-cluster-long: build $(VENV)/.check
	$(PYTEST) -m long compat_tests/cluster
	$(BIN)/python -m compat_tests.cluster torment --every
	$(BIN)/python -m compat_tests.cluster torment --every --controllers 3

compat-clients-quick: build $(VENV)/.check
	$(PYTEST) compat_tests/clients compat_tests/quickstart -k "$(QUICK_CLIENTS)"

suites: build $(VENV)/.check
	$(BIN)/python -m compat_tests.suites kafka-python

bench: build $(VENV)/.check
	$(BIN)/python -m bench $(BENCH_ARGS)
	$(PYTEST) bench/micro

bench-smoke: build $(VENV)/.check
	$(BIN)/python -m bench --quick

# Two hours and a quarter on two cores. SEED=n does the same again; what fails is printed with the command that repeats it
# alone, or with the directory of its history.
torture: build $(VENV)/.check
	$(BIN)/python -m tests.torture $(TORTURE_ARGS)
	$(BIN)/python -m compat_tests.history run
	$(BIN)/python -m compat_tests.history copy
	TRIES=1000 $(PYTEST) compat_tests/history/test_delayed_end.py
	EXCHANGE_ROUNDS=10 $(PYTEST) compat_tests/exchange

torture-short: build $(VENV)/.check
	$(BIN)/python -m tests.torture --short

# Two hours on two cores. SEED=n does the same again; what fails is printed with the command that repeats it alone.
storm: build $(VENV)/.check
	$(BIN)/python -m tests.storm requests $(STORM_ARGS)
	$(BIN)/python -m tests.storm arrays $(STORM_ARGS)
	$(BIN)/python -m tests.storm configs $(STORM_ARGS)
	$(BIN)/python -m tests.storm starts $(STORM_ARGS)

storm-short: build $(VENV)/.check
	$(BIN)/python -m tests.storm --short --seed $(STORM_SEED)

asan: build $(VENV)/.check
	tests/fuzz/run $(BIN)/python $(ASAN_SECONDS) $(TESTS)

asan-short: build $(VENV)/.check
	tests/fuzz/run $(BIN)/python $(ASAN_SHORT_SECONDS)

# About five seconds a mutant, after some minutes in which it is learned which tests run which functions.
mutants: build $(VENV)/.check
	$(BIN)/python -m tests.mutants $(MUTANTS_ARGS)

# pyenv shows only the chosen version on the PATH: the others are put behind it, where tox finds them.
tox: export PATH := $(PATH)$(shell printf ':%s' $${PYENV_ROOT:-$$HOME/.pyenv}/versions/*/bin)
tox: build
	$(PIP) install tox
	newest=$$(for minor in 14 13 12 11; do \
	    if python3.$$minor -c '$(USABLE)' 2>/dev/null; then echo py3$$minor; break; fi; done); \
	$(BIN)/tox run $(or $(TOX_ARGS),-e $$newest)

clean:
	rm -rf $(VENV) build dist .tox *.egg-info .mypy_cache .ruff_cache pykafkad/hot/*.so compat_tests/*/target compat_tests/node/node_modules
