# Lakehelm: everything a person or CI does with the tree. `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Compiled modules are what makes the second start of anything fast: every test that starts a
# process of ours would compile the tree anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?=
PYTEST_ARGS ?=
UP_ARGS ?=
BENCH ?= $(wildcard benchmarks/[a-z]*.py)
LOCK_ARGS ?=
PAGES ?=
# What shares the machine well: no JVM, no browser. Of the rest, two files run side by side, each with engines of its
# own, the longest first (tests/conftest.py); the whole product and the browser have the machine for themselves.
LIGHT := (fast or slow or duckdb or ui or snowflake) and not rest
WHOLE := stack or browser
# Says at the end of each part where its time went.
DEAREST := --durations=15 --durations-min=10
# Where unmarked tests may be (tests/conftest.py sees to it): nothing else has to be imported for them.
FAST_ROOMS := tests/unit tests/contract/catalogs

PACKAGES_STAMP := $(VENV)/.packages-ready
SETUP_STAMP := $(VENV)/.lakehelm-ready
FAKESNOW := .venv-fakesnow
FAKESNOW_STAMP := $(FAKESNOW)/.ready
DBT := .venv-dbt
DBT_STAMP := $(DBT)/.ready

.PHONY: help
help: ## List the targets
	@echo "Lakehelm: make run starts it, make test checks it. Targets:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Knobs: PYTEST_ARGS, UP_ARGS, BENCH, LOCK_ARGS, PYTHON, e.g. make check PYTEST_ARGS='-k config'"

# --- environment -------------------------------------------------------------------------------

.PHONY: setup
setup: $(SETUP_STAMP) ## Create .venv with everything pinned in requirements.txt

$(PACKAGES_STAMP): requirements.txt
	@PYTHON="$(PYTHON)" tools/setup.sh packages $(VENV)
	@touch $@

$(SETUP_STAMP): $(PACKAGES_STAMP) pyproject.toml
	@tools/setup.sh project $(VENV)
	@touch $@

.PHONY: fakesnow
fakesnow: $(FAKESNOW_STAMP) ## Create .venv-fakesnow: what stands in for Snowflake in tests

$(FAKESNOW_STAMP): tests/fakesnow/requirements.txt
	@PYTHON="$(PYTHON)" tools/setup.sh locked $(FAKESNOW) tests/fakesnow/requirements.txt
	@touch $@

.PHONY: dbt
dbt: $(DBT_STAMP) ## Create .venv-dbt: dbt with its adapter for Trino, a client in tests

$(DBT_STAMP): tests/dbt/requirements.txt
	@PYTHON="$(PYTHON)" tools/setup.sh locked $(DBT) tests/dbt/requirements.txt
	@touch $@

.PHONY: java browser
java: ## Make sure that Java is there for Spark (installs it where it may)
	@tools/system.sh java
browser: ## Make sure that Chromium is there for the browser test (installs it where it may)
	@tools/system.sh chromium

.PHONY: lock
lock: setup ## Write requirements.txt anew from pyproject.toml (LOCK_ARGS=--upgrade for newer ones)
	CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --extra=dev --extra=snowflake --allow-unsafe \
	  --no-emit-find-links --no-emit-index-url --no-emit-trusted-host --strip-extras \
	  --output-file=requirements.txt $(LOCK_ARGS) pyproject.toml
	for name in fakesnow dbt; do \
	  CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe \
	    --no-emit-find-links --no-emit-index-url --no-emit-trusted-host --no-strip-extras \
	    --output-file=tests/$$name/requirements.txt $(LOCK_ARGS) tests/$$name/requirements.in; \
	done

# --- running -----------------------------------------------------------------------------------

.PHONY: run
run: setup java ## Start the demo: engines, agents, gateway, pages; Ctrl-C stops it
	$(BIN)/lakehelm up $(UP_ARGS)

.PHONY: pictures
pictures: setup browser ## Take the README's pictures from the demo that runs
	$(BIN)/python -m tests.e2e.pictures http://127.0.0.1:8501 docs/images $(PAGES)

.PHONY: loops
loops: setup browser ## Walk through the demo that runs in Chromium, as each of its people does
	LAKEHELM_UI_URL=http://127.0.0.1:8501 $(BIN)/pytest tests/e2e/loops.py $(PYTEST_ARGS)

.PHONY: bench
bench: setup java ## Run the benchmarks and print their figures as JSON
	@status=0; for file in $(BENCH); do \
	  echo "== $$file" >&2; $(BIN)/python "$$file" --json || status=1; \
	done; exit $$status

# --- checking ----------------------------------------------------------------------------------

.PHONY: lint type imports size gates
lint: setup ## Style, format and smells (ruff)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
type: setup ## Types (mypy, strict)
	$(BIN)/mypy
imports: setup ## Who may import whom (import-linter) and what is declared (deptry)
	$(BIN)/lint-imports --no-logo
	$(BIN)/deptry --no-ansi .
size: setup ## Module and function sizes; requirements.txt agrees with pyproject.toml
	$(BIN)/python -m tools.check_size
	$(BIN)/python -m tools.check_lock
# Side by side, the longest first; what each says stays together.
gates: setup
	@$(MAKE) --no-print-directory -j 2 --output-sync=target type imports lint size

.PHONY: check
check: gates ## All gates and the fast tests: under two minutes, no JVM
	$(BIN)/pytest -m fast -n 2 -q --hypothesis-profile=check $(FAST_ROOMS) $(PYTEST_ARGS)

.PHONY: test
test: gates java browser fakesnow dbt ## All gates and every test: what CI runs
	$(BIN)/pytest -m "$(LIGHT)" -n 2 $(DEAREST) $(PYTEST_ARGS)
	$(BIN)/pytest -m "not ($(LIGHT) or $(WHOLE))" -n 2 --dist loadfile --no-loadscope-reorder $(DEAREST) $(PYTEST_ARGS)
	$(BIN)/pytest -m "$(WHOLE)" $(DEAREST) $(PYTEST_ARGS)

.PHONY: clean clean-all
clean: ## Remove what the checks leave behind
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	  .import_linter_cache spark-warehouse metastore_db derby.log
	find . -path ./$(VENV) -prune -o -path ./var -prune -o -name __pycache__ -type d -print0 \
	  | xargs -0 rm -rf
clean-all: clean ## Remove the environment and the demo's data too (stop `make run` first)
	rm -rf $(VENV) $(FAKESNOW) $(DBT) var
