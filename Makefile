# Only CPython 3.11 or newer, pip and make are assumed; `make help` says what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Assertions of the tests are rewritten: without bytecode by every worker, every time.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
SOURCES := kernel libraries plugins tests benchmarks tools
AIMOCK := @copilotkit/aimock@1.43.0
OPENAI := openai@6.49.0
# One more than there are processors: many tests wait for a daemon or a browser.
WORKERS = $(shell $(PYTHON) -c 'import os; print(1 + (os.cpu_count() or 1))')
# What pip does for other packages: a start that may write no bytecode (a read-only
# tree, PYTHONDONTWRITEBYTECODE) would compile every module again.
COMPILE := $(BIN)/python -m compileall -q kernel libraries plugins

.DEFAULT_GOAL := help
.PHONY: help run test check bench faults conformance judges lock newest clean

help: ## show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

run: $(VENV)/.installed ## start the daemon in the foreground
	@$(COMPILE)
	@exec $(BIN)/agenthost start

test: $(VENV)/.installed-dev ## run the quick tests
	@$(COMPILE)
	$(PYTEST) -p no:schemathesis -m "not conformance and not faults" \
	  -n $(WORKERS) --dist worksteal

check: $(VENV)/.installed-dev ## format, lint, types, borders, sizes, docs, changes
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports
	$(BIN)/python tools/check_sizes.py
	$(BIN)/python tools/hook_docs.py --check
	$(BIN)/python tools/config_docs.py --check
	$(BIN)/python tools/manifest_docs.py --check
	$(BIN)/python tools/provider_docs.py --check
	$(BIN)/python tools/check_changes.py

bench: $(VENV)/.installed-dev ## measure every row beside its yardstick
	@$(COMPILE)
	@missed=0; for part in run dialects desktop_shell; do \
	  $(BIN)/python -m benchmarks.$$part || missed=1; done; exit $$missed

faults: $(VENV)/.installed-dev ## slow fault injection
	$(PYTEST) -m faults

conformance: judges ## outside suites, vendors' clients, all of the page
	$(PYTEST) -m conformance -n $(WORKERS) --dist loadfile

judges: $(VENV)/.installed-judges ## install vendors' clients and a scripted model server
	@if command -v npm >/dev/null 2>&1; then \
	  test -d .cache/npm/node_modules/@copilotkit/aimock || \
	    npm install --silent --no-audit --no-fund --prefix .cache/npm $(AIMOCK); \
	  test -d .cache/npm/node_modules/openai || \
	    npm install --silent --no-audit --no-fund --prefix .cache/npm $(OPENAI); \
	else echo "no npm: tests that need node are skipped" >&2; fi

lock: ## write constraints.txt anew: the newest versions there are
	@rm -rf .cache/lock && $(PYTHON) -m venv .cache/lock
	@.cache/lock/bin/pip --quiet --disable-pip-version-check install \
	  -e '.[dev,judges]'
	@{ sed '/==/,$$d' constraints.txt; \
	  .cache/lock/bin/pip freeze --exclude-editable; } > .cache/constraints.txt
	@mv .cache/constraints.txt constraints.txt && rm -rf .cache/lock

newest: ## run the quick tests with the newest version of every dependency
	@rm -rf .cache/newest && $(PYTHON) -m venv .cache/newest
	@.cache/newest/bin/pip --quiet --disable-pip-version-check install -e '.[dev]'
	.cache/newest/bin/python -m pytest -m "not conformance and not faults" \
	  -n auto --dist worksteal

clean: ## remove the environment and what tools left behind
	rm -rf $(VENV) .cache build dist .mypy_cache .ruff_cache .pytest_cache
	rm -rf .hypothesis .import_linter_cache
	find kernel libraries plugins tests benchmarks tools -name __pycache__ -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "agenthost needs Python 3.11 or newer; '$(PYTHON)' is" \
	    "$$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Install one and name it: make $(MAKECMDGOALS) PYTHON=python3.11" >&2; \
	  exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "On Debian and Ubuntu, 'apt-get install python3-venv' brings it." >&2; \
	  exit 1; }

# A stamp is younger than pyproject.toml once its install went through, so that a
# second run needs no network.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing agenthost into $(VENV) ..."
	@$(PIP) install -c constraints.txt -e .
	@$(COMPILE)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing agenthost and its development tools into $(VENV) ..."
	@$(PIP) install -c constraints.txt -e '.[dev]'
	@$(COMPILE)
	@touch $(VENV)/.installed $@

$(VENV)/.installed-judges: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the vendors' clients into $(VENV) ..."
	@$(PIP) install -c constraints.txt -e '.[dev,judges]'
	@touch $(VENV)/.installed $(VENV)/.installed-dev $@
