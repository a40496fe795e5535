# The two commands of the README, and what developers use between them. Everything else is CMake:
# see CMakePresets.json.

# A folder of shared test data; tests that want it skip with a message where it is not given.
SHARED_DATA ?=
JOBS ?= $(shell nproc)

.PHONY: help demo demo-conv test bench nightly docs reference format coverage clean

help:
	@echo "make demo      measure this CPU, train a model, see how good its picks are"
	@echo "make demo-conv the same for convolutions"
	@echo "make test      build everything and run the tests   [SHARED_DATA=folder] [JOBS=n]"
	@echo "make bench     build the benchmarks into build/bench/bench"
	@echo "make nightly   run what takes too long for every change, into bench/measured/nightly.json"
	@echo "make docs      the documentation as a site for browsers, offline, into build/site"
	@echo "make reference the pages of docs/reference that come from the code, from the build of make test"
	@echo "make coverage  run the tests with coverage, summary in build/coverage/coverage.txt"
	@echo "make format    format all C++ files"
	@echo "make clean     remove all builds; keeps build/deps and the Python environments"

demo:
	@scripts/demo.sh

demo-conv:
	@scripts/demo.sh conv

test:
	scripts/install_dependencies.sh --python
	@mkdir -p build
	cmake --preset dev -DFORETUNE_SHARED_DATA="$(SHARED_DATA)" >build/configure-dev.log 2>&1 || \
	  { cat build/configure-dev.log; exit 1; }
	cmake --build --preset dev --parallel $(JOBS)
	ctest --preset dev

bench:
	scripts/install_dependencies.sh --bench
	cmake --preset bench
	cmake --build --preset bench --parallel $(JOBS)

coverage:
	scripts/install_dependencies.sh
	cmake --preset coverage -DFORETUNE_SHARED_DATA="$(SHARED_DATA)"
	cmake --build --preset coverage --parallel $(JOBS)
	ctest --preset coverage
	gcovr --root . --exclude '.*_test\.cc' --filter foretune/ --filter tools/ \
	  --output build/coverage/coverage.txt build/coverage

nightly:
	scripts/install_dependencies.sh --ci
	python3 scripts/nightly.py

docs:
	scripts/install_dependencies.sh --docs
	/usr/bin/python3 scripts/header_reference.py --check
	NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/python -m mkdocs build --quiet --strict
	@echo "build/site/index.html"

reference:
	scripts/install_dependencies.sh --docs
	build/dev/tools/foretune/foretune reference --output docs/reference/command-line
	PYTHONPATH=build/dev/python build/venv/bin/python scripts/python_options.py
	PYTHONPATH=build/dev/python build/venv/bin/python scripts/feature_reference.py
	build/docs-venv/bin/python scripts/python_reference.py
	/usr/bin/python3 scripts/header_reference.py

format:
	python3 scripts/sources.py | xargs clang-format-19 -i

clean:
	rm -rf build/dev build/release build/bench build/asan build/tsan build/tidy \
	  build/coverage build/demo build/demo-conv build/python-* build/site
