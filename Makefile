# Every target makes .venv when it is missing: with uv if there is one, else with venv and pip.

PYTHON ?= python3
# Another Python, as in make test PYTHON=python3.13, has an environment of its own beside it: .venv-3.13.
VENV := .venv$(patsubst python%,-%,$(filter-out python python3,$(notdir $(PYTHON))))
BIN := $(VENV)/bin
HOST ?= 127.0.0.1
PORT ?= 8888
KUBERNETES_PORT ?= 8080

# Compiled modules are kept even where the environment says otherwise: dozens of processes import the same ones.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -q

.DEFAULT_GOAL := help

DAILY := run test check docs bench test-all

.PHONY: help
help: ## List the targets of a day.
	@awk -F ':.*## ' -v daily=" $(DAILY) " '/^[a-z-]+:.*## / && index(daily, " " $$1 " ") { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  make help-all   List all other targets, too."

.PHONY: help-all
help-all: ## List all targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --no-deps: the lock names all packages, while pip refuses an extra (pytest-cov's coverage[toml]) as unpinned once PyPI has a newer release of it.
define install
	@mkdir -p $(VENV)
	@{ if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && \
		uv pip install --python $(BIN)/python --no-deps --require-hashes $(1) && \
		uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . ; \
	else \
		$(PYTHON) -m venv $(VENV) && \
		$(BIN)/python -m pip install --progress-bar off --disable-pip-version-check --no-deps --require-hashes $(1) && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . ; \
	fi; } >$(VENV)/install.log 2>&1 || { tail -n 20 $(VENV)/install.log >&2; exit 1; }
endef

packages_in = $$(cat $(1) | grep -c '^[a-z].*==')

# What running needs, and what builds the package: nothing of what tests and checks need.
$(VENV)/.runs: pyproject.toml requirements.txt requirements-build.txt
	@echo "Setting up $(VENV), once: $(call packages_in,requirements.txt requirements-build.txt) packages that running Reprieve needs, in a minute or two (log: $(VENV)/install.log)"
	$(call install,-r requirements.txt -r requirements-build.txt)
	@touch $@

$(VENV)/.ready: pyproject.toml requirements.txt requirements-dev.txt
	@echo "Setting up $(VENV), once: $(call packages_in,requirements-dev.txt) packages that developing Reprieve needs, in two or three minutes (log: $(VENV)/install.log)"
	$(call install,-r requirements-dev.txt)
	@touch $(VENV)/.runs $@

.PHONY: run
run: $(VENV)/.runs ## Serve a cluster of its own, or follow one (HOST=, PORT=, KUBERNETES_PORT=, STATE=, SAVE=, FOLLOW=kubeconfig, CONFIG=).
	@echo "Starting Reprieve: in a few seconds http://$(HOST):$(PORT)/ shows the cluster, and $(BIN)/reprieve pending --server http://$(HOST):$(PORT) asks about it; Ctrl-C ends it."
	@$(BIN)/reprieve serve --host $(HOST) --port $(PORT) --kubernetes-port $(KUBERNETES_PORT) \
		$(if $(FOLLOW),--kubeconfig $(FOLLOW)) $(if $(STATE),--state $(STATE)) $(if $(SAVE),--save $(SAVE)) $(if $(CONFIG),--config $(CONFIG))

.PHONY: browser
browser: ## Install Chromium for the tests of the page, where apt-get can.
	@if ! command -v chromium >/dev/null 2>&1 && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		echo "Installing Chromium with apt-get, for the tests of the page"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } \
			>/dev/null 2>&1 || echo "Chromium could not be installed: the tests of the page are skipped" >&2; \
	fi

.PHONY: pictures
pictures: $(VENV)/.ready browser ## Take the pictures in docs/images again.
	REPRIEVE_PICTURES=1 $(BIN)/python -m pytest -q tests/browser/test_pictures.py tests/installed/test_moving_picture.py

# A worker runs whole files, in their order.
TESTS := $(PYTEST) -n auto --no-loadscope-reorder
SLOW := $(TESTS) -m slow --hypothesis-profile nightly
APART := tests/hostile tests/api tests/browser tests/installed tests/deploy tests/kubectl

