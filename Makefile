# make run    set up and do the main job        make test   set up and run all tests
# make check  ruff, mypy and the tests          make clean  remove what these made
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: run test check lint format setup clean
.DEFAULT_GOAL := run

run: setup
	$(BIN)/fwp all

test: setup
	$(BIN)/python -m pytest -n auto --dist loadfile

check: lint test

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "fwp-repro needs Python 3.11 or newer; name one: make PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up $(VENV): the first time takes some minutes (torch is large)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
