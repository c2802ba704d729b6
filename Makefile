PYTHON ?= python3
BIN := .venv/bin
export HF_HUB_OFFLINE ?= 1

.DEFAULT_GOAL := help
.PHONY: help demo paper-small test lint typecheck bench

PAPER := $(basename $(notdir $(wildcard studies/paper/*.yaml)))

help:  ## Explain these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

demo: .venv/installed  ## Run the default study and write its page (offline after the install)
	$(BIN)/mtdlab sweep studies/mtd.yaml
	$(BIN)/mtdlab report --study mtd

# exit code 3 is a study with failed trials: the others and the page come nevertheless
paper-small: .venv/installed  ## Run the paper's studies, small, and write a page of them all
	@failed=0; \
	for study in $(PAPER); do \
	  $(BIN)/mtdlab sweep studies/paper/$$study.yaml --profile small || \
	    { code=$$?; [ $$code = 3 ] || exit $$code; failed=$$code; }; \
	done; \
	$(BIN)/mtdlab report --name paper $(PAPER:%=--study %-small) || exit $$?; \
	exit $$failed

test: .venv/tested  ## Run the tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: .venv/tested  ## Check style and layout with ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: .venv/tested  ## Check types with mypy
	$(BIN)/mypy

bench: .venv/tested  ## Measure training, embedding and the sweep's overhead
	$(BIN)/python tests/benchmarks/bench.py

# torch first and by itself: pip then takes a CPU build where one is at hand
.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/tested: .venv/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@