.PHONY: test
test: $(VENV)/.ready browser ## Run the tests but the slow ones.
	@echo "Collecting the tests; dots follow in some seconds, the whole takes about six minutes on two cores."
	@$(TESTS) -m "not slow" $(if $(PROFILE),--hypothesis-profile $(PROFILE))

.PHONY: test-all
test-all: ## Run all tests, each part after the other, as every night (20 minutes).
	@$(MAKE) --no-print-directory --keep-going PROFILE=nightly test test-hostile test-browser test-installed test-long

.PHONY: test-commands
test-commands: $(VENV)/.runs ## Play simulate, replay, serve, rules and the library with nothing but what running needs (PYTHON=).
	@$(BIN)/python -m tools.play_commands

.PHONY: test-hostile
test-hostile: $(VENV)/.ready ## Run the slow tests of the service and of what tenants do to it.
	@$(SLOW) tests/hostile tests/api

.PHONY: test-browser
test-browser: $(VENV)/.ready browser ## Run the slow tests of the page.
	@$(SLOW) tests/browser

.PHONY: test-installed
test-installed: $(VENV)/.ready ## Run the slow tests of packages, deployments and kubectl.
	@$(SLOW) tests/installed tests/deploy tests/kubectl

.PHONY: test-long
test-long: $(VENV)/.ready ## Run the other slow tests: simulations, faults, stories over sockets, the soak.
	@$(SLOW) tests $(APART:%=--ignore=%)

.PHONY: coverage
coverage: $(VENV)/.ready browser ## Run all tests, and print which lines and branches none of them reaches.
	@echo "Collecting the tests; with coverage they take about three times as long as without."
	@$(TESTS) --cov --cov-report=term

.PHONY: check
check: $(VENV)/.ready ## Lint, check types for the oldest and the newest Python, and imports between floors; lint the Dockerfile, CI's script, the workflows and the manifests.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.14
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile
	$(BIN)/shellcheck .ci/*
	$(BIN)/zizmor --offline --quiet .github action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/kubernetes-validate --strict --quiet -k 1.36 deploy/kubernetes/*/reprieve.yaml

.PHONY: parity
parity: $(VENV)/.ready ## Replay the real scheduler's recorded answers (PARITY_CASES= for another folder).
	@$(PYTEST) -n auto tests/parity

.PHONY: jepsen
jepsen: $(VENV)/.ready ## Run real processes under faults, and judge what was recorded (RUNS=, SEED= of the first one, JOBS= at one time).
	@if ! ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		echo "Installing libfaketime with apt-get, so that clocks step"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libfaketime; } \
			>/dev/null 2>&1 || echo "libfaketime could not be installed: clocks do not step" >&2; \
	fi
	$(BIN)/python -m bench.jepsen $(if $(RUNS),--runs $(RUNS)) $(if $(SEED),--seed $(SEED)) $(if $(JOBS),--jobs $(JOBS))

.PHONY: soak
soak: $(VENV)/.ready ## Ask a service everything for a long time, and print what it holds and how that grows (MINUTES=).
	$(BIN)/python -m bench.soak $(if $(MINUTES),--minutes $(MINUTES))

.PHONY: bench
bench: $(VENV)/.ready ## Measure and print figures; nothing fails for being slow.
	$(BIN)/python -m bench

.PHONY: bench-check
bench-check: $(VENV)/.ready ## Fail when a ratio of figures measured within this run has fallen by 30 % against bench/ratios.json.
	$(BIN)/python -m bench.ratios

.PHONY: house
house: $(VENV)/.runs ## Print how large each room is, and what each door loads.
	$(BIN)/python -m tools.house

.PHONY: surface
surface: $(VENV)/.ready ## Compare commands, requests, flags, metrics and all else that users hold on to with another commit (SINCE=).
	$(BIN)/python -m tools.compare_surface $(SINCE)

.PHONY: figures
figures: $(VENV)/.ready ## Compare with the recorded answers of kube-scheduler, measure, and write docs/figures.md (ten minutes; REPRIEVE_TRACES= adds a trace).
	$(BIN)/python -m bench figures

.PHONY: docs
docs: generated site ## Write all pages that are generated from the code, and build the documentation into build/site.

