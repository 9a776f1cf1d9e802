# Every target sets up what it needs first; a second call does no set-up work.
PYTHON ?= python3
CONFIG ?= configs/sample.yaml
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: setup corpus train-embeddings test test-faults test-flink flink-up flink-down bench experiments lock

setup: $(INSTALLED)

$(INSTALLED): requirements.lock setup.py
	@$(PYTHON) -c 'import sys; sys.exit("Paraloom needs Python 3.11 or later: make PYTHON=…" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

corpus: setup
	$(BIN)/paraloom corpus --config $(CONFIG)

train-embeddings: setup
	$(BIN)/paraloom train-embeddings --config $(CONFIG)

test: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pytest

# The sample on a cluster of its own, which is gone afterwards however this ends.
test-flink: setup
	@trap '$(BIN)/python -m beam_jobs.runners.flink down --folder .flink/test' EXIT; \
	trap 'exit 130' INT TERM; \
	$(BIN)/pytest -m flink

flink-up: setup
	$(BIN)/python -m beam_jobs.runners.flink up

flink-down: setup
	$(BIN)/python -m beam_jobs.runners.flink down

# Each breaks something in a run and compares what it ends with; those on Flink start a cluster.
test-faults: setup
	$(BIN)/pytest -s -m '' tests/faults

bench: setup
	$(BIN)/python -m benchmarks

experiments: setup
	$(BIN)/python -m benchmarks.experiments $(TABLES)

# After a change in setup.py: the newest versions that fit together, written down.
lock:
	$(PYTHON) -m venv --clear .venv-lock
	.venv-lock/bin/python -m pip install --quiet --editable '.[dev]'
	.venv-lock/bin/python -m pip freeze --all --exclude pip --exclude-editable > requirements.lock
	rm -r .venv-lock
