# Everything a contributor types. The first call of a target sets up .venv; later ones do not.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# In the environment, so that isolated builds obey the pins too.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
# Twice quiet: errors are shown, but not a warning for every index that pip is set up with and does not use.
INSTALL := $(BIN)/pip install -qq
# Tensors in the tests are small: more threads only wait for each other.
TEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2
ON_GPU := OMP_NUM_THREADS=1 PYTHONPATH=src GLASSFORMER_TEST_DEVICE=cuda \
	$(PYTHON) -m pytest -o addopts= -p no:cacheprovider -q
GPU_FILES := $(wildcard $(patsubst %,tests/core/test_%.py,kernels caches paged))

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-cuda soak check format mutants clean

help:  ## Say what there is
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-10s %s\n", $$1, $$2}'

demo: $(VENV)/.done  ## Learn which language a name belongs to, then to read dates; a minute each
	$(BIN)/glassformer reproduce languages
	@run=$$(mktemp -d)/dates && \
	$(BIN)/glassformer reproduce dates-minute --run $$run && \
	for date in "4. März 2005" "le 14 juillet 1989" "2024年5月1日"; do \
		$(BIN)/glassformer predict $$run "$$date" --align || exit 1; \
	done

test: $(VENV)/.done  ## Run the tests
	$(TEST) -m "not full and not cuda"

test-all: $(VENV)/.done  ## Run the tests with the whole matrix of combinations
	$(TEST) -m "not cuda"

# Runs where nothing can be installed: no .venv, and without the shape hook, which needs beartype.
# pytest's exit code 5 says that no test was selected.
test-cuda:  ## Run the GPU tests with the PYTHON given, without .venv
	@if $(PYTHON) -c "import sys, torch; sys.exit(not torch.cuda.is_available())" 2>/dev/null; then \
		{ $(ON_GPU) -m cuda tests || [ $$? -eq 5 ]; } && \
		$(ON_GPU) -m "not cuda and not full" $(GPU_FILES); \
	else \
		echo "GPU tests skipped: $(PYTHON) has no torch that finds a GPU"; \
	fi

soak: $(VENV)/.done  ## Kill a training 200 times, while it prepares, learns, validates and reports
	OMP_NUM_THREADS=1 $(BIN)/python tests/training/soaking.py 200

check: $(VENV)/.done  ## Check format, lint, types and tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	@$(MAKE) --no-print-directory test

format: $(VENV)/.done  ## Format the code and mend what lint can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

mutants: $(VENV)/.done  ## Break the code in small ways and see that the tests notice
	$(BIN)/python tests/try_mutants.py

clean:  ## Remove .venv and every cache
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find src tests examples -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/.done: pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null || \
		{ echo "glassformer needs Python 3.11 or newer; name one: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) torch
	$(INSTALL) -e ".[dev]"
	@touch $@
