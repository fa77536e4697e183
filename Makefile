# Everything that is done with this tree, by name; `make help` lists it.

SHELL       := /bin/sh
PYTHON      ?=
TORCH_INDEX ?=
DATA        ?=
PORT        ?=
SECONDS     ?= 60
JOBS        ?= 2
IMAGE       ?= rancast:dev
BASE_IMAGE  ?= docker.io/library/python:3.11-slim-bookworm
SOURCE      ?=
EXTRAS      ?=
BUILD_OPTIONS ?=

VENV      := .venv
BIN       := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CLUSTER   := $(VENV)/.installed-cluster
KERNEL    := $(VENV)/.kernel
INSTALL   := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
             $(if $(TORCH_INDEX),--extra-index-url "$(TORCH_INDEX)")

# Two test workers with two threads each would fight for two cores.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help venv demo test lint types pytest format fuzz test-cluster control-plane tools bench bench-quick image clean

help: ## List the targets
	@echo "usage: make TARGET [VARIABLE=value]"
	@echo
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)$$/\1|\2/p' Makefile \
	  | while IFS='|' read -r name line; do printf '  %-14s %s\n' "$$name" "$$line"; done
	@echo
	@echo "variables: PYTHON (which python3 makes .venv), TORCH_INDEX (package index of a CPU build of torch),"
	@echo "           JOBS (test workers), IMAGE (name of the image), DATA and PORT (of the demo), SECONDS (of fuzz)"
	@echo "           BASE_IMAGE, EXTRAS, SOURCE and BUILD_OPTIONS (of the image; docs/image.md)"

venv: $(KERNEL) ## Make .venv and install the project and its tools into it

# The first Python on PATH that is new enough, unless PYTHON names one.
$(INSTALLED): pyproject.toml constraints.txt
	@set -e; python=""; \
	for candidate in $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.14); do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    python="$$candidate"; break; \
	  fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "rancast needs Python 3.11 or newer; found: $$($(or $(PYTHON),python3) --version 2>&1 || true)." >&2; \
	  echo "Install one, or name it: make $(or $(MAKECMDGOALS),venv) PYTHON=/path/to/python3.11" >&2; \
	  exit 1; \
	fi; \
	if ! [ -x $(BIN)/python ] || ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  "$$python" -m venv --clear $(VENV) || { \
	    rm -rf $(VENV); \
	    echo "Python's venv module does not work here. On Debian or Ubuntu: apt-get install python3-venv" >&2; \
	    exit 1; \
	  }; \
	fi
	@echo "installing into $(VENV); the first time takes a few minutes"
	@$(INSTALL) -e ".[dev]"
	@touch $@

