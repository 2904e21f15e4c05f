# Commands for contributors. The first target that needs .venv creates it; later ones reuse it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# In the environment, so that isolated builds use the pins, too.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
# -qq: show errors, but no warning for every configured index that pip does not use.
INSTALL := $(BIN)/pip install -qq
# Tensors in the tests are small: more threads would only slow them down. Neighbouring tests share
# what was trained for them: each process takes a stretch of them, and what the other has left over.
TEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal
ON_GPU := OMP_NUM_THREADS=1 PYTHONPATH=src GLASSFORMER_TEST_DEVICE=cuda \
	$(PYTHON) -m pytest -o addopts= -p no:cacheprovider -q
GPU_FILES := $(wildcard $(patsubst %,tests/core/test_%.py,kernels caches paged))

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-cuda soak check format mutants docs notebooks site clean

help:  ## Show this help
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-10s %s\n", $$1, $$2}'

demo: $(VENV)/.demo  ## Train four small models on embedded data (eight minutes on two cores)
	$(BIN)/glassformer demo

test: $(VENV)/.done  ## Run the test suite
	$(TEST) -m "not full and not cuda"

test-all: $(VENV)/.done  ## Run the full test suite, including slow tests and every combination
	$(TEST) -m "not cuda"

# Works where nothing can be installed: no .venv, no shape checks, which need beartype, and no files
# of other tests, which may import what is missing.
# pytest exits with 5 if no test was selected.
test-cuda:  ## Run the GPU tests with the given PYTHON, without .venv
	@if $(PYTHON) -c "import sys, torch; sys.exit(not torch.cuda.is_available())" 2>/dev/null; then \
		{ $(ON_GPU) -m cuda $$(grep -rl "mark.cuda" tests) || [ $$? -eq 5 ]; } && \
		$(ON_GPU) -m "not cuda and not full" $(GPU_FILES); \
	else \
		echo "GPU tests skipped: $(PYTHON) has no torch that finds a GPU"; \
	fi

soak: $(VENV)/.done  ## Kill a training run 200 times, at every stage, and check that it resumes exactly
	OMP_NUM_THREADS=1 $(BIN)/python tests/training/soaking.py 200

check: $(VENV)/.done  ## Check formatting, lint and types, and run the tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	@$(MAKE) --no-print-directory test

format: $(VENV)/.done  ## Format the code and apply lint fixes
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

mutants: $(VENV)/.done  ## Apply small bugs one at a time and check that the tests catch them
	$(BIN)/python tests/try_mutants.py

docs: $(VENV)/.done  ## Run the tour, list the settings, write what they show, and fail if it has changed
	$(BIN)/python site/docs.py

notebooks: $(VENV)/.docs  ## Write the chapters of the tour as executed notebooks
	$(BIN)/python site/notebooks.py

site: $(VENV)/.docs  ## Build the documentation as a website, and check its links
	$(BIN)/python site/pages.py

clean:  ## Remove .venv and all caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find src tests examples -name __pycache__ -prune -exec rm -rf {} +

# What the demo needs is installed first, and the tools of development only for the rest.
$(VENV)/.demo: pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null || \
		{ echo "glassformer needs Python 3.11 or newer; name one: make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) torch
	$(INSTALL) -e ".[demo]"
	@touch $@

$(VENV)/.done: $(VENV)/.demo
	$(INSTALL) -e ".[dev]"
	@touch $@

$(VENV)/.docs: $(VENV)/.done
	$(INSTALL) -e ".[docs]"
	@touch $@
