PYTHON ?= python3
BIN := .venv/bin
export HF_HUB_OFFLINE ?= 1
# each of the processes that tests start would compile the package again
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo paper-small test test-long mutation evidence docs figures gallery lint typecheck bench

# two processes: a third would import all packages, and start its servers, again; one thread each
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --durations=20
MUTATION = $(BIN)/python tests/mutation/run.py
PAPER := $(basename $(notdir $(wildcard studies/paper/*.yaml)))

help:  ## Explain these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

demo: .venv/installed  ## Run the default study and write its page (offline after the install)
	$(BIN)/mtdlab sweep studies/mtd.yaml
	$(BIN)/mtdlab report --study mtd

# exit code 3: some trials failed; the other studies and the page are made nevertheless
paper-small: .venv/installed  ## Run the paper's studies, small, and write a page of them all
	@failed=0; \
	for study in $(PAPER); do \
	  $(BIN)/mtdlab sweep studies/paper/$$study.yaml --profile small || \
	    { code=$$?; [ $$code = 3 ] || exit $$code; failed=$$code; }; \
	done; \
	$(BIN)/mtdlab report --name paper $(PAPER:%=--study %-small) || exit $$?; \
	exit $$failed

test: .venv/tested  ## Run the tests, except those marked slow
	$(PYTEST) -m "not slow"

test-long: .venv/test-long  ## Run all tests, then `make mutation`
	$(PYTEST)
	$(MUTATION)

mutation: .venv/test-long  ## Count how many of 100 mutations of the code the tests detect
	$(MUTATION)

evidence: .venv/tested  ## Simulate error rates, coverage and power of the verdict (15 to 40 minutes)
	OMP_NUM_THREADS=1 $(BIN)/python tests/evidence/run.py

docs: .venv/installed  ## Generate the reference pages in docs/reference
	$(BIN)/python -m tests.docs.reference docs/reference

# of each study: its figure, and the file in which the documentation shows it
FIGURES := mtd/mtd_curve:reports/mtd sufficiency/sufficiency:docs/gallery/sufficiency \
  robustness/robustness:docs/gallery/robustness \
  methods/spherical_cap:docs/methods/spherical_cap

figures:  ## Copy the figures of the pages in reports/ into the README and docs/
	@for each in $(FIGURES); do \
	  page=$${each%%/*}; name=$${each#*/}; \
	  made=reports/$$page/figures/$${name%%:*}.png; shown=$${each#*:}.png; \
	  if [ -f $$made ]; then cp $$made $$shown && echo "$$shown"; \
	  else echo "$$shown is left as it is: mtdlab report $$page makes $$made"; fi; \
	done

gallery: .venv/installed  ## Make the pages of docs/gallery anew from their data (two minutes)
	$(BIN)/python tests/docs/gallery.py

lint: .venv/tested  ## Check style and layout with ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: .venv/tested  ## Check types with mypy
	$(BIN)/mypy

bench: .venv/tested  ## Measure training, embedding and the sweep's overhead
	$(BIN)/python tests/benchmarks/bench.py

# without bytecode: what is imported is compiled then, a tenth of what is installed
PIP = $(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

# torch is installed first and separately, so that pip uses a CPU build if one is available; the pip of
# the constraints takes three fifths of the time of that which comes with Python 3.11
.venv/torch: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --upgrade pip
	$(PIP) torch
	touch $@

.venv/installed: .venv/torch
	$(PIP) -e .
	touch $@

# does not depend on .venv/installed: installing the package twice would take seconds
.venv/tested: .venv/torch
	$(PIP) -e '.[test]'
	touch .venv/installed $@

.venv/test-long: .venv/tested
	$(PIP) -e '.[test-long]'
	touch $@
