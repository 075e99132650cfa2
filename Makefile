# Only CPython 3.11 or newer, pip and make are assumed; `make help` says what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# Assertions of the tests are rewritten: without bytecode by every worker, every time.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
SELECTED := not conformance and not faults and not security
JUDGED := conformance
FIRST_HALF := tests/plugins/[a-h]*
QUICK = $(PYTEST) -p no:schemathesis -n $(WORKERS) --dist worksteal
SOURCES := kernel libraries plugins tests benchmarks tools
AIMOCK := @copilotkit/aimock@1.43.0
OPENAI := openai@6.49.0
EVERYTHING := @modelcontextprotocol/server-everything@2026.8.31
LITELLM := litellm[proxy]==1.106.2
LLM := llm==0.36
PROGRAMS := .cache/litellm/.installed .cache/programs/llm/.installed \
  .cache/programs/openapi/.installed
JUDGES_OF_CHANNELS := .cache/programs/synapse/.installed .cache/servers/.fetched \
  .cache/programs/nostr/.installed .cache/programs/pds/.installed \
  .cache/programs/telegram/.installed
GENERATOR := openapi-python-client==0.29.1 mypy==2.4.1
ANTHROPIC := @anthropic-ai/sdk@1.12.0
SYNAPSE := matrix-synapse==1.163.2
NOSTR_RELAY := nostr-relay==1.14
NODE_NAME := node-linux-$(if $(filter aarch64,$(shell uname -m)),arm64,x64)
PDS := @atproto/pds@0.5.35 $(NODE_NAME)@22.23.3
TELEGRAM := telegram-test-api@4.2.1
# Debian's servers that judge channels, with libraries that a small system has not.
SERVERS := ngircd libident libwrap0 mosquitto libcjson1 libdlt2 libmosquitto1 \
  libwebsockets17 libev4 dovecot-core dovecot-imapd libsodium23 libstemmer0d \
  libexttextcat-2.0-0 liblua5.3-0 mumble-server libzeroc-ice3.7 libprotobuf32 \
  libavahi-compat-libdnssd1 libavahi-client3 libavahi-common3 libqt5core5a \
  libqt5dbus5 libqt5network5 libqt5sql5 libqt5sql5-sqlite libqt5xml5 \
  libdouble-conversion3 libpcre2-16-0 libicu72 prosody lua5.4 liblua5.4-0 \
  lua-expat libexpat1 lua-filesystem lua-sec lua-socket lua-bitop
MCP_SUITE := @modelcontextprotocol/conformance@0.2.0-alpha.12 node@22.23.3
MCP_INSPECTOR := @modelcontextprotocol/inspector@2.12.0
# One more than there are processors: many tests wait for a daemon or a browser.
WORKERS = $(shell $(PYTHON) -c 'import os; print(1 + (os.cpu_count() or 1))')
# What pip does for other packages: a start that may write no bytecode (a read-only
# tree, PYTHONDONTWRITEBYTECODE) would compile every module again.
COMPILE := $(BIN)/python -m compileall -q kernel libraries plugins

.DEFAULT_GOAL := help
.PHONY: help run test check bench bench-peers faults security conformance offline
.PHONY: judges programs channels lock newest clean

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

run: $(VENV)/.installed ## start the daemon in the foreground
	@$(COMPILE)
	@exec $(BIN)/agenthost start

test: $(VENV)/.rewritten ## run the quick tests
	@$(COMPILE)
	$(QUICK) -m "$(SELECTED)"

check: $(VENV)/.installed-judges ## format, lint, types, borders, sizes, docs, changes
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@mkdir -p .cache
	$(BIN)/bandit --quiet -c pyproject.toml -r kernel libraries plugins tools \
	  2>.cache/bandit.log || { cat .cache/bandit.log; exit 1; }
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

bench-peers: $(VENV)/.installed-dev .cache/litellm/.installed ## measure /v1 beside LiteLLM
	@$(COMPILE)
	@$(BIN)/python -m benchmarks.peers

faults: $(VENV)/.installed-dev ## slow fault injection, with examples drawn anew
	AGENTHOST_RANDOM=1 $(PYTEST) -m faults

security: $(VENV)/.installed-dev ## attacks by the thousand, and what protections cost
	$(PYTEST) -m security -s

# Half of the time is spent on waiting for servers and browsers. The files come in their
# order, since the one of a single test takes the longest.
conformance: judges programs ## outside suites, vendors' clients, all of the page
	$(PYTEST) -m "$(JUDGED)" -n $$(($(WORKERS) + 1)) --dist loadfile \
	  --no-loadscope-reorder