.PHONY: churn
churn: $(VENV)/.ready ## Tell 1,000 random stories of ordinary churn, none of which the loop guard may take for a fight (half an hour).
	CHURN_SEEDS=1000 $(BIN)/python -m pytest -q -n auto tests/stories/test_churn.py

.PHONY: generated
generated: $(VENV)/.ready ## Write openapi.json, the pages, dashboards and roles that are generated from the code.
	$(BIN)/python -m tools.generate_openapi
	$(BIN)/python -m tools.generate_flags_page
	$(BIN)/python -m tools.generate_feature_gates_page
	$(BIN)/python -m tools.generate_access_page
	$(BIN)/python -m tools.generate_metrics_page
	$(BIN)/python -m tools.generate_dashboards
	$(BIN)/python -m tools.generate_roles
	$(BIN)/python -m tools.generate_reference
	$(BIN)/python -m tools.draw_rooms

.PHONY: site
site: $(VENV)/.ready ## Build the documentation into build/site, without any warning.
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/site

.PHONY: linkcheck
linkcheck: $(VENV)/.ready ## Look up every address on the web that the documentation names (needs the web).
	$(BIN)/sphinx-build -q -b linkcheck docs build/linkcheck

.PHONY: manifests
manifests: $(VENV)/.ready ## Render the chart (deploy/chart) into deploy/kubernetes, with a helm of its own.
	$(BIN)/python -m tools.generate_roles
	$(BIN)/python -m tools.render_manifests
	$(BIN)/python -m tools.render_static_pods

.PHONY: schema
schema: $(VENV)/.ready ## Write the table of API types (TYPES= a file of the published types).
	$(BIN)/python -m tools.generate_schema $(TYPES)

.PHONY: lock
lock: ## Pin the dependencies again (needs uv).
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 pyproject.toml -o requirements.txt
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 pyproject.toml --group dev -c requirements.txt -o requirements-dev.txt
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --group build -c requirements-dev.txt -o requirements-build.txt
	uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --group archive -c requirements-dev.txt -o requirements-archive.txt

.PHONY: sbom
sbom: $(VENV)/.ready ## Write build/sbom.cdx.json, a CycloneDX bill of what requirements.txt pins.
	@mkdir -p build
	$(BIN)/cyclonedx-py requirements requirements.txt --pyproject pyproject.toml --output-reproducible -o build/sbom.cdx.json

.PHONY: mutants
mutants: $(VENV)/.ready ## Plant faults one by one, and fail for one that the tests of its folder do not catch (ONLY= some of tools/mutants.json).
	$(BIN)/python -m tools.plant_mutants $(ONLY)

.PHONY: audit
audit: $(VENV)/.ready ## Ask for known vulnerabilities of what the locks pin, as every night.
	for lock in requirements*.txt; do $(BIN)/pip-audit --strict --require-hashes --disable-pip -r $$lock || exit; done

.PHONY: licences
licences: $(VENV)/.ready ## Write docs/licences.md, the licences of what requirements.txt pins.
	$(BIN)/python -m tools.generate_licences

.PHONY: packages
packages: $(VENV)/.ready ## Build the wheel and the source distribution into dist.
	$(BIN)/python -m hatchling build -d dist

.PHONY: krew
krew: $(VENV)/.runs ## Build kubectl-reprieve for this platform, without Python around it, and dist/.krew.yaml (URL= where it will be found).
	$(BIN)/python -m tools.build_kubectl_archive dist $(if $(URL),$(URL),file://$(CURDIR)/dist)

.PHONY: krew-manifest
krew-manifest: $(VENV)/.runs ## Write dist/.krew.yaml for the archives in dist, which were built on several machines (URL= where they will be found).
	$(BIN)/python -m tools.build_kubectl_archive dist $(URL) --manifest

.PHONY: chart
chart: $(VENV)/.ready ## Lint the chart, and pack it into dist (IMAGE= and DIGEST= of the image that it names).
	$(BIN)/python -m tools.package_chart dist "$(IMAGE)" "$(DIGEST)"

.PHONY: release-check
release-check: $(VENV)/.ready ## Build all that a release publishes, and try it as its users do, which is not all tests (VERSION= that it has to have).
	$(BIN)/python -m tools.check_release $(VERSION)

.PHONY: image
image: ## Build the container image.
	docker build -t reprieve .
