# Everything one does here, by name. `make demo` and `make test` do all of their own set-up.

PYTHON ?=
JOBS ?= 2
export PYTHON

BIN := .venv/bin
MLX := .cache/mlx
MCP := .cache/mcp
PICTURES := .cache/pictures
KNOT := .cache/knot
VOCABULARY := .cache/vocabulary/qwen
RECORDINGS := .cache/recordings/answers.jsonl
PYTEST := $(BIN)/python -m pytest
COMPILED := $(shell find node/smg_node -name '*.pxd')
KERNELS := $(shell find node/smg_node -name '*.pyx' -o -name '*.h')
ROOTS := node mesh storage proto migrations chaos tests

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
ifndef SIDE_BY_SIDE
.NOTPARALLEL:
endif
.PHONY: help setup compile mlx mcp knot pictures recordings demo test check format lint types contracts house reference reference-check \
	proto proto-check unit properties simulate integration conformance test-long engines test-engines performance rewrite bench compare bench-peers gameday serf kube kube-check deploy-tools deploy-check lock \
	clean distclean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ── Set-up ───────────────────────────────────────────────────────────────────

$(BIN)/.ready: requirements.lock requirements-vocab.lock pyproject.toml tools/setup.sh tools/compile.py $(COMPILED) $(COMPILED:.pxd=.py) $(KERNELS)
	@bash tools/setup.sh project
	@touch $@

$(MLX)/.ready: requirements-mlx.lock tools/setup.sh | $(BIN)/.ready
	@bash tools/setup.sh mlx
	@touch $@

$(RECORDINGS): requirements-recordings.lock tools/recordings.py | $(BIN)/.ready
	@bash tools/setup.sh recordings

$(MCP)/.ready: requirements-mcp.lock tools/mcp/package.json tools/mcp/package-lock.json tools/setup.sh | $(BIN)/.ready
	@bash tools/setup.sh mcp
	@touch $@

$(KNOT)/.ready: tools/knot.sh
	@bash tools/knot.sh
	@touch $@

$(PICTURES)/.ready: requirements-pictures.lock tools/setup.sh | $(BIN)/.ready
	@bash tools/setup.sh pictures
	@touch $@

setup: $(BIN)/.ready ## Make .venv with the project, its tests and tools

compile: setup ## Compile what is worth it anew, after a change of a module with a .pxd (SMG_PURE=1: remove it)
	@$(BIN)/python tools/compile.py

mlx: $(MLX)/.ready ## Make .cache/mlx with a real inference engine for the tests (250 MB)

recordings: $(RECORDINGS) ## Fetch recorded answers of vendors for the tests (130 MB)
mcp: $(MCP)/.ready ## Make .cache/mcp with servers and judges of the Model Context Protocol for the tests (400 MB)

knot: $(KNOT)/.ready ## Fetch a name server into .cache/knot for the tests (1.3 MB)

pictures: $(PICTURES)/.ready ## Make .cache/pictures with published image processors that judge ours in long tests (220 MB)

# ── The two commands of the README ───────────────────────────────────────────

demo: setup ## Run one node in front of two simulated engines, and say what to type
	@$(BIN)/smg-node --demo

test: setup mlx mcp knot recordings check ## Check and test everything, as CI does
	@echo "── tests"
	@$(PYTEST) -q -n $(JOBS) --dist loadfile --no-loadscope-reorder

test-long: setup mlx mcp pictures ## Long histories, and properties at full length; ARGS="tests/simulation" for one room
	@echo "── long tests: what they cover"
	@$(PYTEST) -qq -p no:cacheprovider --long --collect-only $(ARGS) | sed -n '/ ([0-9]*): /p'
	@echo "── long tests"
	@$(PYTEST) -q -n $(JOBS) --dist loadfile --no-loadscope-reorder --long --timeout 1800 $(ARGS)

# ── Parts of it ──────────────────────────────────────────────────────────────

CHECKS := types lint contracts house reference-check proto-check

check: setup ## All checks that run nothing
	@$(MAKE) --no-print-directory --jobs $(JOBS) --output-sync=target SIDE_BY_SIDE=1 $(CHECKS)

format: setup ## Format the source
	@$(BIN)/ruff format $(ROOTS)
	@$(BIN)/ruff check --fix $(ROOTS)

lint: setup ## Is it formatted, and without the usual mistakes?
	@echo "── format and lint"
	@$(BIN)/ruff format --quiet --check $(ROOTS)
	@$(BIN)/ruff check --quiet $(ROOTS)

