# Everything runs in .venv, which the first target that needs it makes. Needs python3 (3.11 or newer) with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
ARGS ?=
SLUICE_SHARED ?= ../shared

.DEFAULT_GOAL := help
.PHONY: help install demo run test lint format external browser bench nightly lock clean

help: ## List the targets.
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

install: $(INSTALLED) ## Install into .venv, at the tested versions.

$(INSTALLED): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit("Sluice needs Python 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint requirements.lock --editable '.[dev]'
	touch $(INSTALLED)

demo: $(INSTALLED) ## Harvest generated races and serve the result; ARGS=--once stops when all is done.
	$(BIN)/sluice demo $(ARGS)

run: $(INSTALLED) ## Harvest the live races and serve the result; ARGS is passed on.
	$(BIN)/sluice up $(ARGS)

test: $(INSTALLED) ## Run the tests that need nothing but this checkout.
	$(BIN)/pytest -m "not external and not browser and not nightly" -n auto --dist loadfile $(ARGS)

lint: $(INSTALLED) ## Check style, types and import contracts.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED) ## Rewrite the code in the project's format.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

external: $(INSTALLED) ## Run the tests against the system's PostgreSQL and Redis.
	$(BIN)/pytest -m external $(ARGS)

browser: $(INSTALLED) ## Run the tests that look at the dashboard with Chromium.
	$(BIN)/pytest -m browser $(ARGS)

bench: $(INSTALLED) ## Measure against the targets; the figures go to docs/benchmarks.md.
	$(BIN)/python -m pip install --quiet --constraint requirements.lock --editable '.[bench]'
	$(BIN)/python -m benchmarks.filter $(wildcard $(SLUICE_SHARED)/data/runs)
	$(BIN)/python -m benchmarks.rejudge $(wildcard $(SLUICE_SHARED)/data/runs)
	$(BIN)/python -m benchmarks.cluster --minhash
	$(BIN)/python -m benchmarks.snapshot $(wildcard $(SLUICE_SHARED)/data/runs)
	$(BIN)/python -m benchmarks.plan
	$(BIN)/python -m benchmarks.harvest $(wildcard $(SLUICE_SHARED)/data/runs)

nightly: $(INSTALLED) ## Run the slow suites: load, chaos, the installed wheel.
	$(BIN)/python -m pip install --quiet --constraint requirements.lock --editable '.[fuzz]'
	$(BIN)/pytest -m nightly $(ARGS)

lock: ## Write requirements.lock anew from the newest versions pyproject.toml allows.
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet '.[dev]'
	head -n 1 requirements.lock > build/requirements.lock
	build/lock/bin/python -m pip freeze | grep -v '^sluice-sn15' >> build/requirements.lock
	mv build/requirements.lock requirements.lock

clean: ## Remove what the targets above made, but no data.
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
