# Everything runs in .venv, which is created on first use. Needs python3 (>= 3.11), a C++20 compiler and make.
#   PYTHON=python3.12 make test     chooses the interpreter
#   CXX=clang++ make test           chooses the compiler
PYTHON ?= python3
JOBS ?= 2

BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

CPP := $(shell find cpp -name '*.cpp' -o -name '*.hpp')
PACKAGE := pyproject.toml CMakeLists.txt README.md LICENSE $(filter-out cpp/tests/%,$(CPP)) \
	$(shell find src -type f -not -name '*.pyc')

.PHONY: help demo test test-fast lint test-cpp test-python test-sklearn sanitize sanitize-threads docs docs-shots clean

help:
	@echo "make demo      train, check and plot a small example: demo.png"
	@echo "make test      lint, C++ tests, Python tests, scikit-learn's tests"
	@echo "make test-fast the Python tests without the slow ones, in a minute"
	@echo "make lint      ruff, clang-format, mypy"
	@echo "make test-cpp  the C++ tests alone"
	@echo "make test-sklearn  scikit-learn's own tests of SVC and LinearSVC, run on ours"
	@echo "make sanitize  C++ tests and some Python tests under address and undefined-behaviour sanitizers"
	@echo "make sanitize-threads  C++ tests and the Python tests that use threads under the thread sanitizer"
	@echo "make docs      the documentation site: build/docs/index.html"
	@echo "make docs-shots  pictures of the site, wide and narrow: build/shots"
	@echo "make clean     remove everything that these commands made"

demo: .venv/plots
	$(BIN)/multimargin demo

test: lint test-cpp test-python test-sklearn

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(BIN)/mypy

test-cpp: .venv/test
	$(BIN)/cmake --build build/module
	$(BIN)/ctest --test-dir build/module --output-on-failure -j $(JOBS)

test-python: .venv/test
	$(BIN)/python -m pytest -q -n $(JOBS)

# The installed scikit-learn's tests of its SVMs, with its SVC and LinearSVC replaced; the plugin lists the exceptions.
test-sklearn: .venv/test
	PYTHONPATH=tests/support $(BIN)/python -m pytest -q -n $(JOBS) -c /dev/null --rootdir . -p no:cacheprovider \
		-p in_place_of_sklearn -W "ignore::UserWarning" --timeout 300 \
		--pyargs sklearn.svm.tests.test_svm sklearn.svm.tests.test_sparse

# Without scikit-learn's checks, benchmarks, experiments and slow tests.
test-fast: .venv/test
	$(BIN)/python -m pytest -q -n $(JOBS) -m "not contract and not research and not slow"

# The sanitizer's library must be loaded first; it finds the functions for exceptions only if libstdc++ is loaded, too.
SANITIZE := address,undefined
SANITIZED := build/sanitize
SANITIZED_PYTHON := LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONPATH=$(SANITIZED)/python
# Files that reach every part of the core in about two minutes under the sanitizers, and the tests of extreme data that
# run every solver (numbers out of range may turn into wrong indices).
SANITIZED_EXTREMES := every_solver_at_every_scale given_kernels_of_any_size linear_machines_at_every_scale \
	streams_at_every_scale one_column_of_another_size
SANITIZED_TESTS ?= $(wildcard $(patsubst %,tests/*/test_%.py,example_steps qp control pair_control threads degenerate)) \
	$(patsubst %,tests/solvers/test_extreme_scale.py::test_%,$(SANITIZED_EXTREMES))

sanitize: .venv/test
	$(PIP) install --no-build-isolation --no-deps --upgrade --target $(SANITIZED)/python \
		--config-settings=build-dir=$(SANITIZED)/module --config-settings=install.strip=false \
		--config-settings=cmake.define.MULTIMARGIN_SANITIZE=$(SANITIZE) \
		--config-settings=cmake.define.MULTIMARGIN_BUILD_TESTS=ON \
		--config-settings=cmake.define.CMAKE_CXX_FLAGS=-D_GLIBCXX_ASSERTIONS .
	UBSAN_OPTIONS=print_stacktrace=1 $(BIN)/ctest --test-dir $(SANITIZED)/module --output-on-failure -j $(JOBS)
	$(SANITIZED_PYTHON) $(BIN)/python -c "import multimargin; print('sanitized:', multimargin.__file__)"
	$(SANITIZED_PYTHON) $(BIN)/python -m pytest -q -n $(JOBS) -p no:cacheprovider -o timeout=600 $(SANITIZED_TESTS)

# The thread sanitizer sees only code that was compiled for it. Of CPython, NumPy and BLAS it sees calls of pthread functions;
# other synchronisation of theirs is listed in cpp/tests/thread_sanitizer.txt.
THREADED := build/sanitize-threads
THREADED_OPTIONS := TSAN_OPTIONS="suppressions=$(CURDIR)/cpp/tests/thread_sanitizer.txt halt_on_error=1 second_deadlock_stack=1"
THREADED_PYTHON := $(THREADED_OPTIONS) OPENBLAS_NUM_THREADS=1 PYTHONPATH=$(THREADED)/python \
	LD_PRELOAD="$$($(CXX) -print-file-name=libtsan.so) $$($(CXX) -print-file-name=libstdc++.so)"
THREADED_TESTS ?= $(wildcard $(patsubst %,tests/*/test_%.py,threads control pair_control))

sanitize-threads: .venv/test
	$(PIP) install --no-build-isolation --no-deps --upgrade --target $(THREADED)/python \
		--config-settings=build-dir=$(THREADED)/module --config-settings=install.strip=false \
		--config-settings=cmake.define.MULTIMARGIN_SANITIZE=thread \
		--config-settings=cmake.define.MULTIMARGIN_BUILD_TESTS=ON .
	$(THREADED_OPTIONS) $(BIN)/ctest --test-dir $(THREADED)/module --output-on-failure -j $(JOBS)
	$(THREADED_PYTHON) $(BIN)/python -c "import multimargin; print('sanitized:', multimargin.__file__)"
	$(THREADED_PYTHON) $(BIN)/python -m pytest -q -p no:cacheprovider -o timeout=900 $(THREADED_TESTS)

# A warning is an error.
docs: .venv/docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs
	@echo "build/docs/index.html"

docs-shots: docs
	$(BIN)/python docs/screenshots.py

clean:
	rm -rf .venv build demo.png .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf docs/gallery docs/reference/generated docs/reference/api.rst

# Build requirements of the package; cmake and ninja too, so that no system copy is needed.
.venv/made: pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) install cmake ninja $$($(BIN)/python -c \
		"import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'])")
	touch $@

# .venv/test: the current package with the extra "test", and the C++ tests from the same object files.
.venv/test: SETTINGS := --config-settings=build-dir=build/module \
	--config-settings=cmake.define.MULTIMARGIN_BUILD_TESTS=ON --config-settings=cmake.define.MULTIMARGIN_WERROR=ON

# The same without C++ tests for "plots" and "docs".
.venv/test .venv/plots .venv/docs: .venv/%: .venv/made $(PACKAGE)
	$(PIP) install --no-build-isolation --no-deps $(SETTINGS) .
	$(PIP) install 'multimargin[$*]'  # already installed: only the extra's requirements are
	touch $@
