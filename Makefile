# make demo, make test: everything else they need they set up themselves, in .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

# One thread: the networks here are tiny, and threads make them slower.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-slow check-records lint perf docs clean

demo: $(READY)
	@$(BIN)/r2et demo

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow"

# What takes long: hunts in large networks, Ray, whole trainings, every block of every page.
test-slow: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile -m slow

# That committed records are what pages and promises say; the code is not run.
check-records: $(READY)
	$(BIN)/python -m pytest checks

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

perf: $(READY)
	$(BIN)/python perf/core.py
	$(BIN)/python perf/steps.py

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is in site/index.html"

clean:
	rm -rf $(VENV) site

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -c constraints.txt -e '.[dev,graph]'
	@touch $@

$(VENV)/.docs: $(READY)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -c constraints.txt -e '.[docs]'
	@touch $@
