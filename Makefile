# Everything a newcomer needs: `make run` shows splitjoin at work, `make test` proves it. Both set up .venv first.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Tests at a time: one more than the two cores of a small machine, as those of Spark mostly wait.
JOBS   ?= 3

# Platforms of released wheels (splitjoin/engines/loops/build.py), and the one whose wheel `make release` installs.
PLATFORMS := manylinux2014_x86_64 manylinux2014_aarch64 macosx_11_0_arm64 macosx_11_0_x86_64 win_amd64
HERE      ?= manylinux2014_$(shell uname -m)

# A host name that does not resolve crashes Spark's JVM.
export SPARK_LOCAL_IP ?= 127.0.0.1

.DEFAULT_GOAL := help
.PHONY: help prerequisites setup run test test-long lint types docs playground machines findings formal mutation sanitize check bench soak soak-link soak-spark soak-server chaos spark-streams spark-suites spark-versions pythons newest spark-cluster fuzz disk simulation synth synth-full boards wheel-test constraints release clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

prerequisites: ## Check that Python, a C++ compiler, perl and Java are there; names what is missing.
	@$(PYTHON) sw/splitjoin/base/prerequisites.py

$(STAMP): pyproject.toml constraints.txt sw/splitjoin/base/prerequisites.py
	@$(PYTHON) sw/splitjoin/base/prerequisites.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

setup: $(STAMP) ## Make .venv with everything installed.

run: $(STAMP) ## Main job: New York's departures joined through Spark on the simulated circuit, checked against Spark.
	$(BIN)/python -m examples.flights.batch

test: $(STAMP) ## All tests but those that take long and find what others find too.
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

test-long: $(STAMP) ## Really all tests, and five times as many random examples in each (hours).
	SPLITJOIN_TEST_EXAMPLES=5 NUMBA_OPT=3 $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m ""

lint: $(STAMP) ## Style, by ruff.
	$(BIN)/ruff check .

types: $(STAMP) ## Types, by mypy (strict).
	$(BIN)/mypy

docs: $(STAMP) ## The site of the documentation, in build/site: links checked, no network needed.
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo build/site/index.html

playground: $(STAMP) ## Fetch Python for browsers (27 MB, kept in build/playground), with which `make docs` makes the playground run.
	$(BIN)/python docs/playground/files.py

mutation: $(STAMP) ## Faults planted in a copy, of which tests must find 80 of 100: FILES="sw/…" or all that differ from main.
	$(BIN)/python -m tests.mutation $(if $(FILES),--files $(FILES),--changed)

machines: $(STAMP) ## Sessions, shared streams, chains and epochs driven at random beside a brute-force oracle, 20 minutes each.
	$(BIN)/python -m tests.machine --seconds 1200

