# Every target sets up what it needs first; a second call does no set-up work.
#
#     make setup PYTHON=python3.12        with another Python, 3.11 or later
#     make setup TORCH=cpu                without CUDA, from PyTorch's own package index
#     make setup INSTALLER=pip            without uv: slower, and compiles fairseq's extensions
# uv is taken from PATH; where it is missing there, or old, .venv gets its own.
PYTHON ?= python3
CONFIG ?= sample
INSTALLER ?= uv
TORCH ?= default
# Processes that run the tests: more than two cores, since tests wait for processes to start.
TEST_WORKERS ?= 4
BIN := .venv/bin
UV := uv==0.13.9
UV_HERE := $(shell uv --version 2> /dev/null | grep -qE '^uv (0\.(9|[1-9][0-9])|[1-9])\.' && echo uv)
# Hundreds of processes import torch and Beam: Python must keep what it compiles of them.
unexport PYTHONDONTWRITEBYTECODE
RUN := .venv/.installed
DEV := .venv/.installed-dev

.PHONY: setup setup-dev corpus sample-model train-embeddings test test-all test-portable test-pages test-faults \
	test-dataflow test-flink flink-up flink-down fuzz rehearse bench experiments docs lock

# Packages that torch needs on a GPU only.
CUDA := ^(cuda|nvidia|triton)

# A lock names every package, so nothing is resolved. fairseq is built beside the locked torch.
ifeq ($(INSTALLER),pip)
install := $(BIN)/python -m pip install --quiet --disable-pip-version-check
lock := PIP_CONSTRAINT=requirements.lock $(install)
else
install := $(or $(UV_HERE),$(BIN)/uv) pip install --quiet --python $(BIN)/python
lock := $(install) --no-deps --build-constraints requirements.lock
endif

# Python compiles what a run imports now, on two cores; all packages would take a minute.
COMPILED = ($(BIN)/python -c 'import ctranslate2.converters, fairseq.models.transformer, torch._dynamo' & \
	$(BIN)/python -c 'import paraloom.pipeline.cli, paraloom.pipeline.run.make, sacrebleu'; wait) 2> .venv/compiled.log

setup: $(RUN)

setup-dev: $(DEV)

$(RUN): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Paraloom needs Python 3.11 or later: make PYTHON=…" if sys.version_info < (3, 11) else 0)'
	@echo 'Set-up of .venv: 226 packages, 7 GB. About a minute, if they need not be downloaded.'
	@test ! -L .venv || rm .venv  # `--clear` would empty the folder behind a link
	@$(PYTHON) -m venv --clear .venv
ifeq ($(or $(UV_HERE),$(filter pip,$(INSTALLER))),)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(UV)
endif
ifeq ($(TORCH),default)
	@$(lock) --requirement requirements.lock
else
	@grep -vE '$(CUDA)' requirements.lock | $(lock) --torch-backend $(TORCH) --requirement -
endif
	@$(install) --no-deps --no-build-isolation --editable .
	@$(COMPILED)
	@touch $@

# What tests and checks need besides; torch's packages for a GPU, or their absence, stay as they are.
$(DEV): $(RUN) requirements-dev.lock
	grep -vE '$(CUDA)' requirements-dev.lock > .venv/requirements-dev.txt
	$(lock) --requirement .venv/requirements-dev.txt
	@touch $@

corpus: setup
	@$(BIN)/paraloom corpus --config $(CONFIG)

# The model that the sample brings, trained anew; in some minutes.
sample-model: setup
	$(BIN)/python -m benchmarks.sample_model

train-embeddings: setup
	$(BIN)/paraloom train-embeddings --config $(CONFIG)

# mypy runs beside the tests.
test: setup-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@$(BIN)/mypy & types=$$!; \
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses $(TEST_WORKERS) --dist worksteal; \
	tests=$$?; wait $$types && exit $$tests

# Everything that tests, a failure or not, and then a table; `make test-all TARGETS="test fuzz"` for some.
test-all: setup-dev
	@$(BIN)/python -m tests.everything $(TARGETS)

# The notebook and the commands of the pages, as they stand, on the whole sample.
test-pages: setup-dev
	$(BIN)/pytest -m pages

# The tests as other machines run them, under an hour; `make test-portable SHORT=--short` takes a minute.
test-portable: setup-dev
	$(BIN)/python -m tests.portable --workers $(TEST_WORKERS) $(SHORT)

# The sample on a cluster of its own, which is gone afterwards however this ends.
test-flink: setup-dev
	@trap '$(BIN)/python -m tests.flink down --folder .flink/test' EXIT; \
	trap 'exit 130' INT TERM; \
	$(BIN)/pytest -m flink

# The sample on a stand-in for Dataflow; the worker image's environment takes minutes, once, and 7 GB.
test-dataflow: setup-dev
	$(BIN)/pytest -m dataflow

flink-up: setup-dev
	$(BIN)/python -m tests.flink up

flink-down: setup
	$(BIN)/python -m tests.flink down

# Each breaks something in a run and compares what it ends with; those on Flink start a cluster.
test-faults: setup-dev
	$(BIN)/pytest -s -m '' tests/faults

# Damaged input of every kind; `make fuzz SECONDS=3600` prints how many cases an hour had.
SECONDS ?= 60
fuzz: setup-dev
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS)

# The image's steps in a clean Debian root, without a container engine; as root, needs debootstrap and 7 GB.
rehearse:
	folder=$$(mktemp -d) && trap 'rm -rf --one-file-system $$folder' EXIT && docker/rehearse.sh $$folder

bench: setup
	$(BIN)/python -m benchmarks

experiments: setup
	$(BIN)/python -m benchmarks.experiments $(TABLES)

# After a change of a configuration key: docs/configuration.md and configs/schema.json; of what
# --json writes: docs/results.schema.json; of a scorer, format, encoder, column or command: its table.
docs: setup
	$(BIN)/python -m paraloom.papers.documentation

# After a change in pyproject.toml. Versions stay where they fit; `make lock UPGRADE=--upgrade` takes the newest.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-annotate \
	--custom-compile-command 'make lock' $(UPGRADE) --extra all pyproject.toml
lock:
	test -x $(BIN)/uv || { $(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet $(UV); }
	$(COMPILE) --output-file requirements.lock
	$(COMPILE) --extra dev --constraints requirements.lock --output-file requirements-dev.lock
