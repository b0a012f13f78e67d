# Two commands on a fresh machine with Python 3.11 and make: `make demo` and `make test`. Each does all its set-up.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# One more than the two cores of CI: many tests wait for a server or a process.
WORKERS ?= 3
# A worker begins with a half of the tests, so that it shares what modules and sessions set up, and takes over from the
# other at the end.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q
# Compiled files are written, whatever the environment says: many tests start a command, which loads them.
export PYTHONDONTWRITEBYTECODE :=

# The frameworks that have an adapter: an extra, a lock, an environment and a file of tests for each.
ADAPTERS := agent-framework google-adk haystack langchain litellm openai-agents pydantic-ai strands

# Those that are no Python: a folder of js/ with its tests. They run with all adapters, where npm is installed.
SHIMS := $(if $(filter file,$(origin ADAPTERS)),$(if $(shell command -v npm),refold-ai-sdk))

.PHONY: demo demo-page test test-deep adapters quick lint types docs screenshots notebooks page-pictures try-page site dist changelog lock lock-adapters clean

demo: $(VENV)/.ready
	$(BIN)/refold demo
	@echo "make demo-page                  these conversations in a browser"

# Opens the page over the demo's conversations, on this machine alone, until Ctrl-C.
demo-page: $(VENV)/.ready-page
	$(BIN)/python -m tools.page_store $(VENV)/demo-page.db
	$(BIN)/refold page --store $(VENV)/demo-page.db

# Types are checked while the tests run, and reported after them; either fails the target.
test: $(VENV)/.ready-dev lint
	@$(BIN)/mypy >$(VENV)/types.log 2>&1 & types=$$!; \
	$(PYTEST); tests=$$?; \
	wait $$types; types=$$?; echo "mypy:"; cat $(VENV)/types.log; \
	exit $$((tests | types))

# The same tests with every combination, full sizes and many random examples (see tests/depth.py).
test-deep: $(VENV)/.ready-dev
	REFOLD_DEEP=1 $(PYTEST)

# The laws of the adapters, each with the real framework; ADAPTERS="langchain" takes one of them.
adapters: $(ADAPTERS:%=adapter-%) $(SHIMS:%=shim-%)

adapter-%: .venv-adapters/%/.ready
	.venv-adapters/$*/bin/python -m pytest -n $(WORKERS) -q tests/adapters/test_$(subst -,_,$*).py

shim-%: js/%/node_modules/.ready $(VENV)/.ready-dev
	$(BIN)/python -m pytest -q js/$*

# The tests that start no server, process or database, and take no time to speak of.
quick: $(VENV)/.ready-dev
	$(PYTEST) -m "not service and not slow"

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready-dev
	$(BIN)/mypy

# Writes the pages and pictures that are made from the code.
docs: $(VENV)/.ready-dev
	$(BIN)/python tools/write_docs.py

# Takes the pictures of the terminal in the docs anew; that of `refold cost` only where REFOLD_SHARED names sessions.
screenshots: $(VENV)/.ready-dev
	$(BIN)/python -m tools.screenshots

# Looks at the page in Chromium, or takes its pictures in the docs anew; needs npm and /usr/bin/chromium.
try-page: $(VENV)/.ready-browser
	$(BIN)/python -m tools.try_page

page-pictures: $(VENV)/.ready-browser
	$(BIN)/python -m tools.try_page --pictures

# Runs the notebooks of the examples, and writes their outputs into them.
notebooks: $(VENV)/.ready-notebooks
	$(BIN)/python tools/run_notebooks.py

# Builds the pages and the API reference into site/; a broken link or an unknown name fails.
site: $(VENV)/.ready-site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# Builds the wheel and the source archive, checks them, installs the wheel in a clean environment, and runs it there.
dist: $(VENV)/.ready-dist
	rm -rf dist
	$(BIN)/python -m uv build -q --python $(BIN)/python
	$(BIN)/python -m twine check --strict dist/*.whl dist/*.tar.gz
	$(PYTHON) -m venv dist/.venv
	dist/.venv/bin/python -m pip install -q --disable-pip-version-check dist/*.whl
	cd dist && .venv/bin/refold demo --json >/dev/null && .venv/bin/refold --version

# Puts the fragments of changelog.d into CHANGELOG.md under the version of the package, and removes them.
changelog: $(VENV)/.ready-dev
	$(BIN)/towncrier build

lock: $(VENV)/.ready-dev
	$(BIN)/python -m uv pip compile pyproject.toml --universal --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url -q -o requirements/run.txt
	$(BIN)/python -m uv pip compile pyproject.toml --extra dev --universal --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url -q -o requirements/dev.txt
	$(BIN)/python -m uv pip compile pyproject.toml --extra gateway --extra postgres -c requirements/dev.txt --universal \
	    --generate-hashes --no-header --no-annotate --no-emit-index-url -q -o requirements/gateway.txt
	$(BIN)/python -m uv pip compile --group site -c requirements/dev.txt --universal --generate-hashes --no-header \
	    --no-annotate --no-emit-index-url -q -o requirements/site.txt
	$(BIN)/python -m uv pip compile --group dist -c requirements/dev.txt --universal --generate-hashes --no-header \
	    --no-annotate --no-emit-index-url -q -o requirements/dist.txt
	$(BIN)/python -m uv pip compile --group notebooks -c requirements/dev.txt --universal --generate-hashes --no-header \
	    --no-annotate --no-emit-index-url -q -o requirements/notebooks.txt
	$(BIN)/python -m uv pip compile --group browser -c requirements/dev.txt --universal --generate-hashes --no-header \
	    --no-annotate --no-emit-index-url -q -o requirements/browser.txt

lock-adapters: $(ADAPTERS:%=lock-adapter-%)

lock-adapter-%: $(VENV)/.ready-dev
	$(BIN)/python -m uv pip compile pyproject.toml $(wildcard requirements/adapters/$*.in) --extra $* --extra testing --group adapters --universal \
	    --generate-hashes --no-header --no-annotate --no-emit-index-url -q -o requirements/adapters/$*.txt

clean:
	rm -rf $(VENV) .venv-adapters js/*/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: requirements/run.txt pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/run.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	touch $@

# pip compiles one file after the other; what fails here are templates, which nobody imports
$(VENV)/.ready-dev: requirements/dev.txt $(VENV)/.ready
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-compile --require-hashes -r requirements/dev.txt
	-$(BIN)/python -m compileall -q -j 0 $(VENV)/lib src >/dev/null
	touch $@

$(VENV)/.ready-page: requirements/gateway.txt $(VENV)/.ready
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/gateway.txt
	touch $@

$(VENV)/.ready-site: requirements/site.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/site.txt
	touch $@

$(VENV)/.ready-notebooks: requirements/notebooks.txt $(VENV)/.ready
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/notebooks.txt
	touch $@

$(VENV)/.ready-browser: requirements/browser.txt $(VENV)/.ready-dev
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/browser.txt
	touch $@

.PRECIOUS: .venv-adapters/%/.ready
.venv-adapters/%/.ready: requirements/adapters/%.txt
	$(PYTHON) -m venv .venv-adapters/$*
	.venv-adapters/$*/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r $<
	.venv-adapters/$*/bin/python -m pip install -q --disable-pip-version-check --no-deps -e .
	touch $@

.PRECIOUS: js/%/node_modules/.ready
js/%/node_modules/.ready: js/%/package-lock.json
	npm ci --prefix js/$* --silent --no-audit --no-fund
	touch $@

$(VENV)/.ready-dist: requirements/dist.txt $(VENV)/.ready-dev
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dist.txt
	touch $@
