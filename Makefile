# Everything runs from .venv, which `make install` fills from the hash-locked requirements.
# `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
SEEDS ?= 1000
SEED ?=
# PEERS=1: messages of the cores travel through peer machines
PEERS ?=
MINUTES ?= 10
WORKERS ?= 2
KILLS ?= 2000
RUNS ?= 20
FLIPS ?= 1000
HOURS ?= 1
# Flags for `make soak`, as SOAK=--note
SOAK ?=
# Flags for `make bench-node`, `bench-abuse`, `bench-cluster` and `bench-order`, as BENCH='--cases post-64 --seconds 2 --rounds 1'
BENCH ?=
# Flags for `make fuzz`, as FUZZ='--each --peers'
FUZZ ?=
# Flags for `make run`, as RUN='--api-listen 127.0.0.1:9470'
RUN ?=
# Flags for `make up`
UP ?=

BIN := .venv/bin
STAMP := .venv/installed
LOCKS := requirements/run.lock requirements/build.lock requirements/test.lock requirements/analytics.lock
TYPED := quipu $(wildcard tests bench)
# Tests that are about the pure parts
COVERED_BY := $(wildcard tests/unit/ledger tests/unit/p2p tests/property tests/conformance tests/vectors)
FAST_GROUPS := $(wildcard tests/unit tests/property tests/contract tests/vectors tests/conformance)
PIP := $(BIN)/python -m pip --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: help install system run demo test check lint format types layers format-check quick-tests \
	lock sim replay kill-test fault-test linear-test flip-test analytics-test torture soak coverage mutants fuzz ablation bench bench-load \
	bench-core bench-node \
	bench-abuse bench-cluster bench-order bench-pruning bench-spark bench-page reference figures screenshots clean up

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## fill .venv with the locked packages and this tree (does nothing when up to date)

$(STAMP): pyproject.toml requirements/test.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "quipu needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
			"Name another one: make install PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { \
		echo "$(PYTHON) cannot make a virtual environment: install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv
	$(PIP) install --quiet --require-hashes --requirement requirements/test.lock
	$(PIP) install --quiet --quiet --no-deps --no-build-isolation --editable .
	@touch $@

run: install ## run a node: data in ./var, API 127.0.0.1:8470, OPS 127.0.0.1:8472
	@exec $(BIN)/quipu run $(RUN)

up: ## a healthy cluster of three nodes in containers (UP='--nodes 5 --observability')
	@docker/up $(UP)

demo: install ## run a simulated world of three nodes and print what it proves
	@$(BIN)/python -m tests.simulation demo

system: ## install what the whole suite needs beside Python (as root, Debian or Ubuntu)
	@scripts/system-packages --install

test: install lint types layers ## the whole suite: what CI runs; last, one by one, what promises seconds
	@scripts/system-packages
	@scripts/whole-suite $(WORKERS)

check: install ## all that is fast, side by side: before each commit
	@$(MAKE) --no-print-directory --keep-going --jobs 4 --output-sync=target \
		lint types layers quick-tests

lint: install ## format check and lint rules
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

format: install ## rewrite the code to the house format, with the safe fixes
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: install ## mypy, strict
	@$(BIN)/mypy $(TYPED)

layers: install ## imports point down only
	@$(BIN)/lint-imports

quick-tests: install ## unit, property, contract and conformance tests, vectors, house rules
	@$(PYTEST) --dist worksteal --quiet $(FAST_GROUPS)

sim: install ## SEEDS=1000: that many seeded worlds; PEERS=1: through peer machines
	@$(BIN)/python -m tests.simulation run --seeds $(SEEDS) $(if $(PEERS),--peers)

replay: install ## SEED=n: one seeded world again, with its transcript
	@test -n "$(SEED)" || { echo "say which: make replay SEED=42" >&2; exit 2; }
	@$(BIN)/python -m tests.simulation replay $(SEED) $(if $(PEERS),--peers)

ablation: install ## take each safeguard out; the simulator, or a named test, notices
	@$(BIN)/python -m tests.simulation ablation
	@$(BIN)/python -m tests.safeguards

kill-test: install ## KILLS=2000: nodes under load, killed at every place; nothing may be lost
	@$(BIN)/python -m tests.process --kills $(KILLS)

fault-test: install ## MINUTES=10: a cluster of real nodes under faults of every kind
	@$(BIN)/python -m tests.process.faults --minutes $(MINUTES) $(FAULTS)

