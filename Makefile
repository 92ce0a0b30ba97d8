# Everything a person does with this repository. `make` alone tells what there is.
#
# Python 3.11 or newer and make are enough: the first target that needs packages installs them into .venv,
# exactly those that the lock files name, and a stamp remembers it until a lock or a pyproject changes.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The interpreter that makes .venv. Named by hand (`make setup PYTHON=python3.12`) or the first that is new enough.
PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev
DISTRIBUTIONS := pyproject.toml sdk/pyproject.toml

# What it takes to run Tidewheel: the small lock, unless the large one is installed already.
READY_TO_RUN = $(if $(wildcard $(DEV_STAMP)),$(DEV_STAMP),$(RUN_STAMP))

PIP := $(BIN)/python -m pip --disable-pip-version-check
# Three workers: a test of processes waits half of its time, and two workers left two cores half idle. One file's tests stay on one
# worker, as they share servers, and files are handed out in the order in which they were collected: the slow ones first.
IN_PARALLEL := -n 3 --dist loadfile --no-loadscope-reorder
# Hundreds of processes are started by tests. Where Python is told to write no bytecode, as images of it often are, each of
# them would compile all that it imports.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-options --no-header --annotation-style line
ARGS ?=
ONLY ?=

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  \033[1m%-14s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---------------------------------------------------------------------------------------------- running it

.PHONY: demo
demo: $(READY_TO_RUN) ## Run Tidewheel with example schedules, everything in one process; sets itself up
	@$(BIN)/tidewheel dev --demo $(ARGS)

.PHONY: dev
dev: $(READY_TO_RUN) ## Run an empty Tidewheel on the embedded log (ARGS="--port 9000" passes options)
	@$(BIN)/tidewheel dev $(ARGS)

.PHONY: kafka
kafka: $(VENV)/pyvenv.cfg ## Run a local Kafka without containers, on port 9092 (ARGS="--brokers 3"); needs Java and Maven
	@$(BIN)/python deploy/kafka/broker.py $(ARGS)

.PHONY: setup
setup: $(DEV_STAMP) ## Make .venv with everything that running, checking and testing need (PYTHON= picks the interpreter)
	@echo 'Ready: $(BIN)/tidewheel'

# ------------------------------------------------------------------------------------------------ checking

.PHONY: check
check: lint ## Format, lint, types, imports and the fast tests: under a minute, before every commit
	@$(PYTEST) -q $(IN_PARALLEL) -m "not slow"

.PHONY: test
test: lint verify ## Everything: all that check does, and the whole test tree with acceptance and kill tests
	@$(PYTEST) $(IN_PARALLEL) $(ARGS)

.PHONY: lint
lint: $(DEV_STAMP)
	@$(BIN)/ruff format --quiet --check --diff .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --num-workers 2
	@$(BIN)/lint-imports --no-logo

SEEDS ?= 20
HOURS ?= 1
JOBS ?= 2
MODEL_SEQUENCES ?=
SIM_RESULTS = $(if $(filter file,$(origin RESULTS)),,--results $(RESULTS))

.PHONY: sim
sim: $(DEV_STAMP) ## Simulate whole clusters under seeded faults (SEEDS=20 HOURS=1 FIRST=1 JOBS=2 RESULTS=file; SEED=7 tells one story)
ifeq ($(filter undefined file,$(origin SEED)),)
	@$(BIN)/python -m simulation --seed $(SEED) --hours $(HOURS) $(ARGS)
else
	@$(BIN)/python -m simulation --seeds $(SEEDS) --hours $(HOURS) --first $(or $(FIRST),1) --jobs $(JOBS) $(SIM_RESULTS) $(ARGS)
	@if [ -n "$(MODEL_SEQUENCES)" ]; then MODEL_SEQUENCES=$(MODEL_SEQUENCES) $(BIN)/pytest -q tests/simulation/kafka; fi
endif

.PHONY: acceptance
acceptance: $(DEV_STAMP) ## Run the acceptance tests: a real process, used as a person uses it
	@if compgen -G 'tests/acceptance/test_*.py' >/dev/null; then $(BIN)/pytest tests/acceptance $(ARGS); \
	 else echo 'There is no tests/acceptance yet: nothing was accepted.' >&2; exit 1; fi

MINUTES ?= 20
SCHEDULES ?= 500
SEED ?= 1
KILL_EVERY ?= 3.5
BROKERS ?= 1
RESULTS ?= storms.jsonl

.PHONY: storm
storm: $(DEV_STAMP) ## Kill processes and brokers, audit, add up (MINUTES=20 SCHEDULES=500 SEED=1 KILL_EVERY=3.5 BROKERS=1)
	@STORM_MINUTES=$(MINUTES) STORM_SCHEDULES=$(SCHEDULES) STORM_SEED=$(SEED) STORM_KILL_EVERY=$(KILL_EVERY) \
	  STORM_BROKERS=$(BROKERS) STORM_RESULTS=$(RESULTS) \
	  $(BIN)/pytest tests/storm/test_storm.py $(ARGS) || failed=1; \
	  if [ -e $(RESULTS) ]; then $(BIN)/python -m tests.storm.results $(RESULTS); fi; exit $${failed:-0}

RUNS ?= 5000

.PHONY: storm-workers
storm-workers: $(DEV_STAMP) ## Kill and freeze workers alone, and account for every execution (RUNS=5000 SEED=1)
	@STORM_RUNS=$(RUNS) STORM_SEED=$(SEED) $(BIN)/pytest tests/storm/test_workers.py --log-cli-level=WARNING $(ARGS)

.PHONY: mutants
mutants: RESULTS := mutants.jsonl
mutants: SEEDS := 3
mutants: $(DEV_STAMP) ## Seed bugs and see that the simulation notices them (SEEDS=3 JOBS=2 ONLY=name RESULTS=mutants.jsonl)
	@$(BIN)/python -m simulation.mutants --seeds $(SEEDS) --jobs $(JOBS) --results $(RESULTS) \
	  $(addprefix --only=,$(ONLY)) $(ARGS)

EVERY ?= 1
YEARS ?= 2000 2040

.PHONY: zones
zones: $(DEV_STAMP) ## Walk the occurrences of all time zones a second time, some ten minutes (EVERY=10 takes one in ten; YEARS="2000 2040")
	@ZONES_EVERY=$(EVERY) ZONES_FIRST=$(firstword $(YEARS)) ZONES_LAST=$(lastword $(YEARS)) \
	  $(BIN)/pytest -q tests/zones $(ARGS)

EXAMPLES ?=

.PHONY: fuzz
fuzz: $(DEV_STAMP) ## Read hostile input at every border: no crash, no hang, no 500 (EXAMPLES=5000 of each property)
	@EXAMPLES=$(EXAMPLES) $(BIN)/pytest tests/fuzz $(ARGS)

TIMES ?= 1000

.PHONY: faults
faults: $(DEV_STAMP) ## Single faults on real brokers: those of the whole test run, and each of three brokers killed in turn
	@$(BIN)/pytest tests/faults tests/faults/three_brokers.py $(ARGS)

.PHONY: torn
torn: RESULTS = torn.jsonl
torn: $(DEV_STAMP) ## Tear transactions between owners and a broker, and audit (TIMES=1000 SEED=1 RESULTS=torn.jsonl)
	@TORN_TIMES=$(TIMES) TORN_SEED=$(SEED) TORN_RESULTS=$(RESULTS) \
	  $(BIN)/pytest tests/torn/test_torn_line.py -k many $(ARGS)

.PHONY: bench
bench: $(DEV_STAMP) ## Run the benchmarks one after another (ONLY=occurrences runs one)
	@$(BIN)/python -m bench $(ONLY)

.PHONY: docs
docs: $(DEV_STAMP) ## Check that every link between the documents leads somewhere
	@$(BIN)/pytest -q tests/house/test_documents.py

# ------------------------------------------------------------------------------------------------- changing

.PHONY: format
format: $(DEV_STAMP) ## Format the code and mend what ruff can mend by itself
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: generate
generate: $(DEV_STAMP) ## Write the published schemas and all that is generated from them
	@$(BIN)/python -m schemas.generate

.PHONY: verify
verify: $(DEV_STAMP) ## Check that what is generated is fresh and breaks no older reader
	@$(BIN)/python -m schemas.generate --check
	@$(BIN)/python -m schemas.compat

.PHONY: lock
lock: $(DEV_STAMP) ## Write both lock files anew from the .in files (ARGS=--upgrade takes newer versions)
	@$(COMPILE) $(ARGS) --output-file requirements.txt requirements.in
	@$(COMPILE) $(ARGS) --output-file requirements-dev.txt requirements-dev.in

# ------------------------------------------------------------------------------------------------ installing

$(VENV)/pyvenv.cfg:
	@python=""; \
	for candidate in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python="$$candidate"; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo 'Tidewheel needs Python 3.11 or newer; $(or $(PYTHON),python3) is older or missing.' >&2; \
	  echo 'Install one, or name it: make setup PYTHON=/path/to/python3.12' >&2; exit 1; \
	fi; \
	echo "Making $(VENV) with $$($$python --version)"; \
	"$$python" -m venv $(VENV) || { rm -rf $(VENV); echo 'On Debian the package python3-venv is needed too.' >&2; exit 1; }

$(RUN_STAMP): requirements.txt $(DISTRIBUTIONS) | $(VENV)/pyvenv.cfg
	@echo 'Installing what Tidewheel needs to run'
	@$(PIP) install --quiet --require-hashes -r requirements.txt
	@$(MAKE) distributions
	@touch $@

$(DEV_STAMP): requirements-dev.txt $(DISTRIBUTIONS) | $(VENV)/pyvenv.cfg
	@echo 'Installing what Tidewheel needs to run and to be tested'
	@$(PIP) install --quiet --require-hashes -r requirements-dev.txt
	@$(MAKE) distributions
	@touch $@

# Editable and offline: the build backend stands in the lock, so nothing is fetched that has no hash.
.PHONY: distributions
distributions:
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable ./sdk --editable .
