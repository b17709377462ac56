# Set-up included: each target makes the virtual environment that it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PATH := $(abspath $(BIN)):$(PATH)
# Images often set it: then each of some hundred processes would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: table1 recorded smoke rehearsal test test-all check lint types docs format setup

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet "torch==2.13.0" numpy
	$(BIN)/pip install --quiet --editable ".[api,data,dev,docs,serve,workflow]"
	touch $@

# The tiny scale from nothing: data, training, kernels, verdicts, table.
table1: setup
	$(BIN)/snakemake --cores all results/table1.csv results/table1.strata.csv results/table1.exams.csv
	$(BIN)/dice table --show results/table1.csv
	$(BIN)/dice exams --show results/table1.exams.csv

# Every table and figure of the recorded studies, made again from their verdicts: seconds, no GPU.
recorded: setup
	$(BIN)/dice regenerate --out build/recorded

# Two at a time, because the documentation and the types take a minute of one core each.
check: setup
	@$(MAKE) --no-print-directory -j2 --output-sync docs types lint

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile experiments/rules/*.smk
	$(BIN)/lint-imports

types: setup
	$(BIN)/pyright --pythonpath $(BIN)/python

# The documentation as a site, build/docs/index.html: every broken link or page without a place is an error.
docs: setup
	$(BIN)/sphinx-build -W --keep-going -q docs build/docs

# One thread a process: two tests run side by side, and each starts processes of its own.
test: export OMP_NUM_THREADS = 1
test: check
	$(BIN)/python -m pytest -q -m "not gpu and (not slow or first)" -n 2

# The workflow for real, from nothing to table 1 and table 7, at a recipe of minutes.
smoke: setup
	$(BIN)/snakemake --cores all results/smoke/table1.csv results/smoke/table7.csv --config scale=smoke
	$(BIN)/dice table --show results/smoke/table1.csv
	$(BIN)/dice table --show results/smoke/table7.csv

# The scales `paper` and `released` from nothing, as they are but for lengths, steps and the size of the models.
rehearsal: setup
	$(BIN)/pip install --quiet --editable ".[train]"
	$(BIN)/snakemake --cores all all tables figures --config scale=rehearsal
	$(BIN)/dice table --show results/rehearsal/table1.csv

test-all: check
	$(BIN)/python -m pytest -q -n 2

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile experiments/rules/*.smk

# Images: `make container-cpu`, and the cpu image for real under the workflow. Engine: DICE_ENGINE, docs/guides/containers.md.
.PHONY: container-cpu container-cuda container-tex container-base test-container test-slurm
container-cpu container-cuda container-tex: container-%:
	containers/build.sh $* $(BUILD_ARGS)

# A base image without a registry (root, debootstrap).
container-base:
	containers/base.sh localhost/debian-base:12

test-container: setup
	$(BIN)/python -m pytest -q -m slow tests/containers

# A one-node cluster on this machine (root, slurm-wlm, munge): minutes.
test-slurm: setup
	$(BIN)/python -m pytest -q -m slow tests/slurm