flip-test: install ## FLIPS=1000: random bits flipped in a node's data file, stopped and running
	@$(BIN)/python -m tests.process.flips --flips $(FLIPS) $(if $(SEED),--seed $(SEED)) \
		$(if $(REPAIR),--repair $(REPAIR))

analytics-test: install ## builds quipu-analytics and runs a Spark job over the dumps of a cluster of its containers (root)
	@$(BIN)/python -m tests.docker.analytics

torture: install ## MINUTES=10: clusters of 3 and 5 under every kind of harm; TORTURE='--seed 7'
	@$(BIN)/python -m tests.process.torture --minutes $(MINUTES) $(TORTURE)

soak: install ## HOURS=1: three nodes under mixed load; do memory, descriptors, disk, latency grow?
	@$(BIN)/python -m tests.process.soak --hours $(HOURS) $(SOAK)

linear-test: install ## RUNS=20: real clusters under faults, judged by porcupine (needs Go)
	@$(BIN)/python -m tests.linear.real --runs $(RUNS)

fuzz: install ## MINUTES=10: hostile bytes into every decoder
	@$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(FUZZ)

coverage: install ## branches of the pure parts that the fast tests do not take
	@$(PIP) install --quiet --require-hashes --requirement requirements/coverage.lock
	@$(BIN)/coverage run -m pytest -n 0 -q -p no:cacheprovider $(COVERED_BY)
	@$(BIN)/coverage report

mutants: install ## changes quorum, receipts and cut in one place at a time; who is not noticed?
	@$(BIN)/python -m tests.mutants $(MUTANTS)

bench: install ## BENCH='--help': three nodes beside three of etcd, NATS and Redis; BENCH=--quick takes 2 minutes
	@$(BIN)/python -m bench.compare $(BENCH)

bench-load: install ## BENCH='--help': the generator of load beside wrk, on the same node
	@$(BIN)/python -m bench.generator $(BENCH)

bench-core: install ## speed of the pure path beside the machine's own limits
	@$(BIN)/python -m bench.core

bench-node: install ## BENCH='--help': a node over HTTP beside a bare loop of the same path
	@$(BIN)/python -m bench.node $(BENCH)

bench-abuse: install ## BENCH='--help': a node under twice its peak, and beside clients that mean no good
	@$(BIN)/python -m bench.resilience $(BENCH)

bench-cluster: install ## BENCH='--help': three nodes beside a bare loop of three processes
	@$(BIN)/python -m bench.cluster $(BENCH)

bench-order: install ## BENCH='--help': the order of three nodes beside three of etcd
	@$(BIN)/python -m bench.order $(BENCH)

bench-spark: install ## BENCH='--help': the analysis on Spark beside DuckDB and rustworkx
	@$(BIN)/python -m bench.spark $(BENCH)

bench-page: install ## BENCH='--help': an hour's worth of entries under the eyes of a page (needs chromium)
	@$(BIN)/python -m bench.page $(BENCH)

bench-pruning: install ## what pruning to a tenth gives back: disk, start, catching up
	@$(BIN)/python -m bench.pruning $(BENCH)

reference: install ## write the reference pages of routes, problems and commands anew
	@$(BIN)/python -m tests.api.reference

screenshots: install ## take the pictures of the page in docs/screenshots anew (needs chromium)
	@$(BIN)/python -m tests.browser.screenshots

figures: install ## write the tables of figures in docs anew
	@$(BIN)/python -m tests.simulation figures
	@$(BIN)/python -m tests.settings_page
	@$(BIN)/python -m tests.dumps_page
	@$(BIN)/python -m tests.torture_page

# A resolver writes the locks; --no-emit-* keeps the place the packages came from out of them.
lock: install ## resolve pyproject.toml anew into requirements/*.lock
	@LOCK() { CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --upgrade \
		--generate-hashes --allow-unsafe --strip-extras --no-emit-index-url \
		--no-emit-trusted-host --no-emit-find-links --no-emit-options --annotation-style=line \
		--output-file "$$@" pyproject.toml; }; \
	LOCK requirements/run.lock; \
	LOCK requirements/build.lock --only-build-deps --all-build-deps; \
	LOCK requirements/test.lock --extra test --extra analytics; \
	LOCK requirements/analytics.lock --extra analytics; \
	CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --upgrade --generate-hashes \
		--allow-unsafe --strip-extras --no-emit-index-url --no-emit-trusted-host \
		--no-emit-find-links --no-emit-options --annotation-style=line \
		--output-file requirements/coverage.lock requirements/coverage.in

clean: ## remove caches and build products (not .venv)
	@rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
