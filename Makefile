# `make train` and `make test` set everything up on a machine that has only
# Python 3.11, make and git. The other targets build on the same environments.
PYTHON ?= python3.11
VENV ?= .venv
VENV215 ?= .venv-tf215
PYTEST_FLAGS ?=
# Each worker goes through whole files, whose tests share compiled agents and
# short runs; one that has nothing left takes the last files of the other.
FAST = -m "not slow" -n 2 --dist worksteal

BIN = $(VENV)/bin
READY = $(VENV)/.ready
READY215 = $(VENV215)/.ready
PIP_FLAGS = --disable-pip-version-check --quiet

.PHONY: help
help: ## Show this help
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# An environment is ready when its stamp is newer than what defines it; it is
# built anew rather than mended, so a broken install cannot linger.
$(READY): setup.py constraints/py311-tf221.txt
	@echo "Setting up $(VENV) (TensorFlow 2.21); a few minutes the first time"
	rm -rf $(VENV) && $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(PIP_FLAGS) -c constraints/py311-tf221.txt -e '.[all,dev]'
	touch $@

$(READY215): setup.py constraints/py311-tf215.txt
	@echo "Setting up $(VENV215) (TensorFlow 2.15 and Reverb)"
	rm -rf $(VENV215) && $(PYTHON) -m venv $(VENV215)
	$(VENV215)/bin/pip install $(PIP_FLAGS) -c constraints/py311-tf215.txt -e '.[all,dev,reverb]'
	touch $@

.PHONY: setup
setup: $(READY) ## Set up the default environment

.PHONY: train
train: $(READY) ## Train MMDQN on MinAtar Breakout, evaluate and export it
	$(BIN)/mmdrl train

.PHONY: lint
lint: $(READY) ## Style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy tf_mmdrl

# In parts with fresh workers, because XLA never frees what it compiled: one worker
# for all grew to 3.5 GB.
COMPILING = tests/agents tests/ops

.PHONY: test
test: $(READY) lint ## Everything but the slow tests, on TensorFlow 2.21
	set -e; for part in $(COMPILING); do \
	  $(BIN)/python -m pytest $(FAST) $(PYTEST_FLAGS) $$part; done
	$(BIN)/python -m pytest $(FAST) $(PYTEST_FLAGS) $(COMPILING:%=--ignore=%)

.PHONY: test-slow
test-slow: $(READY) ## The slow tests only
	$(BIN)/python -m pytest -m slow $(PYTEST_FLAGS)

.PHONY: test-cluster
test-cluster: $(READY) ## Actors, runs and searches on a real Ray, with kills
	$(BIN)/python -m pytest tests/cluster $(PYTEST_FLAGS)

# What depends on TensorFlow's version: TF-Agents' own parts and Reverb, graphs
# and XLA, exports, short runs and their checkpoints.
TF215_TESTS = tests/test_keras2.py tests/policies \
  tests/agents/test_tf_agents_pieces.py \
  tests/agents/test_agents_against_tf_agents.py \
  tests/agents/test_mmdqn_agent.py \
  tests/replay/test_replay_buffer.py \
  tests/serving/test_serving_export.py \
  tests/train/test_train_parts.py tests/train/test_train_run.py

.PHONY: test-tf215
test-tf215: $(READY215) ## What depends on TensorFlow's version, on 2.15
	$(VENV215)/bin/python -m pytest $(FAST) $(TF215_TESTS) $(PYTEST_FLAGS)

# In the same parts as `test`; the last one reports on all of them.
COVERED = $(BIN)/python -m pytest $(FAST) --cov=tf_mmdrl --cov-append

.PHONY: coverage
coverage: $(READY) ## Which lines the fast tests run
	rm -f .coverage
	set -e; for part in $(COMPILING); do \
	  $(COVERED) --cov-report= $(PYTEST_FLAGS) $$part; done
	$(COVERED) --cov-report=term-missing:skip-covered $(PYTEST_FLAGS) \
	  $(COMPILING:%=--ignore=%)

.PHONY: bench
bench: $(READY) ## The loss and update benchmarks (the machine should be idle)
	$(BIN)/python benchmarks/loss.py
	$(BIN)/python benchmarks/update.py

# Material announces its successor at every build unless it is told not to.
.PHONY: docs
docs: $(READY) ## Build the site in site/, without warnings
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

.PHONY: dist
dist: $(READY) ## Build a wheel and a source distribution in dist/
	rm -rf dist build *.egg-info
	$(BIN)/python setup.py --quiet sdist
	$(BIN)/pip wheel $(PIP_FLAGS) --no-deps --no-build-isolation -w dist dist/*.tar.gz
	@ls dist

.PHONY: test-dist
test-dist: $(READY) ## Install what `make dist` packs in fresh environments
	$(BIN)/python -m pytest -m slow tests/test_dist.py $(PYTEST_FLAGS)

.PHONY: format
format: $(READY) ## Rewrite the code in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: clean
clean: ## Remove the environments and caches
	rm -rf $(VENV) $(VENV215) .pytest_cache .mypy_cache .ruff_cache build dist site \
	  *.egg-info