# Without a compiler torch and pydantic do what native code would, and the build says so.
$(KERNEL): $(INSTALLED) \
           $(wildcard model/attention/native/csrc/* model/native_tokens/csrc/* service/codecs/native/csrc/*) \
           model/attention/native/library.py model/native_tokens/library.py service/codecs/native/library.py
	@built=yes; for package in service.codecs.native model.native_code; do \
	  $(BIN)/python -m $$package || built=no; \
	done; if [ $$built = yes ]; then touch $@; fi

$(CLUSTER): $(KERNEL)
	@$(INSTALL) -e ".[dev,kubernetes,cluster]"
	@touch $@

demo: $(KERNEL) ## Run the service on a simulated network, or on DATA=path; PORT=number
	@$(BIN)/rancast demo $(if $(DATA),--data "$(DATA)") $(if $(PORT),--port "$(PORT)")

test: lint types pytest ## Run every check that needs no cluster

lint: $(INSTALLED) ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED) ## Check types
	$(BIN)/mypy

pytest: $(KERNEL) tools ## Run the tests that need no cluster, with branch coverage
	$(BIN)/python -m pytest -n $(JOBS) -m "not cluster" --cov --cov-report=term

fuzz: $(KERNEL) ## Feed the decoders of bodies with damaged ones; SECONDS=number
	$(BIN)/python -m tests.service.fuzzing $(SECONDS)

format: $(INSTALLED) ## Format the sources and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test-cluster: $(CLUSTER) tools control-plane ## Run the checks of manifests, cluster and image; skips what the machine lacks
	@$(BIN)/python -m tests.helm.checkov_environment $(VENV)-checkov || true
	$(BIN)/python -m pytest -m cluster

# Outside of this folder, so that it is built once a machine; see docs/testing.md.
control-plane: $(INSTALLED) ## Build the Kubernetes that the tests of the cluster run, unless KUBECONFIG is set
	@$(BIN)/python -m tests.cluster.build_control_plane || true

# What cannot be had is left out, and the tests that need it skip and say so.
tools: $(INSTALLED) ## Fetch helm, Prometheus and KServe's client for the tests that need them
	@$(BIN)/python tests/helm/fetch_helm.py 4 $(BIN)/helm || true
	@$(BIN)/python tests/helm/fetch_helm.py 3 $(BIN)/helm3 || true
	@$(BIN)/python tests/monitoring/fetch_prometheus.py || true
	@$(BIN)/python tests/protocols/build_environment.py $(VENV)-kserve || true

bench: $(KERNEL) ## Run every benchmark in full and write benchmarks/results/
	@$(BIN)/python -m benchmarks.serving.environments || true
	@set -e; for file in $$(grep -l '__main__' benchmarks/*.py benchmarks/*/__main__.py); do \
	  name=$$(basename "$${file%/__main__.py}" .py); echo "== $$name"; $(BIN)/python -m "benchmarks.$$name"; \
	done

bench-quick: $(KERNEL) ## Run every benchmark briefly
	@set -e; for file in $$(grep -l '__main__' benchmarks/*.py benchmarks/*/__main__.py); do \
	  name=$$(basename "$${file%/__main__.py}" .py); echo "== $$name"; $(BIN)/python -m "benchmarks.$$name" --quick; \
	done

# One build for both: the service takes no code that another version compiled. Their time is that of
# the revision, not of the build, so that one revision gives one description.
image: ## Build the images of service and compiler; IMAGE=name:tag, BASE_IMAGE=name@digest, EXTRAS, SOURCE=url
	@set -e; revision=$$(git rev-parse HEAD 2>/dev/null || true); \
	epoch=$$(git log -1 --format=%ct 2>/dev/null || true); \
	created=$${epoch:+$$(date -u -d "@$$epoch" +%Y-%m-%dT%H:%M:%SZ)}; \
	base="$(BASE_IMAGE)"; digest=$${base#"$${base%%@*}"}; \
	for engine in docker podman buildah; do \
	  if command -v $$engine >/dev/null && { [ $$engine = buildah ] || $$engine info >/dev/null 2>&1; }; then \
	    options=""; [ $$engine = docker ] || options="--format=docker --layers"; \
	    for name in service: compiler:-compiler; do \
	      $$engine build $$options $(BUILD_OPTIONS) --target "$${name%%:*}" \
	        --build-arg "TORCH_INDEX=$(TORCH_INDEX)" --build-arg "EXTRAS=$(EXTRAS)" \
	        --build-arg "BASE_IMAGE=$$base" --build-arg "SOURCE_DATE_EPOCH=$$epoch" \
	        --label "org.opencontainers.image.revision=$$revision" \
	        --label "org.opencontainers.image.source=$(SOURCE)" \
	        --label "org.opencontainers.image.created=$$created" \
	        --label "org.opencontainers.image.base.name=$${base%%@*}" \
	        --label "org.opencontainers.image.base.digest=$${digest#@}" \
	        -t "$(IMAGE)$${name#*:}" .; \
	    done; \
	    exit; \
	  fi; \
	done; echo "no docker, podman or buildah is at hand to build the image" >&2; exit 1

clean: ## Remove .venv and everything else that was generated
	rm -rf $(VENV) $(VENV)-kserve $(VENV)-checkov $(VENV)-litserve $(VENV)-bentoml build dist htmlcov .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
	rm -f .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
