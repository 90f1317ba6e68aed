# Everything a user or a developer runs. `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Keep compiled modules: without them every engine, load process and Ray worker compiles all that it imports.
export PYTHONDONTWRITEBYTECODE :=
# Compiling every module of every package would be half the work; Python compiles those that are imported.
PIP_OPTIONS := --quiet --no-compile

.DEFAULT_GOAL := help
.PHONY: help quickstart quickstart-vllm install test test-cluster test-real test-kills test-browser lint docs format clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 20

include engines/vllm_env/env.mk

$(VENV)/.core: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(PIP_OPTIONS) --editable .
	touch $@

# The core comes with it: one installation is faster than two in a row.
$(VENV)/.dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(PIP_OPTIONS) --editable '.[dev]'
	touch $(VENV)/.core $@

install: $(VENV)/.core  ## create .venv with the core (no torch, no vllm)

quickstart: install  ## install, then run a paired sweep on the emulated engine (minutes)
	$(BIN)/specload sweep +experiment=quickstart

quickstart-vllm:  ## install, then measure a real crossover with vLLM on the CPU (under half an hour)
	$(MAKE) --jobs 2 install models-smollm2
	$(BIN)/specload sweep +experiment=quickstart_vllm

test: $(VENV)/.dev  ## fast tests
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile

test-cluster: $(VENV)/.dev  ## tests on real local Ray: sweeps, kills, resume
	$(BIN)/python -m pytest -m cluster --timeout 900 --numprocesses 3 --dist loadfile

test-real: $(VENV)/.dev engine-env models  ## tests on real vLLM on the CPU
	$(BIN)/python -m pytest -m 'real_engine and not kills' --timeout 1500 --numprocesses 2 --dist loadfile

test-kills: $(VENV)/.dev engine-env models  ## real vLLM, each process of its chain killed in turn
	$(BIN)/python -m pytest -m kills --timeout 1500

test-browser: $(VENV)/.dev  ## tests in a real headless Chromium (apt-get install chromium)
	$(BIN)/python -m pytest -m browser --timeout 300

lint: $(VENV)/.dev  ## ruff, ruff format, mypy strict, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_import_direction.py

docs: $(VENV)/.dev  ## build the documentation into build/site; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --clean

format: $(VENV)/.dev  ## rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove environments, models and caches; results stay
	rm -rf .venv .venv-vllm .cache .mypy_cache .ruff_cache .pytest_cache build *.egg-info