findings: ## Surprises about other people's tools, each in a temporary folder of its own: are they still so? (minutes)
	@for script in findings/*.sh; do echo "== $$script"; sh "$$script" || exit 1; done

formal: $(STAMP) ## All formal proofs, each also with planted faults; the quick ones are among the tests too.
	$(BIN)/python -m tests.formal
	$(BIN)/python -m tests.formal.any_size

sanitize: $(STAMP) ## The compiled loops under the sanitizers for addresses, undefined behaviour and threads (minutes).
	$(BIN)/python -m tests.support.sanitized

check: lint types test ## What CI runs.

bench: $(STAMP) ## All benchmarks (minutes), and the page made from them.
	$(BIN)/python -m bench.circuits
	$(BIN)/python -m bench.index
	$(BIN)/python -m bench.stages
	$(BIN)/python -m bench.states
	$(BIN)/python -m bench.whole_tables
	$(BIN)/python -m bench.table_threads
	$(BIN)/python -m bench.predicates
	$(BIN)/python -m bench.cpu
	$(BIN)/python -m bench.threads
	$(BIN)/python -m bench.latency
	$(BIN)/python -m bench.spark_paths
	$(BIN)/python -m bench.spark_skew
	$(BIN)/python -m bench.spark
	$(BIN)/python -m bench.spark_rivals
	$(BIN)/python -m bench.first_hour
	$(BIN)/python -m bench.tables

soak: $(STAMP) ## An hour of streaming at a steady rate: every pair checked, and no growth in memory.
	$(BIN)/python -m bench.soak

soak-link: $(STAMP) ## An hour of an emulated board behind a bad line: every row checked, and no growth in memory.
	$(BIN)/python -m bench.link_soak

soak-spark: $(STAMP) ## An hour of a streaming join in Spark: every pair checked, and no growth in memory.
	$(BIN)/python -m bench.spark_soak

soak-server: $(STAMP) ## Half an hour of a server under 50 clients, killed 20 times: every row once, and no growth in memory.
	$(BIN)/python -m tests.sw.server.soak

spark-streams: $(STAMP) ## 500 random streams by Spark's own join and by splitjoin's: the same rows (hours).
	$(BIN)/python -m tests.spark_streams

spark-suites: $(STAMP) ## The cases of Spark's own suites of joins, batches and streams, with the extension and without (minutes).
	$(BIN)/python -m tests.spark_suites

chaos: $(STAMP) ## A streaming join in Spark, killed at random moments, a hundred and sixty times: exactly the right rows (minutes).
	$(BIN)/python -m tests.chaos
	$(BIN)/python -m tests.chaos --daemon
	$(BIN)/python -m tests.chaos --sql
	$(BIN)/python -m tests.chaos --how left --early --kills 10
	$(BIN)/python -m tests.chaos --watermark max --kills 10
	$(BIN)/python -m tests.chaos --how asof --watermark spark --idle '300 MILLISECONDS' --kills 10
	$(BIN)/python -m tests.chaos --how left --watermark source --kills 10
	$(BIN)/python -m tests.chaos --how asof_left --endless --kills 10
	$(BIN)/python -m tests.chaos --streams 3 --kills 10
	$(BIN)/python -m tests.chaos --how left --one-sided --kills 10
	$(BIN)/python -m tests.chaos --named --kills 10
	$(BIN)/python -m tests.chaos --how left --regroup --kills 10
	$(BIN)/python -m tests.chaos --how left --aggregate --regroup --kills 10

pythons: $(STAMP) ## Install with each Python from 3.11 on that is there, with the newest packages, and run a part of each suite (an hour).
	$(BIN)/python -m bench.pythons

newest: $(STAMP) ## The newest of everything that the pins allow, on this Python: the conformance of engines, SQL, sessions (minutes).
	$(BIN)/python -m bench.pythons --quick $(foreach suite,conformance tables conditions sql sessions,--suite $(suite)) $(BIN)/python

spark-versions: $(STAMP) ## Joins on Spark 3.5, 4.0, 4.1 and 4.2, and on Sail, each downloaded once (2 GB).
	$(BIN)/python -m tests.spark_versions

spark-cluster: $(STAMP) ## Joins on a standalone cluster of two workers on this machine, of which one is killed (minutes).
	$(BIN)/python -m tests.spark_versions.standalone

fuzz: $(STAMP) ## 100,000 damaged files, snapshots, states, messages, and 25,000 random joins against golden (two hours).
	$(BIN)/python -m tests.fuzz
	$(BIN)/python -m tests.sw.server.hostile

disk: $(STAMP) ## 100,000 schedules of faults, kills and power cuts beneath all that writes files (an hour and more).
	$(BIN)/python -m tests.disk

simulation: $(STAMP) ## 10,000 schedules of each thing that has threads or talks, in a time of its own (hours).
	$(BIN)/python -m tests.simulation --seeds 10000

wheel-test: $(STAMP) ## Build wheel and sdist, install both where there is no compiler, and run all examples of docs (minutes).
	$(BIN)/python -m tests.wheel

constraints: $(STAMP) ## Write the versions that .venv has to constraints.txt, after the tests have passed with them.
	(sed '/^[^#]/,$$d' constraints.txt; $(BIN)/python -m pip freeze --exclude-editable --exclude splitjoin) > build/constraints
	mv build/constraints constraints.txt

# The bill of materials lists what an environment with all extras for users has, in the tested versions.
# Wheels for other platforms have a library of compiled loops that zig builds here.
release: $(STAMP) ## Wheels, sdist, notes, constraints and a bill of materials (CycloneDX), with checksums, in build/release.
	rm -rf build/release build/release-tools build/release-users
	$(BIN)/python -m tests.spark_versions --download 3.5.8
	$(BIN)/python -m build --sdist --outdir build/release .
	for platform in $(PLATFORMS); do \
		SPLITJOIN_PLATFORM=$$platform \
		SPLITJOIN_SPARK_JARS="$(CURDIR)/build/spark/3.5.8/pyspark/jars:$$(echo $(CURDIR)/$(VENV)/lib/python3*/site-packages/pyspark/jars)" \
		$(BIN)/python -m build --wheel --outdir build/release . || exit 1; done
	cp constraints.txt build/release/
	awk '/^## /{n++} n==1' CHANGELOG.md > build/release/NOTES.md
	$(PYTHON) -m venv build/release-tools
	build/release-tools/bin/python -m pip install --quiet "$$(echo build/release/*-$(HERE).whl)[release]"
	$(PYTHON) -m venv build/release-users
	build/release-users/bin/python -m pip install --quiet --constraint constraints.txt \
		"$$(echo build/release/*-$(HERE).whl)[emulator,connect]"
	build/release-tools/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
		--output-format JSON --output-file build/release/splitjoin.cdx.json build/release-users/bin/python
	cd build/release && sha256sum *.whl *.tar.gz constraints.txt NOTES.md splitjoin.cdx.json > SHA256SUMS

synth: $(STAMP) ## What cores cost on ECP5 and UltraScale+, and their clock (an hour).
	nice -n 15 $(BIN)/python -m bench.synthesis
	nice -n 15 $(BIN)/python -m bench.costs
	$(BIN)/python -m bench.tables

synth-full: $(STAMP) ## Place and route whole circuits on an ECP5-85F (three hours).
	nice -n 19 $(BIN)/python -m bench.synthesis --full
	$(BIN)/python -m bench.tables

boards: $(STAMP) ## Bitstreams for all boards that can hold a join, smaller ones first (hours); docs/boards.md gets the table.
	nice -n 15 $(BIN)/python -m bench.boards

clean: ## Remove .venv and everything generated here. The cache of built models stays.
	rm -rf $(VENV) build out .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info spark-warehouse