# Root of a user namespace may raise its loopback, but is no root: the tests run as who
# called, in a second one. A browser looks for the network on its own, so what tried to
# leave is counted before it comes.
offline: $(VENV)/.installed-dev ## the quick tests with the network cut (Linux)
	@if [ "$$(id -u)" = 0 ]; then cut="unshare --net"; same=; \
	else cut="unshare --map-root-user --net"; \
	  same="unshare --user --map-user=$$(id -u) --map-group=$$(id -g)"; fi; \
	$$cut sh -ec "ip link set lo up; \
	  $$same env $(QUICK) -m '$(SELECTED) and not browser'; \
	  $(BIN)/python tools/check_silence.py; \
	  $$same env $(QUICK) -m '$(SELECTED) and browser'"

judges: $(VENV)/.installed-judges ## install vendors' clients and a scripted model server
	@if command -v npm >/dev/null 2>&1; then \
	  test -d .cache/npm/node_modules/@copilotkit/aimock || \
	    npm install --silent --no-audit --no-fund --prefix .cache/npm $(AIMOCK); \
	  test -d .cache/npm/node_modules/@modelcontextprotocol/server-everything || \
	    npm install --silent --no-audit --no-fund --prefix .cache/npm $(EVERYTHING); \
	  test -d .cache/npm/node_modules/openai || \
	    npm install --silent --no-audit --no-fund --prefix .cache/npm $(OPENAI); \
	  test -d .cache/npm/node_modules/@anthropic-ai/sdk || \
	    npm install --silent --no-audit --no-fund --prefix .cache/npm $(ANTHROPIC); \
	  test -d .cache/npm/node_modules/@modelcontextprotocol/conformance || \
	    npm install --silent --no-audit --no-fund --prefix .cache/npm $(MCP_SUITE); \
	  test -d .cache/npm/node_modules/@modelcontextprotocol/inspector || \
	    npm install --silent --no-audit --no-fund --prefix .cache/npm $(MCP_INSPECTOR); \
	else echo "no npm: tests that need node are skipped" >&2; fi

# Each has an environment of its own: ours stays small, and they agree with none.
programs: $(PROGRAMS) ## install programs that speak to us from outside

.cache/litellm/.installed: WANTED = $(LITELLM)
.cache/programs/llm/.installed: WANTED = $(LLM)
.cache/programs/openapi/.installed: WANTED = $(GENERATOR)
.cache/programs/synapse/.installed: WANTED = $(SYNAPSE)
.cache/programs/nostr/.installed: WANTED = $(NOSTR_RELAY)
$(PROGRAMS) .cache/programs/synapse/.installed .cache/programs/nostr/.installed:
	@rm -rf $(@D) && $(PYTHON) -m venv $(@D)
	@$(@D)/bin/pip --quiet --disable-pip-version-check install $(WANTED:%='%')
	@touch $@

# Its database is built for this node: no system has the one that it asks for.
.cache/programs/pds/.installed:
	@if command -v npm >/dev/null 2>&1; then \
	  mkdir -p $(@D) && cd $(@D) && \
	  npm install --silent --no-audit --no-fund --ignore-scripts $(PDS) && \
	  PATH="$$PWD/node_modules/$(NODE_NAME)/bin:$$PATH" npm rebuild --silent \
	    better-sqlite3 --nodedir="$$PWD/node_modules/$(NODE_NAME)" && \
	  touch .installed; \
	else echo "no npm: tests by a real host of Bluesky are skipped" >&2; fi

.cache/programs/telegram/.installed:
	@if command -v npm >/dev/null 2>&1; then \
	  npm install --silent --no-audit --no-fund --prefix $(@D) $(TELEGRAM) && \
	  touch $@; \
	else echo "no npm: tests by an emulator of Telegram are skipped" >&2; fi

channels: $(VENV)/.installed-judges $(JUDGES_OF_CHANNELS) ## channels, by real servers
	$(PYTEST) tests/plugins/channels -n $(WORKERS) --dist loadscope -rs

# Unpacked and not installed: the system stays as it is. The tests lay them over /usr
# for the server alone, which root may do; a system's own servers are taken first.
.cache/servers/.fetched:
	@mkdir -p $(@D)/debs $(@D)/root
	@if command -v apt-get >/dev/null 2>&1; then cd $(@D)/debs; \
	  for package in $(SERVERS); do \
	    apt-get download -qq "$$package" 2>/dev/null || true; done; \
	  for file in *.deb; do test ! -e "$$file" || dpkg -x "$$file" ../root; done; \
	else echo "no apt-get: what needs a server is skipped" >&2; fi
	@touch $@

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
	.cache/newest/bin/python -m pytest -m "$(SELECTED)" \
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

# Assertions are rewritten once by two processes; workers would each do all of that.
$(VENV)/.rewritten: $(VENV)/.installed-dev
	@for half in '$(FIRST_HALF)' tests\ --ignore-glob='*/$(FIRST_HALF)'; do \
	  $(PYTEST) -p no:schemathesis -m "$(SELECTED)" --collect-only -qq $$half \
	    >/dev/null & done; wait
	@touch $@

$(VENV)/.installed-judges: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the vendors' clients into $(VENV) ..."
	@$(PIP) install -c constraints.txt -e '.[dev,judges]'
	@touch $(VENV)/.installed $(VENV)/.installed-dev $@
