# Two commands on a fresh machine with Python 3.11 and make: `make demo` and `make test`. Each does all its set-up.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: demo test quick lint types docs site changelog lock clean

demo: $(VENV)/.ready
	$(BIN)/refold demo

test: $(VENV)/.ready-dev lint types
	$(BIN)/python -m pytest -n $(WORKERS) -q

# The tests that start no server, process or database, and take no time to speak of.
quick: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -n $(WORKERS) -q -m "not service and not slow"

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready-dev
	$(BIN)/mypy

# Writes the pages and pictures that are made from the code.
docs: $(VENV)/.ready-dev
	$(BIN)/python tools/write_docs.py

# Builds the pages and the API reference into site/; a broken link or an unknown name fails.
site: $(VENV)/.ready-site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# Puts the fragments of changelog.d into CHANGELOG.md under the version of the package, and removes them.
changelog: $(VENV)/.ready-dev
	$(BIN)/towncrier build

lock: $(VENV)/.ready-dev
	$(BIN)/python -m uv pip compile pyproject.toml --universal --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url -q -o requirements/run.txt
	$(BIN)/python -m uv pip compile pyproject.toml --extra dev --universal --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url -q -o requirements/dev.txt
	$(BIN)/python -m uv pip compile --group site -c requirements/dev.txt --universal --generate-hashes --no-header \
	    --no-annotate --no-emit-index-url -q -o requirements/site.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: requirements/run.txt pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/run.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	touch $@

$(VENV)/.ready-dev: requirements/dev.txt $(VENV)/.ready
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	touch $@

$(VENV)/.ready-site: requirements/site.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/site.txt
	touch $@