types: setup ## Do the types fit?
	@echo "── types"
	@$(BIN)/mypy

contracts: setup ## Do imports point down?
	@echo "── import contracts"
	@mkdir -p .cache
	@$(BIN)/lint-imports --no-cache --no-logo > .cache/contracts.txt || { cat .cache/contracts.txt; exit 1; }

house: setup ## Is the source tidy? (STYLE.md)
	@echo "── house"
	@$(PYTEST) -q -p no:cacheprovider tests/test_house.py

unit: setup ## The quick tests
	@$(PYTEST) -q -n $(JOBS) tests/unit

properties: setup ## Any chunking, any order, any garbage
	@$(PYTEST) -q -n $(JOBS) tests/properties

simulate: setup ## 1000 histories of ten nodes in bad weather, and every row of the acceptance table
	@$(BIN)/smg-chaos simulate --seeds 1000 --cost --jobs $(JOBS) $(ARGS)
	@$(BIN)/smg-chaos simulate --scenario acceptance --cost --jobs $(JOBS) $(ARGS)

integration: setup mlx mcp knot ## Real processes, a real engine
	@$(PYTEST) -q -n $(JOBS) --dist loadfile tests/integration

conformance: setup mlx mcp ## Official client libraries as judges
	@$(PYTEST) -q -n $(JOBS) --dist loadfile tests/conformance

engines: setup ## Install vLLM and SGLang for the CPU under .cache/engines (5.5 GB)
	@bash tools/setup.sh vllm
	@bash tools/setup.sh sglang

test-engines: setup ## Real vLLM and SGLang behind both transports; after `make engines`, ARGS="-k vllm" for one
	@$(PYTEST) -q --timeout 900 tests/engines $(ARGS)

performance: setup mcp ## Is it still fast?
	@$(PYTEST) -q tests/performance

rewrite: setup ## Let the transcripts say what the code says now; then read the difference
	@$(PYTEST) -q -n $(JOBS) --rewrite tests/unit

reference: setup ## Write the generated pages under deploy/reference
	@bash tools/reference.sh

reference-check: setup
	@echo "── reference"
	@bash tools/reference.sh --check

proto: setup ## Generate the Python of proto/smg_proto/*.proto
	@bash tools/proto.sh

proto-check: setup
	@echo "── proto"
	@bash tools/proto.sh --check

# ── Now and then ─────────────────────────────────────────────────────────────

$(VOCABULARY)/config.json: tests/support/models/vocabulary_folder.py | $(BIN)/.ready
	@$(BIN)/python tests/support/models/vocabulary_folder.py $(VOCABULARY)

bench: setup $(VOCABULARY)/config.json ## Measure this gateway beside others; ARGS="…" as in smg-chaos bench --help
	@$(BIN)/smg-chaos bench --tokenizer $(VOCABULARY) $(ARGS)

compare: setup $(VOCABULARY)/config.json ## Hold this gateway to its goals beside others, and publish that; ARGS="…" as in smg-chaos compare --help
	@$(BIN)/smg-chaos compare --tokenizer $(VOCABULARY) --page deploy/reference/performance.md $(ARGS)

bench-peers: setup ## Install the gateways that `make bench` can compare with
	@bash tools/setup.sh peers

gameday: setup ## Hurt real clusters in a lab of network namespaces; ARGS="…" as in smg-chaos gameday --help
	@$(BIN)/smg-chaos gameday $(or $(ARGS),all)

serf: ## Fetch serf, which `make gameday` can compare with
	@bash tools/serf.sh

kube: ## Build a real API server of Kubernetes under .cache/kube (ten minutes, 400 MB)
	@bash tools/kube.sh

kube-check: setup kube ## Discovery in front of a real API server of Kubernetes
	@$(PYTEST) -q --timeout 300 tests/kube $(ARGS)

deploy-tools: setup ## Fetch the programs that deploy/ is for: Helm, Envoy, HAProxy, hadolint and others (200 MB)
	@bash tools/deploy.sh tools

deploy-check: ## Hold deploy/ against the programs that it is for
	@bash tools/deploy.sh check

lock: ## Resolve the dependencies again; ARGS="--upgrade" for newer ones
	@bash tools/setup.sh lock $(ARGS)

clean: ## Remove what tools leave behind
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	@find $(ROOTS) -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## Remove the environments too
	@rm -rf .venv .cache
